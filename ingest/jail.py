"""Reading documents in a process that may not do anything else: the side that the rest of the program sees.

A file may hang its parser, eat the memory, crash it or take it over. What then ends is one child process, and one
document is refused; the next one is read by the next child.
"""

import asyncio
import itertools
import json
import logging
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

from core.errors import ParserStopped, ReaderUnavailable
from core.settings import Settings
from ingest import programs, reader, reading
from ingest.options import ParseOptions
from ingest.reader import Terms
from ingest.reading import Reading

log = logging.getLogger(__name__)

WALLS = ("network", "processes", "privileges", "files", "system_calls")

# A picture may take: somebody looks at an empty frame meanwhile.
PICTURE_SECONDS = 30.0
_START_SECONDS = 120.0
# A killed child is gone at once; a reader that does not say so has lost its way.
_STOP_SECONDS = 10.0
_LEAST_FILE_SIZE = 256 * 1024 * 1024

_Pipe = TypeVar("_Pipe")
_Result = TypeVar("_Result")


class Jail:
    """One warm reader process and its children. Started at the first use, and again whenever it has died.

    `module` has the functions `preload`, `read` and `picture` of `ingest.reading`. Belongs to one event loop.
    """

    def __init__(self, settings: Settings, *, module: str = reading.__name__) -> None:
        self._settings = settings
        self._module = module
        self._helper: _Helper | None = None
        self._closed = False
        self._starting = asyncio.Lock()
        self._unattended: set[asyncio.Task[Any]] = set()

    async def read(self, path: Path, name: str) -> Reading:
        """Read the document at `path`, which was given the name `name`.

        Raises the IngestError, NotFound or MissingExtra that its reading raised; ParserStopped when that took too long
        or too much memory, or ended the process; ReaderUnavailable when no reader can be started. Cancelling kills it.
        """
        limit = self._settings.max_file_bytes
        return await self._done(
            _Work(
                order=_about(path, name),
                seconds=self._settings.parse_timeout,
                too_long=reading.TIME,
                unpack=lambda folder: reading.unpack(folder, max_bytes=limit),
            )
        )

    async def picture(self, path: Path, name: str, page: int, width_px: int) -> bytes:
        """A page (from 1) of such a document as PNG, `width_px` wide where its shape allows.

        Raises NotFound for a page that is not there and for formats whose pages cannot be drawn; else as `read`.
        """
        return await self._done(
            _Work(
                order={**_about(path, name), "page": page, "width": width_px},
                seconds=min(self._settings.parse_timeout, PICTURE_SECONDS),
                too_long=reading.TIME_OF_PICTURE,
                unpack=lambda folder: reading.unpack_picture(folder).png(),
            )
        )

    async def walls(self) -> Mapping[str, bool]:
        """Which of WALLS hold on this machine, each tried from inside. Raises ReaderUnavailable."""
        found = (await self._running()).walls
        return {name: found.get(name, False) for name in WALLS}

    async def close(self) -> None:
        """End the reader and everything it has started, for good. Safe to call twice."""
        async with self._starting:
            self._closed = True
            helper, self._helper = self._helper, None
            if helper is not None:
                await helper.close()
        await asyncio.gather(*self._unattended, return_exceptions=True)

    async def _done(self, work: "_Work[_Result]") -> _Result:
        for _ in range(2):
            helper = await self._running()
            try:
                return await self._attempt(helper, work)
            except _HelperEndedError:
                # Perhaps the fault of another document that was read at the same time: each gets one more try.
                log.warning("the reader process ended")
        raise ParserStopped()

    async def _running(self) -> "_Helper":
        # For all who read and draw: it goes on when the one who asked first goes away.
        return await asyncio.shield(self._apart(self._started()))

    async def _started(self) -> "_Helper":
        async with self._starting:
            if self._closed:
                raise ReaderUnavailable("The reader of documents was closed. Start the program again.")
            if self._helper is not None and self._helper.ended:
                await self._helper.close()
                self._helper = None
            if self._helper is None:
                self._helper = await _Helper.start(self._settings, self._module)
            return self._helper

    async def _attempt(self, helper: "_Helper", work: "_Work[_Result]") -> _Result:
        folder = helper.folder()
        order, ended = helper.order(work.order, folder)
        try:
            async with asyncio.timeout(work.seconds):
                status = await asyncio.shield(ended)
            if status != 0:
                log.warning("reading ended early", extra={"status": status})
                raise ParserStopped()
            return await asyncio.to_thread(work.unpack, folder)
        except TimeoutError as error:
            raise ParserStopped(work.too_long) from error
        finally:
            # The caller may be cancelled once more while the child is being killed.
            await asyncio.shield(self._apart(_clear(helper, order, ended, folder)))

    def _apart(self, work: Coroutine[Any, Any, _Result]) -> asyncio.Task[_Result]:
        """Have something done to its end, whoever still waits for it."""
        task = asyncio.create_task(work)
        self._unattended.add(task)
        task.add_done_callback(self._unattended.discard)
        return task


@dataclass(frozen=True, slots=True)
class _Work(Generic[_Result]):
    """What a child is to do: the order, the seconds it has, what is said after those, how its outcome is taken in."""

    order: Mapping[str, Any]
    seconds: float
    too_long: str
    unpack: Callable[[Path], _Result]


