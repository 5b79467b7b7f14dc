"""How processes find the one embedded chat model. Locks of two open files exclude each other in one process too."""

import os
import time
from pathlib import Path

from inference import runfile
from inference.runfile import Running

CHILD = Running(pid=1, url="http://127.0.0.1:4711", key="secret", model="m.gguf", num_ctx=4096)


def test_nobody_is_found_where_nobody_runs(tmp_path: Path) -> None:
    assert Running.find(tmp_path) is None
    assert not runfile.alive(tmp_path)


def test_a_child_is_alive_at_once_and_found_when_it_listens(tmp_path: Path) -> None:
    with runfile.owned(tmp_path) as file:
        assert file is not None
        assert runfile.alive(tmp_path)
        assert Running.find(tmp_path) is None
        runfile.announce(file, CHILD)
        assert Running.find(tmp_path) == CHILD


def test_what_a_dead_child_left_is_not_believed(tmp_path: Path) -> None:
    with runfile.owned(tmp_path) as file:
        assert file is not None
        runfile.announce(file, CHILD)
    assert (tmp_path / "run" / "chat-model.json").read_text() != ""
    assert Running.find(tmp_path) is None


def test_there_is_never_a_second_child(tmp_path: Path) -> None:
    with runfile.owned(tmp_path) as first, runfile.owned(tmp_path, tries=2) as second:
        assert first is not None
        assert second is None


def test_the_key_is_for_the_owner_only(tmp_path: Path) -> None:
    with runfile.owned(tmp_path):
        assert (tmp_path / "run" / "chat-model.json").stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700


def test_a_child_in_use_may_not_end(tmp_path: Path) -> None:
    with runfile.using(tmp_path), runfile.using(tmp_path), runfile.unused(tmp_path, idle=0) as free:
        assert not free
    with runfile.unused(tmp_path, idle=0) as free:
        assert free


def test_a_child_may_end_when_it_was_idle_for_long_enough(tmp_path: Path) -> None:
    runfile.note_use(tmp_path)
    with runfile.unused(tmp_path, idle=600) as free:
        assert not free
    an_hour_ago = time.time() - 3600
    os.utime(tmp_path / "run" / "chat-model.used", (an_hour_ago, an_hour_ago))
    with runfile.unused(tmp_path, idle=600) as free:
        assert free
