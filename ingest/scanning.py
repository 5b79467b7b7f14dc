"""What lies in a folder: its files by the names that documents have, their digests, and what cannot be judged now."""

import os
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import IngestError, NotFound
from ingest import metadata
from ingest.files import digest
from ingest.kinds import supported

# Two stats of a file that is not being written are equal; a changed one differs in at least one of these.
_Signature = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file that can become a document: where it lies, its digest, and that of its sidecar, where there is one."""

    path: Path
    sha256: str
    sidecar: str | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """One look at a folder, by the files' names below its parent (`handbook/leave.md`), in order.

    `passed_over` says why a file is none of ours. `unclear` says why a file, or a folder with all below it, cannot be
    judged now: nothing may be concluded from its absence. `unsettled` counts those of them that are being written.
    """

    files: Mapping[str, Entry] = field(default_factory=dict)
    passed_over: Mapping[str, str] = field(default_factory=dict)
    unclear: Mapping[str, str] = field(default_factory=dict)
    unsettled: int = 0

    @property
    def digests(self) -> dict[str, str]:
        """The digest of every file by its name."""
        return {name: entry.sha256 for name, entry in self.files.items()}

    def may_hold(self, name: str) -> bool:
        """Whether a file of this name may be there unseen."""
        return any(name == place or name.startswith(place + "/") for place in self.unclear)


class Scanner:
    """Looks at one folder again and again, and reads a file again only when its size, time or inode changed.

    A file whose last change is less than `settle` seconds ago is left for the next look: it may not be whole.
    """

    def __init__(self, folder: Path, *, settle: float = 0.0) -> None:
        self._folder = folder
        self._settle = settle
        self._known: dict[Path, tuple[_Signature, str]] = {}

    def scan(self) -> Scan:
        """Look now; blocks. Raises NotFound where there is no folder, IngestError where it cannot be listed."""
        if not self._folder.is_dir():
            raise NotFound(f"There is no folder {self._folder}. Correct the path, or mount it; nothing was changed")
        look = _Look(self._folder, self._settle, self._known)
        for path in look.walk():
            look.judge(path)
        # What is gone need not be remembered.
        self._known = look.seen
        return Scan(
            dict(sorted(look.files.items())),
            dict(sorted(look.passed_over.items())),
            dict(sorted(look.unclear.items())),
            look.unsettled,
        )


@dataclass(slots=True)
class _Look:
    folder: Path
    settle: float
    known: Mapping[Path, tuple[_Signature, str]]
    seen: dict[Path, tuple[_Signature, str]] = field(default_factory=dict)
    files: dict[str, Entry] = field(default_factory=dict)
    passed_over: dict[str, str] = field(default_factory=dict)
    unclear: dict[str, str] = field(default_factory=dict)
    unsettled: int = 0

    def walk(self) -> Iterator[Path]:
        """Every file below the folder but hidden ones; linked folders are not entered."""
        for place, folders, names in os.walk(self.folder, onerror=self._not_listed):
            here = Path(place)
            for name in folders:
                if (here / name).is_symlink() and not _hidden(name):
                    self.passed_over[self._name(here / name)] = "a link to a folder"
            folders[:] = [name for name in folders if not _hidden(name)]
            yield from (here / name for name in names if not _hidden(name))

    def judge(self, path: Path) -> None:
        """Put a file where it belongs."""
        if metadata.is_sidecar(path):
            return
        name = self._name(path)
        try:
            self._judge(path, name)
        except OSError as error:
            # Gone since it was listed, not ours to read, or a share that went away: the next look will tell.
            self.unclear[name] = error.strerror or "cannot be read"

    def _judge(self, path: Path, name: str) -> None:
        if reason := self._foreign(path, name):
            self.passed_over[name] = reason
            return
        before = path.stat()
        if not before.st_size:
            self.unclear[name] = "empty"
        elif abs(time.time() - before.st_mtime) < self.settle:
            self._not_settled(name)
        else:
            sha256 = self._digest(path, before)
            if self.settle and _signature(path.stat()) != _signature(before):
                self._not_settled(name)
                return
            self.files[name] = Entry(path, sha256, self._sidecar(metadata.sidecar_of(path)))

    def _foreign(self, path: Path, name: str) -> str | None:
        if path.is_symlink() and not path.resolve(strict=True).is_relative_to(self.folder.resolve()):
            return "a link that leads out of the folder"
        if not stat.S_ISREG(path.stat().st_mode):
            return "not a file"
        if not supported(path):
            return "not a supported format"
        return "another file's name looks the same" if name in self.files else None

    def _sidecar(self, path: Path) -> str | None:
        ours = path.is_file() and path.resolve().is_relative_to(self.folder.resolve())
        return metadata.digest(path) if ours else None

    def _digest(self, path: Path, status: os.stat_result) -> str:
        signature = _signature(status)
        known = self.known.get(path)
        sha256 = known[1] if known is not None and known[0] == signature else digest(path).sha256
        self.seen[path] = (signature, sha256)
        return sha256

    def _not_settled(self, name: str) -> None:
        self.unclear[name] = "being written"
        self.unsettled += 1

    def _not_listed(self, error: OSError) -> None:
        place = Path(error.filename)
        if place == self.folder:
            raise IngestError(f"The folder {place} cannot be listed ({error.strerror}). Nothing was changed") from error
        self.unclear[self._name(place)] = error.strerror or "cannot be listed"

    def _name(self, path: Path) -> str:
        return shown_path(path, self.folder.parent)


def shown_path(path: Path, root: Path) -> str:
    """The path below `root` with forward slashes; bytes that are no UTF-8 are shown as U+FFFD."""
    below = path.relative_to(root) if path.is_relative_to(root) else Path(path.name)
    return os.fsencode(below.as_posix()).decode("utf-8", errors="replace")


def _hidden(name: str) -> bool:
    # Office programs keep a file `~$name` beside each one that is open.
    return name.startswith((".", "~$"))


def _signature(status: os.stat_result) -> _Signature:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def files_below(folder: Path) -> list[Path]:
    """Its files at any depth, hidden ones and what lies in hidden folders left out."""

    def hidden(path: Path) -> bool:
        return any(part.startswith(".") for part in path.relative_to(folder).parts)

    return sorted(path for path in folder.rglob("*") if path.is_file() and not hidden(path))


def passed_over(path: Path, folder: Path) -> str | None:
    """Why a file of a folder is none of ours, None for one that is."""
    if not path.resolve().is_relative_to(folder.resolve()):
        return "a link that leads out of the folder"
    if metadata.is_sidecar(path):
        return "a sidecar, which speaks of the file beside it"
    if not supported(path):
        return "not a supported format"
    if not path.is_file():
        return "gone since the folder was listed"
    return "empty" if path.stat().st_size == 0 else None
