"""The gate: a file's size, first bytes, name and container must agree before any parser sees it."""

import re
import zipfile
from enum import StrEnum
from pathlib import Path

from core.errors import (
    ArchiveBomb,
    DamagedFile,
    EmptyFile,
    EncryptedFile,
    FileTooLarge,
    MismatchedFormat,
    NotFound,
    UnsupportedFormat,
)

_MEGABYTE = 1024 * 1024

MAX_ENTRIES = 10_000
MAX_UNPACKED = 1024 * _MEGABYTE
# One XML part becomes about three times its size in memory.
MAX_XML_PART = 128 * _MEGABYTE
# Office XML packs 10 to 50 times; only parts above a megabyte are judged, small ones may be all blanks.
MAX_RATIO = 200


class Kind(StrEnum):
    """The formats that are read. The value is the media type."""

    PDF = "application/pdf"
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
    XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    CSV = "text/csv"
    HTML = "text/html"
    EML = "message/rfc822"
    MARKDOWN = "text/markdown"
    TEXT = "text/plain"


EXTENSIONS = {
    ".pdf": Kind.PDF,
    ".docx": Kind.DOCX,
    ".pptx": Kind.PPTX,
    ".xlsx": Kind.XLSX,
    ".csv": Kind.CSV,
    ".tsv": Kind.CSV,
    ".html": Kind.HTML,
    ".htm": Kind.HTML,
    ".eml": Kind.EML,
    ".md": Kind.MARKDOWN,
    ".markdown": Kind.MARKDOWN,
    ".txt": Kind.TEXT,
}

_OFFICE = {
    Kind.DOCX: (b"wordprocessingml.document.main+xml", "word/document.xml"),
    Kind.PPTX: (b"presentationml.presentation.main+xml", "ppt/presentation.xml"),
    Kind.XLSX: (b"spreadsheetml.sheet.main+xml", "xl/workbook.xml"),
}
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP = b"PK\x03\x04"
_PDF = re.compile(rb"%PDF-\d")
# First bytes of things that are no text, whatever their name says.
_BINARY = {
    b"MZ": "a program",
    b"\x7fELF": "a program",
    b"\xca\xfe\xba\xbe": "a program",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"\x1f\x8b": "an archive",
    b"7z\xbc\xaf": "an archive",
    b"Rar!": "an archive",
    b"BZh": "an archive",
    b"\xfd7zXZ": "an archive",
    b"{\\rtf": "a rich text file",
    _ZIP: "an archive or Office file",
    _OLE: "an old Office file",
}
_ARCHIVES = (".zip", ".7z", ".rar", ".gz", ".bz2", ".xz", ".tar", ".tgz")
_MARKS_OF_TEXT = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")
_HEADER_LINE = re.compile(rb"\A\s*(?:From |[!-9;-~]+:)")


def kind_of(name: str | Path) -> Kind:
    """The format that a file's name promises. Raises UnsupportedFormat."""
    suffix = Path(name).suffix.lower()
    if suffix not in EXTENSIONS:
        known = ", ".join(sorted(EXTENSIONS))
        raise UnsupportedFormat(f"Files ending in {suffix or 'nothing'!r} are not read. Supported: {known}.")
    return EXTENSIONS[suffix]


def supported(path: Path) -> bool:
    """Whether a file's name promises a format that is read."""
    return path.suffix.lower() in EXTENSIONS


def check(path: Path, *, max_bytes: int, name: str | None = None) -> Kind:
    """The file's format, once everything about it agrees; `name` is its given name when `path` is our own.

    Raises: UnsupportedFormat, MismatchedFormat, EmptyFile, FileTooLarge, EncryptedFile, DamagedFile, ArchiveBomb.
    """
    kind = kind_of(name or path)
    if not path.is_file():
        raise NotFound(f"There is no file {path.name}.")
    size = path.stat().st_size
    if size == 0:
        raise EmptyFile()
    if size > max_bytes:
        raise FileTooLarge(
            f"The file has {size / _MEGABYTE:.0f} MB, the limit is {max_bytes / _MEGABYTE:.0f} MB. "
            "Split it, or raise INTRAMUROS_MAX_FILE_MB."
        )
    with path.open("rb") as file:
        head = file.read(4096)
    if kind is Kind.PDF:
        _check_pdf(head)
    elif kind in _OFFICE:
        _check_office(path, head, kind, size)
    else:
        _check_text(head, kind)
    return kind


def _check_pdf(head: bytes) -> None:
    # Readers accept a little rubbish before the header; so does the one used here.
    if _PDF.search(head[:1024]):
        return
    raise MismatchedFormat(f"The name says PDF, but the content is {_guess(head)}.")


