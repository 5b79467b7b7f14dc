"""Hybrid search in one round trip. There is no way to search without a principal."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql
from psycopg.rows import DictRow

from core.errors import EmbeddingSetMismatch
from core.records import Hit, Principal, Scores
from core.text import language_of
from storage import lexical, queries
from storage.collections import grantees
from storage.database import Database

Mode = Literal["hybrid", "vector", "bm25"]

# Length of either list before they are fused; its last score is the zero of the normalised one.
DEPTH: Final = 100
# How far the weight of words moves from a half, at most, towards the list that is surer of its first document. Chosen
# on the sets of docs/benchmarks.md and XQuAD (en, zh), with up to a point of MRR over equal weights (which 0 gives).
SURENESS: Final = 0.4
# Under a filter that leaves fewer chunks than this, vectors are compared one by one even where there is an index.
EXACT_BELOW: Final = 30_000
SECTION_CHARACTERS: Final = 1500
_SECTION_REACH: Final = 8


async def search(
    db: Database,
    principal: Principal,
    query: str,
    vector: NDArray[np.float32] | None,
    *,
    embedder_id: str,
    collections: Sequence[str] | None = None,
    limit: int = 10,
    mode: Mode = "hybrid",
    as_of: date | None = None,
) -> list[Hit]:
    """The best chunks, best first, among what the principal may read and what is in force on `as_of` (default today).

    `vector` is the query's, of shape (dimension,) and unit length; None means by words alone. Scores are fused
    convexly: each list's scores from its best (1) to its 100th (0), half and half, but more for the list that is surer
    of its first document; across languages words keep three tenths of their weight. A list that is empty leaves its
    weight to the other. Raises EmbeddingSetMismatch.
    """
    wanted = None if mode == "bm25" or vector is None else HalfVector(vector)
    terms = {} if mode == "vector" else lexical.query_vector(query)
    dimension = 1 if vector is None else len(vector)
    statement = sql.SQL(queries.text("search.hybrid")).format(dimension=sql.Literal(dimension))
    async with db.transaction(principal.tenant_id) as tx:
        rows = await tx.rows_of(
            statement,
            admin=principal.is_admin,
            grantees=grantees(principal),
            collections=None if collections is None else list(collections),
            as_of=as_of or datetime.now(UTC).date(),
            embedder=embedder_id,
            vector=wanted,
            terms=list(terms),
            weights=list(terms.values()),
            language=language_of(query),
            depth=DEPTH,
            sureness=SURENESS,
            exact_below=EXACT_BELOW,
            limit=min(limit, 2 * DEPTH),
            reach=_SECTION_REACH,
        )
    active = (rows[0]["active_embedder"], rows[0]["active_dimension"])
    if wanted is not None and active != (None, None) and active != (embedder_id, dimension):
        raise EmbeddingSetMismatch
    return [_hit(rank, row) for rank, row in enumerate((r for r in rows if r["chunk_id"] is not None), start=1)]


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


def _hit(rank: int, row: DictRow) -> Hit:
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
        scores=Scores(_number(row["vector"]), _number(row["bm25"]), float(row["score"])),
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
