"""Passages that are kept from search because they read like instructions to the model."""

from typing import Annotated

from fastapi import APIRouter, Query

from api.auth import Admin
from api.context import Open
from api.views import QuarantineView
from storage import tending

router = APIRouter(prefix="/v1/quarantine", tags=["documents"])


@router.get("")
async def list_quarantine(
    principal: Admin, runtime: Open, collection: Annotated[str | None, Query(max_length=100)] = None
) -> QuarantineView:
    """Every passage that waits to be released, of one collection or of all."""
    return QuarantineView.of(await tending.quarantined(runtime.db, principal, collection))
