"""Migrations: once, in order, by one process at a time, never onto a newer schema, never changed afterwards."""

import asyncio
import shutil
from pathlib import Path

import psycopg
import pytest

from core.errors import SchemaOutdated, SchemaTooNew, StorageError
from storage import migrations, tenants
from storage.database import Database
from tests.conftest import DatabaseUnderTest

NEXT = "CREATE TABLE later (tenant_id uuid PRIMARY KEY); SELECT protect('later');"


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """The migrations of a program that is one version ahead."""
    folder = tmp_path / "migrations"
    shutil.copytree(migrations.FOLDER, folder)
    (folder / f"{len(migrations.known()) + 1:04}_later.sql").write_text(NEXT)
    return folder


def names() -> list[str]:
    return [migration.name for migration in migrations.known()]


async def test_an_empty_database_gets_all_of_them_and_then_none(empty_database: DatabaseUnderTest) -> None:
    assert await migrations.migrate(empty_database.owner_dsn) == names()
    assert await migrations.migrate(empty_database.owner_dsn) == []
    db = await Database.open(empty_database.app_dsn, pool_size=1)
    await migrations.check(db)
    await db.close()


@pytest.mark.threat(57)
async def test_processes_that_migrate_at_once_all_succeed(empty_database: DatabaseUnderTest) -> None:
    results = await asyncio.gather(*(migrations.migrate(empty_database.owner_dsn) for _ in range(8)))
    assert sorted(results) == [[]] * 7 + [names()]
    assert (await tenants.create(empty_database.owner_dsn, "demo", "Demo")).slug == "demo"


async def test_the_next_version_is_applied_alone(fresh: DatabaseUnderTest, newer: Path, database: Database) -> None:
    assert await migrations.migrate(fresh.owner_dsn, folder=newer) == [f"{len(names()) + 1:04}_later"]


async def test_a_newer_schema_is_refused_and_both_versions_named(
    fresh: DatabaseUnderTest, database: Database, newer: Path
) -> None:
    await migrations.migrate(fresh.owner_dsn, folder=newer)
    ours, theirs = str(len(names())), str(len(names()) + 1)
    with pytest.raises(SchemaTooNew) as refused:
        await migrations.migrate(fresh.owner_dsn)
    assert ours in refused.value.message
    assert theirs in refused.value.message
    with pytest.raises(SchemaTooNew):
        await migrations.check(database)


async def test_an_older_schema_is_refused_until_migrated(
    database: Database, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = migrations.known(newer)
    monkeypatch.setattr(migrations, "known", lambda: ahead)
    with pytest.raises(SchemaOutdated, match=str(len(ahead))):
        await migrations.check(database)


async def test_an_empty_database_is_named_as_such(empty_database: DatabaseUnderTest) -> None:
    # The right to connect comes with the first migration, so the server's own word is what is translated here.
    db = await Database.open(empty_database.app_dsn, pool_size=1)
    with pytest.raises(SchemaOutdated, match="empty"):
        await migrations.check(db)
    await db.close()


async def test_a_migration_that_was_changed_is_refused(fresh: DatabaseUnderTest, newer: Path) -> None:
    first = newer / f"{names()[0]}.sql"
    first.write_text(first.read_text() + "\n-- a word too many\n")
    with pytest.raises(StorageError, match=first.stem):
        await migrations.migrate(fresh.owner_dsn, folder=newer)


async def test_a_migration_that_fails_leaves_nothing(fresh: DatabaseUnderTest, newer: Path) -> None:
    last = newer / f"{len(names()) + 1:04}_later.sql"
    last.write_text(NEXT + "SELECT 1 / 0;")
    with pytest.raises(StorageError, match=last.stem):
        await migrations.migrate(fresh.owner_dsn, folder=newer)
    with psycopg.connect(fresh.owner_dsn) as connection:
        assert connection.execute("SELECT to_regclass('intramuros.later')").fetchone() == (None,)
    last.write_text(NEXT)
    assert await migrations.migrate(fresh.owner_dsn, folder=newer) == [last.stem]


@pytest.mark.parametrize("name", ["0003_gap.sql", "first.sql"])
def test_a_misnamed_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("SELECT 1")
    with pytest.raises(StorageError, match="numbered"):
        migrations.known(tmp_path)


async def test_a_second_program_waits_for_the_first(fresh: DatabaseUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "WAIT_SECONDS", migrations.POLL_SECONDS)
    with psycopg.connect(fresh.owner_dsn, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", (migrations.LOCK,))
        with pytest.raises(StorageError, match="Another process"):
            await migrations.migrate(fresh.owner_dsn)
