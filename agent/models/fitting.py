"""Making a request fit the model's context, in a fixed order: evidence gives way before history, and history at once.

Results of tools are shortened, the oldest first; then what was said before this question is put in one line, all of it
or nothing; then whole exchanges with tools go, the oldest first, each call with its results. What is asked always
stays, and no result of a tool ever stands without its call.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from core.settings import Settings
from inference import tokens
from inference.interfaces import Message, Traits

Made = TypeVar("Made", bound=Sequence[Message])

# New prompt tokens of one call where the settings name none: what a small model on a processor reads in some seconds,
# and enough of eight passages for one that answers over several.
_BUDGET: Final = {"small": 600, "capable": 1800}
# A result of a tool keeps at least so many tokens: a mark and a heading.
_LEAST: Final = 40
_STEP: Final = 0.95
_EVIDENCE_STEP: Final = 0.8
_EARLIER: Final = "Asked earlier in this conversation: "
_CUT: Final = " [...]"


def prompt_budget(settings: Settings, traits: Traits) -> int:
    """The new prompt tokens that one call may take, about."""
    return settings.prompt_budget or _BUDGET["capable" if traits.capable else "small"]


def fitted(messages: Sequence[AnyMessage], room: int) -> list[AnyMessage]:
    """The messages of a request within `room` tokens, as far as that can be done."""
    asked = _asked(messages)
    before, after = list(messages[:asked]), list(messages[asked:])
    after = _shortened(before, after, room)
    if _over([*before, *after], room):
        before = compacted(before, room - tokens.of_prompt(after))
    while _over([*before, *after], room) and (less := _without_oldest_exchange(after)) is not None:
        after = less
    return [*before, *after]


def _over(messages: Sequence[AnyMessage], room: int) -> int:
    return max(0, tokens.of_prompt(messages) - room)


def within(make: Callable[[int], Made], budget: int, room: int) -> Made:
    """The prompt that `make` makes of evidence of at most so many tokens, with as much of it as `room` lets."""
    while True:
        prompt = make(budget)
        if budget <= _LEAST or tokens.of_texts(message.content for message in prompt) <= room:
            return prompt
        budget = max(_LEAST, int(budget * _EVIDENCE_STEP))


def compacted(history: Sequence[AnyMessage], room: int) -> list[AnyMessage]:
    """What was said before a question: all of it where it fits, else one line with what was asked, else nothing.

    The line holds the employee's own words only: what a document says never gets an employee's authority by it.
    """
    if not history or tokens.of_prompt(history) <= room:
        return list(history)
    questions = " / ".join(message.text for message in history if isinstance(message, HumanMessage))
    line: list[AnyMessage] = [HumanMessage(content=_EARLIER + questions), AIMessage(content="...")]
    return line if questions and tokens.of_prompt(line) <= room else []


def _asked(messages: Sequence[AnyMessage]) -> int:
    """Where the question that is being answered stands."""
    return max((at for at, message in enumerate(messages) if isinstance(message, HumanMessage)), default=0)


def _shortened(before: Sequence[AnyMessage], messages: Sequence[AnyMessage], room: int) -> list[AnyMessage]:
    """Results of tools cut at their ends, the oldest first, no more than has to be."""
    kept = list(messages)
    for at, message in enumerate(kept):
        if isinstance(message, ToolMessage) and (over := _over([*before, *kept], room)):
            kept[at] = _shorter(message, over)
    return kept


def _shorter(message: ToolMessage, over: int) -> ToolMessage:
    text, taken = message.text, tokens.at_most(message.text)
    wanted = max(_LEAST, taken - over)
    length = int(len(text) * wanted / taken)
    while taken > wanted and tokens.at_most(text[:length] + _CUT) > wanted:
        length = int(length * _STEP)
    return message if taken <= wanted else message.model_copy(update={"content": text[:length].rstrip() + _CUT})


def _without_oldest_exchange(messages: Sequence[AnyMessage]) -> list[AnyMessage] | None:
    """The messages without the oldest call of tools and all its results; None when there is only one left."""
    calls = [at for at, message in enumerate(messages) if isinstance(message, AIMessage) and message.tool_calls]
    if len(calls) < 2:
        return None
    return [*messages[: calls[0]], *messages[calls[1] :]]
