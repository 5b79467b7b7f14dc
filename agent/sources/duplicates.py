"""Keeping one passage, repeated, from crowding all others out of a result."""

import unicodedata
from collections.abc import Iterable
from typing import Final
from uuid import UUID

import numpy as np

from core.records import Hit

# Two texts that share this much of their pairs of characters (Jaccard) say the same. Rows of one table that differ in
# what they say come to .8; from .6 on no question of docs/benchmarks.md lost its document.
ALIKE: Final = 0.85
# Such texts that stay in a result: of one document, and of all together.
PER_DOCUMENT: Final = 1
IN_ALL: Final = 3
# Pairs are told apart by a number below this; a passage has a few hundred of them.
_NUMBERS: Final = 4096


def capped(hits: Iterable[Hit]) -> list[Hit]:
    """Hits in their order, without those whose like is there often enough already."""
    kept: list[Hit] = []
    seen: list[tuple[UUID, int]] = []
    for hit in hits:
        pairs = _pairs(hit.text)
        alike = [document for document, other in seen if _same(pairs, other)]
        if len(alike) < IN_ALL and alike.count(hit.document_id) < PER_DOCUMENT:
            kept.append(hit)
            seen.append((hit.document_id, pairs))
    return kept


def _pairs(text: str) -> int:
    """A set, as bits, of a text's pairs of letters and digits, whatever their case and width."""
    letters = "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))
    codes = np.frombuffer(letters.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)
    bits = np.zeros(_NUMBERS, np.uint8)
    bits[(codes[:-1] * 2053 + codes[1:]) % _NUMBERS] = 1
    return int.from_bytes(np.packbits(bits).tobytes())


def _same(one: int, other: int) -> bool:
    return (one & other).bit_count() >= ALIKE * (one | other).bit_count()
