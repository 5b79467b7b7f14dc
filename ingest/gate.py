"""The gate: a file's size, first bytes, name and container must agree before any parser sees it."""

import re
from pathlib import Path

from core.errors import ActiveContent, EmptyFile, EncryptedFile, FileTooLarge, MismatchedFormat, NotFound
from ingest import compound, containers
from ingest.fields import LOADING
from ingest.kinds import PICTURES, Kind, ending, kind_of, word

_MEGABYTE = 1024 * 1024

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP = b"PK\x03\x04"
_EMPTY_ZIP = b"PK\x05\x06"
_RTF = b"{\\rtf"
_PDF = re.compile(rb"%PDF-\d")
_PICTURES = {
    Kind.PNG: re.compile(rb"\x89PNG\r\n\x1a\n"),
    Kind.JPEG: re.compile(rb"\xff\xd8\xff"),
    Kind.TIFF: re.compile(rb"II\*\0|MM\0\*|II\+\0|MM\0\+"),
    Kind.BMP: re.compile(rb"BM.{4}\0{4}", re.S),
    Kind.WEBP: re.compile(rb"RIFF.{4}WEBP", re.S),
}
# First bytes of things that are no text, whatever their name says.
_BINARY = {
    b"MZ": "a program",
    b"\x7fELF": "a program",
    b"\xca\xfe\xba\xbe": "a program",
    b"GIF8": "a GIF picture",
    b"\x1f\x8b": "an archive",
    b"7z\xbc\xaf": "an archive",
    b"Rar!": "an archive",
    b"BZh": "an archive",
    b"\xfd7zXZ": "an archive",
    _ZIP: "an archive or Office file",
    _EMPTY_ZIP: "an empty archive",
    _OLE: "an old Office file",
}
_MARKS_OF_TEXT = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")
_HEADER_LINE = re.compile(rb"\A\s*(?:From |[!-9;-~]+:)")
# Embedded and linked objects, templates and fields that load other files, in rich text.
_ACTIVE_RTF = re.compile(
    rb"\\obj(?:data|emb|link|autlink|ocx|html|update)\b|\\\*\\template[ \r\n]*(?:https?:|ftp:|file:|\\\\)"
    rb"|\\fldinst(?:\s|\{|\\[a-z]+-?\d*)*(?:" + LOADING.encode() + rb")\b",
)


def check(path: Path, *, max_bytes: int, name: str | None = None) -> Kind:
    """The file's format, once everything about it agrees; `name` is its given name when `path` is our own.

    Raises: UnsupportedFormat, MismatchedFormat, EmptyFile, FileTooLarge, EncryptedFile, DamagedFile, ArchiveBomb,
    ActiveContent, NotFound.
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
    _check_content(path, kind, head)
    return kind


def _check_content(path: Path, kind: Kind, head: bytes) -> None:
    if kind is Kind.PDF:
        # Readers accept a little rubbish before the header; so does the one used here.
        _expect(_PDF.search(head[:1024]) is not None, path, kind, head)
    elif kind in containers.KINDS:
        _check_encrypted_package(path, head)
        _expect(head.startswith((_ZIP, _EMPTY_ZIP)), path, kind, head)
        containers.check(path, kind)
    elif kind in compound.KINDS:
        _expect(head.startswith(_OLE), path, kind, head)
        compound.check(path, kind)
    elif kind in PICTURES:
        _expect(_PICTURES[kind].match(head) is not None, path, kind, head)
    elif kind is Kind.RTF:
        _expect(head.lstrip().startswith(_RTF), path, kind, head)
        _check_rich_text(path)
    else:
        _check_text(path, head, kind)


def _expect(fits: bool, path: Path, kind: Kind, head: bytes) -> None:
    if not fits:
        raise _mismatch(path, kind, head)


def _mismatch(path: Path, kind: Kind, head: bytes) -> MismatchedFormat:
    found = _found(path, head)
    if isinstance(found, Kind):
        remedy = f"{word(found)}. Give it the ending {ending(found)} and upload it again."
    else:
        remedy = f"{found}."
    return MismatchedFormat(f"The name says {word(kind)}, but the content is {remedy}")


def _found(path: Path, head: bytes) -> Kind | str:
    """What a file is by its content."""
    if _PDF.match(head):
        return Kind.PDF
    if head.startswith(_RTF):
        return Kind.RTF
    if head.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html")):
        return Kind.HTML
    for kind, sign in _PICTURES.items():
        if sign.match(head):
            return kind
    container = containers.identify(path) if head.startswith(_ZIP) else None
    if head.startswith(_OLE):
        container = compound.identify(path)
    return container or _binary(head) or "something else"


def _binary(head: bytes) -> str | None:
    return next((what for sign, what in _BINARY.items() if head.startswith(sign)), None)


def _check_encrypted_package(path: Path, head: bytes) -> None:
    """Office wraps the files that it encrypts into its old container."""
    if head.startswith(_OLE) and compound.is_encrypted_package(path):
        raise EncryptedFile()


def _check_rich_text(path: Path) -> None:
    if _ACTIVE_RTF.search(path.read_bytes()):
        raise ActiveContent("The file holds embedded objects or fields that load other files. Save it without them.")


def _check_text(path: Path, head: bytes, kind: Kind) -> None:
    # After a mark of UTF-16 or UTF-8 the first bytes are letters, whatever else they look like.
    if not head.startswith(_MARKS_OF_TEXT):
        found = _found(path, head)
        other = isinstance(found, Kind) and found is not Kind.HTML
        _expect(not other and _binary(head) is None, path, kind, head)
    if _has_stray_nul(head):
        raise MismatchedFormat(f"The name says {word(kind)}, but the content is not text.")
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
