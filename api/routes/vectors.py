"""The vectors that a tenant is searched by, and those that may take their place."""

from fastapi import APIRouter

from api.auth import Admin
from api.context import Open
from api.vectors import EmbeddingSetsView
from storage import embedding_sets

router = APIRouter(prefix="/v1/embedding-sets", tags=["search"])


@router.get("")
async def list_embedding_sets(principal: Admin, runtime: Open) -> EmbeddingSetsView:
    """The sets of vectors, counted, which takes seconds where there are a million passages.

    `intramuros reembed` makes, swaps and removes them.
    """
    found = await embedding_sets.listing(runtime.db, principal.tenant_id)
    running = await embedding_sets.being_changed(runtime.db, principal.tenant_id)
    return EmbeddingSetsView.of(found, running=running)
