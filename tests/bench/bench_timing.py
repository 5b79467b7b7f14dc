"""Whether the time of a 404 tells an id of somebody else's from one that nobody has.

`python -m tests.bench.bench_timing` asks routes, in rounds: for the id of another's, and twice for an id that nobody
has, in a turning order. Of each two kinds it counts how often somebody who takes the slower reply for that of the id
that exists would be right; between the two that nobody has, that is noise. Prints one JSON object.
"""

import asyncio
import json
import re
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from api.app import create_app
from api.runtime import Runtime
from core.settings import Settings
from ingest.files import FileStore
from ingest.pipeline import Ingestor
from policy.egress import Policy
from storage import embedded, migrations, tenants
from storage.database import Database
from tests.fakes.chat import ScriptedChat
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.reader import DirectReader
from tests.integration.api.conftest import ScriptedAgent, Site, furnish
from tests.integration.api.table import send
from tests.integration.api.test_matrix import BY_NAME, askers, expected, operations

ROUNDS = 100
WARM = 5
KINDS = ("theirs", "nobodys", "nobodys again")
# Across the wall between tenants, and within one.
ASKERS = ("admin, another tenant's", "employee, an admin's")


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    """The application over a PostgreSQL of its own, with two tenants; its models are played."""
    with tempfile.TemporaryDirectory(prefix="intramuros-timing-") as folder:
        settings = Settings.load(home=Path(folder) / "home", cache=Path(folder) / "cache", serve_worker=False)
        with embedded.start(settings.home) as server:
            await migrations.migrate(server.owner_dsn)
            db = await Database.open(server.app_dsn, pool_size=4)
            runtime = Runtime(settings, Policy.of(settings), db, FileStore(settings.home), server.owner_dsn)
            runtime.open_chat, runtime.open_embedder = _played(ScriptedChat()), _played(FakeEmbedder())
            runtime.ingestor = Ingestor(db, runtime.embedder, runtime.files, settings, DirectReader(settings))
            sides = [
                await furnish(runtime, await tenants.create(server.owner_dsn, slug, slug)) for slug in ("demo", "other")
            ]
            app, agent = create_app(settings, lambda _: nullcontext(runtime)), ScriptedAgent()
            async with app.router.lifespan_context(app):
                yield Site(app, runtime, app.state.context, agent, ScriptedChat(), *sides)
            await runtime.close()
            await db.close()


def _played(model: Any) -> Any:
    async def open_model(*_: Any) -> Any:
        return model

    return open_model


async def measured(site: Site) -> list[dict[str, Any]]:
    """A row for each route with an id and each asker whom it answers with 404."""
    rows = []
    everybody = await askers(site)
    for asker in ASKERS:
        token, ids = everybody[asker]
        async with site.client(token) as client:
            for name in operations(site.app):
                wanted = [one for one in re.findall(r"\{(\w+)\}", name) if one != "chunk_id"]
                if any(one in ids for one in wanted) and expected(asker, name) == 404:
                    times = await _rounds(client, name, ids)
                    rows.append({"route": name, "asker": asker, **_row(times)})
    return rows


async def _rounds(client: httpx.AsyncClient, name: str, ids: Mapping[str, object]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number in range(ROUNDS + WARM):
        for turn in range(len(KINDS)):
            kind = KINDS[(number + turn) % len(KINDS)]
            asked = ids if kind == "theirs" else {one: 2_000_000_000 if one == "chunk_id" else uuid4() for one in ids}
            begin = time.perf_counter()
            reply = await send(client, BY_NAME[name], asked)
            taken = time.perf_counter() - begin
            assert reply.status_code == 404, (name, reply.text)
            if number >= WARM:
                times[kind].append(taken)
    return times


def _row(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    theirs, nobodys, again = (times[kind] for kind in KINDS)
    return {
        "theirs_ms": round(1000 * statistics.median(theirs), 3),
        "nobodys_ms": round(1000 * statistics.median([*nobodys, *again]), 3),
        "right": round(100 * right(theirs, nobodys), 1),
        "noise": round(100 * right(again, nobodys), 1),
    }


def right(one: Sequence[float], other: Sequence[float]) -> float:
    """How often a time of `one` is the longer of the two, over all pairs; a tie counts half."""
    wins = sum((a > b) + 0.5 * (a == b) for a in one for b in other)
    return wins / (len(one) * len(other))


def section(figures: Mapping[str, Any], where: str) -> str:
    """The part of the page of benchmarks."""
    rows = figures["rows"]
    worst, noise = (max(abs(row[key] - 50) for row in rows) for key in ("right", "noise"))
    lines = [
        f"| `{row['route']}` | {row['asker']} | {row['theirs_ms']:.2f} | {row['nobodys_ms']:.2f} "
        f"| {row['right']:.1f} | {row['noise']:.1f} |"
        for row in rows
    ]
    head = (
        "| route | asker, id | that id, ms | nobody's, ms | guessed right, % | noise, % |\n|---|---|---|---|---|---|\n"
    )
    words = (
        f"Each route is asked {figures['rounds']} times for an id of somebody else's, and twice as often for one that "
        "nobody has, in turn; medians, over a real database. Guessed right: of two such replies, how often the slower "
        "one is that of the id that exists; 50 is a coin. Noise: the same between ids that nobody has. Farthest from "
        f"50: {worst:.1f} points where the id exists, {noise:.1f} where it does not. That both run the same statements "
        f"and send the same bytes is for the tests. {where}"
    )
    return f"## Time of a refusal\n\n{words}\n\n{head}" + "\n".join(lines)


async def main() -> None:
    async with site() as opened:
        rows = await measured(opened)
    print(json.dumps({"rounds": ROUNDS, "rows": rows}))


if __name__ == "__main__":
    asyncio.run(main())
