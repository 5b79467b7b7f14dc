"""Tenants: made and removed by the owner, with their partitions; looked up by their short name."""

from psycopg import errors, sql
from psycopg.rows import DictRow

from core.errors import AlreadyExists, NotFound
from core.records import Receipt, Tenant
from storage import owner, queries
from storage.database import Connection, Database, typed_row
from storage.lexical import USUAL

# Children first: a partition that another one refers to cannot be dropped.
PARTITIONED = ("embeddings", "lex_doc", "placements", "chunks")


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
    """Remove a tenant and all that is in it; the receipt counts the rows by kind. Raises NotFound.

    Files of the tenant's documents are not in the database: remove its folder too.
    """
    async with owner.transaction(owner_dsn) as connection:
        row = await _row(connection, "tenants.by_slug", slug=slug)
        if row is None:
            raise NotFound(f"There is no tenant {slug}.")
        tenant = _tenant(row)
        await _row(connection, "tenants.enter", tenant=str(tenant.id))
        counts = typed_row(await _row(connection, "tenants.count", tenant=tenant.id))
        for parent in PARTITIONED:
            names = {
                "parent": sql.Identifier("intramuros", parent),
                "child": sql.Identifier("intramuros", f"{parent}_{tenant.id.hex}"),
            }
            # Foreign keys point at the parent: only a detached partition can be dropped.
            await connection.execute(sql.SQL("ALTER TABLE {parent} DETACH PARTITION {child}").format(**names))
            await connection.execute(sql.SQL("DROP TABLE {child}").format(**names))
        await connection.execute(queries.text("tenants.remove"), {"tenant": tenant.id})
    return Receipt(f"tenant {slug}", counts)


async def _row(connection: Connection, query: str, /, **params: object) -> DictRow | None:
    return await (await connection.execute(queries.text(query), params)).fetchone()


def _tenant(row: DictRow) -> Tenant:
    return Tenant(row["id"], row["slug"], row["name"])
