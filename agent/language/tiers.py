"""Tier lists: which row of a table a quantity in the question falls into.

Small models read them wrongly ("5 to 9 years 25 days, 10 years and more 28 days"), so code does: a row whose range does
not hold the asker's quantity cannot answer.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agent.language.amounts import Quantity, located, quantities
from core.text import fold

_UNDER: Final = "less than|fewer than|under|below|不满|不足|未满"
_BETWEEN: Final = re.compile(
    rf"\s*(?:[a-z]+\s+)?(?:to|up to|and|until|-|–|—|~|至|到)\s*(?P<under>{_UNDER})?\s*"
    rf"|\s*(?:以上)?[,，、]?\s*(?P<under_zh>{_UNDER})\s*"
)
_BEFORE_UPPER: Final = re.compile(rf"(?:(?P<under>{_UNDER})|up to|at most|no more than|不超过|最多)\s*$")
_AFTER_UPPER: Final = re.compile(r"\s*(?:or less|or under|以下|以内)")
_BEFORE_LOWER: Final = re.compile(r"(?:more than|over|above|at least|from|exceeding|超过|满|达到)\s*$")
_AFTER_LOWER: Final = re.compile(r"[^|.。;；]{0,24}?(?:(?:and|or) (?:more|above|over|longer)|及以上|以上|\+)")


@dataclass(frozen=True, slots=True)
class Tier:
    """A range of one unit. The lower end belongs to it; the upper end does unless `open_end`."""

    low: float
    high: float
    open_end: bool

    def holds(self, value: float) -> bool:
        return self.low <= value < self.high or (value == self.high and not self.open_end)


def tier(row: str, unit: str) -> Tier | None:
    """The first range of a unit that a row states, None where it states none."""
    text = fold(row)
    found = located(text)
    for i, (quantity, start, end) in enumerate(found):
        following = found[i + 1] if i + 1 < len(found) else None
        if following is not None and following[0].unit == unit and quantity.unit in (unit, ""):
            link = _BETWEEN.fullmatch(text[end : following[1]])
            if link is not None:
                open_end = (link["under"] or link["under_zh"]) is not None
                return Tier(float(quantity.value), float(following[0].value), open_end)
        if quantity.unit == unit:
            return _one_ended(float(quantity.value), text[:start], text[end:])
    return None


def _one_ended(value: float, before: str, after: str) -> Tier | None:
    upper = _BEFORE_UPPER.search(before)
    if upper is not None or _AFTER_UPPER.match(after):
        return Tier(-math.inf, value, upper is not None and upper["under"] is not None)
    if _BEFORE_LOWER.search(before) or _AFTER_LOWER.match(after):
        return Tier(value, math.inf, open_end=True)
    return None


def asked(question: str) -> list[Quantity]:
    """The quantities of a question that may choose a tier: those with a unit."""
    return [quantity for quantity in quantities(question) if quantity.unit]


def fitting(rows: Sequence[str], question: str) -> list[str] | None:
    """The rows whose range holds a quantity of the question, each of them where it compares several; None where the
    rows state no ranges of its unit."""
    quantities_asked = asked(question)
    for unit in dict.fromkeys(quantity.unit for quantity in quantities_asked):
        ranged = [(row, found) for row in rows if (found := tier(row, unit)) is not None]
        if len(ranged) >= 2:
            values = [float(quantity.value) for quantity in quantities_asked if quantity.unit == unit]
            return [row for row, found in ranged if any(map(found.holds, values))]
    return None


def contradicts(sentence: str, rows: Sequence[str], question: str) -> bool:
    """Whether a sentence takes its number from rows whose range excludes the asker's quantity."""
    kept = fitting(rows, question)
    if kept is None:
        return False
    said = {quantity.value for quantity in quantities(sentence) - quantities(question)}
    return any(said & {quantity.value for quantity in quantities(row)} for row in rows if row not in kept) and not any(
        said & {quantity.value for quantity in quantities(row)} for row in kept
    )
