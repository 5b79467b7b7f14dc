"""Tenants: made and removed by the owner, with their partitions; looked up by their short name."""

import hashlib
from uuid import UUID

from psycopg import errors, sql
from psycopg.rows import DictRow

from core.errors import AlreadyExists, NotFound, StorageError
from core.records import Receipt, Tenant
from storage import audit, owner, queries
from storage.database import Connection, Database, typed_row
from storage.lexical import USUAL
from storage.users import OPERATOR

# Children first: a partition that another one refers to cannot be dropped.
PARTITIONED = ("embeddings", "lex_mask", "lex_block", "lex_list", "lex_doc", "placements", "chunks")

# How the rows of a tenant are found in a table: by a column, or in the text of the whole row.
_FOUND = {
    "tenant_id": sql.SQL("t.tenant_id = %(tenant)s"),
    "thread_id": sql.SQL("split_part(t.thread_id, ':', 1) = %(tenant)s::text"),
    "text": sql.SQL("strpos(t::text, %(tenant)s::text) > 0"),
}


async def create(owner_dsn: str, slug: str, name: str) -> Tenant:
    """Make a tenant; a slug is a-z, 0-9 and -, at most 40. Errors: AlreadyExists, InvalidRequest."""
    async with owner.transaction(owner_dsn) as connection:
        try:
            row = await _row(connection, "tenants.create", slug=slug, name=name)
        except errors.UniqueViolation as error:
            raise AlreadyExists(f"There is a tenant {slug} already.") from error
        tenant = _tenant(typed_row(row))
        await _row(connection, "tenants.enter", tenant=str(tenant.id))
        await _row(
            connection,
            "tenants.furnish",
            tenant=tenant.id,
            suffix=tenant.id.hex,
            text=USUAL.text,
            title=USUAL.title,
            headings=USUAL.headings,
        )
        await audit.note_as_owner(connection, OPERATOR, "tenant.created")
    return tenant


async def get(db: Database, slug: str) -> Tenant:
    """The tenant of this short name. Raises NotFound."""
    async with db.unscoped() as connection:
        row = await _row(connection, "tenants.find", slug=slug)
    if row is None:
        raise NotFound(f"There is no tenant {slug}. Run `intramuros tenants create {slug}`.")
    return _tenant(row)


async def list_all(owner_dsn: str) -> list[Tenant]:
    """Every tenant, by short name."""
    async with owner.transaction(owner_dsn) as connection:
        cursor = await connection.execute(queries.text("tenants.list_all"))
        return [_tenant(row) for row in await cursor.fetchall()]


async def remove(owner_dsn: str, slug: str) -> Receipt:
    """Remove a tenant and all that is in it; the receipt counts the rows by table. Raises NotFound.

    It is proven before it lasts: where a row, a job or a partition of the tenant is left, StorageError is raised and
    nothing was removed. Files of the tenant's documents are not in the database: remove its folder too.
    """
    async with owner.transaction(owner_dsn) as connection:
        row = await _row(connection, "tenants.by_slug", slug=slug)
        if row is None:
            raise NotFound(f"There is no tenant {slug}.")
        tenant = _tenant(row)
        await _row(connection, "tenants.enter", tenant=str(tenant.id))
        counts = await holdings(connection, tenant.id)
        for parent in PARTITIONED:
            names = {
                "parent": sql.Identifier("intramuros", parent),
                "child": sql.Identifier("intramuros", f"{parent}_{tenant.id.hex}"),
            }
            # Foreign keys point at the parent: only a detached partition can be dropped.
            await connection.execute(sql.SQL("ALTER TABLE {parent} DETACH PARTITION {child}").format(**names))
            await connection.execute(sql.SQL("DROP TABLE {child}").format(**names))
        await connection.execute(queries.text("tenants.remove"), {"tenant": tenant.id})
        if left := await holdings(connection, tenant.id):
            raise StorageError(
                f"Something of tenant {slug} would have been left, so nothing was removed: {_named(left)}."
            )
        await _row(connection, "tenants.enter", tenant=str(audit.INSTALLATION))
        await audit.note_as_owner(connection, OPERATOR, "tenant.removed", fingerprint(tenant.id))
    return Receipt(f"tenant {slug}", counts)


def fingerprint(tenant_id: UUID) -> str:
    """What the installation's audit log calls a tenant that was removed: of its id, which nothing holds any more."""
    return hashlib.sha256(tenant_id.bytes).hexdigest()[:32]


async def holdings(connection: Connection, tenant_id: UUID) -> dict[str, int]:
    """Rows of a tenant by table, tables without any left out; `relations`: tables and indexes named after it.

    Found in the catalogue, so that a new table is not forgotten. `connection`: the owner's, which entered the tenant.
    """
    counts: dict[str, int] = {}
    cursor = await connection.execute(queries.text("tenants.tables"))
    for table in await cursor.fetchall():
        query = sql.SQL("SELECT count(*) AS rows FROM {table} AS t WHERE {found}").format(
            table=sql.Identifier(table["schema"], table["name"]), found=_FOUND[table["by"]]
        )
        cursor = await connection.execute(query, {"tenant": tenant_id})
        counts[table["name"]] = typed_row(await cursor.fetchone())["rows"]
    named = typed_row(await _row(connection, "tenants.named_after", hex=tenant_id.hex))
    return {name: count for name, count in {**counts, **named}.items() if count}


def _named(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


async def _row(connection: Connection, query: str, /, **params: object) -> DictRow | None:
    return await (await connection.execute(queries.text(query), params)).fetchone()


def _tenant(row: DictRow) -> Tenant:
    return Tenant(row["id"], row["slug"], row["name"])
