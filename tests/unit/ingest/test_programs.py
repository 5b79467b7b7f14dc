"""Converters are started by name, know nothing of us, and leave nothing behind. Shell scripts stand for them."""

import os
import time
from pathlib import Path

import pytest

from core.errors import DamagedFile, MissingConverter, ParserStopped
from ingest import programs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder; programs are looked for in the folder `bin` beside it."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setattr(programs, "PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(programs, "PACKAGES", {"reader": ("reader-package", "things")})
    return tmp_path / "work"


def install(folder: Path, script: str, name: str = "reader") -> Path:
    program = folder.parent / "bin" / name
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    return program


def test_what_it_prints_is_the_answer(folder: Path) -> None:
    install(folder, 'echo "$@"; echo noise >&2; cat')
    assert programs.run(["reader", "a b", "c"], timeout=60, cwd=folder) == b"a b c\n"


def test_a_missing_converter_names_its_package(folder: Path) -> None:
    assert programs.find("reader") is None
    assert programs.installed() == []
    with pytest.raises(MissingConverter, match="apt install reader-package"):
        programs.run(["reader"], timeout=60, cwd=folder)


def test_links_are_followed_to_the_program(folder: Path) -> None:
    program = install(folder, "exit 0", "reader-2")
    (folder.parent / "bin" / "reader").symlink_to(program)
    assert programs.find("reader") == program
    assert programs.installed() == [program]


def test_the_program_behind_a_starter_is_used(folder: Path) -> None:
    install(folder, "echo starter")
    inner = install(folder, "echo program", "reader.bin")
    assert programs.find("reader") == inner
    assert programs.run(["reader"], timeout=60, cwd=folder) == b"program\n"


def test_its_surroundings_are_its_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTRAMUROS_OPENAI_API_KEY", "secret")
    install(folder, "pwd; env")
    pwd, *rest = programs.run(["reader"], timeout=60, cwd=folder).decode().splitlines()
    environment = dict(line.split("=", 1) for line in rest)
    assert pwd == environment["HOME"] == environment["TMPDIR"] == str(folder)
    assert environment["LANG"] == "C.UTF-8"
    assert set(environment) - {"PWD", "OLDPWD", "SHLVL", "_"} == {
        *("PATH", "HOME", "TMPDIR", "LANG", "OSL_SOCKET_PATH", "OMP_THREAD_LIMIT")
    }


def test_an_exit_status_is_the_files_fault(folder: Path) -> None:
    install(folder, "exit 3")
    with pytest.raises(DamagedFile):
        programs.run(["reader"], timeout=60, cwd=folder)


def test_a_breakdown_is_told_apart(folder: Path) -> None:
    install(folder, "kill -SEGV $$")
    with pytest.raises(ParserStopped, match="broke down"):
        programs.run(["reader"], timeout=60, cwd=folder)


def test_a_program_that_asks_for_it_is_started_once_more(folder: Path) -> None:
    install(folder, "test -e profile && echo done && exit; touch profile; exit 81")
    assert programs.run(["reader"], timeout=60, cwd=folder) == b"done\n"


def test_time_ends_it_with_its_children(folder: Path) -> None:
    install(folder, "sleep 600 & echo $! > child; sleep 600")
    with pytest.raises(ParserStopped, match="INTRAMUROS_PARSE_TIMEOUT"):
        programs.run(["reader"], timeout=1, cwd=folder)
    assert _ends(int((folder / "child").read_text()))


def test_what_it_leaves_running_ends_with_it(folder: Path) -> None:
    install(folder, "sleep 600 >/dev/null 2>&1 & echo $!")
    assert _ends(int(programs.run(["reader"], timeout=60, cwd=folder)))


def _ends(process: int) -> bool:
    """Whether a killed process goes: it may take a moment."""
    deadline = time.monotonic() + 30
    while _runs(process) and time.monotonic() < deadline:
        os.sched_yield()
    return not _runs(process)


def _runs(process: int) -> bool:
    """Whether a process is there and no mere remnant that its parent has not asked for."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
