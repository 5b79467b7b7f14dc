"""From segments of lines on pages to headings, paragraphs, list items and tables. Pure geometry, no PDF library."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from core.records import Box, Element
from core.text import is_cjk
from ingest import plain, tables
from ingest.columns import in_columns
from ingest.running_lines import without_running_lines
from ingest.segments import Page, Segment, same_row

_ITEM = re.compile(r"^(?:[•·●○▪◦‣⁃▪*–—-]|\(?\d{1,2}[.)]|\(?[a-z][.)]|[（(]\d{1,2}[）)]|[①-⑳])\s*(?=\S|$)", re.I)
_MARK_ONLY = re.compile(
    r"^(?:[•·●○▪◦‣⁃*–—-]|[（(]\d{1,2}[）)]|\(?\d{1,2}(?:\.\d{1,2}){0,3}[.)]?|\(?[a-zA-Z][.)]|[①-⑳])$"
)
_ENDS = re.compile(r"[.!?:。！？：；;][\"'”’)）」]*$")
_LONGEST_HEADING = 120
# Chapter numbers with a dot inside (1.1, 2.3.1) head a section even where the font does not say so.
_DECIMAL = re.compile(r"^(\d{1,2}(?:\.\d{1,2}){1,3})\.?\s+(?=[^\d\s])")
# In font sizes: segments nearer than this are one text, with a blank between from the second on.
_NEAR, _BLANK = 1.6, 0.12
# Texts that begin at a column's left edge are cells already from this distance on.
BESIDE = 0.45
# Points within which columns of a table's parts on two pages begin.
_SAME_EDGE = 3.0
# Heading sizes stand out by this much from the body's.
_LARGER = 1.13


@dataclass(frozen=True, slots=True)
class _Table:
    """Cells by row and column, the left edges of the columns, and the names of the columns where there are any."""

    edges: tuple[float, ...]
    rows: tuple[tuple[str, ...], ...]
    names: tuple[str, ...] | None

    @property
    def text(self) -> str:
        if self.names is None:
            return tables.table_text(self.rows)
        rows = self.rows if self.rows[0] == self.names else (self.names, *self.rows)
        return tables.table_text(rows, header_rows=1)

    def goes_on(self, below: "_Table") -> bool:
        """Whether the table at the top of the next page has the same columns."""
        same = zip(self.edges, below.edges, strict=False)
        return len(self.edges) == len(below.edges) and all(abs(one - other) < _SAME_EDGE for one, other in same)


@dataclass(slots=True)
class _Block:
    """Lines of one paragraph or cell."""

    lines: list[Segment]
    table: _Table | None = None

    @property
    def first(self) -> Segment:
        return self.lines[0]

    @property
    def last(self) -> Segment:
        return self.lines[-1]

    @property
    def text(self) -> str:
        text = self.first.text
        for before, line in pairwise(self.lines):
            text = _joined_lines(text, line.text, before.hyphenated)
        return text


def _joined_lines(text: str, line: str, hyphenated: bool) -> str:
    """Two lines as one. A hyphen between small letters broke a word; any other was there before (CO-04)."""
    if hyphenated:
        return text + line if text[-1].islower() and line[0].islower() else f"{text}-{line}"
    return text + line if text.endswith("-") and len(text) > 1 else plain.join_lines(text, line)


def elements_of(pages: Sequence[Page]) -> list[Element]:
    """The document's elements in reading order, with pages and boxes as fractions."""
    kept = without_running_lines(pages)
    shapes = {page.number: page for page in kept}
    blocks = _with_names([block for page in kept for block in _blocks(page)])
    style = _Style.of(blocks)
    elements: list[Element] = []
    previous: _Block | None = None
    for block in blocks:
        level = 0 if block.table else style.level(block)
        if previous is not None and not level and _continues(previous, block):
            elements[-1] = _joined(elements[-1], block, shapes)
        else:
            elements.append(_element(block, level, shapes))
        previous = None if level or block.table else block
    return _merged_headings(elements)


