"""Excel files made fit to read: hidden rows and columns out, and cells that show nothing on the screen emptied."""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TypeVar

from lxml import etree

from ingest.colours import BLACK, WHITE, Colour, from_hex, unseen
from ingest.ooxml import Package, R, Theme, parse_xml, remove, shaded, tinted, to_bytes

_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_XML_SPACE = "{http://www.w3.org/XML/1998/namespace}space"

# Points: letters of this size and less are specks.
_SMALLEST = 2.0
_CELL = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,7})")
_ON = ("1", "true")
# Hidden rows or columns, or texts formatted inside their cells.
_MAY_HIDE = re.compile(rb"\shidden=|<(?:\w+:)?rPr>")
_THEME_ORDER = ("lt1", "dk1", "lt2", "dk2", *(f"accent{n}" for n in range(1, 7)), "hlink", "folHlink")
_INDEXED = {0: BLACK, 1: WHITE, 8: BLACK, 9: WHITE, 64: BLACK, 65: WHITE}
# The four sections of a number format, all empty: the value is kept and not shown.
_SHOWS_NOTHING = re.compile(r"\s*;\s*;\s*;\s*")


@dataclass(frozen=True, slots=True)
class Workbook:
    """A workbook as it is seen: names of the sheets that it does not show, and from how many places text went."""

    data: bytes
    hidden_sheets: frozenset[str]
    hidden: int


@dataclass(frozen=True, slots=True)
class _Format:
    """How a cell looks. `ground` is None where it cannot be told, `colour` where letters have no odd colour."""

    colour: Colour | None
    ground: Colour | None
    size: float
    shows_nothing: bool


def readable_xlsx(data: bytes) -> Workbook:
    """The workbook without text in hidden rows and columns, in white on white, in tiny letters, or never displayed."""
    package = Package(data)
    main = package.main()
    workbook = parse_xml(package.read(main))
    targets = {relation.id: relation.target for relation in package.relations(main)}
    looks = _Looks(package, main)
    hidden_sheets: set[str] = set()
    hidden = 0
    for sheet in workbook.iter(_S + "sheet"):
        if sheet.get("state", "visible") != "visible":
            hidden_sheets.add(sheet.get("name", ""))
            continue
        name = targets.get(sheet.get(R + "id", ""), "")
        if name not in package:
            continue
        part = package.read(name)
        if looks.any_odd or _MAY_HIDE.search(part):
            root = parse_xml(part)
            removed = _Sheet(root, looks, _styled_areas(package, name, root)).make_readable()
            hidden += removed
            if removed:
                package.put(name, to_bytes(root))
    return Workbook(package.to_bytes() if hidden else data, frozenset(hidden_sheets), hidden)


