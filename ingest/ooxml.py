"""What Word, PowerPoint and Excel files have in common: zipped XML parts, relations between them, a theme."""

import io
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from lxml import etree

from ingest.colours import BLACK, WHITE, Colour, from_hex

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_DC_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_TITLES_OF_NOTHING = {"untitled", "document", "presentation", "powerpoint presentation", "word document", "workbook"}

# By the names that Word, PowerPoint and Excel use, the theme's own.
_THEME_NAMES = {"background1": "lt1", "text1": "dk1", "background2": "lt2", "text2": "dk2", "light1": "lt1"}
_THEME_NAMES |= {"dark1": "dk1", "light2": "lt2", "dark2": "dk2"}
_THEME_NAMES |= {"bg1": "lt1", "tx1": "dk1", "bg2": "lt2", "tx2": "dk2"}


def parse_xml(data: bytes) -> etree._Element:
    """The root of a part, no entity resolved and nothing fetched."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    return etree.fromstring(data, parser)


def to_bytes(root: etree._Element) -> bytes:
    """A part as it is stored."""
    return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True))


def remove(element: etree._Element) -> None:
    """Take an element out of its tree."""
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def property_title(data: bytes) -> str | None:
    """The title in the document's properties, unless it is a program's default."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if "docProps/core.xml" not in archive.namelist():
            return None
        title = parse_xml(archive.read("docProps/core.xml")).findtext(_DC_TITLE)
    words = " ".join((title or "").split())
    return None if words.lower() in _TITLES_OF_NOTHING else words or None


@dataclass(frozen=True, slots=True)
class Relation:
    """From one part to another: `kind` is the last word of its type, `target` the other part's name."""

    id: str
    kind: str
    target: str


class Package:
    """The parts of an Office file that is being made fit to read."""

    def __init__(self, data: bytes) -> None:
        self._archive = zipfile.ZipFile(io.BytesIO(data))
        self._names = frozenset(self._archive.namelist())
        self._changed: dict[str, bytes] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def read(self, name: str) -> bytes:
        """A part as it was in the file. Raises KeyError."""
        return self._archive.read(name)

    def root(self, name: str | None) -> etree._Element | None:
        """A part parsed; None when there is none of this name."""
        return parse_xml(self.read(name)) if name is not None and name in self else None

    def put(self, name: str, data: bytes) -> None:
        """Change a part."""
        self._changed[name] = data

    def relations(self, part: str) -> Iterator[Relation]:
        """Where a part leads inside the file; the file itself is the part with the empty name."""
        folder, name = posixpath.split(part)
        root = self.root(posixpath.join(folder, "_rels", f"{name}.rels"))
        for relation in root if root is not None else ():
            target = relation.get("Target", "")
            if relation.get("TargetMode") != "External":
                path = target.lstrip("/") if target.startswith("/") else posixpath.join(folder, target)
                kind = relation.get("Type", "").rpartition("/")[2]
                yield Relation(relation.get("Id", ""), kind, posixpath.normpath(path))

    def related(self, part: str, kind: str) -> str | None:
        """The first part that a part leads to by a relation of this kind."""
        return next((relation.target for relation in self.relations(part) if relation.kind == kind), None)

    def main(self) -> str:
        """The part that everything hangs on. Raises KeyError for a file without one."""
        found = self.related("", "officeDocument")
        if found is None or found not in self:
            raise KeyError("The file has no main part.")
        return found

    def to_bytes(self) -> bytes:
        """The file with its changes; stored, as it is read at once."""
        stream = io.BytesIO()
        with self._archive, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as out:
            for name in self._archive.namelist():
                out.writestr(name, self._changed.get(name) or self._archive.read(name))
        return stream.getvalue()


class Theme:
    """The colours that a file's theme gives its names."""

    def __init__(self, root: etree._Element | None) -> None:
        self._colours: dict[str, Colour] = {"lt1": WHITE, "dk1": BLACK}
        for entry in root.iterfind(f".//{A}clrScheme/*") if root is not None else ():
            for value in entry:
                colour = from_hex(value.get("lastClr") or value.get("val") or "")
                if colour is not None:
                    self._colours[etree.QName(entry).localname] = colour

    def colour(self, name: str, mapped: Mapping[str, str] | None = None) -> Colour | None:
        """The colour of a name, through a map of names where the file has one; None when the theme has it not."""
        name = (mapped or {}).get(name, name)
        return self._colours.get(_THEME_NAMES.get(name, name))


def shaded(colour: Colour, share: float) -> Colour:
    """A colour darkened to a share of its light."""
    return _each(colour, lambda channel: channel * share)


def tinted(colour: Colour, share: float) -> Colour:
    """A colour lightened: `share` of it is kept, the rest is white."""
    return _each(colour, lambda channel: channel * share + 255 * (1 - share))


def _each(colour: Colour, change: Callable[[int], float]) -> Colour:
    red, green, blue = (round(min(max(change(channel), 0), 255)) for channel in colour)
    return red, green, blue


def drawn_colour(fill: etree._Element, theme: Theme, mapped: Mapping[str, str] | None = None) -> Colour | None:
    """The colour inside a DrawingML `solidFill`; None when it cannot be told."""
    for value in fill:
        name = etree.QName(value).localname
        colour = None
        if name == "srgbClr":
            colour = from_hex(value.get("val", ""))
        elif name == "sysClr":
            colour = from_hex(value.get("lastClr", ""))
        elif name == "schemeClr":
            colour = theme.colour(value.get("val", ""), mapped)
        elif name == "prstClr":
            colour = {"white": WHITE, "black": BLACK}.get(value.get("val", ""))
        return None if colour is None else _modified(colour, value)
    return None


def _modified(colour: Colour, value: etree._Element) -> Colour | None:
    for change in value:
        share = int(change.get("val", "0")) / 100_000 if re.fullmatch(r"-?\d+", change.get("val", "")) else 1.0
        match etree.QName(change).localname:
            case "lumMod" | "shade":
                colour = shaded(colour, share)
            case "lumOff":
                colour = _each(colour, lambda channel, share=share: channel + 255 * share)  # type: ignore[misc]
            case "tint":
                colour = tinted(colour, share)
            case "alpha":
                pass
            case _:
                return None
    return colour


def opacity(fill: etree._Element) -> float:
    """How opaque a DrawingML fill is, 0 to 1."""
    alpha = fill.find(f".//{A}alpha")
    value = alpha.get("val", "") if alpha is not None else ""
    return int(value) / 100_000 if value.isdigit() else 1.0
