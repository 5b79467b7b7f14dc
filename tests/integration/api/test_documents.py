"""A document's life over HTTP: uploaded, ready, found, cited, deleted, gone."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID

import httpx
import pytest

from api.worker import Worker
from core.errors import ModelMissing
from storage import collections, documents, sessions
from tests.integration.api.conftest import Site
from tests.integration.api.samples import POLICY, answer_about
from tests.paths import PROJECT

NOTE = b"# Parental Leave\n\n## Length\n\nEmployees take sixteen weeks of parental leave at full pay, all at once.\n"

PDF = PROJECT / "deploy/demo/handbook/en/compliance/code-of-conduct.pdf"


async def _upload(client: httpx.AsyncClient, name: str, body: bytes, collection: str = "open") -> httpx.Response:
    return await client.post("/v1/documents", files={"file": (name, body)}, data={"collection": collection})


async def _settled(site: Site, document_id: str) -> dict[str, Any]:
    """The document once the worker is through with what is queued."""
    await site.context.worker.drain(site.demo.tenant.id)
    async with site.client(site.demo.tokens["admin"]) as client:
        shown: dict[str, Any] = (await client.get(f"/v1/documents/{document_id}")).json()
    return shown


async def test_from_upload_to_gone(site: Site) -> None:
    async with site.client(site.demo.tokens["admin"]) as admin, site.client(site.demo.tokens["employee"]) as employee:
        reply = await _upload(admin, "leave/parental.md", NOTE)
        assert reply.status_code == 202
        document_id = reply.json()["id"]
        shown = await _settled(site, document_id)
        assert (shown["state"], shown["reason"], shown["title"]) == ("ready", None, "Parental Leave")

        hit = (await employee.post("/v1/search", json={"query": "How long is parental leave?"})).json()["hits"][0]
        assert hit["document_id"] == document_id
        address = f"/v1/documents/{document_id}/passages/{hit['chunk_id']}"
        assert "sixteen weeks" in (await employee.get(address)).json()["text"]
        chunks = (await employee.get(f"/v1/documents/{document_id}/chunks")).json()["chunks"]
        assert [chunk["id"] for chunk in chunks] == [hit["chunk_id"]]

        receipt = (await admin.delete(f"/v1/documents/{document_id}")).json()
        assert receipt["counts"]["documents"] == 1
        assert receipt["counts"]["chunks"] == 1
        for path in (f"/v1/documents/{document_id}", f"/v1/documents/{document_id}/chunks", address):
            assert (await employee.get(path)).status_code == 404
        assert (await admin.delete(f"/v1/documents/{document_id}")).status_code == 404
        hits = (await employee.post("/v1/search", json={"query": "How long is parental leave?"})).json()["hits"]
        assert document_id not in {hit["document_id"] for hit in hits}


async def test_the_same_bytes_twice_are_one_document(site: Site) -> None:
    async with site.client(site.demo.tokens["admin"]) as client:
        first = (await _upload(client, "a.md", NOTE)).json()
        await _settled(site, first["id"])
        again = (await _upload(client, "b.md", NOTE)).json()
    assert (again["id"], again["state"]) == (first["id"], "ready")


UNREADABLE = (
    ("empty.md", b"", "empty_file"),
    ("program.exe", b"MZ" + b"\0" * 100, "unsupported_format"),
    ("note.pdf", NOTE, "mismatched_format"),
    ("cut.docx", b"PK\x03\x04 and no more", "damaged_file"),
)


async def test_what_cannot_be_read_fails_with_a_reason(site: Site) -> None:
    async with site.client(site.demo.tokens["admin"]) as client:
        for name, body, code in UNREADABLE:
            reply = await _upload(client, name, body)
            if reply.is_success:
                shown = await _settled(site, reply.json()["id"])
                assert (shown["state"], shown["reason_code"], shown["chunks"]) == ("failed", code, 0)
                assert shown["reason"]
            else:
                assert (reply.status_code, reply.json()["code"]) == (422, code)


NAMES = ("../../etc/passwd.md", "/etc/passwd.md", "..\\..\\x.md", "CON.md", "x" * 300 + ".md", "\u202edm.md", "a\0b.md")


async def test_a_file_name_is_a_label_never_a_path(site: Site) -> None:
    home = site.runtime.settings.home
    async with site.client(site.demo.tokens["admin"]) as client:
        for name in NAMES:
            reply = await _upload(client, name, NOTE + name.encode())
            assert reply.status_code in (202, 400, 422), name
            if reply.is_success:
                assert not {"..", "", "etc"} & set(reply.json()["path"].split("/")), name
    kept = [path for path in home.rglob("*") if path.is_file() and path.name != ".lock"]
    assert {path.parent for path in kept} == {home / "files" / str(side.tenant.id) for side in (site.demo, site.other)}
    assert all(len(path.name) == 64 for path in kept)


async def test_a_file_that_is_too_large_is_refused_while_it_comes(site: Site) -> None:
    async with site.client(site.demo.tokens["admin"]) as client:
        reply = await _upload(client, "large.md", b"x" * 1_200_000)
    assert (reply.status_code, reply.json()["code"]) == (413, "file_too_large")


INCOMPLETE: tuple[dict[str, Any], ...] = (
    {"files": {"file": ("a.md", NOTE)}},
    {"data": {"collection": "open"}},
    {"files": {"file": ("a.md", NOTE)}, "data": {"collection": " "}},
    {"files": {"file": ("a.md", NOTE), "collection": ("b.md", NOTE)}},
    {"files": {"other": ("a.md", NOTE)}, "data": {"collection": "open"}},
    {"content": b"no parts at all", "headers": {"content-type": "multipart/form-data; boundary=x"}},
    {"content": b"--x", "headers": {"content-type": "multipart/form-data"}},
    {"json": {"file": "a.md"}},
)


async def test_an_upload_without_its_parts(site: Site) -> None:
    async with site.client(site.demo.tokens["admin"]) as client:
        for options in INCOMPLETE:
            reply = await client.post("/v1/documents", **options)
            assert reply.status_code in (400, 422), options
            assert reply.headers["content-type"] == "application/problem+json", options


async def test_an_upload_wakes_the_worker(site: Site) -> None:
    process, processed = site.runtime.ingestor.process, asyncio.Event()

    async def watched(*args: Any) -> Any:
        document = await process(*args)
        processed.set()
        return document

    site.runtime.ingestor.process = watched  # type: ignore[method-assign]
    async with site.client(site.demo.tokens["admin"]) as client, asyncio.timeout(30):
        document_id = (await _upload(client, "a.md", NOTE)).json()["id"]
        await processed.wait()
        assert (await client.get(f"/v1/documents/{document_id}")).json()["state"] == "ready"


async def test_a_worker_begins_with_what_was_left_behind(site: Site) -> None:
    process, processed = site.runtime.ingestor.process, asyncio.Event()

    async def watched(*args: Any) -> Any:
        document = await process(*args)
        processed.set()
        return document

    # The application's own worker must not be the one that finds it.
    async with site.context.worker._turn, asyncio.timeout(30):
        left = await site.runtime.ingestor.accept_upload(site.other.tenant.id, "open", "left.md", NOTE)
        site.runtime.ingestor.process = watched  # type: ignore[method-assign]
        async with Worker(site.runtime).working():
            await processed.wait()
    assert (await documents.get(site.runtime.db, site.other.principals["admin"], left.id)).state == "ready"


async def test_one_document_with_a_defect_does_not_stop_the_next(site: Site) -> None:
    process = site.runtime.ingestor.process

    async def sometimes(tenant_id: Any, document_id: Any) -> Any:
        if document_id == first.id:
            raise RuntimeError("hunter2")
        return await process(tenant_id, document_id)

    tenant_id = site.other.tenant.id
    async with site.context.worker._turn:
        first = await site.runtime.ingestor.accept_upload(tenant_id, "open", "first.md", NOTE)
        second = await site.runtime.ingestor.accept_upload(tenant_id, "open", "second.md", NOTE + b"More.\n")
        site.runtime.ingestor.process = sometimes  # type: ignore[method-assign]
    await site.context.worker.drain(tenant_id)
    admin = site.other.principals["admin"]
    assert (await documents.get(site.runtime.db, admin, second.id)).state == "ready"


async def test_the_picture_of_a_page_is_of_the_bytes_that_are_searched(site: Site) -> None:
    async with site.client(site.demo.tokens["admin"]) as client:
        document_id = (await _upload(client, "rules.pdf", PDF.read_bytes())).json()["id"]
        assert (await _settled(site, document_id))["state"] == "ready"
        picture = await client.get(f"/v1/documents/{document_id}/pages/1.png")
        assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
        async with site.context.worker._turn:
            newer = await _upload(client, "rules.pdf", PDF.read_bytes() + b"%")
            assert newer.json()["id"] == document_id
            assert (await client.get(f"/v1/documents/{document_id}/pages/1.png")).status_code == 404


async def test_a_defect_does_not_end_the_worker(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    worker, again = Worker(site.runtime), asyncio.Event()

    async def trips(_: UUID) -> None:
        worker.drain = works  # type: ignore[method-assign]
        worker.wake(site.demo.tenant.id)
        raise RuntimeError("hunter2")

    async def works(_: UUID) -> None:
        again.set()

    worker.drain = trips  # type: ignore[method-assign]
    async with asyncio.timeout(30), worker.working():
        await again.wait()
    assert "unexpected error" in caplog.text
    assert "hunter2" not in caplog.text


async def test_without_an_embedder_a_document_waits(site: Site) -> None:
    async def missing(*_: Any) -> Any:
        raise ModelMissing

    found, site.runtime.open_embedder = site.runtime.open_embedder, missing
    await site.runtime.close()
    async with site.client(site.demo.tokens["admin"]) as client:
        document_id = (await _upload(client, "a.md", NOTE)).json()["id"]
        with pytest.raises(ModelMissing):
            await site.context.worker.drain(site.demo.tenant.id)
        assert (await client.get(f"/v1/documents/{document_id}")).json()["state"] == "queued"
        site.runtime.open_embedder = found
        assert (await _settled(site, document_id))["state"] == "ready"


async def test_without_a_chat_model_documents_are_ingested_and_searched(site: Site) -> None:
    async def missing(*_: Any) -> Any:
        raise ModelMissing

    await site.runtime.close()
    site.runtime.open_chat = missing
    async with site.client(site.demo.tokens["admin"]) as client:
        document_id = (await _upload(client, "a.md", NOTE)).json()["id"]
        assert (await _settled(site, document_id))["state"] == "ready"
        found = await client.post("/v1/search", json={"query": "note"})
        assert found.status_code == 200
        assert (await client.post("/v1/ask", json={"question": "What is noted?"})).json()["code"] == "model_missing"


async def test_a_document_another_process_works_on_is_left_alone(site: Site) -> None:
    worker, db, tenant_id = site.context.worker, site.runtime.db, site.demo.tenant.id
    async with site.client(site.demo.tokens["admin"]) as client, AsyncExitStack() as held:
        # The worker's own round may come at any moment: it waits until the document is held.
        async with worker._turn:
            document_id = (await _upload(client, "a.md", NOTE)).json()["id"]
            (waiting,) = await documents.pending(db, tenant_id)
            assert await held.enter_async_context(documents.processing(db, tenant_id, waiting.id))
        await worker.drain(tenant_id)
        assert (await client.get(f"/v1/documents/{document_id}")).json()["state"] == "processing"
        await held.aclose()
        worker.wake(tenant_id)
        assert (await _settled(site, document_id))["state"] == "ready"


async def test_a_stored_answer_says_nothing_new_of_a_deleted_document(site: Site) -> None:
    assert site.demo.open
    assert site.demo.session
    address = f"/v1/sessions/{site.demo.session.id}"
    async with site.client(site.demo.tokens["admin"]) as client:
        before = (await client.get(address)).json()["turns"][0]
        await client.delete(f"/v1/documents/{site.demo.open.id}")
        after = (await client.get(address)).json()["turns"][0]
    assert before["citations"][0]["quote"]
    assert after["citations"][0]["quote"] == ""
    assert after["answer"] == before["answer"]


async def test_a_right_taken_back_holds_from_the_next_request_on(site: Site) -> None:
    db, employee = site.runtime.db, site.demo.principals["employee"]
    assert site.demo.open
    session = await sessions.create(db, employee, "Hotels")
    await sessions.add_turn(db, employee, session.id, answer_about(site.demo.open, site.demo.chunk_id))
    passage = f"/v1/documents/{site.demo.open.id}/passages/{site.demo.chunk_id}"
    async with site.client(site.demo.tokens["employee"]) as client:
        assert (await client.get(passage)).status_code == 200
        assert (await client.get(f"/v1/sessions/{session.id}")).json()["turns"][0]["citations"][0]["quote"]
        await collections.revoke(db, site.demo.tenant.id, site.demo.open.collection_id, "everyone")
        assert (await client.get(passage)).status_code == 404
        assert (await client.post("/v1/search", json={"query": "hotel caps"})).json()["hits"] == []
        assert (await client.get(f"/v1/sessions/{session.id}")).json()["turns"][0]["citations"][0]["quote"] == ""


async def test_a_collection_is_made_once_and_granted(site: Site) -> None:
    async with site.client(site.demo.tokens["admin"]) as admin, site.client(site.demo.tokens["employee"]) as employee:
        assert (await admin.post("/v1/collections", json={"name": "new"})).status_code == 201
        assert (await admin.post("/v1/collections", json={"name": "new"})).status_code == 409
        assert (await admin.post("/v1/collections", json={"name": "board", "grantees": []})).status_code == 201
        names = [item["name"] for item in (await employee.get("/v1/collections")).json()["collections"]]
    assert names == ["new", "open"]


async def test_the_overview_suggests_what_the_documents_answer(site: Site) -> None:
    async with site.client(site.demo.tokens["employee"]) as client:
        overview = (await client.get("/v1/overview")).json()
        chinese = (await client.get("/v1/overview", headers={"accept-language": "zh"})).json()
    assert "Hotel caps" in POLICY
    assert overview["questions"] == [
        "What does the Travel Policy (travel.md) say about Hotel caps?",
        "What does the Travel Policy (travel.md) say about Meals?",
    ]
    assert (overview["documents"], len(overview["collections"])) == (1, 1)
    assert overview["updated_at"]
    assert chinese["questions"] == []
