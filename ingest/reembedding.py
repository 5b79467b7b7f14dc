"""A tenant's whole stock embedded once more, by another model, beside the vectors that are searched meanwhile.

What is made is kept batch by batch, and what is missing is asked of the database: whatever ends the process, the next
one goes on, and documents that came in meanwhile are in the count.
"""

from collections.abc import AsyncIterator
from uuid import UUID

from inference.interfaces import Embedder
from ingest.embedding import AHEAD, Batches
from storage import embedding_sets
from storage.database import Database


async def fill(db: Database, tenant_id: UUID, embedder: Embedder) -> AsyncIterator[int]:
    """Make the vectors that the embedder's set lacks, until it lacks none; tells how many it has made by now.

    Identical texts are embedded once. Questions go first, as in ingestion. Inside `embedding_sets.changing`. Errors:
    those of the embedder; EmbeddingSetMismatch where there is no such set.
    """
    batches = Batches(db)
    made, more = 0, True
    while more:
        # Chunks get ever higher numbers, but an older one may have got its words while others were embedded.
        more, after = False, 0
        while wanted := await embedding_sets.lacking(db, tenant_id, embedder.id, after=after, limit=AHEAD):
            more, after = True, wanted[-1].chunk_id
            left = await embedding_sets.take_over(db, tenant_id, embedder.id, wanted)
            made += len(wanted) - len(left)
            yield made
            async for part, vectors in batches.made(embedder, left):
                made += await embedding_sets.add(db, tenant_id, embedder.id, part, vectors)
                yield made
