"""Columns of text that a program wrote line by line across the page, put one after the other."""

from collections.abc import Sequence
from itertools import pairwise

from core.text import is_cjk
from ingest.segments import Segment, same_row

# Columns of text have at least so many lines side by side, most of them at least so long (Chinese letters twice).
_LEAST_LINES, _COLUMN_LENGTH = 4, 20


def in_columns(segments: Sequence[Segment]) -> list[Segment]:
    """Columns one after the other where a program wrote them line by line across; anything else stays in its order."""
    rows = _written_rows(segments)
    ordered: list[Segment] = []
    at = 0
    while at < len(rows):
        end, gutter = _side_by_side(rows, at)
        inside = [segment for row in rows[at:end] for segment in row]
        if _is_prose(rows[at:end]):
            ordered += [segment for segment in inside if segment.left < gutter]
            ordered += in_columns([segment for segment in inside if segment.left >= gutter])
        else:
            ordered += inside
        at = end
    return ordered


def _written_rows(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Segments that follow each other from left to right in one line."""
    rows: list[list[Segment]] = []
    for segment in segments:
        last = rows[-1][-1] if rows else None
        if last is not None and same_row(last, segment) and segment.left > last.right:
            rows[-1].append(segment)
        else:
            rows.append([segment])
    return rows


def _side_by_side(rows: Sequence[Sequence[Segment]], at: int) -> tuple[int, float]:
    """Up to which row lines stand left and right of one gap, and where the right ones begin."""
    if len(rows[at]) < 2:
        return at + 1, 0.0
    left, right = rows[at][0].right, rows[at][1].left
    for end in range(at + 1, len(rows)):
        row, above = rows[end], rows[end - 1][0]
        middle, start = left, right
        if len(row) > 1:
            middle, start = row[0].right, row[1].left
        elif row[0].left > left:
            start = row[0].left
        else:
            middle = row[0].right
        near = -0.5 < (row[0].top - above.top) / max(above.size, 1) < 3
        if max(left, middle) >= min(right, start) or not near:
            return end, right
        left, right = max(left, middle), min(right, start)
    return len(rows), right


def _is_prose(rows: Sequence[Sequence[Segment]]) -> bool:
    """Whether lines side by side are two columns of text rather than the cells of a table.

    Columns of text fill nearly all lines on both sides; cells are shorter, leave lines empty, and begin together.
    """
    pairs = [row for row in rows if len(row) > 1]
    if len(pairs) < _LEAST_LINES or len(pairs) * 4 < len(rows) * 3:
        return False
    for side in (0, 1):
        lengths = sorted(sum(1 + is_cjk(char) for char in pair[side].text) for pair in pairs)
        if lengths[len(lengths) // 2] < _COLUMN_LENGTH:
            return False
    steps = [(below[0].top - above[0].top) / max(above[0].size, 1) for above, below in pairwise(pairs)]
    usual = sorted(steps)[len(steps) // 2]
    return sum(step > 1.3 * usual for step in steps) * 4 < len(steps)
