"""Collections: what one can ask."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field, StringConstraints

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


class OwnerBody(Body):
    """Whom to ask where a collection's documents do not answer; null: nobody."""

    owner_contact: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)] | None


class ApprovalBody(Body):
    """Who, beside administrators, approves answers that cite a collection: `group:NAME`, `user:ID` ...; null: nobody
    has to.
    """

    approvers: Annotated[list[Name], Field(max_length=100)] | None


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


@router.patch("/{collection_id}")
async def set_owner(collection_id: UUID, body: OwnerBody, principal: Admin, runtime: Open) -> CollectionView:
    """Say whom to ask where a collection's documents do not answer."""
    changed = await collections.set_owner(
        runtime.db, principal.tenant_id, collection_id, body.owner_contact, by=principal.user_id
    )
    return CollectionView.of(changed)


@router.put("/{collection_id}/approval")
async def set_approval(collection_id: UUID, body: ApprovalBody, principal: Admin, runtime: Open) -> CollectionView:
    """Say whether answers that cite a collection are shown only once somebody approved them, and who may."""
    changed = await collections.set_approvers(
        runtime.db, principal.tenant_id, collection_id, body.approvers, by=principal.user_id
    )
    return CollectionView.of(changed)
