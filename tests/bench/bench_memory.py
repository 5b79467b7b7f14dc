"""Memory of the program over the number of documents that it has ingested.

python -m tests.bench.bench_memory [--most 10000] [--minutes 60] [--plot FILE]

Prints one JSON object. The embedder costs next to nothing: what grows is ours.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from inference.interfaces import Vectors
from policy import boot
from tests.bench import mixed, processes
from tests.bench.bench_ingest import ingest, runtime

STEP = 1000


class Quick:
    """An embedder that takes one of a thousand vectors by the text's checksum."""

    id, dimension = "quick", 8

    def __init__(self) -> None:
        vectors = np.random.default_rng(1).normal(size=(1000, self.dimension)).astype(np.float32)
        self._vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        found: Vectors = self._vectors[[zlib.crc32(text.encode()) % 1000 for text in texts]]
        return found

    async def embed_query(self, text: str) -> Vectors:
        found: Vectors = (await self.embed_passages([text]))[0]
        return found

    async def close(self) -> None:
        """Nothing is open."""


async def curve(most: int, seconds: float) -> list[dict[str, float]]:
    """Resident megabytes after each thousand documents, up to `most` or as far as `seconds` allow."""
    points: list[dict[str, float]] = []
    started = time.monotonic()
    async with runtime(Quick()) as at:
        for done in range(0, most, STEP):
            with tempfile.TemporaryDirectory() as folder:
                mixed.write(Path(folder), min(STEP, most - done), first=done)
                states = await ingest(at, Path(folder))
            points.append({"documents": sum(states.values()), "ready": states["ready"], **resident()})
            print(points[-1], file=sys.stderr)
            if time.monotonic() - started > seconds:
                break
    return points


def resident() -> dict[str, float]:
    """Megabytes of this process, and of the warm reader with whatever it runs (PostgreSQL left out)."""
    readers = sum(map(processes.megabytes, processes.readers()))
    return {"process_mb": round(processes.megabytes(os.getpid()), 1), "reader_mb": round(readers, 1)}


def section(found: dict[str, Any], where: str) -> str:
    """The figures as a part of docs/benchmarks.md."""
    rows = [f"| {row['documents']} | {row['process_mb']} | {row['reader_mb']} |" for row in found["memory"]]
    return (
        "## Memory of ingestion\n\nResident memory after so many mixed documents, with an embedder that costs nothing. "
        f"{where}\n\n| documents | program, MB | reader, MB |\n|---|---|---|\n"
        + "\n".join(rows)
        + "\n\n![Memory over documents](benchmarks/memory.png)"
    )


def plot(found: dict[str, Any], path: Path) -> None:
    """Memory as a curve."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.2), layout="constrained")
    documents = [row["documents"] for row in found["memory"]]
    for key, label in (("process_mb", "program"), ("reader_mb", "reader")):
        axes.plot(documents, [row[key] for row in found["memory"]], marker="o", label=label)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("documents ingested")
    axes.set_ylabel("resident memory, MB")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def main() -> None:
    """Command line."""
    boot.seal()
    parser = argparse.ArgumentParser(description="Measure the memory of ingestion.")
    parser.add_argument("--most", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=60, help="begin no further thousand after so long")
    parser.add_argument("--plot", type=Path, help="draw the curve into this PNG file")
    arguments = parser.parse_args()
    found = {"memory": asyncio.run(curve(arguments.most, 60 * arguments.minutes))}
    print(json.dumps(found, indent=2))
    if arguments.plot:
        plot(found, arguments.plot)


if __name__ == "__main__":
    main()
