"""The product in use, in a network namespace where a rule counts every packet that would leave: there is none."""

import re
import sys
from pathlib import Path

import pytest

from core.settings import Settings
from inference import fetch
from tests.airgap import namespace
from tests.paths import UVLOOP

pytestmark = namespace.needed

# The demo with the real models, every format, the worker as a process, and the page in a browser.
ACCEPTANCE = (
    "tests/integration/cli/test_demo.py",
    "tests/integration/cli/test_worker.py",
    "tests/integration/ingest/test_network_denied.py",
    "tests/integration/api/browser/test_browser_ask.py",
)
# Connects as a program on this loop would, with the tripwire set: it sees none of it, which is why the loop is refused.
UVLOOP_LEAK = f"""
import asyncio, sys
from policy import egress, hook
hook.arm(egress.Policy())
sys.path.insert(0, {str(UVLOOP)!r})
import uvloop

async def connect():
    assert isinstance(asyncio.get_running_loop(), uvloop.Loop)
    await asyncio.wait_for(asyncio.open_connection('198.51.100.1', 443), 1)

try:
    uvloop.run(connect())
except TimeoutError:
    print("nobody answered")
"""
LEAKS = {
    "UDP": "from policy import unseen; unseen.udp('198.51.100.1')",
    "UDP over IPv6": "from policy import unseen; unseen.udp('2001:db8::1')",
    "TCP by C calls": "from policy import unseen; unseen.tcp('198.51.100.1')",
    "libpq": "import psycopg; psycopg.connect('hostaddr=198.51.100.1 user=x connect_timeout=2')",
    "a name look-up": "import socket; socket.getaddrinfo('leak.example', 80)",
}


@pytest.mark.models
@pytest.mark.skipif(not fetch.is_ready(Settings.load()), reason="run `intramuros models pull` first")
@pytest.mark.threat(4)
def test_nothing_leaves_in_use(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'in'}"]
    done = namespace.run([*command, *ACCEPTANCE])
    assert done.code == 0, done.out[-8000:]
    passed = re.search(r"(\d+) passed", done.out)
    assert passed is not None
    assert int(passed[1]) >= 10
    assert done.counters == {"left": 0}


@pytest.mark.threat(1, 3)
@pytest.mark.skipif(not UVLOOP.is_dir(), reason="run `make test`: it puts uvloop beside the environment")
def test_uvloop_leaks_past_the_tripwire_and_is_seen() -> None:
    done = namespace.run([sys.executable, "-c", UVLOOP_LEAK])
    assert done.counters["left"] > 0, done.out
    assert "nobody answered" in done.out


@pytest.mark.threat(3, 22)
@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_seen(leak: str) -> None:
    done = namespace.run([sys.executable, "-c", LEAKS[leak]])
    assert done.counters["left"] > 0, done.out
