"""A document's life over HTTP: uploaded, ready, found, cited, deleted, gone."""

import asyncio
import io
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from core.errors import ModelMissing
from core.settings import Settings
from ingest.pipeline import Ingestor
from storage import collections, sessions
from tests.fakes.reader import DirectReader
from tests.integration.api.conftest import Site, scanned
from tests.integration.api.leaving import leave
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


async def test_the_picture_of_a_page_is_of_the_bytes_that_are_searched(site: Site) -> None:
    async with site.client(site.demo.tokens["admin"]) as client:
        document_id = (await _upload(client, "rules.pdf", PDF.read_bytes())).json()["id"]
        assert (await _settled(site, document_id))["state"] == "ready"
        picture = await client.get(f"/v1/documents/{document_id}/pages/1.png")
        assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
        newer = await _upload(client, "rules.pdf", PDF.read_bytes() + b"%")
        assert newer.json()["id"] == document_id
        # What waits is not read yet, and the older file is kept with its revision.
        for _ in range(2):
            for query in ("", "?revision=0", "?revision=1"):
                again = await client.get(f"/v1/documents/{document_id}/pages/1.png{query}")
                assert (again.status_code, again.content) == (200, picture.content), query
            assert (await _settled(site, document_id))["revision"] == 2
        assert (await client.get(f"/v1/documents/{document_id}/pages/1.png?revision=2")).status_code == 200
        assert (await client.get(f"/v1/documents/{document_id}/pages/1.png?revision=3")).status_code == 404
        assert (await client.get(f"/v1/documents/{document_id}/pages/1.png?revision=-1")).status_code == 422
    for token in (site.other.tokens["admin"], site.other.tokens["employee"]):
        async with site.client(token) as client:
            assert (await client.get(f"/v1/documents/{document_id}/pages/1.png?revision=1")).status_code == 404


async def test_a_page_is_drawn_for_who_may_see_it_and_holds_nothing_of_the_file(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "fax.tif"
    frames = [Image.new("RGB", size, "white") for size in ((300, 200), (200, 300))]
    frames[0].save(path, save_all=True, append_images=frames[1:], description="CANARY")
    scan = await scanned(site, path, "image/tiff", pages=2)
    assert b"CANARY" in path.read_bytes()
    async with site.client(site.demo.tokens["admin"]) as client:
        for page, frame in enumerate(frames, start=1):
            reply = await client.get(f"/v1/documents/{scan.id}/pages/{page}.png")
            assert (reply.status_code, reply.headers["content-type"]) == (200, "image/png")
            assert Image.open(io.BytesIO(reply.content), formats=("PNG",)).size == frame.size
            assert b"CANARY" not in reply.content
        assert (await client.get(f"/v1/documents/{scan.id}/pages/3.png")).status_code == 404
    for token in (site.demo.tokens["employee"], site.other.tokens["admin"]):
        async with site.client(token) as client:
            assert (await client.get(f"/v1/documents/{scan.id}/pages/1.png")).status_code == 404


async def test_a_file_that_cannot_be_drawn_is_told(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "cut.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    scan = await scanned(site, path, "image/png")
    async with site.client(site.demo.tokens["admin"]) as client:
        reply = await client.get(f"/v1/documents/{scan.id}/pages/1.png")
    assert (reply.status_code, reply.json()["code"]) == (422, "damaged_file")


class Endless(DirectReader):
    """Draws for ever; knows when it was stopped."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.begun = asyncio.Event()
        self.stopped = asyncio.Event()

    async def picture(self, path: Path, name: str, page: int, width_px: int) -> bytes:
        try:
            self.begun.set()
            await asyncio.Event().wait()
        finally:
            self.stopped.set()
        raise AssertionError("nobody sets that event")


async def test_a_client_that_leaves_stops_the_drawing(site: Site, tmp_path: Path) -> None:
    runtime = site.runtime
    Image.new("L", (300, 200)).save(tmp_path / "scan.png")
    scan = await scanned(site, tmp_path / "scan.png", "image/png")
    endless = Endless(runtime.settings)
    runtime.ingestor = Ingestor(runtime.db, runtime.embedder, runtime.files, runtime.settings, endless)
    address = f"/v1/documents/{scan.id}/pages/1.png"
    await leave(site, "GET", address, token=site.demo.tokens["admin"], begun=endless.begun)
    assert endless.stopped.is_set()


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


@pytest.mark.threat(53)
async def test_a_stored_answer_keeps_its_words_when_its_document_is_deleted(site: Site) -> None:
    assert site.demo.open
    assert site.demo.session
    address = f"/v1/sessions/{site.demo.session.id}"
    async with site.client(site.demo.tokens["admin"]) as client:
        before = (await client.get(address)).json()["turns"][0]
        await client.delete(f"/v1/documents/{site.demo.open.id}")
        after = (await client.get(address)).json()["turns"][0]
        passage = await client.get(f"/v1/documents/{site.demo.open.id}/passages/{site.demo.chunk_id}")
    (was,), (now,) = before["citations"], after["citations"]
    assert (was["standing"], now["standing"]) == ("present", "deleted")
    assert now == {**was, "standing": "deleted"}
    assert after["answer"] == before["answer"]
    assert passage.status_code == 404


@pytest.mark.threat(54)
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
        for _ in range(2):
            (citation,) = (await client.get(f"/v1/sessions/{session.id}")).json()["turns"][0]["citations"]
            assert (citation["quote"], citation["standing"]) == ("", "withheld")
            # Deleting it gives nothing back.
            await documents_deleted(site)


async def documents_deleted(site: Site) -> None:
    assert site.demo.open
    async with site.client(site.demo.tokens["admin"]) as client:
        await client.delete(f"/v1/documents/{site.demo.open.id}")


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
