"""A reranker on a private server, and which reranker is chosen."""

from typing import Any

import pytest

from core.errors import BootRefused, InferenceError, ModelMissing, ModelRefused, ModelUnavailable
from inference.late import LateInteraction
from inference.rerank_server import RerankServer
from inference.select import open_reranker
from policy.egress import Policy
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.server import Answer, JsonServer
from tests.unit.conftest import MakeSettings
from tests.unit.inference.test_late import WordEmbedder


def lengths(body: dict[str, Any]) -> tuple[int, Any]:
    """The longest document first, as real servers order their results."""
    results = [{"index": at, "relevance_score": float(len(text))} for at, text in enumerate(body["documents"])]
    return 200, {"results": sorted(results, key=lambda row: -row["relevance_score"])}


class RerankStub(JsonServer):
    """A rerank server."""

    def __init__(self, answer: Answer = lengths) -> None:
        super().__init__(answer, "/v1")


def opened(make_settings: MakeSettings, url: str, **values: Any) -> RerankServer:
    settings = make_settings(rerank_url=url, **values)
    return RerankServer(settings, Policy.of(settings))


async def test_scores_come_in_the_order_of_the_passages(make_settings: MakeSettings) -> None:
    with RerankStub() as server:
        reranker = opened(make_settings, server.url, rerank_model="bge-reranker", rerank_api_key="private")
        scores = await reranker.scores("cap", ["short", "the longest", "middle"])
        await reranker.close()
    assert scores.tolist() == [5, 11, 6]
    assert reranker.id == "server:bge-reranker"
    documents = ["short", "the longest", "middle"]
    body = {"model": "bge-reranker", "query": "cap", "documents": documents}
    assert server.requests == [("/v1/rerank", "Bearer private", body)]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((500, {}), "HTTP 500"),
        ((200, {"results": [{"index": 0, "relevance_score": 1}]}), "could not be read"),
        ((200, {"results": [{"index": 0}]}), "could not be read"),
        ((200, []), "could not be read"),
    ],
)
async def test_a_bad_reply_is_our_error(make_settings: MakeSettings, reply: tuple[int, Any], said: str) -> None:
    with RerankStub(lambda _: reply) as server:
        reranker = opened(make_settings, server.url)
        with pytest.raises(InferenceError, match=said):
            await reranker.scores("cap", ["one", "two"])
        await reranker.close()


async def test_a_silent_server_is_unavailable(make_settings: MakeSettings) -> None:
    reranker = opened(make_settings, "http://127.0.0.1:9/v1")
    with pytest.raises(ModelUnavailable, match="INTRAMUROS_RERANK_URL"):
        await reranker.scores("cap", ["one"])
    await reranker.close()


def test_a_server_outside_the_walls_is_refused(make_settings: MakeSettings) -> None:
    with pytest.raises(BootRefused, match="INTRAMUROS_RERANK_URL"):
        opened(make_settings, "http://8.8.8.8/v1")


async def test_what_reranks_follows_settings_and_embedder(make_settings: MakeSettings) -> None:
    plain, tokens = FakeEmbedder(), WordEmbedder()
    url = "http://127.0.0.1:9/v1"
    policy = Policy.of(make_settings())

    async def kind(embedder: FakeEmbedder, **values: Any) -> type | None:
        reranker = open_reranker(make_settings(**values), policy, embedder)
        if reranker is None:
            return None
        await reranker.close()
        return type(reranker)

    assert await kind(tokens) is LateInteraction
    assert await kind(plain) is None
    assert await kind(tokens, reranker="off", rerank_url=url) is None
    assert await kind(tokens, reranker="late", rerank_url=url) is LateInteraction
    assert await kind(plain, rerank_url=url) is RerankServer
    assert await kind(tokens, reranker="server", rerank_url=url) is RerankServer
    with pytest.raises(ModelRefused, match="INTRAMUROS_RERANKER"):
        await kind(plain, reranker="late")
    with pytest.raises(ModelMissing, match="INTRAMUROS_RERANK_URL"):
        await kind(plain, reranker="server")
