"""Counting tokens without a tokenizer: what is counted at most is never below what the tokenizer counts."""

import json
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage

from core.errors import PromptTooLong
from inference import tokens
from tests.fakes.chat import tool_call

# [tokens, text]: counted by the embedded model's own tokenizer, which is Qwen2.5's.
COUNTED = [json.loads(line) for line in Path(__file__).with_name("token_counts.jsonl").read_text("utf-8").splitlines()]
TOOL = {"type": "function", "function": {"name": "kb_search", "parameters": {"query": {"type": "string"}}}}


@pytest.mark.parametrize(("count", "text"), COUNTED)
def test_never_below_the_true_count(count: int, text: str) -> None:
    assert tokens.at_most(text) >= count


def test_not_far_above_it_on_the_whole() -> None:
    counted = sum(count for count, _ in COUNTED)
    assert counted <= sum(tokens.at_most(text) for _, text in COUNTED) <= 1.5 * counted


def test_about_is_about_right_for_prose() -> None:
    prose = [(count, text) for count, text in COUNTED if count >= 60]
    assert 0.6 <= sum(tokens.about(text) for _, text in prose) / sum(count for count, _ in prose) <= 1.3


@pytest.mark.parametrize("text", ["", " ", "\ud800", "\x00", "\U0002a6a5" * 10])
def test_any_text_can_be_counted(text: str) -> None:
    assert tokens.at_most(text) > 0


def test_a_request_is_counted_whole() -> None:
    said = [SystemMessage("Be brief."), HumanMessage("How long?")]
    call = tool_call("kb_search", query="parental leave in Shanghai and Beijing")
    found = ToolMessage("Sixteen weeks.", tool_call_id="1")
    assert tokens.of_prompt(said) < tokens.of_prompt(said, [TOOL])
    assert tokens.of_prompt([*said, call]) > tokens.of_prompt([*said, tool_call("kb_search", query="leave")])
    assert tokens.of_prompt([*said, call, found]) > tokens.of_prompt([*said, call])


def test_the_reply_needs_room_too() -> None:
    prompt = [HumanMessage("How long?")]
    needed = tokens.of_prompt(prompt)
    tokens.check_room(prompt, (), 100, needed + 100)
    with pytest.raises(PromptTooLong):
        tokens.check_room(prompt, (), 101, needed + 100)
