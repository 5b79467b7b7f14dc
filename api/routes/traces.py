"""How answers came about, for administrators who say why they want to know; and who did, for those who asked."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field

from api.auth import Admin, User
from api.bodies import Body
from api.context import Open
from api.oversight import RunsView, TraceView
from api.views import ReadingsView, ReadingView
from storage import traces

router = APIRouter(prefix="/v1", tags=["oversight"])


class ReadBody(Body):
    """Why one wants to read what somebody else asked. It is kept, and shown to that person."""

    reason: Annotated[str, Field(max_length=2000)] = ""


@router.get("/runs")
async def list_runs(
    principal: Admin,
    runtime: Open,
    user: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> RunsView:
    """The last runs of all users, or of one by name: when, how long, what they took; not what was asked."""
    return RunsView.of(await traces.listing(runtime.db, principal, user=user, most=limit))


@router.post("/runs/{run_id}/trace")
async def read_trace(run_id: UUID, body: ReadBody, principal: User, runtime: Open) -> TraceView:
    """A whole run, step by step. The reason stands in the reading that the asker is shown; without one, nothing is."""
    return TraceView.of(await traces.read(runtime.db, principal, run_id, body.reason))


@router.get("/readings")
async def list_readings(principal: User, runtime: Open) -> ReadingsView:
    """Who of the administrators read how one's own answers came about, when, and why."""
    found = await traces.readings(runtime.db, principal)
    return ReadingsView(readings=tuple(map(ReadingView.of, found)))
