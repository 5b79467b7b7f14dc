"""Whether what a sentence joins stands together in its passage too: a number and its subject, a row and its values."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from agent.language.amounts import Date, Quantity, facts, is_unit, without_facts
from agent.language.text import sentences, terms

# What stands between two cells of a row in a table's chunk.
CELL: Final = " | "
_CLAUSE: Final = re.compile(
    r"(?:,(?!\d)|[;，；、])\s*|(?<=[a-z0-9])\s+(?:and|while|but|or)\s+(?!(?:more|less|above|over|under|longer|fewer)\b)"
    r"|(?<=[\u4e00-\u9fff])而(?!且)"
)
# Other content words from which a piece is about something else, not merely short.
_SPEAKS: Final = 2

# Most content words of a cell that holds a value.
_VALUE: Final = 3
# Texts whose content is remembered: a passage's pieces are held against many sentences.
_KEPT: Final = 4096

Fact = Quantity | Date


@lru_cache(maxsize=_KEPT)
def content(text: str) -> frozenset[str]:
    """Content words that are neither amounts nor units."""
    return frozenset(term for term in terms(without_facts(text)) if not is_unit(term))


def clauses(text: str) -> list[str]:
    """The sentences of a text, each cut at commas and conjunctions."""
    return [clause for sentence in sentences(text) for clause in _CLAUSE.split(sentence) if clause.strip()]


def holds(fact: Fact, stated: frozenset[Fact]) -> bool:
    """Whether a fact is among those stated; a number without a unit, as in a table's cell, may have any."""
    if isinstance(fact, Date):
        return any(isinstance(other, Date) and fact.within(other) for other in stated)
    return any(
        isinstance(other, Quantity) and other.value == fact.value and (fact.unit == other.unit or not other.unit)
        for other in stated
    )


# --- rows of a table ------------------------------------------------------------------------------------------------


def row_differs(sentence: str, rows: Sequence[str]) -> bool:
    """Whether a sentence joins what stands in different rows of a table, or in the wrong column of its row.

    What a row is about stands in its first cell.
    """
    if len(rows) < 2:
        return False
    if not _in_no_row(sentence, rows):
        return False
    parts = clauses(sentence)
    keys = [content(row.partition(CELL)[0]) for row in rows]
    telling = frozenset[str]().union(*keys) - frozenset.intersection(*keys)
    # Several rows may be told in one sentence, where each part says of which it speaks.
    apart = len(parts) > 1 and all(content(part) & telling or len(facts(part)) > 1 for part in parts)
    return not apart or any(_in_no_row(part, rows) for part in parts)


def _in_no_row(part: str, rows: Sequence[str]) -> bool:
    words = content(part)
    stated = {row: facts(row) for row in rows}
    numbers = [fact for fact in facts(part) if any(holds(fact, known) for known in stated.values())]
    about = _about(words, rows)
    if numbers:
        holding = [row for row in about if all(holds(fact, stated[row]) for fact in numbers)]
        return all(_column_differs(part, row) for row in holding)
    if len(about) == len(rows):
        return False
    held = frozenset[str]().union(*map(content, about))
    others = [cell for row in rows if row not in about for cell in row.split(CELL)]
    # A short cell is a value; what is said in many words may be said of anything.
    return any(len(value := content(_value(cell))) <= _VALUE and value and value <= words - held for cell in others)


def _about(words: frozenset[str], rows: Sequence[str]) -> list[str]:
    """The rows whose first cell holds most of the words: all of them where none tells."""
    found = [(len(words & content(_value(row.partition(CELL)[0]))), row) for row in rows]
    most = max(score for score, _ in found)
    return [row for score, row in found if score == most]


def _value(cell: str) -> str:
    return cell.partition(":")[2] or cell


def _column_differs(part: str, row: str) -> bool:
    """Whether a number stands under another column than the one that is named."""
    cells = [cell.partition(":")[::2] for cell in row.split(CELL)]
    words = content(part)
    for fact in facts(part):
        holding = [name for name, value in cells if holds(fact, facts(value))]
        others = [name for name, value in cells if facts(value) and not holds(fact, facts(value))]
        if holding and not words & content(" ".join(holding)) and words & content(" ".join(others)):
            return True
    return False


# --- sentences of a passage -----------------------------------------------------------------------------------------


def subject_differs(sentence: str, passage: str, question: str) -> bool:
    """Whether a number of the sentence belongs, in the passage, to something else than what the sentence says it of."""
    given = facts(question)
    whole, parts = sentences(passage), clauses(passage)
    for clause in clauses(sentence):
        words = content(clause) or content(sentence)
        for fact in facts(clause) - given:
            if _is_anothers(fact, words, whole) or _rival_holds_more(fact, words, whole):
                return True
            if _rival_holds_more(fact, words, parts):
                return True
    return False


def _is_anothers(fact: Fact, words: frozenset[str], pieces: Sequence[str]) -> bool:
    """Whether the pieces that hold a number hold no word of what it is said of, and one that does not hold most."""
    own = [piece for piece in pieces if holds(fact, facts(piece))]
    if not own or any(words & content(piece) or len(content(piece)) < _SPEAKS for piece in own):
        return False
    most = max((len(words & content(piece)) for piece in pieces if piece not in own), default=0)
    return most >= _SPEAKS and most * 3 >= len(words) * 2


def _rival_holds_more(fact: Fact, words: frozenset[str], pieces: Sequence[str]) -> bool:
    """Whether a piece with another amount of the unit holds all the words that the number's own do, and more."""
    held = frozenset[str]().union(*(content(piece) for piece in pieces if holds(fact, facts(piece)))) & words
    if not held:
        return False
    rivals = [piece for piece in pieces if not holds(fact, facts(piece)) and _rivals(fact, piece)]
    return any(held < content(piece) & words for piece in rivals)


def _rivals(fact: Fact, piece: str) -> bool:
    """Whether a piece states another amount of the fact's unit."""
    if not isinstance(fact, Quantity) or not fact.unit:
        return False
    return any(isinstance(other, Quantity) and other.unit == fact.unit for other in facts(piece))
