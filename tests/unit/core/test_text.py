import pytest

from core.text import cjk_share, count_cjk, fold, is_cjk, language_of


@pytest.mark.parametrize("char", ["中", "㐀", "豈", "\U00020000", "\U000323af"])
def test_han_characters_are_found_in_every_block(char: str) -> None:
    assert is_cjk(char)


@pytest.mark.parametrize("char", ["a", "1", "。", "あ", "カ", "한", "，", " "])
def test_other_characters_are_not_han(char: str) -> None:
    assert not is_cjk(char)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How many days of leave do I get?", "en"),
        ("上海的住宿标准是多少？", "zh"),
        ("那住宿费呢？", "zh"),
        ("VPN 怎么申请", "zh"),
        ("What does 报销 mean in the travel and expenses policy?", "en"),
        ("", "en"),
        ("???", "en"),
        ("42", "en"),
    ],
)
def test_a_question_has_its_language(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(("text", "count"), [("", 0), ("plain", 0), ("café – 9", 0), ("第〇章 a\U00020000", 4)])
def test_han_characters_are_counted(text: str, count: int) -> None:
    assert count_cjk(text) == count


def test_the_share_counts_letters_and_digits_only() -> None:
    assert cjk_share("中文 ab!!") == 0.5
    assert cjk_share("，。 !") == 0.0


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("ＶＰＮ　１２３", "vpn 123"),
        ("住宿費標準", "住宿费标准"),
        ("Straße", "strasse"),
        ("ﬁle", "file"),
        ("TRAVEL 政策", "travel 政策"),
        ("", ""),
    ],
)
def test_forms_of_one_word_fold_together(text: str, folded: str) -> None:
    assert fold(text) == folded
    assert fold(folded) == folded
