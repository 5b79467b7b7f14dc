"""Office files made fit to read: hidden and deleted text out, insertions and content controls opened."""

import io
import posixpath
import zipfile
from collections.abc import Iterator

from lxml import etree

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_DC_TITLE = "{http://purl.org/dc/elements/1.1/}title"

# Tracked insertions, smart tags and content controls hold ordinary text that python-docx passes over.
_OPENED = tuple(_W + name for name in ("ins", "moveTo", "smartTag", "customXml"))
_REMOVED = tuple(_W + name for name in ("del", "moveFrom"))
# Half-points: text of one point and less is not meant to be read.
_SMALLEST = 2
_TITLES_OF_NOTHING = {"untitled", "document", "presentation", "powerpoint presentation", "word document", "workbook"}


def _parse(data: bytes) -> etree._Element:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    return etree.fromstring(data, parser)


def property_title(data: bytes) -> str | None:
    """The title in the document's properties, unless it is a program's default."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if "docProps/core.xml" not in archive.namelist():
            return None
        title = _parse(archive.read("docProps/core.xml")).findtext(_DC_TITLE)
    words = " ".join((title or "").split())
    return None if words.lower() in _TITLES_OF_NOTHING else words or None


# --- Word -------------------------------------------------------------------------------------------------------------


def readable_docx(data: bytes) -> tuple[bytes, int]:
    """The same file with only the text that a reader of the final version sees, and how many passages went."""
    source = zipfile.ZipFile(io.BytesIO(data))
    target = io.BytesIO()
    hidden = 0
    with source, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as out:
        headings = _heading_styles(source)
        for name in source.namelist():
            part = source.read(name)
            if name == "word/document.xml":
                part, hidden = _readable_body(part, headings)
            out.writestr(name, part)
    return target.getvalue(), hidden


def _readable_body(part: bytes, headings: dict[str, str]) -> tuple[bytes, int]:
    root = _parse(part)
    for element in list(root.iter(*_REMOVED)):
        _remove(element)
    for element in list(root.iter(_W + "sdt")):
        _open_control(element)
    for element in list(root.iter(*_OPENED)):
        _unwrap(element)
    hidden = 0
    for run in list(root.iter(_W + "r")):
        if _hidden(run):
            hidden += bool("".join(run.itertext(_W + "t")).strip())
            _remove(run)
    for style in root.iter(_W + "pStyle"):
        known = headings.get(style.get(_W + "val", ""))
        if known:
            style.set(_W + "val", known)
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True), hidden


def _remove(element: etree._Element) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def _unwrap(element: etree._Element) -> None:
    parent = element.getparent()
    if parent is None:
        return
    at = parent.index(element)
    for child in reversed(list(element)):
        if child.tag != _W + "customXmlPr":
            parent.insert(at, child)
    parent.remove(element)


def _open_control(control: etree._Element) -> None:
    gallery = control.find(f"{_W}sdtPr/{_W}docPartObj/{_W}docPartGallery")
    content = control.find(_W + "sdtContent")
    parent = control.getparent()
    if parent is None:
        return
    table_of_contents = gallery is not None and gallery.get(_W + "val") == "Table of Contents"
    if content is not None and not table_of_contents:
        at = parent.index(control)
        for child in reversed(list(content)):
            parent.insert(at, child)
    parent.remove(control)


def _hidden(run: etree._Element) -> bool:
    looks = run.find(_W + "rPr")
    if looks is None:
        return False
    vanish = looks.find(_W + "vanish")
    if vanish is not None and vanish.get(_W + "val", "true").lower() not in ("0", "false", "off"):
        return True
    size = looks.find(_W + "sz")
    if size is not None and size.get(_W + "val", "").isdigit() and int(size.get(_W + "val", "")) <= _SMALLEST:
        return True
    colour = looks.find(_W + "color")
    if colour is None or colour.get(_W + "val", "").upper() != "FFFFFF":
        return False
    # White letters are seen on a shaded run, paragraph or cell.
    return looks.find(_W + "shd") is None and not any(_shaded(parent) for parent in run.iterancestors())


def _shaded(element: etree._Element) -> bool:
    inside = {_W + "p": "pPr", _W + "tc": "tcPr", _W + "tbl": "tblPr"}.get(str(element.tag))
    if inside is None:
        return False
    # A table style may shade its header row without saying so in the cell.
    return element.find(f"{_W}{inside}/{_W}shd") is not None or element.find(f"{_W}tblPr/{_W}tblStyle") is not None


def _heading_styles(archive: zipfile.ZipFile) -> dict[str, str]:
    """Styles of the author's own that act as headings, mapped to the built-in heading style of their depth."""
    if "word/styles.xml" not in archive.namelist():
        return {}
    styles = {
        style.get(_W + "styleId", ""): style for style in _parse(archive.read("word/styles.xml")).iter(_W + "style")
    }
    named = {_style_name(style): style_id for style_id, style in styles.items()}
    found: dict[str, str] = {}
    for style_id, style in styles.items():
        depth = _outline_depth(style, styles)
        builtin = named.get(f"heading {depth}") if depth else None
        if builtin and not _style_name(style).startswith(("heading ", "title")):
            found[style_id] = builtin
    return found


def _style_name(style: etree._Element) -> str:
    name = style.find(_W + "name")
    return name.get(_W + "val", "").lower() if name is not None else ""


def _outline_depth(style: etree._Element | None, styles: dict[str, etree._Element]) -> int | None:
    for _ in range(10):
        if style is None:
            return None
        level = style.find(f"{_W}pPr/{_W}outlineLvl")
        if level is not None and level.get(_W + "val", "").isdigit():
            depth = int(level.get(_W + "val", "")) + 1
            return depth if depth <= 9 else None
        base = style.find(_W + "basedOn")
        style = styles.get(base.get(_W + "val", "")) if base is not None else None
    return None


# --- PowerPoint and Excel ---------------------------------------------------------------------------------------------


def hidden_slides(data: bytes) -> frozenset[int]:
    """Numbers, from 1, of the slides that a show leaves out."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        presentation = _parse(archive.read("ppt/presentation.xml"))
        targets = _relationships(archive, "ppt/_rels/presentation.xml.rels")
        hidden = set()
        for number, entry in enumerate(presentation.iter(_P + "sldId"), start=1):
            name = posixpath.normpath(posixpath.join("ppt", targets.get(entry.get(_R + "id", ""), "")))
            if name in archive.namelist() and _parse(archive.read(name)).get("show") in ("0", "false"):
                hidden.add(number)
    return frozenset(hidden)


def hidden_sheets(data: bytes) -> frozenset[str]:
    """Names of the sheets that the workbook does not show."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        workbook = _parse(archive.read("xl/workbook.xml"))
    return frozenset(
        sheet.get("name", "") for sheet in workbook.iter(_S + "sheet") if sheet.get("state", "visible") != "visible"
    )


def _relationships(archive: zipfile.ZipFile, name: str) -> dict[str, str]:
    if name not in archive.namelist():
        return {}
    return dict(_pairs(_parse(archive.read(name))))


def _pairs(root: etree._Element) -> Iterator[tuple[str, str]]:
    for relation in root:
        yield relation.get("Id", ""), relation.get("Target", "").lstrip("/").removeprefix("ppt/")
