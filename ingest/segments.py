"""Pieces of lines on pages: what the layout is made of, wherever they were read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Segment:
    """Text in one line without wide gaps; points from the page's top left."""

    page: int
    text: str
    left: float
    top: float
    right: float
    bottom: float
    size: float
    bold: bool = False
    hyphenated: bool = False
    # Begins where several others on the page begin: a cell of its own, however near the text before it.
    column: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A page's segments in reading order; `hidden` counts pieces of text that no reader sees.

    `turned` is how far, clockwise in degrees, the shown page was turned to be read: segments are placed after it,
    boxes of elements before it.
    """

    number: int
    width: float
    height: float
    segments: tuple[Segment, ...]
    hidden: int = 0
    turned: int = 0

    @property
    def characters(self) -> int:
        return sum(len(segment.text) for segment in self.segments)


def same_row(one: Segment, other: Segment) -> bool:
    """Whether two segments stand side by side."""
    overlap = min(one.bottom, other.bottom) - max(one.top, other.top)
    return overlap > 0.5 * min(one.bottom - one.top, other.bottom - other.top)
