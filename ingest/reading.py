"""What happens to one document inside the jail, and how its outcome comes out: as JSON and plain files.

The outcome is written by a process that has just read a hostile file and may be the file's by then. So it is never
unpickled, its shape is checked, and only plain files of its own folder are opened.
"""

import importlib
import logging
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from core import errors
from core.errors import EgressDenied, IngestError, IntramurosError, MissingExtra, NotFound, ParserStopped
from core.records import Attachment, Chunk, ParsedDocument
from core.settings import variable
from ingest import pixels
from ingest.options import ParseOptions
from ingest.pixels import Pixels
from policy import ledger

if TYPE_CHECKING:
    from pydantic import TypeAdapter

log = logging.getLogger(__name__)

MEMORY = f"Reading the file takes more memory than allowed. Split it, or raise {variable('parse_memory_mb')}."
TIME = f"Reading the file takes longer than allowed. Split it, or raise {variable('parse_timeout')}."
TIME_OF_PICTURE = "Drawing the page takes longer than allowed. Open the file in its own program."
REACHED_OUT = "Reading the file would have reached out to the network, to other files or to a program. It was refused."

# What the readers import when they first need it.
_IMPORTED_LATE = (
    "PIL.BmpImagePlugin",
    "PIL.ImageOps",
    "PIL.JpegImagePlugin",
    "PIL.PngImagePlugin",
    "PIL.TiffImagePlugin",
    "PIL.WebPImagePlugin",
    "msoffcrypto",
    "olefile",
    "openpyxl",
    "oxmsg.properties",
    "oxmsg.storage",
    "pypdfium2",
)
# One in each kind of letters that rules are made for.
_SAMPLES = (
    "# Title\n\nA sentence. And 一句话。\n\n- point\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "# Title\n\nIt’s a sentence.\n",
    "# Title\n\nA sentence.\n",
)

# Why the audit hook refuses something to a process that has nobody to talk to.
_DENIALS = ("no_network", "program", "library", "unix_socket", "family", "raw_socket", "unknown_shape")

_OUTCOME, _PIXELS = "outcome.json", "pixels"
# Text is limited to a fraction of this, whatever the format.
_LARGEST_OUTCOME = 256 * 1024 * 1024
_LARGEST_PICTURE = 3 * pixels.MAX_WIDTH * pixels.MAX_HEIGHT