def _element(block: _Block, level: int, shapes: Mapping[int, Page]) -> Element:
    boxes = _boxes(block, shapes)
    page = block.first.page
    if block.table:
        return Element("table", block.table.text, page=page, boxes=boxes)
    if level:
        return Element("title", block.text, level=level, page=page, boxes=boxes)
    return Element("list" if _ITEM.match(block.text) else "text", block.text, page=page, boxes=boxes)


def _boxes(block: _Block, shapes: Mapping[int, Page]) -> tuple[Box, ...]:
    boxes = []
    for line in block.lines:
        page = shapes[line.page]
        edges = (line.left / page.width, line.top / page.height, line.right / page.width, line.bottom / page.height)
        left, top, right, bottom = (round(min(max(edge, 0.0), 1.0), 4) for edge in edges)
        boxes.append(_turned_back(Box(line.page, left, top, right, bottom), page.turned))
    return tuple(boxes)


def _turned_back(box: Box, turned: int) -> Box:
    """Where a box lies on the page as shown."""
    left, top, right, bottom = box.left, box.top, box.right, box.bottom
    edges = {
        90: (top, 1 - right, bottom, 1 - left),
        180: (1 - right, 1 - bottom, 1 - left, 1 - top),
        270: (1 - bottom, left, 1 - top, right),
    }.get(turned, (left, top, right, bottom))
    return Box(box.page, *(round(edge, 4) for edge in edges))


def _continues(before: _Block, after: _Block) -> bool:
    """Whether a paragraph goes on at the top of the next page or column."""
    last, first = before.last, after.first
    next_column = last.page == first.page and first.bottom < last.top and first.left > last.left + 4 * last.size
    if before.table or after.table or _ITEM.match(after.text) or not (last.page + 1 == first.page or next_column):
        return False
    if abs(before.last.size - after.first.size) > 0.1 * before.last.size or _ENDS.search(before.text):
        return False
    return after.text[0].islower() or (is_cjk(after.text[0]) and is_cjk(before.text[-1]))


def _joined(element: Element, block: _Block, shapes: Mapping[int, Page]) -> Element:
    text = plain.join_lines(element.text, block.text)
    return replace(element, text=text, boxes=element.boxes + _boxes(block, shapes))


def _merged_headings(elements: list[Element]) -> list[Element]:
    """A heading set in two lines is one heading."""
    merged: list[Element] = []
    for element in elements:
        last = merged[-1] if merged else None
        if last and _same_heading(last, element):
            merged[-1] = replace(last, text=plain.join_lines(last.text, element.text), boxes=last.boxes + element.boxes)
        else:
            merged.append(element)
    return merged


def _same_heading(above: Element, below: Element) -> bool:
    if not (above.kind == below.kind == "title" and above.level == below.level and above.page == below.page):
        return False
    if _numbered(below.text) or not above.boxes or not below.boxes:
        return False
    height = above.boxes[-1].bottom - above.boxes[-1].top
    return 0 <= below.boxes[0].top - above.boxes[-1].top < 1.7 * height


def _numbered(text: str) -> bool:
    return bool(re.match(r"^(?:\d+[.)\s]|第.{1,5}[章节条]|[一二三四五六七八九十]+、|[（(])", text))


# --- lines to blocks --------------------------------------------------------------------------------------------------


def _blocks(page: Page) -> list[_Block]:
    lines = _with_marks(_touching(in_columns(page.segments)))
    pitch = _usual_pitch(lines)
    blocks: list[_Block] = []
    for line in lines:
        if blocks and _same_paragraph(blocks[-1], line, pitch, lines):
            blocks[-1].lines.append(line)
        else:
            blocks.append(_Block([line]))
    return _with_tables(blocks)


def _touching(segments: Sequence[Segment]) -> list[Segment]:
    """Segments that follow each other closely in one row are one: some programs place each letter by itself."""
    joined: list[Segment] = []
    for segment in segments:
        last = joined[-1] if joined else None
        gap = (segment.left - last.right) / max(last.size, 1) if last else 0.0
        apart = segment.column and gap > BESIDE
        if last is None or apart or not (-0.3 < gap < _NEAR and same_row(last, segment)):
            joined.append(segment)
            continue
        blank = " " if gap > _BLANK else ""
        joined[-1] = replace(
            last,
            text=last.text + blank + segment.text,
            top=min(last.top, segment.top),
            right=segment.right,
            bottom=max(last.bottom, segment.bottom),
            bold=last.bold and segment.bold,
            hyphenated=segment.hyphenated,
        )
    return joined


