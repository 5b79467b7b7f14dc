"""HTML made fit to read: hidden text, navigation and page furniture out, tables squared, lists numbered."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree
from lxml import html as lxml_html
from lxml.html import HtmlElement

from core.errors import FileTooLarge
from ingest.encoding import decode_markup
from ingest.visibility import remove_hidden

MAX_SPAN = 100
# Cells of one page once those that span are repeated: a few letters of HTML can ask for any number of them.
MAX_CELLS = 500_000

# Never part of what is read: code, furniture, pictures, form controls, deleted text.
_DROPPED = (
    *("script", "style", "template", "noscript", "head", "link", "meta", "map"),
    *("nav", "dialog", "iframe", "object", "embed", "del"),
    *("svg", "canvas", "audio", "video", "img", "picture"),
    *("input", "select", "textarea", "datalist"),
)
_ROLES = {"navigation", "banner", "contentinfo", "search", "complementary", "dialog", "menu", "menubar"}
_FURNITURE = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|navigation|menu|sidebar|sidenav|breadcrumbs?|pagination|skip-?(?:link|nav)|cookies?|"
    r"toc|share|social)(?:$|[\s_-])",
    re.I,
)
# What the parser lets in and the tree refuses when its text is changed.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|"
    "&#(?:0*(?:[0-8]|1[124-9]|2\\d|3[01])|x0*(?:[0-8bcef]|1[0-9a-f]));?(?![0-9a-f])",
    re.I,
)
_CHINESE = "\u3001-\u3011\u3400-\u4dbf\u4e00-\u9fff\uff01-\uff1f"
_CHINESE_BREAK = re.compile(f"(?<=[{_CHINESE}])[ \t]*\n\\s*(?=[{_CHINESE}])")


@dataclass(frozen=True, slots=True)
class Prepared:
    """Clean HTML, what the head calls the page, and from how many places hidden text went."""

    html: str
    title: str | None
    hidden: int


def prepare(source: str | bytes) -> Prepared:
    """Parse leniently and keep what a reader would see of the page's own content. Raises FileTooLarge."""
    text = decode_markup(source) if isinstance(source, bytes) else source
    root = _parsed(text)
    if root is None:
        return Prepared("", None, 0)
    title = root.findtext(".//title")
    hidden = remove_hidden(root)
    _drop_furniture(root)
    _keep_content(root)
    cells = 0
    for table in list(root.iter("table")):
        if _lays_out(table):
            _open(table)
        else:
            cells += _square(table, MAX_CELLS - cells)
    for ordered in root.iter("ol"):
        _number(ordered)
    _close_chinese_lines(root)
    html = etree.tostring(root, encoding="unicode", method="html")
    return Prepared(html, " ".join(title.split()) or None if title else None, hidden)


def _parsed(text: str) -> HtmlElement | None:
    parser = lxml_html.HTMLParser(encoding="utf-8", remove_comments=False, remove_pis=True)
    try:
        plain = _CONTROLS.sub(" ", text).encode("utf-8", errors="ignore")
        return lxml_html.document_fromstring(plain, parser=parser)
    except etree.ParserError:
        # Raised for a document without a single element.
        return None


def _remove(element: HtmlElement) -> None:
    if element.getparent() is not None:
        element.drop_tree()


def _drop_furniture(root: HtmlElement) -> None:
    for heading in root.iter("h1", "h2", "h3", "h4", "h5", "h6"):
        for button in heading.iter("button"):
            button.tag = "span"
    for tag in (*_DROPPED, "button"):
        for element in list(root.iter(tag)):
            _remove(element)
    for element in list(root.iter(etree.Element)):
        if element.getparent() is not None and (_furniture(element) or _icon(element)):
            _remove(element)


def _furniture(element: HtmlElement) -> bool:
    if element.tag in ("html", "body", "main", "article"):
        return False
    if element.tag in ("header", "footer", "aside"):
        # Inside an article these hold its own title and notes; a page's hold logos and imprints.
        own = any(parent.tag in ("main", "article") for parent in element.iterancestors())
        return not own and element.find(".//h1") is None
    if element.get("role", "").lower() in _ROLES:
        return element.find(".//h1") is None
    names = f"{element.get('class', '')} {element.get('id', '')}"
    return bool(_FURNITURE.search(names)) and _mostly_links(element)


def _icon(element: HtmlElement) -> bool:
    """A sign for the eye only: the letters that an icon font draws, a link beside a heading, a symbol."""
    if element.get("aria-hidden", "").lower() != "true":
        return False
    return element.tag in ("i", "a") or not any(map(str.isalnum, element.text_content()))


def _mostly_links(element: HtmlElement) -> bool:
    text = len("".join(element.itertext()).split())
    linked = sum(len("".join(link.itertext()).split()) for link in element.iter("a"))
    return linked * 2 > text or not text


