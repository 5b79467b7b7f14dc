"""The proof that nothing gets out: every attempt, made in processes that start like ours, and one verdict."""

import hashlib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from core.errors import PolicyError
from policy.attempts import V4, Outcome, packed
from policy.egress import Policy

# What a careless or hostile host may have set; a sealed process takes none of it over.
_SURROUNDINGS = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"} | {
    "LANGSMITH_TRACING": "true",
    "LANGCHAIN_TRACING_V2": "true",
    "LANGSMITH_ENDPOINT": f"http://{V4}",
    "LANGSMITH_API_KEY": "x",
    "OLLAMA_HOST": f"http://{V4}",
    "OPENAI_BASE_URL": f"http://{V4}",
    "HF_ENDPOINT": f"http://{V4}",
    "HF_HUB_OFFLINE": "0",
}
_SEAL = """
import sys
sys.path[:0] = sys.argv[1:]
from core.errors import BootRefused
from policy import boot
try:
    boot.seal()
except BootRefused:
    sys.exit(42)
"""
_REFUSED = 42
# Seconds; the attempts take about eight.
_PATIENCE = 180


def attempts(policy: Policy) -> list[Outcome]:
    """Try everything, in processes of their own. Blocks. Raises PolicyError where they cannot be run."""
    return [*_starts(), *_tried(policy)]


def report(policy: Policy, outcomes: Sequence[Outcome], now: datetime | None = None) -> dict[str, Any]:
    """What was tried, what became of it, and of what: a mapping that can be signed."""
    return {
        "report": "egress",
        "version": version("intramuros"),
        "made_at": (now or datetime.now(UTC)).isoformat(timespec="seconds"),
        "machine": _machine(),
        "policy": {"scope": policy.scope, "digest": digest(policy)},
        "verdict": verdict(outcomes),
        "counts": dict(sorted(Counter(outcome.result for outcome in outcomes).items())),
        "attempts": [asdict(outcome) for outcome in outcomes],
    }


def verdict(outcomes: Sequence[Outcome]) -> str:
    """`closed`: nothing gets out. `open`: only what the operating system should stop. `broken`: past the program."""
    results = {outcome.result for outcome in outcomes}
    return "broken" if "passed" in results or not outcomes else "open" if "open" in results else "closed"


def digest(policy: Policy) -> str:
    """SHA-256 over everything the policy says."""
    return hashlib.sha256(packed(policy).encode()).hexdigest()


def _machine() -> str:
    """A name of this machine that does not tell its identity: a hash of its id, or nothing where it has none."""
    try:
        identity = Path("/etc/machine-id").read_bytes().strip()
    except OSError:
        return ""
    return hashlib.sha256(b"intramuros:" + identity).hexdigest()[:32]


def _tried(policy: Policy) -> list[Outcome]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "policy.attempts"],
        input=packed(policy),
        capture_output=True,
        text=True,
        env=_SURROUNDINGS,
        timeout=_PATIENCE,
        check=False,
    )
    try:
        return [Outcome(**told) for told in json.loads(done.stdout.splitlines()[-1])]
    except (IndexError, ValueError, TypeError) as error:
        raise PolicyError("The attempts could not be made: the process that makes them did not report.") from error


def _starts() -> list[Outcome]:
    """Starts that must be refused: with a proxy, and with an event loop that nobody can watch."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "uvloop.py").touch()
        return [
            _start("a proxy in the environment", "proxy", {"HTTPS_PROXY": f"http://{V4}:3128"}),
            _start("an event loop in C (uvloop)", "blind_loop", {}, folder),
        ]


def _start(name: str, reason: str, surroundings: Mapping[str, str], *folders: str) -> Outcome:
    done = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-P", "-c", _SEAL, *folders],
        env={**_SURROUNDINGS, **surroundings},
        capture_output=True,
        timeout=_PATIENCE,
        check=False,
    )
    if done.returncode == _REFUSED:
        return Outcome(name, "refused", "boot", reason)
    return Outcome(name, "passed", "boot", f"exit_{done.returncode}")