def _with_marks(segments: Sequence[Segment]) -> list[Segment]:
    """Bullets and numbers drawn apart are put before the text that they belong to."""
    lines: list[Segment] = []
    mark: Segment | None = None
    for segment in segments:
        if mark is not None and same_row(mark, segment) and _marks(mark, segment):
            lines.append(replace(segment, text=f"{mark.text} {segment.text}"))
            mark = None
            continue
        if mark is not None:
            lines.append(mark)
        mark = segment if _MARK_ONLY.match(segment.text) else None
        if mark is None:
            lines.append(segment)
    return [*lines, mark] if mark is not None else lines


def _marks(mark: Segment, segment: Segment) -> bool:
    """Whether a mark stands where one stands before a text. A bare number farther off is a cell."""
    far = 3.0 if mark.text.isdigit() else 6.0
    return segment.left - mark.left > 0 and segment.left - mark.right < far * segment.size


def _usual_pitch(lines: Sequence[Segment]) -> float:
    """The commonest distance of a line to the next, in font sizes."""
    steps = Counter(
        round((below.top - above.top) / max(above.size, 1), 1)
        for above, below in pairwise(lines)
        if 0.8 < (below.top - above.top) / max(above.size, 1) < 2.5 and abs(above.size - below.size) < 0.1 * above.size
    )
    return max(steps, key=lambda step: (steps[step], -step)) if steps else 1.3


def _same_paragraph(block: _Block, line: Segment, pitch: float, lines: Sequence[Segment]) -> bool:
    last = block.last
    step = (line.top - last.top) / max(last.size, 1)
    if not 0.5 < step < pitch * 1.25 + 0.05 or abs(line.size - last.size) > 0.12 * last.size:
        return False
    if line.bold != last.bold and (len(block.lines) == 1 or line.bold) and not _ends_open(last.text):
        return False
    begins = _ITEM.match(line.text) or _DECIMAL.match(line.text) or plain.chinese_level(line.text)
    if begins and not last.hyphenated:
        return False
    if not _keeps_margin(block, line):
        return False
    margin = max(s.right for s in lines if s.left < last.right and s.right > last.left)
    return not (_ENDS.search(last.text) and last.right < margin - 2 * last.size)


def _keeps_margin(block: _Block, line: Segment) -> bool:
    """Whether a line begins where a paragraph goes on: only its first line may be indented, or hang out."""
    outdent = block.last.left - line.left
    if abs(outdent) <= 0.8 * block.last.size:
        return True
    if len(block.lines) > 1:
        return False
    return 0 < outdent < 5 * line.size or (0 < -outdent < 4 * line.size and bool(_ITEM.match(block.first.text)))


def _ends_open(text: str) -> bool:
    return text.endswith((",", "，", "、", "-", " and", " or", " of", " the"))


# --- tables -----------------------------------------------------------------------------------------------------------


def _with_tables(blocks: list[_Block]) -> list[_Block]:
    """Runs of rows whose cells stand under one another become tables."""
    rows = _rows(blocks)
    result: list[_Block] = []
    at = 0
    while at < len(rows):
        end = at
        while end < len(rows) and len(rows[end]) > 1 and (end == at or _aligned(rows[end - 1], rows[end])):
            end += 1
        if end - at > 1:
            result.append(_table(rows[at:end]))
            at = end
            continue
        result += rows[at]
        at += 1
    return result


def _rows(blocks: list[_Block]) -> list[list[_Block]]:
    rows: list[list[_Block]] = []
    for block in blocks:
        if rows and _beside(rows[-1], block):
            rows[-1].append(block)
        else:
            rows.append([block])
    return rows


def _beside(row: list[_Block], block: _Block) -> bool:
    last = row[-1]
    top, bottom = min(b.first.top for b in row), max(b.last.bottom for b in row)
    overlap = min(bottom, block.last.bottom) - max(top, block.first.top)
    least = min(bottom - top, block.last.bottom - block.first.top)
    return overlap > 0.5 * least and block.first.left >= max(line.right for line in last.lines) - 1


