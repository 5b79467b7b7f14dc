"""A reranker model on a private server: `POST .../rerank`, as llama.cpp's server, vLLM and others answer it."""

from collections.abc import Sequence

import httpx
import numpy as np

from core.errors import InferenceError, ModelMissing, ModelTimedOut, ModelUnavailable
from core.settings import Settings, variable
from inference.interfaces import Vectors
from inference.openai import NO_KEY, Client
from policy.egress import Policy


class RerankServer:
    """Implements `inference.interfaces.Reranker` on the server that settings name."""

    # As late interaction's: no model was at hand to measure another.
    weight = 0.7

    def __init__(self, settings: Settings, policy: Policy) -> None:
        """Connects to nothing yet. Raises ModelMissing when settings name no server."""
        if not settings.rerank_url:
            raise ModelMissing(f"No rerank server is named. Set {variable('rerank_url')}.")
        self._name = settings.rerank_model or "default"
        self.id = f"server:{self._name}"
        key = settings.rerank_api_key.get_secret_value() if settings.rerank_api_key else NO_KEY
        self._client = Client(settings.rerank_url.rstrip("/"), key, policy, "model", settings.rerank_timeout)

    async def scores(self, query: str, passages: Sequence[str]) -> Vectors:
        body = {"model": self._name, "query": query, "documents": list(passages)}
        try:
            results = (await self._client.post("/rerank", body))["results"]
            found = {int(row["index"]): float(row["relevance_score"]) for row in results}
            return np.array([found[at] for at in range(len(passages))], np.float32)
        except httpx.HTTPStatusError as error:
            raise InferenceError(f"The rerank server answered HTTP {error.response.status_code}.") from error
        except httpx.TimeoutException as error:
            raise ModelTimedOut from error
        except httpx.HTTPError as error:
            raise ModelUnavailable(f"The rerank server at {variable('rerank_url')} does not answer.") from error
        except (ValueError, KeyError, TypeError) as error:
            raise InferenceError("The rerank server's reply could not be read.") from error

    async def close(self) -> None:
        await self._client.close()
