"""Which models answer, and what they were found to be able to do on this machine."""

import asyncio

from fastapi import APIRouter

from api.auth import Admin
from api.certified import ModelsView
from api.context import Open

router = APIRouter(prefix="/v1/models-in-use", tags=["health"])


@router.get("")
async def models_in_use(principal: Admin, runtime: Open) -> ModelsView:
    """The chat model with its certificate, what grades, what takes over, and the embedder."""
    from inference import certificates  # late: it imports langchain

    models = await runtime.models(principal.tenant_id)
    found = await asyncio.to_thread(certificates.read, runtime.settings.home, models.chat.identity)
    return ModelsView.of(models, found)
