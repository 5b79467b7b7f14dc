"""Titles of conversations, made from their first question by code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text import count_cjk
from storage.sessions import TITLE_WIDTH, title_of


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("What may a hotel cost?", "What may a hotel cost?"),
        ("  Tell me\nabout  leave. ", "Tell me about leave"),
        ("How many days of annual leave does somebody have who joined in March?",
         "How many days of annual leave does somebody have who joined…"),
        ("上海的酒店每晚最多可以报销多少钱？", "上海的酒店每晚最多可以报销多少钱？"),
        ("年假" * 20, "年假" * 15 + "…"),
        ("x" * 100, "x" * 59 + "…"),
        ("...", "..."),
    ],
)  # fmt: skip
def test_a_title_is_the_beginning_of_the_question(question: str, title: str) -> None:
    assert title_of(question) == title


@given(st.text(min_size=1, max_size=300))
def test_a_title_is_one_short_line(question: str) -> None:
    title = title_of(question)
    assert len(title) + count_cjk(title) <= TITLE_WIDTH + 1
    assert title == " ".join(title.split())
    assert bool(title) == bool(question.split())
