"""A process that is killed (SIGKILL, by itself) at a chosen call: python -m tests.integration.api.dying ...

Arguments: the app role's address, the home folder, the tenant's id, what to do (`upload` the files of the folder `in`,
`work` on the queue, or `ingest` the folder), and where to die: a name of POINTS.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from api.runtime import Runtime
from api.worker import Worker
from core.settings import Settings
from ingest import pipeline
from ingest.files import FileStore
from ingest.queue import Queue
from policy.egress import Policy
from storage import documents
from storage.database import Database
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.reader import LineReader

Call = Callable[..., Awaitable[Any]]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(_: Call) -> Call:
    async def killed(*args: Any, **kwargs: Any) -> None:
        die()

    return killed


def after(real: Call) -> Call:
    async def killed(*args: Any, **kwargs: Any) -> None:
        await real(*args, **kwargs)
        die()

    return killed


# Where to die: of what, which function, and before or after it.
POINTS: Final[dict[str, tuple[Any, str, Callable[[Call], Call]]]] = {
    "stored the file": (FileStore, "adopt", after),
    "registered": (documents, "register", after),
    "queued": (Queue, "fill", after),
    "began to read": (LineReader, "read", before),
    "took out a file": (pipeline.Ingestor, "_child", after),
    "read": (documents, "store_revision", before),
    "stored what was read": (documents, "store_revision", after),
    "began to embed": (FakeEmbedder, "embed_passages", before),
    "stored some vectors": (documents, "add_vectors", after),
    "stored all vectors": (documents, "finish", before),
    "finished": (documents, "finish", after),
}


async def main(dsn: str, home: str, tenant: str, what: str, where: str) -> None:
    owner, name, way = POINTS[where]
    setattr(owner, name, way(getattr(owner, name)))
    settings = Settings(home=Path(home))
    db = await Database.open(dsn, pool_size=4)
    runtime = Runtime(settings, Policy.of(settings), db, FileStore(settings.home))
    runtime.ingestor = pipeline.Ingestor(db, FakeEmbedder(), runtime.files, settings, LineReader())
    paths = sorted((settings.home / "in").iterdir())
    if what == "upload":
        for path in paths:
            await runtime.ingestor.accept_upload(UUID(tenant), "open", path.name, path.read_bytes())
    elif what == "ingest":
        async for _ in runtime.ingestor.ingest_folder(UUID(tenant), "open", settings.home / "in"):
            pass
    else:
        worker = Worker(runtime)
        async with worker.working():
            worker.wake(UUID(tenant))
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
