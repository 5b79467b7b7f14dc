import pytest

from agent.questions.sufficiency import clauses, parts, uncovered

LEAVE = "How many weeks of leave does the mother get, and how many days does the partner get?"


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("How much is the hotel cap?", ["How much is the hotel cap?"]),
        (LEAVE, ["How many weeks of leave does the mother get", "how many days does the partner get?"]),
        (
            "Who approves EUR 30,000 and who approves EUR 300,000?",
            ["Who approves EUR 30,000", "who approves EUR 300,000?"],
        ),
        ("What are the hotel cap and the meal allowance?", ["What are the hotel cap", "the meal allowance?"]),
        ("P3 去上海出差，住宿标准和每天的餐补是多少？", ["P3 去上海出差，住宿标准", "每天的餐补是多少？"]),
        ("丢了电脑要在多长时间内报告，打哪个分机？", ["丢了电脑要在多长时间内报告", "打哪个分机？"]),
        ("去北京出差，酒店每晚多少钱？", ["去北京出差，酒店每晚多少钱？"]),
        ("How long is leave and leave?", ["How long is leave"]),
        ("??", ["??"]),
    ],
)
def test_the_parts_of_a_question(question: str, asked: list[str]) -> None:
    assert parts(question) == asked


def test_only_what_asks_something_is_a_clause() -> None:
    assert clauses("What are the hotel cap and the meal allowance?") == [
        "What are the hotel cap and the meal allowance?"
    ]
    assert len(clauses(LEAVE)) == 2


@pytest.mark.parametrize(
    ("texts", "open_parts"),
    [
        (["The mother gets 16 weeks of leave.", "The partner gets 10 days."], []),
        (["The mother gets 16 weeks of leave."], ["how many days does the partner get?"]),
        (["母亲有十六周。"], []),
        ([], []),
    ],
)
def test_what_no_text_speaks_of_is_not_covered(texts: list[str], open_parts: list[str]) -> None:
    assert uncovered(LEAVE, texts) == open_parts
    assert uncovered("How much is the sauna?", texts) == []
