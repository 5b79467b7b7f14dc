"""The composition root: what command line and server share, opened in order and closed in reverse.

Opening it loads no model: `embedder()`, `models()` and `agent()` do so at their first call. Commands that need none
start quickly; documents can be listed, uploaded and deleted while no model is to be had, and read and searched while
only the chat model is missing.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from api.recording import recording
from core.errors import EmbeddingSetMismatch, InferenceError
from core.settings import Settings
from policy import boot, hook, proof
from policy.egress import Policy, check_dsn
from storage import audit, embedded, embedding_sets, migrations
from storage.database import Database

if TYPE_CHECKING:
    from uuid import UUID

    from agent.ask import Agent
    from agent.sources.retrieval import Retrieval
    from inference.interfaces import ChatModel, Embedder, Reranker
    from inference.select import Models
    from ingest.files import FileStore
    from ingest.pipeline import Ingestor

logger = logging.getLogger(__name__)


# Imported late: langchain takes a second that `intramuros documents` need not wait for. What was imported has read its
# switches, hence the check after it.


async def _open_chat(settings: Settings, policy: Policy) -> ChatModel:
    from inference.select import open_chat

    boot.verify()
    return await open_chat(settings, policy)


async def _open_embedder(settings: Settings, policy: Policy) -> Embedder:
    from inference.select import open_embedder

    boot.verify()
    return await open_embedder(settings, policy)


def agent_over(db: Database, models: Models, policy: Policy, settings: Settings) -> Agent:
    """The agent, as it is made where no test puts another in its place."""
    from agent.ask import Agent

    return Agent(db, models, policy, settings)


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where PostgreSQL is, by role. `owner` is None where only the app role's address was configured."""

    app: str
    owner: str | None
    embedded: bool


