"""Large pages: what the process holds stays as it was, and only whole ones of its own are asked for."""

import sys
from pathlib import Path

import pytest

from ingest import memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the pages of Linux")


def test_what_is_held_stays() -> None:
    held = bytearray(b"word" * 2_000_000)
    memory.fold()
    assert held == b"word" * 2_000_000


def test_only_whole_pages_of_its_own_memory_are_folded() -> None:
    held = bytearray(16 * 1024 * 1024)
    ranges = list(memory._ranges())
    assert any(end - begin >= len(held) // 2 for begin, end in ranges)
    assert all(begin % memory._LARGE_PAGE == end % memory._LARGE_PAGE == 0 < end - begin for begin, end in ranges)
    files = [line.split("-")[0] for line in Path("/proc/self/maps").read_text().splitlines() if ".so" in line]
    assert not any(begin <= int(start, 16) < end for start in files for begin, end in ranges)
