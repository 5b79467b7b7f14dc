"""The check of each sentence: nothing is said that its passage does not say."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from agent.text import Quantity, mentions_unit, names, quantities, terms
from core.records import Hit, Language
from core.text import fold, language_of

# Least share of a sentence's content words that its passage must hold.
LEAST_OVERLAP: Final = 0.5
# Least share of a question's content words that a sentence must take up, and the content words from which a question
# is long enough to ask that of. Chinese pairs of characters repeat less often than English stems.
LEAST_TAKEN_UP: Final[dict[Language, float]] = {"en": 0.55, "zh": 0.35}
LONG_QUESTION: Final = 4
# Least share of the asker's words in a sentence that the passage must hold too: a model that is not certain fits the
# asker's subject onto another rule.
LEAST_BORROWED: Final = 0.6

Fault = Literal["empty", "refusal", "number", "unit", "name", "words"]

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


def on_the_subject(sentence: str, passage: str, question: str) -> bool:
    """Whether the passage itself holds enough of the asker's words that a sentence takes over; true across scripts."""
    borrowed = terms(sentence) & terms(question)
    if not borrowed or language_of(sentence) != language_of(passage):
        return True
    return len(borrowed & terms(passage)) >= LEAST_BORROWED * len(borrowed)


def passage_text(hit: Hit) -> str:
    """All that a passage says: its title and headings are part of it."""
    return "\n".join((hit.title, *hit.heading_path, hit.text))


def check(sentence: str, passage: str, question: str, around: str = "") -> Verdict:
    """Judge one sentence against one passage (title and headings included) and the question it answers.

    `around` is the section that the passage is a part of: it may name what the passage is about.
    Numbers and units are checked across languages; names and content words only where both are in one script.
    """
    if not any(char.isalnum() for char in sentence):
        return Verdict("empty")
    if sounds_refused(sentence) and not sounds_refused(passage):
        return Verdict("refusal")
    if fault := _wrong_quantity(sentence, passage, question):
        return Verdict(fault)
    if language_of(sentence) != language_of(passage):
        return Verdict(None, LEAST_OVERLAP)
    known = fold("\n".join((passage, around, question)))
    if any(name not in known for name in names(sentence)):
        return Verdict("name")
    wanted = terms(sentence)
    if language_of(sentence) == "zh":
        # Pairs of characters seldom survive a paraphrase: what the asker said counts neither for nor against.
        wanted -= terms(question)
    share = len(wanted & terms(passage)) / len(wanted) if wanted else 1.0
    return Verdict(None, share) if share >= LEAST_OVERLAP else Verdict("words", share)


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
        if said.unit and not any(_same_unit(said, quantity, passage) for quantity in same):
            return "unit"
    return None


def _same_unit(said: Quantity, stated: Quantity, passage: str) -> bool:
    if stated.unit:
        return stated.unit == said.unit
    # A bare number, as in a table's cell: its unit stands elsewhere in the passage, in the header or a heading.
    return mentions_unit(said.unit, passage)
