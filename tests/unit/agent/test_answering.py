from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent.grounding.answering import Answering, Supported, starting_with, whole_sentences
from agent.grounding.citations import Evidence
from agent.language.text import estimate_tokens
from agent.models.metered import MeteredChat
from core.records import Hit, Language
from inference import tokens
from inference.interfaces import Traits
from tests.fakes.chat import CAPABLE, SMALL, ScriptedChat
from tests.unit.agent.support import REFUSES, REFUSES_ZH, SURE, SURE_ZH, UNSURE, hit

CAP = hit("The hotel cap in Shanghai is CNY 550 per night.", chunk=1)
MEAL = hit("The meal allowance in Shanghai is CNY 120 per day.", chunk=2)
TRAIN = hit("Second class is booked for trains.", chunk=3)
QUESTION = "How much is the hotel cap in Shanghai?"
BOTH = "How much is the hotel cap and the meal allowance in Shanghai?"


async def answers(
    chat: ScriptedChat, hits: Sequence[Hit], question: str = QUESTION, language: Language = "en", budget: int = 600
) -> tuple[list[Supported], Evidence]:
    evidence = Evidence()
    handles = evidence.add(hits)
    step = Answering(MeteredChat(chat, 60), evidence, language, budget)
    return [sentence async for sentence in step.answer(question, handles)], evidence


async def test_a_sure_passage_answers_alone_and_is_cited_by_construction() -> None:
    chat = ScriptedChat(["The hotel cap in Shanghai is CNY 550 per night. [7]"], first_tokens=[SURE])
    (only,), evidence = await answers(chat, [CAP, MEAL, TRAIN])
    assert only.text == "The hotel cap in Shanghai is CNY 550 per night."
    assert evidence.get(only.handles[0]) is CAP
    assert len(chat.calls) == 2


async def test_the_best_grade_wins_where_none_is_sure() -> None:
    grades = [{"NOT": 0.28}, {"NOT": 0.15}, {"NOT": 0.9}]
    chat = ScriptedChat(["The meal allowance in Shanghai is CNY 120 per day."], first_tokens=grades)
    (only,), evidence = await answers(chat, [CAP, MEAL, TRAIN], "How much is the meal allowance in Shanghai?")
    assert evidence.get(only.handles[0]) is MEAL


async def test_nothing_is_written_where_every_passage_is_graded_as_silent() -> None:
    chat = ScriptedChat(first_tokens=[REFUSES] * 3)
    assert (await answers(chat, [CAP, MEAL, TRAIN]))[0] == []
    assert {call.kind for call in chat.calls} == {"first_token"}


async def test_a_wrong_number_is_dropped_and_the_next_passage_is_tried() -> None:
    chat = ScriptedChat(
        ["The hotel cap in Shanghai is CNY 905 per night.", "The hotel cap in Shanghai is CNY 550 per night."],
        first_tokens=[SURE, SURE],
    )
    (only,), evidence = await answers(chat, [MEAL, CAP])
    assert evidence.get(only.handles[0]) is CAP


async def test_the_models_own_refusal_is_never_shown() -> None:
    for reply in ("NOT FOUND", "The passage does not specify the cap.", "It is not mentioned."):
        assert (await answers(ScriptedChat([reply], first_tokens=[SURE]), [CAP]))[0] == []


async def test_two_things_asked_for_get_two_sentences() -> None:
    chat = ScriptedChat(
        ["The hotel cap in Shanghai is CNY 550 per night.", "The meal allowance in Shanghai is CNY 120 per day."],
        first_tokens=[SURE, SURE, SURE],
    )
    told, _ = await answers(chat, [CAP, MEAL, TRAIN], BOTH)
    assert [sentence.text for sentence in told] == [
        "The hotel cap in Shanghai is CNY 550 per night.",
        "The meal allowance in Shanghai is CNY 120 per day.",
    ]


async def test_what_a_passage_lacks_is_left_out_of_its_sentence() -> None:
    chat = ScriptedChat(
        [
            "The hotel cap in Shanghai is CNY 550 per night, and the meal allowance is not specified in the passage.",
            "The hotel cap is not specified in the passage. The meal allowance in Shanghai is CNY 120 per day.",
        ],
        first_tokens=[SURE, SURE, SURE],
    )
    told, _ = await answers(chat, [CAP, MEAL, TRAIN], BOTH)
    assert [sentence.text for sentence in told] == [
        "The hotel cap in Shanghai is CNY 550 per night.",
        "The meal allowance in Shanghai is CNY 120 per day.",
    ]


async def test_a_hedge_before_another_fact_is_a_refusal() -> None:
    reply = "The cap in Singapore is not specified. The hotel cap in Shanghai is CNY 550 per night."
    assert (await answers(ScriptedChat([reply], first_tokens=[SURE]), [CAP], "What is the hotel cap in Singapore?"))[
        0
    ] == []


async def test_a_passage_is_read_once_however_often_it_is_asked_about() -> None:
    evidence = Evidence()
    handles = evidence.add([CAP])
    chat = ScriptedChat(first_tokens=[UNSURE])
    step = Answering(MeteredChat(chat, 60), evidence, "en", 600)
    assert await step.passes(QUESTION, handles)
    assert await step.passes(QUESTION, handles)
    assert len(chat.calls) == 1


async def test_chinese_is_answered_in_chinese() -> None:
    passage = hit("上海每晚不超过 550 元", title="差旅管理办法", heading=["住宿费标准"])
    chat = ScriptedChat(["上海住宿费标准为每晚不超过 550 元"], first_tokens=[SURE_ZH])
    (only,), _ = await answers(chat, [passage], "上海住宿费标准是多少？", "zh")
    assert only.text == "上海住宿费标准为每晚不超过 550 元。"
    silent = ScriptedChat(first_tokens=[REFUSES_ZH])
    assert (await answers(silent, [passage], "上海住宿费标准是多少？", "zh"))[0] == []


