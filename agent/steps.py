"""The steps of the graph up to the answer: each reads the state and its run, and returns what it changes."""

from collections.abc import Sequence
from typing import Final

from agent import condensing, memory, prompts
from agent.answering import ALONE_PASSAGES, SEVERAL_PASSAGES, Supported
from agent.citations import with_numbers, without_marks
from agent.routing import choose_path, clean_question, small_talk
from agent.run import SHOWN_SOURCES, Run
from agent.state import Change, Context, State, emit, status, within_time
from agent.text import plain
from agent.words import say, titles
from core.errors import InferenceError
from core.records import Source, Token

# Searches whose hits are graded after the tool loop of a small model.
MAX_BATCHES: Final = 3
_QUERY_TOKENS: Final = 48


async def guard(state: State, runtime: Context) -> Change:
    """Clean the question and clear whatever an earlier turn left."""
    question = clean_question(state["question"])
    return {
        "question": question,
        "standalone": question,
        "talk": small_talk(question),
        "path": choose_path(runtime.context.mode, runtime.context.chat.traits),
        "query": question,
        "rewrites": 0,
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
        return {"standalone": simple, "query": simple}
    status(runtime, "reading", "status_reading")
    with run.timed("condense"):
        prompt = prompts.condense(run.language, before, question)
        reply = await run.chat.complete(prompt, max_tokens=_QUERY_TOKENS * 2, stop=("\n",))
        rewritten = condensing.accepted(reply.text, before, question) or condensing.joined(before, question)
    return {"standalone": rewritten, "query": rewritten}


async def converse(state: State, runtime: Context) -> Change:
    """Small talk gets fixed words: there is nothing to look up and nothing to invent."""
    text = say(state["talk"] or "greeting", runtime.context.language)
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
        handles = run.evidence.add(await run.retriever.find(state["query"]))
    if not run.shown:
        show(runtime, handles[:SHOWN_SOURCES])
    return {}


@within_time
async def grade(state: State, runtime: Context) -> Change:
    """Ask the gate whether the passages just found answer the question."""
    run = runtime.context
    return {"refused": not await passes(run, runtime, state["standalone"], run.evidence.batches[-1])}


async def passes(run: Run, runtime: Context, question: str, batch: tuple[str, ...]) -> bool:
    """The gate over one batch: false where the model would rather refuse."""
    if not batch:
        return False
    hits = run.evidence.hits(batch[: SEVERAL_PASSAGES if run.chat.traits.capable else ALONE_PASSAGES])
    key = "passage" if len(hits) == 1 else "passages"
    names = titles([hit.title for hit in hits], run.language)
    status(runtime, "judging", "status_judging", count=say(key, run.language, n=len(hits)), titles=names)
    with run.timed("grade"):
        return await run.answering.passes(question, batch)


@within_time
async def rewrite(state: State, runtime: Context) -> Change:
    """Ask for other words to search with."""
    run = runtime.context
    with run.timed("rewrite"):
        prompt = prompts.rewrite(run.language, state["standalone"], state["rewrites"])
        reply = await run.chat.complete(prompt, max_tokens=_QUERY_TOKENS, stop=("\n",))
    query = without_marks(plain(reply.text)) or state["standalone"]
    return {"query": query, "rewrites": state["rewrites"] + 1}


@within_time
async def answer(state: State, runtime: Context) -> Change:
    """Write the answer from the evidence, sentence by sentence; each is sent once it has passed the check."""
    run = runtime.context
    batch = await supporting_batch(state, runtime)
    if batch is None:
        return {}
    names = titles([hit.title for hit in run.evidence.hits(batch[:1])], run.language)
    status(runtime, "answering", "status_answering", titles=names)
    try:
        with run.timed("answer"):
            async for sentence in run.answering.answer(state["standalone"], batch):
                send(runtime, sentence)
    except InferenceError:
        # What was sent is never taken back: a model that fails half-way leaves an incomplete answer, not a failure.
        if not run.sentences:
            raise
        run.limit = "model_stopped"
    return {}


async def supporting_batch(state: State, runtime: Context) -> tuple[str, ...] | None:
    """The passages to answer from. On the quick path the gate has seen them; what the tools found it sees here."""
    run = runtime.context
    batches = [batch for batch in run.evidence.batches if batch]
    if state["path"] == "quick":
        return batches[-1] if batches else None
    if run.chat.traits.capable:
        merged = tuple(dict.fromkeys(handle for batch in by_rank(batches) for handle in batch))[:SEVERAL_PASSAGES]
        return merged if await passes(run, runtime, state["standalone"], merged) else None
    for batch in batches[:MAX_BATCHES]:
        if await passes(run, runtime, state["standalone"], batch):
            return batch
    return None


def by_rank(batches: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The best of every search first, then the second best: no search crowds another out."""
    longest = max(map(len, batches), default=0)
    return [tuple(batch[i] for batch in batches if i < len(batch)) for i in range(longest)]


def show(runtime: Context, handles: Sequence[str]) -> None:
    """Show sources that were not shown yet."""
    run = runtime.context
    for handle in handles:
        hit = run.evidence.get(handle)
        if hit is not None and handle not in run.shown:
            run.shown.add(handle)
            emit(runtime, Source(hit))


def send(runtime: Context, sentence: Supported) -> None:
    """Number a checked sentence and send it, its sources first where they were not shown yet."""
    run = runtime.context
    numbers = [n for handle in sentence.handles if (n := run.numbering.cite(handle, sentence.text)) is not None]
    if not numbers:
        return
    show(runtime, sentence.handles)
    text = with_numbers(sentence.text, numbers)
    space = " " if run.sentences and run.language == "en" else ""
    run.sentences.append(text)
    emit(runtime, Token(space + text))
