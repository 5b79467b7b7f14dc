import pytest

from inference.thinking import ThinkingFilter, without_thinking


@pytest.mark.parametrize(
    "pieces",
    [
        ["<think>plan</think>Sixteen weeks."],
        ["<th", "ink>pl", "an</thi", "nk>Sixteen", " weeks."],
        list("<think>plan</think>Sixteen weeks."),
        ["Sixteen<THINKING>a < b", "</thinking> weeks."],
        ["<think>one</think>Sixteen<think>two</think> weeks."],
        ["<reasoning>plan</reasoning>", "Sixteen weeks."],
        ["plan</think>Sixteen weeks."],
    ],
)
def test_thinking_split_over_pieces_is_removed(pieces: list[str]) -> None:
    thinking = ThinkingFilter()
    text = "".join(map(thinking.feed, pieces)) + thinking.finish()
    assert text == "Sixteen weeks."


def test_a_tag_that_is_never_closed_hides_the_rest() -> None:
    thinking = ThinkingFilter()
    assert thinking.feed("Yes. <think>but perhaps") + thinking.finish() == "Yes. "


def test_what_only_looks_like_a_tag_is_kept() -> None:
    thinking = ThinkingFilter()
    text = "".join(thinking.feed(piece) for piece in ("a <", "thin paper> and 3 <", " 4 <th")) + thinking.finish()
    assert text == "a <thin paper> and 3 < 4 <th"


def test_pieces_are_given_out_as_soon_as_they_are_sure() -> None:
    thinking = ThinkingFilter()
    assert thinking.feed("Sixteen ") == "Sixteen "
    assert thinking.feed("weeks <") == "weeks "


def test_a_reply_whose_opening_tag_stands_in_the_prompt() -> None:
    assert without_thinking("First, the policy.\nThen the table.</think>\n\nSixteen weeks.") == "Sixteen weeks."
