"""Beside a search: which documents there are, how one is built, and where an exact text stands.

Nothing is seen here that a search by the same principal, narrowed by the same filters, would not see.
"""

from dataclasses import dataclass
from datetime import date
from typing import Final
from uuid import UUID

from psycopg import errors
from psycopg.rows import DictRow

from core.errors import InvalidRequest, NotFound
from core.records import Filters, Hit, Principal
from storage.database import Database, Transaction
from storage.hits import hits_of
from storage.search import readable_rows

# Longest pattern, in characters, and most of its wildcards: a pattern is compared with every text that may be read.
LONGEST: Final = 200
MOST_WILDCARDS: Final = 4
WILDCARD: Final = "*"
# Letters and digits that a pattern must hold: a shorter one stands everywhere.
LEAST: Final = 2
PATIENCE_MS: Final = 3000


@dataclass(frozen=True, slots=True)
class Shelved:
    """A document that may be read, in the revision that is in force."""

    document_id: UUID
    title: str
    path: str
    collection: str
    pages: int | None
    effective_from: date | None
    effective_to: date | None


@dataclass(frozen=True, slots=True)
class Found:
    """A place where a pattern stands: from `start` to `end` in the text of the hit's revision, as in Chunk."""

    hit: Hit
    start: int
    end: int


async def shelf(
    db: Database, principal: Principal, filters: Filters, *, about: str | None = None, most: int = 30
) -> tuple[list[Shelved], int]:
    """Documents by collection and path, and how many there are in all; `about`: words of their title or path."""
    async with db.transaction(principal.tenant_id) as tx:
        pattern = None if about is None else f"%{_escaped(about.strip())}%"
        rows = await readable_rows(tx, "structure.shelf", principal, filters, about=pattern, most=most)
    return [_shelved(row) for row in rows], rows[0]["total"] if rows else 0


async def outline(db: Database, principal: Principal, filters: Filters, document: UUID, *, most: int = 60) -> list[Hit]:
    """The first chunk under each heading of a document, in reading order. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        rows = await readable_rows(tx, "structure.outline", principal, filters, document=document, most=most)
        return await _hits(tx, rows)


async def around(db: Database, principal: Principal, filters: Filters, hit: Hit) -> list[Hit]:
    """A chunk as it stands now, the one after it and the one before it. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        rows = await readable_rows(
            tx, "structure.around", principal, filters, document=hit.document_id, chunk=hit.chunk_id
        )
        return await _hits(tx, rows)


async def find(db: Database, principal: Principal, filters: Filters, pattern: str, *, most: int = 8) -> list[Found]:
    """Where a text stands, whatever its case, by path and place; `*` in it is anything within one chunk.

    Raises InvalidRequest for a pattern that is too short, too long or too wild, or that takes too long to look for.
    """
    wanted = checked(pattern)
    async with db.transaction(principal.tenant_id) as tx:
        await tx.row("structure.patience", milliseconds=str(PATIENCE_MS))
        try:
            rows = await readable_rows(
                tx, "structure.holding", principal, filters, holding=f"%{_like(wanted)}%", most=most
            )
        except errors.QueryCanceled as error:
            raise InvalidRequest("This took too long to look for. Search for it by its meaning instead.") from error
        hits = await hits_of(tx, {row["chunk_id"]: row["revision"] for row in rows})
    places = [(hit, place(hit.text, wanted)) for hit in hits]
    return [Found(hit, hit.start + at[0], hit.start + at[1]) for hit, at in places if at is not None]


def checked(pattern: str) -> str:
    """The pattern without the space and wildcards around it. Raises InvalidRequest as `find`."""
    stripped = pattern.strip(f" \t\n{WILDCARD}")
    if not sum(map(str.isalnum, stripped)) >= LEAST or len(stripped) > LONGEST or "\x00" in stripped:
        raise InvalidRequest(f"A text to find has {LEAST} letters or digits at least and {LONGEST} characters at most.")
    if stripped.count(WILDCARD) > MOST_WILDCARDS:
        raise InvalidRequest(f"A text to find has at most {MOST_WILDCARDS} wildcards.")
    return stripped


def place(text: str, pattern: str) -> tuple[int, int] | None:
    """Where the pattern first stands in a text: start and end in characters. No regular expression, one pass."""
    lowered = _lowered(text)
    first, *others = [_lowered(piece) for piece in pattern.split(WILDCARD)]
    start = lowered.find(first)
    end = start + len(first)
    for piece in others if start >= 0 else ():
        at = lowered.find(piece, end)
        if at < 0:
            return None
        end = at + len(piece)
    return (start, end) if start >= 0 else None


def _lowered(text: str) -> str:
    # Letter by letter: a text that became longer would put the place elsewhere.
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _like(pattern: str) -> str:
    return _escaped(pattern).replace(WILDCARD, "%")


async def _hits(tx: Transaction, rows: list[DictRow]) -> list[Hit]:
    if not rows:
        raise NotFound
    return await hits_of(tx, {row["chunk_id"]: row["revision"] for row in rows})


def _shelved(row: DictRow) -> Shelved:
    return Shelved(**{name: row[name] for name in Shelved.__dataclass_fields__})
