"""Answers as files: a conversation or one turn of it, a brief among them, as Markdown and as a Word document."""

from io import BytesIO
from uuid import uuid4

import httpx
from docx import Document

from tests.integration.api.conftest import Site
from tests.integration.api.test_life import FACT, QUESTION, chat, live

__all__ = ["chat", "live"]  # the fixtures


async def _session(client: httpx.AsyncClient, *bodies: dict[str, str]) -> tuple[str, list[str]]:
    session = (await client.post("/v1/sessions", json={"title": "Hotels"})).json()["id"]
    asked = [(await client.post("/v1/ask", json=body | {"session_id": session})).json() for body in bodies]
    return session, [answer["turn_id"] for answer in asked]


async def test_a_brief_is_a_word_document_with_its_sources(live: Site) -> None:
    async with live.client(live.demo.tokens["employee"]) as client:
        session, (turn,) = await _session(client, {"question": "Hotels in Shanghai", "mode": "brief"})
        reply = await client.get(f"/v1/sessions/{session}/export", params={"format": "docx", "turn": turn})
    assert reply.headers["content-disposition"] == f'attachment; filename="intramuros-{turn}.docx"'
    assert reply.headers["content-type"].endswith("wordprocessingml.document")
    found = [(paragraph.style.name, paragraph.text) for paragraph in Document(BytesIO(reply.content)).paragraphs]  # type: ignore[union-attr]
    assert ("Heading 2", "Hotels") in found
    assert ("Normal", f"{FACT[:-1]} [1].") in found
    assert any(text.startswith("[1] Hotels") for _, text in found)


async def test_one_turn_or_the_whole_conversation(live: Site) -> None:
    async with live.client(live.demo.tokens["employee"]) as client:
        session, (_, second) = await _session(client, {"question": QUESTION}, {"question": "Hello!"})
        whole = await client.get(f"/v1/sessions/{session}/export")
        one = await client.get(f"/v1/sessions/{session}/export", params={"turn": second})
    assert QUESTION in whole.text
    assert "Hello!" in whole.text
    assert QUESTION not in one.text
    assert "Hello!" in one.text
    assert one.headers["content-type"] == "text/markdown; charset=utf-8"


async def test_what_cannot_be_exported_is_said(live: Site) -> None:
    async with live.client(live.demo.tokens["employee"]) as client:
        session, _ = await _session(client, {"question": "Hello!"})
        other, (turn,) = await _session(client, {"question": "Hello!"})
        address = f"/v1/sessions/{session}/export"
        assert (await client.get(address, params={"turn": turn})).status_code == 404
        assert (await client.get(address, params={"turn": str(uuid4())})).status_code == 404
        assert (await client.get(address, params={"format": "pdf"})).status_code == 422
    async with live.client(live.demo.tokens["admin"]) as client:
        assert (await client.get(f"/v1/sessions/{other}/export", params={"format": "docx"})).status_code == 404
