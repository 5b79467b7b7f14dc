import pytest

from agent.language.amounts import Quantity, quantities
from agent.language.names import names
from agent.language.text import around, estimate_tokens, overlap, plain, sentences, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cap is CNY 550 per night.", {("550", "cny")}),
        ("up to ¥1,300 or 1,100 pounds", {("1300", "cny"), ("1100", "gbp")}),
        ("24 days, not 24 months", {("24", "day"), ("24", "month")}),
        ("within thirty calendar days", {("30", "day")}),
        ("30 个自然日内，每晚不超过 550 元", {("30", "day"), ("550", "cny")}),
        (
            "十二个月，10万元，百分之二十",
            {("12", "month"), ("100000", "cny"), ("20", "percent")},
        ),
        ("１５％ and 15 percent", {("15", "percent")}),
        ("from 1 July 2026", set()),
        ("no amount at all", set()),
    ],
)
def test_quantities_have_one_form_in_both_languages(text: str, expected: set[tuple[str, str]]) -> None:
    assert {(found.value, found.unit) for found in quantities(text)} == expected


def test_a_number_keeps_the_word_that_is_no_known_unit() -> None:
    assert quantities("borrow 37 telescopes") == {Quantity("37", "", "telescopes")}


def test_five_minor_faults_are_not_five_minutes() -> None:
    assert {found.unit for found in quantities("5 minor faults")} == {""}


def test_sentences_are_verbatim_and_leave_abbreviations_whole() -> None:
    text = "Ask HR, e.g. by mail. Dial ext. 7788 or 9! It takes 1.5 days!\n第一条。第二条！"
    assert sentences(text) == [
        "Ask HR, e.g. by mail.",
        "Dial ext. 7788 or 9!",
        "It takes 1.5 days!",
        "第一条。",
        "第二条！",
    ]
    assert all(sentence in text for sentence in sentences(text))


def test_terms_drop_grammar_and_question_words() -> None:
    assert terms("How many days may I work from home?") == {"day", "work", "home"}
    assert terms("住宿费是多少？") >= {"住宿", "宿费"}


def test_overlap_is_the_share_that_is_held() -> None:
    assert overlap(terms("hotel cap Berlin"), "The hotel in Berlin") == pytest.approx(2 / 3)
    assert overlap(frozenset(), "anything") == 1.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Finance Director signs.", {"finance", "director"}),
        ("HR signs.", {"hr"}),
        ("由 HR 审批", {"hr"}),
        ("It costs CNY 5.", set()),
    ],
)
def test_names(text: str, expected: set[str]) -> None:
    assert names(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>hidden</think>Seven days.", "Seven days."),
        ("Seven days.<think>never closed", "Seven days."),
        ("left over</think> Seven days.", "left over Seven days."),
        ("<THINKING>a\nb</THINKING>\nSeven days.", "Seven days."),
        ("Seven<thi<think>a</think>nk>b</think> days.", "Seven days."),
    ],
)
def test_thinking_is_removed(text: str, expected: str) -> None:
    assert plain(text) == expected


def test_around_grows_from_the_best_match_and_fits() -> None:
    text = "\n".join(f"Line {i} speaks of nothing in particular at all." for i in range(40))
    text = text.replace("Line 20 speaks of nothing", "Line 20 speaks of parental leave")
    kept = around(text, terms("parental leave"), 60)
    assert "parental leave" in kept
    assert estimate_tokens(kept) <= 60
    assert all(line in text for line in kept.splitlines())


def test_around_cuts_one_endless_sentence() -> None:
    assert estimate_tokens(around("字" * 900, terms("字"), 50)) <= 50
