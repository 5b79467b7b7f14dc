"""The agent's way: the question divided, its parts looked into, and what was found judged before anything is answered.

`plan` divides, by code or by a capable model. `investigate` lets the model search on with its tools, for a question
that is one; `research` sends sub-agents, for one that is several. `assess` lists what is missing, asks for that once
more while it is new, and otherwise says what is answered from.
"""

from collections.abc import Sequence
from typing import Final

from agent.grounding.answering import SEVERAL_PASSAGES
from agent.questions import deciding
from agent.questions.routing import Decision
from agent.questions.subquestions import grounded, self_contained
from agent.questions.sufficiency import clauses, uncovered
from agent.workflow.exploring import explore
from agent.workflow.run import Run, Task
from agent.workflow.searching import look_into, merged, passages_of
from agent.workflow.state import Change, Context, State, status, within_time
from agent.workflow.steps import note_route, passes
from agent.workflow.subagents import research as research_all
from agent.workflow.subagents import research_tool
from agent.workflow.tools import make_tools

# Rounds of sub-agents for one question, and searches whose hits are graded by themselves before it is given up.
MAX_HOPS: Final = 3
MAX_BATCHES: Final = 3
# Passages that a model named which come before all others: it may have named what a document told it to.
_MOST_NAMED: Final = SEVERAL_PASSAGES // 2


@within_time
async def plan(state: State, runtime: Context) -> Change:
    """Divide the question. One that stays whole is investigated as it is; so is one that was taken for a single fact,
    which the quick way did not find."""
    run, question = runtime.context, state["standalone"]
    run.queue.know(question)
    offered, by = [question], "code"
    if state["path"] == "quick":
        note_route(run, Decision("agent", "insufficient"))
    else:
        with run.timed("plan"):
            offered, by = await _divided(run, question)
    accepted = run.queue.offer(offered) if len(offered) > 1 else []
    run.trace.note("decompose", by=by, offered=offered, accepted=accepted, counts=dict(run.queue.counts))
    return {"path": "agent", "refused": False, "subtopics": accepted if len(accepted) > 1 else []}


async def _divided(run: Run, question: str) -> tuple[list[str], str]:
    """The questions that a question is made of, and who says so."""
    if run.chat.traits.capable:
        divided = await run.chat.decide(deciding.divide(run.language, question), deciding.Divided)
        if divided is not None:
            return divided.questions, "model"
    asked = clauses(question)
    return (asked if all(map(self_contained, asked)) else [question]), "code"


@within_time
async def investigate(state: State, runtime: Context) -> Change:
    """Let the model search further with its tools, within its limits, from the first search on."""
    run = runtime.context
    status(runtime, "searching", "status_exploring")
    tools = make_tools(run)
    if run.chat.traits.capable:
        tools.append(research_tool(run))
    if await explore(run, state["standalone"], state["query"], tools, state.get("messages", [])):
        run.limit = "out_of_calls"
    return {}


@within_time
async def research(state: State, runtime: Context) -> Change:
    """Send a sub-agent for each sub-question."""
    run, questions = runtime.context, state["subtopics"]
    status(runtime, "searching", "status_topics", n=len(questions), first=questions[0])
    with run.timed("agent"):
        run.findings += await research_all(run, questions)
    return {"subtopics": [], "hops": state["hops"] + 1}


@within_time
async def assess(state: State, runtime: Context) -> Change:
    """List what is missing; look for it once more where that is new and a hop is left; else say what to answer from."""
    run = runtime.context
    judge = _assessed if run.chat.traits.capable else _graded
    refused, missing = await judge(state, runtime)
    run.missing = tuple(missing)
    capable = run.chat.traits.capable
    further = run.queue.offer(missing) if capable and state["hops"] < MAX_HOPS and not run.limit else []
    if refused and capable and not further:
        refused, missing = await _closer(state, runtime, missing)
        run.missing = tuple(missing)
    run.trace.note(
        "sufficiency",
        verdict="cannot" if refused else "caveat" if missing else "answer",
        missing=list(missing),
        further=further,
        counts=dict(run.queue.counts),
    )
    return {"refused": refused, "subtopics": further}


async def _assessed(state: State, runtime: Context) -> tuple[bool, Sequence[str]]:
    """A capable model's judgement over the best of all that was found; the gate's where it gives none, or gives up."""
    run, question = runtime.context, state["standalone"]
    found = [finding for finding in run.findings if finding.handles]
    without = [finding.question for finding in run.findings if not finding.handles]
    # What the model named first, then what answers a sub-question and the best of every other search in turn: none
    # crowds another out.
    pool = merged([*(finding.handles for finding in found), *run.evidence.batches])
    best = tuple(dict.fromkeys([*run.named[:_MOST_NAMED], *pool]))[: max(SEVERAL_PASSAGES, len(found))]
    run.tasks = [Task(question, best, run.answering)]
    if len(found) > SEVERAL_PASSAGES:
        # More than fit into one prompt: each part is answered from its own.
        run.tasks = [Task(finding.question, finding.handles, finding.answering) for finding in found]
    if not best:
        return True, without
    passages = passages_of(run, best, question, run.budget)
    judged = await run.chat.decide(deciding.assess(run.language, question, passages), deciding.Assessed)
    known = "\n".join((question, *passages))
    open_parts = [part for part in judged.missing if grounded(part, known)] if judged else []
    missing = list(dict.fromkeys([*without, *open_parts]))
    run.judged = judged is not None
    gave_up = judged is None or judged.verdict == "cannot"
    return gave_up and not await passes(run, runtime, question, best), missing


async def _graded(state: State, runtime: Context) -> tuple[bool, Sequence[str]]:
    """A small model's grades of what was found, for each part or for the whole."""
    run, question = runtime.context, state["standalone"]
    run.tasks = [
        Task(finding.question, finding.handles, finding.answering) for finding in run.findings if finding.handles
    ]
    if run.tasks:
        return False, [finding.question for finding in run.findings if not finding.handles]
    refused = await _apart(run, runtime, question, run.evidence.batches)
    return refused, () if refused else _lacking(run, question)


async def _closer(state: State, runtime: Context, missing: Sequence[str]) -> tuple[bool, Sequence[str]]:
    """Before a capable model gives up: the question itself in the document that its searches led to, and what single
    searches found, each judged alone. What one holds may have been crowded out of the best of all."""
    run, question = runtime.context, state["standalone"]
    if len(run.searched) > 1:
        await look_into(run, run.searched[-1], question)
    *earlier, latest = run.evidence.batches
    if await _apart(run, runtime, question, [latest, *earlier]):
        return True, missing
    return False, _lacking(run, question)


async def _apart(run: Run, runtime: Context, question: str, batches: Sequence[tuple[str, ...]]) -> bool:
    """Whether none of these searches found an answer, each graded by itself; the first that did is answered from."""
    for batch in list(dict.fromkeys(filter(None, batches)))[:MAX_BATCHES]:
        if await passes(run, runtime, question, batch):
            run.tasks = [Task(question, batch, run.answering)]
            return False
    return True


def _lacking(run: Run, question: str) -> Sequence[str]:
    """The parts of a question of which no passage that is answered from speaks."""
    return uncovered(question, [hit.text for task in run.tasks for hit in run.evidence.hits(task.handles)])
