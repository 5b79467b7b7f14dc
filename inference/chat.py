"""The one adapter over LangChain's chat models, behind which the three providers are thin.

It gives every call a deadline, retries what a busy server refuses, translates each foreign error once, checks that a
reply came to its end, and takes thinking out. Closing a stream, or cancelling the task that reads it, closes the
connection, upon which the server stops.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, Literal, Protocol

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    message_chunk_to_message,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

from core.errors import InferenceError, IntramurosError, ModelTimedOut
from inference import tokens
from inference.interfaces import Completion, Ended, Message, Traits, Usage
from inference.thinking import ThinkingFilter, without_thinking

log = logging.getLogger(__name__)

REPLY_TOKENS = 512  # limit of a call through `langchain()`, which has no argument for it
_MESSAGES: Mapping[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
# Waits before the second and third try of a call that a busy or just ended server refused, in seconds.
RETRY_DELAYS = (0.5, 2.0)


class Provider(Protocol):
    """What differs between model servers. `foreign` lists the exceptions that `translate` knows."""

    kind: Literal["ollama", "openai", "embedded"]
    name: str
    identity: str
    traits: Traits
    foreign: tuple[type[Exception], ...]

    def use(self) -> AbstractAsyncContextManager[BaseChatModel]:
        """The LangChain model, ready to be called for as long as the context lasts."""
        ...

    def options(
        self, *, max_tokens: int, stop: Sequence[str], schema: Mapping[str, Any] | None = None, top: int = 0
    ) -> dict[str, Any]:
        """Keyword arguments of one call; `top` asks for that many alternatives of each token."""
        ...

    def ending(self, reply: AIMessageChunk, prompt: Sequence[BaseMessage]) -> Usage:
        """Check a whole reply. Raises InferenceError when it was cut off, PromptTooLong when its prompt was."""
        ...

    def first_token(self, reply: AIMessageChunk) -> Mapping[str, float] | None:
        """Probabilities of the alternatives to the first token of a reply, where the server gave them."""
        ...

    def translate(self, error: Exception) -> IntramurosError:
        """Our error for one of `foreign`. `details["busy"]` marks one that is worth trying again."""
        ...

    async def close(self) -> None:
        """Let connections go."""
        ...


class LangChat:
    """Implements `inference.interfaces.ChatModel` over any provider."""

    def __init__(self, provider: Provider, *, timeout: float, retry_delays: Sequence[float] = RETRY_DELAYS) -> None:
        self.name = provider.name
        self.identity = provider.identity
        self.provider = provider.kind
        self.traits = provider.traits
        self._provider = provider
        self._timeout = timeout
        self._retry_delays = tuple(retry_delays)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        options = self._provider.options(max_tokens=max_tokens, stop=stop, schema=schema)
        reply, usage = await self.whole(_prompt(messages), options, max_tokens)
        return Completion(without_thinking(str(reply.text)), usage.finish, usage.prompt_tokens, usage.completion_tokens)

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int, stop: Sequence[str] = (), ended: Ended | None = None
    ) -> AsyncIterator[str]:
        options = self._provider.options(max_tokens=max_tokens, stop=stop)
        thinking = ThinkingFilter()
        async with aclosing(self.pieces(_prompt(messages), options, max_tokens, ended)) as pieces:
            async for piece in pieces:
                if text := thinking.feed(str(piece.text)):
                    yield text
        if text := thinking.finish():
            yield text

    async def first_token(
        self, messages: Sequence[Message], *, top: int = 20, ended: Ended | None = None
    ) -> Mapping[str, float] | None:
        if not self.traits.logprobs:
            return None
        options = self._provider.options(max_tokens=1, stop=(), top=top)
        reply, usage = await self.whole(_prompt(messages), options, 1)
        if ended is not None:
            ended(usage)
        return self._provider.first_token(reply)

    def langchain(self) -> BaseChatModel:
        return GuardedModel(chat=self)

    async def close(self) -> None:
        await self._provider.close()

    def options(self, **arguments: Any) -> dict[str, Any]:
        """The provider's keyword arguments for one call."""
        return self._provider.options(**arguments)

    async def pieces(
        self, prompt: Sequence[BaseMessage], options: Mapping[str, Any], max_tokens: int, ended: Ended | None = None
    ) -> AsyncGenerator[AIMessageChunk, None]:
        """A checked reply as it comes, thinking included. A refused call is tried again, a begun one never."""
        tokens.check_room(prompt, options.get("tools") or (), max_tokens, self.traits.context_tokens)
        for delay in (*self._retry_delays, None):
            begun = False
            try:
                async with aclosing(self._once(prompt, options, ended)) as pieces:
                    async for piece in pieces:
                        begun = True
                        yield piece
                return
            except InferenceError as error:
                if begun or delay is None or not error.details.get("busy"):
                    raise
                await self._wait(delay, error)

    async def whole(
        self, prompt: Sequence[BaseMessage], options: Mapping[str, Any], max_tokens: int
    ) -> tuple[AIMessageChunk, Usage]:
        """A checked reply once it is whole, thinking included. One that broke off is tried again like a refused one."""
        tokens.check_room(prompt, options.get("tools") or (), max_tokens, self.traits.context_tokens)
        for delay in (*self._retry_delays, None):
            usages: list[Usage] = []
            try:
                pieces = [piece async for piece in self._once(prompt, options, usages.append)]
                return sum(pieces[1:], start=pieces[0]), usages[0]
            except InferenceError as error:
                if delay is None or not error.details.get("busy"):
                    raise
                await self._wait(delay, error)
        raise InferenceError

    async def _wait(self, delay: float, error: InferenceError) -> None:
        log.info("model call failed, trying again", extra={"code": error.code, "model": self.name})
        await asyncio.sleep(delay)

    async def _once(
        self, prompt: Sequence[BaseMessage], options: Mapping[str, Any], ended: Ended | None
    ) -> AsyncGenerator[AIMessageChunk, None]:
        reply: AIMessageChunk | None = None
        try:
            async with self._provider.use() as model, aclosing(self._read(model, prompt, options)) as pieces:
                async for piece in pieces:
                    reply = piece if reply is None else reply + piece
                    yield piece
        except TimeoutError as error:
            raise ModelTimedOut from error
        except self._provider.foreign as error:
            raise self._provider.translate(error) from error
        if reply is None:
            raise InferenceError("The model server sent nothing. Try again.", busy=True)
        usage = self._provider.ending(reply, prompt)
        if ended is not None:
            ended(usage)

    async def _read(
        self, model: BaseChatModel, prompt: Sequence[BaseMessage], options: Mapping[str, Any]
    ) -> AsyncGenerator[AIMessageChunk, None]:
        """Read in a task of its own: ending that closes the connection at once, however deep LangChain holds it.

        Closing the outermost of nested generators would leave the inner ones, and the connection, to the collector.
        """
        deadline = asyncio.get_running_loop().time() + self._timeout
        arrived: asyncio.Queue[AIMessageChunk | None] = asyncio.Queue()

        async def read() -> None:
            # Only the outer model reports to callbacks: a caller would see every piece twice otherwise.
            async for piece in model.astream(list(prompt), config={"callbacks": []}, **options):
                arrived.put_nowait(piece)

        task = asyncio.create_task(read())
        task.add_done_callback(lambda _: arrived.put_nowait(None))
        try:
            while True:
                async with asyncio.timeout_at(deadline):
                    piece = await arrived.get()
                if piece is None:
                    break
                yield piece
            task.result()  # raises what went wrong
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


