"""Pictures of pages to lines of text, by Tesseract: words with boxes and confidences, in its TSV form."""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from core.errors import DamagedFile, MissingConverter, ParserStopped
from ingest import programs
from ingest.options import ParseOptions
from ingest.plain import sets_solid
from ingest.segments import Page, Segment

DPI = 300
# Pixels of a picture: an A3 page at 300 dots per inch has 17 million.
MAX_PIXELS = 24_000_000
MAX_SIDE = 12_000
# Seconds for one page, and the share of the whole reading's time that OCR may use.
_PAGE_SECONDS, _SHARE = 60.0, 0.8
# Mean confidence below which another orientation of the picture is tried.
POOR = 0.7
# Lines less sure than this are specks and parts of drawings.
_LEAST = 0.35
# A page is blank when less than this share of it differs by more than so many shades of grey (of 256).
_LEAST_INK, _SHADES = 0.0002, 40
# In heights of a line: a blank this wide parts two cells; between a Chinese character and others one is kept from this.
_CELL, _SPACE = 1.6, 0.3
# What bullets are taken for, when they stand alone before a text.
_BULLETS = set("。·.«»*+¢°•◦○●▪■©®@e")
# Upright rules of a table that were taken for letters.
_RULES = {"|", "||", "｜", "¦"}
_HIGH, _LOW = set("bdfhklt0123456789()[]/|\"'!?&%"), set("gjpqy,;()[]/|Q")


@dataclass(frozen=True, slots=True)
class Scan:
    """What was read in a picture: its lines, and the mean confidence of its words, 0 to 1."""

    page: Page
    confidence: float


@dataclass(frozen=True, slots=True)
class _Word:
    line: tuple[int, ...]
    text: str
    confidence: float
    left: float
    top: float
    right: float
    bottom: float

    @property
    def size(self) -> float:
        """The font size that its height speaks of: small letters fill half of it, high and low ones more."""
        height = self.bottom - self.top
        if any(map(sets_solid, self.text)):
            return height * 1.05
        high = any(char in _HIGH or char.isupper() for char in self.text)
        low = any(char in _LOW for char in self.text)
        return height / (0.52 + 0.21 * high + 0.21 * low)


class Reader:
    """Reads the scanned pages of one document, as long as its time allows.

    `unavailable` says after a try why nothing can be read: Tesseract, or all its languages, are missing. `left` are the
    pages that took too long or came too late.
    """

    def __init__(self, options: ParseOptions) -> None:
        self._options = options
        self._end = time.monotonic() + options.seconds * _SHARE
        self.unavailable: str | None = None
        self.left: list[int] = []

    @property
    def wanted(self) -> bool:
        return self._options.ocr

    @property
    def able(self) -> bool:
        """Whether a further picture would be read."""
        return self.wanted and self._seconds > 0 and not self._lacks_all

    @property
    def _seconds(self) -> float:
        return self._end - time.monotonic()

    @property
    def _lacks_all(self) -> bool:
        return len(self.missing) == len(set(self._options.ocr_languages.split("+")))

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """The languages asked for that Tesseract lacks; all of them where it is not installed."""
        asked = tuple(dict.fromkeys(self._options.ocr_languages.split("+")))
        try:
            with tempfile.TemporaryDirectory(prefix="ocr-") as folder:
                listed = programs.run(["tesseract", "--list-langs"], timeout=_PAGE_SECONDS, cwd=Path(folder))
        except (MissingConverter, DamagedFile, ParserStopped) as error:
            self.unavailable = str(error)
            return asked
        known = set(listed.decode("utf-8", errors="replace").split())
        lacking = tuple(language for language in asked if language not in known)
        if lacking == asked:
            self.unavailable = f"Tesseract lacks the language {', '.join(lacking)}."
        return lacking

    def read(self, picture: Any, number: int) -> Scan | None:
        """Read a grey PIL picture as page `number`; None where nothing was found, or could be.

        Its lines are placed in pixels of the picture.
        """
        if not self.wanted or self._lacks_all:
            return None
        with tempfile.TemporaryDirectory(prefix="ocr-") as folder:
            try:
                return self._read(picture, number, Path(folder))
            except ParserStopped:
                self.left.append(number)
            except DamagedFile:
                # Tesseract gave up on this picture; the page counts as one without text.
                return None
        return None

    def _read(self, picture: Any, number: int, folder: Path) -> Scan | None:
        words = self._recognised(picture, folder)
        scan = _scan(words, number, picture)
        if scan is not None and scan.confidence >= POOR and not _upright(words):
            return scan
        try:
            turned = self._turned(picture, number, folder)
        except ParserStopped:
            if scan is None:
                raise
            return scan
        better = turned is not None and (scan is None or turned.confidence > scan.confidence or _upright(words))
        return turned if better else scan

    def _turned(self, picture: Any, number: int, folder: Path) -> Scan | None:
        """What is read after turning the picture as Tesseract says that it lies; None where it lies straight."""
        turn = self._orientation(picture, folder)
        if not turn:
            return None
        # PIL turns counter-clockwise.
        straight = picture.rotate(-turn, expand=True)
        scan = _scan(self._recognised(straight, folder), number, straight)
        return Scan(replace(scan.page, turned=turn), scan.confidence) if scan else None

    def _recognised(self, picture: Any, folder: Path) -> list[_Word]:
        return _words(self._tesseract(picture, folder, "--psm", "3", "tsv").decode("utf-8", errors="replace"))

    def _orientation(self, picture: Any, folder: Path) -> int:
        """How far the picture has to be turned clockwise to be read; 0 where Tesseract cannot tell."""
        try:
            found = self._tesseract(picture, folder, "--psm", "0", languages="osd").decode("utf-8", errors="replace")
        except DamagedFile:
            # Too few letters, or the data for orientation are not installed.
            return 0
        values = dict(line.split(": ", 1) for line in found.splitlines() if ": " in line)
        return int(values.get("Rotate", "0")) % 360

    def _tesseract(self, picture: Any, folder: Path, *arguments: str, languages: str = "") -> bytes:
        left = self._seconds
        if left <= 0:
            raise ParserStopped()
        picture.save(folder / "page.png", compress_level=1)
        asked = [word for word in self._options.ocr_languages.split("+") if word not in self.missing]
        command = ["tesseract", "page.png", "stdout", "-l", languages or "+".join(asked), "--dpi", str(DPI)]
        return programs.run([*command, *arguments], timeout=min(left, _PAGE_SECONDS), cwd=folder)


