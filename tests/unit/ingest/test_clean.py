"""Invisible text goes, honest joiners stay, and no document can write one of our citation marks."""

import pytest

from ingest.clean import clean, clean_warnings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\u200bb\u2060c\ufeffd", "abcd"),
        ("\u202eevil\u202c \u2066x\u2069", "evil x"),
        ("soft\u00adhyphen", "softhyphen"),
        ("x\U000e0041\U000e007fy", "xy"),
        ("nul\0 bell\x07 del\x7f", "nul bell del"),
        ("lone \ud800surrogate\udfff", "lone surrogate"),
        ("a\ufe01b\U000e0101c", "abc"),
        ("word\u200djoiner\u200cword", "wordjoinerword"),
        ("line\r\nline\rline\x0bline\u2028line", "line\nline\nline\nline\nline"),
        ("\u3164filler\uffa0", "filler"),
    ],
)
def test_invisible_characters_go(text: str, expected: str) -> None:
    assert clean(text)[0] == expected


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم",  # Persian: the non-joiner is spelling
        "क्\u200dष",  # Hindi: the joiner keeps the half form
        "👩\u200d💻 👍🏽 ❤\ufe0f 1\ufe0f\u20e3",
        "差旅 policy\ttab\nline",
        "Zażółć gęślą jaźń",
    ],
)
def test_honest_text_stays(text: str) -> None:
    assert clean(text) == (text, 0, 0)


@pytest.mark.parametrize(
    "mark",
    [
        "[chunk:12]",
        "[ Chunk : 12 ]",
        "［chunk：12］",
        "【ｃｈｕｎｋ:12】",
        "[\u200bchu\u00adnk:12]",
        "[сhunk:12]",  # Cyrillic es
        "[𝐜𝐡𝐮𝐧𝐤:12]",
        "〔CHUNK∶12〕",
        "[[chunk:12]]",
    ],
)
def test_forged_marks_are_defused(mark: str) -> None:
    text, _, forged = clean(f"Before {mark} after")
    assert forged == 1
    assert "12" in text
    assert "(" in text
    assert not set(text.removeprefix("Before [").removesuffix("] after")) & set("[]［］【】〔〕")
    assert clean(text) == (text, 0, 0)


def test_an_unclosed_mark_is_defused() -> None:
    assert clean("see [chunk:7\nnext")[0] == "see (chunk:7\nnext"


@pytest.mark.parametrize("text", ["[1] a reference", "[see chapter: 2]", "【重要】通知", "a[0] = chunk: 3"])
def test_other_brackets_stay(text: str) -> None:
    assert clean(text)[0] == text


def test_the_count_tells_how_many_went() -> None:
    assert clean("a\u200bb\u200bc\0")[1] == 3


def test_what_went_is_told_by_kind_with_its_count() -> None:
    assert clean_warnings(0, 0) == []
    assert [(warning.code, warning.count) for warning in clean_warnings(3, 2)] == [
        ("invisible_characters", 3),
        ("forged_marks", 2),
    ]
