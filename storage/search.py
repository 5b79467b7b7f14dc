"""Hybrid search. There is no way to search without a principal.

Three trips to the database: what may be read and how rare the terms are; the best by vector and by words within it; the
hits fused from them. Where few chunks are left they are compared one by one; a large tenant's go through its indexes
(`storage.merging` makes those of words).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import accumulate
from math import ceil
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector, SparseVector
from psycopg import sql
from psycopg.rows import DictRow

from core.errors import EmbeddingSetMismatch
from core.records import Explanation, Filters, Hit, Listed, Principal, Term
from core.text import language_of
from storage import lexical, queries
from storage.collections import grantees
from storage.database import Database, Transaction, typed_row
from storage.fusing import DEPTH, Found, Fused, Lists, fuse
from storage.hits import hits_of

Mode = Literal["hybrid", "vector", "bm25"]

# Fewer chunks than this are compared one by one even where there are indexes.
EXACT_BELOW: Final = 20_000
# A list by words that may lack some is asked for again by all terms, so many times as deep, before chunks are compared
# one by one.
DEEPER: Final = 8
# Some of the list by words are no longer in force: so many times its length is asked for at first.
SPARE: Final = 1.1
# The most common terms that make up less than this share of a query's weight, or come after so many rarer ones, only
# score what the others find, where those are in enough chunks for each that is wanted.
LIGHT: Final = 0.15
ENOUGH: Final = 10
MOST_FINDING: Final = 12
# Chunks of another language than the question's lie apart from all that a search through the index over vectors looks
# at: up to so many are compared one by one.
APART_BELOW: Final = 200_000
# How many candidates a search through the index over vectors keeps: these at least, one for so many chunks of the
# tenant, and no more than pgvector allows.
BREADTH: Final = 250
CHUNKS_BREADTH: Final = 4000
MOST_BREADTH: Final = 1000


@dataclass(frozen=True, slots=True)
class _Query:
    """What is asked: terms by number with their weights, the vector, and the values that the statements share.

    `chunks`: how many the tenant has; `indexed`: whether there are indexes for so many.
    """

    terms: Mapping[int, float]
    frequencies: Mapping[int, int]
    vector: NDArray[np.float32] | None
    language: str
    chunks: int
    indexed: bool
    params: Mapping[str, Any]


async def search(
    db: Database,
    principal: Principal,
    query: str,
    vector: NDArray[np.float32] | None,
    *,
    embedder_id: str,
    filters: Filters = Filters(),
    limit: int = 10,
    mode: Mode = "hybrid",
    also: Sequence[str] = (),
) -> list[Hit]:
    """The best chunks, best first, among what the principal may read and the filters leave.

    `vector` is the query's, of shape (dimension,) and unit length; None means by words alone. `also`: other ways to say
    what is asked, see `lexical.query_weights`. Scores are fused convexly: each list's scores from its best (1) to its
    100th (0), half and half, but more for the list that is surer of its first document; across languages words keep
    three tenths of their weight. A list that is empty leaves its weight to the other. Raises EmbeddingSetMismatch where
    the tenant has vectors, and no whole set of this embedder.
    """
    async with db.transaction(principal.tenant_id) as tx:
        asked = await _asked(tx, principal, query, vector, embedder_id, filters, mode, also)
        lists = await _lists(tx, asked)
        return await _hits(tx, fuse(lists, asked.language, limit))


async def explain(
    db: Database,
    principal: Principal,
    query: str,
    vector: NDArray[np.float32] | None,
    *,
    embedder_id: str,
    filters: Filters = Filters(),
    limit: int = 10,
    mode: Mode = "hybrid",
    also: Sequence[str] = (),
) -> Explanation:
    """What `search` finds with the same arguments, and how it came to it. Raises EmbeddingSetMismatch."""
    async with db.transaction(principal.tenant_id) as tx:
        asked = await _asked(tx, principal, query, vector, embedder_id, filters, mode, also)
        lists = await _lists(tx, asked)
        hits = await _hits(tx, fuse(lists, asked.language, limit))
        reach = await _row(tx, "search.reach", asked)
        wanted = [found.chunk_id for found in (*lists.nearest, *lists.lexical)]
        texts = {row["chunk_id"]: row for row in await tx.rows("search.listed", chunk_ids=wanted)}
    names = {lexical.term_number(term): term for term in lexical.query_weights(query, also)} if asked.terms else {}
    return Explanation(
        hits=tuple(hits),
        nearest=_listed(lists.nearest, texts, names),
        lexical=_listed(lists.lexical, texts, names),
        terms=tuple(Term(name, asked.terms[number], asked.frequencies[number]) for number, name in names.items()),
        documents=reach["documents"],
        chunks=reach["chunks"],
        words=lists.words,
        exact=lists.exact,
    )


# --- what is asked ----------------------------------------------------------------------------------------------------


async def _asked(
    tx: Transaction,
    principal: Principal,
    query: str,
    vector: NDArray[np.float32] | None,
    embedder_id: str,
    filters: Filters,
    mode: Mode,
    also: Sequence[str],
) -> _Query:
    counts = {} if mode == "vector" else lexical.query_vector(query, also)
    scope = await _scope(tx, principal, filters, list(counts), embedder_id)
    if mode == "bm25" or not scope["embedded"]:
        vector = None
    elif vector is not None and (scope["embedder_id"], scope["dimension"]) != (embedder_id, len(vector)):
        raise EmbeddingSetMismatch
    frequencies = dict(zip(counts, scope["frequencies"], strict=True))
    terms = {term: count * lexical.rarity(frequencies[term], scope["n"]) for term, count in counts.items()}
    params = {
        **_narrowed(scope, filters),
        "embedder": embedder_id,
        "vector": None if vector is None else HalfVector(vector),
        "words": _sparse(terms),
        "lists": lexical.LISTS,
        "depth": DEPTH,
        "n": scope["n"],
        "breadth": max(BREADTH, scope["n"] // CHUNKS_BREADTH),
        "most_breadth": MOST_BREADTH,
    }
    large = scope["merged_to"] > 0 and scope["n"] >= EXACT_BELOW
    return _Query(terms, frequencies, vector, language_of(query), scope["n"], large, params)


async def _scope(
    tx: Transaction, principal: Principal, filters: Filters, terms: Sequence[int], embedder_id: str
) -> DictRow:
    rows = await tx.rows_of(
        _composed("search.scope", 1),
        names=None if filters.collections is None else list(filters.collections),
        admin=principal.is_admin,
        grantees=grantees(principal),
        terms=terms,
        embedder=embedder_id,
    )
    return typed_row(next(iter(rows), None))


def _narrowed(scope: DictRow, filters: Filters) -> dict[str, Any]:
    return {
        "collections": scope["collections"],
        "documents": None if filters.documents is None else list(filters.documents),
        "languages": None if filters.languages is None else list(filters.languages),
        "media_types": None if filters.media_types is None else list(filters.media_types),
        "without": list(filters.without),
        "as_of": filters.as_of or datetime.now(UTC).date(),
    }


async def readable_rows(
    tx: Transaction, name: str, principal: Principal, filters: Filters, **more: object
) -> list[DictRow]:
    """All rows of a named query that is made of the fragments that say what a search may see."""
    scope = await _scope(tx, principal, filters, [], "")
    return await tx.rows_of(_composed(name, 1), **_narrowed(scope, filters), **more)


def _sparse(terms: Mapping[int, float]) -> SparseVector | None:
    # pgvector's Python type counts from 0, SQL from 1.
    return SparseVector({term - 1: weight for term, weight in terms.items()}, lexical.DIMENSION) if terms else None


# --- the two lists ----------------------------------------------------------------------------------------------------


async def _lists(tx: Transaction, asked: _Query) -> Lists:
    left = (await _row(tx, "search.left", asked))["chunks"] if asked.indexed else 0
    if left < max(EXACT_BELOW, 1):
        return Lists(*_split(await _rows(tx, "search.exact", asked)), exact=True)
    wanted = ceil(SPARE * DEPTH * max(asked.chunks / left, 1.0))
    held = _held(asked)
    finding = _finding(asked, held, wanted)
    vector = None if _apart(asked) and left < APART_BELOW else asked.params["vector"]
    rows = await _indexed(tx, asked, wanted, finding, vector=vector, spared=finding != held)
    nearest, words = _split(rows)
    if short := asked.vector is not None and len(nearest) < DEPTH:
        nearest, _ = _split(await _rows(tx, "search.exact", asked, words=None))
    if held and not _complete(rows):
        rows = await _indexed(tx, asked, DEEPER * wanted, held, vector=None, spared=False)
        _, words = _split(rows)
    if held and not _complete(rows):
        _, words = _split(await _rows(tx, "search.exact", asked, vector=None))
    return Lists(nearest, words, exact=short or asked.vector is None)


def _apart(asked: _Query) -> bool:
    """Whether only documents of other languages than the question's are left."""
    languages = asked.params["languages"]
    return languages is not None and asked.language not in languages


