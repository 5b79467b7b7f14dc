"""The process inside the jail: it imports what reading needs, then forks one child for each document.

It speaks lines of JSON. In come orders, {"id", "path", "name", "folder"}, with "page" and "width" besides for a page's
picture, or {"stop": id}; out go first the walls that hold, then {"id", "status"} as each child ends. It ends with its
standard input, and takes all children along.
Started by `ingest.jail`, never by hand.
"""

import gc
import importlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

from ingest import memory, walls
from policy import boot

# Exit status of a child that could not even write down what went wrong.
BROKEN = 70
# Most processes that one document's converters may take.
_PROCESSES = 512
# Objects that a child makes more than it lets go before it looks for cycles among them.
_GARBAGE = 100_000
# How deep a family of processes is followed that a dead child has left behind.
_GENERATIONS = 20
_LINUX = sys.platform == "linux"
_SHARED_FOLDER = Path("/tmp")  # noqa: S108 where LibreOffice makes its socket
_OWN_PACKAGES = ("core", "inference", "ingest", "policy", "storage")


@dataclass(frozen=True, slots=True)
class Terms:
    """What a reader is told on its command line. `module` has `preload`, `read` and `picture`; sizes in bytes.

    `root` is the folder in which the documents get theirs; `options` are the fields of ParseOptions.
    """

    module: str
    root: str
    memory: int
    file_size: int
    seconds: int
    quarantine: bool
    options: Mapping[str, Any]

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


def main() -> None:
    """Leave the network, import, and serve until standard input ends."""
    boot.seal()
    terms = Terms.from_json(sys.argv[1])
    Reader(terms, narrow=_apart(Path(terms.root))).serve()


def _apart(root: Path) -> bool:
    """Go on in a process without a network, where that may be had; this one then only waits, and cleans up.

    Whether that process may write only below `root`, too.
    """
    if not walls.attempt(walls.leave):
        return False
    inner = os.fork()
    if inner:
        os.close(0)
        os.close(1)
        _, status = os.waitpid(inner, 0)
        shutil.rmtree(root, ignore_errors=True)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    walls.die_with_parent()
    return walls.attempt(lambda: walls.write_only_below(root))


