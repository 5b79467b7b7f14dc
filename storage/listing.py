"""Documents as one looks for them: a page at a time, how many there are, by what they are called, the latest."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, Final, Literal, get_args
from uuid import UUID

from psycopg import sql

from core.records import Document, Language, Principal
from storage import queries, shelf
from storage.collections import grantees
from storage.database import Database, Transaction

# What a document is looked for as; one may be several. `warned` is ready, with warnings.
Standing = Literal["working", "failed", "held", "warned", "superseded", "ready"]
# Documents that are looked at together where all are gone through.
WALKED: Final = 1000
STANDINGS: Final[tuple[Standing, ...]] = get_args(Standing)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a list is narrowed to; None: not narrowed.

    Each word of `text` stands in the title or the path (for administrators the source too), in capitals or not;
    `parent_id` is the document that it came in.
    """

    collection: str | None = None
    text: str = ""
    standing: Standing | None = None
    parent_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ends: the collection and the path of its last document."""

    collection: str
    path: str


@dataclass(frozen=True, slots=True)
class Page:
    """Documents in order; `end` is where the next page goes on, None where there is none."""

    documents: tuple[Document, ...]
    end: Place | None


@dataclass(frozen=True, slots=True)
class Tally:
    """How many documents there are in all and of each standing, and how many passages of theirs are held back."""

    total: int
    by_standing: Mapping[Standing, int]
    passages_held: int


async def page(
    db: Database, principal: Principal, wanted: Wanted = Wanted(), *, limit: int, after: Place | None = None
) -> Page:
    """Up to `limit` (1 or more) of the documents that the principal may see, from behind a place on."""
    async with db.transaction(principal.tenant_id) as tx:
        narrowed = await _narrowed(tx, principal, wanted)
        rows = await tx.rows_of(
            _composed("documents.page"),
            **narrowed,
            standing=wanted.standing,
            after_collection=after.collection if after else None,
            after_path=after.path if after else None,
            limit=limit + 1,
        )
        found = await shelf.shown(tx, rows[:limit])
    more = len(rows) > limit
    return Page(tuple(found), Place(found[-1].collection, found[-1].path) if more else None)


async def walk(db: Database, principal: Principal, wanted: Wanted = Wanted()) -> AsyncIterator[tuple[Document, ...]]:
    """All of them, a page at a time; what changes meanwhile may be missed, nothing comes twice."""
    end: Place | None = None
    while True:
        found = await page(db, principal, wanted, limit=WALKED, after=end)
        yield found.documents
        if (end := found.end) is None:
            return


async def tally(db: Database, principal: Principal, wanted: Wanted = Wanted()) -> Tally:
    """How many of what is wanted the principal may see, whatever standing is asked for."""
    async with db.transaction(principal.tenant_id) as tx:
        rows = await tx.rows_of(_composed("documents.tally"), **await _narrowed(tx, principal, wanted))
    counted = {row["standing"]: row for row in rows}
    return Tally(
        total=counted["all"]["documents"] if counted else 0,
        by_standing={name: counted[name]["documents"] if name in counted else 0 for name in STANDINGS},
        passages_held=counted["all"]["passages"] if counted else 0,
    )


async def latest(
    db: Database, principal: Principal, language: Language, day: date, *, chunks: int, limit: int
) -> list[Document]:
    """Of the documents that the principal may see, up to `limit` that changed last: ready, in force on that day, in
    this language, and of at most so many chunks.
    """
    async with db.transaction(principal.tenant_id) as tx:
        rows = await tx.rows(
            "documents.latest",
            collections=await _visible(tx, principal),
            language=language,
            day=day,
            chunks=chunks,
            limit=limit,
        )
        return await shelf.shown(tx, rows)


async def called(db: Database, principal: Principal, path: str) -> list[Document]:
    """The documents at this path, or else those whose path ends so, of those that the principal may see."""
    async with db.transaction(principal.tenant_id) as tx:
        found = await shelf.readable(tx, principal, called=path)
    return [document for document in found if document.path == path] or found


async def paths(db: Database, principal: Principal, collection: str | None = None) -> list[str]:
    """The paths of all documents that the principal may see, by collection."""
    async with db.transaction(principal.tenant_id) as tx:
        visible = await _visible(tx, principal)
        return [row["path"] for row in await tx.rows("documents.paths", collections=visible, collection=collection)]


async def _visible(tx: Transaction, principal: Principal) -> list[UUID]:
    rows = await tx.rows("collections.readable", admin=principal.is_admin, grantees=grantees(principal))
    return [row["id"] for row in rows]


async def _narrowed(tx: Transaction, principal: Principal, wanted: Wanted) -> dict[str, Any]:
    return {
        "collections": await _visible(tx, principal),
        "collection": wanted.collection,
        "parent": wanted.parent_id,
        "terms": wanted.text.split(),
        "admin": principal.is_admin,
    }


@cache
def _composed(name: str) -> sql.Composed:
    return sql.SQL(queries.text(name)).format(wanted=sql.SQL(queries.text("documents.wanted")))
