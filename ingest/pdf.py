"""PDF by pdfium: characters with their boxes, hidden ones out, handed to the layout as segments of lines."""

import ctypes
import math
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import DamagedFile, EncryptedFile, FileTooLarge, NoText
from core.records import Element
from ingest.pdf_layout import BESIDE, Page, Segment, elements_of

# pdfium may be entered by one thread at a time in a process; page rendering takes the same lock.
LOCK = threading.Lock()

MAX_PAGES = 5_000
MAX_CHARACTERS = 12_000_000

_INVISIBLE_MODE = 3
# Points: smaller print is not meant to be read.
_SMALLEST = 1.5
# A blank this many font sizes wide parts two cells; less is enough where a column is seen to begin.
_GAP = 1.6
# How many lines before and after are looked at for a column, and how near its left edges lie (points).
_NEIGHBOURS, _SAME_PLACE = 12, 1.5
_BOLD_WEIGHT = 600
_BOLD_NAMES = ("bold", "heavy", "black", "simhei", "heiti", "黑体")
_BULLETS = str.maketrans({"\uf0b7": "•", "\uf0a7": "▪", "\uf0d8": "▪", "\uf06c": "•", "\uf0fc": "•", "\uf076": "•"})
_SOFT_HYPHENS = ("\x02", "\ufffe")
_JUNK_TITLES = ("untitled", "microsoft word", "microsoft powerpoint", "powerpoint", "print", "slide 1", "document")


@dataclass(frozen=True, slots=True)
class PdfText:
    """Elements with pages and boxes, the title property, the number of pages, and warnings."""

    elements: tuple[Element, ...]
    title: str | None
    pages: int
    warnings: tuple[str, ...]


def open_pdf(path: Path) -> Any:
    """A pypdfium2 document; the caller holds `LOCK` and closes it. Raises EncryptedFile, DamagedFile."""
    import pypdfium2
    import pypdfium2.raw as raw

    try:
        return pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise EncryptedFile() from error
        raise DamagedFile() from error


def read_pdf(path: Path) -> PdfText:
    """Read all pages. Raises EncryptedFile, DamagedFile, FileTooLarge, and NoText naming the pages."""
    with LOCK:
        document = open_pdf(path)
    try:
        return _read(document)
    finally:
        with LOCK:
            document.close()


def _read(document: Any) -> PdfText:
    with LOCK:
        count = len(document)
        title = _title(document)
    if count == 0:
        raise NoText("The PDF has no pages.")
    if count > MAX_PAGES:
        raise FileTooLarge(f"The PDF has {count} pages, the limit is {MAX_PAGES}. Split it.")
    pages: list[Page] = []
    unreadable: list[int] = []
    characters = 0
    for number in range(1, count + 1):
        with LOCK:
            page = _read_page(document, number)
        if page is None:
            unreadable.append(number)
        pages.append(page or Page(number, 1.0, 1.0, ()))
        characters += pages[-1].characters
        if characters > MAX_CHARACTERS:
            raise FileTooLarge("The PDF holds more text than a document should. Split it.")
    return _result(pages, unreadable, title)


def _result(pages: list[Page], unreadable: list[int], title: str | None) -> PdfText:
    if len(unreadable) == len(pages):
        raise DamagedFile()
    empty = [page.number for page in pages if not page.segments and page.number not in unreadable]
    elements = elements_of(pages)
    if not elements:
        raise NoText(
            f"The PDF has no text on {_numbers(empty)} (a scan or pictures). Provide a version with a text layer."
        )
    warnings = []
    if empty:
        warnings.append(f"No text on {_numbers(empty)}: blank or scanned. What is shown there cannot be found.")
    if unreadable:
        warnings.append(f"Could not read {_numbers(unreadable)}: damaged.")
    hidden = [page.number for page in pages if page.hidden]
    if hidden:
        warnings.append(f"Hidden text was left out on {_numbers(hidden)}.")
    return PdfText(tuple(elements), title, len(pages), tuple(warnings))


def _numbers(pages: list[int]) -> str:
    """`page 3` or `pages 1-3, 7`."""
    runs: list[list[int]] = []
    for page in pages:
        if runs and runs[-1][-1] == page - 1:
            runs[-1][1:] = [page]
        else:
            runs.append([page])
    words = ", ".join("-".join(map(str, run)) for run in runs)
    return f"page {words}" if len(pages) == 1 else f"pages {words}"


def _title(document: Any) -> str | None:
    words = " ".join(document.get_metadata_value("Title").split())
    junk = words.lower().startswith(_JUNK_TITLES) or words.lower().endswith((".doc", ".docx", ".pdf", ".indd"))
    return None if junk else words or None


# --- one page ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Glyph:
    char: str
    left: float
    top: float
    right: float
    bottom: float
    look: "_Look"


@dataclass(frozen=True, slots=True)
class _Look:
    """How a text object is drawn."""

    invisible: bool
    white: bool
    bold: bool
    # Points; 0 where the font does not say.
    size: float