def _about(path: Path, name: str) -> dict[str, Any]:
    return {"path": str(path.absolute()), "name": name}


async def _clear(helper: "_Helper", order: int, ended: "asyncio.Future[int]", folder: Path) -> None:
    """See that nothing of an order is left, neither process nor files."""
    try:
        if not ended.done():
            await helper.stop(order, ended)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


class _HelperEndedError(Exception):
    """The warm process is gone; its children with it."""


class _Helper:
    """A running reader process: orders out, ends of orders in."""

    def __init__(self, process: asyncio.subprocess.Process, root: Path) -> None:
        self.walls: Mapping[str, bool] = {}
        self._process = process
        self._root = root
        self._numbers = itertools.count()
        self._orders: dict[int, asyncio.Future[int]] = {}
        self._listening: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, settings: Settings, module: str) -> "_Helper":
        """Start a process and wait until it is warm. Raises ReaderUnavailable."""
        root = Path(tempfile.mkdtemp(prefix="intramuros-"))
        with tempfile.TemporaryFile() as said:
            try:
                helper = cls(await _launch(_terms(settings, module, root), said), root)
            except OSError as error:
                shutil.rmtree(root, ignore_errors=True)
                raise ReaderUnavailable() from error
            try:
                async with asyncio.timeout(_START_SECONDS):
                    helper.walls = await helper._first_report()
            except (TimeoutError, _HelperEndedError) as error:
                said.seek(0)
                reason = said.read().decode(errors="replace").strip() or "it does not say why"
                log.error("the reader process did not start", extra={"reason": reason})
                message = f"The process that reads documents did not start: {reason.splitlines()[-1]}"
                raise ReaderUnavailable(message) from error
            finally:
                if not helper.walls:
                    await helper.close()
        helper._listening = asyncio.create_task(helper._listen())
        return helper

    @property
    def ended(self) -> bool:
        return self._listening is None or self._listening.done()

    def folder(self) -> Path:
        """A new folder for one document."""
        return Path(tempfile.mkdtemp(dir=self._root))

    def order(self, work: Mapping[str, Any], folder: Path) -> tuple[int, "asyncio.Future[int]"]:
        """Have something done in a folder: the order's number, and its child's exit status to come."""
        number = next(self._numbers)
        ended = self._orders[number] = asyncio.get_running_loop().create_future()
        # When nobody waits for it any more, an end of the process is no error to be told of.
        ended.add_done_callback(lambda future: future.cancelled() or future.exception())
        self._send({**work, "id": number, "folder": str(folder)})
        return number, ended

    async def stop(self, number: int, ended: "asyncio.Future[int]") -> None:
        """Kill an order's child, and the whole process if it does not say that this was done."""
        self._send({"stop": number})
        await asyncio.wait([ended], timeout=_STOP_SECONDS)
        if not ended.done():
            self._kill()

    async def close(self) -> None:
        """End the process: by the end of its input, or by force."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._kill()
            await self._process.wait()
        if self._listening is not None:
            await self._listening
        await asyncio.to_thread(shutil.rmtree, self._root, ignore_errors=True)

    # --- the other side ---

    def _send(self, order: Mapping[str, Any]) -> None:
        _pipe(self._process.stdin).write(json.dumps(order).encode() + b"\n")

    async def _first_report(self) -> Mapping[str, bool]:
        line = await _pipe(self._process.stdout).readline()
        if not line:
            raise _HelperEndedError
        found: dict[str, bool] = json.loads(line)
        return found

    async def _listen(self) -> None:
        try:
            while line := await _pipe(self._process.stdout).readline():
                report = json.loads(line)
                self._orders.pop(report["id"]).set_result(report["status"])
        finally:
            for ended in self._orders.values():
                ended.set_exception(_HelperEndedError())

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()


def _pipe(pipe: _Pipe | None) -> _Pipe:
    if pipe is None:
        raise ValueError("started without a pipe")
    return pipe


def _terms(settings: Settings, module: str, root: Path) -> Terms:
    return Terms(
        module=module,
        root=str(root),
        memory=settings.parse_memory_mb * 1024 * 1024,
        file_size=max(_LEAST_FILE_SIZE, 4 * settings.max_file_bytes),
        seconds=math.ceil(settings.parse_timeout) + 1,
        quarantine=settings.quarantine,
        options=asdict(ParseOptions.of(settings)),
    )


def _module_path() -> str:
    """Where we find modules; an empty entry is the working directory."""
    return os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)


async def _launch(terms: Terms, said: IO[bytes]) -> asyncio.subprocess.Process:
    """Start the module with nothing of our environment. `said` takes what it says on standard error."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", reader.__name__, terms.to_json()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=said,
        cwd=terms.root,
        env={
            "PATH": programs.PATH,
            "HOME": terms.root,
            "TMPDIR": terms.root,
            "LANG": "C.UTF-8",
            # It finds what we find, wherever that is installed.
            "PYTHONPATH": _module_path(),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        },
        # Ctrl-C is for us: we close it when we are done.
        start_new_session=True,
    )
