"""Bytes to text."""

import pytest

from ingest.encoding import decode, decode_markup

CHINESE = "员工手册：年假为十五天，病假须有医院证明。"


@pytest.mark.parametrize(
    "codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
def test_unicode_with_and_without_marks(codec: str) -> None:
    text = "Leave policy, thirty days a year for all"
    assert decode(text.encode(codec)) == text


@pytest.mark.parametrize("codec", ["gbk", "gb18030", "big5"])
def test_chinese_national_sets(codec: str) -> None:
    text = CHINESE if codec != "big5" else "員工手冊：年假為十五天，病假須有醫院證明。"
    assert decode(text.encode(codec)) == text


@pytest.mark.parametrize("text", ["", "a", "OK", "你", "是的"])
def test_very_short_text(text: str) -> None:
    assert decode(text.encode()) == text


def test_western_letters() -> None:
    assert decode("Grüße aus Köln – 10 €".encode("cp1252")) == "Grüße aus Köln – 10 €"


def test_a_declaration_is_heard_but_not_believed_against_utf8() -> None:
    assert decode("Привет".encode("koi8-r"), "koi8-r") == "Привет"
    assert decode("Привет".encode(), "koi8-r") == "Привет"
    assert decode(b"plain", "no-such-set") == "plain"
    assert decode(b"\xff\xfeplain"[2:], "rot13") == "plain"


def test_html_declares_its_set() -> None:
    assert "é" in decode_markup(b'<meta charset="iso-8859-1"><p>caf\xe9</p>')


def test_nothing_makes_it_fail() -> None:
    assert decode(bytes(range(256)))
