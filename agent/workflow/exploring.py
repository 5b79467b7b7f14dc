"""The tool loop: a model with tools searches further, seeded with the first search, within its limits."""

from collections.abc import Sequence
from typing import Any, Final

from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware, ToolCallLimitMiddleware
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.graph.state import CompiledStateGraph

from agent.grounding.citations import marks
from agent.kept import memory
from agent.models import prompts
from agent.models.fitting import compacted
from agent.workflow.run import Limits, Run
from agent.workflow.steering import Steering
from agent.workflow.tools import SHOWN_HITS, told
from policy.tools import allowed_tools

# The share of the prompt budget that the session's history may take.
_HISTORY_SHARE: Final = 0.25
# The share of the time left that the loop may take: the answer needs the rest.
_LOOP_SHARE: Final = 0.6
# Steps of the loop beside its calls.
_SPARE_STEPS: Final = 8


def recursion_limit(model_calls: int, tool_calls: int) -> int:
    """Steps that the call limits allow and a few to spare, so that a limit ends a run before the graph dies of it: a
    model call takes four steps (the limits' own nodes before and after it), a tool call one."""
    return 4 * model_calls + tool_calls + _SPARE_STEPS


async def explore(
    run: Run, question: str, query: str, tools: Sequence[BaseTool], history: Sequence[AnyMessage] = ()
) -> bool:
    """Let the model search further for a question with these tools, from the first search on; whether it wanted more
    than its limits allow. What it finds is the run's evidence, and what it names in the end what it found telling."""
    offered = allowed_tools(run.policy, tools)
    steering = Steering(run, offered)
    loop: CompiledStateGraph[Any, Any, Any, Any] = create_agent(
        run.chat.model.langchain(),
        offered,
        system_prompt=prompts.agent_system([tool.name for tool in offered]),
        middleware=_middleware(run.limits, steering),
        # Its messages are of no use to a later turn, and several loops may run at once.
        checkpointer=False,
    )
    limit = recursion_limit(run.limits.model_calls, run.limits.tool_calls)
    messages = await _seeded(run, question, query, history, steering)
    with run.timed("agent"):
        ended = await run.chat.within(loop.ainvoke({"messages": messages}, {"recursion_limit": limit}), _LOOP_SHARE)
    known = [handle for handle in marks(ended["messages"][-1].text) if run.evidence.get(handle) is not None]
    run.named = tuple(dict.fromkeys(known))
    return steering.limited


def _middleware(limits: Limits, steering: Steering) -> list[Any]:
    return [
        ModelCallLimitMiddleware(run_limit=limits.model_calls, exit_behavior="end"),
        ToolCallLimitMiddleware(run_limit=limits.tool_calls, exit_behavior="end"),
        steering,
    ]


async def _seeded(
    run: Run, question: str, query: str, history: Sequence[AnyMessage], steering: Steering
) -> list[AnyMessage]:
    """The loop's first messages: the session's history, the question, the first search as a call and its result."""
    earlier = memory.repaired(history, run.settings.max_history)
    room = int(run.budget * _HISTORY_SHARE)
    call = ToolCall(name="kb_search", args={"query": query}, id="first_search", type="tool_call")
    steering.seed(call)
    found = await told(run, run.evidence.batches[0][:SHOWN_HITS], question)
    asked = HumanMessage(content=question)
    return [
        *compacted(earlier, room),
        asked,
        AIMessage(content="", tool_calls=[call]),
        ToolMessage(content=found, tool_call_id="first_search", name="kb_search"),
    ]
