"""Chroma and LanceDB on the same chunks and queries: python -m tests.bench.search.others FOLDER NAME ...

FOLDER holds `vectors.npy`, `words.txt` (a line of terms for each chunk) and `asked.json`: by class the queries' terms
and vectors, and the exact first ten by vector and by words. Prints one JSON object.

A process of its own: what these install and send is not this program's. They are told to send nothing.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 5_000
# Below this LanceDB has no use for an index over vectors.
INDEXED = 20_000

Ask = Callable[[list[float], str], list[int]]


def measure(asked: dict[str, Any], truth: str | None, ask: Ask) -> dict[str, dict[str, float]]:
    """By class: recall of the first ten of the exact list `truth`, where there is one; latency with one client."""
    figures = {}
    for name, one in asked.items():
        pairs = list(zip(one["vectors"], one["words"], strict=True))
        ask(*pairs[0])
        found, times = [], []
        for pair in pairs:
            started = time.perf_counter()
            found.append(ask(*pair))
            times.append((time.perf_counter() - started) * 1000)
        p50, p95 = np.percentile(times, [50, 95])
        figures[name] = {"p50": round(p50, 1), "p95": round(p95, 1)}
        if truth is not None:
            both = [(set(a), set(b)) for a, b in zip(found, one[truth], strict=True) if b]
            figures[name]["recall"] = round(float(np.mean([len(a & b) / len(b) for a, b in both])), 4)
    return figures


def chroma(folder: Path, vectors: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Vectors in its HNSW index, as wide a search as ours."""
    import chromadb
    from chromadb.config import Settings

    client = chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))
    space = {"hnsw": {"space": "ip", "ef_construction": 128, "max_neighbors": 16, "ef_search": 400}}
    chunks = client.create_collection("chunks", configuration=space, embedding_function=None)
    started = time.perf_counter()
    for at in range(0, len(vectors), BATCH):
        part = np.asarray(vectors[at : at + BATCH], np.float32)
        chunks.add(ids=[str(at + i + 1) for i in range(len(part))], embeddings=part)
    built = round(time.perf_counter() - started, 1)

    def ask(vector: list[float], _words: str) -> list[int]:
        found = chunks.query(query_embeddings=[vector], n_results=10, include=[])
        return [int(one) for one in found["ids"][0]]

    return {"build_seconds": built, "vectors": measure(asked, "nearest", ask)}


def lance(folder: Path, vectors: Any, lines: Sequence[str], asked: dict[str, Any]) -> dict[str, Any]:
    """Vectors, words, and both with its reciprocal rank fusion; its own choice of index and width."""
    import lancedb
    import pyarrow

    started = time.perf_counter()
    schema = pyarrow.schema([
        ("id", pyarrow.int32()),
        ("vector", pyarrow.list_(pyarrow.float32(), vectors.shape[1])),
        ("words", pyarrow.string()),
    ])  # fmt: skip

    def batches() -> Any:
        for at in range(0, len(vectors), BATCH):
            part = np.asarray(vectors[at : at + BATCH], np.float32)
            rows = pyarrow.FixedSizeListArray.from_arrays(part.ravel(), part.shape[1])
            ids = pyarrow.array(range(at + 1, at + 1 + len(part)), pyarrow.int32())
            yield pyarrow.RecordBatch.from_arrays([ids, rows, pyarrow.array(lines[at : at + len(part)])], schema=schema)

    table = lancedb.connect(folder).create_table("chunks", batches(), schema=schema)
    if len(vectors) >= INDEXED:
        table.create_index(metric="dot", vector_column_name="vector", index_type="IVF_HNSW_SQ")
    table.create_fts_index(
        "words", base_tokenizer="whitespace", stem=False, remove_stop_words=False, lower_case=False, ascii_folding=False
    )
    built = round(time.perf_counter() - started, 1)

    def ids(query: Any) -> list[int]:
        return [row["id"] for row in query.select(["id"]).limit(10).to_list()]

    return {
        "build_seconds": built,
        "vectors": measure(asked, "nearest", lambda v, _: ids(table.search(v, vector_column_name="vector"))),
        "words": measure(asked, "words_best", lambda _, w: ids(table.search(w, query_type="fts"))),
        "hybrid": measure(asked, None, lambda v, w: ids(table.search(query_type="hybrid").vector(v).text(w))),
    }


def main() -> None:
    """Command line."""
    os.environ.update(ANONYMIZED_TELEMETRY="False", LANCEDB_TELEMETRY="0", DO_NOT_TRACK="1")
    given = Path(sys.argv[1])
    vectors = np.load(given / "vectors.npy", mmap_mode="r")
    lines = (given / "words.txt").read_text().splitlines()
    asked = json.loads((given / "asked.json").read_text())
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=given) as folder:
        if "chroma" in sys.argv[2:]:
            figures["chroma"] = chroma(Path(folder) / "chroma", vectors, asked)
        if "lancedb" in sys.argv[2:]:
            figures["lancedb"] = lance(Path(folder) / "lance", vectors, lines, asked)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
