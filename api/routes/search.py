"""Searching without a model's answer."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from api.auth import User
from api.bodies import Body, Day, Name, Question
from api.context import Open
from api.views import SearchView
from storage import search

router = APIRouter(prefix="/v1", tags=["search"])


class SearchBody(Body):
    """What to search for, in all collections that one may ask or in these, in what was in force on a day (today)."""

    query: Question
    collections: Annotated[list[Name] | None, Field(max_length=100)] = None
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    as_of: Day | None = None


@router.post("/search")
async def search_passages(body: SearchBody, principal: User, runtime: Open) -> SearchView:
    """The passages nearest to a query, best first."""
    embedder = await runtime.embedder()
    vector = await embedder.embed_query(body.query)
    hits = await search.search(
        runtime.db,
        principal,
        body.query,
        vector,
        embedder_id=embedder.id,
        collections=body.collections,
        limit=body.limit,
        as_of=body.as_of,
    )
    return SearchView.of(body.query, hits)
