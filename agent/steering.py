"""What is laid around the model and its tools in the loop: the reasons why it ends, and stays within its reach."""

import json
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Final
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from agent.run import Run
from agent.text import estimate_tokens, plain
from core.errors import IntramurosError, ToolDenied
from policy.tools import allowed_tools, check_tool

logger = logging.getLogger(__name__)

# Tokens left free in the context for the system prompt, the tools' schemas and the reply.
_RESERVE: Final = 900
_FENCE: Final = re.compile(r"```[a-z_]*\s*(.*?)```", re.DOTALL)
_TAG: Final = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)


def text_calls(text: str, offered: Collection[str]) -> list[ToolCall]:
    """Tool calls that a small model wrote as text: bare or fenced JSON, or in <tool_call> tags, that names an offered
    tool. Anything else is just text."""
    cleaned = plain(text)
    blocks = _TAG.findall(cleaned) or _FENCE.findall(cleaned) or [cleaned]
    calls: list[ToolCall] = []
    for block in blocks:
        for value in _values(block):
            name, arguments = value.get("name"), value.get("arguments", value.get("parameters", {}))
            if isinstance(name, str) and name in offered and isinstance(arguments, dict):
                calls.append(ToolCall(name=name, args=arguments, id=uuid4().hex, type="tool_call"))
    return calls


def _values(block: str) -> list[dict[str, Any]]:
    # A chat template that doubles its braces teaches the model to write {{...}}.
    text = block.strip()
    if text.startswith("{{"):
        text = re.sub(r"\}\}\s*\Z", "}", text[1:])
    decoder = json.JSONDecoder()
    values: list[dict[str, Any]] = []
    while text.startswith(("{", "[")):
        try:
            value, end = decoder.raw_decode(text)
        except ValueError:
            break
        values += [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
        text = text[end:].lstrip(" \n,;")
    return values


def trim_history(messages: Sequence[AnyMessage], most: int, tokens: int) -> list[AnyMessage]:
    """The last messages that fit both limits, whole exchanges only: it never starts with a tool's result, and the
    question being answered with all that follows it always stays."""
    asked = max((i for i, message in enumerate(messages) if isinstance(message, HumanMessage)), default=0)
    kept = list(messages[asked:])
    room = tokens - sum(estimate_tokens(message.text) for message in kept)
    for message in reversed(messages[:asked]):
        room -= estimate_tokens(message.text)
        if room < 0 or len(kept) >= most:
            break
        kept.insert(0, message)
    while kept and isinstance(kept[0], (ToolMessage, AIMessage)) and len(kept) > len(messages) - asked:
        kept.pop(0)
    return kept


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
        """One model call: allowed tools only, history trimmed, the reply's calls read and judged."""
        settings = self._run.settings
        tokens = self._run.chat.traits.context_tokens - _RESERVE
        allowed = [tool for tool in request.tools if isinstance(tool, BaseTool) and tool.name in self._offered]
        trimmed = request.override(
            tools=list(allowed_tools(self._run.policy, allowed)),
            messages=trim_history(request.messages, settings.max_history, tokens),
        )
        self._run.chat.begin_call()
        self._model_calls += 1
        response = await self._run.chat.within(handler(trimmed))
        reply = response.result[-1]
        if not isinstance(reply, AIMessage):
            return response
        calls = self._fresh(reply.tool_calls or text_calls(reply.text, self._offered))
        self.limited = bool(calls) and self._exhausted()
        return ModelResponse(result=[AIMessage(content="" if calls else plain(reply.text), tool_calls=calls)])

    def _fresh(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        # A repeated call means that the model has nothing further in mind: without a call the loop ends.
        fresh = [call for call in calls if _key(call) not in self._made]
        self._made.update(map(_key, fresh))
        return fresh

    def _exhausted(self) -> bool:
        settings = self._run.settings
        return self._model_calls >= settings.max_model_calls or len(self._made) - 1 > settings.max_tool_calls

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """One tool call: allowed once more, and whatever goes wrong told without its details."""
        call = request.tool_call
        try:
            check_tool(self._run.policy, call["name"], self._offered)
            return await handler(request)
        except ToolDenied as denied:
            # Where it cannot be noted the run fails: nothing is refused behind an auditor's back.
            await self._run.retriever.note_refusal()
            text = denied.message
        except IntramurosError as error:
            logger.warning("tool failed", extra={"tool": call["name"], "code": error.code})
            text = "The tool could not be used just now."
        except Exception as error:  # noqa: BLE001 - a tool's fault of any kind must not carry its text to the model
            logger.warning("tool failed", extra={"tool": call["name"], "error": type(error).__name__})
            text = "The tool could not be used just now."
        return ToolMessage(content=text, tool_call_id=call["id"], name=call["name"], status="error")


def _key(call: ToolCall) -> str:
    return json.dumps([call["name"], call["args"]], sort_keys=True, ensure_ascii=False).casefold()
