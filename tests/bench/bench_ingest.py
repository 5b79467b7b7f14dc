"""Ingest of many mixed documents beside the embedder alone, and memory over the number of documents.

python -m tests.bench.bench_ingest [--documents 1000] [--most 10000] [--plot FILE]

Prints one JSON object. The embedder alone gets the very texts that ingest embedded, in the same batches, in the same
run. The memory curve is taken with an embedder that costs next to nothing: what grows then is ours.
"""

import argparse
import asyncio
import json
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from api.cli.ingest import ensure_tenant
from api.runtime import Runtime
from core.records import DocumentState
from core.settings import Settings
from inference.interfaces import Embedder, Vectors
from policy import boot
from policy.egress import Policy
from storage import documents, users
from tests.bench import mixed
from tests.fakes.embedder import FakeEmbedder

STEP = 1000


class Recorded:
    """An embedder that remembers the batches it was given."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.id, self.dimension = embedder.id, embedder.dimension
        self.batches: list[Sequence[str]] = []

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(list(texts))
        return await self._embedder.embed_passages(texts)

    async def embed_query(self, text: str) -> Vectors:
        return await self._embedder.embed_query(text)

    async def close(self) -> None:
        """Stays open: the same embedder is measured alone afterwards."""


@asynccontextmanager
async def runtime(embedder: Embedder) -> AsyncIterator[Runtime]:
    """A runtime of its own over an empty database, with this embedder."""

    async def given(settings: Settings, policy: Policy) -> Embedder:
        return embedder

    with tempfile.TemporaryDirectory() as folder:
        async with Runtime.open(Settings.load(home=Path(folder) / "home")) as opened:
            opened.open_embedder = given
            yield opened


async def ingest(at: Runtime, folder: Path) -> dict[str, int]:
    """Ingest a folder to the last vector; how many documents ended in which state."""
    tenant = await ensure_tenant(at, at.settings.tenant)
    async for _ in at.ingestor.ingest_folder(tenant.id, "mixed", folder):
        pass
    found = await documents.listing(at.db, users.operator(tenant.id))
    return {state.value: sum(d.state is state for d in found) for state in DocumentState}


async def beside_the_embedder(count: int) -> dict[str, Any]:
    """Wall time of a whole ingest, and of the embedder alone over the same texts."""
    from inference.select import open_embedder

    settings = Settings.load()
    real = await open_embedder(settings, Policy.of(settings))
    await real.embed_passages(["Warm."])
    recorded = Recorded(real)
    with tempfile.TemporaryDirectory() as folder:
        mixed.write(Path(folder), count)
        async with runtime(recorded) as at:
            started = time.perf_counter()
            states = await ingest(at, Path(folder))
            whole = time.perf_counter() - started
    started = time.perf_counter()
    for batch in recorded.batches:
        await real.embed_passages(batch)
    alone = time.perf_counter() - started
    await real.close()
    chunks = sum(map(len, recorded.batches))
    return {
        "documents": count,
        "states": states,
        "chunks": chunks,
        "whole_seconds": round(whole, 1),
        "embedder_seconds": round(alone, 1),
        "ratio": round(whole / alone, 3),
        "chunks_per_second": round(chunks / whole, 1),
    }


async def memory(most: int) -> list[dict[str, float]]:
    """Resident memory of this process and of its children, in megabytes, after each thousand documents."""
    curve = []
    async with runtime(FakeEmbedder()) as at:
        with tempfile.TemporaryDirectory() as folder:
            paths = mixed.write(Path(folder) / "all", most)
            for done in range(0, most, STEP):
                part = Path(folder) / "part"
                for path in paths[done : done + STEP]:
                    target = part / path.relative_to(folder)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    path.rename(target)
                await ingest(at, part)
                curve.append({"documents": done + STEP, **resident()})
                shutil.rmtree(part)
    return curve


def resident() -> dict[str, float]:
    """Megabytes of this process, and of the warm reader with whatever it runs (PostgreSQL left out)."""
    mine = os.getpid()
    readers = [pid for pid in _children(mine) if b"ingest.reader" in _read(pid, "cmdline")]
    return {"process_mb": _megabytes(mine), "reader_mb": round(sum(map(_megabytes, readers)), 1)}


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *_children(int(child))]
    return found


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _megabytes(pid: int) -> float:
    pages = _read(pid, "statm").split()
    return round(int(pages[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20, 1) if pages else 0.0


def section(found: dict[str, Any], where: str) -> str:
    """The figures as a part of docs/benchmarks.md."""
    rows = [f"| {row['documents']} | {row['process_mb']} | {row['reader_mb']} |" for row in found["memory"]]
    return (
        f"## Ingest\n\n{found['documents']} mixed documents in {found['chunks']} chunks, from files to vectors. "
        f"{where}\n\n"
        "| whole ingest, s | the embedder alone, s | times | chunks a second |\n|---|---|---|---|\n"
        f"| {found['whole_seconds']} | {found['embedder_seconds']} | {found['ratio']} "
        f"| {found['chunks_per_second']} |\n\n"
        "Resident memory after so many documents, with an embedder that costs nothing:\n\n"
        "| documents | program, MB | reader, MB |\n|---|---|---|\n"
        + "\n".join(rows)
        + "\n\n![Ingest and its memory](benchmarks/ingest.png)"
    )


def plot(found: dict[str, Any], path: Path) -> None:
    """Times as bars, memory as a curve."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (times, curve) = pyplot.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    bars = times.bar(["embedder alone", "whole ingest"], [found["embedder_seconds"], found["whole_seconds"]], 0.5)
    times.bar_label(bars, fmt="{:.0f} s", fontsize=8)
    times.set_ylabel(f"seconds for {found['documents']} documents")
    documents = [row["documents"] for row in found["memory"]]
    for key, label in (("process_mb", "program"), ("reader_mb", "reader")):
        curve.plot(documents, [row[key] for row in found["memory"]], marker="o", label=label)
    curve.set_ylim(bottom=0)
    curve.set_xlabel("documents ingested")
    curve.set_ylabel("resident memory, MB")
    curve.legend(frameon=False)
    for axes in (times, curve):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def main() -> None:
    """Command line."""
    boot.seal()
    parser = argparse.ArgumentParser(description="Measure whole ingest and its memory.")
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--most", type=int, default=10_000)
    parser.add_argument("--plot", type=Path, help="draw the figures into this PNG file")
    arguments = parser.parse_args()
    found = asyncio.run(beside_the_embedder(arguments.documents))
    found["memory"] = asyncio.run(memory(arguments.most))
    print(json.dumps(found, indent=2))
    if arguments.plot:
        plot(found, arguments.plot)


if __name__ == "__main__":
    main()
