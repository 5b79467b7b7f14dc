"""Two servers over one database, real processes of the program: a session answers one question at a time."""

import asyncio
import os
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from api import auth
from core.records import Principal
from core.settings import variable
from storage import sessions
from storage.database import Database
from tests.conftest import DatabaseUnderTest
from tests.fakes.ollama import FakeOllama, Reply, model
from tests.integration.api.conftest import events
from tests.paths import PROJECT
from tests.unit.cli.records import answer


@pytest.fixture
def ollama() -> Iterator[FakeOllama]:
    """A model that hangs twice and then answers."""
    models = {"chat:latest": model(), "bge-m3:latest": model("embedding")}
    replies = [*[Reply("How", hang=True)] * 2, *[Reply("How much is it in Beijing?")] * 9]
    with FakeOllama(models=models, replies=replies) as server:
        yield server


@pytest.fixture
def environment(fresh: DatabaseUnderTest, ollama: FakeOllama, tmp_path: Path) -> dict[str, str]:
    """What both processes are told."""
    settings = {
        "home": str(tmp_path),
        "log_level": "info",
        "serve_worker": "false",
        "database_url": fresh.app_dsn,
        "database_owner_url": fresh.owner_dsn,
        "chat_provider": "ollama",
        "embed_provider": "ollama",
        "ollama_url": ollama.url,
        "chat_model": "chat",
        "embed_model": "bge-m3",
    }
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    return kept | {variable(name): value for name, value in settings.items()}


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@asynccontextmanager
async def serving(environment: dict[str, str], token: str) -> AsyncIterator[tuple[Process, httpx.AsyncClient]]:
    """The program, told to serve, and a client of it."""
    port = free_port()
    command = (sys.executable, "-m", "api.main", "serve", "--port", str(port))
    process = await asyncio.create_subprocess_exec(*command, cwd=PROJECT, env=environment, stderr=PIPE)
    try:
        headers = {"authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=120) as client:
            yield process, client
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def listening(process: Process) -> None:
    """Wait for the program to say that it listens."""
    assert process.stderr
    said = b""
    while b"running on" not in said:
        line = await process.stderr.readline()
        assert line, said.decode()
        said += line


async def test_the_second_question_is_refused_until_the_first_is_stopped_or_killed(
    database: Database, principal: Principal, environment: dict[str, str], ollama: FakeOllama
) -> None:
    token = await auth.issue(database, principal, "test", "api", None)
    session = (await sessions.create(database, principal, "Caps")).id
    # Something was said before: the model makes the next question whole, and there it hangs.
    await sessions.add_turn(database, principal, session, answer())
    address, question = f"/v1/sessions/{session}", {"question": "And in Beijing?", "session_id": str(session)}

    async def hanging(client: httpx.AsyncClient) -> asyncio.Task[httpx.Response]:
        before = len(ollama.chats)
        asking = asyncio.create_task(client.post("/v1/ask", json=question, headers={"accept": "text/event-stream"}))
        while len(ollama.chats) == before:  # noqa: ASYNC110 the fake server lives in a thread and tells it by this alone
            await asyncio.sleep(0.001)
        return asking

    async def refused(client: httpx.AsyncClient) -> None:
        reply = await client.post("/v1/ask", json=question)
        assert (reply.status_code, reply.json()["code"]) == (409, "session_busy")

    async with (
        asyncio.timeout(300),
        serving(environment, token) as (process, one),
        serving(environment, token) as (other, two),
    ):
        await asyncio.gather(listening(process), listening(other))
        asking = await hanging(one)
        await refused(two)
        assert (await two.post(f"{address}/cancel")).json() == {"cancelled": True}
        name, data = events((await asking).text)[-1]
        assert (name, '"cancelled"' in data) == ("failed", True)

        asking = await hanging(one)
        await refused(two)
        process.kill()
        with pytest.raises(httpx.TransportError):
            await asking
        # The database needs a moment to see that the one who held the session is gone.
        while (left := (await two.get(address)).json()["unanswered"])["state"] == "running":
            pass
        assert left == {"state": "aborted", "question": question["question"]}
        assert (await two.post("/v1/ask", json=question)).status_code == 200
    assert len(await sessions.turns(database, principal, session)) == 2
