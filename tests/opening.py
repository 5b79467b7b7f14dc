"""Both models opened and closed together, as no part of the program needs them."""

from core.settings import Settings
from inference.select import Models, open_chat, open_embedder
from policy.egress import Policy


class Opened(Models):
    """Models that the test closes by itself."""

    async def close(self) -> None:
        """Safe to call twice."""
        await self.chat.close()
        await self.embedder.close()


async def open_models(settings: Settings, policy: Policy) -> Opened:
    """Errors: as inference.select.open_chat."""
    return Opened(await open_chat(settings, policy), await open_embedder(settings, policy))
