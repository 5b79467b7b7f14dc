"""ZIP archives of documents: each member that can be read becomes a document of its own."""

import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from core.errors import ArchiveBomb, DamagedFile, EncryptedFile, UnsupportedFormat
from ingest.attachments import MAX_TOTAL, Takings
from ingest.encoding import decode
from ingest.kinds import supported
from ingest.options import ParseOptions

_UTF8_NAME = 0x800
# What systems put into archives for themselves.
_LITTER = ("__MACOSX/", "__macosx/")
_LITTER_NAMES = (".ds_store", "thumbs.db", "desktop.ini")


def read_zip(path: Path, options: ParseOptions) -> Takings:
    """The documents in an archive whose listing the gate has judged.

    Raises ArchiveBomb, EncryptedFile, DamagedFile, and UnsupportedFormat when nothing in it can be read.
    """
    takings = Takings(options)
    try:
        with zipfile.ZipFile(path) as archive:
            members = [entry for entry in archive.infolist() if not entry.is_dir() and not _is_litter(entry)]
            if sum(entry.file_size for entry in members) > MAX_TOTAL:
                raise ArchiveBomb("The archive unpacks to more than one may. Split it.")
            for entry in members:
                _take(archive, entry, takings)
    except (zipfile.BadZipFile, NotImplementedError, OSError, EOFError, ValueError, zlib.error) as error:
        raise DamagedFile() from error
    except RuntimeError as error:
        raise EncryptedFile() from error
    if not takings.kept:
        raise UnsupportedFormat(_nothing(takings))
    return takings


def _take(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, takings: Takings) -> None:
    name = member_name(entry)
    if stat.S_ISLNK(entry.external_attr >> 16):
        takings.refuse(name, "a link")
    elif not supported(name):
        takings.refuse(name, "not a supported format")
    elif entry.file_size > takings.options.max_bytes:
        takings.refuse(name, "larger than the limit")
    elif len(takings.kept) >= takings.options.max_attachments:
        takings.refuse(name, "beyond the limit for one file")
    else:
        with archive.open(entry) as member:
            # The listing is a promise only.
            takings.take(name, member.read(entry.file_size + 1)[: entry.file_size])


def member_name(entry: zipfile.ZipInfo) -> str:
    """A member's name; without the mark of UTF-8 it is in the encoding of whoever packed it."""
    if entry.flag_bits & _UTF8_NAME:
        return entry.filename
    try:
        return decode(entry.filename.encode("cp437"))
    except UnicodeEncodeError:
        return entry.filename


def _is_litter(entry: zipfile.ZipInfo) -> bool:
    return entry.filename.startswith(_LITTER) or PurePosixPath(entry.filename).name.lower() in _LITTER_NAMES


def _nothing(takings: Takings) -> str:
    if not takings.refused:
        return "The archive is empty."
    return f"The archive holds no document that can be read. {takings.warnings[0].text}"
