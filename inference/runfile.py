"""How the processes of one INTRAMUROS_HOME find and share the one embedded chat model.

Two files in `home/run`, and what the kernel knows about their locks:

- `chat-model.json` is locked exclusively by the child for as long as it lives, and holds where it listens once it has
  loaded its model. So there is never a second child, and a stale file is told from a live one without trusting a pid.
- `chat-model.used` is locked shared by whoever calls the model. Its time is that of the last use. Before the child ends
  it takes that lock exclusively: it never ends under a call, and no call begins while it ends.

The kernel lets a lock go with the process that held it, however that ended.
"""

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Self

_TRIES = 40
_PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Running:
    """A child that answers at `url` to the bearer of `key`; `model` and `num_ctx` are what it was started with."""

    pid: int
    url: str
    key: str
    model: str
    num_ctx: int

    @classmethod
    def find(cls, home: Path) -> Self | None:
        """The living child, None when there is none or it is still loading."""
        try:
            with _open(home, "chat-model.json") as file:
                if _lock(file, fcntl.LOCK_SH):
                    return None  # nobody holds it: whatever it says is stale
                return cls(**json.loads(file.read()))
        except (ValueError, TypeError):  # empty or half written: still loading
            return None

    def end(self) -> None:
        """Ask the child to end at once."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)


def alive(home: Path) -> bool:
    """Whether a child lives, loaded or loading."""
    with _open(home, "chat-model.json") as file:
        return not _lock(file, fcntl.LOCK_SH)


@contextmanager
def owned(home: Path, *, tries: int = _TRIES) -> Iterator[IO[str] | None]:
    """Become the one child, for the length of the context; yields None when another one lives."""
    with _open(home, "chat-model.json") as file:
        for _ in range(tries):  # somebody who looks whether a child lives holds the lock for a moment
            if _lock(file, fcntl.LOCK_EX):
                break
            time.sleep(_PAUSE)
        else:
            yield None
            return
        file.truncate(0)
        yield file


def announce(file: IO[str], running: Running) -> None:
    """Tell the others, through the file of `owned`, where the child listens."""
    file.seek(0)
    file.write(json.dumps(asdict(running)))
    file.flush()


@contextmanager
def using(home: Path) -> Iterator[None]:
    """Keep the child from ending while the context lasts. Waits (briefly) for one that is just ending."""
    with _open(home, "chat-model.used") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        os.utime(file.fileno())
        try:
            yield
        finally:
            os.utime(file.fileno())


@contextmanager
def unused(home: Path, idle: float) -> Iterator[bool]:
    """Keep everybody from using the child; yields False when somebody does, or did less than `idle` seconds ago."""
    with _open(home, "chat-model.used") as file:
        yield _lock(file, fcntl.LOCK_EX) and time.time() - os.fstat(file.fileno()).st_mtime >= idle


def note_use(home: Path) -> None:
    """Count this moment as a use."""
    with using(home):
        pass


def _open(home: Path, name: str) -> IO[str]:
    folder = home / "run"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    return os.fdopen(descriptor, "r+", encoding="utf-8")


def _lock(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
