"""What gives way, and in which order, where a request does not fit the context."""

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from agent.models.fitting import compacted, fitted, prompt_budget
from core.settings import Settings
from inference import tokens
from tests.fakes.chat import CAPABLE, SMALL, tool_call

EN = "The hotel cap in Shanghai is CNY 550 per night, and every claim needs its receipt. "
ZH = "上海的酒店上限是每晚五百五十元，每笔报销都要附发票。"


def search(number: int, text: str) -> list[AnyMessage]:
    asked = tool_call("kb_search", query=f"query {number}")
    return [asked, ToolMessage(f"[chunk:abc{number}]\n{text}", tool_call_id=str(asked.tool_calls[0]["id"]))]


def history(turns: int) -> list[AnyMessage]:
    pairs = [(HumanMessage(f"question {n}"), AIMessage(EN * 3)) for n in range(turns)]
    return [message for pair in pairs for message in pair]


def request(turns: int, searches: int, text: str = EN * 10) -> list[AnyMessage]:
    found = [message for number in range(searches) for message in search(number, text)]
    return [*history(turns), HumanMessage("And in Shanghai?"), *found]


def well_formed(messages: list[AnyMessage]) -> bool:
    open_calls: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_calls:
                return False
            open_calls.discard(message.tool_call_id)
        elif open_calls:
            return False
        elif isinstance(message, AIMessage):
            open_calls = {str(call["id"]) for call in message.tool_calls}
    return not open_calls


def test_what_fits_is_left_as_it_is() -> None:
    messages = request(3, 2)
    assert fitted(messages, 100_000) == messages


def test_evidence_gives_way_before_history_the_oldest_first() -> None:
    messages = request(3, 2)
    kept = fitted(messages, tokens.of_prompt(messages) - 60)
    assert kept[:7] == messages[:7]
    assert len(kept[8].text) < len(messages[8].text)
    assert kept[8].text.startswith("[chunk:abc0]")
    assert kept[10] == messages[10]


@pytest.mark.threat(112)
def test_history_goes_at_once_into_one_line_of_the_employees_own_words() -> None:
    messages = request(6, 1)
    kept = fitted(messages, 320)
    assert [message.type for message in kept] == ["human", "ai", "human", "ai", "tool"]
    assert "question 0 / question 1" in kept[0].text
    assert "Shanghai" not in kept[0].text


@pytest.mark.threat(112)
def test_history_that_fits_not_even_so_is_left_out() -> None:
    assert compacted(history(40), 60) == []
    assert compacted([], 10) == []


@pytest.mark.parametrize("text", [EN * 12, ZH * 30])
@pytest.mark.parametrize("room", [200, 300, 500, 900, 1500, 3000])
def test_it_fits_and_no_result_stands_without_its_call(text: str, room: int) -> None:
    messages = request(5, 6, text)
    kept = fitted(messages, room)
    assert tokens.of_prompt(kept) <= room
    assert well_formed(kept)
    assert any(message.text == "And in Shanghai?" for message in kept)
    assert kept[-1].type == "tool"


def test_parallel_calls_keep_all_their_results() -> None:
    both = AIMessage(
        "", tool_calls=[*tool_call("kb_search", query="a").tool_calls, *tool_call("kb_search", query="b").tool_calls]
    )
    results = [ToolMessage(EN * 20, tool_call_id=str(call["id"])) for call in both.tool_calls]
    kept = fitted([HumanMessage("?"), both, *results, *search(1, EN * 20)], 250)
    assert well_formed(kept)
    assert tokens.of_prompt(kept) <= 250


def test_a_capable_model_reads_more_unless_the_settings_say_how_much() -> None:
    assert [prompt_budget(Settings.load(), traits) for traits in (SMALL, CAPABLE)] == [600, 1800]
    assert [prompt_budget(Settings.load(prompt_budget=700), traits) for traits in (SMALL, CAPABLE)] == [700, 700]
