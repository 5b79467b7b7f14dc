import logging
import threading
from dataclasses import dataclass

import pytest

from core.errors import EgressDenied, ToolDenied
from policy import ledger
from policy.egress import Policy
from policy.tools import allowed_tools, check_tool

STRICT = Policy(scope="strict")


@dataclass
class Tool:
    name: str


SEARCH, READ, WEB = Tool("kb_search"), Tool("kb_read_chunk"), Tool("web_search")


@pytest.mark.threat(17)
def test_tools_outside_the_table_never_reach_the_model() -> None:
    for scope in ("strict", "private"):
        assert allowed_tools(Policy(scope=scope), [READ, WEB, SEARCH, Tool("KB_SEARCH")]) == [READ, SEARCH]  # type: ignore[arg-type]


@pytest.mark.threat(17)
def test_a_peer_tool_needs_the_private_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policy.tools.REACH", {"kb_search": "local", "intranet_search": "peer"})
    tools = [SEARCH, Tool("intranet_search")]
    assert allowed_tools(STRICT, tools) == [SEARCH]
    assert allowed_tools(Policy(scope="private"), tools) == tools


def test_without_a_policy_there_are_no_tools() -> None:
    assert allowed_tools(Policy(), [SEARCH, READ]) == []
    with pytest.raises(ToolDenied):
        check_tool(Policy(), "kb_search", {"kb_search"})


def test_a_tool_is_checked_again_when_it_runs(caplog: pytest.LogCaptureFixture) -> None:
    check_tool(STRICT, "kb_search", {"kb_search"})
    before = ledger.denials()
    for name, reason in (("kb_read_chunk", "tool_forbidden"), ("rm -rf / please", "tool_unknown")):
        with pytest.raises(ToolDenied) as caught:
            check_tool(STRICT, name, {"kb_search", "web_search"})
        assert caught.value.message.endswith("Available tools: kb_search.")
        assert ledger.denials()[reason] == before.get(reason, 0) + 1
    # What a model wrote is user text: it is not logged.
    assert "rm -rf" not in "".join(str(vars(record)) for record in caplog.records)


@pytest.mark.threat(25)
def test_a_denial_that_is_swallowed_stays_counted() -> None:
    before = ledger.denials().get("public", 0)
    try:
        raise ledger.deny("public", purpose="model", port=443)
    except Exception:  # noqa: BLE001  the careless handler that this is about
        pass
    assert ledger.denials()["public"] == before + 1


def test_denials_are_counted_from_many_threads(caplog: pytest.LogCaptureFixture) -> None:
    before = ledger.denials().get("many", 0)

    def work() -> None:
        for _ in range(250):
            ledger.count("many", purpose="test")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.denials()["many"] == before + 2000


def test_a_denial_is_logged_with_its_reason_and_the_canary_quietly(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "policy.ledger")
    error = ledger.deny("public", purpose="model", port=443)
    assert isinstance(error, EgressDenied)
    assert (error.reason, error.status, error.code) == ("public", 403, "egress_denied")
    ledger.count(ledger.CANARY, purpose="socket.connect")
    first, second = caplog.records
    assert (first.levelno, vars(first)["reason"], vars(first)["purpose"], vars(first)["port"]) == (
        logging.WARNING,
        "public",
        "model",
        443,
    )
    assert second.levelno == logging.DEBUG


def test_the_counts_handed_out_are_a_copy() -> None:
    ledger.count("copied", purpose="test")
    handed = dict(ledger.denials())
    ledger.denials().pop("copied")  # type: ignore[attr-defined]
    assert ledger.denials()["copied"] == handed["copied"]
