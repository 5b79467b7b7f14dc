"""The running server follows a swap of vectors, tenant by tenant, without being told."""

from collections.abc import AsyncIterator

import pytest

from core.errors import ModelMissing
from core.settings import Settings
from inference.interfaces import Embedder
from ingest.reembedding import fill
from policy.egress import Policy
from storage import embedding_sets
from tests.fakes.embedder import FakeEmbedder
from tests.integration.api.conftest import Side, Site

OLD, NEW = "fake:bag-64:1", "ollama:new:1"


class Models:
    """What can be opened by now, and what was."""

    def __init__(self) -> None:
        self.new = NEW
        self.gone = False
        self.opened: list[FakeEmbedder] = []

    async def __call__(self, settings: Settings, _: Policy) -> Embedder:
        if settings.embed_provider == "auto":
            made = FakeEmbedder(OLD)
        elif self.gone:
            raise ModelMissing
        else:
            assert settings.embed_model == "new"
            made = FakeEmbedder(self.new, 24)
        self.opened.append(made)
        return made


@pytest.fixture
async def models(site: Site) -> AsyncIterator[Models]:
    """Both tenants were furnished by the old one."""
    made = Models()
    await site.runtime.close()
    site.runtime.open_embedder = made
    yield made


async def swap(site: Site, side: Side) -> None:
    embedder = FakeEmbedder(NEW, 24)
    await embedding_sets.begin(site.runtime.db, side.tenant.id, NEW, 24)
    async for _ in fill(site.runtime.db, side.tenant.id, embedder):
        pass
    assert await embedding_sets.complete(site.runtime.db, side.tenant.id, NEW)
    assert await embedding_sets.swap(site.runtime.db, side.tenant.id)


async def searched(site: Site, side: Side, query: str = "hotel caps") -> tuple[int, list[str] | str]:
    """The documents found, or the code of the error."""
    async with site.client(side.tokens["admin"]) as client:
        reply = await client.post("/v1/search", json={"query": query})
    shown = reply.json()
    if reply.status_code != 200:
        return reply.status_code, shown["code"]
    assert all(hit["scores"]["vector"] is not None for hit in shown["hits"])
    return reply.status_code, sorted({hit["document"] for hit in shown["hits"]})


async def test_the_next_search_goes_by_the_vectors_that_are_active(site: Site, models: Models) -> None:
    before = await searched(site, site.demo)
    assert before == (200, ["board.md", "travel.md"])
    await swap(site, site.demo)
    assert await searched(site, site.demo) == before
    assert await searched(site, site.other) == before
    assert [one.id for one in models.opened] == [OLD, NEW]
    assert await embedding_sets.swap(site.runtime.db, site.demo.tenant.id, back=True)
    assert await searched(site, site.demo) == before
    # Each is opened once, whoever asks for it, and closed in the end.
    assert len(models.opened) == 2
    await site.runtime.close()
    assert all(one.closed for one in models.opened)


async def test_what_is_uploaded_after_a_swap_is_embedded_by_the_new_model(site: Site, models: Models) -> None:
    await swap(site, site.demo)
    async with site.client(site.demo.tokens["admin"]) as client:
        await client.post("/v1/documents", files={"file": ("mill.md", b"# Parking\n\nBehind the mill.")},
                          data={"collection": "open"})  # fmt: skip
    await site.context.worker.drain(site.demo.tenant.id)
    assert "mill.md" in (await searched(site, site.demo, "parking behind the mill"))[1]
    active, previous = await embedding_sets.listing(site.runtime.db, site.demo.tenant.id)
    assert (active.embedder_id, active.missing, previous.missing) == (NEW, 0, 1)


async def test_a_question_is_answered_from_the_vectors_that_are_active(site: Site, models: Models) -> None:
    await swap(site, site.demo)
    agents = [await site.runtime.models(side.tenant.id) for side in (site.demo, site.other)]
    assert [one.embedder.id for one in agents] == [NEW, OLD]


@pytest.mark.threat(106)
async def test_a_search_is_refused_where_the_model_of_the_vectors_is_another_by_now(site: Site, models: Models) -> None:
    await swap(site, site.demo)
    models.new = "ollama:new:2"
    for _ in range(2):
        assert await searched(site, site.demo) == (409, "embedding_set_mismatch")
    assert (await searched(site, site.other))[0] == 200


async def test_a_search_says_that_the_model_of_the_vectors_is_gone(site: Site, models: Models) -> None:
    await swap(site, site.demo)
    models.gone = True
    assert await searched(site, site.demo) == (503, "model_missing")
    models.gone = False
    assert (await searched(site, site.demo))[0] == 200


async def test_the_sets_of_ones_own_tenant_are_told(site: Site, models: Models) -> None:
    db = site.runtime.db

    async def told(side: Side) -> tuple[bool, list[tuple[object, ...]]]:
        async with site.client(side.tokens["admin"]) as client:
            shown = (await client.get("/v1/embedding-sets")).json()
        parts = ("embedder_id", "role", "filled", "vectors", "missing")
        return shown["running"], [tuple(one[part] for part in parts) for one in shown["sets"]]

    running, [(*_, vectors, missing)] = await told(site.demo)
    assert (running, missing) == (False, 0)
    old = (OLD, "active", True, vectors, 0)
    await embedding_sets.begin(db, site.demo.tenant.id, NEW, 24)
    async with embedding_sets.changing(db, site.demo.tenant.id):
        assert await told(site.demo) == (True, [old, (NEW, "candidate", False, 0, vectors)])
        assert await told(site.other) == (False, [old])
    await swap(site, site.demo)
    assert await told(site.demo) == (
        False,
        [(NEW, "active", True, vectors, 0), (OLD, "previous", True, vectors, 0)],
    )
