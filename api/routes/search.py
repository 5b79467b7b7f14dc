"""Searching without a model's answer."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from api.auth import Admin, User
from api.bodies import Name, Narrowed, Question
from api.context import Open
from api.explained import ExplanationView
from api.runtime import Runtime
from api.views import SearchView
from storage import audit, users

router = APIRouter(prefix="/v1", tags=["search"])


class SearchBody(Narrowed):
    """What to search for, in all that one may read or in what is left of it.

    `rerank`: score the best hits anew, as answers have it; left out: as settings say.
    """

    query: Question
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    rerank: bool | None = None


class ExplainBody(SearchBody):
    """As a search. `as_group`: what somebody would find who has no other rights than this group's and everyone's."""

    as_group: Name | None = None


@router.post("/search")
async def search_passages(body: SearchBody, principal: User, runtime: Open) -> SearchView:
    """The passages nearest to a query, best first."""
    retrieval = await runtime.retrieval(principal.tenant_id)
    hits = await retrieval.find(
        principal, body.query, filters=body.filters, limit=body.limit, rerank=_anew(body, runtime)
    )
    return SearchView.of(body.query, hits)


@router.post("/search/explain")
async def explain_search(body: ExplainBody, principal: Admin, runtime: Open) -> ExplanationView:
    """What a search finds, and how it came to it."""
    retrieval = await runtime.retrieval(principal.tenant_id)
    asker = principal
    if body.as_group is not None:
        asker = users.member(principal.tenant_id, body.as_group)
        await audit.record(runtime.db, principal.tenant_id, principal.user_id, "search.as_group")
    found = await retrieval.explain(
        asker, body.query, filters=body.filters, limit=body.limit, rerank=_anew(body, runtime)
    )
    return ExplanationView.of(body.query, body.filters, found)


def _anew(body: SearchBody, runtime: Runtime) -> bool:
    return runtime.settings.rerank_search if body.rerank is None else body.rerank
