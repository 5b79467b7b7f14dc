"""Latency and recall of the product's search, and what writing costs beside a large tenant."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import numpy as np
import psycopg

from core.records import Chunk, Element, Filters, Principal
from core.records import ParsedDocument as Parsed
from storage import collections, documents, fusing, merging, search, tending, users
from storage.database import Database
from tests.bench.search import asking
from tests.bench.search.asking import Asked
from tests.bench.search.corpus import Corpus
from tests.bench.search.loading import EMBEDDER
from tests.bench.search.pool import Pool
from tests.bench.search.reference import Mask, Postings, recall, truth
from tests.storing import store

CLASSES: Final = ("mixed", "common", "rare")
CLIENTS: Final = 4
ADDED: Final = 50


def spread(milliseconds: Sequence[float]) -> dict[str, float]:
    """Median and 95th percentile."""
    return {f"p{at}": round(float(np.percentile(milliseconds, at)), 1) for at in (50, 95)}


async def ask(
    db: Database, principal: Principal, asked: Asked, *, filters: Filters = Filters(), clients: int = 1
) -> tuple[list[list[int]], list[float]]:
    """What each query finds (chunk numbers), and milliseconds; `clients` ask at the same time, each one at a time."""
    found: list[list[int]] = [[] for _ in asked.texts]
    times = [0.0] * len(asked.texts)
    waiting = iter(range(len(asked.texts)))

    async def client() -> None:
        for i in waiting:
            started = time.perf_counter()
            hits = await search.search(
                db, principal, asked.texts[i], asked.vectors[i], embedder_id=EMBEDDER, filters=filters
            )
            times[i] = (time.perf_counter() - started) * 1000
            found[i] = [hit.chunk_id for hit in hits]

    await asyncio.gather(*(client() for _ in range(clients)))
    return found, times


async def classes(
    db: Database, principal: Principal, corpus: Corpus, postings: Postings, queries: dict[str, Asked]
) -> dict[str, Any]:
    """By class: recall of the fused list, latency with one client and with four."""
    allowed = asking.readable(corpus)
    figures: dict[str, Any] = {}
    for name in (*CLASSES, "alike"):
        asked = queries[name]
        true = await asyncio.to_thread(truth, corpus, postings, asked.texts, asked.vectors, allowed)
        # By all clients, so that no connection asks its first question while the time is taken.
        found, _ = await ask(db, principal, asked, clients=CLIENTS)
        figures[name] = {"recall": recall(found, true.fused)}
        for clients in (1, CLIENTS):
            _, times = await ask(db, principal, asked, clients=clients)
            figures[name][f"clients_{clients}"] = spread(times)
    return figures


async def filtered(
    db: Database, principal: Principal, corpus: Corpus, postings: Postings, asked: Asked
) -> dict[str, Any]:
    """By filter: how many chunks it leaves, recall and latency of mixed queries."""
    figures = {}
    for name, narrowed in asking.filters().items():
        allowed: Mask = narrowed.allowed(corpus)
        true = await asyncio.to_thread(truth, corpus, postings, asked.texts, asked.vectors, allowed)
        found, _ = await ask(db, principal, asked, filters=narrowed.filters)
        _, times = await ask(db, principal, asked, filters=narrowed.filters)
        figures[name] = {"chunks": int(allowed.sum()), "recall": recall(found, true.fused), **spread(times)}
    return figures


async def beside(
    alone: Mapping[int, tuple[Database, Principal]], together: Mapping[int, tuple[Database, Principal]], asked: Asked
) -> dict[str, Any]:
    """By size: latency in a small tenant on a server without and with a large one, each query asked of both in turn."""
    figures: dict[str, Any] = {}
    for chunks, here in alone.items():
        there = together[chunks]
        spent: dict[str, list[float]] = {"alone": [], "beside": []}
        for again in range(3):
            for text, vector in zip(asked.texts, asked.vectors, strict=True):
                for name, (db, reader) in (("alone", here), ("beside", there)):
                    _, times = await ask(db, reader, Asked([text], vector[None]))
                    spent[name] += times if again else []
        figures[str(chunks)] = {name: spread(times) for name, times in spent.items()}
    return figures


async def touched(db: Database, principal: Principal, asked: Asked) -> dict[str, int]:
    """How many partitions of its own tenant a search locks, and how many of other tenants."""
    found: set[str] = set()
    for text, vector in zip(asked.texts[:10], asked.vectors[:10], strict=True):
        async with db.transaction(principal.tenant_id) as tx:
            query = await search._asked(tx, principal, text, vector, EMBEDDER, Filters(), "hybrid", ())
            await search._hits(tx, fusing.fuse(await search._lists(tx, query), query.language, 10))
            cursor = await tx.connection.execute(
                "SELECT DISTINCT c.relname FROM pg_locks l JOIN pg_class c ON c.oid = l.relation "
                "WHERE l.pid = pg_backend_pid() AND c.relispartition AND c.relkind IN ('r', 'p')"
            )
            found.update(row["relname"] for row in await cursor.fetchall())
    own = sum(principal.tenant_id.hex in name for name in found)
    return {"own": own, "of_others": len(found) - own}


async def merge_all(db: Database, tenant_id: UUID) -> dict[str, float]:
    """Seconds until no chunk of the tenant waits to be merged."""
    started = time.perf_counter()
    merged = 0
    while (step := await merging.merge(db, tenant_id)) is not None:
        merged += step.chunks
    return {"chunks": merged, "seconds": round(time.perf_counter() - started, 1)}


async def index(db: Database, tenant_id: UUID) -> float | None:
    """Seconds to build the index over the tenant's vectors; None where it has one, or too few vectors for one."""
    started = time.perf_counter()
    built = await documents.ensure_index(db, tenant_id)
    return round(time.perf_counter() - started, 1) if built else None


