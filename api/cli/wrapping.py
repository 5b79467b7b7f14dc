"""Lines of at most so many terminal cells, for Latin and Chinese text alike.

Chinese may break between any two characters, but closing punctuation never starts a line, opening punctuation never
ends one, and a citation mark stays with the word before it.
"""

import re
from collections.abc import Iterator

from rich.cells import cell_len, chop_cells

_HAN = "\u2e80-\u2fff\u3005-\u3007\u3021-\u3029\u3040-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_OPENING = "（《〈「『【〔“‘"
_CLOSING = "，。、；：！？）》〉」』】〕”’…—％"
_PIECE = re.compile(
    rf"\s+|[{_OPENING}]*(?:[{_HAN}]|[^\s{_HAN}{_OPENING}{_CLOSING}]+)[{_CLOSING}]*(?: ?\[\d+\][{_CLOSING}.,;:!?]*)*|."
)


def wrap(text: str, width: int) -> list[str]:
    """The lines of a text, none wider than `width` cells (a single longer word is cut); line feeds are kept."""
    return [line for paragraph in text.split("\n") for line in _lines(paragraph, width)]


def _lines(paragraph: str, width: int) -> Iterator[str]:
    line = ""
    for piece in _pieces(paragraph, width):
        if cell_len(line) + cell_len(piece.rstrip()) <= width:
            line += piece
            continue
        yield line.rstrip()
        line = piece.lstrip()
    yield line.rstrip()


def _pieces(paragraph: str, width: int) -> Iterator[str]:
    for match in _PIECE.finditer(paragraph):
        piece = match.group()
        yield from chop_cells(piece, width) if cell_len(piece) > width else [piece]
