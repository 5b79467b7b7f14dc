"""Sub-agents: several sub-questions looked into at once, each on its own, for the same principal under the same policy.

Each searches by code, has what it found graded, and only where that does not answer lets a capable model search on
with its tools. They come back in the order asked. One that fails, or runs out of time or calls, leaves the others
alone; none starts others.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field

from agent.grounding.answering import SEVERAL_PASSAGES
from agent.models.metered import OutOfTime, OutOfTokens
from agent.questions.subquestions import MOST_QUESTIONS
from agent.workflow.exploring import explore
from agent.workflow.run import Finding, Limits, Run
from agent.workflow.searching import look, merged, passages_of
from agent.workflow.tools import make_tools, tool
from core.errors import InferenceError

logger = logging.getLogger(__name__)

# What one sub-agent may take: the share of the time that the question has left, and calls of its tool loop.
_SHARE: Final = 0.5
LIMITS: Final = Limits(model_calls=3, tool_calls=4)
# Passages of one sub-question that a tool's result shows.
_SHOWN: Final = 2


class ResearchInput(BaseModel):
    """Arguments of research_subtopics."""

    questions: list[str] = Field(
        description=f"Up to {MOST_QUESTIONS} questions that can each be understood alone, without pronouns",
        min_length=1,
        max_length=50,
    )


async def research(run: Run, questions: Sequence[str]) -> list[Finding]:
    """One finding for each question, in their order; what was found is the run's evidence. Errors: those of the
    database, which end all of them."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_one(run, question)) for question in questions]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from failed
    branches, findings = zip(*(task.result() for task in tasks), strict=True)
    for branch in branches:
        run.evidence.batches += branch.evidence.batches
        run.searched += branch.searched
    return list(findings)


async def _one(run: Run, question: str) -> tuple[Run, Finding]:
    async with run.gate:
        left = run.chat.deadline - asyncio.get_running_loop().time()
        branch = run.branch(question, _SHARE * left, LIMITS)
        finding = await _looked_into(branch)
    branch.trace.note(
        "subtopic",
        handles=list(finding.handles),
        limit=finding.limit,
        fault=finding.fault,
        model_calls=branch.chat.calls,
    )
    return branch, finding


async def _looked_into(run: Run) -> Finding:
    question, answering = run.question, run.answering
    try:
        handles = await run.chat.within(_found(run))
    except OutOfTime:
        return Finding(question, answering, limit="out_of_time")
    except OutOfTokens:
        return Finding(question, answering, limit="out_of_tokens")
    except InferenceError as error:
        logger.warning("sub-agent failed", extra={"code": error.code})
        return Finding(question, answering, fault=error.code)
    return Finding(question, answering, handles, limit=run.limit)


async def _found(run: Run) -> tuple[str, ...]:
    """The passages that answer a run's question, none where nothing found does."""
    first = await look(run, run.question)
    if await run.answering.passes(run.question, first):
        return first
    if not (run.chat.traits.capable and run.chat.traits.tools):
        return ()
    if await explore(run, run.question, run.question, make_tools(run)):
        run.limit = "out_of_calls"
    later = merged([run.named, *run.evidence.batches[1:]])[:SEVERAL_PASSAGES]
    return later if await run.answering.passes(run.question, later) else ()


# --- as a tool --------------------------------------------------------------------------------------------------------


def research_tool(run: Run) -> BaseTool:
    """`research_subtopics` for the model of a run; a sub-agent is not given it."""
    return tool(
        run,
        research_result,
        "research_subtopics",
        ResearchInput,
        f"Look into several questions at once, at most {MOST_QUESTIONS}. What was found comes in their order.",
    )


async def research_result(run: Run, questions: list[str]) -> str:
    """What sub-agents found of each question that had not been asked yet."""
    accepted = run.queue.offer(questions)
    if not accepted:
        return "Nothing new to look into: ask questions that name what they are about, and each only once."
    findings = await research(run, accepted)
    run.findings += findings
    each = run.budget // len(findings)
    return "\n\n".join(_told(run, finding, each) for finding in findings)


def _told(run: Run, finding: Finding, budget: int) -> str:
    best = finding.handles[:_SHOWN]
    passages = passages_of(run, best, finding.question, budget)
    return "\n".join([f"Question: {finding.question}", *(passages or ["Nothing that answers it was found."])])
