"""Old Office files and Outlook messages (OLE compound files): protection, macros and embedded objects.

The records looked at are those of [MS-DOC] 2.5.1, [MS-XLS] 2.4 and [MS-PPT] 2.3 and 2.4.
"""

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.errors import ActiveContent, DamagedFile, EncryptedFile, MismatchedFormat
from ingest.fields import LOADING
from ingest.kinds import Kind, ending, word

_MEGABYTE = 1024 * 1024
_MOST_READ = 256 * _MEGABYTE

_STREAMS = {
    Kind.DOC: ("WordDocument",),
    Kind.PPT: ("PowerPoint Document",),
    Kind.XLS: ("Workbook", "Book"),
    Kind.MSG: ("__properties_version1.0",),
}
KINDS = frozenset(_STREAMS)

_MACRO_FOLDERS = ("Macros", "_VBA_PROJECT_CUR", "VBA", "_VBA_PROJECT")
# A Word field begins with the character 0x13; these ones load other files.
_LOADING_FIELD = re.compile(rb"\x13\s*(?:" + LOADING.encode() + rb")\b")
_WORD_ENCRYPTED = 0x0100
_XLS_FILEPASS, _XLS_BOUNDSHEET, _XLS_MACRO_SHEET = 0x2F, 0x85, 1
_PPT_ENCRYPTED = 0xF3D1C4DF
_PPT_VBA, _PPT_CONTAINER, _PPT_OLE_LINKS = 0x0400, 0xF, (0x0FCC, 0x0FCE, 0x0FEE)


def check(path: Path, kind: Kind) -> None:
    """Raises MismatchedFormat, EncryptedFile, ActiveContent, DamagedFile."""
    with _opened(path) as ole:
        found = _identified(ole)
        if found is not kind:
            raise _mismatch(ole, kind, found)
        # A message's protection shows in its class and parts, which its reader looks at.
        if kind is Kind.MSG:
            return
        _check_folders(ole)
        try:
            _CHECKS[kind](ole)
        except (struct.error, OSError) as error:
            raise DamagedFile() from error


def identify(path: Path) -> Kind | None:
    """The format of a compound file by the streams in it; None for a broken or unknown one."""
    try:
        with _opened(path) as ole:
            return _identified(ole)
    except DamagedFile:
        return None


def is_encrypted_package(path: Path) -> bool:
    """Whether a compound file only wraps a newer Office file that is encrypted."""
    try:
        with _opened(path) as ole:
            return bool(ole.exists("EncryptedPackage"))
    except DamagedFile:
        return False


def _opened(path: Path) -> Any:
    import olefile

    try:
        return olefile.OleFileIO(str(path))
    except Exception as error:
        # olefile raises OSError for most damage, but also whatever its arithmetic meets in a hostile file.
        raise DamagedFile() from error


def _identified(ole: Any) -> Kind | None:
    return next((kind for kind, names in _STREAMS.items() if any(ole.exists(name) for name in names)), None)


def _mismatch(ole: Any, kind: Kind, found: Kind | None) -> EncryptedFile | MismatchedFormat:
    if ole.exists("EncryptedPackage"):
        return EncryptedFile()
    if found is None:
        return MismatchedFormat(f"The name says {word(kind)}, but the content is no document that is known here.")
    return MismatchedFormat(
        f"The name says {word(kind)}, but the content is {word(found)}. "
        f"Give it the ending {ending(found)} and upload it again."
    )


def _check_folders(ole: Any) -> None:
    for entry in ole.listdir(streams=True, storages=True):
        if any(name in _MACRO_FOLDERS for name in entry):
            raise ActiveContent("The file holds macros. Save it without them and upload it again.")
        # Word keeps embedded objects in a pool of folders, Excel in folders of their own.
        if (entry[0] == "ObjectPool" and len(entry) > 1) or entry[0].startswith("MBD"):
            raise _embedded()


def _embedded() -> ActiveContent:
    return ActiveContent("The file holds embedded objects (OLE). Save it without them and upload it again.")


def _stream(ole: Any, name: str) -> bytes:
    with ole.openstream(name) as stream:
        return bytes(stream.read(_MOST_READ))


def _check_word(ole: Any) -> None:
    data = _stream(ole, "WordDocument")
    (flags,) = struct.unpack_from("<H", data, 10)
    if flags & _WORD_ENCRYPTED:
        raise EncryptedFile()
    # Text is kept in one byte a character or two.
    if _LOADING_FIELD.search(data) or _LOADING_FIELD.search(data.replace(b"\0", b"")):
        raise ActiveContent("The file holds fields that load other files. Save it without them and upload it again.")


def _check_workbook(ole: Any) -> None:
    data = _stream(ole, "Workbook" if ole.exists("Workbook") else "Book")
    for kind, body in _workbook_records(data):
        if kind == _XLS_FILEPASS:
            raise EncryptedFile()
        if kind == _XLS_BOUNDSHEET and len(body) > 5 and body[5] == _XLS_MACRO_SHEET:
            raise ActiveContent("The file holds a macro sheet. Save it without it and upload it again.")


def _workbook_records(data: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position + 4 <= len(data):
        kind, size = struct.unpack_from("<HH", data, position)
        yield kind, data[position + 4 : position + 4 + size]
        position += 4 + size


def _check_slides(ole: Any) -> None:
    user = _stream(ole, "Current User") if ole.exists("Current User") else b""
    if ole.exists("EncryptedSummary") or (len(user) >= 16 and struct.unpack_from("<I", user, 12)[0] == _PPT_ENCRYPTED):
        raise EncryptedFile()
    for kind, body in _slide_records(_stream(ole, "PowerPoint Document")):
        if kind == _PPT_VBA and len(body) >= 8 and struct.unpack_from("<I", body, 4)[0]:
            raise ActiveContent("The file holds macros. Save it without them and upload it again.")
        if kind in _PPT_OLE_LINKS:
            raise _embedded()


def _slide_records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """All records, containers entered: their children follow their header directly."""
    position = 0
    while position + 8 <= len(data):
        version, kind, size = struct.unpack_from("<HHI", data, position)
        position += 8
        container = version & 0xF == _PPT_CONTAINER
        yield kind, b"" if container else data[position : position + min(size, 64)]
        position += 0 if container else size


_CHECKS = {
    Kind.DOC: _check_word,
    Kind.XLS: _check_workbook,
    Kind.PPT: _check_slides,
}
