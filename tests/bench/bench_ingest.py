"""Ingest of many mixed documents beside the embedder alone.

python -m tests.bench.bench_ingest [--documents 1000] [--plot FILE]

Prints one JSON object. The embedder alone gets the very texts that ingest embedded, in the same batches and as many of
them at once, in the same run.
"""

import argparse
import asyncio
import json
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
from ingest.embedding import AT_ONCE
from policy import boot
from policy.egress import Policy
from storage import documents, users
from tests.bench import mixed, processes


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
    """Ingest a folder to the last vector; how many documents are in which state then."""
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
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as first:
        mixed.write(Path(folder), count)
        (Path(first) / "first.md").write_text("The reader is as warm as the embedder.")
        async with runtime(recorded) as at:
            await ingest(at, Path(first))
            recorded.batches.clear()
            before, started = _others(at), time.perf_counter()
            states = await ingest(at, Path(folder))
            whole = time.perf_counter() - started
            others = {name: after - before[name] for name, after in _others(at).items()}
    started = time.perf_counter()
    await alone_with(real, recorded.batches)
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
        "cpu_ms_per_document": {name: round(1000 * seconds / count, 1) for name, seconds in others.items()},
    }


async def alone_with(embedder: Embedder, batches: list[Sequence[str]]) -> None:
    """Nothing but these batches, as many at once as ingest has under way."""
    waiting = iter(batches)

    async def one_after_another() -> None:
        for batch in waiting:
            await embedder.embed_passages(batch)

    await asyncio.gather(*[one_after_another() for _ in range(AT_ONCE)])


def _others(at: Runtime) -> dict[str, float]:
    """Processor seconds so far of the processes beside the program, in which the embedder runs."""
    return {
        "reader": processes.cpu_seconds(processes.readers()),
        "postgres": processes.cpu_seconds(processes.servers(at.settings.home)),
    }


def section(found: dict[str, Any], where: str) -> str:
    """The figures as a part of docs/benchmarks.md."""
    cpu = found.get("cpu_ms_per_document", {})
    return (
        f"## Ingest\n\n{found['documents']} mixed documents in {found['chunks']} chunks, from files to vectors, beside "
        f"the embedder alone on the same texts. {where}\n\n"
        "| whole ingest, s | the embedder alone, s | times | chunks a second | reader, ms of CPU a document "
        "| PostgreSQL, ms of CPU a document |\n|---|---|---|---|---|---|\n"
        f"| {found['whole_seconds']} | {found['embedder_seconds']} | {found['ratio']} "
        f"| {found['chunks_per_second']} | {cpu.get('reader', 'not noted')} | {cpu.get('postgres', 'not noted')} |\n\n"
        "![Ingest beside the embedder](benchmarks/ingest.png)"
    )


def plot(found: dict[str, Any], path: Path) -> None:
    """Times as bars."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(4, 3.2), layout="constrained")
    bars = axes.bar(["embedder alone", "whole ingest"], [found["embedder_seconds"], found["whole_seconds"]], 0.5)
    axes.bar_label(bars, fmt="{:.0f} s", fontsize=8)
    axes.set_ylabel(f"seconds for {found['documents']} documents")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def main() -> None:
    """Command line."""
    boot.seal()
    parser = argparse.ArgumentParser(description="Measure whole ingest beside the embedder alone.")
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--plot", type=Path, help="draw the figures into this PNG file")
    arguments = parser.parse_args()
    found = asyncio.run(beside_the_embedder(arguments.documents))
    print(json.dumps(found, indent=2))
    if arguments.plot:
        plot(found, arguments.plot)


if __name__ == "__main__":
    main()
