"""The tool loop: a model with tools searches further, seeded with the first search, within its limits."""

from typing import Any, Final

from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware, ToolCallLimitMiddleware
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langgraph.graph.state import CompiledStateGraph

from agent import memory, prompts
from agent.run import Run
from agent.state import Change, Context, State, status, within_time
from agent.steering import Steering, trim_history
from agent.tools import SHOWN_HITS, make_tools, result_of
from core.settings import Settings
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


@within_time
async def explore(state: State, runtime: Context) -> Change:
    """Let the model search further with its tools, within its limits, from the first search on."""
    run = runtime.context
    tools = allowed_tools(run.policy, make_tools(run))
    steering = Steering(run, tools)
    settings = run.settings
    loop: CompiledStateGraph[Any, Any, Any, Any] = create_agent(
        run.chat.model.langchain(),
        tools,
        system_prompt=prompts.agent_system([tool.name for tool in tools]),
        middleware=_middleware(settings, steering),
    )
    status(runtime, "searching", "status_exploring")
    limit = recursion_limit(settings.max_model_calls, settings.max_tool_calls)
    with run.timed("agent"):
        work = loop.ainvoke({"messages": seeded(state, run, steering)}, {"recursion_limit": limit})
        await run.chat.within(work, _LOOP_SHARE)
    if steering.limited:
        run.limit = "out_of_calls"
    return {}


def _middleware(settings: Settings, steering: Steering) -> list[Any]:
    return [
        ModelCallLimitMiddleware(run_limit=settings.max_model_calls, exit_behavior="end"),
        ToolCallLimitMiddleware(run_limit=settings.max_tool_calls, exit_behavior="end"),
        steering,
    ]


def seeded(state: State, run: Run, steering: Steering) -> list[AnyMessage]:
    """The loop's first messages: the session's history, the question, the first search as a call and its result."""
    history = memory.repaired(state.get("messages", []), run.settings.max_history)
    room = int(run.settings.prompt_budget * _HISTORY_SHARE)
    call = ToolCall(name="kb_search", args={"query": state["query"]}, id="first_search", type="tool_call")
    steering.seed(call)
    found = result_of(run, run.evidence.batches[0][:SHOWN_HITS], state["standalone"]) or "Nothing was found."
    asked = HumanMessage(content=state["standalone"])
    return [
        *trim_history([*history, asked], run.settings.max_history, room),
        AIMessage(content="", tool_calls=[call]),
        ToolMessage(content=found, tool_call_id="first_search", name="kb_search"),
    ]
