"""A run's chat model: every call is counted, and none outlasts the time allowed for the question."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import TypeVar

from core.errors import IntramurosError
from inference.interfaces import ChatModel, Completion, Message

T = TypeVar("T")


class OutOfTime(IntramurosError):
    """The time allowed for one question ran out. Raise INTRAMUROS_ASK_TIMEOUT on a slow machine."""

    code = "out_of_time"
    status = 504


class MeteredChat:
    """A chat model whose calls are counted and end at the run's deadline with OutOfTime."""

    def __init__(self, chat: ChatModel, seconds: float) -> None:
        self.model = chat
        self.traits = chat.traits
        self.calls = 0
        self.deadline = asyncio.get_running_loop().time() + seconds

    def begin_call(self) -> None:
        """Count a call that is about to be made; raises OutOfTime when it is too late for one."""
        if asyncio.get_running_loop().time() >= self.deadline:
            raise OutOfTime
        self.calls += 1

    async def within(self, work: Awaitable[T], share: float = 1.0) -> T:
        """Await something for at most a share of the time that is left; raises OutOfTime."""
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(now + share * (self.deadline - now)) as scope:
                return await work
        except TimeoutError as error:
            if scope.expired():
                raise OutOfTime from error
            raise

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, stop: Sequence[str] = ()) -> Completion:
        self.begin_call()
        return await self.within(self.model.complete(messages, max_tokens=max_tokens, stop=stop))

    async def first_token(self, messages: Sequence[Message]) -> Mapping[str, float] | None:
        self.begin_call()
        return await self.within(self.model.first_token(messages))

    async def stream(self, messages: Sequence[Message], *, max_tokens: int) -> AsyncIterator[str]:
        self.begin_call()
        pieces = self.model.stream(messages, max_tokens=max_tokens)
        try:
            while True:
                try:
                    yield await self.within(anext(pieces))
                except StopAsyncIteration:
                    return
        finally:
            if hasattr(pieces, "aclose"):
                await pieces.aclose()
