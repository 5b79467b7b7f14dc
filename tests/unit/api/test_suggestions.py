"""Suggested questions: headings that promise an answer, told in the asker's language."""

import pytest

from api.suggestions import question, topics
from core.records import Chunk, Language

LONG = "Hotels cost at most 180 euros a night in Munich and 240 in London; breakfast is part of the price, see below."


def _chunk(heading: str, text: str = LONG + LONG) -> Chunk:
    return Chunk(ordinal=0, text=text, heading_path=("Part", heading), section=0, start=0, end=1)


@pytest.mark.parametrize(
    ("heading", "language", "expected"),
    [
        ("Hotel caps", "en", ["Hotel caps"]),
        ("3.2 Hotel caps", "en", ["Hotel caps"]),
        ("4) Hotel caps:", "en", ["Hotel caps"]),
        ("2026 rates", "en", ["2026 rates"]),
        ("Scope", "en", []),
        ("1. Purpose", "en", []),
        ("Ab", "en", []),
        ("A heading that goes on and on until nobody reads it", "en", []),
        ("住宿标准", "en", []),
        ("Is it | a <table>?", "en", []),
        ("第三条 住宿标准", "zh", ["住宿标准"]),
        ("（二）住宿标准", "zh", ["住宿标准"]),
        ("三、住宿标准", "zh", ["住宿标准"]),
        ("第一章 总则", "zh", []),
        ("Hotel caps", "zh", []),
    ],
)
def test_headings(heading: str, language: Language, expected: list[str]) -> None:
    assert topics([_chunk(heading)], "Travel policy", language) == expected


def test_sections_with_figures_come_first_and_short_ones_not_at_all() -> None:
    prose = "Employees travel by train wherever that is reasonable, and book through the portal in good time. " * 2
    chunks = [_chunk("Booking", prose), _chunk("Hotel caps"), _chunk("Nothing", "See above."), _chunk("Meals")]
    assert topics(chunks, "Travel policy", "en") == ["Hotel caps", "Meals", "Booking"]


def test_a_title_repeated_as_a_heading_is_no_topic() -> None:
    assert topics([_chunk("Travel policy")], "Travel policy", "en") == []


def test_questions_read_like_questions() -> None:
    assert question("The Travel Policy", "Hotel caps", "en") == "What does the Travel Policy say about Hotel caps?"
    assert question("差旅管理办法", "住宿标准", "zh") == "《差旅管理办法》中关于住宿标准是怎么规定的？"
    assert question("《差旅管理办法》", "住宿标准", "zh") == "《差旅管理办法》中关于住宿标准是怎么规定的？"
