"""A run's chat model: every call is counted, timed and traced, within what one question may take; and where the model
fails, another takes over for the rest of the run."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from agent.language.text import plain
from agent.models.prompting import Prompt
from agent.models.trace import Trace
from core.errors import InferenceError, IntramurosError, PromptTooLong
from inference.interfaces import ChatModel, Completion, Ended, Message, Traits, Usage

T = TypeVar("T")
Form = TypeVar("Form", bound=BaseModel)

# Why a step of kind `limit` is in a trace: another model took over.
MODEL_REPLACED: Final = "model_replaced"
_NO_BUDGET: Final = 10**9
_DECISION_TOKENS: Final = 200


class LimitReached(IntramurosError):
    """What one question may take was taken. Ask something simpler, or raise the limit."""

    code = "limit_reached"
    status = 504


class OutOfTime(LimitReached):
    """The time allowed for one question ran out. Raise INTRAMUROS_ASK_TIMEOUT on a slow machine."""

    code = "out_of_time"


class OutOfTokens(LimitReached):
    """The tokens allowed for one question were used up. Raise INTRAMUROS_TOKEN_BUDGET, or ask something simpler."""

    code = "out_of_tokens"


@dataclass(slots=True)
class Meter:
    """What a run has taken so far, whatever models took it. `deadline` in seconds of the loop's clock."""

    deadline: float
    budget: int = _NO_BUDGET
    trace: Trace = field(default_factory=Trace)
    calls: int = 0
    tokens: int = 0
    above: "Meter | None" = None

    def part(self, seconds: float) -> "Meter":
        """A meter for a part of the run: what it counts is counted here too, and its deadline is not later."""
        deadline = min(self.deadline, asyncio.get_running_loop().time() + seconds)
        return Meter(deadline, self.budget, self.trace, above=self)

    def begin(self) -> None:
        """Count a call that is about to be made; raises OutOfTime or OutOfTokens when none may be."""
        if asyncio.get_running_loop().time() >= self.deadline:
            raise OutOfTime
        if self.tokens >= self.budget:
            raise OutOfTokens
        if self.above is not None:
            self.above.begin()
        self.calls += 1

    def spend(self, tokens: int) -> None:
        """Count what a call took."""
        self.tokens += tokens
        if self.above is not None:
            self.above.spend(tokens)


