"""Headers, footers and page numbers: lines that run through a document rather than belong to its text."""

import re
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace

from ingest.segments import Page, Segment, same_row

# Share of the page's height at top and bottom where running headers and footers live.
_MARGIN = 0.12
_PAGE_NUMBER = re.compile(
    r"(?:page|seite|p\.)?\s*[-–—|]?\s*\d{1,4}\s*[-–—|]?(?:\s*(?:/|of|von)\s*\d{1,4})?"
    r"|(?:page|[-–—])?\s*[ivxl]{1,7}\s*[-–—]?|\d{1,4}\s*\|\s*page"
    r"|第?\s*\d{1,4}\s*页.{0,12}|(?:共\s*\d{1,4}\s*页\W*)?第\s*\d{1,4}\s*页"
    r"|.{0,80}\s(?:[-–—|·]|page)\s*\d{1,3}\s*(?:/|of|von)\s*\d{1,3}",
    re.I,
)
# Lines of a table of contents: dots leading to a page number.
_LEADER = re.compile(r"(?:\.{4,}|…{2,}|·{4,}|(?:\. ){4,})\s*\d*$")


def without_running_lines(pages: Sequence[Page]) -> list[Page]:
    """Pages without page numbers and without lines repeated at one place of at least half of the pages."""
    places: Counter[tuple[str, int] | None] = Counter()
    for page in pages:
        places.update({_place(page, segment) for segment in page.segments})
    with_text = sum(bool(page.segments) for page in pages)
    running = {place for place, count in places.items() if place and count >= max(2, (with_text + 1) // 2)}
    kept = []
    for page in pages:
        leaders = [segment for segment in page.segments if _LEADER.search(segment.text)]
        segments = tuple(
            segment
            for segment in page.segments
            if not _runs(page, segment, running) and not any(same_row(segment, dots) for dots in leaders)
        )
        kept.append(replace(page, segments=segments))
    return kept


def _place(page: Page, segment: Segment) -> tuple[str, int] | None:
    """What a line in the margin says, any figures in it alike, and where it stands."""
    middle = (segment.top + segment.bottom) / 2 / page.height
    if _MARGIN < middle < 1 - _MARGIN:
        return None
    return re.sub(r"\d+", "#", segment.text), round(middle * 50)


def _runs(page: Page, segment: Segment, running: Set[tuple[str, int] | None]) -> bool:
    place = _place(page, segment)
    if place is None:
        return False
    if place in running:
        return not _heads_table(page, segment)
    if not _PAGE_NUMBER.fullmatch(segment.text):
        return False
    # A number beside other texts is a cell, unless they run themselves.
    row = [other for other in page.segments if other is not segment and same_row(segment, other)]
    return all(_place(page, other) in running for other in row)


def _heads_table(page: Page, segment: Segment) -> bool:
    """Whether a line is a cell of a table's head that is repeated on each page: cells follow right under its row."""
    row = [other for other in page.segments if same_row(segment, other)]
    near = [other for other in page.segments if 0 < other.top - segment.bottom < 2 * segment.size]
    return len(row) > 2 and all(any(abs(other.left - cell.left) < cell.size for other in near) for cell in row)
