"""A process that embeds a tenant anew and is killed (SIGKILL, by itself): python -m tests.integration.ingest.dying ...

Arguments: the app role's address, the tenant's id, and where to die: a name of POINTS.
"""

import asyncio
import sys
from typing import Final
from uuid import UUID

from ingest.reembedding import fill
from storage import embedding_sets
from storage.database import Database
from tests.fakes.embedder import FakeEmbedder
from tests.killing import Point, after, arm, before

NEW: Final = "fake:bag-24:1"
WIDTH: Final = 24
POINTS: Final[dict[str, Point]] = {
    "began": (embedding_sets, "begin", after),
    "copied what is alike": (embedding_sets, "take_over", after),
    "began to embed": (FakeEmbedder, "embed_passages", before),
    "kept some vectors": (embedding_sets, "add", after),
    "made all": (embedding_sets, "complete", before),
    "called it whole": (embedding_sets, "complete", after),
    "swapped": (embedding_sets, "swap", after),
}


async def reembed(db: Database, tenant_id: UUID, embedder: FakeEmbedder) -> None:
    """From whatever is there to the swap, as the command line does it in two steps."""
    async with embedding_sets.changing(db, tenant_id):
        if await embedding_sets.active(db, tenant_id) != embedder.id:
            await embedding_sets.begin(db, tenant_id, embedder.id, embedder.dimension)
            async for _ in fill(db, tenant_id, embedder):
                pass
            assert await embedding_sets.complete(db, tenant_id, embedder.id)
            assert await embedding_sets.swap(db, tenant_id)


async def main(dsn: str, tenant: str, where: str) -> None:
    arm(POINTS[where])
    await reembed(await Database.open(dsn, pool_size=4), UUID(tenant), FakeEmbedder(NEW, WIDTH))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
