"""Opening everything, in processes of their own: the audit hook cannot be taken out of a process again."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.conftest import DatabaseUnderTest

# Opens the runtime, says so, and keeps it open until its standard input ends.
OPEN = """
import asyncio, sys
from policy import boot
boot.seal()
from api.runtime import Runtime
from core.errors import IntramurosError
from core.settings import Settings

async def main():
    async with Runtime.open(Settings.load()) as runtime:
        await runtime.db.ping()
        loaded = [name for name in ("langgraph", "unstructured", "onnxruntime", "xllamacpp") if name in sys.modules]
        print("open", runtime.owner_dsn is not None, *loaded, flush=True)
        sys.stdin.read()

try:
    asyncio.run(main())
except IntramurosError as error:
    print(error.code, flush=True)
"""


@contextmanager
def started(*command: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    process = subprocess.Popen(
        [sys.executable, *command],
        env={**kept, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def test_two_processes_share_one_home_and_load_nothing_heavy(home: Path) -> None:
    with started("-c", OPEN, INTRAMUROS_HOME=str(home)) as one, started("-c", OPEN, INTRAMUROS_HOME=str(home)) as two:
        assert all(first_line(process).startswith("open True") for process in (one, two))
        with started("-c", OPEN, INTRAMUROS_HOME=str(home)) as three:
            # The first one has migrated, which needs LangGraph; from then on nothing heavy is loaded.
            assert first_line(three) == "open True"
        one.communicate(timeout=60)
        assert one.returncode == 0
        assert (home / "postgres" / "postmaster.pid").exists()
        two.communicate(timeout=60)
    assert not (home / "postgres" / "postmaster.pid").exists()


def test_somebody_elses_database_is_not_migrated(home: Path, empty_database: DatabaseUnderTest) -> None:
    addresses = {
        "INTRAMUROS_DATABASE_URL": empty_database.app_dsn,
        "INTRAMUROS_DATABASE_OWNER_URL": empty_database.owner_dsn,
    }
    with started("-c", OPEN, INTRAMUROS_HOME=str(home), **addresses) as process:
        assert first_line(process) == "schema_outdated"
    with psycopg.connect(empty_database.owner_dsn) as connection:
        (found,) = connection.execute("SELECT to_regclass('intramuros.schema_migrations')").fetchone() or ()
    assert found is None


def test_a_migrated_database_of_somebody_else_is_used(home: Path, fresh: DatabaseUnderTest) -> None:
    with started("-c", OPEN, INTRAMUROS_HOME=str(home), INTRAMUROS_DATABASE_URL=fresh.app_dsn) as process:
        assert first_line(process) == "open False"
    assert not (home / "postgres").exists()


@pytest.mark.parametrize("address", ["postgresql://app@203.0.113.7/x", "host=8.8.8.8 dbname=x", "service=elsewhere"])
def test_a_database_outside_is_refused_before_connecting(home: Path, address: str) -> None:
    with started("-c", OPEN, INTRAMUROS_HOME=str(home), INTRAMUROS_DATABASE_URL=address) as process:
        assert first_line(process) in ("egress_denied", "boot_refused")


# A server whose hook does nothing, for whatever reason: it is set, and sees no event.
BLIND = """
import sys
from policy import boot
boot.seal()
from policy import hook
hook._CHECKS.clear()
sys.argv = ["intramuros", "serve"]
from api.main import main
main()
"""


@pytest.mark.threat(2)
def test_a_server_whose_hook_sees_nothing_ends_before_it_listens(home: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with started("-c", BLIND, INTRAMUROS_HOME=str(home), INTRAMUROS_PORT=str(port)) as server:
        _, said = server.communicate(timeout=60)
    assert server.returncode == 1
    assert "the audit hook does not work" in said
    assert "Uvicorn running" not in said
    assert not (home / "postgres").exists()


def test_the_server_starts_answers_and_stops(home: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    variables = {"INTRAMUROS_HOME": str(home), "INTRAMUROS_PORT": str(port), "INTRAMUROS_LOG_LEVEL": "info"}
    with started("-m", "api.main", "serve", **variables) as server:
        assert server.stderr
        for line in server.stderr:
            if "Uvicorn running" in line:
                break
        reply = httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False)
        assert reply.json() == {"status": "ok"}
        assert "server" not in reply.headers
        with started("-m", "api.main", "serve", **variables) as second:
            _, said = second.communicate(timeout=60)
            assert second.returncode == 1
            assert f"Cannot listen on 127.0.0.1:{port}" in said
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)
    assert server.returncode == 0
    assert not (home / "postgres" / "postmaster.pid").exists()


@pytest.mark.parametrize(("name", "value"), [("HTTPS_PROXY", "http://127.0.0.1:3128"), ("INTRAMUROS_PORT", "x")])
def test_what_may_not_start_says_why_on_one_line(home: Path, name: str, value: str) -> None:
    with started("-m", "api.main", "serve", INTRAMUROS_HOME=str(home), **{name: value}) as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert name in said
    assert len(said.strip().splitlines()) == 1
