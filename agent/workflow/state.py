"""What goes through the graph: the state that is kept, and the ways in which a step speaks to the listener."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage
from langgraph.runtime import Runtime

from agent.kept import memory
from agent.language.words import say
from agent.models.metered import OutOfTime, OutOfTokens
from agent.questions.routing import Route
from agent.workflow.run import Run
from core.records import Event, Stage, Status


class State(TypedDict, total=False):
    """What the checkpointer keeps. Only `messages` outlives a turn: every other field is set anew by `guard`."""

    messages: Annotated[list[AnyMessage], memory.extended]
    question: str
    standalone: str
    talk: str | None
    path: Route
    query: str
    rewrites: int
    subtopics: list[str]
    hops: int
    refused: bool


Context = Runtime[Run]
Change = dict[str, Any]


def emit(runtime: Context, event: Event) -> None:
    """Hand an event to whoever listens."""
    runtime.stream_writer(event)


def status(runtime: Context, stage: Stage, key: str, **values: object) -> None:
    """Say in the asker's language what is going on."""
    emit(runtime, Status(stage, say(key, runtime.context.language, **values)))


Node = Callable[[State, Context], Awaitable[Change]]


def within_time(node: Node) -> Node:
    """A node that asks the model: when its time or its tokens are used up it changes nothing, and the run ends with
    what it has."""

    @wraps(node)
    async def wrapped(state: State, runtime: Context) -> Change:
        try:
            return await node(state, runtime)
        except OutOfTime:
            runtime.context.limit = "out_of_time"
        except OutOfTokens:
            runtime.context.limit = "out_of_tokens"
        return {}

    return wrapped
