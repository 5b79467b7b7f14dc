"""Words that mean the same to this tenant."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field, StringConstraints

from api.auth import Admin
from api.bodies import Body
from api.context import Open
from api.explained import SynonymsView, SynonymView
from storage import synonyms

router = APIRouter(prefix="/v1/synonyms", tags=["search"])

Word = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=synonyms.CHARACTERS)]


class SynonymBody(Body):
    """Words and phrases that mean the same, in either language."""

    words: Annotated[list[Word], Field(min_length=2, max_length=synonyms.IN_A_GROUP)]


@router.get("")
async def list_synonyms(principal: Admin, runtime: Open) -> SynonymsView:
    """Every group of words that mean the same."""
    found = await synonyms.listing(runtime.db, principal.tenant_id)
    return SynonymsView(synonyms=tuple(map(SynonymView.of, found)))


@router.post("", status_code=201)
async def add_synonyms(body: SynonymBody, principal: Admin, runtime: Open) -> SynonymView:
    """Let words mean the same. Groups that hold one of them become one with it."""
    return SynonymView.of(await synonyms.add(runtime.db, principal.tenant_id, body.words, by=principal.user_id))


@router.delete("/{synonym_id}", status_code=204)
async def remove_synonyms(
    synonym_id: UUID,
    principal: Admin,
    runtime: Open,
    word: Annotated[str | None, Query(min_length=1, max_length=synonyms.CHARACTERS)] = None,
) -> None:
    """Remove a group, or one word of it."""
    await synonyms.remove(runtime.db, principal.tenant_id, synonym_id, word, by=principal.user_id)