def _read_page(document: Any, number: int) -> Page | None:
    """The page, or None when pdfium cannot load it."""
    import pypdfium2

    try:
        page = document[number - 1]
        text = page.get_textpage()
    except pypdfium2.PdfiumError:
        return None
    try:
        width, height = page.get_size()
        lines = _glyph_lines(page, text)
        lines, hidden = _without_hidden(page, lines, width, height)
        return Page(number, width, height, tuple(_page_segments(lines, number)), hidden)
    finally:
        text.close()
        page.close()


def _glyph_lines(page: Any, text: Any) -> list[list[_Glyph]]:
    """Visible characters as pdfium orders them, broken where it starts a line."""
    import pypdfium2.raw as raw

    handle = text.raw
    to_display = _Display(page)
    box = raw.FS_RECTF()
    looks: dict[int | None, _Look] = {}
    lines: list[list[_Glyph]] = [[]]
    for index in range(text.count_chars()):
        code = raw.FPDFText_GetUnicode(handle, index)
        if code in (10, 13) or code == 0:
            if lines[-1]:
                lines.append([])
            continue
        raw.FPDFText_GetLooseCharBox(handle, index, box)
        thing = raw.FPDFText_GetTextObject(handle, index)
        key = ctypes.addressof(thing.contents) if thing else None
        if key not in looks:
            looks[key] = _look(raw, handle, index, thing)
        lines[-1].append(_Glyph(chr(code), *to_display(box.left, box.bottom, box.right, box.top), looks[key]))
    return [line for line in lines if any(not glyph.char.isspace() for glyph in line)]


def _look(raw: Any, handle: Any, index: int, thing: Any) -> _Look:
    mode = raw.FPDFTextObj_GetTextRenderMode(thing) if thing else 0
    red, green, blue, alpha = (ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint(255))
    raw.FPDFText_GetFillColor(handle, index, red, green, blue, alpha)
    white = min(red.value, green.value, blue.value) > 245 or alpha.value < 10
    name = ctypes.create_string_buffer(128)
    flags = ctypes.c_int()
    raw.FPDFText_GetFontInfo(handle, index, name, 128, flags)
    heavy = raw.FPDFText_GetFontWeight(handle, index) >= _BOLD_WEIGHT
    named = any(word in name.value.decode("utf-8", errors="replace").lower() for word in _BOLD_NAMES)
    return _Look(mode == _INVISIBLE_MODE, white, heavy or named, _size(raw, handle, index))


def _size(raw: Any, handle: Any, index: int) -> float:
    matrix = raw.FS_MATRIX()
    raw.FPDFText_GetMatrix(handle, index, matrix)
    size = float(raw.FPDFText_GetFontSize(handle, index)) * math.hypot(matrix.c, matrix.d)
    return size if _SMALLEST < size < 300 else 0.0


class _Display:
    """User space to what is shown: points from the top left, the page's rotation applied."""

    def __init__(self, page: Any) -> None:
        self._left, self._bottom, self._right, self._top = page.get_bbox()
        self._rotation = page.get_rotation()

    def __call__(self, left: float, bottom: float, right: float, top: float) -> tuple[float, float, float, float]:
        """Left, top, right, bottom on the shown page."""
        if self._rotation == 90:
            return bottom - self._bottom, left - self._left, top - self._bottom, right - self._left
        if self._rotation == 180:
            return self._right - right, bottom - self._bottom, self._right - left, top - self._bottom
        if self._rotation == 270:
            return self._top - top, self._right - right, self._top - bottom, self._right - left
        return left - self._left, self._top - top, right - self._left, self._top - bottom


# --- hidden text ------------------------------------------------------------------------------------------------------


def _without_hidden(
    page: Any, lines: list[list[_Glyph]], width: float, height: float
) -> tuple[list[list[_Glyph]], int]:
    """Lines without text that no reader sees, and how many characters went.

    Invisible text that is nearly all there is on a page is the text layer of a scan and stays.
    """
    everything = [glyph for line in lines for glyph in line if not glyph.char.isspace()]
    invisible = sum(glyph.look.invisible for glyph in everything)
    scan = invisible * 5 > len(everything) * 4
    picture = _picture(page) if any(glyph.look.white for glyph in everything) else None
    kept: list[list[_Glyph]] = []
    hidden = 0
    for line in lines:
        seen = [g for g in line if g.char.isspace() or _seen(g, scan, picture, width, height)]
        hidden += len(line) - len(seen)
        if any(not glyph.char.isspace() for glyph in seen):
            kept.append(seen)
    return kept, hidden


def _seen(glyph: _Glyph, scan: bool, picture: NDArray[np.uint8] | None, width: float, height: float) -> bool:
    if glyph.look.invisible and not scan:
        return False
    if glyph.right < 0 or glyph.bottom < 0 or glyph.left > width or glyph.top > height:
        return False
    if 0 < max(glyph.bottom - glyph.top, glyph.right - glyph.left) < _SMALLEST:
        return False
    if glyph.look.white and not glyph.look.invisible and picture is not None:
        return not _blank(picture, glyph, width, height)
    return True