async def _indexed(tx: Transaction, asked: _Query, wanted: int, finding: list[int], **more: object) -> list[DictRow]:
    """The list by vector, and that by words: of chunks that hold one of the terms in `finding`, so many or more."""
    factors = [asked.terms[term] for term in finding]
    return await _rows(tx, "search.indexed", asked, wanted=wanted, terms=finding, factors=factors, **more)


def _held(asked: _Query) -> list[int]:
    """The terms that chunks hold, the rarest first."""
    return sorted((term for term in asked.terms if asked.frequencies[term]), key=asked.frequencies.__getitem__)


def _finding(asked: _Query, held: list[int], wanted: int) -> list[int]:
    """The terms by which chunks are found: all but the most common, where these are light or one of many terms, and the
    others are in many chunks. More terms are kept the more chunks are wanted.

    Terms in too few chunks to fill the list are no measure of what is light, however much they weigh.
    """
    chunks = list(accumulate(asked.frequencies[term] for term in held))
    spared = LIGHT * sum(asked.terms[term] for term, so_far in zip(held, chunks, strict=True) if so_far >= wanted)
    kept = len(held)
    while kept > 1 and chunks[kept - 2] >= ENOUGH * wanted:
        spared -= asked.terms[held[kept - 1]]
        if spared < 0 and kept * DEPTH <= MOST_FINDING * wanted:
            break
        kept -= 1
    return held[:kept]


