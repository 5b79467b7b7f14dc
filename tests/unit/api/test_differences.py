"""What changed between two texts, as pieces that give either text back."""

import random

import pytest

from api import differences as module
from api.differences import Piece, differences, words
from core.records import Chunk


def chunks(*texts: str, under: tuple[str, ...] = ("Hotels",)) -> list[Chunk]:
    return [Chunk(number, text, under, 0, 0, len(text)) for number, text in enumerate(texts)]


def plain(pieces: list[Piece]) -> list[tuple[str, str]]:
    return [(piece.op, piece.text.strip()) for piece in pieces]


def side(pieces: list[Piece], leaving: str) -> str:
    return "".join("".join(piece.text for piece in pieces if piece.op != leaving).split())


def test_nothing_changed() -> None:
    assert plain(differences(chunks("One. Two."), chunks("One. Two."))) == [("same", "One. Two.")]
    assert differences([], []) == []


def test_all_is_new_or_gone() -> None:
    assert plain(differences([], chunks("One."))) == [("added", "One.")]
    assert plain(differences(chunks("One."), [])) == [("removed", "One.")]


def test_a_changed_sentence_stands_between_those_that_stayed() -> None:
    found = differences(chunks("One. The cap is 180 euros. Three."), chunks("One. The cap is 200 euros. Three. Four."))
    assert plain(found) == [
        ("same", "One."),
        ("removed", "The cap is 180 euros."),
        ("added", "The cap is 200 euros."),
        ("same", "Three."),
        ("added", "Four."),
    ]


def test_where_a_text_was_cut_or_broken_is_no_difference() -> None:
    assert plain(differences(chunks("One. Two.", "Three."), chunks("One.", "Two.\nThree."))) == [
        ("same", "One.\nTwo.\nThree.")
    ]


def test_numbers_and_quotes_end_no_sentence() -> None:
    found = differences(chunks("It costs 3.5 euros. Fine."), chunks("It costs 3.7 euros. Fine."))
    assert plain(found)[0] == ("removed", "It costs 3.5 euros.")
    found = differences(chunks("他说：“好。”然后走了。再见。"), chunks("他说：“行。”然后走了。再见。"))
    assert plain(found) == [("removed", "他说：“好。”"), ("added", "他说：“行。”"), ("same", "然后走了。再见。")]


def test_what_moved_to_another_heading_is_told_on_both_sides() -> None:
    found = differences(chunks("One."), chunks("One.", under=("Flights",)))
    assert [(piece.op, piece.heading_path) for piece in found] == [("removed", ("Hotels",)), ("added", ("Flights",))]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            "At most 180 euros a night in Munich.",
            "At most 200 euros a night in Munich.",
            [("same", "At most"), ("removed", "180"), ("added", "200"), ("same", "euros a night in Munich.")],
        ),
        (
            "酒店每晚最高180欧元，含早餐。",
            "酒店每晚最高210欧元，不含早餐。",
            [
                ("same", "酒店每晚最高"),
                ("removed", "180"),
                ("added", "210"),
                ("same", "欧元，"),
                ("added", "不"),
                ("same", "含早餐。"),
            ],
        ),
        # One word that both have by chance does not tear a rewritten sentence apart.
        (
            "Every traveller books through the portal beforehand",
            "Nobody needs approval from the department anymore",
            [
                ("removed", "Every traveller books through the portal beforehand"),
                ("added", "Nobody needs approval from the department anymore"),
            ],
        ),
        ("a  b\nc", "a b c", [("same", "a b c")]),
        ("", "a", [("added", "a")]),
        ("", "", []),
    ],
)
def test_word_by_word(before: str, after: str, expected: list[tuple[str, str]]) -> None:
    assert plain(words(before, after)) == expected


@pytest.mark.parametrize("seed", range(100))
def test_the_pieces_give_either_text_back(seed: int) -> None:
    draw = random.Random(seed)
    vocabulary = ["hotel", "cap ", "180.", "酒店", "每晚。", "euros\n", "the", "! ", "…", "“x”"]

    def text() -> str:
        return " ".join(draw.choices(vocabulary, k=draw.randint(0, 30)))

    before, after = text(), text()
    for pieces in (words(before, after), differences(chunks(before), chunks(after))):
        assert side(pieces, "added") == "".join(before.split())
        assert side(pieces, "removed") == "".join(after.split())
        assert all(piece.text for piece in pieces if before.strip() and after.strip())


def test_long_texts_are_shown_whole_rather_than_compared_for_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    assert plain(words("a b c d", "a b c e")) == [("removed", "a b c d"), ("added", "a b c e")]
    assert plain(words("a b c d", "a b c d")) == [("same", "a b c d")]
