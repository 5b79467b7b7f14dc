"""LangGraph's memory behind the wall: a thread id, even a guessed one, opens only its own user's thread."""

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, TypedDict
from uuid import UUID, uuid4

import ormsgpack
import psycopg
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde import _msgpack
from langgraph.graph import END, START, StateGraph

from core.errors import BootRefused, StorageError
from core.records import Principal, RunState, Tenant
from storage import checkpoints, runs, sessions, tenants, threads, users
from storage.database import Database
from tests.conftest import DatabaseUnderTest

TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


class State(TypedDict):
    said: Annotated[list[str], operator.add]


def config(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread}}


async def say(db: Database, reader: Principal, thread: str, word: str) -> list[str]:
    """One run of a small graph on a thread; everything said so far."""
    graph = StateGraph(State)
    graph.add_node("hear", lambda state: {"said": []})
    graph.add_edge(START, "hear")
    graph.add_edge("hear", END)
    compiled = graph.compile(checkpointer=checkpoints.open_saver(db, reader))
    result = await compiled.ainvoke(State(said=[word]), config(thread))
    said: list[str] = result["said"]
    return said


@pytest.fixture
async def session(database: Database, principal: Principal) -> UUID:
    """A session of the employee."""
    return (await sessions.create(database, principal, "mine")).id


async def run_in(database: Database, principal: Principal, session: UUID, word: str) -> UUID:
    """A run in which one word was said."""
    run = await runs.begin(database, principal, session, word, "auto", checkpointed=True)
    await say(database, principal, threads.thread_id(principal, run), word)
    await runs.ended(database, principal, run, RunState.FINISHED, ())
    return run


@pytest.fixture
async def mine(database: Database, principal: Principal, session: UUID) -> UUID:
    """A run in that session in which one word was said."""
    return await run_in(database, principal, session, "hello")


def rows(fresh: DatabaseUnderTest) -> dict[str, int]:
    """Checkpoint rows as a superuser counts them."""
    with psycopg.connect(fresh.owner_dsn) as connection:
        counted = {}
        for table in TABLES:
            row = connection.execute(f"SELECT count(*) FROM checkpoints.{table}").fetchone()
            assert row is not None
            counted[table] = int(row[0])
    return counted


async def test_a_session_is_remembered(database: Database, principal: Principal, mine: UUID) -> None:
    thread = threads.thread_id(principal, mine)
    assert await say(database, principal, thread, "again") == ["hello", "again"]


@pytest.mark.threat(51)
@pytest.mark.parametrize(
    "intruder",
    [
        lambda me, other: replace(me, user_id=uuid4()),
        lambda me, other: users.operator(me.tenant_id),
        lambda me, other: replace(me, tenant_id=other.id),
    ],
    ids=["another user", "the operator", "another tenant"],
)
async def test_a_guessed_thread_is_neither_read_nor_written_nor_deleted(
    database: Database,
    principal: Principal,
    other_tenant: Tenant,
    mine: UUID,
    fresh: DatabaseUnderTest,
    intruder: Callable[[Principal, Tenant], Principal],
) -> None:
    thread, stranger = threads.thread_id(principal, mine), intruder(principal, other_tenant)
    before = rows(fresh)
    saver = checkpoints.open_saver(database, stranger)
    assert await saver.aget_tuple(config(thread)) is None
    assert [found async for found in saver.alist(None)] == []
    await saver.adelete_thread(thread)
    await saver.aprune([thread])
    with pytest.raises(StorageError):
        await say(database, stranger, thread, "intruding")
    assert rows(fresh) == before


@pytest.mark.threat(52)
@pytest.mark.parametrize("thread", ["", "loose", ":", "x:y:z"])
async def test_a_thread_without_an_owner_is_nobodys(database: Database, principal: Principal, thread: str) -> None:
    with pytest.raises(StorageError):
        await say(database, principal, thread, "hello")


