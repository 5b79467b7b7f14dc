"""The command line on a real database of the test's own, with a deterministic embedder and a scripted agent."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from api.cli.app import run
from api.runtime import Runtime
from core.records import Event, Principal
from core.settings import Settings, variable
from inference.interfaces import ChatModel, Embedder
from ingest.files import FileStore
from ingest.pipeline import Ingestor
from policy.egress import Policy
from storage.database import Database
from tests.conftest import DatabaseUnderTest
from tests.fakes.chat import ScriptedChat
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.reader import DirectReader

Script = Callable[[str], Sequence[Event]]


@dataclass(frozen=True, slots=True)
class Said:
    """What one command line gave back."""

    code: int
    out: str
    err: str


class Terminal:
    """Runs command lines as a shell would, one after the other. `script` is what the agent plays for a question."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.script: Script | None = None
        self.asked: list[tuple[Principal, str, dict[str, Any]]] = []

    async def __call__(self, *arguments: str) -> Said:
        # In a thread: a command makes an event loop of its own.
        code = await asyncio.to_thread(run, arguments)
        captured = self._capsys.readouterr()
        return Said(code, captured.out, captured.err)

    async def ask(self, principal: Principal, question: str, **options: Any) -> AsyncIterator[Event]:
        """Stands for agent.ask.Agent.ask."""
        self.asked.append((principal, question, options))
        assert self.script is not None
        for event in self.script(question):
            yield event


@pytest.fixture
def terminal(
    fresh: DatabaseUnderTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Terminal]:
    made = Terminal(capsys)

    async def open_chat(*_: Any) -> ChatModel:
        return ScriptedChat()

    async def open_embedder(settings: Settings, _: Policy) -> Embedder:
        if settings.embed_provider == "auto":
            return FakeEmbedder()
        return FakeEmbedder(f"{settings.embed_provider}:{settings.embed_model}:1", 24)

    @asynccontextmanager
    async def open_runtime(settings: Settings) -> AsyncIterator[Runtime]:
        # As Runtime.open, without the audit hook: it could not be taken out of the test's process again.
        db = await Database.open(fresh.app_dsn, pool_size=4)
        files, policy = FileStore(settings.home), Policy.of(settings)
        runtime = Runtime(
            settings, policy, db, files, fresh.owner_dsn, open_chat=open_chat, open_embedder=open_embedder
        )
        runtime.make_agent = lambda *_: made  # type: ignore[assignment, return-value]
        # The jail, which takes seconds to start, has tests of its own.
        runtime.ingestor = Ingestor(db, runtime.embedder, files, settings, DirectReader(settings))
        try:
            yield runtime
        finally:
            await runtime.close()
            await db.close()

    monkeypatch.setattr(Runtime, "open", open_runtime)
    monkeypatch.setenv(variable("home"), str(tmp_path / "home"))
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield made
    root.handlers[:] = handlers
    root.setLevel(level)
