"""Documents that are ZIP containers (OOXML, OpenDocument, EPUB) and plain ZIP archives: listing and active content."""

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from core.errors import ActiveContent, ArchiveBomb, DamagedFile, EncryptedFile, MismatchedFormat
from core.records import ParseWarning
from ingest import fields
from ingest.kinds import ARCHIVES, Kind, ending, word

_MEGABYTE = 1024 * 1024

MAX_ENTRIES = 10_000
MAX_UNPACKED = 1024 * _MEGABYTE
# One XML part becomes about three times its size in memory.
MAX_XML_PART = 128 * _MEGABYTE
# Office XML packs 10 to 50 times; only parts above a megabyte are judged, small ones may be all blanks.
MAX_RATIO = 200

_OFFICE = {
    Kind.DOCX: (b"wordprocessingml.document.main+xml", "word/document.xml"),
    Kind.PPTX: (b"presentationml.presentation.main+xml", "ppt/presentation.xml"),
    Kind.XLSX: (b"spreadsheetml.sheet.main+xml", "xl/workbook.xml"),
}
_OPEN_DOCUMENT = (Kind.ODT, Kind.ODP, Kind.ODS)
KINDS = frozenset({*_OFFICE, *_OPEN_DOCUMENT, Kind.EPUB, Kind.ZIP})

_XML = (".xml", ".rels", ".vml", ".opf", ".ncx", ".xhtml", ".html", ".htm")
_HREF = "{http://www.w3.org/1999/xlink}href"
# Targets that leave the container: absolute, upwards, or with a scheme.
_OUTSIDE = re.compile(r"[/\\]|\.\.|[A-Za-z][A-Za-z0-9+.-]*:")
# Where Word keeps the template that a letter was begun from: on the writer's own disk.
_LOCAL = re.compile(r"file:///(?![/\\])|[A-Za-z]:[/\\]|/(?![/\\])|[^/\\:]+(?:[/\\]|$)", re.I)
# Fonts in books are obscured by these; that is no protection of the text.
_OBSCURED_FONTS = (b"http://www.idpf.org/2008/embedding", b"http://ns.adobe.com/pdf/enc#RC")

# Relationships that nothing follows by itself; the second ones stand for content that is not in the file.
_LINKS = ("hyperlink",)
_CONTENT_ELSEWHERE = ("externallinkpath", "xlpathmissing", "video", "audio", "media")
# A document with less text than this many characters for each picture of this many bytes may be a scan.
_CAPTION, _PICTURE = 300, 32 * 1024


@dataclass(frozen=True, slots=True)
class _Link:
    """A relationship of the OOXML part whose list is `part`; `kind` is its type's last word in lower case."""

    part: str
    kind: str
    target: str
    outside: bool


def check(path: Path, kind: Kind) -> None:
    """Judge a container's listing, then what it holds.

    Raises MismatchedFormat, EncryptedFile, DamagedFile, ArchiveBomb, ActiveContent.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            _check_listing(archive.infolist(), path.stat().st_size)
            if kind in _OFFICE:
                _check_office(archive, kind)
            elif kind is not Kind.ZIP:
                _check_marked(archive, kind)
            elif found := _identified(archive):
                raise MismatchedFormat(
                    f"The name says ZIP, but the content is {word(found)}. "
                    f"Give it the ending {ending(found)} and upload it again."
                )
    except (zipfile.BadZipFile, NotImplementedError, OSError, EOFError, ValueError, zlib.error) as error:
        raise DamagedFile() from error
    except RuntimeError as error:
        # zipfile says so of entries whose local header is encrypted although the listing does not tell.
        raise EncryptedFile() from error


def identify(path: Path) -> Kind | None:
    """The format of a ZIP container by what is in it; ZIP for an ordinary archive, None for a broken one."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _identified(archive) or Kind.ZIP
    except (zipfile.BadZipFile, NotImplementedError, OSError, EOFError, ValueError, RuntimeError, zlib.error):
        return None


