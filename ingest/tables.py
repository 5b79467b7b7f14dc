"""Tables as lines that can each be read alone.

Small models read a grid wrongly: they lose the column. So a row of a table with a header becomes
`City: Berlin | Grade: A | Cap: 180 EUR`, whole in itself wherever the table is cut.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile

CELL = " | "
_VALUE = re.compile(r"\d")
_LONGEST_HEADING = 60


def table_text(rows: Iterable[Sequence[str]], *, header_rows: int | None = None, named: bool = False) -> str:
    """One line per data row; empty for a table without text.

    Args:
        rows: cells from top to bottom; rows may differ in length.
        header_rows: how many leading rows name the columns, when the source says so; None: judge by the cells.
        named: the format's custom is a first row of names (CSV), so less evidence is asked for.
    """
    grid = [[" ".join(cell.split()) for cell in row] for row in rows]
    grid = _without_empty_columns([row for row in grid if any(row)])
    if not grid:
        return ""
    captions: list[str] = []
    while header_rows is None and len(grid) > 1 and len(grid[0]) > 1 and len(set(filter(None, grid[0]))) == 1:
        # A first row of one text (alone, or repeated by a merged cell) is a caption above the names.
        captions += filter(None, dict.fromkeys(grid.pop(0)))
    if header_rows is None:
        header_rows = int(_names_columns(grid, named))
    if header_rows >= len(grid):
        header_rows = 0
    names = _column_names(grid[:header_rows])
    return "\n".join([*captions, *(line for row in grid[header_rows:] if (line := _line(row, names)))])


def names_columns(rows: Iterable[Sequence[str]]) -> bool:
    """Whether the first row looks like the names of the columns."""
    grid = _without_empty_columns([[" ".join(cell.split()) for cell in row] for row in rows])
    return bool(grid) and _names_columns(grid, named=False)


def _without_empty_columns(grid: list[list[str]]) -> list[list[str]]:
    width = max((len(row) for row in grid), default=0)
    full = [row + [""] * (width - len(row)) for row in grid]
    used = [column for column in range(width) if any(row[column] for row in full)]
    return [[row[column] for column in used] for row in full]


def _names_columns(grid: list[list[str]], named: bool) -> bool:
    """Whether the first row looks like names: words, all different, over at least one row of values."""
    first, rest = grid[0], grid[1:]
    if len(first) < 2 or not rest:
        return False
    words = [cell for cell in first if cell]
    if len(words) < len(first) - 1 or len(set(words)) < len(words):
        return False
    if any(len(word) > _LONGEST_HEADING or _looks_like_value(word) for word in words):
        return False
    if named or len(first) > 2:
        return True
    # Two columns may as well be names and values side by side: ask for values under a name that is none.
    return sum(bool(_VALUE.search(row[1])) for row in rest) * 2 > len(rest) and not first[0].endswith((":", "："))


def _looks_like_value(cell: str) -> bool:
    digits = sum(char.isdigit() for char in cell)
    return digits * 3 > len(cell)


def _column_names(header: list[list[str]]) -> list[str]:
    if not header:
        return []
    names = []
    for column in range(len(header[0])):
        parts = list(dict.fromkeys(row[column] for row in header if row[column]))
        names.append(" / ".join(parts).rstrip(":： "))
    return names


def _line(row: list[str], names: list[str]) -> str:
    # A merged cell repeats its text in every column it covers: a row of one text is a caption, not a record.
    if len(row) > 1 and len(set(row)) == 1:
        return row[0]
    if not names:
        return CELL.join(cell for cell in row if cell)
    cells = [f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=True) if cell]
    return CELL.join(cells)


def leading_header_rows(kinds: Iterable[Sequence[str]]) -> int | None:
    """How many leading rows hold only header cells (`th`); None when the table has no such row."""
    found = sum(1 for _ in takewhile(lambda row: bool(row) and set(row) == {"th"}, kinds))
    return found or None
