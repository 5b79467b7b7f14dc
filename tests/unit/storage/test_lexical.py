"""From text to terms: what is kept whole, what meets what, what a query leaves out."""

import pytest

from storage import lexical
from storage.lexical import Lengths, document_terms, query_terms


def indexed(text: str) -> set[str]:
    return set(document_terms(text, "", ()))


@pytest.mark.parametrize(
    ("question", "passage", "term"),
    [
        ("ISO 27001", "certified under ISO-27001 since May", "iso-27001"),
        ("iso27001", "certified under ISO 27001", "iso-27001"),
        ("form hr-12", "fill in Form HR-12", "hr-12"),
        ("ＨＲ－１２", "fill in Form HR-12", "hr-12"),
        ("差旅-03", "见《差旅-03》第二条", "差旅-03"),
        ("差旅－０３是什么", "依据差旅-03执行", "差旅-03"),
        ("1,800", "上限为1800元", "1800"),
    ],
)
def test_a_code_matches_itself_in_every_spelling(question: str, passage: str, term: str) -> None:
    assert term in query_terms(question)
    assert term in indexed(passage)


def test_a_code_keeps_its_parts_besides_itself() -> None:
    assert {"hr", "12", "hr-12", "form"} <= indexed("Form HR-12")


@pytest.mark.parametrize("near", ["ISO 9001", "HR-13", "差旅-04"])
def test_a_code_does_not_match_its_neighbour(near: str) -> None:
    codes = {"iso-27001", "hr-12", "差旅-03"}
    assert not codes & indexed(near)


def test_traditional_and_full_width_forms_meet_simplified_ones() -> None:
    assert set(query_terms("請假規定")) <= indexed("请假规定")
    assert set(query_terms("ＶＰＮ")) <= indexed("vpn")


def test_words_meet_in_their_stems_and_as_pairs() -> None:
    assert set(query_terms("travelling employees")) <= indexed("The employee travels: travel employee")
    assert "annual leav" in query_terms("annual leave")
    assert "annual leav" not in indexed("Plans are annual. Leave is not.")


def test_chinese_is_indexed_by_character_and_by_bigram() -> None:
    assert {"年", "假", "年假"} <= indexed("年假")


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("How many days of annual leave do I get?", {"day", "annual", "leav", "annual leav"}),
        ("What is it?", set()),
        ("年假有多少天？", {"年", "假", "年假", "天"}),
        ("请问我可以在家办公吗", {"在", "家", "办", "公", "在家", "家办", "办公"}),
        ("是什么？", set()),
    ],
)
def test_question_and_function_words_are_dropped_from_the_query(question: str, left: set[str]) -> None:
    assert set(query_terms(question)) == left


def test_function_words_are_indexed_all_the_same() -> None:
    assert {"how", "mani", "is"} <= indexed("How many is too many?")
    assert {"的", "是"} <= indexed("我的是")


def test_capitals_tell_a_department_from_a_pronoun() -> None:
    assert query_terms("Who do I ask in IT?").count("it") == 2
    assert "it" not in query_terms("Who do I ask about it?")


def test_numbers_and_codes_count_double_words_do_not() -> None:
    terms = query_terms("form HR-12 within 30 days")
    assert [terms.count(term) for term in ("form", "hr", "hr-12", "30", "day")] == [1, 2, 2, 2, 1]
    assert query_terms("TRAVEL COSTS").count("travel") == 1


def test_weights_follow_bm25f() -> None:
    """One term in each field: text 1, title 2 and headings 1, each over its own length normalisation."""
    terms = document_terms("cat dog", "cat", ["cat"], Lengths(3, 1, 2))
    # Text is of average length (cat, dog and their pair), the title too; headings are half as long as usual.
    assert terms["cat"] == pytest.approx(1 + 2 + 1 / (0.5 + 0.5 * 0.5))
    number = lexical.term_number("cat")
    assert lexical.vector({"cat": 3.0})[number] == pytest.approx(3 * 2.2 / (3 + 1.2))


def test_term_numbers_are_stable_and_fit_the_vector() -> None:
    assert lexical.term_number("leave") == 86383255
    numbers = [lexical.term_number(str(i)) for i in range(2000)]
    assert len(set(numbers)) == 2000
    assert min(numbers) >= 1
    assert max(numbers) <= lexical.DIMENSION


@pytest.mark.parametrize("odd", ["", " \n", "\ud800", "\x00", "🙂" * 50, "a" * 5000, "--__--", "'’'"])
def test_no_text_is_too_odd(odd: str) -> None:
    assert isinstance(document_terms(odd, odd, [odd]), dict)
    assert isinstance(query_terms(odd), list)


def test_what_a_query_looks_for_is_marked_in_a_text() -> None:
    terms = query_terms("annual leave of ISO 27001, 差旅-03")
    text = "The Annual Leaves；依据《差旅-03》，ＩＳＯ-27001 — ２ cm"
    marked = lexical.marked(text, terms)
    assert "".join(piece for piece, _ in marked) == text
    assert [piece for piece, hit in marked if hit] == ["Annual Leaves", "差旅-03", "ＩＳＯ-27001"]
    assert lexical.marked("5 ㎡ leave", ["leav"]) == [("5 m2 ", False), ("leave", True)]
    assert lexical.marked("", ["leav"]) == []


def test_synonyms_count_less_than_what_was_typed() -> None:
    weights = lexical.query_weights("annual leave", ["年假", "leave"])
    assert weights["leav"] == weights["annual leav"] == 1
    assert weights["年假"] == lexical.SYNONYM < 1


def test_the_units_of_a_text_forget_endings_and_marks() -> None:
    assert lexical.units("Physical Therapies: 年假, 2,000") == ["physic", "therapi", "年", "假", "2000"]
