"""Headings and paragraphs of plain text."""

import pytest

from ingest.plain import Paragraph, join_lines, paragraphs


def levels(text: str) -> list[tuple[int, str]]:
    return [(found.level, found.text) for found in paragraphs(text) if found.level]


def test_numbered_lines_over_text_are_headings_and_a_list_is_none() -> None:
    text = (
        "Minutes\n\n1. Summer hours\n   The pilot is agreed.\n\n2. Any other business\n   None.\n\n"
        "You need:\n1. a form\n2. a receipt\n"
    )
    assert levels(text) == [(1, "Minutes"), (2, "1. Summer hours"), (2, "2. Any other business")]


def test_chinese_numbers_give_the_depth() -> None:
    text = (
        "员工手册\n\n第一章 总则\n第一节 目的\n为规范管理，制定本手册。\n"
        "一、范围\n适用于全体员工。\n（一）细则\n见附件。\n"
    )
    assert levels(text)[1:] == [(1, "第一章 总则"), (2, "第一节 目的"), (2, "一、范围"), (3, "（一）细则")]


def test_underlines_hashes_and_capitals() -> None:
    assert levels("Leave\n=====\nText here.\n\nPart\n----\nMore.\n\n## Deep\nx.\n\nALL CAPITALS\n\nEnd.\n") == [
        (1, "Leave"),
        (2, "Part"),
        (2, "Deep"),
        (2, "ALL CAPITALS"),
    ]


def test_hard_wrapped_lines_are_joined_and_short_ones_kept() -> None:
    wrapped = (
        "This line was broken by the margin of the page and goes\n"
        "on below, as mail programs and editors do with text.\n\nFrom: Ada\nTo: Bob\n"
    )
    assert [found.text for found in paragraphs(wrapped)] == [
        "This line was broken by the margin of the page and goes on below, as mail programs and editors do with text.",
        "From: Ada",
        "To: Bob",
    ]


def test_a_broken_numbered_line_is_no_heading() -> None:
    text = (
        "Hello,\n\n1. Lost receipt. Use the form for it, which is accepted for amounts\n"
        "up to 50 EUR and twice a year.\n\n"
        "2. Tips. They are paid where they are usual and on the receipt, not\notherwise.\n"
    )
    assert levels(text) == []


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("员工", "手册", "员工手册"),
        ("手册，", "第二", "手册，第二"),
        ("the", "end", "the end"),
        ("使用", "VPN", "使用 VPN"),
    ],
)
def test_lines_join_without_blank_in_chinese_only(before: str, after: str, joined: str) -> None:
    assert join_lines(before, after) == joined


def test_nothing_gives_nothing() -> None:
    assert paragraphs("\n \n----\n") == []
    assert paragraphs("one") == [Paragraph("one")]
