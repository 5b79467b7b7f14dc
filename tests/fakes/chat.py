"""A scripted chat model: the replies are given beforehand, every call is kept for the test to look at.

    chat = ScriptedChat(replies=["Sixteen weeks."], first_tokens=[{"The": 0.9, "NOT": 0.05}],
                        turns=[tool_call("kb_search", query="parental leave"), AIMessage("done")])

`replies` answers `complete` and `stream`, `first_tokens` answers `first_token`, `turns` answers the model of
`langchain()`. Each is a sequence, used up in order, or a function of the messages. An item that is an exception is
raised. A call without a reply left is an AssertionError: a test says how many calls it expects.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast
from uuid import uuid4

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

from inference.interfaces import Completion, Ended, Message, Traits, Usage

T = TypeVar("T")
Script = Sequence[T | Exception] | Callable[[Sequence[Any]], T | Exception]

SMALL = Traits(tools=True, logprobs=True, capable=False, context_tokens=4096)
CAPABLE = Traits(tools=True, logprobs=True, capable=True, context_tokens=32768)


@dataclass(frozen=True, slots=True)
class Call:
    """One call that was made."""

    kind: Literal["complete", "stream", "first_token", "langchain"]
    messages: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


def tool_call(name: str, **arguments: Any) -> AIMessage:
    """An assistant's message that calls one tool."""
    return AIMessage(content="", tool_calls=[ToolCall(name=name, args=arguments, id=uuid4().hex, type="tool_call")])


class _Player:
    """Plays one script."""

    def __init__(self, name: str, script: Script[Any]) -> None:
        self.name = name
        self.function = script if callable(script) else None
        self.items: Iterator[Any] = iter(()) if callable(script) else iter(script)

    def next(self, messages: Sequence[Any]) -> Any:
        if self.function is not None:
            item = self.function(messages)
        else:
            missing = object()
            item = next(self.items, missing)
            assert item is not missing, f"unexpected call: no {self.name} left in the script"
        if isinstance(item, Exception):
            raise item
        return item


class ScriptedChat:
    """Implements `inference.interfaces.ChatModel`. `calls` lists what was asked, `tools` what was offered last."""

    def __init__(
        self,
        replies: Script[str] = (),
        *,
        first_tokens: Script[Mapping[str, float] | None] = (),
        turns: Script[AIMessage] = (),
        traits: Traits = SMALL,
        name: str = "scripted",
    ) -> None:
        self.name = name
        self.identity = f"scripted:{name}"
        self.provider: Literal["ollama", "openai", "embedded"] = "embedded"
        self.traits = traits
        self.calls: list[Call] = []
        self.tools: list[dict[str, Any]] = []
        self.closed = False
        self.cancelled = 0  # streams that were left before their end
        self._replies = _Player("replies", replies)
        self._first_tokens = _Player("first_tokens", first_tokens)
        self._turns = _Player("turns", turns)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        options = {"max_tokens": max_tokens, "stop": tuple(stop), "schema": schema}
        self.calls.append(Call("complete", tuple(messages), options))
        text = self._replies.next(messages)
        return Completion(text=text, finish="stop", prompt_tokens=_read(messages), completion_tokens=len(text) // 4)

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int, stop: Sequence[str] = (), ended: Ended | None = None
    ) -> AsyncIterator[str]:
        self.calls.append(Call("stream", tuple(messages), {"max_tokens": max_tokens, "stop": tuple(stop)}))
        text = self._replies.next(messages)
        try:
            for start in range(0, len(text), 4):
                yield text[start : start + 4]
            if ended is not None:
                ended(Usage("stop", _read(messages), len(text) // 4))
        except GeneratorExit:
            self.cancelled += 1
            raise

    async def first_token(
        self, messages: Sequence[Message], *, top: int = 20, ended: Ended | None = None
    ) -> Mapping[str, float] | None:
        self.calls.append(Call("first_token", tuple(messages), {"top": top}))
        found = self._first_tokens.next(messages)
        if ended is not None:
            ended(Usage("stop", _read(messages), 1))
        return cast("Mapping[str, float] | None", found)

    def langchain(self) -> BaseChatModel:
        return _ScriptedModel(owner=self)

    def turn(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """The next reply of the LangChain model."""
        self.calls.append(Call("langchain", tuple(messages)))
        return cast("AIMessage", self._turns.next(messages))

    async def close(self) -> None:
        self.closed = True


def _read(messages: Sequence[Message]) -> int:
    return sum(len(message.content) for message in messages) // 4


class _ScriptedModel(BaseChatModel):
    owner: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.owner.turn(messages))])

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        reply = self.owner.turn(messages)
        yield ChatGenerationChunk(message=AIMessageChunk(content=reply.content, tool_calls=reply.tool_calls))

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        self.owner.tools = [convert_to_openai_tool(tool) for tool in tools]
        return self