@dataclass(slots=True)
class Runtime:
    """Everything that is open. Make one with `Runtime.open`, or in a test from fakes.

    `owner_dsn` is the address of the owner role (tenants, migrations), None where it was not configured.
    """

    settings: Settings
    policy: Policy
    db: Database
    files: FileStore
    owner_dsn: str | None = None
    open_chat: Callable[[Settings, Policy], Awaitable[ChatModel]] = _open_chat
    open_embedder: Callable[[Settings, Policy], Awaitable[Embedder]] = _open_embedder
    make_agent: Callable[[Database, Models, Policy, Settings], Agent] = agent_over
    ingestor: Ingestor = field(init=False)
    # By what was asked for, None being what settings name as the chat model.
    _chats: dict[str | None, ChatModel] = field(default_factory=dict, init=False)
    # By their id; and by what was asked for, None being what settings name.
    _embedders: dict[str, Embedder] = field(default_factory=dict, init=False)
    _named: dict[str | None, Embedder] = field(default_factory=dict, init=False)
    _rerankers: dict[str, Reranker] = field(default_factory=dict, init=False)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def __post_init__(self) -> None:
        from ingest.pipeline import Ingestor

        self.ingestor = Ingestor(self.db, self.embedder, self.files, self.settings)

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings) -> AsyncIterator[Runtime]:
        """Open policy, audit hook, database and files; close them on leaving.

        Errors: BootRefused, PolicyError (an address that the policy forbids), DatabaseUnavailable, SchemaOutdated,
        SchemaTooNew, MissingExtra. Only the embedded database is migrated here: somebody else's is not ours to change.
        """
        from ingest.files import FileStore

        policy = arm(settings)
        await hook.canary_in_loop()
        async with AsyncExitStack() as stack:
            addresses = await stack.enter_async_context(postgres(settings, policy))
            if addresses.embedded and addresses.owner:
                await migrations.migrate(addresses.owner)
            db = await Database.open(addresses.app, pool_size=settings.pool_size)
            stack.push_async_callback(db.close)
            await migrations.check(db)
            await audit.record_change(db, "policy.in_force", proof.digest(policy))
            await audit.record_change(db, "quarantine.in_force", "on" if settings.quarantine else "off")
            await stack.enter_async_context(recording(db))
            runtime = cls(settings, policy, db, FileStore(settings.home), addresses.owner)
            stack.push_async_callback(runtime.close)
            yield runtime

    async def embedder(self, tenant_id: UUID | None = None) -> Embedder:
        """The embedder of a tenant's active vectors. Where it has none yet, and without a tenant, that of the settings.

        Opened at the first call. Errors: InferenceError and its kinds; EmbeddingSetMismatch where the model that made
        the vectors is not to be had any more.
        """
        wanted = None if tenant_id is None else await embedding_sets.active(self.db, tenant_id)
        if wanted is None:
            return await self._opened_embedder(None)
        from inference.select import model_of

        if wanted in self._embedders:
            return self._embedders[wanted]
        found = await self._opened_embedder(model_of(wanted))
        if found.id != wanted:
            raise EmbeddingSetMismatch(
                f"The vectors were made by {wanted}, and there is only {found.id}. Bring that model back, or run "
                "`intramuros reembed`."
            )
        return found

    async def embedder_named(self, model: str) -> Embedder:
        """The embedder that `inference.select.embedding_by` takes this name for. Errors: as there; InferenceError."""
        return await self._opened_embedder(model)

    async def models(self, tenant_id: UUID | None = None) -> Models:
        """The chat models and the embedder, each opened at the first call. Errors: those of `embedder`.

        Where the chat model cannot be opened, the one that settings name to fall back on stands in its place until the
        next call.
        """
        from inference.select import Models

        embedder = await self.embedder(tenant_id)
        fallback = await self._chat_beside(self.settings.fallback_model)
        try:
            chat = await self._chat_by(None)
        except InferenceError as error:
            if fallback is None:
                raise
            logger.warning("the fallback model stands in", extra={"code": error.code, "model": fallback.name})
            chat = fallback
        grading = await self._chat_beside(self.settings.grader_model)
        return Models(chat, embedder, self._opened_reranker(embedder), grading, fallback)

    async def retrieval(self, tenant_id: UUID | None = None) -> Retrieval:
        """What everybody searches a tenant through. Errors: those of `embedder`."""
        return self.retrieval_by(await self.embedder(tenant_id))

    def retrieval_by(self, embedder: Embedder) -> Retrieval:
        """The same by this embedder's vectors."""
        from agent.sources.retrieval import Retrieval

        return Retrieval(self.db, embedder, self._opened_reranker(embedder))

    async def agent(self, tenant_id: UUID | None = None) -> Agent:
        """An agent over the models of a tenant. Errors: as `models`."""
        return self.make_agent(self.db, await self.models(tenant_id), self.policy, self.settings)

    async def _chat_by(self, model: str | None) -> ChatModel:
        from inference.select import chat_by

        async with self._opening:
            if model not in self._chats:
                settings = self.settings if model is None else chat_by(self.settings, model)
                self._chats[model] = await self.open_chat(settings, self.policy)
            return self._chats[model]

    async def _chat_beside(self, model: str | None) -> ChatModel | None:
        """A model that answers can do without: None where it is not to be had."""
        try:
            return None if model is None else await self._chat_by(model)
        except InferenceError as error:
            logger.warning("a model is left out", extra={"code": error.code, "model": model})
            return None

    async def _opened_embedder(self, model: str | None) -> Embedder:
        """None: the one that settings name."""
        async with self._opening:
            if model not in self._named:
                opened = await self.open_embedder(self._embedding_by(model), self.policy)
                # Settings and a name may mean the same one.
                self._named[model] = self._embedders.setdefault(opened.id, opened)
                if self._named[model] is not opened:
                    await opened.close()
            return self._named[model]

    def _embedding_by(self, model: str | None) -> Settings:
        if model is None:
            return self.settings
        from inference.select import embedding_by

        return embedding_by(self.settings, model)

    def _opened_reranker(self, embedder: Embedder) -> Reranker | None:
        from inference.select import open_reranker

        if embedder.id not in self._rerankers:
            opened = open_reranker(self.settings, self.policy, embedder)
            if opened is None:
                return None
            self._rerankers[embedder.id] = opened
        return self._rerankers[embedder.id]

    async def close(self) -> None:
        """Let the reader of documents and the models go. The rest is closed by `open`."""
        await self.ingestor.close()
        opened: list[ChatModel | Reranker | Embedder] = [*self._chats.values(), *self._rerankers.values()]
        opened += self._embedders.values()
        for kept in (self._chats, self._rerankers, self._embedders, self._named):
            kept.clear()
        for model in opened:
            await model.close()


def arm(settings: Settings) -> Policy:
    """The policy in force, with the tripwire set and proven. Errors: BootRefused, PolicyError."""
    policy = Policy.of(settings)
    boot.verify()
    # Python itself: the embedded chat model and pip run in processes of their own.
    hook.arm(policy, programs=[*embedded.programs(), Path(sys.executable)])
    hook.canary()
    return policy


@asynccontextmanager
async def postgres(settings: Settings, policy: Policy) -> AsyncIterator[Addresses]:
    """PostgreSQL's addresses: the configured ones, judged by the policy, else the embedded server's while inside.

    Errors: PolicyError, DatabaseUnavailable, MissingExtra.
    """
    if settings.database_url is not None:
        app = await asyncio.to_thread(check_dsn, policy, settings.database_url.get_secret_value())
        owner = settings.database_owner_url
        checked = await asyncio.to_thread(check_dsn, policy, owner.get_secret_value()) if owner else None
        yield Addresses(app, checked, embedded=False)
        return
    server = await asyncio.to_thread(embedded.start, settings.home)
    try:
        yield Addresses(server.app_dsn, server.owner_dsn, embedded=True)
    finally:
        await asyncio.to_thread(server.close)