def _picture(page: Any) -> NDArray[np.uint8]:
    """The page in grey at 72 dots per inch: white letters show only on something darker."""
    bitmap = page.render(scale=min(1.0, 2000 / max(page.get_size())), grayscale=True)
    try:
        return np.array(bitmap.to_numpy(), dtype=np.uint8).reshape(bitmap.height, bitmap.width)
    finally:
        bitmap.close()


def _blank(picture: NDArray[np.uint8], glyph: _Glyph, width: float, height: float) -> bool:
    down, across = picture.shape[0] / height, picture.shape[1] / width
    top, left = max(int(glyph.top * down), 0), max(int(glyph.left * across), 0)
    area = picture[top : int(glyph.bottom * down) + 1, left : int(glyph.right * across) + 1]
    return area.size == 0 or int(area.min()) > 235


# --- segments ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    """A line's glyphs, their extent, and where texts begin in it after blanks wider than those between words."""

    glyphs: list[_Glyph]
    top: float
    size: float
    begins: tuple[float, ...]

    @classmethod
    def of(cls, glyphs: list[_Glyph]) -> "_Line":
        inked = [glyph for glyph in glyphs if not glyph.char.isspace()]
        size = max(glyph.look.size or glyph.bottom - glyph.top for glyph in inked)
        blanks = [(b.left, (b.left - a.right) / size) for a, b in pairwise(inked) if b.left - a.right > 0.12 * size]
        # In a justified line every blank is wide: one that parts cells is wider than the others.
        usual = min((width for _, width in blanks), default=0.0)
        few = len(blanks) <= 3
        wide = (x for x, w in blanks if w > BESIDE and (w > 1.6 * usual or (few and w > 2 * BESIDE)))
        return cls(inked, min(glyph.top for glyph in inked), size, (inked[0].left, *wide))

    def begins_at(self, x: float) -> bool:
        return any(abs(left - x) < _SAME_PLACE for left in self.begins)

    def crosses(self, x: float) -> bool:
        return any(glyph.left < x - 0.5 < glyph.right for glyph in self.glyphs)


def _page_segments(lines: list[list[_Glyph]], page: int) -> Iterator[Segment]:
    """All lines parted at wide gaps, where they jump back, and where columns begin."""
    known = [_Line.of(line) for line in lines]
    for at, line in enumerate(lines):
        near = known[max(at - _NEIGHBOURS, 0) : at] + known[at + 1 : at + 1 + _NEIGHBOURS]
        columns = tuple(left for left in known[at].begins if _column(left, known[at], near))
        for part in _parts(line, columns):
            if segment := _segment(part, page, columns):
                yield segment


def _column(x: float, line: _Line, near: list[_Line]) -> bool:
    """Whether a text that begins at `x` is a cell: lines around it begin there too, and none close by runs across."""
    around = [other for other in near if abs(other.top - line.top) < 7 * line.size]
    if not any(other.begins_at(x) for other in around):
        return False
    close = [other for other in around if line.size * 0.5 < abs(other.top - line.top) < 1.9 * line.size]
    return not any(other.crosses(x) for other in close)


def _parts(line: list[_Glyph], columns: Collection[float]) -> list[list[_Glyph]]:
    parts: list[list[_Glyph]] = [[]]
    last: _Glyph | None = None
    for glyph in line:
        if not glyph.char.isspace():
            if last is not None and _parted(last, glyph, columns):
                parts.append([])
            last = glyph
        parts[-1].append(glyph)
    return parts


def _parted(before: _Glyph, after: _Glyph, columns: Collection[float]) -> bool:
    size = after.look.size or max(after.bottom - after.top, before.bottom - before.top, 1.0)
    gap = after.left - before.right
    return gap > _GAP * size or gap < -4 * size or (gap > BESIDE * size and after.left in columns)


def _segment(glyphs: list[_Glyph], page: int, columns: Collection[float]) -> Segment | None:
    inked = [glyph for glyph in glyphs if not glyph.char.isspace()]
    if not inked:
        return None
    raw_text = "".join(glyph.char for glyph in glyphs).strip().translate(_BULLETS)
    hyphenated = raw_text.endswith(_SOFT_HYPHENS)
    for mark in _SOFT_HYPHENS:
        raw_text = raw_text.replace(mark, "")
    if not raw_text:
        return None
    sizes = sorted(glyph.look.size or glyph.bottom - glyph.top for glyph in inked)
    return Segment(
        page=page,
        text=" ".join(raw_text.split()),
        left=min(glyph.left for glyph in inked),
        top=min(glyph.top for glyph in inked),
        right=max(glyph.right for glyph in inked),
        bottom=max(glyph.bottom for glyph in inked),
        size=sizes[len(sizes) // 2],
        bold=sum(glyph.look.bold for glyph in inked) * 10 > len(inked) * 8,
        hyphenated=hyphenated,
        column=inked[0].left in columns,
    )
