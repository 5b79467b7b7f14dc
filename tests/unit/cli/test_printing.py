"""What a person reads: answers, sources, refusals and hits, in both languages, in a pipe."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from api.cli import console, printing
from core.records import Outcome
from tests.unit.cli.records import answer, citation, hit


@pytest.fixture
def sheet() -> Console:
    return Console(file=io.StringIO(), width=60, highlight=False, markup=False, emoji=False)


def read(sheet: Console) -> str:
    assert isinstance(sheet.file, io.StringIO)
    return sheet.file.getvalue()


def test_an_answer_is_followed_by_its_sources_and_times(sheet: Console) -> None:
    printing.show_answer(sheet, answer(citations=(citation(1, page=3), citation(2))))
    assert read(sheet) == (
        "    The cap in Berlin is EUR 140 per night [1].\n"
        "\n"
        "    Sources\n"
        "[1] Travel policy · Hotels › Caps · page 3\n"
        "    handbook/en/travel.md\n"
        "    “Hotel cap in Berlin: EUR 140 per night”\n"
        "[2] Travel policy · Hotels › Caps\n"
        "    handbook/en/travel.md\n"
        "    “Hotel cap in Berlin: EUR 140 per night”\n"
        "\n"
        "    searching 0.0 s · answering 2.3 s · 3 model calls\n"
    )


def test_a_chinese_answer_has_chinese_labels(sheet: Console) -> None:
    printing.show_answer(sheet, answer("每晚 140 欧元 [1]。", language="zh", citations=(citation(1, page=3),)))
    shown = read(sheet)
    assert "    来源\n" in shown
    assert "第 3 页" in shown
    assert "检索 0.0 s · 作答 2.3 s · 调用模型 3 次" in shown


def test_a_refusal_shows_the_nearest_passages(sheet: Console) -> None:
    refused = answer("Nothing says so.", outcome=Outcome.REFUSED, citations=(), nearest=(hit(1, "a/b.md"),))
    printing.show_answer(sheet, refused)
    assert "    Nearest passages\n·   Travel policy · Hotels › Caps\n    a/b.md\n" in read(sheet)


def test_what_is_missing_and_whom_to_ask_is_shown_where_it_says_more_than_the_question(sheet: Console) -> None:
    lacking = replace(answer(), verdict="caveat", missing=("the cap in Lima",), contacts=("handbook: HR, ext. 12",))
    printing.show_answer(sheet, lacking)
    shown = read(sheet)
    assert "    Not found in the documents\n    the cap in Lima\n" in shown
    assert "    Whom to ask\n    handbook: HR, ext. 12\n" in shown
    printing.show_answer(sheet, replace(answer(), verdict="cannot", missing=("What is the cap?",)))
    assert read(sheet).count("Not found") == 1


def test_a_follow_up_says_how_it_was_understood(sheet: Console) -> None:
    printing.show_answer(sheet, answer(standalone="What is the cap in Shanghai?"))
    assert "    understood as: What is the cap in Shanghai?\n" in read(sheet)


def test_a_cut_answer_says_so(sheet: Console) -> None:
    printing.show_answer(sheet, answer(outcome=Outcome.INCOMPLETE))
    assert "This answer was cut short." in read(sheet)
    printing.show_answer(sheet, answer(notice="Answered without memory."))
    assert "Answered without memory." in read(sheet)


@pytest.mark.parametrize("size", [1, 2, 7, 200])
def test_a_stream_shows_whole_lines_and_then_the_rest(sheet: Console, size: int) -> None:
    stream = printing.Stream(sheet)
    text = "A sentence that is just long enough to fill one line [1]. And a second one [2]."
    for start in range(0, len(text), size):
        stream.write(text[start : start + size])
    before = read(sheet)
    stream.end(text)
    assert before == "    A sentence that is just long enough to fill one\n"
    assert read(sheet) == before + "    line [1]. And a second one [2].\n"


def test_an_answer_that_was_not_streamed_is_shown_at_the_end(sheet: Console) -> None:
    printing.Stream(sheet).end("All at once [1].")
    assert read(sheet) == "    All at once [1].\n"


def test_hits_show_where_and_how_near(sheet: Console) -> None:
    printing.show_hits(sheet, [hit(1, "a/b.md", page=2)])
    assert read(sheet) == (
        "1   Travel policy · Hotels › Caps · page 2\n"
        "    a/b.md   fused 0.50 · vector 0.91\n"
        "    The cap is EUR 140 per night.\n"
        "\n"
    )


def test_a_long_passage_is_cut() -> None:
    assert printing.shorten("word " * 100, 20) == "word word word word …"


def test_text_of_a_document_cannot_command_the_terminal(sheet: Console) -> None:
    printing.show_answer(
        sheet, answer("red \x1b[31m and \u202egnol [1]\x07.", citations=(citation(1, "\x1b]0;x\x07 q"),))
    )
    assert not set("\x1b\x07\u202e") & set(read(sheet))


def test_clean_keeps_layout_and_letters() -> None:
    assert console.clean("a\tb\n上海\u3000é\x00\u200b") == "a\tb\n上海\u3000é"
