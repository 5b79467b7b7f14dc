"""A copy of the project in which guards are taken away, and tests run in it by a Python of their own."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.mutation.guards import Guard
from tests.paths import PROJECT

COPIED = (
    "core",
    "policy",
    "storage",
    "inference",
    "ingest",
    "agent",
    "api",
    "deploy",
    "docs",
    "tests",
    "pyproject.toml",
)
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", "benchmarks")
SECONDS = 600
# Pytest's exit code for "some tests failed", as opposed to "nothing ran" or "could not be collected".
FAILED = 1


def copy(target: Path) -> Path:
    """The project's sources and tests in `target`."""
    for name in COPIED:
        source = PROJECT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=LEFT_OUT)
        else:
            shutil.copy2(source, target / name)
    return target


def run(project: Path, tests: Sequence[str]) -> int:
    """Pytest's exit code for these tests of a copy."""
    # From the copy's folder, which comes before an installed project in the search for modules.
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, cwd=project, capture_output=True, timeout=SECONDS, check=False).returncode


def survives(project: Path, guard: Guard) -> bool:
    """Whether the guard's test stays green, or does not run at all, with the guard taken away. Puts it back."""
    path = project / guard.file
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole.replace(guard.text, guard.without, 1), encoding="utf-8")
    try:
        return run(project, [guard.test]) != FAILED
    finally:
        path.write_text(whole, encoding="utf-8")
