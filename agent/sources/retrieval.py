"""How everybody searches: the query's vector, the search within the principal's rights, the second look at the best."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

import numpy as np

from agent.sources.duplicates import capped
from core.errors import InferenceError
from core.records import Explanation, Filters, Hit, Principal
from core.text import embedded_text
from inference.interfaces import Embedder, Reranker, Vectors
from storage import search
from storage.database import Database
from storage.search import Mode
from storage.synonyms import expansions

logger = logging.getLogger(__name__)

# How many of the best hits are scored again; those after them keep their order.
RERANKED: Final = 30
# Hits asked for beyond those wanted, so that the ones that near-duplicates make way for are there.
SPARE: Final = 20


@dataclass(frozen=True, slots=True)
class _Asked:
    """A search as it was asked for. `more`: the arguments that storage.search needs beside query and filters."""

    principal: Principal
    query: str
    filters: Filters
    limit: int
    reranker: Reranker | None
    synonyms: Mapping[str, tuple[str, ...]]
    more: Mapping[str, Any]


class Retrieval:
    """Searches on behalf of whoever asks. `reranker` None: the order is that of the fused lists."""

    def __init__(self, db: Database, embedder: Embedder, reranker: Reranker | None = None) -> None:
        self._db = db
        self._embedder = embedder
        self._reranker = reranker

    @property
    def embedder(self) -> Embedder:
        """What makes a query's vector."""
        return self._embedder

    @property
    def embedder_id(self) -> str:
        """Whose vectors are compared."""
        return self._embedder.id

    @property
    def reranks(self) -> bool:
        """Whether anything scores the best hits anew."""
        return self._reranker is not None

    async def find(
        self,
        principal: Principal,
        query: str,
        *,
        filters: Filters = Filters(),
        limit: int = 10,
        mode: Mode = "hybrid",
        rerank: bool = True,
    ) -> list[Hit]:
        """The best hits, best first, near-duplicates left out (see agent.sources.duplicates).

        What a tenant's synonyms say is looked for too. Only hits of both lists fused are reranked. Errors: those of the
        embedder and of storage.search.
        """
        asked = await self._asked(principal, query, filters, limit, mode, rerank)
        return await self._ranked(asked, await self._search(asked, filters))

    async def explain(
        self,
        principal: Principal,
        query: str,
        *,
        filters: Filters = Filters(),
        limit: int = 10,
        mode: Mode = "hybrid",
        rerank: bool = True,
    ) -> Explanation:
        """What `find` finds with the same arguments, and how it came to it. Errors: as `find`."""
        asked = await self._asked(principal, query, filters, limit, mode, rerank)
        found = await search.explain(self._db, principal, query, filters=filters, **asked.more)
        return replace(found, hits=tuple(await self._ranked(asked, found.hits)), synonyms=asked.synonyms)

    async def _asked(
        self, principal: Principal, query: str, filters: Filters, limit: int, mode: Mode, rerank: bool
    ) -> _Asked:
        synonyms = await expansions(self._db, principal.tenant_id, query)
        reranker = self._reranker if rerank and mode == "hybrid" else None
        more = {
            "vector": None if mode == "bm25" else await self._embedder.embed_query(query),
            "embedder_id": self._embedder.id,
            "also": list(chain.from_iterable(synonyms.values())),
            "limit": (limit if reranker is None else max(limit, RERANKED)) + SPARE,
            "mode": mode,
        }
        return _Asked(principal, query, filters, limit, reranker, synonyms, more)

    async def _search(self, asked: _Asked, filters: Filters) -> list[Hit]:
        return await search.search(self._db, asked.principal, asked.query, filters=filters, **asked.more)

    async def _ranked(self, asked: _Asked, hits: Sequence[Hit]) -> list[Hit]:
        kept = capped(hits)
        if len(kept) < asked.limit and len(hits) >= asked.more["limit"]:
            # One passage, repeated, filled the lists: what else there is stands in other documents.
            crowding = {hit.document_id for hit in hits}
            others = replace(asked.filters, without=(*asked.filters.without, *crowding))
            kept = capped([*kept, *await self._search(asked, others)])
        if asked.reranker is not None:
            kept = await self._reordered(asked.reranker, asked.query, kept)
        return [replace(hit, rank=rank) for rank, hit in enumerate(kept[: asked.limit], start=1)]

    async def _reordered(self, reranker: Reranker, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """Where the reranker fails, the hits as they were found: it adds to a search, and must not end one."""
        best, rest = hits[:RERANKED], hits[RERANKED:]
        if not best:
            return []
        texts = [embedded_text(hit.title, hit.heading_path, hit.text) for hit in best]
        try:
            scores = await reranker.scores(query, texts)
        except InferenceError as error:
            logger.warning("not reranked", extra={"reranker": reranker.id, "code": error.code})
            return list(hits)
        return [*merged(best, scores, reranker.weight), *rest]


def merged(hits: Sequence[Hit], scores: Vectors, weight: float) -> list[Hit]:
    """Hits in the order of a reranker's scores, from 0 (worst of these) to 1, and of the fused ones beside them."""
    span = float(np.ptp(scores))
    spread = (scores - scores.min()) / span if span else np.ones_like(scores)
    scored = []
    for hit, score in zip(hits, spread, strict=True):
        total = weight * float(score) + (1 - weight) * hit.scores.fused
        scored.append((total, replace(hit, scores=replace(hit.scores, reranked=total))))
    return [hit for _, hit in sorted(scored, key=lambda pair: -pair[0])]
