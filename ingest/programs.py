"""The converters that reading may start: three programs, by their full paths, with nothing of our surroundings."""

import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from core.errors import DamagedFile, MissingConverter, ParserStopped
from core.settings import variable

log = logging.getLogger(__name__)

# Program: the Debian packages that bring it, and what is read with it.
PACKAGES = {
    "soffice": ("libreoffice-writer-nogui libreoffice-calc-nogui libreoffice-impress-nogui", "DOC, PPT, XLS, ODT, RTF"),
    "pandoc": ("pandoc", "RST, ORG"),
    "tesseract": ("tesseract-ocr tesseract-ocr-eng tesseract-ocr-chi-sim", "scanned pages and pictures"),
}
# LibreOffice has made its profile and asks to be started once more.
_AGAIN = 81
PATH = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin"


def find(name: str) -> Path | None:
    """Where a program is, links followed; None where it is not installed."""
    found = shutil.which(name, path=PATH)
    if found is None:
        return None
    program = Path(found).resolve()
    # LibreOffice's starter wants to write to /tmp, which the jail does not allow.
    inner = program.with_name(f"{name}.bin")
    return inner if inner.is_file() else program


def installed() -> list[Path]:
    """The converters of this machine: what the audit hook of a reader lets it start."""
    return [found for name in PACKAGES if (found := find(name))]


def run(argv: Sequence[str], *, timeout: float, cwd: Path) -> bytes:
    """What a converter wrote to its standard output. `argv[0]` is a name of PACKAGES; `cwd` is also its home.

    Blocking. Raises MissingConverter where it is not installed, DamagedFile where it could not read the file,
    ParserStopped where it took more than `timeout` seconds or was killed; no process of it is left then.
    """
    name, *arguments = argv
    program = find(name)
    if program is None:
        package, _ = PACKAGES[name]
        raise MissingConverter(f"This kind of file needs {name}, which is not installed. Run: apt install {package}")
    command = [str(program), *arguments]
    status, output = _finished(command, timeout, cwd)
    if status == _AGAIN:
        status, output = _finished(command, timeout, cwd)
    if status < 0:
        raise ParserStopped(f"{name} broke down over the file. Save it anew, or in another format.")
    if status > 0:
        log.info("converter failed", extra={"converter": name, "status": status})
        raise DamagedFile()
    return output


def _finished(command: Sequence[str], timeout: float, folder: Path) -> tuple[int, bytes]:
    """Exit status and standard output."""
    with subprocess.Popen(  # noqa: S603 one of three programs, by its full path, without a shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=_environment(folder),
        process_group=0,
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise ParserStopped(
                f"A converter took too long. Split the file, or raise {variable('parse_timeout')}."
            ) from error
        finally:
            # Its children too: what still runs now is not wanted any more.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, output


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": PATH,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        # For LibreOffice's socket, where /tmp is read-only. Short, as the path of a socket has to be.
        "OSL_SOCKET_PATH": ".",
        "LANG": "C.UTF-8",
        "OMP_THREAD_LIMIT": "1",
    }
