import asyncio
from contextlib import aclosing
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from agent.ask import stream
from agent.kept import memory
from agent.language.words import say
from agent.workflow.graph import MAX_REWRITES
from agent.workflow.run import Run
from core.errors import InferenceError, InvalidRequest
from core.records import Answer, Outcome, Source, Status, Token
from inference.interfaces import Traits
from tests.fakes.chat import CAPABLE, SMALL, ScriptedChat
from tests.unit.agent.support import REFUSES, SURE, SURE_ZH, events_of, hit, make_run, never

CAP = hit("The hotel cap in Shanghai is CNY 550 per night.")
BEIJING = hit("The hotel cap in Beijing is CNY 600 per night.", chunk=2)
ANSWER = "The hotel cap in Shanghai is CNY 550 per night."


def answered(run: Run) -> Answer:
    assert run.answer is not None
    return run.answer


async def test_a_question_is_searched_shown_graded_and_answered() -> None:
    chat = ScriptedChat([ANSWER], first_tokens=[SURE])
    run = make_run(chat, [CAP])
    events = await events_of(run)
    kinds = [type(event) for event in events]
    assert kinds.index(Source) < kinds.index(Token)
    assert [event.text for event in events if isinstance(event, Token)] == [
        "The hotel cap in Shanghai is CNY 550 per night [1]."
    ]
    assert [event.stage for event in events if isinstance(event, Status)] == ["searching", "judging", "answering"]
    answer = answered(run)
    assert answer.outcome is Outcome.ANSWERED
    assert answer.citations[0].quote == CAP.text
    assert answer.model_calls == len(chat.calls) == 2
    assert {"search", "grade", "answer"} <= answer.timings.keys()


async def test_sources_come_before_any_model_call() -> None:
    run = make_run(ScriptedChat(), [CAP])
    async with aclosing(stream(run, None, "")) as events:
        async for event in events:
            if isinstance(event, Source):
                break
    assert run.chat.calls == 0


@pytest.mark.parametrize(
    ("question", "kind"), [("Hello!", "greeting"), ("谢谢", "thanks"), ("Who are you?", "identity")]
)
async def test_small_talk_needs_no_model_and_no_source(question: str, kind: str) -> None:
    run = make_run(ScriptedChat(), [CAP], question)
    events = await events_of(run)
    assert answered(run).outcome is Outcome.CONVERSED
    assert answered(run).answer == say(kind, run.language)
    assert not any(isinstance(event, Source) for event in events)


@pytest.mark.parametrize("question", ["How much is the sauna in Shanghai?", "上海的桑拿多少钱？"])
async def test_a_refusal_is_in_the_askers_language_and_shows_the_nearest(question: str) -> None:
    chat = ScriptedChat(["sauna price"], first_tokens=lambda _: {"NOT": 0.9, "未": 0.9})
    run = make_run(chat, [CAP, BEIJING], question)
    events = await events_of(run)
    answer = answered(run)
    assert (answer.outcome, answer.answer) == (Outcome.REFUSED, say("refusal", run.language))
    assert answer.nearest == (CAP,)
    assert not any(isinstance(event, Token) for event in events)
    if run.language == "en":
        assert answer.notice is not None
        assert "sauna" in answer.notice


async def test_no_documents_no_model_call_but_other_words_are_tried() -> None:
    run = make_run(ScriptedChat(lambda _: "other words"), [])
    await events_of(run)
    assert answered(run).answer == say("no_documents", "en")


async def test_other_words_find_the_passage() -> None:
    question = "What does a bed cost at most in Shanghai?"
    chat = ScriptedChat(["hotel cap", ANSWER], first_tokens=[REFUSES, SURE])
    run = make_run(chat, {question: [hit("Lunch is at noon.", title="Canteen")], "hotel cap": [CAP]}, question)
    await events_of(run)
    assert answered(run).outcome is Outcome.ANSWERED
    assert "rewrite" in answered(run).timings


@pytest.mark.parametrize(("kind", "traits"), [("small", SMALL), ("capable", CAPABLE)])
async def test_rewriting_ends(kind: str, traits: Traits) -> None:
    chat = ScriptedChat(lambda _: f"words {len(chat.calls)}", first_tokens=lambda _: REFUSES, traits=traits)
    found = iter(range(100))
    run = make_run(chat, [], mode="quick")
    run.retriever.find = lambda *_: _one(next(found))  # type: ignore[method-assign] # a fake
    await events_of(run)
    assert sum(call.kind == "complete" for call in chat.calls) == MAX_REWRITES[kind]
    assert answered(run).outcome is Outcome.REFUSED


async def _one(number: int) -> list[Any]:
    return [hit(f"Lunch {number} is at noon.", chunk=number)]


async def test_a_follow_up_is_understood_from_the_session() -> None:
    saver = InMemorySaver()
    first = make_run(ScriptedChat(["The hotel cap in Beijing is CNY 600 per night."], first_tokens=[SURE]), [BEIJING],
                     "How much is the hotel cap in Beijing?")  # fmt: skip
    await events_of(first, saver)
    chat = ScriptedChat(["How much is the hotel cap in Shanghai?", ANSWER], first_tokens=[SURE])
    second = make_run(chat, [CAP], "What about Shanghai?")
    events = await events_of(second, saver)
    answer = answered(second)
    assert answer.standalone_question == "How much is the hotel cap in Shanghai?"
    assert answer.question == "What about Shanghai?"
    assert isinstance(events[0], Status)
    assert events[0].stage == "reading"
    assert "condense" in answer.timings


