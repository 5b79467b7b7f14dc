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

from core.settings import Settings
from policy import boot
from storage import lexical
from tests.bench.__main__ import machine
from tests.bench.search import asking, corpus, likeness, measuring, plain, report, standing
from tests.bench.search import pool as pools
from tests.bench.search.asking import Asked
from tests.bench.search.corpus import SIMILAR, Corpus
from tests.bench.search.pool import Pool
from tests.bench.search.reference import Postings, truth
from tests.bench.search.standing import Server
from tests.paths import BENCHMARKS, PROJECT, shared_data

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
    keep("likeness", await asyncio.to_thread(likeness.compared, pool, made, queries["mixed"].vectors))
    with _timed("server"):
        async with standing.standing(size, pool, made, machine) as server:
            keep("built", standing.noted(standing.folder(size, large=True)))
            await _search(server, made, postings, queries, keep)
            with _timed("small tenants"):
                await _small(server, size, pool, queries["mixed"], keep)
            with _timed("inserting"):
                tenant_id = (await server.reader(standing.LARGE)).tenant_id
                keep("inserting", await measuring.insert(server.db, tenant_id, pool, made))
            await asyncio.to_thread(_compare, server.owner_dsn, made, postings, queries, others_python, keep)


async def _search(server: Server, made: Corpus, postings: Postings, queries: dict[str, Asked], keep: Keep) -> None:
    db, reader = server.db, await server.reader(standing.LARGE)
    with _timed("classes"):
        keep("classes", await measuring.classes(db, reader, made, postings, queries))
    with _timed("filters"):
        keep("filters", await measuring.filtered(db, reader, made, postings, queries["mixed"]))
    keep("partitions", await measuring.touched(db, reader, queries["mixed"]))


async def _small(server: Server, size: int, pool: Pool, asked: Asked, keep: Keep) -> None:
    async with standing.standing(size, pool, None, machine) as lonely:
        alone, together = [
            {chunks: (one.db, await one.reader(standing.small_slug(chunks))) for chunks in standing.small_sizes(size)}
            for one in (lonely, server)
        ]
        keep("small", await measuring.beside(alone, together, asked))


def _compare(
    owner_dsn: str, made: Corpus, postings: Postings, queries: dict[str, Asked], others_python: str | None, keep: Keep
) -> None:
    if len(made) > max(MOST.values()):
        return
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
    parser.add_argument("--fresh", action="store_true", help="load the tenants anew, though they stand in the cache")
    arguments = parser.parse_args()
    if arguments.fresh:
        standing.forget(arguments.size)
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
