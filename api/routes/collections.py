"""Collections: what one can ask."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from api.auth import Admin, User
from api.bodies import Body, Name
from api.context import Open
from api.views import CollectionsView, CollectionView
from storage import collections

router = APIRouter(prefix="/v1/collections", tags=["collections"])


class CollectionBody(Body):
    """A new collection's name, and who may read it: `everyone`, `group:NAME` or `user:ID`."""

    name: Name
    grantees: Annotated[list[Name], Field(max_length=100, default_factory=lambda: [collections.EVERYONE])]


@router.get("")
async def list_collections(principal: User, runtime: Open) -> CollectionsView:
    """The collections that one may ask."""
    found = await collections.list_visible(runtime.db, principal)
    return CollectionsView(collections=tuple(map(CollectionView.of, found)))


@router.post("", status_code=201)
async def create_collection(body: CollectionBody, principal: Admin, runtime: Open) -> CollectionView:
    """Make a collection. Administrators read every one."""
    made = await collections.create(runtime.db, principal.tenant_id, body.name, body.grantees, by=principal.user_id)
    return CollectionView.of(made)
