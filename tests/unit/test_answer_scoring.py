"""The measure of answers must itself be right: what states a fact, what a citation is worth, what a figure counts."""

import pytest

from tests.evals.answering import scoring
from tests.evals.answering.questions import Question, load, sample, states
from tests.evals.answering.scoring import Outcome

ASKED = Question(
    "en-multi-01", "en", "multi", "handbook", "What are cap and allowance?", ("a.md",), (("140",), ("42", "forty-two"))
)
NOTHING = Question("en-unanswerable-01", "en", "unanswerable", "handbook", "What is the cap in Tokyo?", (), ())


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("EUR 1,000 in Berlin", "1000"),
        ("The cap is EUR 140.", "140"),
        ("３ days", "3"),
        ("use Form FIN-07", "FIN-07"),
        ("上限三天。", "三天"),
        ("never expires", "Never"),
        ("open at 9:25", "9:25"),
    ],
)
def test_a_text_states_a_fact(text: str, fact: str) -> None:
    assert states(text, fact)


@pytest.mark.parametrize(
    ("text", "fact"), [("EUR 1,140", "140"), ("4.5 hours", "4"), ("14 days", "4"), ("attend", "ten"), ("400", "40")]
)
def test_a_part_of_a_number_or_word_is_no_fact(text: str, fact: str) -> None:
    assert not states(text, fact)


def test_an_answer_with_the_other_version_is_wrong() -> None:
    facts = (("3", "three"),)
    asked = Question("x", "en", "conflict", "handbook", "How many days?", ("a.md",), facts, wrong=("two days",))
    assert asked.answered_by("Up to three days.")
    assert not asked.answered_by("Up to three days, or two days part-time.")


def test_citations_count_by_what_their_passages_state() -> None:
    row = scoring.judged(ASKED, Outcome("140 and 42.", False, ("cap 140", "allowance 42", "parking"), 3, 1.0))
    assert (row["right"], row["citations"], row["citations_right"], row["facts_covered"]) == (True, 3, 2, 2)


def test_a_refusal_is_never_right_of_an_answerable_question() -> None:
    assert not scoring.judged(ASKED, Outcome("140 and 42 were not found.", True, (), 1, 1.0))["right"]


def test_figures_divide_by_what_they_speak_of() -> None:
    rows = [
        scoring.judged(ASKED, Outcome("140 and 42.", False, ("140", "none"), 2, 1.0)),
        scoring.judged(ASKED, Outcome("", True, (), 4, 3.0)),
        scoring.judged(NOTHING, Outcome("", True, (), 3, 2.0)),
        scoring.judged(NOTHING, Outcome("It is 9.", False, ("9",), 3, 2.0)),
    ]
    found = scoring.figures(rows)
    assert found["accuracy"] == found["false_refusals"] == found["refusals"] == 0.5
    assert (found["citation_precision"], found["citation_recall"]) == (0.5, 0.5)
    assert (found["model_calls"], found["seconds_median"]) == (3.0, 2.0)


def test_the_set_is_what_it_says() -> None:
    questions = load()
    kinds = [question.kind for question in questions]
    assert (len(questions), len({question.id for question in questions})) == (120, 120)
    assert [kinds.count(kind) for kind in ("single", "multi", "conflict", "unanswerable")] == [60, 20, 10, 30]
    assert sum(question.language == "zh" for question in questions) == 60
    assert all(bool(question.facts) == question.answerable == bool(question.documents) for question in questions)
    assert {question.kind for question in sample(questions, 40)} == set(kinds)
    assert all(question.answered_by(" ".join(question.sentences)) for question in questions)
