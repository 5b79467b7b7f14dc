"""What the egress policy denied stands in the audit log; while it cannot be written there, nothing is let out."""

import asyncio
from pathlib import Path

import psycopg
import pytest

from api import recording
from core.errors import EgressDenied
from core.logs import traced
from policy import ledger
from policy.egress import Policy, check_url
from storage import audit
from storage.audit import INSTALLATION
from storage.database import Database
from tests.conftest import DatabaseUnderTest
from tests.integration.api.conftest import Site
from tests.integration.api.test_runtime import first_line, started

pytestmark = [pytest.mark.usefixtures("own_ledger"), pytest.mark.threat(103)]

POLICY = Policy(scope="strict", ports=frozenset({11434}))


def deny(url: str, trace: str = "trace-1") -> None:
    with traced(trace), pytest.raises(EgressDenied):
        check_url(POLICY, url, "model")


async def recorded(database: Database) -> list[tuple[str, str]]:
    """Trace and subject of every denial in the chain, the oldest first."""
    entries = await audit.listing(database, INSTALLATION, 1000)
    return [(entry.trace, entry.subject) for entry in reversed(entries) if entry.action == recording.ACTION]


def unwritable(fresh: DatabaseUnderTest, whether: bool) -> None:
    change = (
        "REVOKE EXECUTE ON FUNCTION intramuros.add_audit FROM"
        if whether
        else "GRANT EXECUTE ON FUNCTION intramuros.add_audit TO"
    )
    with psycopg.connect(fresh.owner_dsn) as connection:
        connection.execute("SET ROLE intramuros_owner")
        connection.execute(f"{change} intramuros_app")  # type: ignore[arg-type]


async def test_a_denial_is_an_entry_with_what_it_was_for_and_where_to(database: Database) -> None:
    deny("http://1.1.1.1")
    async with recording.recording(database):
        deny("http://10.0.0.9:11434", "trace-2")
        deny("http://10.0.0.9:11434", "trace-3")
    assert await recorded(database) == [
        ("trace-1", "model public 1.1.1.1 port 80 x1"),
        ("trace-2", "model peer_not_listed 10.0.0.9 port 11434 x2"),
    ]
    assert (await audit.verify(database, INSTALLATION)).fault is None


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> asyncio.Queue[bool]:
    """What became of each batch, as it is written."""
    found: asyncio.Queue[bool] = asyncio.Queue()
    write = recording.write

    async def telling(db: Database) -> bool:
        found.put_nowait(done := await write(db))
        return done

    monkeypatch.setattr(recording, "write", telling)
    return found


async def test_the_first_is_recorded_at_once_and_those_after_it_together(
    database: Database, turns: asyncio.Queue[bool]
) -> None:
    async with recording.recording(database, pause=3600), asyncio.timeout(30):
        deny("http://1.1.1.1")
        assert await turns.get()
        assert len(await recorded(database)) == 1
        for number in range(1000):
            deny(f"http://name{number}.example")
        assert len(await recorded(database)) == 1
    found = await recorded(database)
    assert len(found) == 1 + ledger.KINDS + 1
    assert sum(int(subject.rpartition("x")[2]) for _, subject in found[1:]) == 1000


@pytest.mark.threat(34)
async def test_what_a_name_says_is_in_no_entry(database: Database) -> None:
    async with recording.recording(database):
        deny("http://the-salary-of-erin-is-90000.example")
        deny("http://u:hunter2@1.1.1.1/?token=hunter2")
    subjects = [subject for _, subject in await recorded(database)]
    assert "erin" not in str(subjects)
    assert "hunter2" not in str(subjects)
    assert [subject.partition(" name ")[0] for subject in subjects] == [
        "model name_not_listed",
        "model malformed_url x1",
    ]


async def test_while_the_log_cannot_be_written_nothing_is_let_out(
    site: Site, database: Database, fresh: DatabaseUnderTest
) -> None:
    check_url(POLICY, "http://127.0.0.1:11434", "model")
    deny("http://1.1.1.1")
    unwritable(fresh, True)
    assert not await recording.write(database)
    deny("http://127.0.0.1:11434", "trace-2")
    async with site.client() as client:
        ready = await client.get("/readyz")
    assert (ready.status_code, [check["name"] for check in ready.json()["checks"] if not check["ok"]]) == (
        503,
        ["policy"],
    )
    unwritable(fresh, False)
    assert await recording.write(database)
    check_url(POLICY, "http://127.0.0.1:11434", "model")
    assert await recorded(database) == [
        ("trace-1", "model public 1.1.1.1 port 80 x1"),
        ("trace-2", "model unwritten 127.0.0.1 port 11434 x1"),
    ]


async def test_the_log_is_tried_again_until_it_can_be_written(
    database: Database, fresh: DatabaseUnderTest, turns: asyncio.Queue[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "AGAIN", 0)
    unwritable(fresh, True)
    async with recording.recording(database), asyncio.timeout(30):
        deny("http://1.1.1.1")
        assert [await turns.get(), await turns.get(), ledger.closed()] == [False, False, True]
        unwritable(fresh, False)
        while not await turns.get():
            assert ledger.closed()
        assert not ledger.closed()
    assert [subject for _, subject in await recorded(database)] == ["model public 1.1.1.1 port 80 x1"]


# Reaches out from a thread, as a library that swallows the refusal would.
REACH = """
import asyncio, socket, sys
from policy import boot
boot.seal()
from api.runtime import Runtime
from core.settings import Settings

def reach():
    try:
        socket.create_connection(("198.51.100.1", 443), 1)
    except Exception:
        pass

async def main():
    async with Runtime.open(Settings.load()):
        await asyncio.to_thread(reach)
    print("done", flush=True)

asyncio.run(main())
"""


async def test_what_the_tripwire_refuses_in_the_program_is_recorded(
    database: Database, fresh: DatabaseUnderTest, tmp_path: Path
) -> None:
    with started("-c", REACH, INTRAMUROS_HOME=str(tmp_path), INTRAMUROS_DATABASE_URL=fresh.app_dsn) as program:
        assert await asyncio.to_thread(first_line, program) == "done"
    assert [subject for _, subject in await recorded(database)] == ["socket.connect reserved 198.51.100.1 port 443 x1"]
