"""An answer that was given today is given again while all that it depends on is the same; and kept, when it is whole.

One that has to be approved, was cut short, leaves something open, comes from a model that stood in for another, or
quotes what is not in our own documents is never kept.
"""

import logging
from dataclasses import replace

from agent.kept import memory
from agent.models.metered import MODEL_REPLACED
from agent.workflow import ending
from agent.workflow.run import Run
from agent.workflow.state import Change, Context, State, emit
from core.errors import StorageError
from core.records import Answer, Outcome, Token

logger = logging.getLogger(__name__)


async def recall(state: State, runtime: Context) -> Change:
    """End with the answer that was kept, where there is one and nobody has to approve it."""
    run, question = runtime.context, state["standalone"]
    if run.recall is None:
        return {}
    answer = await run.recall.find(question, run.mode, run.language)
    run.trace.note("cache", found=answer is not None)
    if answer is None or run.approvals & {citation.collection for citation in answer.citations}:
        return {}
    run.answer = replace(
        answer,
        question=state["question"],
        standalone_question=question,
        timings=dict(run.timings),
        model_calls=run.chat.calls,
    )
    emit(runtime, Token(answer.answer))
    ending.note(run)
    return {"messages": memory.remember(state["question"], answer.answer, question)}


async def keep(run: Run) -> None:
    """Keep the run's answer, where it is whole."""
    if run.recall is None or run.recall.found or run.answer is None or not whole(run, run.answer):
        return
    try:
        run.trace.note("cache", kept=await run.recall.keep(run.answer))
    except StorageError as error:
        # The answer is there, and is given.
        logger.warning("answer not kept", extra={"code": error.code})


def whole(run: Run, answer: Answer) -> bool:
    """Whether an answer may be given to others: all of it, sure of itself, and from documents alone."""
    complete = (
        answer.outcome is Outcome.ANSWERED and answer.verdict == "answer" and not (answer.missing or answer.notice)
    )
    replaced = any(step.data.get("reason") == MODEL_REPLACED for step in run.trace.steps)
    undisturbed = not (run.limit or run.notices or run.awaiting or replaced)
    ours = bool(answer.citations) and all(citation.origin == "library" for citation in answer.citations)
    free = not run.approvals & {citation.collection for citation in answer.citations}
    return complete and undisturbed and ours and free