async def age(fresh: DatabaseUnderTest, run: UUID, days: int) -> None:
    with psycopg.connect(fresh.owner_dsn, options="-c search_path=intramuros,public") as connection:
        connection.execute(
            "UPDATE runs SET finished_at = finished_at - make_interval(days => %s) WHERE id = %s", (days, run)
        )


async def test_checkpoints_go_when_their_days_are_over(
    database: Database, principal: Principal, admin: Principal, session: UUID, mine: UUID, fresh: DatabaseUnderTest
) -> None:
    recent = await run_in(database, principal, session, "recent")
    other = await sessions.create(database, admin, "other")
    theirs = await run_in(database, admin, other.id, "theirs")
    waiting = await runs.begin(database, principal, session, "waits", "auto", checkpointed=True)
    await say(database, principal, threads.thread_id(principal, waiting), "waits")
    await runs.ended(database, principal, waiting, RunState.WAITING, ())
    for run in (mine, theirs, waiting):
        await age(fresh, run, 8)
    days = {"checkpoint_days": 7, "trace_days": 30}
    assert await runs.prune(database, principal.tenant_id, **days) == {"checkpoints": 6, "traces": 0}
    assert await say(database, principal, threads.thread_id(principal, recent), "again") == ["recent", "again"]
    assert await say(database, principal, threads.thread_id(principal, waiting), "again") == ["waits", "again"]
    assert await say(database, principal, threads.thread_id(principal, mine), "anew") == ["anew"]
    assert (await runs.prune(database, principal.tenant_id, **days))["checkpoints"] == 0
    await age(fresh, mine, 30)
    assert (await runs.prune(database, principal.tenant_id, **days))["traces"] == 1


async def test_deleting_a_session_deletes_its_checkpoints(
    database: Database, principal: Principal, session: UUID, mine: UUID, fresh: DatabaseUnderTest
) -> None:
    other = await sessions.create(database, principal, "other")
    kept = await run_in(database, principal, other.id, "stay")
    receipt = await sessions.delete(database, principal, session)
    assert receipt.counts["checkpoints"] > 0
    assert receipt.counts["checkpoint_blobs"] > 0
    assert receipt.counts["runs"] == 1
    assert await say(database, principal, threads.thread_id(principal, kept), "too") == ["stay", "too"]
    await sessions.delete(database, principal, other.id)
    assert set(rows(fresh).values()) == {0}


async def test_removing_a_tenant_removes_its_checkpoints(
    database: Database, principal: Principal, mine: UUID, fresh: DatabaseUnderTest
) -> None:
    receipt = await tenants.remove(fresh.owner_dsn, "demo")
    assert receipt.counts["checkpoints"] > 0
    assert set(rows(fresh).values()) == {0}


async def test_the_connection_goes_back_without_the_user(database: Database, principal: Principal, mine: UUID) -> None:
    async with database.unscoped() as connection:
        cursor = await connection.execute("SELECT count(*) AS n FROM checkpoints.checkpoints")
        assert await cursor.fetchone() == {"n": 0}


@pytest.mark.threat(58)
async def test_a_checkpoint_that_names_code_does_not_run_it(
    database: Database, principal: Principal, mine: UUID, fresh: DatabaseUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[object] = []
    monkeypatch.setattr(math, "sqrt", called.append)
    blob = ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(("math", "sqrt", 4.0))))
    with psycopg.connect(fresh.owner_dsn, autocommit=True) as connection:
        connection.execute("UPDATE checkpoints.checkpoint_blobs SET type = 'msgpack', blob = %s", (blob,))
    await checkpoints.open_saver(database, principal).aget_tuple(config(threads.thread_id(principal, mine)))
    assert called == []


@pytest.mark.threat(58)
async def test_without_strict_deserialisation_there_is_no_memory(
    database: Database, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_msgpack, "STRICT_MSGPACK_ENABLED", False)
    with pytest.raises(BootRefused, match="LANGGRAPH_STRICT_MSGPACK"):
        checkpoints.open_saver(database, principal)
