"""Collections: named sets of documents, and the grants that say who reads them.

Each change is in the audit log; one that comes with a file that was read names nobody.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from psycopg import errors
from psycopg.rows import DictRow

from core.errors import InvalidRequest, NotFound
from core.records import Collection, Principal
from storage import audit
from storage.database import Database, typed_row
from storage.users import OPERATOR

EVERYONE = "everyone"
_GRANTEE = re.compile(r"everyone|group:.+|user:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def grantees(principal: Principal) -> list[str]:
    """Every grantee that the principal answers to."""
    return [EVERYONE, f"user:{principal.user_id}", *(f"group:{group}" for group in sorted(principal.groups))]


async def ensure(db: Database, tenant_id: UUID, name: str) -> Collection:
    """The collection of this name, made and granted to everyone when it is new."""
    async with db.transaction(tenant_id) as tx:
        made = await tx.row("collections.ensure", name=name)
        if made is not None:
            await tx.run("collections.grant", collection=made["id"], grantee=EVERYONE)
            await audit.note(tx, None, "collection.created", made["id"])
        row = made or await tx.row("collections.by_name", name=name)
    return _collection(typed_row(row))


async def create(
    db: Database, tenant_id: UUID, name: str, readers: Sequence[str] = (), *, by: UUID = OPERATOR
) -> Collection:
    """A new collection for these grantees and for administrators. Errors: AlreadyExists, InvalidRequest as `grant`."""
    for grantee in readers:
        _check(grantee)
    async with db.transaction(tenant_id) as tx:
        made = _collection(typed_row(await tx.row("collections.create", name=name)))
        for grantee in readers:
            await tx.run("collections.grant", collection=made.id, grantee=grantee)
        await audit.note(tx, by, "collection.created", made.id)
    return made


async def by_name(db: Database, tenant_id: UUID, name: str) -> Collection:
    """The collection of this name. Raises NotFound."""
    async with db.transaction(tenant_id) as tx:
        row = await tx.row("collections.by_name", name=name)
    if row is None:
        raise NotFound(f"There is no collection {name}.")
    return _collection(row)


async def list_visible(db: Database, principal: Principal) -> list[Collection]:
    """The collections that the principal may read, by name; documents counts the searchable ones."""
    async with db.transaction(principal.tenant_id) as tx:
        rows = await tx.rows("collections.visible", admin=principal.is_admin, grantees=grantees(principal))
    return [replace(_collection(row), documents=row["documents"], updated_at=row["updated_at"]) for row in rows]


async def set_owner(
    db: Database, tenant_id: UUID, collection_id: UUID, contact: str | None, *, by: UUID = OPERATOR
) -> Collection:
    """Say whom to ask where a collection does not answer; None: nobody. Errors: NotFound, InvalidRequest (too long)."""
    async with db.transaction(tenant_id) as tx:
        row = await tx.row("collections.set_owner", collection=collection_id, contact=contact)
        if row is None:
            raise NotFound
        await audit.note(tx, by, "collection.owner_set", collection_id)
    return _collection(row)


async def set_approvers(
    db: Database, tenant_id: UUID, collection_id: UUID, approvers: Sequence[str] | None, *, by: UUID = OPERATOR
) -> Collection:
    """Say who, beside administrators, approves answers that cite a collection before they are shown; None: they are
    shown at once. Errors: NotFound, InvalidRequest as `grant`.
    """
    for grantee in approvers or ():
        _check(grantee)
    async with db.transaction(tenant_id) as tx:
        row = await tx.row(
            "collections.set_approvers",
            collection=collection_id,
            approvers=None if approvers is None else sorted(set(approvers)),
        )
        if row is None:
            raise NotFound
        await audit.note(tx, by, "collection.approval_set", f"{collection_id} {'off' if approvers is None else 'on'}")
    return _collection(row)


async def grant(db: Database, tenant_id: UUID, collection_id: UUID, grantee: str) -> None:
    """Let `everyone`, `group:NAME` or `user:UUID` read. Raises InvalidRequest for another form, NotFound."""
    _check(grantee)
    async with db.transaction(tenant_id) as tx:
        try:
            await tx.run("collections.grant", collection=collection_id, grantee=grantee)
        except errors.ForeignKeyViolation as error:
            raise NotFound from error
        await audit.note(tx, OPERATOR, "grant.given", _about(collection_id, grantee))


async def revoke(db: Database, tenant_id: UUID, collection_id: UUID, grantee: str) -> None:
    """Take a grant back; it holds from the next query on. Raises InvalidRequest, NotFound."""
    _check(grantee)
    async with db.transaction(tenant_id) as tx:
        if not await tx.run("collections.revoke", collection=collection_id, grantee=grantee):
            raise NotFound
        await audit.note(tx, OPERATOR, "grant.taken", _about(collection_id, grantee))


async def grants(db: Database, tenant_id: UUID, collection_id: UUID) -> list[str]:
    """Who may read the collection, by name."""
    async with db.transaction(tenant_id) as tx:
        return [row["grantee"] for row in await tx.rows("collections.grants", collection=collection_id)]


def _check(grantee: str) -> None:
    if not _GRANTEE.fullmatch(grantee):
        raise InvalidRequest("A grantee is `everyone`, `group:NAME` or `user:` and the user's id.")


def _about(collection_id: UUID, grantee: str) -> str:
    # A group's name is an organisation's own word: its kind alone is told.
    return f"{collection_id} {'group' if grantee.startswith('group:') else grantee}"


def _collection(row: DictRow) -> Collection:
    approvers = row["approvers"]
    return Collection(
        id=row["id"],
        name=row["name"],
        owner_contact=row["owner_contact"],
        approvers=None if approvers is None else tuple(approvers),
    )
