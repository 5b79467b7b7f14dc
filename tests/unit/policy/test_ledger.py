"""Denials on their way to the audit log: what is kept of one, how many, and what holds while none can be written."""

import hashlib
import threading

import httpx
import pytest

from core.errors import EgressDenied
from core.logs import traced
from policy import ledger
from policy.egress import Policy, check_dsn, check_url
from policy.ledger import Denial
from policy.transport import transport
from tests.unit.policy.armed import run

pytestmark = pytest.mark.usefixtures("own_ledger")

POLICY = Policy(scope="strict", peers=frozenset({("10.0.0.5", 5432)}), ports=frozenset({11434}))
HASH = hashlib.sha256(b"secret.example").hexdigest()[:16]


@pytest.mark.parametrize(
    ("host", "port", "expected"),
    [
        ("198.51.100.1", 443, "198.51.100.1 port 443"),
        (b"2001:db8::1", 53, "2001:db8::1 port 53"),
        ("secret.example", 443, f"name {HASH} port 443"),
        ("secret.example", None, f"name {HASH}"),
        ("What is the cap?", 443, ""),
        ("/var/run/docker.sock", None, ""),
        (None, 443, ""),
        (7, 443, ""),
    ],
)
def test_of_a_destination_an_address_is_told_and_of_a_name_a_hash(host: object, port: object, expected: str) -> None:
    assert ledger.told(host, port) == expected


def test_denials_of_a_kind_are_kept_as_one_under_the_first_ones_trace() -> None:
    for trace in ("first", "second"):
        with traced(trace):
            ledger.deny("public", purpose="model", target=ledger.told("1.1.1.1", 443))
    ledger.deny(ledger.CANARY, purpose="socket.connect")
    ledger.count("tool_unknown", purpose="tool")
    kind = Denial("public", "model", "1.1.1.1 port 443")
    assert ledger.unwritten() == {kind: (2, "first")}
    assert str(kind) == "model public 1.1.1.1 port 443"


@pytest.mark.threat(103)
def test_a_flood_is_kept_in_a_handful_of_kinds_and_none_of_it_is_lost() -> None:
    for number in range(10_000):
        ledger.deny("name", purpose="socket.getaddrinfo", target=ledger.told(f"a{number}.example"))
    kept = ledger.unwritten()
    assert len(kept) == ledger.KINDS + 1
    assert sum(times for times, _ in kept.values()) == 10_000
    assert kept[Denial("name", ledger.SEVERAL, "")][0] == 10_000 - ledger.KINDS


def test_what_came_while_others_were_written_still_waits() -> None:
    ledger.deny("public", purpose="model")
    before = ledger.unwritten()
    ledger.deny("public", purpose="model")
    ledger.deny("scope", purpose="model")
    ledger.written((denial, times) for denial, (times, _) in before.items())
    assert {denial.reason: times for denial, (times, _) in ledger.unwritten().items()} == {"public": 1, "scope": 1}


def test_whoever_listens_is_told_from_whatever_thread() -> None:
    told: list[str] = []
    ledger.listen(lambda: told.append(threading.current_thread().name))
    thread = threading.Thread(target=lambda: ledger.deny("public", purpose="model"), name="another")
    thread.start()
    thread.join()
    ledger.listen(None)
    ledger.deny("public", purpose="model")
    assert told == ["another"]


@pytest.mark.threat(103)
def test_while_a_denial_cannot_be_written_nothing_but_the_database_is_reached() -> None:
    check_url(POLICY, "http://127.0.0.1:11434", "model")
    ledger.close()
    with pytest.raises(EgressDenied, match="audit log cannot be written") as refused:
        check_url(POLICY, "http://127.0.0.1:11434", "model")
    assert refused.value.reason == ledger.UNWRITTEN
    with pytest.raises(EgressDenied):
        transport(POLICY, "model").handle_request(httpx.Request("GET", "http://127.0.0.1:11434/"))
    assert "10.0.0.5" in check_dsn(POLICY, "host=10.0.0.5 dbname=x user=y")
    ledger.written(())
    check_url(POLICY, "http://127.0.0.1:11434", "model")


CLOSED = """
def reach(host, port):
    with socket.socket() as sock:
        sock.setblocking(False)
        sock.connect((host, port))

hook.arm(POLICY)
found = [outcome(lambda: reach("10.0.0.5", 443)), outcome(lambda: reach("127.0.0.1", 1))]
ledger.close()
found += [outcome(lambda: reach("10.0.0.5", 443)), outcome(lambda: reach("127.0.0.1", 1))]
try:
    reach("1.1.1.1", 443)
except Exception:
    pass
report([found, sorted(map(str, ledger.unwritten()))])
"""


@pytest.mark.threat(25, 103)
def test_the_tripwire_closes_too_and_keeps_what_a_library_swallows() -> None:
    found, kept = run(CLOSED)
    assert [result.partition(":")[0] for result in found] == ["passed", "passed", "unwritten", "unwritten"]
    assert kept == [
        "socket.connect public 1.1.1.1 port 443",
        "socket.connect unwritten 10.0.0.5 port 443",
        "socket.connect unwritten 127.0.0.1 port 1",
    ]