class _Looks:
    """The cell formats of a workbook, and the shared texts of which a part is written in an odd colour or size."""

    def __init__(self, package: Package, main: str) -> None:
        self._theme = Theme(package.root(package.related(main, "theme")))
        self.formats = list(self._formats(package.root(package.related(main, "styles"))))
        grounds = {WHITE, *(form.ground for form in self.formats)}
        self.rich: dict[int, list[tuple[str, Colour | None, float]]] = {}
        strings = package.root(package.related(main, "sharedStrings"))
        for index, entry in enumerate(strings.iter(_S + "si") if strings is not None else ()):
            runs = self.runs(entry)
            if any(_unseen(colour, size, ground) for _, colour, size in runs for ground in grounds):
                self.rich[index] = runs
        odd = any(_unseen(form.colour, form.size, form.ground) or form.shows_nothing for form in self.formats)
        self.any_odd = odd or bool(self.rich)

    def runs(self, entry: etree._Element) -> list[tuple[str, Colour | None, float]]:
        """The pieces of a text that is formatted inside its cell: text, colour, size."""
        return [
            (run.findtext(_S + "t", ""), self._colour(run.find(f"{_S}rPr/{_S}color")), _size(run.find(_S + "rPr")))
            for run in entry.iterfind(_S + "r")
        ]

    def _formats(self, styles: etree._Element | None) -> Iterable[_Format]:
        if styles is None:
            return
        letters = styles.iterfind(f"{_S}fonts/{_S}font")
        fonts = [(self._colour(font.find(_S + "color")), _size(font)) for font in letters]
        fills = [self._ground(fill) for fill in styles.iterfind(f"{_S}fills/{_S}fill")]
        numbers = styles.iterfind(f"{_S}numFmts/{_S}numFmt")
        codes = {entry.get("numFmtId", ""): entry.get("formatCode", "") for entry in numbers}
        for form in styles.iterfind(f"{_S}cellXfs/{_S}xf"):
            colour, size = _at(fonts, form.get("fontId", "0"), (None, 11.0))
            yield _Format(
                colour=colour,
                ground=_at(fills, form.get("fillId", "0"), WHITE),
                size=size,
                shows_nothing=bool(_SHOWS_NOTHING.fullmatch(codes.get(form.get("numFmtId", "0"), ""))),
            )

    def _colour(self, element: etree._Element | None) -> Colour | None:
        if element is None:
            return None
        colour: Colour | None = None
        if element.get("rgb"):
            colour = from_hex(element.get("rgb", "")[-6:])
        elif element.get("theme", "").isdigit():
            colour = self._theme.colour(_at(list(_THEME_ORDER), element.get("theme", ""), ""))
        elif element.get("indexed", "").isdigit():
            colour = _INDEXED.get(int(element.get("indexed", "")))
        try:
            tint = float(element.get("tint", "0"))
        except ValueError:
            return None
        if colour is None or not tint:
            return colour
        return shaded(colour, 1 + tint) if tint < 0 else tinted(colour, 1 - tint)

    def _ground(self, fill: etree._Element) -> Colour | None:
        pattern = fill.find(_S + "patternFill")
        if pattern is None or pattern.get("patternType", "none") not in ("none", "solid"):
            return None
        return WHITE if pattern.get("patternType", "none") == "none" else self._colour(pattern.find(_S + "fgColor"))


def _unseen(colour: Colour | None, size: float, ground: Colour | None) -> bool:
    return size <= _SMALLEST or (colour is not None and ground is not None and unseen(colour, ground))


def _size(font: etree._Element | None) -> float:
    element = font.find(_S + "sz") if font is not None else None
    try:
        return float(element.get("val", "11")) if element is not None else 11.0
    except ValueError:
        return 11.0


_T = TypeVar("_T")


def _at(items: list[_T], index: str, otherwise: _T) -> _T:
    return items[int(index)] if index.isdigit() and int(index) < len(items) else otherwise


@dataclass(frozen=True, slots=True)
class _Area:
    """Cells from one corner to the other, columns and rows from 1."""

    left: int
    top: int
    right: int
    bottom: int

    def __contains__(self, cell: tuple[int, int]) -> bool:
        return self.left <= cell[0] <= self.right and self.top <= cell[1] <= self.bottom


def _area(reference: str) -> _Area | None:
    found = _CELL.findall(reference)
    if not found:
        return None
    (left, top), (right, bottom) = found[0], found[-1]
    return _Area(_column(left), int(top), _column(right), int(bottom))


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


def _letters(column: int) -> str:
    letters = ""
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def _styled_areas(package: Package, name: str, root: etree._Element) -> list[_Area]:
    """Where a table's style or a condition may colour cells."""
    references = [part for entry in root.iter(_S + "conditionalFormatting") for part in entry.get("sqref", "").split()]
    for relation in package.relations(name):
        table = package.root(relation.target) if relation.kind == "table" else None
        style = table.find(_S + "tableStyleInfo") if table is not None else None
        if table is not None and style is not None and style.get("name"):
            references.append(table.get("ref", ""))
    return [area for reference in references if (area := _area(reference)) is not None]


