"""Lines for a terminal: Latin and Chinese, punctuation and citation marks."""

import pytest
from rich.cells import cell_len

from api.cli.wrapping import wrap


def test_latin_breaks_at_spaces() -> None:
    assert wrap("one two three four", 9) == ["one two", "three", "four"]


def test_chinese_breaks_between_characters_and_counts_cells() -> None:
    assert wrap("上海住宿标准为每晚五百元", 10) == ["上海住宿标", "准为每晚五", "百元"]


def test_closing_punctuation_never_starts_a_line() -> None:
    assert wrap("上海住宿标准，为每晚", 12) == ["上海住宿标", "准，为每晚"]


def test_opening_punctuation_never_ends_a_line() -> None:
    assert wrap("按照制度（差旅）执行", 10) == ["按照制度", "（差旅）执", "行"]


def test_a_citation_mark_stays_with_its_word() -> None:
    assert wrap("ends in Berlin [1].", 15) == ["ends in", "Berlin [1]."]
    assert wrap("每晚五百元 [1]。", 12) == ["每晚五百", "元 [1]。"]


def test_a_word_wider_than_the_line_is_cut() -> None:
    assert wrap("x" * 12, 5) == ["xxxxx", "xxxxx", "xx"]


def test_line_feeds_and_empty_lines_are_kept() -> None:
    assert wrap("one\n\ntwo", 20) == ["one", "", "two"]


@pytest.mark.parametrize("width", [6, 11, 24])
def test_no_line_is_wider_and_no_character_is_lost(width: int) -> None:
    text = "In 上海 the cap is CNY 550 a night [1]，见《差旅管理办法》第三章（住宿） [2]。"
    lines = wrap(text, width)
    assert max(map(cell_len, lines)) <= max(width, cell_len("办法》 "))
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
