"""The check of each sentence: nothing is said that its passage does not say."""

import re
from dataclasses import dataclass, replace
from typing import Final, Literal

from agent.language.amounts import Date, Quantity, dates, facts, mentions_unit, quantities
from agent.language.binding import CELL, clauses, content, holds, row_differs, subject_differs
from agent.language.claims import bound_differs, denies, negation_differs, periods
from agent.language.names import names
from agent.language.text import covered, overlap, sentences, terms
from core.records import Language
from core.text import fold, language_of

# Least share of a sentence's content words that its passage must hold.
LEAST_OVERLAP: Final = 0.5
# Least share of a question's content words that a sentence must take up, and the content words from which a question
# is long enough to ask that of. Chinese pairs of characters repeat less often than English stems.
LEAST_TAKEN_UP: Final[dict[Language, float]] = {"en": 0.55, "zh": 0.35}
LONG_QUESTION: Final = 4
# Pairs of characters that a Chinese sentence must add to the question to be judged by these alone.
LEAST_OWN: Final = 3
# Least share of the asker's words in a sentence that the passage must hold too: a model that is not certain fits the
# asker's subject onto another rule.
LEAST_BORROWED: Final = 0.6
# The same where it was certain, of an English sentence that takes over more than a few, more than a third: it may still
# take what is granted towards a thing for the price of it. Chinese pairs of everyday words hardly ever stand in the
# rule, and say nothing.
LEAST_BORROWED_CERTAIN: Final[dict[Language, float]] = {"en": 0.34, "zh": 0.0}
FEW_BORROWED: Final = 2

# Least that a piece of a passage must share with a sentence to be held against it.
LEAST_SHARED: Final = 2

# Units of what a language counts by naming it.
_COUNTED: Final = frozenset(("person", "time"))

Fault = Literal["empty", "refusal", "number", "unit", "date", "name", "row", "bound", "negation", "words"]

