"""From a registered document to a searchable one, as the program does it: words first, then vectors."""

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from core.records import Chunk, Document, ParsedDocument
from storage import documents
from storage.database import Database

Embed = Callable[[list[str]], Awaitable[NDArray[np.float32]]]


async def store(
    db: Database,
    tenant_id: UUID,
    document: Document,
    parsed: ParsedDocument,
    chunks: Sequence[Chunk],
    embed: Embed,
    *,
    embedder_id: str,
    keep: int = documents.KEEP,
) -> Document:
    """Store a revision of the registered bytes with all its vectors."""
    await documents.store_revision(db, tenant_id, document.id, parsed, chunks, sha256=document.sha256, keep=keep)
    while missing := await documents.missing_vectors(db, tenant_id, document.id, embedder_id=embedder_id, limit=1000):
        vectors = await embed([chunk.text for chunk in missing])
        chunk_ids = [chunk.chunk_id for chunk in missing]
        await documents.add_vectors(db, tenant_id, document.id, chunk_ids, vectors, embedder_id=embedder_id)
    return await documents.finish(db, tenant_id, document.id, embedder_id=embedder_id, sha256=document.sha256)
