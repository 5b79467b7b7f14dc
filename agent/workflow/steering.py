"""What is laid around the model and its tools in the loop: the reasons why it ends, and stays within its reach."""

import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from agent.language.text import plain
from agent.models import prompts
from agent.models.calls import attempted, text_calls
from agent.models.fitting import fitted
from agent.models.prompting import version_of
from agent.workflow.run import Run
from core.errors import InferenceError, IntramurosError, StorageError, ToolDenied
from inference import tokens
from inference.chat import REPLY_TOKENS, usage_of
from inference.interfaces import ChatModel, Ended
from policy.tools import allowed_tools, check_tool

logger = logging.getLogger(__name__)

_PUT_RIGHT: Final = (
    "That is no call that can be made. To search, reply with one JSON object only, such as "
    '{{"name": "{name}", "arguments": {{...}}}}. If nothing is missing, reply DONE.'
)


class RefusalUnnoted(StorageError):
    """A tool was refused and the audit log could not be written."""


class Steering(AgentMiddleware[Any, Any, Any]):
    """Offers only what the policy allows, understands calls written as text, ends the loop at a repeated call, and
    turns a tool's fault into a neutral message. `limited` says that the model wanted more than it was allowed."""

    def __init__(self, run: Run, tools: Sequence[BaseTool]) -> None:
        super().__init__()
        self._run = run
        self._offered = frozenset(tool.name for tool in allowed_tools(run.policy, tools))
        self._made: set[str] = set()
        self._model_calls = 0
        self.limited = False

    def seed(self, call: ToolCall) -> None:
        """Remember a call that was made by code, so that the model's repetition of it is one."""
        self._made.add(_key(call))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """One model call: allowed tools only, within the context, the reply's calls read and judged. A call that cannot
        be read is asked for once more; a model that still makes none ends the loop with what was found."""
        allowed = [tool for tool in request.tools if isinstance(tool, BaseTool) and tool.name in self._offered]
        tools = allowed_tools(self._run.policy, allowed)
        reply, calls = await self._asked(request.override(tools=list(tools)), tools, handler)
        if not calls and attempted(reply.text, self._offered) and not self._exhausted():
            self._run.trace.note("tool", name="", fault="unreadable_call")
            again = HumanMessage(content=_PUT_RIGHT.format(name=min(self._offered, default="")))
            repeated = request.override(tools=list(tools), messages=[*request.messages, reply, again])
            reply, calls = await self._asked(repeated, tools, handler)
        calls = self._fresh(calls)
        self.limited = bool(calls) and self._exhausted()
        return ModelResponse(result=[AIMessage(content="" if calls else plain(reply.text), tool_calls=calls)])

    async def _asked(
        self,
        request: ModelRequest[Any],
        tools: Sequence[BaseTool],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> tuple[AIMessage, list[ToolCall]]:
        """The model's reply to a request made to fit, and the calls in it."""
        definitions = [convert_to_openai_tool(tool) for tool in tools]
        system = [request.system_message] if request.system_message is not None else []

        async def call(model: ChatModel, ended: Ended) -> AIMessage:
            room = model.traits.context_tokens - REPLY_TOKENS - tokens.of_prompt(system, definitions)
            fitting = request.override(model=model.langchain(), messages=fitted(request.messages, room))
            reply = (await handler(fitting)).result[-1]
            if not isinstance(reply, AIMessage):
                raise InferenceError
            ended(usage_of(reply))
            return reply

        self._model_calls += 1
        reply = await self._run.chat.ask("agent", version_of(prompts.AGENT_SYSTEM), call)
        return reply, list(reply.tool_calls) or text_calls(reply.text, self._offered)

    def _fresh(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        # A repeated call means that the model has nothing further in mind: without a call the loop ends.
        fresh = [call for call in calls if _key(call) not in self._made]
        self._made.update(map(_key, fresh))
        return fresh

    def _exhausted(self) -> bool:
        limits = self._run.limits
        return self._model_calls >= limits.model_calls or len(self._made) - 1 > limits.tool_calls

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """One tool call: allowed once more, and whatever goes wrong told without its details."""
        call = request.tool_call
        try:
            check_tool(self._run.policy, call["name"], self._offered)
            return await handler(request)
        except ToolDenied as denied:
            await self._note(call)
            text = denied.message
        except RefusalUnnoted:
            raise
        except IntramurosError as error:
            logger.warning("tool failed", extra={"tool": call["name"], "code": error.code})
            self._run.trace.note("tool", name=call["name"], fault=error.code)
            text = "The tool could not be used just now."
        except Exception as error:  # noqa: BLE001 - a tool's fault of any kind must not carry its text to the model
            logger.warning("tool failed", extra={"tool": call["name"], "error": type(error).__name__})
            self._run.trace.note("tool", name=call["name"], fault=type(error).__name__)
            text = "The tool could not be used just now."
        return ToolMessage(content=text, tool_call_id=call["id"], name=call["name"], status="error")

    async def _note(self, call: ToolCall) -> None:
        """Where a refusal cannot be noted the run fails, a sub-agent's too: none goes behind an auditor's back."""
        self._run.trace.note("tool", name=call["name"], refused=True)
        try:
            await self._run.retriever.note_refusal()
        except StorageError as error:
            raise RefusalUnnoted from error


def _key(call: ToolCall) -> str:
    return json.dumps([call["name"], call["args"]], sort_keys=True, ensure_ascii=False).casefold()
