"""The characters of a PDF page with their boxes and looks, placed in the frame in which the text stands upright."""

import ctypes
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

# How many characters are asked for what is asked of a page as a whole: their angle, their mapping to Unicode.
SAMPLE = 200

_INVISIBLE_MODE = 3
# Fill colours from this on, and alpha below that, may be as pale as what is behind them.
_PALE, _CLEAR = 225, 40
_BOLD_WEIGHT = 600
_BOLD_NAMES = ("bold", "heavy", "black", "simhei", "heiti", "黑体")
# Font sizes in points that are believed; elsewhere the character's height counts.
_LEAST_SIZE, _MOST_SIZE = 1.5, 300
# What ends a line, and what shows nothing.
_BREAKS = np.array([0, 10, 13], dtype=np.uint32)
_BLANKS = np.array([0, *(code for code in range(0x3001) if chr(code).isspace())], dtype=np.uint32)


@dataclass(frozen=True, slots=True)
class _Look:
    """How a text object is drawn."""

    invisible: bool
    pale: bool
    bold: bool
    # Points; 0 where the font does not say.
    size: float


@dataclass(frozen=True, slots=True)
class Characters:
    """A page's characters as pdfium orders them, side by side.

    `boxes` are left, top, right, bottom in the frame; `middles` x and y in the page's own space.
    """

    text: str
    boxes: NDArray[np.float64]
    middles: NDArray[np.float64]
    inked: NDArray[np.bool_]
    breaks: NDArray[np.bool_]
    invisible: NDArray[np.bool_]
    pale: NDArray[np.bool_]
    bold: NDArray[np.bool_]
    sizes: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Frame:
    """The space in which the text stands upright: points from its top left.

    `rotation` leads there from the page's own space, `turned` from the page as shown, both clockwise in degrees.
    """

    width: float
    height: float
    rotation: int
    turned: int
    bounds: tuple[float, float, float, float]

    @classmethod
    def of(cls, page: Any, text: Any) -> "Frame":
        shown = page.get_rotation()
        rotation = _angle(text)
        if rotation is None:
            rotation = shown
        width, height = page.get_size()
        turned = (rotation - shown) % 360
        if turned % 180:
            width, height = height, width
        return cls(width, height, rotation, turned, page.get_bbox())

    def place(self, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """Left, top, right, bottom in the frame for pdfium's left, top, right, bottom (y up)."""
        x0, y0, x1, y1 = self.bounds
        left, top, right, bottom = edges.T
        if self.rotation == 90:
            placed = (bottom - y0, left - x0, top - y0, right - x0)
        elif self.rotation == 180:
            placed = (x1 - right, bottom - y0, x1 - left, top - y0)
        elif self.rotation == 270:
            placed = (y1 - top, x1 - right, y1 - bottom, x1 - left)
        else:
            placed = (left - x0, y1 - top, right - x0, y1 - bottom)
        return np.stack(placed, axis=1)


def _angle(text: Any) -> int | None:
    """How far most of the text has to be turned clockwise to stand upright; None for a page without text."""
    import pypdfium2.raw as raw

    count = text.count_chars()
    angles: Counter[int] = Counter()
    for index in range(0, count, max(count // SAMPLE, 1)):
        if not chr(raw.FPDFText_GetUnicode(text.raw, index)).isspace():
            angles[round(-math.degrees(raw.FPDFText_GetCharAngle(text.raw, index)) / 90) * 90 % 360] += 1
    return angles.most_common(1)[0][0] if angles else None


@cache
def _calls() -> tuple[Callable[[int, int], int], Callable[[int, int, int], int], Callable[[int, int], int | None]]:
    """pdfium's character, box and text object of an index, taking plain addresses: called for every character."""
    import pypdfium2.raw as raw

    address, number = ctypes.c_void_p, ctypes.c_int

    def plain(function: Any, result: Any, *arguments: Any) -> Any:
        return ctypes.PYFUNCTYPE(result, *arguments)(ctypes.cast(function, address).value or 0)

    return (
        plain(raw.FPDFText_GetUnicode, ctypes.c_uint, address, number),
        plain(raw.FPDFText_GetLooseCharBox, number, address, number, address),
        plain(raw.FPDFText_GetTextObject, address, address, number),
    )


def characters_of(text: Any, frame: Frame) -> Characters:
    unicode_of, box_of, object_of = _calls()
    handle = ctypes.cast(text.raw, ctypes.c_void_p).value or 0
    count = text.count_chars()
    codes = np.fromiter((unicode_of(handle, index) for index in range(count)), dtype=np.uint32, count=count)
    inked = ~np.isin(codes, _BLANKS)
    edges = np.zeros((count, 4), dtype=np.float32)
    start = edges.ctypes.data
    for index in np.flatnonzero(inked).tolist():
        box_of(handle, index, start + 16 * index)
    things = np.fromiter((object_of(handle, index) or 0 for index in range(count)), dtype=np.uint64, count=count)
    known, first, which = np.unique(things, return_index=True, return_inverse=True)
    looks = [_look(text, int(index), int(thing)) for thing, index in zip(known, first, strict=True)]
    wide = edges.astype(np.float64)
    boxes = frame.place(wide)
    sizes = np.array([look.size for look in looks])[which] if count else np.zeros(0)

    def flags(values: list[bool]) -> NDArray[np.bool_]:
        return np.array(values, dtype=bool)[which] & inked if count else inked

    return Characters(
        text="".join(map(chr, codes.tolist())),
        boxes=boxes,
        middles=(wide[:, :2] + wide[:, 2:]) / 2,
        inked=inked,
        breaks=np.isin(codes, _BREAKS),
        invisible=flags([look.invisible for look in looks]),
        pale=flags([look.pale for look in looks]),
        bold=flags([look.bold for look in looks]),
        sizes=np.where(sizes > 0, sizes, boxes[:, 3] - boxes[:, 1]),
    )


def _look(text: Any, index: int, thing: int) -> _Look:
    import pypdfium2.raw as raw

    handle = text.raw
    mode = raw.FPDFTextObj_GetTextRenderMode(ctypes.cast(thing, raw.FPDF_PAGEOBJECT)) if thing else 0
    red, green, blue, alpha = (ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint(255))
    raw.FPDFText_GetFillColor(handle, index, red, green, blue, alpha)
    pale = min(red.value, green.value, blue.value) > _PALE or alpha.value < _CLEAR
    name = ctypes.create_string_buffer(128)
    flags = ctypes.c_int()
    raw.FPDFText_GetFontInfo(handle, index, name, 128, flags)
    heavy = raw.FPDFText_GetFontWeight(handle, index) >= _BOLD_WEIGHT
    font = name.value.decode("utf-8", errors="replace").lower()
    bold = heavy or any(word in font for word in _BOLD_NAMES)
    return _Look(mode == _INVISIBLE_MODE, pale, bold, _size(raw, handle, index))


def _size(raw: Any, handle: Any, index: int) -> float:
    matrix = raw.FS_MATRIX()
    raw.FPDFText_GetMatrix(handle, index, matrix)
    size = float(raw.FPDFText_GetFontSize(handle, index)) * math.hypot(matrix.c, matrix.d)
    return size if _LEAST_SIZE < size < _MOST_SIZE else 0.0
