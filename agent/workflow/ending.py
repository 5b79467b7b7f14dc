"""The ends of the graph: an answer with its citations, or a refusal that says what came nearest and what is missing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from agent.kept import memory
from agent.language.text import passage_text, terms
from agent.language.words import say
from agent.questions.sufficiency import parts, uncovered
from agent.workflow.run import Run
from agent.workflow.state import Change, Context, State
from core.records import Answer, Hit, Outcome, Sufficiency

_NEAREST: Final = 3
_MISSING_WORDS: Final = 3
# What a model called missing counts as said when this share of its content words is.
_SPOKEN_OF: Final = 0.8


async def cite(state: State, runtime: Context) -> Change:
    """Only a cited answer is one; small talk excepted."""
    return {"refused": not state["talk"] and not runtime.context.numbering.citations}


async def done(state: State, runtime: Context) -> Change:
    """End with the answer, marked incomplete where a limit cut it short, with a caveat where something is missing."""
    run = runtime.context
    text = ("" if run.language == "zh" else " ").join(run.sentences)
    outcome = Outcome.CONVERSED if state["talk"] else Outcome.INCOMPLETE if run.limit else Outcome.ANSWERED
    notice = say(run.limit, run.language) if run.limit else None
    answer = finished(state, run, outcome, text, notice)
    lacking = () if state["talk"] else left_open(state["standalone"], run)
    if lacking or run.limit:
        cited = {citation.document_id for citation in answer.citations}
        hits = [hit for hit in found(run) if hit.document_id in cited]
        answer = await short_of(answer, run, "caveat", lacking, hits)
    run.answer = answer
    note(run)
    return {"messages": memory.remember(state["question"], text, state["standalone"])}


async def refuse(state: State, runtime: Context) -> Change:
    """End with the fixed refusal, what came nearest, and what is missing from it."""
    run, question = runtime.context, state["standalone"]
    concerned = state["path"] != "unrelated"
    text = say("refusal" if concerned and any(run.evidence.batches) else "no_documents", run.language)
    notice = say(run.limit, run.language) if run.limit else missing(question, run)
    answer = finished(state, run, Outcome.REFUSED, text, notice)
    run.answer = await short_of(answer, run, "cannot", run.missing or parts(question), answer.nearest)
    note(run)
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


async def short_of(
    answer: Answer, run: Run, verdict: Sufficiency, lacking: Sequence[str], hits: Sequence[Hit]
) -> Answer:
    """The answer with what it lacks, what was searched for it, and whom to ask."""
    return replace(
        answer,
        verdict=verdict,
        missing=tuple(lacking),
        searched=tuple(dict.fromkeys(run.searched)),
        contacts=await run.retriever.contacts(hits),
    )


def left_open(question: str, run: Run) -> tuple[str, ...]:
    """What was asked for and no sentence of the answer, nor the words and headings it is cited from, speaks of."""
    cited = [" ".join((one.title, *one.heading_path, one.quote)) for one in run.numbering.citations]
    said = [*run.sentences, *cited]
    held = terms("\n".join(said))
    asked = [part for part in run.missing if len(terms(part) & held) < _SPOKEN_OF * len(terms(part))]
    # What a model has judged is not judged once more by words.
    return tuple(dict.fromkeys([*asked, *([] if run.judged else uncovered(question, said))]))


def note(run: Run) -> None:
    """Put how the run ended into its trace."""
    if run.answer is not None:
        answer = run.answer
        run.trace.note(
            "answer",
            outcome=answer.outcome.value,
            verdict=answer.verdict,
            missing=list(answer.missing),
            citations=[citation.chunk_id for citation in answer.citations],
            limit=run.limit,
        )


def found(run: Run) -> list[Hit]:
    """All hits of the run's searches, in the order found."""
    return run.evidence.hits([handle for batch in run.evidence.batches for handle in batch])


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
    hits = found(run)
    if not hits or run.language == "zh":
        return None
    held = terms("\n".join(map(passage_text, hits)))
    words = [word.strip("?!.,;:'\"()") for word in dict.fromkeys(question.split())]
    absent = [word for word in words if word.isascii() and word.isalpha() and terms(word) and not terms(word) & held]
    if not absent:
        return None
    return say("missing", run.language, words=", ".join(f"“{word}”" for word in absent[:_MISSING_WORDS]))