# What numbers the items of a list is no amount: `1. Share your work early` states no share.
_ORDINAL: Final = re.compile(r"^[^\S\n]*\(?\d{1,2}[.)）、](?=\s*[^\W\d])[^\S\n]*", re.MULTILINE)
_REFUSAL: Final = re.compile(
    r"not (?:specified|mentioned|provided|stated|found|given|included|available in|clear from|defined|addressed)"
    r"|(?:does|do|did) not (?:\w+ )?(?:specify|mention|state|say|provide|contain|include|give|address|answer)"
    r"|no (?:information|mention|answer|details?|specific information)\b|cannot (?:be )?(?:determine|answer|find)"
    r"|i (?:do not|don't|cannot|can't) (?:know|find|answer)|unable to"
    r"|未(?:提及|提到|说明|找到|指定|明确|注明|涉及|给出|提供|作说明|规定具体)|没有(?:提及|提到|说明|找到|明确|给出|相关|涉及|具体)|无法(?:确定|回答|找到|得知)"
    r"|不(?:清楚|知道|确定)|并未|找不到"
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a sentence may stand; `fault` says what is wrong, `share` its content words found in the passage."""

    fault: Fault | None
    share: float = 0.0

    @property
    def ok(self) -> bool:
        return self.fault is None


def sounds_refused(sentence: str) -> bool:
    """Whether a sentence says that the passage does not say."""
    return bool(_REFUSAL.search(fold(sentence)))


def speaks_of(sentence: str, question: str) -> bool:
    """Whether a sentence takes up enough of what a longer question asks about; true across languages."""
    asked = terms(question)
    if len(asked) < LONG_QUESTION or language_of(sentence) != language_of(question):
        return True
    return len(asked & terms(sentence)) >= LEAST_TAKEN_UP[language_of(question)] * len(asked)


def on_the_subject(sentence: str, passage: str, question: str, *, certain: bool = False) -> bool:
    """Whether the passage itself holds enough of the asker's words that a sentence takes over; true across scripts.
    Less is asked of a sentence that the model was `certain` of."""
    borrowed = terms(sentence) & terms(question)
    if not borrowed or language_of(sentence) != language_of(passage):
        return True
    if certain and len(borrowed) <= FEW_BORROWED:
        return True
    least = LEAST_BORROWED_CERTAIN[language_of(sentence)] if certain else LEAST_BORROWED
    return len(borrowed & terms(passage)) >= least * len(borrowed)


def check(sentence: str, passage: str, question: str, around: str = "") -> Verdict:
    """Judge one sentence against one passage (title and headings included) and the question it answers.

    `around` is the section that the passage is a part of: it may name what the passage is about.
    Numbers and units are checked across languages; names and content words only where both are in one script.
    """
    passage = _ORDINAL.sub("", passage)
    if not any(char.isalnum() for char in sentence):
        return Verdict("empty")
    if sounds_refused(sentence) and not sounds_refused(passage):
        return Verdict("refusal")
    fault: Fault | None = _wrong_quantity(sentence, passage, question) or _wrong_date(sentence, passage, question)
    if fault is not None:
        return Verdict(fault)
    if language_of(sentence) != language_of(passage):
        fault = _wrong_across(sentence, passage)
        return Verdict(fault) if fault else Verdict(None, LEAST_OVERLAP)
    known = fold("\n".join((passage, around, question)))
    if any(name not in known for name in names(sentence)):
        return Verdict("name")
    fault = _wrong_claim(sentence, passage, question)
    if fault is not None:
        return Verdict(fault)
    share = _share(sentence, passage, question)
    return Verdict(None, share) if share >= LEAST_OVERLAP else Verdict("words", share)


def _share(sentence: str, passage: str, question: str) -> float:
    """How much of a sentence's content its passage holds, 0 to 1: words in English, characters in Chinese, where pairs
    seldom survive a paraphrase and what the asker said counts neither for nor against."""
    if language_of(sentence) == "en":
        return overlap(terms(sentence), passage)
    said = frozenset(term for term in content(sentence) if len(term) > 1)
    wanted = said - terms(question)
    if len(wanted) < LEAST_OWN:
        # So few pairs are mostly the seams between words of the asker: 酬全 in 课酬全年.
        return covered(said, terms(passage) | terms(question))
    return covered(wanted, terms(passage))


def _wrong_quantity(sentence: str, passage: str, question: str) -> Literal["number", "unit"] | None:
    given, stated = quantities(question), quantities(passage)
    counted = terms(passage) | terms(question)
    for said in quantities(sentence) - given:
        if said.unit == "" and any(said.value == quantity.value for quantity in given):
            continue
        same = [quantity for quantity in stated if quantity.value == said.value]
        if not same:
            return "number"
        if said.word and not terms(said.word) <= counted and language_of(sentence) == language_of(passage):
            return "unit"
        across = language_of(sentence) != language_of(passage)
        if said.unit and not any(_same_unit(said, quantity, passage, across) for quantity in same):
            return "unit"
    return None


def _same_unit(said: Quantity, stated: Quantity, passage: str, across: bool) -> bool:
    if stated.unit:
        return stated.unit == said.unit
    # 40 人 may be "40 members".
    if across and stated.word and said.unit in _COUNTED:
        return True
    # A bare number, as in a table's cell: its unit stands elsewhere in the passage, in the header or a heading.
    return mentions_unit(said.unit, passage)


def _wrong_date(sentence: str, passage: str, question: str) -> Literal["date"] | None:
    stated = dates(passage) | dates(question)
    numbers = {quantity.value for quantity in quantities(passage) | quantities(question)}
    for said in dates(sentence):
        if any(said.within(date) for date in stated):
            continue
        # A year may stand apart from its day, or as a plain number.
        rest = replace(said, year=None)
        years = {date.year for date in stated} | {int(number) for number in numbers if number.isdecimal()}
        if said.year not in years or not (rest == Date() or any(rest.within(date) for date in stated)):
            return "date"
    return None


def _wrong_claim(sentence: str, passage: str, question: str) -> Literal["unit", "row", "bound", "negation"] | None:
    """What is said of the amounts that are right by themselves, in one language."""
    rows = [line for line in passage.splitlines() if CELL in line]
    prose = facts("\n".join(line for line in passage.splitlines() if CELL not in line))
    if not any(holds(fact, prose) for fact in facts(sentence)) and row_differs(sentence, rows):
        return "row"
    if not rows and subject_differs(sentence, passage, question):
        return "row"
    pieces = nearest(sentence, passage)
    if pieces and all(_other_period(sentence, piece) for piece in pieces):
        return "unit"
    flips = [(bound_differs(sentence, piece), negation_differs(sentence, piece)) for piece in pieces]
    # "Not more than 5 is allowed" and "more than 5 is forbidden": two that differ make one that agrees.
    if flips and all(bound != negation for bound, negation in flips):
        return "bound" if flips[0][0] else "negation"
    return None


def _wrong_across(sentence: str, passage: str) -> Literal["unit", "bound", "negation"] | None:
    """The same against the pieces that hold the sentence's amounts, as far as that can be told across languages."""
    said = facts(sentence)
    pieces = [piece for piece in sentences(passage) if any(holds(fact, facts(piece)) for fact in said)]
    if not pieces:
        return None
    if all(_other_period(sentence, piece) for piece in pieces):
        return "unit"
    if all(bound_differs(sentence, piece) for piece in pieces):
        return "bound"
    # What is denied may stand in another clause than the amount.
    parts = [
        clause for piece in pieces for clause in clauses(piece) if any(holds(fact, facts(clause)) for fact in said)
    ]
    return "negation" if all(denies(sentence) != denies(piece) for piece in (*pieces, *parts)) else None


def _other_period(sentence: str, piece: str) -> bool:
    stated = periods(piece)
    return bool(stated) and any(not mentions_unit(unit, piece) for unit in periods(sentence) - stated)


def nearest(sentence: str, passage: str) -> list[str]:
    """The sentences or rows of a passage that hold most of what a sentence says, all of them where several do."""
    wanted, amounts = content(sentence), facts(sentence)
    found = [(2 * len(amounts & facts(piece)) + len(wanted & content(piece)), piece) for piece in sentences(passage)]
    least = LEAST_SHARED if len(wanted) > LEAST_SHARED else 1
    most = max((score for score, _ in found), default=0)
    return [piece for score, piece in found if score == most >= least]