async def test_the_same_question_about_another_place_costs_no_condensing() -> None:
    saver = InMemorySaver()
    await events_of(make_run(ScriptedChat([ANSWER], first_tokens=[SURE]), [CAP]), saver)
    chat = ScriptedChat(["The hotel cap in Beijing is CNY 600 per night."], first_tokens=[SURE])
    run = make_run(chat, [BEIJING], "and in Beijing?")
    await events_of(run, saver)
    assert answered(run).standalone_question == "How much is the hotel cap in Beijing?"
    assert answered(run).model_calls == 2


async def test_a_bad_rewrite_falls_back_to_both_questions() -> None:
    saver = InMemorySaver()
    await events_of(
        make_run(ScriptedChat(["七百五十。", "x"], first_tokens=lambda _: SURE_ZH), [CAP], "北京住宿费多少？"), saver
    )
    chat = ScriptedChat(lambda _: "I cannot help with that.", first_tokens=lambda _: {"未": 0.99})
    run = make_run(chat, [CAP], "那上海呢？")
    await events_of(run, saver)
    assert answered(run).standalone_question == "北京住宿费多少；那上海呢？"


async def test_small_talk_between_does_not_hide_the_question_before() -> None:
    saver = InMemorySaver()
    await events_of(make_run(ScriptedChat([ANSWER], first_tokens=[SURE]), [CAP]), saver)
    await events_of(make_run(ScriptedChat(), [CAP], "thanks!"), saver)
    chat = ScriptedChat(["The hotel cap in Beijing is CNY 600 per night."], first_tokens=[SURE])
    run = make_run(chat, [BEIJING], "and in Beijing?")
    await events_of(run, saver)
    assert answered(run).outcome is Outcome.ANSWERED


async def test_a_whole_question_in_a_session_costs_no_condensing() -> None:
    saver = InMemorySaver()
    for _ in range(2):
        chat = ScriptedChat([ANSWER], first_tokens=[SURE])
        await events_of(make_run(chat, [CAP]), saver)
        assert len(chat.calls) == 2


async def test_a_cancelled_run_leaves_the_session_usable() -> None:
    saver = InMemorySaver()
    await events_of(make_run(ScriptedChat([ANSWER], first_tokens=[SURE]), [CAP]), saver)
    chat = ScriptedChat()
    chat.first_token = never  # type: ignore[method-assign]
    async with aclosing(
        stream(make_run(chat, [CAP], "How much does the sauna in Beijing cost?"), saver, "t")
    ) as events:
        async for event in events:
            if isinstance(event, Source):
                break
    chat = ScriptedChat(["The hotel cap in Beijing is CNY 600 per night."], first_tokens=[SURE])
    run = make_run(chat, [BEIJING], "and in Beijing?")
    await events_of(run, saver)
    assert answered(run).standalone_question == "How much is the hotel cap in Beijing?"
    kept = (await saver.aget_tuple({"configurable": {"thread_id": "t"}})).checkpoint["channel_values"]["messages"]  # type: ignore[union-attr]
    assert [message.type for message in kept] == ["human", "ai"] * 2


async def test_a_model_that_stops_half_way_leaves_an_incomplete_answer() -> None:
    meal = hit("The meal allowance in Shanghai is CNY 120 per day.", chunk=3)
    chat = ScriptedChat([ANSWER, InferenceError("gone")], first_tokens=[SURE, SURE])
    run = make_run(chat, [CAP, meal], "How much is the hotel cap and the meal allowance in Shanghai?")
    await events_of(run)
    answer = answered(run)
    assert answer.outcome is Outcome.INCOMPLETE
    assert answer.answer.startswith(ANSWER[:-1])
    assert answer.notice == say("model_stopped", "en")


async def test_a_model_that_fails_before_anything_was_said_fails_the_run() -> None:
    run = make_run(ScriptedChat([InferenceError("gone")], first_tokens=[SURE]), [CAP])
    with pytest.raises(InferenceError):
        await events_of(run)
    assert run.answer is None


async def test_time_running_out_gives_what_is_supported_so_far() -> None:
    meal = hit("The meal allowance in Shanghai is CNY 120 per day.", chunk=3)
    run: Run

    def first_tokens(messages: Any) -> dict[str, float]:
        if "meal allowance in Shanghai is" in messages[-1].content:
            run.chat.meter.deadline = asyncio.get_running_loop().time()
        return SURE

    chat = ScriptedChat([ANSWER], first_tokens=first_tokens)
    run = make_run(chat, [CAP, meal], "How much is the hotel cap and the meal allowance in Shanghai?")
    await events_of(run)
    answer = answered(run)
    assert (answer.outcome, answer.notice) == (Outcome.INCOMPLETE, say("out_of_time", "en"))


async def test_an_empty_question_is_refused_as_a_request() -> None:
    with pytest.raises(InvalidRequest):
        await events_of(make_run(ScriptedChat(), [], "  ?? "))


def test_a_broken_history_is_repaired_at_load() -> None:
    broken = [
        ToolMessage("orphan", tool_call_id="x"),
        HumanMessage("unanswered"),
        *memory.remember("whole?", "Yes [1].", "whole?"),
        HumanMessage("cut"),
        AIMessage("", tool_calls=[{"name": "kb_search", "args": {}, "id": "x"}]),
    ]
    assert [message.text for message in memory.repaired(broken, 20)] == ["whole?", "Yes [1]."]
    assert memory.last_question(memory.repaired(broken, 20)) == "whole?"


@pytest.mark.parametrize("most", [0, 1, 2, 5, 20])
def test_history_is_whole_exchanges_within_its_limit(most: int) -> None:
    messages = [message for n in range(30) for message in memory.remember(f"q{n}", f"a{n}", f"q{n}")]
    kept = memory.repaired(messages, most)
    assert len(kept) <= most
    assert len(kept) % 2 == 0
    assert kept == messages[len(messages) - len(kept) :]
