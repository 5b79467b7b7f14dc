"""From the visible characters of a PDF page to words, lines, and the segments of which the layout is made."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ingest.pdf_characters import Characters
from ingest.pdf_layout import BESIDE
from ingest.segments import Segment

# A blank this many font sizes wide parts two cells; less is enough where a column is seen to begin.
_GAP = 1.6
# How many lines before and after are looked at for a column, and how near its left edges lie (points).
_NEIGHBOURS, _SAME_PLACE = 12, 1.5
_BULLETS = str.maketrans({"\uf0b7": "•", "\uf0a7": "▪", "\uf0d8": "▪", "\uf06c": "•", "\uf0fc": "•", "\uf076": "•"})
_SOFT_HYPHENS = ("\x02", "\ufffe")
# pdfium tells characters beyond the first 65,536 in two halves.
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class _Word:
    """Characters that nearly touch; `letters` of them, `heavy` of these bold; `spaced` after a blank."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    size: float
    letters: int
    heavy: int
    spaced: bool


def _lines(found: Characters, hidden: NDArray[np.bool_]) -> list[list[_Word]]:
    """Visible words, broken where pdfium starts a line; lines of blanks left out."""
    seen = np.flatnonzero(found.inked & ~hidden)
    if not seen.size:
        return []
    left, top, right, bottom = found.boxes[seen].T
    sizes = found.sizes[seen]
    # Of two characters that follow each other: a line break, a blank, a gap, a jump back, another size?
    line = np.diff(np.cumsum(found.breaks)[seen]) > 0
    spaced = np.diff(np.cumsum(~found.inked)[seen]) > 0
    gap = left[1:] - right[:-1]
    parted = line | spaced | (gap > 0.3 * sizes[1:]) | (gap < -sizes[1:]) | (np.abs(np.diff(sizes)) > 0.1)
    begins = np.flatnonzero(np.concatenate(([True], parted)))
    ends = np.append(begins[1:], seen.size) - 1
    words = zip(
        begins.tolist(),
        ends.tolist(),
        np.minimum.reduceat(left, begins).tolist(),
        np.minimum.reduceat(top, begins).tolist(),
        np.maximum.reduceat(right, begins).tolist(),
        np.maximum.reduceat(bottom, begins).tolist(),
        sizes[begins].tolist(),
        np.add.reduceat(found.bold[seen].astype(int), begins).tolist(),
        np.concatenate(([False], spaced))[begins].tolist(),
        np.concatenate(([True], line))[begins].tolist(),
        strict=True,
    )
    places = seen.tolist()
    lines: list[list[_Word]] = []
    for begin, end, x0, y0, x1, y1, size, heavy, after_blank, first in words:
        if first:
            lines.append([])
        text = found.text[places[begin] : places[end] + 1]
        if len(text) > end - begin + 1:
            # Hidden characters lie between.
            text = "".join(found.text[place] for place in places[begin : end + 1])
        lines[-1].append(_Word(text, x0, y0, x1, y1, size, end - begin + 1, heavy, after_blank))
    return lines


@dataclass(frozen=True, slots=True)
class _Line:
    """A line's words, their extent, and where texts begin in it after blanks wider than those between words."""

    words: list[_Word]
    top: float
    size: float
    begins: tuple[float, ...]

    @classmethod
    def of(cls, words: list[_Word]) -> "_Line":
        size = max([word.size for word in words])
        blanks = [(b.left, (b.left - a.right) / size) for a, b in pairwise(words)]
        blanks = [(left, width) for left, width in blanks if width > 0.12]
        # In a justified line every blank is wide: one that parts cells is wider than the others.
        usual = min([width for _, width in blanks], default=0.0)
        few = len(blanks) <= 3
        wide = (x for x, w in blanks if w > BESIDE and (w > 1.6 * usual or (few and w > 2 * BESIDE)))
        return cls(words, min([word.top for word in words]), size, (words[0].left, *wide))

    def begins_at(self, x: float) -> bool:
        return any(abs(left - x) < _SAME_PLACE for left in self.begins)

    def crosses(self, x: float) -> bool:
        return any(word.left < x - 0.5 < word.right for word in self.words)


def segments_of(found: Characters, hidden: NDArray[np.bool_], page: int) -> Iterator[Segment]:
    """The visible text: all lines parted at wide gaps, where they jump back, and where columns begin."""
    lines = _lines(found, hidden)
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


def _parts(line: list[_Word], columns: Collection[float]) -> list[list[_Word]]:
    parts = [line[:1]]
    for before, word in pairwise(line):
        if _parted(before, word, columns):
            parts.append([])
        parts[-1].append(word)
    return parts


def _parted(before: _Word, after: _Word, columns: Collection[float]) -> bool:
    size = max(after.size, 1.0)
    gap = after.left - before.right
    return gap > _GAP * size or gap < -4 * size or (gap > BESIDE * size and after.left in columns)


def _segment(words: list[_Word], page: int, columns: Collection[float]) -> Segment | None:
    raw_text = words[0].text + "".join([" " + word.text if word.spaced else word.text for word in words[1:]])
    raw_text = raw_text.translate(_BULLETS)
    hyphenated = raw_text.endswith(_SOFT_HYPHENS)
    for mark in _SOFT_HYPHENS:
        raw_text = raw_text.replace(mark, "")
    if not raw_text:
        return None
    if _SURROGATE.search(raw_text):
        raw_text = raw_text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    letters = sum([word.letters for word in words])
    return Segment(
        page=page,
        text=" ".join(raw_text.split()),
        left=min([word.left for word in words]),
        top=min([word.top for word in words]),
        right=max([word.right for word in words]),
        bottom=max([word.bottom for word in words]),
        size=_usual_size(words, letters),
        bold=sum([word.heavy for word in words]) * 10 > letters * 8,
        hyphenated=hyphenated,
        column=words[0].left in columns,
    )


def _usual_size(words: list[_Word], letters: int) -> float:
    """The size of the middle letter when all are sorted by size."""
    passed = 0
    for word in sorted(words, key=lambda word: word.size):
        passed += word.letters
        if passed * 2 > letters:
            return word.size
    return words[-1].size
