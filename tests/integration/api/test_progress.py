"""Who watches the documents is told of each as it changes, and of nobody else's."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from api.routes import progress
from api.views import DocumentView, GoneView, QueueView
from api.watch import Told, Watch
from api.watch import events as watch_events
from core.errors import DatabaseUnavailable
from core.records import Document, DocumentState
from ingest.embedding import BATCH
from ingest.pipeline import Ingestor
from storage import documents, users
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.reader import LineReader
from tests.integration.api.conftest import Side, Site, events

TEXT = b"# Leave\n\n## Length\n\nEmployees take sixteen weeks of leave at full pay.\n"


def watch(site: Site, side: Side | None = None) -> Watch:
    return Watch(site.runtime.db, (side or site.demo).principals["admin"])


async def queued(site: Site, name: str, side: Side | None = None) -> Document:
    tenant = (side or site.demo).tenant
    return await site.runtime.ingestor.accept_upload(tenant.id, "open", name, TEXT + name.encode())


def documents_of(told: list[Any]) -> dict[str, str]:
    return {one.path: one.state for one in told if isinstance(one, DocumentView)}


def queue_of(told: list[Any]) -> QueueView | None:
    return next((one for one in told if isinstance(one, QueueView)), None)


async def test_each_change_is_told_once(site: Site) -> None:
    watching = watch(site)
    await watching.look()
    assert await watching.look() == []
    document = await queued(site, "a.md")
    told = await watching.look()
    assert documents_of(told) == {"a.md": "queued"}
    assert queue_of(told) == QueueView(waiting=1, processing=0, seconds_left=None)
    assert await watching.look() == []
    await site.runtime.ingestor.process(site.demo.tenant.id, document.id)
    told = await watching.look()
    assert documents_of(told) == {"a.md": "ready"}
    assert queue_of(told) == QueueView(waiting=0, processing=0, seconds_left=0.0)
    assert await watching.look() == []


async def test_a_deletion_is_told_once(site: Site) -> None:
    document = await queued(site, "a.md")
    watching, late = watch(site), watch(site)
    await watching.look()
    await site.runtime.ingestor.delete(site.demo.principals["admin"], document.id)
    told = await watching.look()
    assert [one for one in told if isinstance(one, GoneView)] == [GoneView(id=document.id)]
    assert ("gone", {"id": str(document.id)}) in list(watch_events(told))
    assert await watching.look() == []
    # Whoever began to look meanwhile is told of it as well.
    assert GoneView(id=document.id) in await late.look()


async def test_nothing_is_told_of_another_tenant(site: Site) -> None:
    watching = watch(site, site.other)
    await watching.look()
    document = await queued(site, "a.md")
    assert await watching.look() == []
    await site.runtime.ingestor.delete(site.demo.principals["admin"], document.id)
    assert await watching.look() == []


async def test_the_steps_of_a_document_come_with_an_estimate(site: Site) -> None:
    db, tenant_id = site.runtime.db, site.demo.tenant.id
    ingestor = Ingestor(db, FakeEmbedder(), site.runtime.files, site.runtime.settings, LineReader())
    text = "\n".join(f"Sentence {number}." for number in range(20))
    document = await ingestor.accept_upload(tenant_id, "open", "long.md", text.encode())
    watching = watch(site)
    seen: list[DocumentView] = []

    async def look() -> None:
        seen.extend(one for one in await watching.look() if isinstance(one, DocumentView) and one.path == "long.md")

    await look()
    finish = documents.finish

    async def watched(*args: Any, last: Any, **kwargs: Any) -> Any:
        await look()
        # In two halves, to be seen half-way.
        ids, vectors = last
        half = len(ids) // 2
        await documents.add_vectors(*args, ids[:half], vectors[:half], embedder_id=kwargs["embedder_id"])
        await look()
        return await finish(*args, last=(ids[half:], vectors[half:]), **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "finish", watched)
        await ingestor.process(tenant_id, document.id)
    await look()
    steps = [(one.progress.step, one.progress.done, one.progress.total) for one in seen if one.progress]
    # All but the last part was stored before, and of that a half.
    before = (20 - 1) // BATCH * BATCH
    assert steps == [("waiting", 0, 0), ("embedding", before, 20), ("embedding", before + (20 - before) // 2, 20)]
    assert seen[-1].progress is None
    assert seen[2].progress
    assert seen[2].progress.seconds_left is not None
    assert (await documents.get(db, users.operator(tenant_id), document.id)).state is DocumentState.READY


async def test_the_stream_sends_what_is_seen_and_ends_with_the_right_to_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = site.demo.principals["admin"]

    class Once(Watch):
        async def look(self) -> list[Told]:
            told = await super().look()
            await users.set_disabled(site.runtime.db, admin.tenant_id, admin.user_id, True)
            return told

    monkeypatch.setattr(progress, "Watch", Once)
    monkeypatch.setattr(progress, "LOOK", 0.0)
    site.app.state.context = replace(site.context, recheck=0.0)
    document = await queued(site, "a.md")
    async with asyncio.timeout(30), site.client(site.demo.tokens["admin"]) as client:
        reply = await client.get("/v1/documents/events")
    assert reply.headers["content-type"].startswith("text/event-stream")
    sent = [(name, json.loads(data)) for name, data in events(reply.text)]
    assert [data["id"] for name, data in sent if name == "document" and data["path"] == "a.md"] == [str(document.id)]
    assert ("queue", {"waiting": 1, "processing": 0, "seconds_left": None}) in sent
    assert (sent[-1][0], sent[-1][1]["code"]) == ("failed", "unauthenticated")


async def test_a_database_that_is_lost_ends_the_stream_with_words(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lost(Watch):
        async def look(self) -> list[Told]:
            raise DatabaseUnavailable

    monkeypatch.setattr(progress, "Watch", Lost)
    async with asyncio.timeout(30), site.client(site.demo.tokens["admin"]) as client:
        reply = await client.get("/v1/documents/events")
    ((name, data),) = events(reply.text)
    assert (name, json.loads(data)["code"]) == ("failed", "database_unavailable")
