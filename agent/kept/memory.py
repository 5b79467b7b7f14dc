"""What a session remembers: plain question and answer texts, taken from its turns when a run begins.

A question's standalone form is kept beside its text, so that a follow-up to a follow-up still knows what it is about.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from core.records import Outcome, Turn

_STANDALONE: Final = "standalone"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One earlier question with its answer; `standalone` is empty for small talk, which nothing can follow up."""

    question: str
    answer: str
    standalone: str


def remember(question: str, answer: str, standalone: str) -> list[AnyMessage]:
    """The two messages of a finished turn."""
    return [HumanMessage(content=question, additional_kwargs={_STANDALONE: standalone}), AIMessage(content=answer)]


def of_turns(turns: Sequence[Turn]) -> list[AnyMessage]:
    """The messages of stored turns, oldest first."""
    kept: list[AnyMessage] = []
    for turn in turns:
        standalone = "" if turn.outcome is Outcome.CONVERSED else turn.standalone_question or turn.question
        kept += remember(turn.question, turn.answer, standalone)
    return kept


def repaired(messages: Sequence[AnyMessage], most: int) -> list[AnyMessage]:
    """At most the `most` last messages, whole exchanges only: whatever a broken run left behind (a question without
    its answer, tool calls and results) is dropped."""
    kept: list[AnyMessage] = []
    for before, after in pairwise(messages):
        if isinstance(before, HumanMessage) and isinstance(after, AIMessage) and not after.tool_calls:
            kept += [before, after]
    return kept[len(kept) - most // 2 * 2 :] if len(kept) > most else kept


def exchanges(messages: Sequence[AnyMessage]) -> list[Exchange]:
    """A repaired history as pairs, oldest first."""
    return [
        Exchange(asked.text, told.text, str(asked.additional_kwargs.get(_STANDALONE, asked.text)))
        for asked, told in zip(messages[::2], messages[1::2], strict=True)
    ]


def last_question(messages: Sequence[AnyMessage]) -> str | None:
    """The standalone form of the last question that was more than small talk."""
    asked = [exchange.standalone for exchange in exchanges(messages) if exchange.standalone]
    return asked[-1] if asked else None


def extended(before: Sequence[AnyMessage], added: Sequence[AnyMessage]) -> list[AnyMessage]:
    """How the graph's state takes new messages: appended, bounded so that checkpoints do not grow without end."""
    return [*before, *added][-200:]
