"""Words that nobody may find again: they go through all that the program does; no log, error or entry has them."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest
from psycopg import sql

from api.runtime import agent_over
from core import logs
from core.errors import IntramurosError
from storage.database import Database
from tests.conftest import DatabaseUnderTest
from tests.fakes.chat import ScriptedChat
from tests.integration.api.conftest import PASSWORD, Site

QUESTION, PASSAGE, SECRET, NAME = "quibberish", "flumadiddle", "Xk9-Tr0ub4dor", "collywobbles"
CANARIES = (QUESTION, PASSAGE, SECRET, NAME, PASSWORD)
NOTE = f"# Hotels\n\nThe {PASSAGE} cap in {QUESTION} is EUR 140 per night.\n".encode()


class Fault(RuntimeError):
    """What a library may say of what it was given."""

    def __init__(self) -> None:
        super().__init__(f"{QUESTION} {PASSAGE} postgresql://u:{SECRET}@h/db {NAME}")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """All that is logged, at the most talkative level, as it would be written."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    lines = io.StringIO()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", lines)
        logs.configure("json", "debug")
    yield lines
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def chat() -> ScriptedChat:
    def reply(messages: Any) -> str:
        return f"The {PASSAGE} cap in {QUESTION} is EUR 140 per night."

    return ScriptedChat(reply, first_tokens=lambda _: {"The": 0.97, "NOT": 0.01})


class Kept:
    """Sends, and keeps what came back as an error."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self.errors: list[str] = []
        self.done = 0

    async def __call__(self, method: str, path: str, **options: Any) -> httpx.Response:
        reply = await self._client.request(method, path, **options)
        self.done += reply.is_success
        if not reply.is_success:
            self.errors.append(reply.text)
        return reply


async def _all_is_well(send: Kept, site: Site) -> None:
    files = {"file": (f"{NAME}.md", NOTE)}
    made = (await send("POST", "/v1/documents", files=files, data={"collection": NAME})).json()
    await site.context.worker.drain(site.demo.tenant.id)
    session = (await send("POST", "/v1/sessions", json={"title": NAME})).json()["id"]
    asked = {"question": f"What is the {PASSAGE} cap in {QUESTION}?", "session_id": session}
    answer = (await send("POST", "/v1/ask", json=asked)).json()
    assert answer["outcome"] == "answered"
    await send("POST", "/v1/ask", json=asked, headers={"accept": "text/event-stream"})
    await send("POST", f"/v1/turns/{answer['turn_id']}/feedback", json={"value": -1, "reason": QUESTION})
    await send("POST", "/v1/search", json={"query": QUESTION})
    await send("POST", "/v1/search/explain", json={"query": QUESTION, "as_group": NAME})
    await send("POST", "/v1/synonyms", json={"words": [QUESTION, PASSAGE]})
    await send("POST", "/v1/collections", json={"name": f"{NAME} 2", "grantees": [f"group:{NAME}"]})
    await send("PATCH", f"/v1/documents/{made['id']}", json={"supersedes": NAME})
    await send("GET", f"/v1/documents/{made['id']}/chunks")
    await send("GET", "/v1/overview")
    await send("POST", "/v1/login", json={"tenant": "demo", "name": "admin", "password": PASSWORD})
    await send("DELETE", f"/v1/sessions/{session}")
    await send("DELETE", f"/v1/documents/{made['id']}")


async def _all_goes_wrong(send: Kept, site: Site) -> None:
    for name, data in ((f"{NAME}.pdf", b"%PDF-1.7 " + NOTE), (f"{NAME}.docx", NOTE), (f"{NAME}.exe", NOTE)):
        await send("POST", "/v1/documents", files={"file": (name, data)}, data={"collection": "open"})
    await site.context.worker.drain(site.demo.tenant.id)
    await send("POST", "/v1/login", json={"tenant": NAME, "name": NAME, "password": SECRET})
    await send("POST", "/v1/login", json={"tenant": "demo", "name": "admin", "password": SECRET})
    await send("POST", "/v1/login", json={"tenant": "demo", "name": NAME, "password": [SECRET]})
    await send("POST", "/v1/collections", json={"name": f"{NAME} 2"})
    await send("POST", "/v1/collections", json={"name": f"{NAME} 3", "grantees": [SECRET]})
    await send(
        "POST", "/v1/search", content=f'{{"query": "{QUESTION}"'.encode(), headers={"content-type": "application/json"}
    )
    await send("POST", "/v1/search", json={"query": QUESTION, "languages": [QUESTION]})
    await send("POST", "/v1/ask", json={"question": [QUESTION], "odd": SECRET})
    await send("GET", f"/v1/documents/{SECRET}")
    await send("GET", f"/v1/{SECRET}", params={"q": QUESTION})
    await send("GET", "/v1/me", headers={"authorization": f"Bearer {SECRET}"})
    await send("GET", "/v1/me", headers={"authorization": f"Bearer im_{'0' * 32}_{SECRET:A<43}"})


async def _libraries_fail(send: Kept, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fault(*_: Any, **__: Any) -> Any:
        raise Fault

    asked = {"question": f"What is the {PASSAGE} cap in {QUESTION}?"}
    for owner, name in ((ScriptedChat, "first_token"), (ScriptedChat, "stream"), (psycopg.AsyncCursor, "fetchall")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, fault)
            for accept in ("application/json", "text/event-stream"):
                await send("POST", "/v1/ask", json=asked, headers={"accept": accept})
            await send("POST", "/v1/search", json={"query": QUESTION})


@pytest.mark.threat(34, 50, 104)
async def test_nobody_finds_the_words_again(
    site: Site, written: io.StringIO, monkeypatch: pytest.MonkeyPatch, fresh: DatabaseUnderTest
) -> None:
    site.runtime.make_agent = agent_over
    async with site.client(site.demo.tokens["admin"]) as client:
        send = Kept(client)
        await _all_is_well(send, site)
        assert (send.done, send.errors) == (15, [])
        await _all_goes_wrong(send, site)
        await _libraries_fail(send, site, monkeypatch)
    assert len(send.errors) > 12
    with pytest.raises(IntramurosError) as away:
        await Database.open(f"host=127.0.0.1 port=1 user={NAME} password={SECRET} dbname=x", pool_size=1)
    with psycopg.connect(fresh.owner_dsn) as connection:
        entries = str(connection.execute(sql.SQL("SELECT t::text FROM intramuros.audit t")).fetchall())
        jobs = str(connection.execute(sql.SQL("SELECT t::text FROM procrastinate.procrastinate_jobs t")).fetchall())
    said = {"log": written.getvalue(), "audit": entries, "jobs": jobs, "database": str(away.value)}
    said |= {f"error {number}": text for number, text in enumerate(send.errors)}
    # A token is im_TENANT_SECRET, and the secret may hold the character that stands between them.
    tokens = [token.split("_", 2)[2] for token in site.demo.tokens.values()]
    assert len(json.loads(said["log"].splitlines()[0])) > 4
    found = [
        (where, word, line[:300])
        for where, text in said.items()
        for word in (*CANARIES, *tokens)
        for line in text.splitlines()
        if word in line
    ]
    assert found == []
