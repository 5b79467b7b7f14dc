"""The plain scheme that most build first: a tsvector of the same terms under a GIN index, ordered by `ts_rank`.

The terms are written as their numbers, so that Chinese is cut as well as it is for the product, and stand as often as
they weigh. No tenants, no rights, no vectors.
"""

import time
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import psycopg

from storage import lexical
from tests.bench.search.asking import Asked
from tests.bench.search.corpus import Corpus
from tests.bench.search.measuring import CLASSES, spread
from tests.bench.search.reference import recall

_RANKED: Final = (
    "SELECT chunk FROM plain.chunks WHERE words @@ %(query)s::tsquery "
    "ORDER BY ts_rank(words, %(query)s::tsquery) DESC, chunk LIMIT 10"
)


def measure(dsn: str, corpus: Corpus, queries: dict[str, Asked], words: dict[str, list[list[int]]]) -> dict[str, Any]:
    """Seconds to build; by class recall of exact BM25 (`words`: its first ten) and latency with one client."""
    figures: dict[str, Any] = {}
    with psycopg.connect(dsn, autocommit=True) as connection:
        started = time.perf_counter()
        connection.execute("DROP SCHEMA IF EXISTS plain CASCADE")
        connection.execute("CREATE SCHEMA plain CREATE TABLE chunks (chunk integer, words tsvector)")
        with connection.cursor().copy("COPY plain.chunks FROM STDIN") as copy:
            for row in _rows(corpus):
                copy.write(row)
        connection.execute("SET maintenance_work_mem = '1GB'")
        connection.execute("CREATE INDEX ON plain.chunks USING gin (words)")
        connection.execute("VACUUM ANALYZE plain.chunks")
        figures["build_seconds"] = round(time.perf_counter() - started, 1)
        for name in CLASSES:
            found, times = [], []
            for text in queries[name].texts:
                terms = " | ".join(map(str, lexical.query_vector(text)))
                started = time.perf_counter()
                rows = connection.execute(_RANKED, {"query": terms}).fetchall()
                times.append((time.perf_counter() - started) * 1000)
                found.append([chunk for (chunk,) in rows])
            figures[name] = {"recall": recall(found, words[name]), **spread(times)}
        connection.execute("DROP SCHEMA plain CASCADE")
    return figures


def _rows(corpus: Corpus) -> Iterator[bytes]:
    """COPY's text form; a term's positions stand for how often it counts, from 1 to 5."""
    places = [f":{','.join(map(str, range(1, times + 1)))}" for times in range(6)]
    for chunk in range(len(corpus)):
        span = slice(corpus.term_starts[chunk], corpus.term_starts[chunk + 1])
        weights = corpus.weights[span]
        times = np.clip(np.rint(weights * lexical.K1 / (lexical.K1 + 1 - weights)), 1, 5).astype(int).tolist()
        words = " ".join(f"{term}{places[n]}" for term, n in zip(corpus.terms[span].tolist(), times, strict=True))
        yield f"{chunk + 1}\t{words}\n".encode()