class GuardedModel(BaseChatModel):
    """A LangChain model with all of the adapter's guards, for LangGraph. Asynchronous only: a call in a thread cannot
    be stopped."""

    chat: Any

    @property
    def _llm_type(self) -> str:
        return "intramuros"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer tools. `tool_choice` is dropped: no server that we use obeys it."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        raise NotImplementedError("use ainvoke or astream")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply, _ = await self.chat.whole(messages, *self._call(stop, kwargs))
        visible = reply.model_copy(update={"content": without_thinking(str(reply.text))})
        return ChatResult(generations=[ChatGeneration(message=message_chunk_to_message(visible))])

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        thinking = ThinkingFilter()
        async with aclosing(self.chat.pieces(messages, *self._call(stop, kwargs))) as pieces:
            async for piece in pieces:
                text = thinking.feed(str(piece.text))
                chunk = ChatGenerationChunk(message=piece.model_copy(update={"content": text}))
                if run_manager:
                    await run_manager.on_llm_new_token(text, chunk=chunk)
                yield chunk
        if rest := thinking.finish():
            yield ChatGenerationChunk(message=AIMessageChunk(content=rest))

    def _call(self, stop: Sequence[str] | None, options: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
        """The provider's keyword arguments of a call with these of LangChain's, and its limit of tokens."""
        others = {name: value for name, value in options.items() if name != "max_tokens"}
        max_tokens = int(options.get("max_tokens", REPLY_TOKENS))
        return {**self.chat.options(max_tokens=max_tokens, stop=stop or ()), **others}, max_tokens


def _prompt(messages: Sequence[Message]) -> list[BaseMessage]:
    return [_MESSAGES[message.role](content=message.content) for message in messages]


def usage_of(reply: AIMessage) -> Usage:
    """What the call took that a reply of `langchain()` came from; such a reply was checked before."""
    said, counted = reply.response_metadata, reply.usage_metadata
    finish = said.get("done_reason") or said.get("finish_reason")
    read, wrote = (counted["input_tokens"], counted["output_tokens"]) if counted else (0, 0)
    return Usage("length" if finish == "length" else "stop", read, wrote)


def finish_of(reason: str | None) -> Literal["stop", "length"]:
    """The two ways in which a reply may end. Raises InferenceError for none or another."""
    if reason == "length":
        return "length"
    if reason in ("stop", "tool_calls", "function_call"):
        return "stop"
    raise InferenceError("The model server ended its reply early. Try again.", busy=True)
