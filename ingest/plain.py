"""Plain text: headings found from its layout, hard-wrapped lines joined to paragraphs."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.text import is_cjk

_LONGEST_HEADING = 80
_NUMBERED = re.compile(r"^(\d{1,2}(?:\.\d{1,2}){0,4})[.)、．]?\s*(?=[^\d\s.)%])")
_CHINESE = (
    (re.compile(r"^第[一二三四五六七八九十百零\d]+[编篇部章]"), 1),
    (re.compile(r"^第[一二三四五六七八九十百零\d]+节"), 2),
    (re.compile(r"^第[一二三四五六七八九十百零\d]+条"), 3),
    (re.compile(r"^[一二三四五六七八九十]{1,3}[、．.]"), 2),
    (re.compile(r"^[（(][一二三四五六七八九十]{1,3}[）)]"), 3),
)
_HASHES = re.compile(r"^(#{1,6})\s+(?=\S)")
_RULE = re.compile(r"^([=\-_~*])\1{3,}$")
_ITEM = re.compile(r"^(?:[-*•·●○▪◦–—]|\(?[0-9a-zA-Z]{1,2}[.)]|[（(]?\d{1,2}[）)、]|[①-⑳])\s*")
_ENDS = re.compile(r"[.。;；,，:：!！?？]$")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph on one line; `level` is above 0 for a heading."""

    text: str
    level: int = 0


def join_lines(before: str, after: str) -> str:
    """Two lines of one paragraph as one: no blank between Chinese characters."""
    if before and after and sets_solid(before[-1]) and sets_solid(after[0]):
        return before + after
    return f"{before} {after}"


def sets_solid(char: str) -> bool:
    """Whether a character stands in Chinese text, which has no blanks."""
    return is_cjk(char) or char in "，。；：！？、（）【】《》“”"


def paragraphs(text: str) -> list[Paragraph]:
    """Headings and paragraphs of a text in order. Never fails."""
    lines = [line.expandtabs().rstrip() for line in text.split("\n")]
    width = _wrap_width(lines)
    found: list[Paragraph] = []
    open_line = ""
    for index, line in enumerate(lines):
        stripped = line.strip()
        if not stripped or _RULE.match(stripped):
            open_line = ""
            continue
        level = heading_level(lines, index, width)
        if level:
            found.append(Paragraph(_HASHES.sub("", stripped), level))
            open_line = ""
        elif open_line and width and len(open_line) >= width and not _ITEM.match(stripped) and not found[-1].level:
            found[-1] = Paragraph(join_lines(found[-1].text, stripped))
            open_line = line
        else:
            found.append(Paragraph(stripped))
            open_line = line
    return found


def _wrap_width(lines: Sequence[str]) -> int:
    """The length from which a line counts as broken by its margin; 0 when lines are whole paragraphs."""
    lengths = sorted(len(line) for line in lines if line.strip())
    if not lengths:
        return 0
    usual = lengths[int(len(lengths) * 0.9)]
    return int(usual * 0.7) if 30 <= usual <= 160 else 0


def heading_level(lines: Sequence[str], index: int, width: int = 0) -> int:
    """Depth of the heading that a line is, 0 when it is none; `width` as `_wrap_width` gives it."""
    line = lines[index].strip()
    if hashes := _HASHES.match(line):
        return len(hashes[1])
    if len(line) > _LONGEST_HEADING or (sum(map(is_cjk, line)) > 30):
        return 0
    below = lines[index + 1].strip() if index + 1 < len(lines) else ""
    if _RULE.match(below) and below[0] in "=-" and len(line) > 2 and not _ENDS.search(line):
        return 1 if below[0] == "=" else 2
    broken_off = bool(width) and len(lines[index].rstrip()) >= width and bool(below)
    if _ENDS.search(line) or broken_off or below[:1].islower():
        return 0
    return chinese_level(line) or _layout_level(lines, index, line)


def chinese_level(line: str) -> int:
    """Depth that a Chinese heading number (第一章, 一、, （一）) gives a short line, 0 without one."""
    if len(line) > 40:
        return 0
    return next((level for pattern, level in _CHINESE if pattern.match(line)), 0)


def _layout_level(lines: Sequence[str], index: int, line: str) -> int:
    above, below = _neighbour(lines, index, -1), _neighbour(lines, index, 1)
    numbered = _NUMBERED.match(line)
    if numbered:
        # Numbered lines one after the other are a list; each over text of its own, headings.
        alone = not _NUMBERED.match(above) and not _NUMBERED.match(below)
        return 2 + numbered[1].count(".") if alone and below and not lines[index].startswith("  ") else 0
    first = not any(lines[earlier].strip() for earlier in range(index))
    if first and len(line) > 3 and below:
        return 1
    stands_alone = index > 0 and not lines[index - 1].strip()
    return 2 if stands_alone and below and _all_capitals(line) else 0


def _neighbour(lines: Sequence[str], index: int, step: int) -> str:
    at = index + step
    return lines[at].strip() if 0 <= at < len(lines) and lines[at].strip() else _beyond_blank(lines, at, step)


def _beyond_blank(lines: Sequence[str], at: int, step: int) -> str:
    for _ in range(2):
        at += step
        if 0 <= at < len(lines) and lines[at].strip():
            return lines[at].strip()
    return ""


def _all_capitals(line: str) -> bool:
    letters = [char for char in line if char.isalpha()]
    return len(letters) > 3 and all(char.isupper() for char in letters)


def as_lines(found: Sequence[Paragraph]) -> Iterator[str]:
    """The paragraphs' texts, one a line."""
    return (paragraph.text for paragraph in found)
