"""A whole application on a real database: two tenants, their users, a document each, scripted models."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI

from api import auth
from api.app import create_app
from api.context import Context
from api.passwords import hash_password
from api.runtime import Runtime
from core.records import Answered, Box, Chunk, Document, Event, ParsedDocument, Principal, Role, Session, Tenant
from core.settings import Settings
from inference.interfaces import ChatModel, Embedder
from ingest.files import FileStore
from ingest.pipeline import Ingestor
from policy.egress import Policy
from storage import collections, documents, sessions, users
from storage.database import Database
from tests.conftest import DatabaseUnderTest
from tests.fakes.chat import ScriptedChat
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.reader import DirectReader
from tests.integration.api.samples import POLICY, answer_about

PASSWORD = "correct horse battery"


@lru_cache(maxsize=1)
def _hash() -> str:
    return hash_password(PASSWORD)


class ScriptedAgent:
    """Stands for the agent: `script` makes the events of a question. `asked` keeps what it was asked with."""

    def __init__(self) -> None:
        self.asked: list[tuple[Principal, str, dict[str, Any]]] = []
        self.script: Callable[[str], AsyncIterator[Event]] = _nothing

    def ask(self, principal: Principal, question: str, **options: Any) -> AsyncIterator[Event]:
        self.asked.append((principal, question, options))
        return self.script(question)


async def _nothing(_: str) -> AsyncIterator[Event]:
    raise AssertionError("no script was given")
    yield


@dataclass
class Side:
    """One tenant with what is in it. Tokens by user name: `admin` and `employee`; the employee may read `open`."""

    tenant: Tenant
    tokens: dict[str, str] = field(default_factory=dict)
    principals: dict[str, Principal] = field(default_factory=dict)
    open: Document | None = None
    closed: Document | None = None
    session: Session | None = None
    turn_id: UUID | None = None
    chunk_id: int = 0


@dataclass
class Site:
    """The running application, and both tenants."""

    app: FastAPI
    runtime: Runtime
    context: Context
    agent: ScriptedAgent
    chat: ScriptedChat
    demo: Side
    other: Side

    def client(self, token: str | None = None, **options: Any) -> httpx.AsyncClient:
        """A client with that token, or none."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers |= options.pop("headers", {})
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://site", headers=headers, **options)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    # The queue is worked on when a test says so: `drain`, or a worker of its own.
    return Settings.load(home=tmp_path / "home", cache=tmp_path / "cache", max_file_mb=1, serve_worker=False)


@pytest.fixture
def chat() -> ScriptedChat:
    return ScriptedChat()


@pytest.fixture
async def runtime(
    fresh: DatabaseUnderTest, database: Database, settings: Settings, chat: ScriptedChat
) -> AsyncIterator[Runtime]:
    async def open_chat(*_: Any) -> ChatModel:
        return chat

    async def open_embedder(*_: Any) -> Embedder:
        return FakeEmbedder()

    files = FileStore(settings.home)
    opened = Runtime(
        settings,
        Policy.of(settings),
        database,
        files,
        fresh.owner_dsn,
        open_chat=open_chat,
        open_embedder=open_embedder,
    )
    # The jail, which takes seconds to start, has tests of its own.
    opened.ingestor = Ingestor(database, opened.embedder, files, settings, DirectReader(settings))
    yield opened
    await opened.close()


@pytest.fixture(autouse=True)
def proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process of the tests is neither sealed nor watched by the audit hook: take that as proven."""

    async def holds() -> None:
        pass

    monkeypatch.setattr("policy.boot.verify", lambda: None)
    monkeypatch.setattr("policy.hook.canary_in_loop", holds)


@pytest.fixture
async def site(
    settings: Settings, runtime: Runtime, chat: ScriptedChat, tenant: Tenant, other_tenant: Tenant
) -> AsyncIterator[Site]:
    agent = ScriptedAgent()
    runtime.make_agent = lambda *_: agent  # type: ignore[assignment, return-value]
    demo, other = [await furnish(runtime, each) for each in (tenant, other_tenant)]
    app = create_app(settings, lambda _: nullcontext(runtime))
    async with app.router.lifespan_context(app):
        yield Site(app, runtime, app.state.context, agent, chat, demo, other)


async def furnish(runtime: Runtime, tenant: Tenant) -> Side:
    side = Side(tenant)
    for name, role in (("admin", Role.ADMIN), ("employee", Role.EMPLOYEE)):
        principal = await users.create(runtime.db, tenant.id, name, _hash(), role)
        side.principals[name] = principal
        side.tokens[name] = await auth.issue(runtime.db, principal, "test", "api", None)
    side.open = await _ingest(runtime, tenant, "open", "travel.md")
    await collections.create(runtime.db, tenant.id, "closed")
    side.closed = await _ingest(runtime, tenant, "closed", "board.md")
    side.chunk_id = (await documents.chunks(runtime.db, side.principals["admin"], side.open.id))[1].chunk_id
    side.session = await sessions.create(runtime.db, side.principals["admin"], "Hotels")
    turn = await sessions.add_turn(
        runtime.db, side.principals["admin"], side.session.id, answer_about(side.open, side.chunk_id)
    )
    side.turn_id = turn.id
    return side


async def _ingest(runtime: Runtime, tenant: Tenant, collection: str, name: str) -> Document:
    queued = await runtime.ingestor.accept_upload(tenant.id, collection, name, POLICY.format(name=name).encode())
    await runtime.ingestor.process(tenant.id, queued.id)
    return await documents.get(runtime.db, users.operator(tenant.id), queued.id)


async def scanned(site: Site, path: Path, media_type: str, pages: int = 1) -> Document:
    """A picture file in `closed` that OCR was not sure of, as if it had been read."""
    db, tenant_id = site.runtime.db, site.demo.tenant.id
    stored = await site.runtime.files.put(tenant_id, path)
    collection = await collections.by_name(db, tenant_id, "closed")
    queued, _ = await documents.register(
        db,
        tenant_id,
        collection.id,
        path=path.name,
        sha256=stored.sha256,
        media_type=media_type,
        size=stored.size,
        title="Scan",
    )
    parsed = ParsedDocument(title="Scan", elements=(), pages=pages, confidence={1: 0.61})
    box = Box(page=1, left=0.1, top=0.1, right=0.9, bottom=0.3)
    chunk = Chunk(ordinal=0, text="Cap: 18O euros", heading_path=(), section=0, start=0, end=14, page=1, boxes=(box,))
    await documents.store_revision(db, tenant_id, queued.id, parsed, [chunk], sha256=stored.sha256)
    return await site.runtime.ingestor.process(tenant_id, queued.id)


def events(text: str) -> list[tuple[str, str]]:
    """(event, data) pairs of a server-sent stream, comments left out."""
    found = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            found.append((fields["event"], fields["data"]))
    return found


def scripted(*script: Event) -> Callable[[str], AsyncIterator[Event]]:
    """An agent's script that is the same for every question."""

    async def play(_: str) -> AsyncIterator[Event]:
        for event in script:
            yield event

    return play


def answered(document: Document, chunk_id: int) -> Sequence[Event]:
    """A script that ends in an answer."""
    return (Answered(answer_about(document, chunk_id)),)
