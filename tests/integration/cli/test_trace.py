"""`intramuros trace`: runs listed without their questions, and one of them read for a stated reason."""

import json
from uuid import UUID

import pytest

from core.records import Role, Step, Tenant
from storage import collections, runs, sessions, traces, users
from storage.database import Database
from tests.integration.cli.conftest import Terminal
from tests.unit.cli.records import answer

STEPS = [
    Step("route", 1, {"path": "quick", "reason": "one fact"}),
    Step("search", 4, {"query": "cap", "hits": [{"score": 0.5}, {"score": 0.4}], "by": ["words", "meaning"]}),
    Step("model", 1900, {"prompt": "grade", "version": "ab12", "prompt_tokens": 30, "done_reason": "stop"}),
]


@pytest.fixture
async def run(database: Database, tenant: Tenant) -> UUID:
    """A run of an employee's."""
    erin = await users.create(database, tenant.id, "erin", "$hash", Role.EMPLOYEE)
    session = await sessions.create(database, erin, "Caps")
    begun = await runs.begin(database, erin, session.id, "What is the cap?", "auto", checkpointed=False)
    await runs.answered(database, erin, begun, session.id, answer(), STEPS)
    return begun


async def test_runs_are_listed_without_what_was_asked(terminal: Terminal, run: UUID) -> None:
    listed = await terminal("trace")
    assert (listed.code, str(run) in listed.out, "erin" in listed.out) == (0, True, True)
    assert "cap?" not in listed.out
    assert json.loads((await terminal("trace", "--json")).out)["runs"][0]["prompt_tokens"] == 30
    assert "No runs yet" in (await terminal("trace", "--user", "nobody")).err


async def test_one_of_them_is_read_for_a_reason(
    terminal: Terminal, run: UUID, database: Database, tenant: Tenant
) -> None:
    refused = await terminal("trace", str(run))
    assert (refused.code, refused.out) == (1, "")
    assert "Say why" in refused.err
    shown = (await terminal("trace", str(run), "--reason", "complaint 12")).out
    assert "What is the cap?" in shown
    assert "path: quick, reason: one fact" in shown
    assert "query: cap, by: words, meaning, hits: 2 of them" in shown
    assert "1.90" in shown
    assert "EUR 140 per night" in shown
    whole = json.loads((await terminal("trace", str(run), "--reason", "complaint 12", "--json")).out)
    assert [step["kind"] for step in whole["steps"]] == ["route", "search", "model"]
    erin = (await users.list_all(database, tenant.id))[0].principal
    told = await traces.readings(database, erin)
    assert [(one.reader, one.reason) for one in told] == [("operator", "complaint 12")] * 2
    assert (await terminal("trace", "7")).code == 1
    assert (await terminal("trace", str(UUID(int=7)), "--reason", "x")).code == 1


async def test_answers_of_a_collection_wait_when_told_to(
    terminal: Terminal, database: Database, tenant: Tenant
) -> None:
    await collections.ensure(database, tenant.id, "handbook")
    told = await terminal("collections", "approval", "handbook", "--by", "group:legal")
    assert told.out == "answers that cite handbook wait for approval by group:legal, admins\n"
    assert (await collections.by_name(database, tenant.id, "handbook")).approvers == ("group:legal",)
    assert (await terminal("collections", "approval", "handbook", "--by", "somebody")).code == 1
    await terminal("collections", "approval", "handbook", "--off")
    assert (await collections.by_name(database, tenant.id, "handbook")).approvers is None
