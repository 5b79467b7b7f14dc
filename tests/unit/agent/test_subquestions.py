import pytest

from agent.questions.subquestions import MOST_QUESTIONS, Queue, alike, grounded, self_contained


@pytest.mark.parametrize(
    ("question", "alone"),
    [
        ("How much is the hotel cap in Shanghai?", True),
        ("上海的住宿标准是多少？", True),
        ("Who approves it?", False),
        ("What about Lima?", False),
        ("How long may these employees stay in a hotel?", False),
        ("它的上限是多少？", False),
        ("那利马呢？", False),
        ("How much is that?", False),
        ("???", False),
        ("", False),
        ("How much is the cap? " * 20, False),
    ],
)
def test_a_question_that_points_elsewhere_is_not_self_contained(question: str, alone: bool) -> None:
    assert self_contained(question) is alone


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("How much is the hotel cap in Shanghai?", "how much is the hotel cap in Shanghai", True),
        ("What is the hotel cap in Shanghai?", "How much is the hotel cap in Shanghai?", True),
        ("How much is the hotel cap in Shanghai?", "How much is the hotel cap in Beijing?", False),
        ("What applies after 5 years of service?", "What applies after 9 years of service?", False),
        ("上海的住宿标准是多少？", "上海的住宿标准多少", True),
        ("上海的住宿标准是多少？", "北京的住宿标准是多少？", False),
        ("How much is the hotel cap?", "住宿标准是多少？", False),
    ],
)
def test_questions_that_ask_the_same(one: str, other: str, same: bool) -> None:
    assert alike(one, other) is alike(other, one) is same


def test_a_queue_counts_what_it_takes_and_what_it_does_not() -> None:
    queue = Queue()
    queue.know("How much is the hotel cap in Shanghai?")
    offered = [f"What does section {number} of the travel policy say?" for number in range(MOST_QUESTIONS + 2)]
    assert queue.offer(["How much is the hotel cap in Shanghai?", "And there?", *offered]) == offered[:MOST_QUESTIONS]
    assert queue.offer([offered[0], " Where is   the canteen of the Lima office? "]) == []
    assert queue.counts == {"accepted": MOST_QUESTIONS, "repeated": 2, "unclear": 1, "too_many": 3}


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("Who approves a longer stay in Lima?", True),
        ("Who pays the hotel in Lima for CNY 550?", True),
        ("Who pays the hotel in Lima for CNY 900?", False),
        ("Who approves a longer stay in Lima (see https://lima.example/hotel)?", False),
        ("Which lottery numbers win tomorrow evening?", False),
    ],
)
def test_a_question_that_a_model_made_up_is_shown_only_where_it_is_about_what_was_asked_or_read(
    question: str, shown: bool
) -> None:
    known = "How much is a hotel in Lima?\nA hotel in Lima costs CNY 550. Whoever approves the longer stay pays."
    assert grounded(question, known) is shown
