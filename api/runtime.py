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

from core.settings import Settings
from policy import boot, hook
from policy.egress import Policy, check_dsn
from storage import embedded, migrations
from storage.database import Database

if TYPE_CHECKING:
    from agent.ask import Agent
    from inference.interfaces import ChatModel, Embedder
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
    ingestor: Ingestor = field(init=False)
    _chat: ChatModel | None = field(default=None, init=False)
    _embedder: Embedder | None = field(default=None, init=False)
    _agent: Agent | None = field(default=None, init=False)
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
            runtime = cls(settings, policy, db, FileStore(settings.home), addresses.owner)
            stack.push_async_callback(runtime.close)
            yield runtime

    async def embedder(self) -> Embedder:
        """The embedder, opened at the first call. Errors: InferenceError and its kinds."""
        async with self._opening:
            if self._embedder is None:
                self._embedder = await self.open_embedder(self.settings, self.policy)
            return self._embedder

    async def models(self) -> Models:
        """The chat model and the embedder, each opened at the first call. Errors: InferenceError and its kinds."""
        from inference.select import Models

        embedder = await self.embedder()
        async with self._opening:
            if self._chat is None:
                self._chat = await self.open_chat(self.settings, self.policy)
            return Models(self._chat, embedder)

    async def agent(self) -> Agent:
        """The agent over these models, made at the first call. Errors: as `models`."""
        models = await self.models()
        if self._agent is None:
            from agent.ask import Agent

            self._agent = Agent(self.db, models, self.policy, self.settings)
        return self._agent

    async def close(self) -> None:
        """Let the reader of documents and the models go. The rest is closed by `open`."""
        await self.ingestor.close()
        chat, embedder = self._chat, self._embedder
        self._chat = self._embedder = self._agent = None
        if chat is not None:
            await chat.close()
        if embedder is not None:
            await embedder.close()


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
