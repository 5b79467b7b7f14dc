"""The product in use, in a network namespace where a rule counts every packet that would leave: there is none."""

import re
import sys
from pathlib import Path

import pytest

from core.settings import Settings
from inference import fetch
from tests.airgap import namespace

pytestmark = namespace.needed

# The demo with the real models, every format, the worker as a process, and the page in a browser.
ACCEPTANCE = (
    "tests/integration/cli/test_demo.py",
    "tests/integration/cli/test_worker.py",
    "tests/integration/ingest/test_network_denied.py",
    "tests/integration/api/browser/test_browser_ask.py",
)
LEAKS = {
    "UDP": "from policy import unseen; unseen.udp('198.51.100.1')",
    "UDP over IPv6": "from policy import unseen; unseen.udp('2001:db8::1')",
    "TCP by C calls, as an event loop in C makes them": "from policy import unseen; unseen.tcp('198.51.100.1')",
    "libpq": "from policy import unseen; unseen.libpq('198.51.100.1')",
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


@pytest.mark.threat(3, 22)
@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_seen(leak: str) -> None:
    done = namespace.run([sys.executable, "-c", LEAKS[leak]])
    assert done.counters["left"] > 0, done.out
