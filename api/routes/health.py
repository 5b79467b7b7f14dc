"""Whether the process answers, and whether it can do its work."""

from fastapi import APIRouter, Response

from api.auth import Anyone
from api.context import Open
from api.readiness import readiness
from api.views import HealthView, ReadyView

router = APIRouter(tags=["health"], dependencies=[Anyone])


@router.get("/healthz")
async def health() -> HealthView:
    """The process is up."""
    return HealthView()


@router.get("/readyz")
async def ready(runtime: Open, response: Response) -> ReadyView:
    """Database, schema, models and policy are in order; 503 with the reasons where one is not."""
    view = await readiness(runtime)
    response.status_code = 200 if view.ready else 503
    return view
