"""Late interaction: its arithmetic, and what it keeps."""

from collections.abc import Sequence

import numpy as np
import pytest

from inference.interfaces import QueryTokens, Vectors
from inference.late import LateInteraction
from tests.fakes.embedder import FakeEmbedder

AXES = {"hotel": 0, "cap": 1, "berlin": 2, "the": 3, "of": 4}
ROOM = 1_000_000  # bytes
RARE = {"the": 0.0, "of": 0.0}


def rows(text: str) -> Vectors:
    """A word's vector is its axis."""
    found = np.zeros((len(text.split()), 8), np.float32)
    for at, word in enumerate(text.split()):
        found[at, AXES.get(word, 7)] = 1
    return found


class WordEmbedder(FakeEmbedder):
    """Every word is a token; `asked` lists the passages that were embedded."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def query_tokens(self, text: str) -> QueryTokens:
        return QueryTokens(rows(text), np.array([RARE.get(word, 1.0) for word in text.split()], np.float32))

    async def passage_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        self.asked += texts
        return [rows(text) for text in texts]


async def test_each_token_of_the_query_takes_its_best_match() -> None:
    scores = await LateInteraction(WordEmbedder(), ROOM).scores("hotel cap", ["the cap of hotel", "cap cap", "the of"])
    assert scores == pytest.approx([1, 0.5, 0], abs=0.01)


async def test_common_tokens_do_not_count() -> None:
    late = LateInteraction(WordEmbedder(), ROOM)
    assert await late.scores("the cap of", ["cap", "the of"]) == pytest.approx([1, 0], abs=0.01)
    assert (await late.scores("the of", ["the of", ""])).tolist() == [0, 0]


async def test_eight_bits_are_enough() -> None:
    vectors = np.random.default_rng(1).standard_normal((40, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    class Random(WordEmbedder):
        async def passage_tokens(self, texts: Sequence[str]) -> list[Vectors]:
            return [vectors for _ in texts]

    exact = (rows("hotel cap") @ vectors.T).max(axis=1).mean()
    assert await LateInteraction(Random(), ROOM).scores("hotel cap", ["any"]) == pytest.approx([exact], abs=0.005)


async def test_passages_seen_lately_are_not_embedded_again() -> None:
    embedder = WordEmbedder()
    late = LateInteraction(embedder, ROOM)
    await late.scores("hotel", ["the hotel", "the cap", "the hotel"])
    assert embedder.asked == ["the hotel", "the cap"]
    assert await late.scores("cap", ["the cap", "berlin"]) == pytest.approx([1, 0], abs=0.01)
    assert embedder.asked == ["the hotel", "the cap", "berlin"]


async def test_the_passages_used_longest_ago_make_room() -> None:
    embedder = WordEmbedder()
    late = LateInteraction(embedder, cache_bytes=2 * (8 + 4))  # two passages of one word
    await late.scores("cap", ["hotel", "cap"])
    await late.scores("cap", ["hotel"])
    await late.scores("cap", ["berlin"])
    embedder.asked.clear()
    assert len(await late.scores("cap", ["hotel", "berlin", "cap"])) == 3
    assert embedder.asked == ["cap"]
    await late.scores("cap", [" ".join(["hotel"] * 10)])  # larger than all the room
    embedder.asked.clear()
    await late.scores("cap", ["cap"])
    assert embedder.asked == ["cap"]
