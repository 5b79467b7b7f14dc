"""What processes hold and use, asked of Linux."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_TICK: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def readers() -> list[int]:
    """The warm reader of documents below this process, with whatever it runs."""
    return [pid for pid in _below(os.getpid()) if b"ingest.reader" in _read(pid, "cmdline")]


def servers(home: Path) -> list[int]:
    """The embedded PostgreSQL of this home, with all that it runs."""
    found = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    heads = [pid for pid in found if os.fsencode(home) in _read(pid, "cmdline") and b"-D" in _read(pid, "cmdline")]
    return [pid for head in heads for pid in (head, *_below(head))]


def cpu_seconds(pids: list[int]) -> float:
    """Processor time of these and of their children that have ended."""
    return sum(sum(map(int, _status(pid)[11:15])) for pid in pids) / _TICK


def megabytes(pid: int) -> float:
    """Resident memory."""
    pages = _read(pid, "statm").split()
    return int(pages[1]) * _PAGE / 2**20 if pages else 0.0


def _below(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*"):
        for child in _read(pid, f"task/{task.name}/children").split():
            yield int(child)
            yield from _below(int(child))


def _status(pid: int) -> list[bytes]:
    """The fields after the name in brackets, which may hold anything; zeros for a process that has ended."""
    return _read(pid, "stat").rpartition(b")")[2].split() or [b"0"] * 50


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
