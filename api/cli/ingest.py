"""`ingest`: files and folders into a collection."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from api.cli import console
from api.cli.commands import command
from api.cli.opened import owner
from api.runtime import Runtime
from core.errors import IngestError, NotFound
from core.records import Tenant
from core.settings import Settings
from storage import listing, tenants, users

if TYPE_CHECKING:
    from ingest.pipeline import Progress

OUTCOMES = ("new", "changed", "unchanged", "failed", "skipped")


@dataclass(slots=True)
class Summary:
    """What came of the files: how many of each outcome, and which failed or were passed over, with the reason."""

    counts: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[str, str]] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def add(self, outcome: str, path: str, reason: str | None) -> None:
        """Count one file."""
        self.counts[outcome] += 1
        if outcome in ("failed", "skipped"):
            getattr(self, outcome).append((path, reason or "no reason given"))

    @property
    def readable(self) -> int:
        """Documents that can be searched now."""
        return sum(self.counts[outcome] for outcome in ("new", "changed", "unchanged"))

    def line(self) -> str:
        """`28 files: 26 new, 0 changed, 1 unchanged, 1 failed`, and how many were skipped where some were."""
        named = OUTCOMES if self.counts["skipped"] else OUTCOMES[:-1]
        counts = ", ".join(f"{self.counts[outcome]} {outcome}" for outcome in named)
        return f"{console.counted(self.counts.total(), 'file')}: {counts}"


def register(app: typer.Typer) -> None:
    command(app, "ingest")(ingest)


async def ingest(
    settings: Settings,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files, and folders with all below them.")],
    collection: Annotated[
        str, typer.Option("--collection", "-c", help="The collection to put them in, made when absent.")
    ] = "handbook",
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 when any document failed.")] = False,
) -> None:
    """Read files and folders into a collection.

    What is there already is not read again; changed files replace what was made of them before. A document that cannot
    be read is listed with the reason and the others go on. Exit code 1 when a path does not exist, when nothing could
    be read at all, or with --strict when any document failed.
    """
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise NotFound(f"There is nothing at {', '.join(missing)}. Correct the path; nothing was read")
    async with Runtime.open(settings) as runtime:
        tenant = await ensure_tenant(runtime, settings.tenant)
        summary = Summary()
        for path in paths:
            await read(runtime, tenant.id, collection, path.resolve(), summary)
    console.say(summary.line())
    for name, reason in (*sorted(summary.failed), *sorted(summary.skipped)):
        console.note(f"{name}: {reason}")
    if not summary.readable:
        raise IngestError("Nothing could be read. The reasons stand above")
    if strict and summary.failed:
        failed = console.counted(len(summary.failed), "document")
        raise IngestError(f"{failed} failed. The reasons stand above")


async def read(runtime: Runtime, tenant_id: UUID, collection: str, path: Path, summary: Summary) -> None:
    """Read a file or a folder, with a bar. Documents are known by their path from the folder's own name on."""
    with console.progress(f"Reading {path.name}") as advance:
        async for step in await steps(runtime, tenant_id, collection, path):
            advance(step.done, step.total, step.path)
            if step.result is None:
                summary.add("skipped", step.path, step.skipped)
            else:
                summary.add(step.result.outcome, step.path, step.result.document.reason)


async def steps(runtime: Runtime, tenant_id: UUID, collection: str, path: Path) -> "AsyncIterator[Progress]":
    """What becomes of a file, or of all below a folder, as it happens."""
    if await asyncio.to_thread(path.is_dir):
        return runtime.ingestor.ingest_folder(tenant_id, collection, path, path.parent)
    known = await listing.paths(runtime.db, users.operator(tenant_id), collection)
    return runtime.ingestor.ingest_files(tenant_id, collection, [path], root_of(path, known))


def root_of(path: Path, known: Sequence[str]) -> Path:
    """The folder that a single file is known below: that of the document's path which this path ends with already."""
    ends = [each for each in known if path.as_posix().endswith("/" + each)]
    deepest = max(ends, key=len, default=path.name)
    return path.parents[deepest.count("/")]


async def ensure_tenant(runtime: Runtime, slug: str) -> Tenant:
    """The tenant of that name; made when the database has none at all, so that a first try needs no preparation."""
    try:
        return await tenants.get(runtime.db, slug)
    except NotFound:
        if runtime.owner_dsn is None or await tenants.list_all(owner(runtime)):
            raise
    console.note(f"Created tenant {slug}: the database had none")
    return await tenants.create(owner(runtime), slug, slug)