async def test_without_probabilities_the_reply_says_whether_it_refuses() -> None:
    traits = Traits(tools=False, logprobs=False, capable=False, context_tokens=4096)
    chat = ScriptedChat(["NOT FOUND", "The hotel cap in Shanghai is CNY 550 per night."], traits=traits)
    (only,), evidence = await answers(chat, [TRAIN, CAP])
    assert evidence.get(only.handles[0]) is CAP
    assert {call.kind for call in chat.calls} == {"complete"}


async def test_a_reply_cut_by_its_limit_is_not_half_a_sentence() -> None:
    traits = Traits(tools=True, logprobs=False, capable=True, context_tokens=4096)
    chat = ScriptedChat(["The hotel cap in Shanghai is CNY 550 per night. And the meal"], traits=traits)
    (only,), _ = await answers(chat, [CAP])
    assert only.text == "The hotel cap in Shanghai is CNY 550 per night."


async def test_a_capable_models_refusal_is_a_refusal() -> None:
    assert (await answers(ScriptedChat(["NOT FOUND"], traits=CAPABLE), [CAP]))[0] == []


async def test_a_capable_models_thinking_never_shows() -> None:
    chat = ScriptedChat(
        ["<think>The cap is CNY 550. I say so.</think>The hotel cap in Shanghai is CNY 550 per night."], traits=CAPABLE
    )
    (only,), _ = await answers(chat, [CAP])
    assert only.text == "The hotel cap in Shanghai is CNY 550 per night."


@pytest.mark.parametrize("traits", [CAPABLE, ScriptedChat().traits])
async def test_prompts_start_alike_and_stay_within_the_budget(traits: Traits) -> None:
    long = [hit(f"Rule {n}. " + "Nothing to see here at all. " * 200, chunk=n) for n in range(5)]
    chat = ScriptedChat(lambda _: "NOT FOUND", first_tokens=[UNSURE] * 5, traits=traits)
    await answers(chat, long, budget=300)
    prompts = [call.messages for call in chat.calls]
    assert len({prompt[0].content for prompt in prompts}) == 1
    assert all(estimate_tokens(prompt[-1].content) <= 300 for prompt in prompts)


def test_marks_after_the_full_stop_belong_to_the_sentence_before() -> None:
    assert whole_sentences("One. [chunk:abc234] Two [chunk:def567].", cut=False) == [
        "One [chunk:abc234].",
        "Two [chunk:def567].",
    ]


async def test_a_mark_that_is_still_being_written_belongs_to_the_sentence_before() -> None:
    evidence = Evidence()
    named, other = evidence.add([hit("火车只订二等座。", chunk=1), hit("火车只订二等座，一等座须批准。", chunk=2)])
    for written in (named, other):
        chat = ScriptedChat([f"火车只订二等座。 [chunk:{written}] 未说明。"], traits=CAPABLE)
        step = Answering(MeteredChat(chat, 60), evidence, "zh", 600)
        told = [sentence async for sentence in step.answer("火车订什么座？", (named, other))]
        assert [sentence.handles for sentence in told] == [(written,)]


def test_probability_is_summed_over_the_tokens_that_begin_so() -> None:
    assert starting_with({" NOT": 0.5, "Not": 0.25, "The": 0.2}, ("NOT", "Not")) == 0.75


@pytest.mark.parametrize("traits", [replace(SMALL, context_tokens=1024), replace(CAPABLE, context_tokens=1024)])
async def test_evidence_gives_way_where_the_context_is_small(traits: Traits) -> None:
    numbers = "\n".join(f"| {n} | {n * 7919} | {n * 104729} |" for n in range(200))
    chat = ScriptedChat(first_tokens=[REFUSES] * 5, traits=traits)
    evidence = Evidence()
    handles = evidence.add([hit(numbers, chunk=n, title=f"T{n}") for n in range(3)])
    await Answering(MeteredChat(chat, 60), evidence, "en", 2000).passes("How many?", handles)
    assert chat.calls
    for call in chat.calls:
        assert tokens.of_texts(message.content for message in call.messages) < 1024 - 60
        assert "|" in call.messages[-1].content or "791" in call.messages[-1].content


async def test_what_nothing_supports_is_removed_or_marked_by_setting() -> None:
    reply = "Lunch is free for every visitor. The hotel cap in Shanghai is CNY 550 per night. Dogs are welcome here."
    evidence = Evidence()
    handles = evidence.add([CAP])
    told: dict[str, list[Supported]] = {}
    for unsupported in ("remove", "mark"):
        chat = MeteredChat(ScriptedChat([reply], traits=CAPABLE), 60)
        step = Answering(chat, evidence, "en", 600, unsupported=unsupported)
        told[unsupported] = [sentence async for sentence in step.answer(QUESTION, handles)]
    assert [sentence.handles for sentence in told["remove"]] == [handles]
    assert [bool(sentence.handles) for sentence in told["mark"]] == [False, True, False]


async def test_where_nothing_is_supported_nothing_is_told_marked_or_not() -> None:
    evidence = Evidence()
    handles = evidence.add([CAP])
    chat = MeteredChat(ScriptedChat(["Lunch is free for every visitor."], traits=CAPABLE), 60)
    step = Answering(chat, evidence, "en", 600, unsupported="mark")
    assert [sentence async for sentence in step.answer(QUESTION, handles)] == []


async def test_an_answer_in_the_wrong_language_is_none() -> None:
    assert (await answers(ScriptedChat(["上海住宿费标准为每晚 550 元。"], traits=CAPABLE), [CAP]))[0] == []
