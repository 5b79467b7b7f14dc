"""The steps of the graph up to the answer: each reads the state and its run, and returns what it changes."""

from collections.abc import Sequence
from typing import Final

from agent.grounding.answering import Supported, depth
from agent.grounding.citations import with_numbers, without_marks
from agent.kept import memory
from agent.language.text import plain
from agent.language.words import say, titles
from agent.models import prompts
from agent.questions import condensing, deciding
from agent.questions.routing import Decision, by_code, clean_question, small_talk, unconcerned
from agent.workflow.run import SHOWN_SOURCES, Run, Task
from agent.workflow.searching import look, look_into
from agent.workflow.state import Change, Context, State, emit, status, within_time
from core.errors import InferenceError
from core.records import Source, Token

_QUERY_TOKENS: Final = 48


async def guard(state: State, runtime: Context) -> Change:
    """Clean the question and clear whatever an earlier turn left."""
    question = clean_question(state["question"])
    return {
        "question": question,
        "standalone": question,
        "talk": small_talk(question),
        "path": "quick",
        "query": question,
        "rewrites": 0,
        "subtopics": [],
        "hops": 0,
        "refused": False,
    }


@within_time
async def condense(state: State, runtime: Context) -> Change:
    """Make a follow-up stand alone. No history, small talk or a whole question: no model call."""
    run, question = runtime.context, state["question"]
    before = memory.last_question(memory.repaired(state.get("messages", []), run.settings.max_history))
    if state["talk"] or before is None or not condensing.leans_on_previous(question):
        return {}
    simple = condensing.swapped(before, question)
    if simple is not None:
        run.trace.note("condense", by="code", standalone=simple)
        return {"standalone": simple, "query": simple}
    status(runtime, "reading", "status_reading")
    with run.timed("condense"):
        prompt = prompts.condense(run.language, before, question)
        reply = await run.chat.complete(prompt, max_tokens=_QUERY_TOKENS * 2, stop=("\n",))
        rewritten = condensing.accepted(reply.text, before, question) or condensing.joined(before, question)
    run.trace.note("condense", by="model", standalone=rewritten)
    return {"standalone": rewritten, "query": rewritten}


async def converse(state: State, runtime: Context) -> Change:
    """Small talk gets fixed words: there is nothing to look up and nothing to invent."""
    text = say(state["talk"] or "greeting", runtime.context.language)
    note_route(runtime.context, Decision("converse", "small_talk"))
    runtime.context.sentences = [text]
    emit(runtime, Token(text))
    return {"standalone": ""}


async def search(state: State, runtime: Context) -> Change:
    """Search by code; what the first search finds is shown at once."""
    run = runtime.context
    if state["rewrites"]:
        status(runtime, "searching", "status_again", query=state["query"])
    else:
        status(runtime, "searching", "status_searching")
    with run.timed("search"):
        # A small model reads few passages: for it the best that the other words find.
        closer = state["rewrites"] and run.chat.traits.capable
        handles = await (look_into(run, state["query"], state["standalone"]) if closer else look(run, state["query"]))
    if not run.shown:
        show(runtime, handles[:SHOWN_SOURCES])
    return {}


@within_time
async def choose(state: State, runtime: Context) -> Change:
    """Choose the way to look further, by what the first search found, by the question's words, at last by the model."""
    run, question = runtime.context, state["standalone"]
    hits = run.evidence.hits(run.evidence.batches[-1])
    decision = unconcerned(question, hits, run.retriever.embedder_id) if run.mode == "auto" or not hits else None
    decision = decision or by_code(question, run.mode, run.chat.traits)
    if decision is None:
        routed = await run.chat.decide(deciding.route(question), deciding.Routed)
        # Without a decision that fits: the quick way, which goes on to the other.
        decision = Decision(routed.route, "model", "model") if routed else Decision("quick", "undecided")
        note_route(run, decision, said=routed.reason if routed else "")
    else:
        note_route(run, decision)
    return {"path": decision.route}


def note_route(run: Run, decision: Decision, said: str = "") -> None:
    """Keep a decision in the trace; `said`: the model's own reason."""
    run.trace.note("route", route=decision.route, reason=decision.reason, by=decision.by, said=said)


@within_time
async def grade(state: State, runtime: Context) -> Change:
    """Ask the gate whether the passages just found answer the question."""
    run, question, batch = runtime.context, state["standalone"], runtime.context.evidence.batches[-1]
    passed = await passes(run, runtime, question, batch)
    run.tasks = [Task(question, batch, run.answering)] if passed else []
    return {"refused": not passed}


async def passes(run: Run, runtime: Context, question: str, batch: tuple[str, ...]) -> bool:
    """The gate over one batch: false where the model would rather refuse."""
    if not batch:
        return False
    hits = run.evidence.hits(batch[: depth(run.chat.traits)])
    key = "passage" if len(hits) == 1 else "passages"
    names = titles([hit.title for hit in hits], run.language)
    status(runtime, "judging", "status_judging", count=say(key, run.language, n=len(hits)), titles=names)
    with run.timed("grade"):
        passed = await run.answering.passes(question, batch)
    run.trace.note("grade", passed=passed, grades={handle: run.answering.grades.get(handle) for handle in batch})
    return passed


@within_time
async def rewrite(state: State, runtime: Context) -> Change:
    """Ask for other words to search with."""
    run = runtime.context
    with run.timed("rewrite"):
        prompt = prompts.rewrite(run.language, state["standalone"], state["rewrites"])
        reply = await run.chat.complete(prompt, max_tokens=_QUERY_TOKENS, stop=("\n",))
    query = without_marks(plain(reply.text)) or state["standalone"]
    run.trace.note("rewrite", query=query)
    return {"query": query, "rewrites": state["rewrites"] + 1}


@within_time
async def answer(state: State, runtime: Context) -> Change:
    """Write the answer from the evidence, sentence by sentence; each is sent once it has passed the check."""
    run = runtime.context
    best = [hit.title for task in run.tasks for hit in run.evidence.hits(task.handles[:1])]
    status(runtime, "answering", "status_answering", titles=titles(best, run.language))
    try:
        with run.timed("answer"):
            for task in run.tasks:
                async for sentence in task.answering.answer(task.question, task.handles):
                    send(runtime, sentence)
    except InferenceError:
        # What was sent is never taken back: a model that fails half-way leaves an incomplete answer, not a failure.
        if not run.sentences:
            raise
        run.limit = "model_stopped"
    return {}


def show(runtime: Context, handles: Sequence[str]) -> None:
    """Show sources that were not shown yet."""
    run = runtime.context
    for handle in handles:
        hit = run.evidence.get(handle)
        if hit is not None and handle not in run.shown:
            run.shown.add(handle)
            emit(runtime, Source(hit))


def numbered(runtime: Context, sentence: Supported) -> str | None:
    """A checked sentence with its marks [n], its sources sent first where they were not shown yet, or with the words
    that nothing supports it; None: no number is left for it."""
    run = runtime.context
    if not sentence.handles:
        return say("unsupported", run.language, sentence=sentence.text)
    numbers = [n for handle in sentence.handles if (n := run.numbering.cite(handle, sentence.text)) is not None]
    if not numbers:
        return None
    show(runtime, sentence.handles)
    return with_numbers(sentence.text, numbers)


def send(runtime: Context, sentence: Supported) -> None:
    """Number a checked sentence and send it."""
    run, text = runtime.context, numbered(runtime, sentence)
    if text is None:
        return
    space = " " if run.sentences and run.language == "en" else ""
    run.sentences.append(text)
    emit(runtime, Token(space + text))