def _aligned(above: list[_Block], below: list[_Block]) -> bool:
    """Whether two rows share their columns: most cells of the shorter one begin, or end, under one of the other."""
    if below[0].first.top < above[0].first.top:
        return False
    short, long = sorted((above, below), key=len)
    return sum(any(_under(a, b) for b in long) for a in short) * 3 >= len(short) * 2


def _under(one: _Block, other: _Block) -> bool:
    left, right = min(s.left for s in one.lines), max(s.right for s in one.lines)
    other_left, other_right = min(s.left for s in other.lines), max(s.right for s in other.lines)
    centre = abs((left + right) - (other_left + other_right)) / 2
    return min(abs(left - other_left), abs(right - other_right), centre) < one.first.size


def _table(rows: list[list[_Block]]) -> _Block:
    columns = _columns(rows)
    grid = []
    for row in rows:
        cells = [""] * len(columns)
        for block in row:
            column = min(range(len(columns)), key=lambda i: abs(columns[i] - min(s.left for s in block.lines)))
            cells[column] = f"{cells[column]} {block.text}".strip()
        grid.append(cells)
    lines = [line for row in rows for block in row for line in block.lines]
    bold_head = all(block.first.bold for block in rows[0]) and not all(b.first.bold for b in rows[1])
    names = tuple(grid[0]) if bold_head or tables.names_columns(grid) else None
    return _Block(lines, _Table(tuple(columns), tuple(map(tuple, grid)), names))


def _with_names(blocks: list[_Block]) -> list[_Block]:
    """Blocks where a table that goes on over the page has the names that stand above its first part."""
    named: list[_Block] = []
    for block in blocks:
        above = named[-1] if named else None
        if (
            above
            and above.table
            and block.table
            and above.table.names
            and above.last.page + 1 == block.first.page
            and above.table.goes_on(block.table)
        ):
            block = replace(block, table=replace(block.table, names=above.table.names))
        named.append(block)
    return named


def _columns(rows: list[list[_Block]]) -> list[float]:
    """Left edges of the columns: those of the row with most cells."""
    fullest = max(rows, key=len)
    return [min(line.left for line in block.lines) for block in fullest]


# --- headings ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Style:
    """The body's size, the larger sizes from largest to smallest, and whether bold says anything."""

    body: float
    larger: tuple[float, ...]
    bold_tells: bool

    @classmethod
    def of(cls, blocks: Iterable[_Block]) -> "_Style":
        sizes: Counter[float] = Counter()
        bold = 0
        for block in blocks:
            for line in block.lines:
                sizes[round(line.size * 2) / 2] += len(line.text)
                bold += len(line.text) * line.bold
        total = sum(sizes.values())
        body = sizes.most_common(1)[0][0] if sizes else 10.0
        larger = sorted((size for size in sizes if size > body * _LARGER), reverse=True)
        return cls(body, tuple(_apart(larger)), bold * 3 < total)

    def level(self, block: _Block) -> int:
        """Depth as a heading, 0 for text."""
        text = block.text
        if len(text) > _LONGEST_HEADING or len(block.lines) > 3 or not any(char.isalpha() for char in text):
            return 0
        size = block.first.size
        if size > self.body * _LARGER and not text.endswith((".", "。", ",", "，")):
            return 1 + next((i for i, known in enumerate(self.larger) if size > known * 0.95), len(self.larger))
        prose = bool(_ENDS.search(text)) or _MARK_ONLY.match(text)
        if self.bold_tells and len(block.lines) < 3 and all(line.bold for line in block.lines) and not prose:
            return len(self.larger) + 1
        level = _number_level(text) if len(block.lines) == 1 and not prose else 0
        return len(self.larger) + level if level else 0


def _number_level(text: str) -> int:
    decimal = _DECIMAL.match(text)
    return 1 + decimal[1].count(".") if decimal else plain.chinese_level(text)


def _apart(sizes: Sequence[float]) -> list[float]:
    """Sizes that differ visibly; nearly equal ones count as one."""
    apart: list[float] = []
    for size in sizes:
        if not apart or size < apart[-1] * 0.95:
            apart.append(size)
    return apart
