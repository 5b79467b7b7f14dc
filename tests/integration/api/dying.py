"""A process that is killed (SIGKILL, by itself) at a chosen call: python -m tests.integration.api.dying ...

Arguments: the app role's address, the home folder, the tenant's id, what to do (`upload` the files of the folder `in`,
`work` on the queue, or `ingest` the folder), and where to die: a name of POINTS.
"""

import asyncio
import sys
from pathlib import Path
from typing import Final
from uuid import UUID

from api.runtime import Runtime
from api.worker import Worker
from core.settings import Settings
from ingest import pipeline, processing
from ingest.files import FileStore
from ingest.queue import Queue
from policy.egress import Policy
from storage import documents
from storage.database import Database
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.reader import LineReader
from tests.killing import Point, after, arm, before

# Where to die.
POINTS: Final[dict[str, Point]] = {
    "stored the file": (FileStore, "adopt", after),
    "registered": (documents, "register", after),
    "queued": (Queue, "fill", after),
    "began to read": (LineReader, "read", before),
    "took out a file": (processing.Processor, "_child", after),
    "read": (documents, "store_revision", before),
    "stored what was read": (documents, "store_revision", after),
    "began to embed": (FakeEmbedder, "embed_passages", before),
    "stored some vectors": (documents, "add_vectors", after),
    "made all vectors": (documents, "finish", before),
    "finished": (documents, "finish", after),
}


async def main(dsn: str, home: str, tenant: str, what: str, where: str) -> None:
    arm(POINTS[where])
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