@dataclass(frozen=True, slots=True)
class Reading:
    """A document as it was read. Its elements went into the chunks and stay behind in the jail."""

    parsed: ParsedDocument
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error on its way out: its class's name, its message, and what caused it, for the log."""

    error: str
    message: str
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One of the three. `attachments` names those of the reading; their bytes are in files numbered from 0.

    `picture` is the width and height of a page's picture, whose pixels are in a file of their own. `denied`: why the
    audit hook refused something, whatever became of the reading.
    """

    reading: Reading | None = None
    attachments: tuple[str, ...] = ()
    picture: tuple[int, int] | None = None
    refusal: Refusal | None = None
    denied: tuple[str, ...] = ()


def preload() -> None:
    """Import all that reading may need and use it once, so that no document has to wait for it."""
    for module in _IMPORTED_LATE:
        # Where one is missing, the formats that need it say so.
        with suppress(ImportError):
            importlib.import_module(module)
    _outcomes()
    with tempfile.TemporaryDirectory() as folder:
        for sample in _samples(Path(folder)):
            read(sample, sample.name, ParseOptions(), quarantine=True)


def _samples(folder: Path) -> Iterator[Path]:
    """A file of each kind whose first reading takes long."""
    text = folder / "sample.md"
    for sample in _SAMPLES:
        text.write_text(sample)
        yield text
    with suppress(ImportError):
        book = importlib.import_module("openpyxl").Workbook()
        book.active.append(["a", 1])
        book.save(folder / "sample.xlsx")
        yield folder / "sample.xlsx"


def read(path: Path, name: str, options: ParseOptions, *, quarantine: bool) -> Reading:
    """Parse and chunk one document; with `quarantine`, mark what reads like instructions. Errors: as `parse`."""
    from ingest.chunking import chunk
    from ingest.parse import parse
    from ingest.suspicion import suspicion_warnings

    parsed = parse(path, options=options, name=name)
    chunks = chunk(parsed, quarantine=quarantine)
    warnings = (*parsed.warnings, *suspicion_warnings(chunks))
    return Reading(replace(parsed, warnings=warnings), tuple(chunks))


def picture(path: Path, name: str, page: int, width_px: int, options: ParseOptions) -> Pixels:
    """Draw a page (from 1) of one document. Errors: those of the gate and of `pages.draw`."""
    from ingest import gate, pages

    return pages.draw(path, gate.check(path, max_bytes=options.max_bytes, name=name), page, width_px)


# --- out of the jail --------------------------------------------------------------------------------------------------


def refused(error: Exception) -> Refusal:
    """What the parent is to raise for an error of the reader."""
    chain = [error]
    while (before := chain[-1].__cause__ or chain[-1].__context__) and isinstance(before, Exception):
        chain.append(before)
    cause = type(chain[-1]).__name__
    if any(isinstance(link, MemoryError) for link in chain):
        return Refusal(ParserStopped.__name__, MEMORY, cause)
    if any(isinstance(link, EgressDenied | PermissionError) for link in chain):
        return Refusal(ParserStopped.__name__, REACHED_OUT, cause)
    if isinstance(error, IntramurosError):
        return Refusal(type(error).__name__, error.message, cause)
    return Refusal(ParserStopped.__name__, ParserStopped().message, cause)


def pack(folder: Path, outcome: Reading | Pixels | Refusal) -> None:
    """Write an outcome into a folder, attachments or pixels first."""
    if isinstance(outcome, Refusal):
        whole = Outcome(refusal=outcome)
    elif isinstance(outcome, Pixels):
        (folder / _PIXELS).write_bytes(outcome.data)
        whole = Outcome(picture=(outcome.width, outcome.height))
    else:
        attachments = outcome.parsed.attachments
        for number, attachment in enumerate(attachments):
            (folder / f"attachment-{number}").write_bytes(attachment.data)
        bare = replace(outcome.parsed, elements=(), attachments=())
        whole = Outcome(Reading(bare, outcome.chunks), tuple(attachment.name for attachment in attachments))
    whole = replace(whole, denied=tuple(sorted(ledger.denials())))
    (folder / _OUTCOME).write_bytes(_outcomes().dump_json(whole))


def unpack(folder: Path, *, max_bytes: int) -> Reading:
    """The reading in a folder; attachments have up to `max_bytes` each.

    Raises the refusal's error, and ParserStopped where there is no outcome that makes sense.
    """
    try:
        outcome = _outcome(folder)
        attachments = tuple(
            Attachment(name, _plain_file(folder / f"attachment-{number}", max_bytes))
            for number, name in enumerate(outcome.attachments)
        )
    except (OSError, ValueError) as error:
        raise ParserStopped() from error
    if outcome.reading is None:
        raise _error(outcome.refusal)
    return replace(outcome.reading, parsed=replace(outcome.reading.parsed, attachments=attachments))


def unpack_picture(folder: Path) -> Pixels:
    """The picture in a folder. Raises as `unpack`."""
    try:
        outcome = _outcome(folder)
        if outcome.picture is not None:
            width, height = outcome.picture
            return Pixels(width, height, _plain_file(folder / _PIXELS, _LARGEST_PICTURE))
    except (OSError, ValueError) as error:
        raise ParserStopped() from error
    raise _error(outcome.refusal)


def _outcome(folder: Path) -> Outcome:
    outcome = _outcomes().validate_json(_plain_file(folder / _OUTCOME, _LARGEST_OUTCOME))
    for reason in set(outcome.denied[: len(_DENIALS)]):
        # Denied there and to be recorded here, by a word of ours whatever the reader says.
        ledger.deny(reason if reason in _DENIALS else "unknown_shape", purpose="reader")
    return outcome


def _plain_file(path: Path, limit: int) -> bytes:
    """The content of a file that is no link of either kind. Raises OSError, and ValueError above the limit."""
    place = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(place, "rb") as file:
        about = os.fstat(place)
        if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1 or about.st_size > limit:
            raise ValueError("not a plain file of moderate size")
        return file.read(limit)


def _error(refusal: Refusal | None) -> IntramurosError:
    kind = getattr(errors, refusal.error, None) if refusal else None
    if refusal is None or not (isinstance(kind, type) and issubclass(kind, IngestError | NotFound | MissingExtra)):
        return ParserStopped()
    log.info("reading refused", extra={"error": refusal.error, "cause": refusal.cause[:100]})
    return kind(refusal.message)


@lru_cache(maxsize=1)
def _outcomes() -> "TypeAdapter[Outcome]":
    from pydantic import TypeAdapter

    return TypeAdapter(Outcome)
