"""Reports and their signatures, the verdict, and what `doctor --walls` makes of what was found."""

import json
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from api.cli import policy as command
from api.cli import walls as shown
from policy import attempts, proof, signing
from policy.attempts import Attempt, Outcome
from policy.egress import Policy
from policy.walls import Walls

POLICY = Policy(
    "strict", frozenset({("10.0.0.5", 443)}), frozenset({11434, 5432}), frozenset({"m"}), ("::1", 1), ("/x",)
)
REFUSED, OPEN, PASSED = (
    Outcome("x", result, "tripwire", "y")  # type: ignore[arg-type]
    for result in ("refused", "open", "passed")
)


def test_a_policy_survives_the_way_to_another_process() -> None:
    assert attempts.unpacked(attempts.packed(POLICY)) == POLICY
    assert proof.digest(POLICY) != proof.digest(Policy("strict"))


def test_the_key_is_made_once_and_is_the_owners_only(tmp_path: Path) -> None:
    made = signing.public(signing.key(tmp_path))
    assert signing.public(signing.key(tmp_path)) == made
    assert stat.S_IMODE((tmp_path / "keys" / "reports.key").stat().st_mode) == 0o600


def test_a_signed_report_is_verified_also_after_json(tmp_path: Path) -> None:
    private = signing.key(tmp_path)
    signed = signing.sign({"a": [1, "中"], "b": {"c": None}}, private)
    assert signing.verified(json.loads(json.dumps(signed, indent=1))) == signing.public(private)


@pytest.mark.parametrize(
    "change",
    [
        {"a": 2},
        {"more": 1},
        {"signature": None},
        {"signature": {}},
        {"signature": {"kind": "none", "key": "", "value": ""}},
        {"signature": {"kind": "ed25519", "key": "AA==", "value": "AA=="}},
        {"signature": {"kind": "ed25519", "key": "not base64", "value": "?"}},
    ],
)
def test_a_changed_report_is_not(change: dict[str, Any], tmp_path: Path) -> None:
    assert signing.verified({**signing.sign({"a": 1}, signing.key(tmp_path)), **change}) is None


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ([REFUSED], "closed"),
        ([REFUSED, OPEN], "open"),
        ([OPEN, PASSED], "broken"),
        ([], "broken"),
    ],
)
def test_the_verdict_is_that_of_the_worst(outcomes: list[Outcome], verdict: str) -> None:
    assert proof.verdict(outcomes) == verdict
    assert verdict in command.VERDICTS


def test_a_report_names_policy_version_and_time_but_not_the_machine() -> None:
    found = proof.report(POLICY, [REFUSED], datetime(2026, 1, 2, tzinfo=UTC))
    assert (found["made_at"], found["policy"]["digest"]) == ("2026-01-02T00:00:00+00:00", proof.digest(POLICY))
    assert found["counts"] == {"refused": 1}
    machine = Path("/etc/machine-id")
    if machine.exists():
        assert machine.read_text().strip() not in json.dumps(found)


def test_an_attempt_that_nothing_stops_is_told() -> None:
    assert attempts.outcome(Attempt("x", "judge", lambda _: None), POLICY).result == "passed"
    assert attempts.outcome(Attempt("x", "system", lambda _: None), POLICY).result == "open"
    assert attempts.outcome(Attempt("x", "judge", lambda _: int("no")), POLICY).result == "passed"  # type: ignore[arg-type,return-value]


@pytest.mark.threat(13)
def test_every_spelling_of_a_cloud_model_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [outcome.result for outcome in command.cloud_models()] == ["refused"]
    monkeypatch.setattr(command, "CLOUD", (*command.CLOUD, "qwen3:4b"))
    assert [(outcome.result, outcome.reason) for outcome in command.cloud_models()] == [("passed", "qwen3:4b")]


@pytest.mark.threat(37)
def test_an_address_filter_that_is_not_in_force_is_named() -> None:
    found = {check.name: check for check in shown.judged(Walls(True, False, True, rules=False, filter=True))}
    assert {name: check.state for name, check in found.items()} == {
        "TCP, port 443": "ok",
        "UDP, port 53": "fail",
        "name look-ups": "ok",
        "nftables": "warn",
        "systemd": "ok",
    }
    assert "eBPF" in str(found["UDP, port 53"].remedy)


def test_rules_that_cannot_be_seen_are_no_fault_while_nothing_gets_out() -> None:
    assert {check.state for check in shown.judged(Walls(True, True, True, rules=None, filter=None))} == {"ok"}


@pytest.mark.threat(14)
def test_no_source_makes_a_model_server_pull() -> None:
    root = Path(proof.__file__).resolve().parents[1]
    sources = [path for folder in ("inference", "agent", "api") for path in (root / folder).rglob("*.py")]
    assert len(sources) > 40
    assert [
        path.name for path in sources if "/api/pull" in path.read_text() or "client.pull(" in path.read_text()
    ] == []
