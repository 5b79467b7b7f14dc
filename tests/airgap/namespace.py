"""Runs a command in a network namespace that has a route to everywhere and a rule that judges what would leave."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.paths import PROJECT

COUNTING = PROJECT / "tests" / "airgap" / "airgap.nft"
TOOLS = ("unshare", "ip", "nft")
_SETUP = """
set -e
rules=$1; counters=$2; shift 2
ip link set lo up
ip route add default dev lo
ip -6 route add default dev lo
[ -z "$rules" ] || nft --define user="$(id --user)" --file "$rules"
set +e
"$@"
code=$?
nft --json list counters >"$counters"
exit $code
"""


@dataclass(frozen=True, slots=True)
class Run:
    """How a command ended, and the packets that each named counter of the rules counted."""

    code: int
    out: str
    counters: Mapping[str, int]


def missing() -> str | None:
    """Why there can be no namespace here, None where there can."""
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    if absent:
        return f"{', '.join(absent)} not installed"
    tried = subprocess.run(["unshare", "--net", "nft", "list", "ruleset"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"no network namespace may be made here: {tried.stderr.strip()}"


REASON = missing()
needed = pytest.mark.skipif(REASON is not None, reason=str(REASON))


def run(command: Sequence[str | Path], rules: Path | None = COUNTING, **environment: str) -> Run:
    """Run the command in a namespace of its own under these nftables rules."""
    with tempfile.NamedTemporaryFile() as counted:
        done = subprocess.run(
            ["unshare", "--net", "bash", "-c", _SETUP, "namespace", str(rules or ""), counted.name, *map(str, command)],
            cwd=PROJECT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        objects = json.loads(counted.read() or b"{}").get("nftables", [])
    counters = {entry["counter"]["name"]: entry["counter"]["packets"] for entry in objects if "counter" in entry}
    return Run(done.returncode, done.stdout, counters)
