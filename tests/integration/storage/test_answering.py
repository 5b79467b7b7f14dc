"""Who answers a question is seen by every process of the machine, for as long as it does."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from storage import answering
from storage.database import Database
from tests.conftest import DatabaseUnderTest


@pytest.fixture
async def another(fresh: DatabaseUnderTest) -> AsyncIterator[Database]:
    """Another process's door to the same database."""
    opened = await Database.open(fresh.app_dsn, pool_size=1)
    yield opened
    await opened.close()


async def test_a_question_is_seen_while_it_is_answered(database: Database, another: Database) -> None:
    for db in (database, another):
        assert not await answering.under_way(db)
    async with answering.answering(database):
        for db in (database, another):
            assert await answering.under_way(db)
    for db in (database, another):
        assert not await answering.under_way(db)


async def test_several_questions_do_not_wait_for_each_other(database: Database, another: Database) -> None:
    async with answering.answering(database), answering.answering(database), answering.answering(another):
        assert await answering.under_way(database)
    assert not await answering.under_way(database)


async def test_the_last_question_counts(database: Database, another: Database) -> None:
    async with answering.answering(another):
        async with answering.answering(database):
            pass
        assert await answering.under_way(database)


async def test_a_cancelled_question_is_over(database: Database) -> None:
    async def ask() -> None:
        async with answering.answering(database):
            await asyncio.Event().wait()

    for turns in range(6):
        task = asyncio.create_task(ask())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not await answering.under_way(database)


async def test_a_question_outlives_a_lost_connection(
    database: Database, another: Database, fresh: DatabaseUnderTest
) -> None:
    async with answering.answering(database):
        with psycopg.connect(fresh.owner_dsn, autocommit=True) as owner:
            owner.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND pid <> "
                "pg_backend_pid() AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        assert not await answering.under_way(another)
        # The next lock that is taken brings the connection back, and what it held.
        async with answering.answering(database):
            pass
        assert await answering.under_way(another)
    assert not await answering.under_way(another)
