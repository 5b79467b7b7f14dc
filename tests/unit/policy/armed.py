"""Runs code in a child process with the hook armed: a hook cannot be taken out again, so never in the test process."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]

_PRELUDE = """
import asyncio, json, os, socket, subprocess, sys, threading
from pathlib import Path
from core.errors import EgressDenied
from policy import hook, ledger
from policy.egress import Policy

POLICY = Policy(
    scope="private",
    peers=frozenset({("10.0.0.5", 443), ("fd00::5", 443)}),
    ports=frozenset({11434}),
    names=frozenset({"models"}),
    listen=("0.0.0.0", 8400),
    sockets=("%(sockets)s",),
)

def outcome(action):
    '''The reason of a denial, else how far the system let it go.'''
    try:
        action()
    except EgressDenied as denied:
        return denied.reason
    except (OSError, ValueError, OverflowError) as error:
        return "passed:" + type(error).__name__
    return "passed"

def report(value):
    print(json.dumps(value))
"""


def run(code: str, sockets: Path | str = "/nowhere", **environment: str) -> Any:
    """The value that `code` hands to `report`, run in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _PRELUDE % {"sockets": sockets} + code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", **environment},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