def remarks(data: bytes, characters: int) -> list[ParseWarning]:
    """What an OOXML document refers to, or holds, that is not read with its text of so many characters."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        found = list(_relationships(archive))
        pictures = sum("/media/" in entry.filename and entry.file_size >= _PICTURE for entry in archive.infolist())
    elsewhere = sum(link.outside and link.kind in _CONTENT_ELSEWHERE for link in found)
    # The workbook behind a chart is no document of its own.
    enclosed = sum(link.kind == "package" and not link.outside and "/charts/" not in link.part for link in found)
    warnings = []
    if elsewhere:
        text = f"Other files that it refers to (workbooks, films, sounds) were not read ({elsewhere})."
        warnings.append(ParseWarning("external_links", text, elsewhere))
    if enclosed:
        text = f"Documents embedded in it were not read ({enclosed}). Upload them as files."
        warnings.append(ParseWarning("embedded_files", text, enclosed))
    if characters < pictures * _CAPTION:
        text = f"It is made of pictures, which were not read ({pictures}). Upload them as picture files or as a PDF."
        warnings.append(ParseWarning("pictures_unread", text, pictures))
    return warnings


def _identified(archive: zipfile.ZipFile) -> Kind | None:
    names = archive.namelist()
    if "[Content_Types].xml" in names:
        types = _read(archive, "[Content_Types].xml")
        return next((kind for kind, (sign, main) in _OFFICE.items() if sign in types or main in names), None)
    if "mimetype" in names:
        declared = _read(archive, "mimetype").strip().decode("ascii", "replace")
        return next((kind for kind in (*_OPEN_DOCUMENT, Kind.EPUB) if kind.value == declared), None)
    return None


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    """A small part that names things; one that is large is no such part."""
    if archive.getinfo(name).file_size > 16 * _MEGABYTE:
        raise ArchiveBomb()
    return archive.read(name)


def _check_listing(entries: list[zipfile.ZipInfo], size: int) -> None:
    if len(entries) > MAX_ENTRIES:
        raise ArchiveBomb(f"The file packs {len(entries)} parts; a document has far fewer. It was refused.")
    if sum(entry.compress_size for entry in entries) > size or sum(e.file_size for e in entries) > MAX_UNPACKED:
        raise ArchiveBomb()
    for entry in entries:
        lowered = entry.filename.lower()
        if entry.flag_bits & 1:
            raise EncryptedFile()
        too_dense = entry.file_size > _MEGABYTE and entry.file_size > MAX_RATIO * max(entry.compress_size, 1)
        if too_dense or (lowered.endswith(_XML) and entry.file_size > MAX_XML_PART):
            raise ArchiveBomb()
        if lowered.endswith(ARCHIVES):
            raise ArchiveBomb("The file holds another archive inside. Unpack that one and upload its documents.")
    names = [entry.filename.lower() for entry in entries]
    if len(set(names)) < len(names):
        raise DamagedFile("The file holds two parts of one name, so programs would disagree about its content.")


# --- OOXML ------------------------------------------------------------------------------------------------------------


def _check_office(archive: zipfile.ZipFile, kind: Kind) -> None:
    names = archive.namelist()
    if "[Content_Types].xml" not in names:
        raise _mismatch(archive, kind)
    types = _read(archive, "[Content_Types].xml")
    lowered = [name.lower() for name in names]
    if b"macroEnabled" in types or any(name.endswith("vbaproject.bin") for name in lowered):
        raise ActiveContent("The file holds macros. Save it without them (.docx, .pptx, .xlsx) and upload it again.")
    if any("/activex/" in name for name in lowered):
        raise ActiveContent("The file holds ActiveX controls. Save it without them and upload it again.")
    marker, main = _OFFICE[kind]
    if marker not in types and main not in names:
        raise _mismatch(archive, kind)
    # Office files never declare document types; entity bombs and outside references need one.
    _check_declarations(archive, b"<!DOCTYPE", b"<!ENTITY")
    _check_relationships(archive)
    if kind is Kind.DOCX:
        fields.check_word(archive)
    elif kind is Kind.XLSX:
        fields.check_workbook(archive)


def _check_declarations(archive: zipfile.ZipFile, *forbidden: bytes) -> None:
    for name in archive.namelist():
        if name.lower().endswith(_XML):
            with archive.open(name) as part:
                start = part.read(4096).replace(b"\0", b"")
            if any(sign in start for sign in forbidden):
                raise DamagedFile("The file declares XML entities, which such files never do. It was refused.")


def _check_relationships(archive: zipfile.ZipFile) -> None:
    for link in _relationships(archive):
        embedded = not link.outside and link.target.lower().endswith(".bin") and "embeddings/" in link.target
        if link.kind == "oleobject" or embedded:
            raise ActiveContent("The file holds embedded objects (OLE). Save it without them and upload it again.")
        local_template = link.kind == "attachedtemplate" and _LOCAL.match(link.target) is not None
        if link.outside and link.kind not in (*_LINKS, *_CONTENT_ELSEWHERE) and not local_template:
            raise _loads_others(f"{link.kind}: {link.target[:80]}")


def _relationships(archive: zipfile.ZipFile) -> Iterator[_Link]:
    for name in archive.namelist():
        if not name.lower().endswith(".rels"):
            continue
        try:
            root = etree.fromstring(_read(archive, name), _parser())
        except etree.XMLSyntaxError as error:
            raise DamagedFile() from error
        for relation in root.iter("{*}Relationship"):
            kind = relation.get("Type", "").rsplit("/", 1)[-1].lower()
            outside = relation.get("TargetMode", "").lower() == "external"
            yield _Link(name, kind, relation.get("Target", ""), outside)


def _loads_others(what: str) -> ActiveContent:
    return ActiveContent(
        f"The file would load another one when it is opened ({what}). Save it without such links and upload it again."
    )


def _parser() -> etree.XMLParser:
    return etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)


# --- OpenDocument and EPUB --------------------------------------------------------------------------------------------


def _check_marked(archive: zipfile.ZipFile, kind: Kind) -> None:
    """Containers that name their format in a part called `mimetype`."""
    if _identified(archive) is not kind:
        raise _mismatch(archive, kind)
    _check_declarations(archive, b"<!ENTITY")
    names = archive.namelist()
    if kind is Kind.EPUB:
        encryption = _read(archive, "META-INF/encryption.xml") if "META-INF/encryption.xml" in names else b""
        methods = re.findall(rb"""EncryptionMethod[^>]*Algorithm\s*=\s*["']([^"']+)""", encryption)
        if any(method not in _OBSCURED_FONTS for method in methods):
            raise EncryptedFile("The book is protected against copying. Provide one without protection.")
        return
    manifest = _read(archive, "META-INF/manifest.xml") if "META-INF/manifest.xml" in names else b""
    if b"encryption-data" in manifest:
        raise EncryptedFile()
    if any(name.startswith(("Basic/", "Scripts/")) and not name.endswith("/") for name in names):
        raise ActiveContent("The file holds macros. Save it without them and upload it again.")
    if b"application/vnd.sun.star.oleobject" in manifest:
        raise ActiveContent("The file holds embedded objects (OLE). Save it without them and upload it again.")
    for part in ("content.xml", "styles.xml"):
        if part in names:
            _check_references(archive, part)


def _check_references(archive: zipfile.ZipFile, part: str) -> None:
    with archive.open(part) as stream:
        try:
            for _, element in etree.iterparse(stream, resolve_entities=False, no_network=True, load_dtd=False):
                target = element.get(_HREF, "")
                follows = etree.QName(element).localname not in ("a", "hyperlink")
                if follows and _OUTSIDE.match(target):
                    raise _loads_others(target[:80])
                fields.check_open(element)
                element.clear()
        except etree.XMLSyntaxError as error:
            raise DamagedFile() from error


def _mismatch(archive: zipfile.ZipFile, kind: Kind) -> MismatchedFormat:
    found = _identified(archive)
    if found is None:
        return MismatchedFormat(f"The name says {word(kind)}, but the content is an ordinary archive.")
    return MismatchedFormat(
        f"The name says {word(kind)}, but the content is {word(found)}. "
        f"Give it the ending {ending(found)} and upload it again."
    )
