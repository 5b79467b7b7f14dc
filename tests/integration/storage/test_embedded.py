"""The embedded server: shared by processes, stopped by the last, started by one, closed to strangers."""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from core.errors import DatabaseUnavailable, MissingExtra
from storage import embedded

HOLD = """
import sys
from pathlib import Path
from storage import embedded
with embedded.start(Path(sys.argv[1])) as server:
    print(server.app_dsn, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def home() -> Iterator[Path]:
    # Not below pytest's own folder, which each run of pytest closes to other accounts, the server's included.
    with tempfile.TemporaryDirectory(prefix="intramuros-test-") as folder:
        yield Path(folder)


def another(home: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def answers(dsn: str) -> bool:
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True


def test_two_that_start_at_once_share_one_server_and_the_last_stops_it(home: Path) -> None:
    first, second = another(home), another(home)
    for process in (first, second):
        assert process.stdout is not None
    addresses = [process.stdout.readline() for process in (first, second) if process.stdout]
    assert addresses[0] == addresses[1]
    owner = psycopg.conninfo.make_conninfo(addresses[0].strip(), user=embedded.SUPERUSER)
    first.communicate("\n")
    assert answers(owner)
    second.communicate("\n")
    assert not answers(owner)
    assert (first.returncode, second.returncode) == (0, 0)


def test_a_process_that_is_killed_does_not_keep_the_server(home: Path) -> None:
    doomed = another(home)
    assert doomed.stdout is not None
    doomed.stdout.readline()
    doomed.kill()
    doomed.communicate()
    server = embedded.start(home)
    assert answers(server.owner_dsn)
    server.close()
    server.close()
    assert not answers(server.owner_dsn)


def test_it_listens_on_a_socket_only_and_knows_its_users(home: Path) -> None:
    with embedded.start(home) as server, psycopg.connect(server.owner_dsn) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
        rules = connection.execute("SELECT type, auth_method FROM pg_hba_file_rules").fetchall()
        assert rules == [("local", "peer")]
        assert conninfo_to_dict(server.app_dsn)["host"] == str(home / "run")
        stranger = psycopg.conninfo.make_conninfo(server.owner_dsn, user="stranger")
        assert not answers(stranger)


async def test_a_long_home_gets_a_short_socket(home: Path) -> None:
    deep = home / ("a" * 60) / ("b" * 60)
    server = await asyncio.to_thread(embedded.start, deep)
    assert answers(server.owner_dsn)
    await asyncio.to_thread(server.close)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts the server as another account")
def test_folders_above_are_opened_for_the_servers_account(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    home.chmod(0o700)
    with embedded.start(home / "below") as server:
        assert answers(server.owner_dsn)
    assert home.stat().st_mode & 0o777 == 0o701
    assert str(home) in caplog.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts the server as another account")
def test_a_folder_that_cannot_be_opened_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    home.chmod(0o700)
    monkeypatch.setattr(Path, "chmod", refused)
    with pytest.raises(DatabaseUnavailable, match=f"chmod o.x {home}.*INTRAMUROS_HOME"):
        embedded.start(home / "below")


def test_a_home_that_is_a_file_is_named(home: Path) -> None:
    (home / "file").touch()
    with pytest.raises(DatabaseUnavailable, match=r"file/postgres.*INTRAMUROS_HOME"):
        embedded.start(home / "file")


def test_a_socket_folder_of_somebody_else_is_refused(home: Path) -> None:
    (home / "elsewhere").mkdir()
    (home / "run").symlink_to(home / "elsewhere")
    with pytest.raises(DatabaseUnavailable, match="somebody else"):
        embedded.start(home)


def test_a_first_start_that_was_cut_short_begins_anew(home: Path) -> None:
    (home / "postgres" / "base").mkdir(parents=True)
    (home / "postgres" / "postgresql.conf").write_text("half")
    with embedded.start(home) as server:
        assert answers(server.owner_dsn)


def test_a_server_that_does_not_start_is_named_with_its_log(home: Path) -> None:
    embedded.start(home).close()
    with (home / "postgres" / "postgresql.conf").open("a") as file:
        file.write("no_such_setting = 1\n")
    with pytest.raises(DatabaseUnavailable, match=r"server\.log"):
        embedded.start(home)


def test_without_the_wheel_the_extra_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {path.name for path in embedded.programs()} >= {"initdb", "pg_ctl"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="embedded"):
        embedded.start(home)
    assert embedded.programs() == []


@pytest.mark.parametrize(
    ("limit", "buffers"), [("1073741824", 256), ("67108864", 128), ("1099511627776", None), ("max", None)]
)
def test_a_container_gives_a_quarter_of_its_memory(
    limit: str, buffers: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "memory.max"
    told.write_text(f"{limit}\n")
    monkeypatch.setattr(embedded, "_LIMIT", tmp_path / "absent")
    of_machine = embedded._buffers()
    assert 128 <= of_machine <= 4096
    monkeypatch.setattr(embedded, "_LIMIT", told)
    assert embedded._buffers() == (buffers or of_machine)
