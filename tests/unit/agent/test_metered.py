"""What a run takes is counted and traced, and a model that fails is replaced."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from agent.models import prompts
from agent.models.metered import MeteredChat, OutOfTime, OutOfTokens
from agent.models.prompting import Prompt
from core.errors import InferenceError, ModelUnavailable, PromptTooLong
from inference.interfaces import Message
from tests.fakes.chat import ScriptedChat
from tests.unit.agent.support import SURE

PROMPT = prompts.condense("en", "How long is parental leave?", "and sick leave?")


class Route(BaseModel):
    route: Literal["quick", "agent"]
    reason: Annotated[str, Field(max_length=80)]


def metered(chat: ScriptedChat, seconds: float = 60, **more: Any) -> MeteredChat:
    return MeteredChat(chat, seconds, **more)


def noted(chat: MeteredChat, kind: str = "model") -> list[dict[str, Any]]:
    return [dict(step.data) for step in chat.meter.trace.steps if step.kind == kind]


async def streamed(chat: MeteredChat) -> str:
    return "".join([piece async for piece in chat.stream(PROMPT, max_tokens=20)])


async def test_every_call_is_in_the_trace() -> None:
    chat = metered(ScriptedChat(["Sixteen weeks.", "Ten days."], first_tokens=[SURE]))
    await chat.complete(PROMPT, max_tokens=20)
    await chat.first_token(PROMPT)
    assert await streamed(chat) == "Ten days."
    steps = noted(chat)
    assert [(step["prompt"], step["version"], step["model"]) for step in steps] == [
        ("condense", PROMPT.version, "scripted")
    ] * 3
    assert all(step["prompt_tokens"] > 0 and step["done_reason"] == "stop" and step["fault"] is None for step in steps)
    assert all(isinstance(step["ms"], int) for step in steps)
    assert chat.calls == 3
    assert chat.meter.tokens == sum(step["prompt_tokens"] + step["completion_tokens"] for step in steps)


async def test_a_fault_and_a_stream_that_is_left_are_in_it_too() -> None:
    chat = metered(ScriptedChat([InferenceError(), "A long answer."]))
    with pytest.raises(InferenceError):
        await chat.complete(PROMPT, max_tokens=20)
    pieces = chat.stream(PROMPT, max_tokens=20)
    await anext(pieces)
    await pieces.aclose()  # type: ignore[attr-defined]
    assert [(step["fault"], step["done_reason"]) for step in noted(chat)] == [("inference", None), ("stopped", None)]


def test_a_prompts_version_follows_its_fixed_words() -> None:
    again = prompts.condense("en", "Something else?", "and this?")
    other = prompts.condense("zh", "育儿假多久？", "病假呢？")
    assert again.version == PROMPT.version != other.version
    assert Prompt("condense", [Message("system", "Other words.")], "x").version != PROMPT.version


async def test_no_call_beyond_the_tokens_or_the_time() -> None:
    chat = metered(ScriptedChat(["Sixteen weeks."]), budget=1)
    await chat.complete(PROMPT, max_tokens=20)
    with pytest.raises(OutOfTokens):
        await chat.complete(PROMPT, max_tokens=20)
    with pytest.raises(OutOfTokens):
        await streamed(chat)
    late = metered(ScriptedChat(), seconds=0)
    with pytest.raises(OutOfTime):
        await late.complete(PROMPT, max_tokens=20)
    assert (chat.calls, late.calls) == (1, 0)


# --- the fallback ---------------------------------------------------------------------------------------------------


async def test_the_fallback_takes_over_for_the_rest_of_the_run() -> None:
    first = ScriptedChat([ModelUnavailable()], name="first")
    chat = metered(first, fallback=ScriptedChat(["Yes.", "Still yes."], name="second"))
    assert (await chat.complete(PROMPT, max_tokens=20)).text == "Yes."
    assert await streamed(chat) == "Still yes."
    assert [step["model"] for step in noted(chat)] == ["first", "second", "second"]
    assert noted(chat, "limit") == [{"reason": "model_replaced", "fault": "model_unavailable", "model": "second"}]
    assert chat.model.name == "second"


async def test_a_stream_that_failed_before_it_began_falls_back() -> None:
    chat = metered(ScriptedChat([ModelUnavailable()]), fallback=ScriptedChat(["Yes."]))
    assert await streamed(chat) == "Yes."


async def test_a_stream_that_was_begun_is_not_said_twice() -> None:
    class Breaks(ScriptedChat):
        async def stream(self, *_: Any, **__: Any) -> Any:
            yield "Sixteen"
            raise InferenceError

    spare = ScriptedChat(["Sixteen weeks."])
    chat = metered(Breaks(), fallback=spare)
    with pytest.raises(InferenceError):
        await streamed(chat)
    assert spare.calls == []


@pytest.mark.parametrize("error", [PromptTooLong(), OutOfTime()])
async def test_another_model_would_not_help(error: Exception) -> None:
    spare = ScriptedChat(["Yes."])
    with pytest.raises(type(error)):
        await metered(ScriptedChat([error]), fallback=spare).complete(PROMPT, max_tokens=20)
    assert spare.calls == []


async def test_a_fallback_that_fails_is_the_end() -> None:
    chat = metered(ScriptedChat([ModelUnavailable()]), fallback=ScriptedChat([InferenceError("second")]))
    with pytest.raises(InferenceError, match="second"):
        await chat.complete(PROMPT, max_tokens=20)


async def test_a_grader_shares_the_meter_and_falls_back_on_the_chat_model() -> None:
    chat = metered(ScriptedChat(first_tokens=[SURE], name="chat"))
    assert chat.beside(chat.model) is chat
    grader = chat.beside(ScriptedChat(first_tokens=[ModelUnavailable()], name="grader"))
    assert await grader.first_token(PROMPT) == SURE
    assert chat.calls == grader.calls == 2
    assert [step["model"] for step in noted(chat)] == ["grader", "chat"]


# --- decisions ------------------------------------------------------------------------------------------------------


async def test_a_decision_is_asked_for_under_its_schema() -> None:
    model = ScriptedChat(['{"route": "agent", "reason": "two facts"}'])
    decided = await metered(model).decide(PROMPT, Route)
    assert decided == Route(route="agent", reason="two facts")
    assert model.calls[0].options["schema"] == Route.model_json_schema()


@pytest.mark.parametrize(
    "reply",
    [
        '```json\n{"route": "quick", "reason": "one"}\n```',
        '<think>{hm}</think>{"route": "quick", "reason": "one"}',
        'Here you are: {"route": "quick", "reason": "one"}.',
    ],
)
async def test_what_stands_around_a_decision_is_passed_over(reply: str) -> None:
    assert await metered(ScriptedChat([reply])).decide(PROMPT, Route) == Route(route="quick", reason="one")


async def test_a_decision_that_does_not_fit_is_put_right_once() -> None:
    model = ScriptedChat(['{"route": "maybe", "reason": ""}', '{"route": "quick", "reason": "one"}'])
    assert (await metered(model).decide(PROMPT, Route)) is not None
    assert "route" in model.calls[1].messages[-1].content
    assert model.calls[1].messages[-2].content == '{"route": "maybe", "reason": ""}'


async def test_a_model_that_cannot_decide_is_done_without() -> None:
    model = ScriptedChat(["I think quick.", "[]"])
    chat = metered(model)
    assert await chat.decide(PROMPT, Route) is None
    assert [step["attempt"] for step in noted(chat)] == [0, 1]