class Reader:
    """The serving side. `narrow`: nothing but its root can be written to by this process."""

    def __init__(self, terms: Terms, *, narrow: bool) -> None:
        self._terms = terms
        self._narrow = narrow
        # The running ones, by the id of their order.
        self._children: dict[int, int] = {}
        self._trees = False
        # What a library prints must not be taken for a report.
        self._reports = os.dup(1)
        os.dup2(2, 1)
        self._awake, self._wake = os.pipe()

    def serve(self) -> None:
        self._module = importlib.import_module(self._terms.module)
        self._module.preload()
        boot.verify()
        _arm(forks=True)
        # What is there now stays: a collection in a child would copy every page that it looks at.
        gc.collect()
        gc.freeze()
        # A child ends before its garbage matters; what it may hold is limited anyhow.
        gc.set_threshold(_GARBAGE)
        walls.attempt(memory.fold)
        self._trees = walls.attempt(_try_tree)
        walls.attempt(walls.adopt_orphans)
        self._say(self._proven_walls())
        self._watch_children()
        try:
            self._loop()
        finally:
            while self._children:
                _, child = self._children.popitem()
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                self._sweep(session=child)
            shutil.rmtree(self._terms.root, ignore_errors=True)

    def _loop(self) -> None:
        unread = b""
        while True:
            ready, _, _ = select.select([0, self._awake], [], [])
            if self._awake in ready:
                os.read(self._awake, 512)
                self._reap()
            if 0 in ready:
                read = os.read(0, 65536)
                if not read:
                    return
                *lines, unread = (unread + read).split(b"\n")
                for line in lines:
                    self._obey(json.loads(line))

    def _obey(self, order: Mapping[str, Any]) -> None:
        if "stop" in order:
            self._stop(order["stop"])
        else:
            self._children[order["id"]] = self._child(lambda: self._read(order))

    def _say(self, report: Mapping[str, Any]) -> None:
        os.write(self._reports, json.dumps(report).encode() + b"\n")

    # --- children ---

    def _child(self, work: Callable[[], object]) -> int:
        """The process that does this work: exit status 0 when it came to its end."""
        child = walls.fork_tree() if self._trees else os.fork()
        if child == 0:
            self._become_child(work)
        return child

    def _become_child(self, work: Callable[[], object]) -> NoReturn:
        status = BROKEN
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            nothing = os.open(os.devnull, os.O_RDWR)
            for standard in (0, 1, 2):
                os.dup2(nothing, standard)
            for own in (nothing, self._reports, self._awake, self._wake):
                os.close(own)
            work()
            status = 0
        finally:
            # No way back into the loop above, whatever was raised.
            os._exit(status)

    def _watch_children(self) -> None:
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)

    def _reap(self) -> None:
        for order, child in list(self._children.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                del self._children[order]
                self._sweep(session=child)
                self._say({"id": order, "status": os.waitstatus_to_exitcode(status)})

    def _stop(self, order: int) -> None:
        child = self._children.get(order)
        if child is not None:
            os.kill(child, signal.SIGKILL)

    def _sweep(self, session: int) -> None:
        """Kill what a dead child has left running, where the end of its tree does not see to that."""
        if self._trees or not _LINUX:
            return
        running = self._children.values()
        for _ in range(_GENERATIONS):
            found = [
                process
                for process, parent, of in _processes()
                if of == session or (parent == os.getpid() and process not in running and of not in running)
            ]
            for process in found:
                with suppress(ProcessLookupError, ChildProcessError):
                    os.kill(process, signal.SIGKILL)
                    # Its own children become ours only now.
                    os.waitpid(process, 0)
            if not found:
                return

    # --- inside a child ---

    def _read(self, order: Mapping[str, Any]) -> None:
        from ingest import reading
        from ingest.options import ParseOptions

        folder, document = Path(order["folder"]), Path(order["path"])
        self._enclose(folder, document)
        try:
            options = ParseOptions(**self._terms.options)
            if "page" in order:
                found = self._module.picture(document, order["name"], order["page"], order["width"], options)
            else:
                found = self._module.read(document, order["name"], options, quarantine=self._terms.quarantine)
            reading.pack(folder, found)
        except Exception as error:  # noqa: BLE001 whatever a hostile file raises is an answer about that file
            reading.pack(folder, reading.refused(error))

    def _enclose(self, folder: Path, document: Path) -> dict[str, bool]:
        """Build the walls around this process, with `folder` inside; which of the system's own could be built."""
        os.chdir(folder)
        tempfile.tempdir = str(folder)
        _arm(forks=False)
        _limit(self._terms)
        walls.attempt(walls.volunteer)
        sockets = [] if self._narrow else [_SHARED_FOLDER]
        built = {
            "privileges": walls.attempt(walls.drop_privileges),
            "files": walls.attempt(lambda: walls.fence_files([folder], [document, *_code()], sockets)),
            "system_calls": walls.attempt(walls.fence_system_calls),
        }
        walls.attempt(walls.die_with_parent)
        return built

    # --- proof ---

    def _proven_walls(self) -> dict[str, bool]:
        """What holds around a child, tried by one."""
        result = Path(self._terms.root) / "walls.json"

        def prove() -> None:
            built = self._enclose(result.parent, result)
            found = {"network": walls.no_network(), **built, "files": built["files"] and walls.no_foreign_files()}
            result.write_text(json.dumps(found))

        _, status = os.waitpid(self._child(prove), 0)
        found: dict[str, bool] = json.loads(result.read_text()) if status == 0 else {}
        return {**found, "processes": self._trees}


def _try_tree() -> None:
    child = walls.fork_tree()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _processes() -> Iterator[tuple[int, int, int]]:
    """Every process of the machine: its id, its parent, its session."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # After the name in brackets, which may hold anything: state, parent, group, session.
            _, parent, _, session, *_ = (process / "stat").read_text().rpartition(")")[2].split()
            yield int(process.name), int(parent), int(session)


def _arm(*, forks: bool) -> None:
    """Watch this process: no peer at all, no program but the converters."""
    from ingest import programs
    from policy import hook
    from policy.egress import Policy

    hook.arm(Policy(), programs=programs.installed(), forks=forks, network=False)


def _limit(terms: Terms) -> None:
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if _LINUX else 0
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: terms.file_size,
        # The wall-clock limit is kept from outside; this one holds when nobody is there to keep it.
        resource.RLIMIT_CPU: terms.seconds,
        resource.RLIMIT_AS: held + terms.memory,
    }
    if _LINUX and walls.counted_apart():
        limits[resource.RLIMIT_NPROC] = _PROCESSES
    for kind, most in limits.items():
        _, before = resource.getrlimit(kind)
        most = most if before == resource.RLIM_INFINITY else min(most, before)
        # Another system may not know a limit.
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))


def _code() -> list[Path]:
    """Where Python code may still be imported from."""
    packages = [Path(folder) for name in _OWN_PACKAGES if name in sys.modules for folder in sys.modules[name].__path__]
    libraries = [Path(entry) for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    return [Path(sys.prefix), Path(sys.base_prefix), *libraries, *packages]


if __name__ == "__main__":
    main()
