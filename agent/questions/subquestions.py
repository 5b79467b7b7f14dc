"""The sub-questions of a run: each asked once, counted, and none that cannot be understood alone."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from agent.language.amounts import quantities
from agent.language.links import without_links
from agent.language.names import names
from agent.language.text import overlap, terms
from agent.questions.condensing import leans_on_previous
from core.text import language_of

# Sub-questions of one question, over all its hops.
MOST_QUESTIONS: Final = 8
LONGEST: Final = 300
# Two questions with this share of their content words in common, and the same names and amounts, ask the same.
ALIKE: Final = 0.8
# Share of the content words of a question that a model made up which must have been asked or read.
GROUNDED: Final = 0.5


class Queue:
    """What was asked and what waits. `counts`: how many were accepted, and why others were not."""

    def __init__(self) -> None:
        self._known: list[str] = []
        self.counts: Counter[str] = Counter()

    def know(self, question: str) -> None:
        """A question that is being looked into anyway: nobody else need ask it."""
        self._known.append(question)

    def offer(self, questions: Sequence[str]) -> list[str]:
        """Those of these questions that are to be asked, in order: self-contained, new, and not too many."""
        accepted = []
        for question in (" ".join(offered.split()) for offered in questions):
            verdict = self._verdict(question)
            self.counts[verdict] += 1
            if verdict == "accepted":
                self._known.append(question)
                accepted.append(question)
        return accepted

    def _verdict(self, question: str) -> str:
        if not self_contained(question):
            return "unclear"
        if any(alike(question, known) for known in self._known):
            return "repeated"
        return "too_many" if self.counts["accepted"] >= MOST_QUESTIONS else "accepted"


def self_contained(question: str) -> bool:
    """Whether a question can be looked up alone: it names what it is about, without a pronoun for it."""
    return 0 < len(question) <= LONGEST and bool(terms(question)) and not leans_on_previous(question)


def grounded(question: str, known: str) -> bool:
    """Whether a question that a model made up may be shown to the asker: it leads nowhere, its amounts were asked or
    read, and so was half of what it speaks of. A document may have told the model what to write."""
    return (
        without_links(question) == " ".join(question.split())
        and quantities(question) <= quantities(known)
        and overlap(terms(question), known) >= GROUNDED
    )


def alike(one: str, other: str) -> bool:
    """Whether two questions ask the same: of two places or two amounts is not the same."""
    if names(one) != names(other) or quantities(one) != quantities(other):
        return False
    ours, theirs = terms(one), terms(other)
    return language_of(one) == language_of(other) and len(ours & theirs) >= ALIKE * len(ours | theirs)
