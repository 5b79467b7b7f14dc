"""`intramuros approvals`: what waits is listed, read, approved with a note, and rejected for a reason."""

import json
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

import pytest

from agent.settling import settle
from agent.workflow.approving import waiting
from core.records import Outcome, Principal, Role, Tenant
from core.settings import variable
from storage import audit, collections, runs, sessions, users
from storage.database import Database
from tests.integration.cli.conftest import Terminal
from tests.unit.cli.records import answer


@dataclass(frozen=True, slots=True)
class Held:
    """An answer of an employee's that waits, in its session."""

    erin: Principal
    session: UUID
    turn: UUID


@pytest.fixture
async def held(database: Database, tenant: Tenant) -> Held:
    erin = await users.create(database, tenant.id, "erin", "$hash", Role.EMPLOYEE)
    await collections.ensure(database, tenant.id, "handbook")
    session = await sessions.create(database, erin, "Caps")
    # Cites nothing of the library: whether it may still be read is looked at elsewhere.
    peer = replace(answer().citations[0], origin="peer")
    found = replace(answer(citations=(peer,)), question="What is the cap?")
    run = await runs.begin(database, erin, session.id, found.question, "auto", checkpointed=False)
    shown = waiting(found, ["handbook"])
    turn = await runs.answered(database, erin, run, session.id, shown, (), pending=(found, ["handbook"]))
    assert turn is not None
    return Held(erin, session.id, turn.id)


async def settled(database: Database, held: Held) -> tuple[Outcome, str, str | None]:
    await settle(database, held.erin, held.session)
    (turn,) = await sessions.turns(database, held.erin, held.session)
    return turn.outcome, turn.answer, turn.notice


async def test_what_waits_is_listed_and_shown(terminal: Terminal, held: Held) -> None:
    listed = await terminal("approvals", "list")
    assert listed.code == 0
    for told in ("erin", "handbook", "What is the cap?", str(held.turn)):
        assert told in listed.out
    assert "EUR 140" not in listed.out
    shown = await terminal("approvals", "show", str(held.turn))
    for told in ("erin", "What is the cap?", "EUR 140 per night [1]", "Hotel cap in Berlin: EUR 140 per night"):
        assert told in shown.out
    view = json.loads((await terminal("approvals", "list", "--json")).out)
    assert (view["waiting"], view["approvals"][0]["turn_id"]) == (1, str(held.turn))
    one = json.loads((await terminal("approvals", "show", str(held.turn), "--json")).out)
    assert one == view["approvals"][0]


async def test_it_is_approved_with_a_note(terminal: Terminal, database: Database, tenant: Tenant, held: Held) -> None:
    done = await terminal("approvals", "approve", str(held.turn), "--note", "until June")
    assert (done.code, done.out) == (0, "approved: erin asked “What is the cap?”\n")
    assert await settled(database, held) == (
        Outcome.ANSWERED,
        "The cap in Berlin is EUR 140 per night [1].",
        "Approved with this note: until June",
    )
    entry = (await audit.listing(database, tenant.id, 1))[0]
    assert (entry.action, entry.subject) == ("answer.approved", str(held.turn))
    assert "No answer waits" in (await terminal("approvals", "list")).err
    for again in ("show", "approve"):
        assert "already" in (await terminal("approvals", again, str(held.turn))).err


async def test_it_is_rejected_for_a_reason(terminal: Terminal, database: Database, held: Held) -> None:
    refused = await terminal("approvals", "reject", str(held.turn))
    assert (refused.code, "Say why" in refused.err) == (1, True)
    assert (await terminal("approvals", "reject", str(held.turn), "--note", "out of date")).code == 0
    outcome, told, _ = await settled(database, held)
    assert (outcome, told) == (Outcome.REJECTED, "This answer was not approved: out of date")


@pytest.mark.threat(51)
async def test_ids_of_others_are_ids_that_nobody_has(
    terminal: Terminal, database: Database, other_tenant: Tenant, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await terminal("approvals", "show", "7")).code == 1
    monkeypatch.setenv(variable("tenant"), other_tenant.slug)
    assert "No answer waits" in (await terminal("approvals", "list")).err
    for act in (["show"], ["approve"], ["reject", "--note", "old"]):
        foreign, nobodys = [await terminal("approvals", act[0], str(turn), *act[1:]) for turn in (held.turn, uuid4())]
        assert foreign == nobodys
        assert foreign.code == 1
    assert (await settled(database, held))[0] is Outcome.WAITING
