"""A brief: its outline, one sub-agent a section, one numbering over all, and what is said of sections without text."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from agent.grounding.citations import marks
from agent.workflow.brief import by_headings
from agent.workflow.run import Run
from core.errors import ModelUnavailable
from core.records import Answer, Outcome, Token
from tests.fakes.chat import CAPABLE, SMALL, ScriptedChat
from tests.unit.agent.support import REFUSES, SURE, events_of, hit, make_run

TOPIC = "Travel to Shanghai"
CAP = hit("The hotel cap in Shanghai is CNY 550 per night.", heading=["Hotels"])
MEALS = hit("The meal allowance in Shanghai is CNY 120 per day.", chunk=2, heading=["Meals"])
TAXI = hit("A taxi in Shanghai is paid between 22:00 and 06:00.", chunk=3, heading=["Taxi"])
PLAN = {
    "sections": [
        {"heading": "Hotels", "question": "What is the hotel cap in Shanghai?"},
        {"heading": "Meals [1] # now", "question": "What is the meal allowance in Shanghai?"},
        {"heading": "Sauna", "question": "Which sauna in Shanghai is paid?"},
    ]
}


def answered(run: Run) -> Answer:
    assert run.answer is not None
    return run.answer


def stating(messages: Sequence[Any]) -> str:
    """The passage that is shown with the asked-for word, as the sentence; the plan where one is asked for."""
    system, asked = messages[0].content, messages[-1].content
    if "Reply with JSON: sections" in system:
        return json.dumps(PLAN)
    question = asked.rpartition("Question:")[2]
    for word, found in (("hotel", CAP), ("meal", MEALS), ("taxi", TAXI)):
        if word in question.casefold() and found.text in asked:
            return found.text
    return "NOT FOUND"


def planner(reply: Any = stating) -> ScriptedChat:
    def first(messages: Any) -> dict[str, float]:
        return REFUSES if "sauna" in messages[-1].content.casefold() else SURE

    return ScriptedChat(reply, first_tokens=first, turns=lambda _: AIMessage("DONE"), traits=CAPABLE)


def brief_over(chat: ScriptedChat, hits: Any) -> Run:
    return make_run(chat, hits, TOPIC, mode="brief")


FOUND = {
    TOPIC: [CAP, MEALS],
    "What is the hotel cap in Shanghai?": [CAP],
    "What is the meal allowance in Shanghai?": [MEALS, CAP],
    "Which sauna in Shanghai is paid?": [],
}


async def test_sections_come_in_the_order_of_the_outline_with_one_numbering() -> None:
    run = brief_over(planner(), FOUND)
    events = await events_of(run)
    answer = answered(run)
    assert answer.answer == (
        "## Hotels\n\nThe hotel cap in Shanghai is CNY 550 per night [1].\n\n"
        "## Meals (1) now\n\nThe meal allowance in Shanghai is CNY 120 per day [2]."
    )
    assert [citation.n for citation in answer.citations] == [1, 2]
    assert "".join(event.text for event in events if isinstance(event, Token)) == answer.answer


async def test_a_section_without_text_is_left_out_and_named() -> None:
    run = brief_over(planner(), FOUND)
    await events_of(run)
    answer = answered(run)
    assert answer.outcome is Outcome.ANSWERED
    assert answer.verdict == "caveat"
    assert "Sauna" in answer.missing


async def test_a_brief_of_nothing_is_a_refusal() -> None:
    run = brief_over(planner(lambda messages: stating(messages) if "sections" in messages[0].content else "NOT FOUND"),
                     {TOPIC: [CAP]})  # fmt: skip
    await events_of(run)
    assert answered(run).outcome is Outcome.REFUSED


async def test_nothing_found_needs_no_outline() -> None:
    run = brief_over(planner(lambda _: pytest.fail("asked")), [])
    await events_of(run)
    assert answered(run).outcome is Outcome.REFUSED


async def test_a_model_that_stops_leaves_what_was_written() -> None:
    def stops(messages: Any) -> str:
        if "sections" not in messages[0].content and "meal" in messages[-1].content.rpartition("Question:")[2]:
            raise ModelUnavailable
        return stating(messages)

    run = brief_over(planner(stops), FOUND)
    await events_of(run)
    answer = answered(run)
    assert answer.outcome is Outcome.INCOMPLETE
    assert answer.answer.startswith("## Hotels")
    assert "Meals" not in answer.answer


async def test_a_small_model_is_given_the_headings_of_what_was_found() -> None:
    def alone(messages: Any) -> str:
        shown = messages[-1].content
        return next((one.text for one in (CAP, MEALS, TAXI) if one.text in shown), "NOT FOUND")

    chat = ScriptedChat(alone, first_tokens=lambda _: SURE, traits=SMALL)
    hits = {
        TOPIC: [CAP, MEALS],
        f"{TOPIC} (Hotels)": [CAP],
        f"{TOPIC} (Meals)": [MEALS, TAXI],
    }
    run = brief_over(chat, hits)
    await events_of(run)
    assert answered(run).answer == (
        "## Hotels\n\nThe hotel cap in Shanghai is CNY 550 per night [1].\n\n"
        "## Meals\n\nThe meal allowance in Shanghai is CNY 120 per day [2]. "
        "A taxi in Shanghai is paid between 22:00 and 06:00 [3]."
    )


async def test_what_was_told_is_not_told_again() -> None:
    chat = ScriptedChat(lambda _: CAP.text, first_tokens=lambda _: SURE, traits=SMALL)
    hits = {TOPIC: [CAP, MEALS], f"{TOPIC} (Hotels)": [CAP], f"{TOPIC} (Meals)": [CAP]}
    run = brief_over(chat, hits)
    await events_of(run)
    answer = answered(run)
    assert answer.answer == "## Hotels\n\nThe hotel cap in Shanghai is CNY 550 per night [1]."
    assert answer.missing[0] == "Meals"


async def test_a_heading_that_begins_like_another_is_missed_all_the_same() -> None:
    plan = {
        "sections": [
            {"heading": name, "question": f"What is the {name} in Shanghai?"} for name in ("hotel cap", "hotel")
        ]
    }
    chat = planner(lambda messages: json.dumps(plan) if "sections" in messages[0].content else stating(messages))
    run = brief_over(chat, {TOPIC: [CAP], "What is the hotel cap in Shanghai?": [CAP]})
    await events_of(run)
    assert answered(run).answer.startswith("## hotel cap")
    assert run.missing == ("hotel",)


async def test_the_outline_is_made_from_passages_between_their_marks() -> None:
    seen: list[str] = []

    def looking(messages: Any) -> str:
        seen.append(messages[-1].content)
        return stating(messages)

    run = brief_over(planner(looking), FOUND)
    await events_of(run)
    assert marks(seen[0]) == list(run.evidence.batches[0])


def test_headings_lose_their_numbers() -> None:
    hits = [hit("x", heading=[heading]) for heading in ("2. Hotel caps", "第二条 住宿费", "三、停车", "2026")]
    assert [section.heading for section in by_headings(TOPIC, hits)] == ["Hotel caps", "住宿费", "停车", "2026"]


def test_headings_are_sections_once_each() -> None:
    untitled = hit("x", title="Canteen", chunk=9)
    assert [section.heading for section in by_headings(TOPIC, [CAP, MEALS, CAP, untitled])] == [
        "Hotels",
        "Meals",
        "Canteen",
    ]
