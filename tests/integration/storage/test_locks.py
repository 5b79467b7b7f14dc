"""Locks that hold against tasks of this process and against other processes."""

import asyncio

import psycopg
import pytest

from storage.database import Database
from storage.locks import Locks, key_of
from tests.conftest import DatabaseUnderTest

KEY = key_of("test", 1)


async def test_a_lock_is_held_once_and_again_when_free(database: Database) -> None:
    async with database.locks.hold(KEY) as first:
        async with database.locks.hold(KEY) as second, database.locks.hold(key_of("test", 2)) as other:
            assert (first, second, other) == (True, False, True)
        async with database.locks.hold(KEY) as still:
            assert not still
    async with database.locks.hold(KEY) as again:
        assert again


async def test_a_lock_holds_against_another_process(database: Database, fresh: DatabaseUnderTest) -> None:
    another = Locks(fresh.app_dsn)
    async with database.locks.hold(KEY), another.hold(KEY) as taken:
        assert not taken
    async with another.hold(KEY) as taken:
        assert taken
    await another.close()


async def test_a_cancelled_task_leaves_no_lock(database: Database) -> None:
    async def work() -> None:
        async with database.locks.hold(KEY):
            await asyncio.Event().wait()

    for turns in range(6):
        task = asyncio.create_task(work())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with database.locks.hold(KEY) as free:
            assert free


async def test_locks_outlive_a_lost_connection(database: Database, fresh: DatabaseUnderTest) -> None:
    async with database.locks.hold(KEY):
        with psycopg.connect(fresh.owner_dsn, autocommit=True) as owner:
            owner.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND pid <> "
                "pg_backend_pid() AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
        async with database.locks.hold(key_of("test", 2)) as other:
            assert other
        another = Locks(fresh.app_dsn)
        async with another.hold(KEY) as stolen:
            assert not stolen
        await another.close()


def test_keys_differ_and_fit() -> None:
    assert key_of("a", "b") == key_of("a", "b")
    assert key_of("a", "b") != key_of("ab")
    assert all(-(2**63) <= key_of(i) < 2**63 for i in range(100))
