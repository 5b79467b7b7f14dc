"""Stands for `ingest.reading` in a jail under test: the "document" names what its reader does to get out."""

import ctypes
import json
import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from core.errors import EncryptedFile
from core.records import Attachment, Chunk, Element, ParsedDocument, ParseWarning
from ingest import programs
from ingest.options import ParseOptions
from ingest.pixels import Pixels
from ingest.reading import Reading


def preload() -> None:
    """Nothing to import."""


def read(path: Path, name: str, options: ParseOptions, *, quarantine: bool) -> Reading:
    """Do what the first word of the file says, with the other words; its answer becomes the one chunk."""
    action, *words = path.read_text().split()
    answer = ACTIONS[action](*words)
    parsed = ParsedDocument(title=name, elements=(Element("text", answer),))
    if action == "document":
        attachments = (Attachment("a/b.txt", b"\0\xff"), Attachment("附件.pdf", b""))
        warnings = (ParseWarning("hidden_text", "Two places.", 2, (1, 3)),)
        parsed = replace(parsed, attachments=attachments, warnings=warnings, confidence={2: 0.5}, pages=3)
    return Reading(parsed, (Chunk(0, answer, ("Heading",), 0, 0, len(answer)),))


def picture(path: Path, name: str, page: int, width_px: int, options: ParseOptions) -> Pixels:
    """Do as `read`; the picture is black, and as high as the page's number."""
    action, *words = path.read_text().split()
    ACTIONS[action](*words)
    return Pixels(width_px, page, bytes(3 * width_px * page))


def tried(action: Callable[[], object]) -> str:
    """Whether it worked, else the name of the error."""
    try:
        return f"worked: {action()}"
    except OSError as error:
        return type(error).__name__


def document(*words: str) -> str:
    return " ".join(words)


def where() -> str:
    """Process tree, folder and limits, as the reader sees them."""
    return json.dumps({"pid": os.getpid(), "folder": str(Path.cwd()), "files": sorted(map(str, Path().iterdir()))})


def surroundings() -> str:
    return json.dumps(dict(os.environ))


def refuse() -> str:
    raise EncryptedFile("Locked.")


def fault() -> str:
    raise ZeroDivisionError


def eat() -> str:
    held = []
    while True:
        held.append(b"x" * 10_000_000)


def eat_wrapped() -> str:
    try:
        return eat()
    except MemoryError as error:
        raise ValueError from error


def hang() -> str:
    Path("started").touch()
    while True:
        time.sleep(60)


def burn() -> str:
    while True:
        pass


def die() -> str:
    # As the first process of its tree it has no effect on itself; the C library's abort has.
    os.kill(os.getpid(), signal.SIGKILL)
    os.abort()


def leave() -> str:
    os._exit(0)


def fork() -> str:
    return str(os.fork())


def fork_in_c() -> str:
    child = ctypes.CDLL(None).fork()
    if child == 0:
        os.setsid()
        hang()
    return "forked"


def multiply() -> str:
    libc = ctypes.CDLL(None)
    for _ in range(3):
        libc.fork()
    tried(os.setsid)
    return hang()


def connect(host: str, port: str) -> str:
    with socket.socket() as client:
        client.connect((host, int(port)))
    return "connected"


def connect_in_c(host: str, port: str) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    place = libc.socket(2, 1, 0)
    if place < 0:
        return "no socket"
    address = struct.pack("=H", 2) + struct.pack("!H", int(port)) + socket.inet_aton(host) + bytes(8)
    return "connected" if libc.connect(place, address, len(address)) == 0 else "no connection"


def look_up(host: str) -> str:
    return str(socket.getaddrinfo(host, 80))


def talk(path: str) -> str:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
    return "connected"


def talk_in_c(path: str) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    address = struct.pack("=H", 1) + os.fsencode(path) + b"\0"
    return "connected" if libc.connect(libc.socket(1, 1, 0), address, len(address)) == 0 else "no connection"


def write(path: str) -> str:
    return tried(lambda: Path(path).write_text("escaped"))


def look(path: str) -> str:
    return tried(lambda: Path(path).read_text())


def kill(process: str) -> str:
    return tried(lambda: os.kill(int(process), signal.SIGKILL))


def start(program: str) -> str:
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout


def point_outcome_at(path: str) -> str:
    """Leave a link where the outcome belongs, and end well."""
    Path("outcome.json").symlink_to(path)
    os._exit(0)


def attach(path: str) -> str:
    """Let an attachment be a link."""
    Path("attachment-0").symlink_to(path)
    forged = {"reading": {"parsed": {"title": "t", "elements": []}, "chunks": []}, "attachments": ["a"]}
    return forge_outcome(json.dumps(forged))


def forge_outcome(text: str) -> str:
    Path("outcome.json").write_text(text)
    os._exit(0)


def forge_picture(path: str) -> str:
    """Let the pixels be a link."""
    Path("pixels").symlink_to(path)
    return forge_outcome('{"picture":[1,1]}')


def fill() -> str:
    with Path("big").open("wb") as file:
        while True:
            file.write(bytes(100_000_000))


def use(program: str, *arguments: str) -> str:
    return programs.run([program, *arguments], timeout=60, cwd=Path.cwd()).decode()


def convert() -> str:
    """A small RTF file to text by LibreOffice."""
    Path("in.rtf").write_text(r"{\rtf1 Hello there.}")
    use("soffice", "--headless", "--norestore", "--convert-to", "txt:Text", "--outdir", ".", "in.rtf")
    return Path("in.txt").read_text(encoding="utf-8-sig")


ACTIONS: dict[str, Callable[..., str]] = {
    action.__name__: action
    for action in (
        *(
            document,
            where,
            surroundings,
            refuse,
            fault,
            eat,
            eat_wrapped,
            hang,
            burn,
            die,
            leave,
            fork,
            fork_in_c,
            multiply,
            connect,
        ),
        *(
            connect_in_c,
            look_up,
            talk,
            talk_in_c,
            write,
            look,
            kill,
            start,
            point_outcome_at,
            attach,
            forge_outcome,
            forge_picture,
            fill,
        ),
        *(use, convert),
    )
}


def running(home: Path) -> list[int]:
    """For the tests: the processes that work inside a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            inside = (process / "cwd").readlink().is_relative_to(home)
            alive = (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            continue
        if inside and alive:
            found.append(int(process.name))
    return found
