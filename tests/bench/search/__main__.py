"""python -m tests.bench.search --size N [--others-python PATH]: search in a tenant of N chunks beside small tenants.

Figures go to docs/benchmarks/search-N.json, after each part, so that what was measured is kept when a later part fails.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from core.records import Principal, Role
from core.settings import Settings
from policy import boot
from storage import embedded, lexical, migrations, tenants, users
from storage.database import Database
from tests.bench.search import asking, corpus, loading, measuring, plain, report
from tests.bench.search import pool as pools
from tests.bench.search.asking import Asked
from tests.bench.search.corpus import SIMILAR, Corpus
from tests.bench.search.pool import Pool
from tests.bench.search.reference import Postings, truth
from tests.paths import BENCHMARKS, PROJECT, shared_data

# From this size of the large tenant on: how many small ones of how many chunks.
SMALL: Final = {10_000: {200: 10}, 100_000: {200: 10, 5_000: 10}, 1_000_000: {200: 90, 5_000: 10}}
# Others are left out above so many chunks, where building takes them longer than all the rest.
MOST: Final = {"chroma": 100_000, "lancedb": 100_000, "plain": 100_000}

Keep = Callable[[str, Any], None]


async def measure(size: int, others_python: str | None, keep: Keep) -> None:
    """Everything, in the order in which it disturbs the rest least."""
    data = shared_data()
    if data is None:
        sys.exit("This bench resamples the public corpora of ../shared/data, which are not here.")
    cache = Settings.load().cache / "bench-search"
    with _timed("pool"):
        pool = await pools.load(data, cache)
    with _timed("corpus"):
        made = corpus.load(pool, size, cache, similar=SIMILAR)
        queries = await asking.queries(pool, made, cache)
        postings = Postings.of(made, [text for asked in queries.values() for text in asked.texts])
    keep("corpus", _described(made))
    with tempfile.TemporaryDirectory(prefix="intramuros-bench-") as home, embedded.start(Path(home)) as server:
        await migrations.migrate(server.owner_dsn)
        loading.hurry(server.owner_dsn, True)
        db = await Database.open(server.app_dsn, pool_size=4)
        try:
            await _product(db, server, pool, made, postings, queries, keep)
        finally:
            await db.close()
        await asyncio.to_thread(_compare, server.owner_dsn, made, postings, queries, others_python, keep)


async def _product(
    db: Database,
    server: embedded.EmbeddedPostgres,
    pool: Pool,
    made: Corpus,
    postings: Postings,
    queries: dict[str, Asked],
    keep: Keep,
) -> None:
    owner = server.owner_dsn
    with _timed("small tenants"):
        small = await _small_tenants(db, owner, pool, len(made))
    keep("small_alone", await _small(db, small, queries))
    tenant, reader = await _tenant(db, owner, "large", alike=True)
    with _timed("loading"):
        await loading.load(db, owner, tenant, pool, made)
        await asyncio.to_thread(loading.tidy, owner)
    with _timed("merging and index, at the same time"):
        merged, seconds = await asyncio.gather(measuring.merge_all(db, tenant), measuring.index(server.app_dsn, tenant))
    keep("merging", merged)
    keep("index", {"seconds": seconds})
    await asyncio.to_thread(loading.tidy, owner)
    loading.hurry(owner, False)
    keep("disk", measuring.disk(owner, tenant))
    with _timed("classes"):
        keep("classes", await measuring.classes(db, reader, made, postings, queries))
    with _timed("filters"):
        keep("filters", await measuring.filtered(db, reader, made, postings, queries["mixed"]))
    keep("partitions", await measuring.touched(db, reader, queries["mixed"]))
    keep("small_beside", await _small(db, small, queries))
    with _timed("inserting"):
        keep("inserting", await measuring.insert(db, tenant, pool, made))


async def _tenant(db: Database, owner_dsn: str, slug: str, *, alike: bool) -> tuple[loading.Tenant, Principal]:
    """A tenant with its collections, and an employee of it."""
    tenant = await tenants.create(owner_dsn, slug, slug)
    reader = await users.create(db, tenant.id, "reader", "none", Role.EMPLOYEE)
    return await loading.furnish(db, tenant.id, f"user:{reader.user_id}" if alike else None), reader


async def _small_tenants(db: Database, owner_dsn: str, pool: Pool, size: int) -> dict[int, Principal]:
    """The reader of one of the small tenants of each size."""
    found = {}
    for chunks, count in SMALL[max(least for least in SMALL if least <= size)].items():
        part = corpus.load(pool, chunks, Settings.load().cache / "bench-search")
        for number in range(count):
            tenant, found[chunks] = await _tenant(db, owner_dsn, f"small-{chunks}-{number}", alike=False)
            await loading.load(db, owner_dsn, tenant, pool, part)
    await asyncio.to_thread(loading.tidy, owner_dsn)
    return found


async def _small(db: Database, readers: dict[int, Principal], queries: dict[str, Asked]) -> dict[str, Any]:
    """Latency of mixed queries in a small tenant of each size, one client."""
    figures = {}
    for chunks, reader in readers.items():
        await measuring.ask(db, reader, queries["mixed"])
        figures[str(chunks)] = measuring.spread((await measuring.ask(db, reader, queries["mixed"]))[1])
    return figures


def _compare(
    owner_dsn: str, made: Corpus, postings: Postings, queries: dict[str, Asked], others_python: str | None, keep: Keep
) -> None:
    every = np.ones(len(made), bool)
    true = {
        name: truth(made, postings, queries[name].texts, queries[name].vectors, every) for name in measuring.CLASSES
    }
    words = {name: [[chunk for chunk, _ in row[:10]] for row in one.words] for name, one in true.items()}
    if len(made) <= MOST["plain"]:
        with _timed("plain"):
            keep("plain", plain.measure(owner_dsn, made, queries, words))
    names = [name for name in ("chroma", "lancedb") if len(made) <= MOST[name]]
    if others_python is None or not names:
        return
    asked = {
        name: {
            "words": [" ".join(map(str, lexical.query_vector(text))) for text in queries[name].texts],
            "vectors": queries[name].vectors.tolist(),
            "nearest": [[chunk for chunk, _ in row[:10]] for row in one.nearest],
            "words_best": words[name],
        }
        for name, one in true.items()
    }
    with _timed("others"), tempfile.TemporaryDirectory(prefix="intramuros-bench-") as folder:
        _hand_over(Path(folder), made, asked)
        keep("others", _run_others(others_python, folder, names))


def _run_others(python: str, folder: str, names: Sequence[str]) -> Any:
    command = [python, "-m", "tests.bench.search.others", folder, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=PROJECT)
    if done.returncode:
        sys.exit(f"The others failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _hand_over(folder: Path, made: Corpus, asked: dict[str, Any]) -> None:
    np.save(folder / "vectors.npy", made.vectors)
    (folder / "asked.json").write_text(json.dumps(asked))
    starts = made.term_starts.tolist()
    with (folder / "words.txt").open("w") as file:
        for first, last in pairwise(starts):
            file.write(" ".join(map(str, made.terms[first:last].tolist())) + "\n")


def _described(made: Corpus) -> dict[str, Any]:
    return {
        "chunks": len(made),
        "documents": len(made.doc_page),
        "terms": len(np.unique(made.terms)),
        "postings": len(made.terms),
        "chinese": round(float(made.doc_chinese[made.document].mean()), 3),
    }


@contextmanager
def _timed(what: str) -> Iterator[None]:
    """Tell on standard error how long it took."""
    started = time.perf_counter()
    yield
    print(f"{what}: {time.perf_counter() - started:.1f} s", file=sys.stderr)


def main() -> None:
    """Command line."""
    boot.seal()
    parser = argparse.ArgumentParser(description="Measure search in a large tenant.")
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--others-python", help="an interpreter that has chromadb and lancedb")
    arguments = parser.parse_args()
    from tests.bench.__main__ import machine

    found: dict[str, Any] = {"machine": machine(), "figures": {}}
    path = BENCHMARKS / f"search-{arguments.size}.json"

    def keep(name: str, figures: Any) -> None:
        found["figures"][name] = figures
        found["machine"]["load_after"] = round(os.getloadavg()[0], 2)
        path.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")

    asyncio.run(measure(arguments.size, arguments.others_python, keep))
    report.plot(report.kept(), report.PLOT)


if __name__ == "__main__":
    main()
