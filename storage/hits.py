"""Hits: chunks as they are shown, each with its document, its place and the section around it."""

from collections.abc import Mapping, Sequence
from typing import Final

from psycopg.rows import DictRow
from psycopg.sql import SQL

from core.records import Hit, Scores
from storage import queries
from storage.database import Transaction

SECTION_CHARACTERS: Final = 1500
_SECTION_REACH: Final = 8
# Of a hit that no search ranked.
UNSCORED: Final = Scores(None, None, 0.0)


async def hits_of(
    tx: Transaction, revisions: Mapping[int, int], scores: Mapping[int, Scores] | None = None
) -> list[Hit]:
    """Chunks, each of a revision, as hits in this order. That they may be read is for the caller to have seen."""
    if not revisions:
        return []
    rows = await tx.rows_of(
        SQL(queries.text("search.hits")),
        chunk_id=list(revisions),
        revision=list(revisions.values()),
        reach=_SECTION_REACH,
    )
    known = scores or {}
    return [_hit(rank, row, known.get(row["chunk_id"], UNSCORED)) for rank, row in enumerate(rows, start=1)]


def _hit(rank: int, row: DictRow, scores: Scores) -> Hit:
    return Hit(
        rank=rank,
        chunk_id=row["chunk_id"],
        document_id=row["document_id"],
        title=row["title"],
        path=row["path"],
        collection=row["collection"],
        heading_path=tuple(row["heading_path"]),
        page=row["page"],
        text=row["text"],
        section_text=section_around(row["ordinals"].index(row["ordinal"]), row["texts"]),
        kind=row["kind"],
        effective_from=row["effective_from"],
        effective_to=row["effective_to"],
        updated_at=row["updated_at"],
        scores=scores,
        revision=row["revision"],
        start=row["start_at"],
    )


def section_around(at: int, texts: Sequence[str], limit: int = SECTION_CHARACTERS) -> str:
    """The chunk `at` with its neighbours in turn, after and before it, while they fit into `limit` characters."""
    first = last = at
    size = len(texts[at])
    grown = True
    while grown:
        grown = False
        if last + 1 < len(texts) and size + 1 + len(texts[last + 1]) <= limit:
            last, size, grown = last + 1, size + 1 + len(texts[last + 1]), True
        if first > 0 and size + 1 + len(texts[first - 1]) <= limit:
            first, size, grown = first - 1, size + 1 + len(texts[first - 1]), True
    return "\n".join(texts[first : last + 1])
