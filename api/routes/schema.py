"""The description of this interface for programs."""

from typing import Any

from fastapi import APIRouter, Request

from api.auth import User

router = APIRouter(prefix="/v1", include_in_schema=False)


@router.get("/openapi.json")
async def schema(request: Request, _: User) -> dict[str, Any]:
    """OpenAPI 3.1 of the routes under /v1."""
    described: dict[str, Any] = request.app.openapi()
    return described
