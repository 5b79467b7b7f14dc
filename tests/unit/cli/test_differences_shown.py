"""Differences on a terminal: word by word under their headings, what stayed cut to its edges."""

import io

from rich.console import Console

from api.cli.printing import EDGE, show_differences, show_facts
from api.differences import Piece

HOTELS = ("2. Hotels",)


def shown(pieces: list[Piece], **options: object) -> str:
    out = io.StringIO()
    settings = {"width": 100, "highlight": False, "markup": False, **options}
    show_differences(Console(file=out, **settings), pieces)  # type: ignore[arg-type]
    return out.getvalue()


def test_words_stand_between_marks_where_there_are_no_colours() -> None:
    pieces = [
        Piece("same", "Rooms are booked early. ", HOTELS),
        Piece("removed", "At most 180 euros a night. ", HOTELS),
        Piece("added", "At most 200 euros a night. ", HOTELS),
        Piece("added", "Breakfast is included.\n", HOTELS),
    ]
    assert shown(pieces) == (
        "    2. Hotels\n"
        "    Rooms are booked early. At most [-180-] {+200+} euros a night. {+Breakfast is\n"
        "    included.+}\n"
        "\n"
    )


def test_chinese_is_shown_by_its_characters() -> None:
    pieces = [Piece("removed", "每晚最高180欧元，含早餐。"), Piece("added", "每晚最高210欧元，不含早餐。")]
    assert "每晚最高[-180-]{+210+}欧元，{+不+}含早餐。" in shown(pieces)


def test_colours_take_the_place_of_marks() -> None:
    pieces = [Piece("removed", "old.", HOTELS), Piece("added", "new.", HOTELS)]
    colourful = shown(pieces, force_terminal=True, color_system="standard", no_color=False)
    assert "\x1b[9;31mold\x1b[0m" in colourful
    assert "[-" not in colourful
    assert "[-old-]{+new+}." in shown(pieces, force_terminal=True, no_color=True)


def test_headings_under_which_nothing_changed_are_left_out() -> None:
    pieces = [Piece("same", "One.", ("1. Scope",)), Piece("removed", "Two.", HOTELS)]
    assert "Scope" not in shown(pieces)
    assert "[-Two.-]" in shown(pieces)


def test_of_long_stretches_only_the_edges_are_shown() -> None:
    long = "a" * 100 + "b" * 100
    pieces = [
        Piece("same", long),
        Piece("removed", "x "),
        Piece("same", long),
        Piece("added", "y "),
        Piece("same", long),
    ]
    head, tail = "a" * EDGE, "b" * EDGE
    assert " ".join(shown(pieces).split()) == f"· … {tail}[-x-] {head} … {tail}{{+y+}} {head} …"


def test_a_documents_text_does_not_steer_the_terminal() -> None:
    assert "\x1b" not in shown([Piece("added", "\x1b[2J\x07[bold]new[/bold]", ("\x1b]0;title\x07",))])
    assert "[bold]new[/bold]" in shown([Piece("added", "[bold]new[/bold]")])


def test_facts_are_lined_up() -> None:
    out = io.StringIO()
    show_facts(Console(file=out, width=100), {"Title": "Leave\x1b[2J", "In force": "always"})
    assert out.getvalue() == "Title     Leave[2J\nIn force  always\n"
