"""Numbered migrations: `storage/migrations/NNNN_name.sql`, each run once, in one transaction, frozen by its hash."""

import asyncio
import hashlib
import re
from dataclasses import dataclass
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Final

import psycopg
from psycopg import errors, sql
from psycopg.rows import DictRow

from core.errors import SchemaOutdated, SchemaTooNew, StorageError
from storage import owner, queries
from storage.database import Connection, Database
from storage.locks import key_of

FOLDER: Final = Path(__file__).parent / "migrations"
LOCK: Final = key_of("migrate")
# A migration may rewrite a large table; another process waits this long for it, then says so.
WAIT_SECONDS: Final = 600.0
POLL_SECONDS: Final = 0.1
_NAME = re.compile(r"(\d{4})_[a-z0-9_]+")


@dataclass(frozen=True, slots=True)
class Migration:
    """One file: its number, its name without `.sql`, its text."""

    number: int
    name: str
    text: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def known(folder: Path = FOLDER) -> list[Migration]:
    """This program's migrations in order. Raises StorageError for a misnamed or missing file."""
    found = []
    for number, path in enumerate(sorted(folder.glob("*.sql")), start=1):
        match = _NAME.fullmatch(path.stem)
        if match is None or int(match[1]) != number:
            raise StorageError(f"Migration files must be numbered 0001, 0002 ... without a gap; found {path.name}.")
        found.append(Migration(number, path.stem, path.read_text(encoding="utf-8")))
    return found


async def migrate(owner_dsn: str, *, folder: Path = FOLDER) -> list[str]:
    """Bring the database to this program's schema; the names of the migrations applied, [] when it was there already.

    Also makes the roles (when the address may), LangGraph's checkpoint tables with their row security, and the queue's
    tables. Safe to run from several processes at once. Errors: SchemaTooNew, StorageError (a frozen file changed, a
    missing right), DatabaseUnavailable.
    """
    migrations = known(folder)
    async with owner.connection(owner_dsn) as connection:
        await _lock(connection)
        try:
            await connection.execute(queries.text("schema.bootstrap"))
            await connection.execute(queries.text("schema.become_owner"))
        except errors.InsufficientPrivilege as error:
            raise StorageError(
                "The owner address may not create roles, schemas or the vector extension. Let a superuser run "
                "`intramuros migrate` once, or give INTRAMUROS_DATABASE_OWNER_URL such a role."
            ) from error
        await connection.execute(queries.text("schema.create_log"))
        cursor = await connection.execute(queries.text("schema.applied"))
        pending = _pending(migrations, await cursor.fetchall())
        for migration in pending:
            await _apply(connection, migration)
        await _set_up_checkpoints(connection)
        await _set_up_queue(connection)
    return [migration.name for migration in pending]


async def check(db: Database) -> None:
    """Raises SchemaOutdated or SchemaTooNew (naming both versions) unless the schema is this program's."""
    migrations = known()
    try:
        async with db.unscoped() as connection:
            cursor = await connection.execute(queries.text("schema.applied"))
            rows = await cursor.fetchall()
    except StorageError as error:
        if isinstance(error.__cause__, errors.UndefinedTable | errors.InvalidSchemaName):
            raise SchemaOutdated("The database is empty. Run `intramuros migrate`.") from error
        raise
    if pending := _pending(migrations, rows):
        at = len(migrations) - len(pending)
        raise SchemaOutdated(
            f"The database is at schema version {at}, this program needs {len(migrations)}. Run `intramuros migrate`."
        )


def _pending(migrations: list[Migration], applied: list[DictRow]) -> list[Migration]:
    if len(applied) > len(migrations):
        raise SchemaTooNew(
            f"The database is at schema version {applied[-1]['number']}, this program knows {len(migrations)}. "
            "Install the newer Intramuros that made it."
        )
    for migration, row in zip(migrations, applied, strict=False):
        if migration.sha256 != row["sha256"]:
            raise StorageError(
                f"Migration {row['name']} is not the file that was applied to this database. "
                "Install the Intramuros that made it; applied migrations never change."
            )
    return migrations[len(applied) :]


async def _lock(connection: Connection) -> None:
    # Asked for again and again instead of waited for: a waiting statement holds a snapshot, and CREATE INDEX
    # CONCURRENTLY in LangGraph's set-up waits for every older snapshot, this one included. Ends with the connection.
    for _ in range(int(WAIT_SECONDS / POLL_SECONDS)):
        cursor = await connection.execute(queries.text("schema.try_lock"), {"key": LOCK})
        row = await cursor.fetchone()
        if row is not None and row["locked"]:
            return
        await asyncio.sleep(POLL_SECONDS)
    raise StorageError("Another process has been migrating this database for ten minutes. Wait for it, or end it.")


async def _apply(connection: Connection, migration: Migration) -> None:
    try:
        async with connection.transaction():
            await connection.execute(migration.text)
            await connection.execute(
                queries.text("schema.record"),
                {"number": migration.number, "name": migration.name, "sha256": migration.sha256},
            )
    except psycopg.Error as error:
        raise StorageError(
            f"Migration {migration.name} failed and nothing of it was kept: {error.diag.message_primary}. "
            "Where it waited for a lock, run `intramuros migrate` again at a quieter time."
        ) from error


async def _set_up_checkpoints(connection: Connection) -> None:
    made_by = f"langgraph-checkpoint-postgres {version('langgraph-checkpoint-postgres')}"
    if await _made_by(connection, "checkpoints") == made_by:
        return
    # Imported late, and only when its tables are older than the installed version: it takes a second.
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    await connection.execute("SET search_path = checkpoints, public")
    await AsyncPostgresSaver(connection).setup()
    await connection.execute(queries.text("schema.secure_checkpoints"))
    await connection.execute(sql.SQL("COMMENT ON SCHEMA checkpoints IS {}").format(made_by))


async def _set_up_queue(connection: Connection) -> None:
    """Make the queue's tables, anew for another version of procrastinate: what waits stands with the documents."""
    made_by = f"procrastinate {version('procrastinate')}"
    if await _made_by(connection, "procrastinate") == made_by:
        return
    async with connection.transaction():
        await connection.execute(queries.text("schema.empty_queue"))
        await connection.execute("SET LOCAL search_path = procrastinate")
        await connection.execute(_queue_schema())
        await connection.execute(queries.text("schema.secure_queue"))
        await connection.execute(sql.SQL("COMMENT ON SCHEMA procrastinate IS {}").format(made_by))


def _queue_schema() -> bytes:
    # Read and not asked for: what the package imports starts a program, which the audit hook refuses.
    return Path(str(distribution("procrastinate").locate_file("procrastinate/sql/schema.sql"))).read_bytes()


async def _made_by(connection: Connection, schema: str) -> str | None:
    cursor = await connection.execute(queries.text("schema.made_by"), {"schema": schema})
    row = await cursor.fetchone()
    return row["made_by"] if row else None
