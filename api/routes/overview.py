"""What one can ask, for the page before the first question."""

from fastapi import APIRouter, Request

from api import language, suggestions
from api.auth import User
from api.context import Open
from api.views import CollectionView, OverviewView
from core.records import DocumentState
from storage import collections, documents

router = APIRouter(prefix="/v1", tags=["overview"])


@router.get("/overview")
async def overview(principal: User, runtime: Open, request: Request) -> OverviewView:
    """The collections that one may ask, how many documents they hold, and three questions that these answer."""
    visible = await collections.list_visible(runtime.db, principal)
    found = await documents.listing(runtime.db, principal)
    ready = [document for document in found if document.state is DocumentState.READY]
    return OverviewView(
        collections=tuple(map(CollectionView.of, visible)),
        documents=len(ready),
        updated_at=max((document.updated_at for document in ready), default=None),
        questions=await suggestions.suggest(runtime.db, principal, ready, language.preferred(request)),
    )