async def insert(db: Database, tenant_id: UUID, pool: Pool, corpus: Corpus) -> dict[str, float]:
    """Seconds for a thousand chunks in fifty documents as ingest writes them; they are removed afterwards."""
    collection = await collections.ensure(db, tenant_id, "general")
    size = 1000 // ADDED
    added = []
    started = time.perf_counter()
    for number in range(ADDED):
        chosen = range(number * size, (number + 1) * size)
        texts = [corpus.text(pool, chunk) + f"\nAdded {number}." for chunk in chosen]
        title = f"Added {number}"
        document, _ = await documents.register(
            db, tenant_id, collection.id, path=f"added/{number}.md", sha256=f"{number:064x}",
            media_type="text/markdown", size=1, title=title,
        )  # fmt: skip
        parsed = Parsed(title, tuple(Element("text", text) for text in texts))
        chunks = [Chunk(i, text, (), i // 5, 0, len(text)) for i, text in enumerate(texts)]
        vectors = np.asarray(corpus.vectors[chosen.start : chosen.stop], np.float32)

        async def embed(texts: list[str], vectors: Any = vectors) -> Any:
            return vectors[: len(texts)]

        await store(db, tenant_id, document, parsed, chunks, embed, embedder_id=EMBEDDER)
        added.append(document.id)
    seconds = time.perf_counter() - started
    for document_id in added:
        await tending.delete(db, users.operator(tenant_id), document_id)
    return {"chunks": 1000, "seconds": round(seconds, 2)}


def disk(owner_dsn: str, tenant_id: UUID) -> dict[str, float]:
    """Megabytes of the tenant's partitions with their indexes, by table."""
    statement = (
        "SELECT split_part(c.relname, %s, 1), sum(pg_total_relation_size(c.oid)) / 2^20 FROM pg_class c "
        "WHERE c.relkind = 'r' AND position(%s in c.relname) > 0 GROUP BY 1 ORDER BY 1"
    )
    with psycopg.connect(owner_dsn) as connection:
        rows = connection.execute(statement, (f"_{tenant_id.hex}", tenant_id.hex)).fetchall()
    return {name: round(float(size), 1) for name, size in rows}
