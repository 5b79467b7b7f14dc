"""What one can ask, for the page before the first question."""

from fastapi import APIRouter, Request

from api import language, suggestions
from api.auth import User
from api.context import Open
from api.views import CollectionView, OverviewView
from storage import collections

router = APIRouter(prefix="/v1", tags=["overview"])


@router.get("/overview")
async def overview(principal: User, runtime: Open, request: Request) -> OverviewView:
    """The collections that one may ask, how many documents they hold, and three questions that these answer."""
    visible = await collections.list_visible(runtime.db, principal)
    return OverviewView(
        collections=tuple(map(CollectionView.of, visible)),
        documents=sum(collection.documents for collection in visible),
        updated_at=max(filter(None, (collection.updated_at for collection in visible)), default=None),
        questions=await suggestions.suggest(runtime.db, principal, language.preferred(request)),
    )