def blank(picture: Any) -> bool:
    """Whether a grey picture shows nothing that could be text: it is of one shade, but for some specks."""
    counts: list[int] = picture.histogram()
    shade = counts.index(max(counts))
    other = sum(count for value, count in enumerate(counts) if abs(value - shade) > _SHADES)
    return other < _LEAST_INK * sum(counts)


# --- Tesseract's table to segments ------------------------------------------------------------------------------------


def _scan(words: Sequence[_Word], number: int, picture: Any) -> Scan | None:
    lines = [list(line) for _, line in groupby(words, key=lambda word: word.line)]
    sure = [line for line in lines if _confidence(line) >= _LEAST]
    if not sure:
        return None
    segments = [segment for line in sure for segment in _segments(line, number)]
    page = Page(number, picture.width, picture.height, tuple(_evened(segments)))
    return Scan(page, round(_confidence([word for line in sure for word in line]), 3))


def _words(table: str) -> list[_Word]:
    found = []
    for row in table.splitlines():
        cells = row.split("\t")
        # Level 5 is a word; columns: level page block paragraph line word left top width height confidence text.
        if len(cells) != 12 or cells[0] != "5" or not cells[11].strip():
            continue
        left, top, width, height = map(float, cells[6:10])
        line = (int(cells[2]), int(cells[3]), int(cells[4]))
        sure = max(float(cells[10]), 0.0) / 100
        found.append(_Word(line, cells[11].strip(), sure, left, top, left + width, top + height))
    return found


def _upright(words: Sequence[_Word]) -> bool:
    """Whether the words stand on end: Tesseract reads some text that runs downwards, but loses its lines."""
    long = [word for word in words if len(word.text) > 3]
    return sum(word.bottom - word.top > 1.5 * (word.right - word.left) for word in long) * 2 > len(long)


def _confidence(words: Sequence[_Word]) -> float:
    """Mean confidence, long words counting more."""
    weights = [len(word.text) for word in words]
    return sum(word.confidence * weight for word, weight in zip(words, weights, strict=True)) / sum(weights)


def _segments(line: list[_Word], page: int) -> list[Segment]:
    size = _typical([word.size for word in line])
    parts: list[list[_Word]] = [[]]
    for word in line:
        rule = word.text in _RULES
        if parts[-1] and (rule or word.left - parts[-1][-1].right > _CELL * size):
            parts.append([])
        if not rule:
            parts[-1].append(word)
    return [_segment(part, page, size) for part in parts if part]


def _segment(words: list[_Word], page: int, size: float) -> Segment:
    text = words[0].text
    if text in _BULLETS and len(words) > 1 and words[1].left - words[0].right > _SPACE * size:
        text = "•"
    for before, word in pairwise(words):
        text += _between(before, word, size) + word.text
    return Segment(
        page=page,
        text=text,
        left=words[0].left,
        top=min(word.top for word in words),
        right=max(word.right for word in words),
        bottom=max(word.bottom for word in words),
        size=size,
    )


def _between(before: _Word, after: _Word, size: float) -> str:
    """Tesseract parts Chinese text anywhere: no blank belongs there, and beside Latin text only a wide one."""
    solid = sets_solid(before.text[-1]), sets_solid(after.text[0])
    if all(solid):
        return ""
    return "" if any(solid) and after.left - before.right < _SPACE * size else " "


def _evened(segments: list[Segment]) -> list[Segment]:
    """Measured sizes scatter: those near the page's usual one are set to it, so that lines join to paragraphs."""
    if not segments:
        return []
    usual = _typical([segment.size for segment in segments for _ in segment.text])
    return [replace(segment, size=usual) if 0.86 < segment.size / usual < 1.14 else segment for segment in segments]


def _typical(sizes: list[float]) -> float:
    return sorted(sizes)[len(sizes) // 2]
