"""The embedded chat model: llama.cpp in a child process that all processes of one INTRAMUROS_HOME share."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from langchain_core.language_models import BaseChatModel

from core.errors import MissingExtra, ModelUnavailable
from core.settings import Settings
from inference import fetch, llama_server, runfile
from inference.interfaces import Traits
from inference.openai import CAPABLE_BILLIONS, Client, OpenAIDialect, billions_in
from policy.egress import Policy

log = logging.getLogger(__name__)

_START_SECONDS = 120.0
_POLL_SECONDS = 0.05
_LOG = "chat-model.log"


class EmbeddedProvider(OpenAIDialect):
    """Starts the child at the first call, and again when it has ended, whether by itself or by a crash."""

    kind: Literal["ollama", "openai", "embedded"] = "embedded"

    def __init__(self, settings: Settings, policy: Policy, gguf: Path) -> None:
        if find_spec("xllamacpp") is None:
            raise MissingExtra
        super().__init__()
        self.name = gguf.stem
        self.identity = f"embedded:{fetch.fingerprint(gguf)}"
        capable = (billions_in(self.name) or 0) >= CAPABLE_BILLIONS
        self.traits = Traits(tools=True, logprobs=True, capable=capable, context_tokens=settings.num_ctx)
        self._settings, self._policy, self._gguf = settings, policy, gguf
        self._starting = asyncio.Lock()
        self._client: tuple[runfile.Running, Client, BaseChatModel] | None = None

    @asynccontextmanager
    async def use(self) -> AsyncIterator[BaseChatModel]:
        using = runfile.using(self._settings.home)
        await asyncio.to_thread(using.__enter__)
        try:
            async with self._starting:
                model = await self._connect(await self._running())
            yield model
        finally:
            using.__exit__(None, None, None)

    async def close(self) -> None:
        if self._client is not None:
            await self._client[1].close()
            self._client = None

    async def _connect(self, running: runfile.Running) -> BaseChatModel:
        if self._client is None or self._client[0] != running:
            await self.close()
            timeout = self._settings.chat_timeout
            client = Client(f"{running.url}/v1", running.key, self._policy, "embedded", timeout)
            self._client = running, client, client.chat(self.name)
        return self._client[2]

    async def _running(self) -> runfile.Running:
        home = self._settings.home
        found = runfile.Running.find(home)
        if found and (found.model, found.num_ctx) != (str(self._gguf), self._settings.num_ctx):
            log.info("replacing the embedded chat model", extra={"was": Path(found.model).name, "now": self.name})
            await stop(home)
            found = None
        return found or await self._start()

    async def _start(self) -> runfile.Running:
        """Start a child, or wait for one that another process has just started."""
        home = self._settings.home
        if not runfile.alive(home):
            await asyncio.to_thread(self._launch)
        deadline = asyncio.get_running_loop().time() + _START_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            if found := runfile.Running.find(home):
                return found
            if not runfile.alive(home):
                break
            await asyncio.sleep(_POLL_SECONDS)
        raise ModelUnavailable(f"The embedded chat model did not start. Read {home / 'run' / _LOG} for the reason.")

    def _launch(self) -> None:
        """Run the launcher, which returns at once and leaves the child to itself."""
        settings = self._settings
        folder = settings.home / "run"
        arguments = [settings.home, self._gguf, settings.num_ctx, settings.cores, settings.embedded_idle]
        command = [sys.executable, "-P", "-m", llama_server.__name__, *map(str, arguments)]
        with (folder / _LOG).open("w") as output:
            done = subprocess.run(  # noqa: S603 our own module, by this interpreter
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, start_new_session=True
            )
        if done.returncode not in (0, llama_server.ANOTHER_RUNS):
            raise ModelUnavailable(f"The embedded chat model did not start. Read {folder / _LOG} for the reason.")


async def stop(home: Path) -> bool:
    """End the child of a home, whatever it does; True when there was one."""
    running = runfile.Running.find(home)
    if running is None:
        return False
    running.end()
    while runfile.alive(home):  # noqa: ASYNC110 another process ends: there is nothing to await
        await asyncio.sleep(_POLL_SECONDS)
    return True
