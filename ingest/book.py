"""Books (EPUB): their chapters in reading order as HTML, style sheets put in, for a chapter may hide text by them."""

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from lxml import etree

from core.errors import DamagedFile, FileTooLarge
from ingest.encoding import decode, decode_markup

# As many characters as any other document may have, and as much again of markup.
MAX_CHARACTERS = 24_000_000

_STYLE_SHEET = re.compile(r"<link\b[^>]*\bstylesheet\b[^>]*>", re.I)
_ADDRESS = re.compile(r"""\bhref\s*=\s*["']([^"']+)""", re.I)
_HEAD_END = re.compile(r"</head\s*>", re.I)
_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")


@dataclass(frozen=True, slots=True)
class Book:
    """The title that the book's list gives, its chapters as HTML, and how many of the listed ones are not there."""

    title: str | None
    chapters: tuple[str, ...]
    missing: int = 0


def read_book(data: bytes) -> Book:
    """The chapters of a container that the gate has judged. Raises DamagedFile, FileTooLarge."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = set(archive.namelist())
        place = _package_path(archive, names)
        package = _parsed(archive.read(place))
        folder = posixpath.dirname(place)
        paths = [posixpath.normpath(posixpath.join(folder, address)) for address in _reading_order(package)]
        found = [path for path in paths if path in names]
        if sum(archive.getinfo(path).file_size for path in found) > MAX_CHARACTERS:
            raise FileTooLarge("The book holds more text than a document should. Split it.")
        chapters = tuple(_chapter(archive, path, names) for path in found)
    title = package.findtext("{*}metadata/{http://purl.org/dc/elements/1.1/}title")
    return Book(" ".join((title or "").split()) or None, chapters, len(paths) - len(found))


def _parsed(part: bytes) -> Any:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        return etree.fromstring(part, parser)
    except etree.XMLSyntaxError as error:
        raise DamagedFile() from error


def _package_path(archive: zipfile.ZipFile, names: set[str]) -> str:
    container = "META-INF/container.xml"
    listed = _parsed(archive.read(container)).find(".//{*}rootfile") if container in names else None
    path = listed.get("full-path", "") if listed is not None else ""
    if path not in names:
        raise DamagedFile("The book does not say where its chapters are.")
    return path


def _reading_order(package: Any) -> Iterator[str]:
    """Addresses of the chapters, without the list of contents."""
    items = {item.get("id"): item for item in package.iterfind("{*}manifest/{*}item")}
    for entry in package.iterfind("{*}spine/{*}itemref"):
        item = items.get(entry.get("idref"))
        if item is not None and "nav" not in item.get("properties", "").split():
            yield unquote(item.get("href", ""))


def _chapter(archive: zipfile.ZipFile, path: str, names: set[str]) -> str:
    text = _DECLARATION.sub("", decode_markup(archive.read(path)))
    sheets = []
    for link in _STYLE_SHEET.findall(text):
        address = _ADDRESS.search(link)
        sheet = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(address[1]))) if address else ""
        if sheet in names and archive.getinfo(sheet).file_size < MAX_CHARACTERS:
            sheets.append(decode(archive.read(sheet)).replace("<", ""))
    style = f"<style>{''.join(sheets)}</style></head>"
    return _HEAD_END.sub(lambda _: style, text, count=1) if sheets else text