class _Sheet:
    """One sheet on its way to the reader."""

    def __init__(self, root: etree._Element, looks: _Looks, styled: list[_Area]) -> None:
        self._root = root
        self._looks = looks
        self._styled = styled
        _number_cells(root)

    def make_readable(self) -> int:
        """Change the sheet in place; from how many rows, columns and cells text went."""
        hidden = sum(self._empty_unseen(row) for row in self._root.iter(_S + "row"))
        columns, rows = self._hidden_columns(), [r for r in self._root.iter(_S + "row") if r.get("hidden") in _ON]
        gone_rows = [int(row.get("r", "0")) for row in rows]
        hidden += sum(any(_shows(cell) for cell in row) for row in rows)
        for row in rows:
            remove(row)
        emptied: set[int] = set()
        for cell in list(self._root.iter(_S + "c")):
            column = _place(cell)[0]
            if any(first <= column <= last for first, last in columns):
                emptied |= {column} if _shows(cell) else set()
                remove(cell)
        hidden += len(emptied)
        if gone_rows or emptied:
            self._close_up(gone_rows, columns)
        return hidden

    def _hidden_columns(self) -> list[tuple[int, int]]:
        found = (column for column in self._root.iterfind(f"{_S}cols/{_S}col") if column.get("hidden") in _ON)
        return [(int(column.get("min", "0")), int(column.get("max", "0"))) for column in found]

    def _empty_unseen(self, row: etree._Element) -> int:
        hidden = 0
        for cell in row:
            look = _at(self._looks.formats, cell.get("s", "0"), _Format(None, WHITE, 11.0, False))
            styled = any(_place(cell) in area for area in self._styled)
            ground = None if styled else look.ground
            if _unseen(look.colour, look.size, ground) or look.shows_nothing:
                hidden += _shows(cell)
                _empty(cell)
            else:
                hidden += self._empty_runs(cell, ground)
        return hidden

    def _empty_runs(self, cell: etree._Element, ground: Colour | None) -> int:
        """Take pieces that are not seen out of a text formatted inside its cell."""
        inline = cell.find(_S + "is")
        if inline is not None:
            runs = self._looks.runs(inline)
        elif cell.get("t") == "s":
            index = cell.findtext(_S + "v", "")
            runs = self._looks.rich.get(int(index), []) if index.isdigit() else []
        else:
            runs = []
        kept = [text for text, colour, size in runs if not _unseen(colour, size, ground)]
        if len(kept) == len(runs):
            return 0
        _empty(cell)
        cell.set("t", "inlineStr")
        text = etree.SubElement(etree.SubElement(cell, _S + "is"), _S + "t")
        text.text = "".join(kept)
        text.set(_XML_SPACE, "preserve")
        return len(runs) - len(kept)

    def _close_up(self, rows: Collection[int], columns: list[tuple[int, int]]) -> None:
        """Number what is left without gaps: an empty row or column would cut a table in two."""
        row_shift = _shift([(row, row) for row in rows])
        column_shift = _shift(columns)
        for row in self._root.iter(_S + "row"):
            number = row_shift(int(row.get("r", "0")))
            row.set("r", str(number))
            for cell in row:
                cell.set("r", f"{_letters(column_shift(_place(cell)[0]))}{number}")
        for name in ("mergeCells", "dimension", "autoFilter"):
            for element in self._root.findall(_S + name):
                remove(element)


def _shift(gone: list[tuple[int, int]]) -> Callable[[int], int]:
    ranges = sorted(gone)

    def shifted(number: int) -> int:
        return number - sum(last - first + 1 for first, last in ranges if last < number)

    return shifted


def _number_cells(root: etree._Element) -> None:
    """Rows and cells may leave out where they are: the next after the one before."""
    row_number = 0
    for row in root.iter(_S + "row"):
        row_number = int(row.get("r", "")) if row.get("r", "").isdigit() else row_number + 1
        row.set("r", str(row_number))
        column = 0
        for cell in row:
            match = _CELL.fullmatch(cell.get("r", ""))
            column = _column(match[1]) if match else column + 1
            cell.set("r", f"{_letters(column)}{row_number}")


def _place(cell: etree._Element) -> tuple[int, int]:
    match = _CELL.fullmatch(cell.get("r", ""))
    return (_column(match[1]), int(match[2])) if match else (0, 0)


def _shows(cell: etree._Element) -> bool:
    return bool("".join(cell.itertext(_S + "v", _S + "t")).strip())


def _empty(cell: etree._Element) -> None:
    for child in list(cell):
        cell.remove(child)
    cell.attrib.pop("t", None)
