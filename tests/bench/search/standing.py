"""The servers that a size is measured on: the large tenant beside small ones, and the small ones alone.

They are loaded once and stand in the cache. What building them cost is kept beside them, with machine, load and day; a
later run brings them to the present schema, does what is due then, and measures search.
"""

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.records import Principal, Role
from core.settings import Settings
from storage import embedded, migrations, tenants, users
from storage.database import Database
from tests.bench.search import corpus, loading, measuring
from tests.bench.search.corpus import Corpus
from tests.bench.search.pool import Pool

# From this size of the large tenant on: how many small ones of how many chunks.
SMALL: Final = {10_000: {200: 10}, 100_000: {200: 10, 5_000: 10}, 1_000_000: {200: 90, 5_000: 10}}
LARGE: Final = "large"
_READER: Final = "reader"


@dataclass(frozen=True, slots=True)
class Server:
    """A running one, as the app role, and the owner's address."""

    db: Database
    owner_dsn: str

    async def reader(self, slug: str) -> Principal:
        """The employee of a tenant who asks."""
        tenant = await tenants.get(self.db, slug)
        found = await users.by_name(self.db, tenant.id, _READER)
        if found is None:
            sys.exit(f"{slug} has nobody who asks: measure with --fresh.")
        return found[0]


def folder(size: int, *, large: bool) -> Path:
    """Where a size's server stands."""
    return Settings.load().cache / "bench-search" / f"database-{size}{'' if large else '-small'}"


@asynccontextmanager
async def standing(size: int, pool: Pool, made: Corpus | None, machine: Callable[[], Any]) -> AsyncIterator[Server]:
    """The server of this size, with `made` as the large tenant or, None, without one; loaded where it is not yet."""
    home = folder(size, large=made is not None)
    if not _note(home).exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
    with embedded.start(home) as started:
        await migrations.migrate(started.owner_dsn)
        db = await Database.open(started.app_dsn, pool_size=measuring.CLIENTS)
        server = Server(db, started.owner_dsn)
        try:
            if not _note(home).exists():
                await _load(server, size, pool, made)
                note(home, {})
            if made is not None:
                await _finish(server, home, machine)
            yield server
        finally:
            await db.close()


def forget(size: int) -> None:
    """Let the next run load this size anew."""
    for large in (True, False):
        _note(folder(size, large=large)).unlink(missing_ok=True)


def noted(home: Path) -> Mapping[str, Any]:
    """What building cost: figures by name, each with the machine."""
    found: dict[str, Any] = json.loads(_note(home).read_text())
    return found


def note(home: Path, more: Mapping[str, Any]) -> None:
    """Keep what a part of building cost."""
    kept = noted(home) if _note(home).exists() else {}
    _note(home).write_text(json.dumps({**kept, **more}, indent=2) + "\n")


def _note(home: Path) -> Path:
    return home / "built.json"


def small_slug(chunks: int, number: int = 0) -> str:
    return f"small-{chunks}-{number}"


def small_sizes(size: int) -> Mapping[int, int]:
    """How many small tenants of how many chunks stand beside a large one of this size."""
    return SMALL[max(least for least in SMALL if least <= size)]


async def _load(server: Server, size: int, pool: Pool, made: Corpus | None) -> None:
    loading.hurry(server.owner_dsn, True)
    for chunks, count in small_sizes(size).items():
        part = corpus.load(pool, chunks, Settings.load().cache / "bench-search")
        for number in range(count):
            await _tenant(server, small_slug(chunks, number), pool, part, alike=False)
    if made is not None:
        await _tenant(server, LARGE, pool, made, alike=True)
    await asyncio.to_thread(loading.tidy, server.owner_dsn)
    loading.hurry(server.owner_dsn, False)


async def _tenant(server: Server, slug: str, pool: Pool, made: Corpus, *, alike: bool) -> None:
    """A tenant with its collections and content, and an employee of it."""
    tenant = await tenants.create(server.owner_dsn, slug, slug)
    reader = await users.create(server.db, tenant.id, _READER, "none", Role.EMPLOYEE)
    furnished = await loading.furnish(server.db, tenant.id, f"user:{reader.user_id}" if alike else None)
    await loading.load(server.db, server.owner_dsn, furnished, pool, made)


async def _finish(server: Server, home: Path, machine: Callable[[], Any]) -> None:
    """Blocks and the index, where they are due; then what is on the disk."""
    tenant_id, on = (await tenants.get(server.db, LARGE)).id, machine()
    merged = await measuring.merge_all(server.db, tenant_id)
    if merged["chunks"]:
        note(home, {"merging": {**merged, "machine": on}})
    seconds = await measuring.index(server.db, tenant_id)
    if seconds is not None:
        note(home, {"index": {"seconds": seconds, "machine": on}})
    if merged["chunks"] or seconds is not None or "disk" not in noted(home):
        await asyncio.to_thread(loading.tidy, server.owner_dsn)
        note(home, {"disk": measuring.disk(server.owner_dsn, tenant_id)})
