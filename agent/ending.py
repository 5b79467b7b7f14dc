"""The ends of the graph: an answer with its citations, or a refusal that says what came nearest and what is missing."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from agent import memory
from agent.checking import passage_text
from agent.run import Run
from agent.state import Change, Context, State
from agent.text import terms
from agent.words import say
from core.records import Answer, Hit, Outcome

_NEAREST: Final = 3
_MISSING_WORDS: Final = 3


async def cite(state: State, runtime: Context) -> Change:
    """Only a cited answer is one; small talk excepted."""
    return {"refused": not state["talk"] and not runtime.context.numbering.citations}


async def done(state: State, runtime: Context) -> Change:
    """End with the answer, marked incomplete where a limit cut it short."""
    run = runtime.context
    text = ("" if run.language == "zh" else " ").join(run.sentences)
    outcome = Outcome.CONVERSED if state["talk"] else Outcome.INCOMPLETE if run.limit else Outcome.ANSWERED
    notice = say(run.limit, run.language) if run.limit else None
    run.answer = finished(state, run, outcome, text, notice)
    return {"messages": memory.remember(state["question"], text, state["standalone"])}


async def refuse(state: State, runtime: Context) -> Change:
    """End with the fixed refusal, what came nearest, and what is missing from it."""
    run = runtime.context
    found = any(run.evidence.batches)
    text = say("refusal" if found else "no_documents", run.language)
    notice = say(run.limit, run.language) if run.limit else missing(state["standalone"], run)
    run.answer = finished(state, run, Outcome.REFUSED, text, notice)
    return {"messages": memory.remember(state["question"], text, state["standalone"])}


def finished(state: State, run: Run, outcome: Outcome, text: str, notice: str | None) -> Answer:
    """The turn's answer as a value; the total time is filled in by whoever ends the run."""
    hits = run.evidence.hits([handle for batch in run.evidence.batches[:1] for handle in batch])
    return Answer(
        outcome=outcome,
        question=state["question"],
        standalone_question=state["standalone"] or state["question"],
        answer=text,
        language=run.language,
        citations=run.numbering.citations,
        timings=dict(run.timings),
        model_calls=run.chat.calls,
        nearest=nearest(hits) if outcome is Outcome.REFUSED else (),
        notice=notice,
    )


def nearest(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """What a refusal shows: the best hit of each document, best first."""
    best: dict[UUID, Hit] = {}
    for hit in hits:
        best.setdefault(hit.document_id, hit)
    return tuple(best.values())[:_NEAREST]


def missing(question: str, run: Run) -> str | None:
    """The notice that names words of the question which no passage found holds; None where there is none to name.

    Latin words only: pairs of Chinese characters are not words.
    """
    hits = run.evidence.hits([handle for batch in run.evidence.batches for handle in batch])
    if not hits or run.language == "zh":
        return None
    held = terms("\n".join(map(passage_text, hits)))
    words = [word.strip("?!.,;:'\"()") for word in dict.fromkeys(question.split())]
    absent = [word for word in words if word.isascii() and word.isalpha() and terms(word) and not terms(word) & held]
    if not absent:
        return None
    return say("missing", run.language, words=", ".join(f"“{word}”" for word in absent[:_MISSING_WORDS]))