def _check_text(head: bytes, kind: Kind) -> None:
    if _PDF.match(head) or _magic(head):
        raise MismatchedFormat(f"The name says {_word(kind)}, but the content is {_guess(head)}.")
    if _has_stray_nul(head):
        raise MismatchedFormat(f"The name says {_word(kind)}, but the content is not text.")
    if not head.strip(b"\xef\xbb\xbf \t\r\n\x0b\x0c\0"):
        raise EmptyFile("The file holds nothing but blanks.")
    if kind is Kind.EML and not _HEADER_LINE.match(head.lstrip(b"\xef\xbb\xbf\xff\xfe").replace(b"\0", b"")):
        raise MismatchedFormat("The name says mail, but the file does not begin with mail headers.")


def _has_stray_nul(head: bytes) -> bool:
    """NUL bytes belong in UTF-16 and UTF-32 only: there at every second byte at least, or after a byte order mark."""
    if b"\0" not in head or head.startswith(_MARKS_OF_TEXT[:2]):
        return False
    even, odd = head[::2].count(0), head[1::2].count(0)
    return max(even, odd) < len(head) * 0.2


def _check_office(path: Path, head: bytes, kind: Kind, size: int) -> None:
    if head.startswith(_OLE):
        with path.open("rb") as file:
            if "EncryptedPackage".encode("utf-16-le") in file.read(8 * _MEGABYTE):
                raise EncryptedFile()
        raise MismatchedFormat(
            f"The name says {_word(kind)}, but the content is an old Office file. Save it in the new format."
        )
    if not head.startswith(_ZIP):
        raise MismatchedFormat(f"The name says {_word(kind)}, but the content is {_guess(head)}.")
    try:
        with zipfile.ZipFile(path) as archive:
            _check_listing(archive.infolist(), size)
            _check_content(archive, kind)
    except (zipfile.BadZipFile, NotImplementedError, OSError, EOFError, ValueError) as error:
        raise DamagedFile() from error


def _check_listing(entries: list[zipfile.ZipInfo], size: int) -> None:
    if len(entries) > MAX_ENTRIES:
        raise ArchiveBomb(f"The file packs {len(entries)} parts; a document has far fewer. It was refused.")
    if sum(entry.compress_size for entry in entries) > size or sum(e.file_size for e in entries) > MAX_UNPACKED:
        raise ArchiveBomb()
    for entry in entries:
        if entry.flag_bits & 1:
            raise EncryptedFile()
        is_xml = entry.filename.lower().endswith((".xml", ".rels", ".vml"))
        too_dense = entry.file_size > _MEGABYTE and entry.file_size > MAX_RATIO * max(entry.compress_size, 1)
        if too_dense or (is_xml and entry.file_size > MAX_XML_PART):
            raise ArchiveBomb()
        if entry.filename.lower().endswith(_ARCHIVES):
            raise ArchiveBomb("The file holds another archive inside. It was refused.")
    names = [entry.filename.lower() for entry in entries]
    if len(set(names)) < len(names):
        raise DamagedFile("The file holds two parts of one name, so programs would disagree about its content.")


def _check_content(archive: zipfile.ZipFile, kind: Kind) -> None:
    names = archive.namelist()
    if "[Content_Types].xml" not in names:
        raise MismatchedFormat(f"The name says {_word(kind)}, but the content is an ordinary archive.")
    types = archive.read("[Content_Types].xml")
    lowered = [name.lower() for name in names]
    if b"macroEnabled" in types or any(name.endswith("vbaproject.bin") for name in lowered):
        raise UnsupportedFormat("The file holds macros. Save it without macros (.docx, .pptx, .xlsx) and upload again.")
    if any("/activex/" in name for name in lowered):
        raise UnsupportedFormat("The file holds ActiveX controls. Save it without them and upload it again.")
    marker, main = _OFFICE[kind]
    if marker not in types and main not in names:
        found = next((_word(other) for other, (sign, _) in _OFFICE.items() if sign in types), "something else")
        raise MismatchedFormat(f"The name says {_word(kind)}, but the content is {found}.")
    for name in names:
        if name.lower().endswith((".xml", ".rels", ".vml")):
            with archive.open(name) as part:
                start = part.read(4096).replace(b"\0", b"")
            # Office files never declare document types; entity bombs and outside references need one.
            if b"<!DOCTYPE" in start or b"<!ENTITY" in start:
                raise DamagedFile("The file declares XML entities, which Office files never do. It was refused.")


def _magic(head: bytes) -> str | None:
    return next((what for sign, what in _BINARY.items() if head.startswith(sign)), None)


def _guess(head: bytes) -> str:
    if _PDF.match(head):
        return "a PDF"
    if head.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html")):
        return "a web page"
    return _magic(head) or "something else"


def _word(kind: Kind) -> str:
    return kind.name if kind in {Kind.PDF, *_OFFICE, Kind.CSV, Kind.HTML} else kind.name.lower()