class MeteredChat:
    """A chat model whose calls are counted, noted in the trace, and end at the run's deadline with OutOfTime.

    A model that fails before it said anything is replaced by the fallback, once and for the rest of the run.
    """

    def __init__(
        self,
        chat: ChatModel,
        seconds: float,
        *,
        budget: int = _NO_BUDGET,
        fallback: ChatModel | None = None,
        meter: Meter | None = None,
    ) -> None:
        """`meter`: one that is shared, instead of one of `seconds` and `budget`."""
        self.model = chat
        self.meter = meter or Meter(asyncio.get_running_loop().time() + seconds, budget)
        self._fallback = fallback if fallback is not chat else None

    @property
    def traits(self) -> Traits:
        """What the model now in use can do."""
        return self.model.traits

    @property
    def calls(self) -> int:
        """Model calls of the run so far."""
        return self.meter.calls

    @property
    def deadline(self) -> float:
        """When the run has to be over, in seconds of the loop's clock."""
        return self.meter.deadline

    def beside(self, chat: ChatModel) -> "MeteredChat":
        """Another model on the same meter, this one its fallback; this one itself where it is the same model."""
        return self if chat is self.model else MeteredChat(chat, 0, fallback=self.model, meter=self.meter)

    def branch(self, seconds: float) -> "MeteredChat":
        """The same model on a meter for a part of the run, at most so many seconds long."""
        return MeteredChat(self.model, 0, fallback=self._fallback, meter=self.meter.part(seconds))

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

    async def ask(
        self, name: str, version: str, call: Callable[[ChatModel, Ended], Awaitable[T]], **more: str | int
    ) -> T:
        """Make one call of any kind: counted, timed, noted under the prompt's name, repeated with the fallback."""
        while True:
            try:
                with self._noted(name, version, **more) as ended:
                    return await self.within(call(self.model, ended))
            except InferenceError as error:
                self._replace(error)

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        stop: Sequence[str] = (),
        schema: Mapping[str, object] | None = None,
    ) -> Completion:
        async def call(model: ChatModel, ended: Ended) -> Completion:
            return _told(await model.complete(messages, max_tokens=max_tokens, stop=stop, schema=schema), ended)

        return await self.ask(*_of(messages), call)

    async def first_token(self, messages: Sequence[Message]) -> Mapping[str, float] | None:
        async def call(model: ChatModel, ended: Ended) -> Mapping[str, float] | None:
            return await model.first_token(messages, ended=ended)

        return await self.ask(*_of(messages), call)

    async def decide(
        self, messages: Sequence[Message], form: type[Form], *, max_tokens: int = _DECISION_TOKENS
    ) -> Form | None:
        """A decision as JSON that fits the form's schema, which the server is told. A reply that does not fit is put
        right once; None: this model cannot decide it, and the caller does without."""
        asked = list(messages)

        async def call(model: ChatModel, ended: Ended) -> Completion:
            return _told(await model.complete(asked, max_tokens=max_tokens, schema=form.model_json_schema()), ended)

        for attempt in range(2):
            reply = await self.ask(*_of(messages), call, attempt=attempt)
            try:
                return form.model_validate_json(_object_in(reply.text))
            except ValidationError as error:
                asked += [Message("assistant", reply.text), Message("user", _put_right(error))]
        return None

    async def stream(self, messages: Sequence[Message], *, max_tokens: int) -> AsyncIterator[str]:
        while True:
            begun = False
            try:
                with self._noted(*_of(messages)) as ended:
                    reply = self.model.stream(messages, max_tokens=max_tokens, ended=ended)
                    async with aclosing(self._pieces(reply)) as pieces:
                        async for piece in pieces:
                            begun = True
                            yield piece
                return
            except InferenceError as error:
                if begun:
                    raise
                self._replace(error)

    async def _pieces(self, pieces: AsyncIterator[str]) -> AsyncGenerator[str, None]:
        try:
            while True:
                try:
                    yield await self.within(anext(pieces))
                except StopAsyncIteration:
                    return
        finally:
            if hasattr(pieces, "aclose"):
                await pieces.aclose()

    def _replace(self, error: InferenceError) -> None:
        """Let the fallback take over; raises the error where there is none, or where it would not help."""
        if self._fallback is None or isinstance(error, PromptTooLong):
            raise error
        self.model, self._fallback = self._fallback, None
        self.meter.trace.note("limit", reason=MODEL_REPLACED, fault=error.code, model=self.model.name)

    @contextmanager
    def _noted(self, name: str, version: str, **more: str | int) -> Iterator[Ended]:
        """One call: counted when it begins, in the trace when it ends, however it ends."""
        self.meter.begin()
        started, usages, model = time.perf_counter(), list[Usage](), self.model.name
        fault: str | None = "stopped"
        try:
            yield usages.append
            fault = None
        except IntramurosError as error:
            fault = error.code
            raise
        finally:
            usage = usages[-1] if usages else Usage("stop", 0, 0)
            self.meter.spend(usage.prompt_tokens + usage.completion_tokens)
            self.meter.trace.note(
                "model",
                prompt=name,
                version=version,
                model=model,
                prompt_tokens=usage.prompt_tokens,
                completion_tokens=usage.completion_tokens,
                ms=round((time.perf_counter() - started) * 1000),
                done_reason=usage.finish if usages else None,
                fault=fault,
                **more,
            )


def _told(reply: Completion, ended: Ended) -> Completion:
    ended(Usage(reply.finish, reply.prompt_tokens, reply.completion_tokens))
    return reply


def _of(messages: Sequence[Message]) -> tuple[str, str]:
    return (messages.name, messages.version) if isinstance(messages, Prompt) else ("", "")


def _object_in(text: str) -> str:
    """The JSON object in a reply, whatever stands around it."""
    visible = plain(text)
    return visible[visible.find("{") : visible.rfind("}") + 1] or "null"


def _put_right(error: ValidationError) -> str:
    faults = "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'all'}: {fault['msg']}" for fault in error.errors())
    return f"That does not fit ({faults}). Reply with the JSON object only."