def _complete(rows: Sequence[DictRow]) -> bool:
    """Whether it is known that no chunk is missing in the list by words."""
    return bool(rows) and all(row["complete"] for row in rows)


def _split(rows: Sequence[DictRow]) -> tuple[list[Found], list[Found]]:
    lists: dict[str, list[Found]] = {"nearest": [], "words": []}
    for row in rows:
        lists[row["list"]].append(
            Found(row["chunk_id"], row["document_id"], row["revision"], float(row["score"]), row["language"])
        )
    return lists["nearest"], lists["words"]


@cache
def _composed(name: str, dimension: int) -> sql.Composed:
    """A statement with the fragments that say what a search may see."""
    seen: dict[str, sql.Composable] = {
        "allowed": sql.SQL(queries.text("search.allowed")),
        "in_force": sql.SQL(queries.text("search.in_force")),
    }
    seen["earlier"] = sql.SQL(queries.text("search.earlier")).format(**seen)
    seen["readable"] = sql.SQL(queries.text("search.readable")).format(**seen)
    return sql.SQL(queries.text(name)).format(**seen, dimension=sql.Literal(dimension))


async def _rows(tx: Transaction, name: str, asked: _Query, **more: object) -> list[DictRow]:
    dimension = 1 if asked.vector is None else len(asked.vector)
    return await tx.rows_of(_composed(name, dimension), **{**asked.params, **more})


async def _row(tx: Transaction, name: str, asked: _Query) -> DictRow:
    (row,) = await _rows(tx, name, asked)
    return row


# --- shown ------------------------------------------------------------------------------------------------------------


async def _hits(tx: Transaction, fused: Sequence[Fused]) -> list[Hit]:
    scores = {one.found.chunk_id: one.scores for one in fused}
    return await hits_of(tx, {one.found.chunk_id: one.found.revision for one in fused}, scores)


def _listed(
    found: Sequence[Found], texts: Mapping[int, Mapping[str, Any]], names: Mapping[int, str]
) -> tuple[Listed, ...]:
    return tuple(
        Listed(
            rank=rank,
            chunk_id=one.chunk_id,
            document_id=one.document_id,
            title=row["title"],
            heading_path=tuple(row["heading_path"]),
            score=one.score,
            matched=_matched(row, names),
        )
        for rank, one in enumerate(found, start=1)
        if (row := texts.get(one.chunk_id)) is not None
    )


def _matched(row: Mapping[str, Any], names: Mapping[int, str]) -> tuple[str, ...]:
    if not names:
        return ()
    held = lexical.vector(lexical.document_terms(row["text"], row["title"], row["heading_path"]))
    return tuple(name for number, name in names.items() if number in held)
