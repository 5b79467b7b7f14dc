import pytest

from agent.questions.condensing import accepted, joined, leans_on_previous, swapped

BEFORE = "How much is the hotel cap in Beijing?"
BEFORE_ZH = "去上海出差每天餐费补贴多少？"


@pytest.mark.parametrize(
    "question",
    [
        "and in Shanghai?",
        "What about London?",
        "Who approves it?",
        "Berlin?",
        "那住宿费呢？",
        "上海呢？",
        "它由谁审批？",
        "为什么？",
        "Why not?",
        "Who signs the above?",
        "Does that rule hold in London too?",
    ],
)
def test_follow_ups_lean_on_what_came_before(question: str) -> None:
    assert leans_on_previous(question)


@pytest.mark.parametrize(
    "question",
    [
        "How many days of annual leave does a new employee get?",
        "Which extension do I dial to report fraud?",
        "Who approves an order above EUR 50,000?",
        "Is there a form that I have to fill in?",
        "How many public holidays are there this year?",
        "Why do we lock our screens when we leave the desk?",
        "如果我出差时生病了，费用谁承担？",
        "想举报舞弊，应该拨哪个分机？",
        "上海办公室每天的午餐补贴是多少？",
        "新员工第一天几点到前台报到？",
    ],
)
def test_whole_questions_stand_alone(question: str) -> None:
    assert not leans_on_previous(question)


@pytest.mark.parametrize(
    ("reply", "before", "follow_up", "expected"),
    [
        ("How much is the cap in Shanghai?", BEFORE, "and in Shanghai?", "How much is the cap in Shanghai?"),
        ('Question: "How much is the hotel cap in Shanghai?"', BEFORE, "and in Shanghai?",
         "How much is the hotel cap in Shanghai?"),
        ("去上海出差每天住宿费多少？", BEFORE_ZH, "那住宿费呢？", "去上海出差每天住宿费多少？"),
        ("How much is the hotel cap in Beijing?", BEFORE, "and in Shanghai?", None),
        ("Shanghai employees receive generous pension plans yearly.", BEFORE, "and in Shanghai?", None),
        ("上海的酒店标准是多少？", BEFORE, "and in Shanghai?", None),
        ("", BEFORE, "and in Shanghai?", None),
        ("住宿费是多少？", BEFORE_ZH, "那住宿费呢？", None),
    ],
)  # fmt: skip
def test_a_rewritten_question_is_checked(reply: str, before: str, follow_up: str, expected: str | None) -> None:
    assert accepted(reply, before, follow_up) == expected


def test_joined_keeps_both_questions() -> None:
    assert joined(BEFORE, "and in Shanghai?") == "How much is the hotel cap in Beijing; and in Shanghai?"
    assert joined(BEFORE_ZH, "那住宿费呢？") == "去上海出差每天餐费补贴多少；那住宿费呢？"


@pytest.mark.parametrize(
    ("before", "follow_up", "expected"),
    [
        (
            "What is the hotel cap per night in Berlin for a P3 employee?",
            "and in Shanghai?",
            "What is the hotel cap per night in Shanghai for a P3 employee?",
        ),
        ("Who approves travel to New York?", "What about to San Francisco", "Who approves travel to San Francisco?"),
        ("Is lunch paid in Berlin?", "and for dinner?", None),
        ("Is lunch paid in Berlin?", "And in the canteen?", None),
        ("Is a trip from Berlin in May or in June cheaper in Rome?", "and in July?", None),
        ("What is the cap in Berlin?", "and in Shanghai, for a manager?", None),
    ],
)
def test_a_name_in_the_same_place_is_swapped_without_a_model(before: str, follow_up: str, expected: str | None) -> None:
    assert swapped(before, follow_up) == expected