def _keep_content(root: HtmlElement) -> None:
    """Give parts that the partitioner would skip a tag that it reads."""
    renamed = {"form": "div", "fieldset": "div", "details": "div", "figure": "div", "summary": "p", "figcaption": "p"}
    renamed |= {"legend": "p", "label": "span"}
    for element in root.iter(*renamed):
        element.tag = renamed[element.tag]


def _close_chinese_lines(root: HtmlElement) -> None:
    """A line break in the source between Chinese characters is no blank."""
    for element in root.iter(etree.Element):
        if element.tag == "pre":
            continue
        element.text = _CHINESE_BREAK.sub("", element.text) if element.text else element.text
        element.tail = _CHINESE_BREAK.sub("", element.tail) if element.tail else element.tail


# --- tables -----------------------------------------------------------------------------------------------------------


def _lays_out(table: HtmlElement) -> bool:
    """Whether a table only places things on the page: it says so, holds tables or headings, or has one column."""
    if table.get("role", "").lower() in ("presentation", "none") or table.find(".//table") is not None:
        return True
    if any(table.find(f".//{tag}") is not None for tag in ("h1", "h2", "h3", "h4")):
        return True
    return not any(sum(bool("".join(cell.itertext()).strip()) for cell in row) > 1 for row in _rows(table))


def _open(table: HtmlElement) -> None:
    for row in list(_rows(table)):
        for part in (*row, row):
            part.tag = "div"
    for group in table:
        if group.tag in ("thead", "tbody", "tfoot", "caption"):
            group.tag = "div"
    table.tag = "div"


def _square(table: HtmlElement, most: int) -> int:
    """Repeat the text of cells that span rows or columns, so that every row has every column; how many cells it has.

    Raises FileTooLarge before there are more than `most`.
    """
    carried: dict[int, tuple[int, HtmlElement]] = {}
    total = 0
    for row in _rows(table):
        cells = [cell for cell in row if cell.tag in ("td", "th")]
        total += max(sum(_span(cell, "colspan") for cell in cells) + len(carried), max(carried, default=-1) + 1)
        if total > most:
            raise FileTooLarge("The page's tables have too many cells. Split it.")
        if carried or any(cell.get("rowspan") or cell.get("colspan") for cell in cells):
            carried = _square_row(row, cells, carried)
    return total


def _rows(table: HtmlElement) -> Iterator[HtmlElement]:
    for child in table:
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from (row for row in child if row.tag == "tr")


def _square_row(
    row: HtmlElement, cells: list[HtmlElement], carried: dict[int, tuple[int, HtmlElement]]
) -> dict[int, tuple[int, HtmlElement]]:
    waiting = list(cells)
    for cell in cells:
        row.remove(cell)
    below: dict[int, tuple[int, HtmlElement]] = {}
    column = 0
    while waiting or any(at >= column for at in carried):
        if column in carried:
            rows_left, above = carried[column]
            row.append(_copy(above))
            if rows_left > 1:
                below[column] = (rows_left - 1, above)
            column += 1
            continue
        cell = waiting.pop(0) if waiting else lxml_html.Element("td")
        for _ in range(_span(cell, "colspan")):
            row.append(cell if cell.getparent() is None else _copy(cell))
            if _span(cell, "rowspan") > 1:
                below[column] = (_span(cell, "rowspan") - 1, cell)
            column += 1
    return below


def _copy(cell: HtmlElement) -> HtmlElement:
    copy = lxml_html.Element(cell.tag)
    copy.text = " ".join("".join(cell.itertext()).split())
    return copy


def _span(cell: HtmlElement, name: str) -> int:
    value = cell.get(name, "1").strip()
    return min(max(int(value), 1), MAX_SPAN) if value.isascii() and value.isdigit() else 1


# --- lists ------------------------------------------------------------------------------------------------------------


def _number(ordered: HtmlElement) -> None:
    """Write each item's number into its text: steps are referred to by number."""
    start = ordered.get("start", "1").strip()
    number = int(start) if start.isascii() and start.isdigit() else 1
    for item in ordered:
        if item.tag != "li":
            continue
        value = item.get("value", "").strip()
        number = int(value) if value.isascii() and value.isdigit() and len(value) < 9 else number
        _open_first_paragraph(item)
        item.text = f"{_label(number, ordered.get('type', '1'))} {(item.text or '').lstrip()}"
        number += 1


def _label(number: int, style: str) -> str:
    if style in ("a", "A") and 1 <= number <= 26:
        return chr(ord(style) + number - 1) + "."
    return f"{number}."


def _open_first_paragraph(item: HtmlElement) -> None:
    if not (item.text or "").strip() and len(item) and item[0].tag == "p":
        item[0].drop_tag()
