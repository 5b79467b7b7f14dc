"""A person looks first: an answer that cites certain collections is shown once somebody approved it.

The graph stops in front of its last step and its state is kept. What was decided is taken up by the asker's next look
at the session (`settling`), which lets the graph go on from where it stopped, in whatever process that is.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langgraph.types import interrupt

from agent.language.words import say, titles
from agent.workflow.state import Change, Context, State
from core.records import Answer, Outcome


async def approve(state: State, runtime: Context) -> Change:
    """Wait until somebody has decided; then end with the answer, or with the words that it was rejected."""
    run = runtime.context
    decision = interrupt({"collections": list(run.awaiting)})
    if run.answer is not None:
        run.answer = decided(run.answer, decision)
    return {}


def decided(answer: Answer, decision: dict[str, Any]) -> Answer:
    """What the asker is told: the answer with the approver's note (`reason`), or that it was rejected and why."""
    reason = decision["reason"]
    if not decision["approved"]:
        return _without(answer, Outcome.REJECTED, say("rejected", answer.language, reason=reason))
    if not reason:
        return answer
    noted = say("approved", answer.language, reason=reason)
    return replace(answer, notice=" ".join(filter(None, (answer.notice, noted))))


def waiting(answer: Answer, collections: Sequence[str]) -> Answer:
    """What the asker is told until somebody has decided."""
    names = titles([name if answer.language == "zh" else f"“{name}”" for name in collections], answer.language)
    return _without(answer, Outcome.WAITING, say("waiting", answer.language, collections=names))


def _without(answer: Answer, outcome: Outcome, words: str) -> Answer:
    """Nothing of what was found is left."""
    return replace(
        answer,
        outcome=outcome,
        answer=words,
        citations=(),
        nearest=(),
        notice=None,
        verdict="answer",
        missing=(),
        searched=(),
        contacts=(),
    )
