"""Geometry alone: segments to elements."""

import pytest

from ingest.columns import in_columns
from ingest.pdf_layout import elements_of
from ingest.segments import Page, Segment


def seg(text: str, left: float, top: float, **more: object) -> Segment:
    size = float(more.pop("size", 10.0))  # type: ignore[arg-type]
    width = sum(size if ord(char) > 255 else size * 0.5 for char in text)
    return Segment(1, text, left, top, left + width, top + size, size, **more)  # type: ignore[arg-type]


def page(*segments: Segment, number: int = 1) -> Page:
    return Page(number, 600, 800, tuple(Segment(**{**_fields(s), "page": number}) for s in segments))


def _fields(segment: Segment) -> dict[str, object]:
    return {name: getattr(segment, name) for name in Segment.__dataclass_fields__}


def texts(*segments: Segment) -> list[str]:
    return [element.text for element in elements_of([page(*segments)])]


LINE = "A line of the body that fills the column well to its right edge, see"


def test_chinese_lines_join_without_blanks_and_indents_begin_paragraphs() -> None:
    assert texts(
        seg("员工每年享有带薪年休假，具体天数按工作年限确定，不满一年的按比例折", 120, 200),
        seg("算。", 100, 216),
        seg("年休假须提前申请，由直属上级批准，未经批准不得擅自离岗，违者按旷工", 120, 232),
        seg("处理。", 100, 248),
    ) == [
        "员工每年享有带薪年休假，具体天数按工作年限确定，不满一年的按比例折算。",
        "年休假须提前申请，由直属上级批准，未经批准不得擅自离岗，违者按旷工处理。",
    ]


def test_hyphens_join_words_and_stay_in_codes() -> None:
    assert texts(seg(f"{LINE} calen", 100, 200, hyphenated=True), seg("dar days of the year.", 100, 212)) == [
        f"{LINE} calendar days of the year."
    ]
    assert texts(seg(f"{LINE} Form CO", 100, 200, hyphenated=True), seg("04 in time.", 100, 212)) == [
        f"{LINE} Form CO-04 in time."
    ]


def test_a_bullet_drawn_apart_belongs_to_its_text() -> None:
    found = elements_of(
        [page(seg("•", 100, 200), seg("Book early", 120, 200), seg("•", 100, 214), seg("Keep it", 120, 214))]
    )
    assert [(element.kind, element.text) for element in found] == [("list", "• Book early"), ("list", "• Keep it")]


def test_letters_placed_one_by_one_are_words() -> None:
    assert texts(seg("T", 100, 200), seg("ravel", 105, 200), seg("desk", 133, 200)) == ["Travel desk"]


def test_rows_of_cells_are_a_table_also_where_cells_wrap() -> None:
    rows = [
        seg("What", 100, 200), seg("Limit", 250, 200), seg("Above it", 400, 200),
        seg("Gift received", 100, 225), seg("or given", 100, 237), seg("EUR 40", 250, 225), seg("Refuse it", 400, 225),
        seg("Event", 100, 262), seg("EUR 150", 250, 262), seg("Ask first", 400, 262),
    ]  # fmt: skip
    assert texts(*rows) == [
        "What: Gift received or given | Limit: EUR 40 | Above it: Refuse it\n"
        "What: Event | Limit: EUR 150 | Above it: Ask first"
    ]


def grid(rows: list[list[str]], top: float, number: int) -> Page:
    cells = [seg(text, 100 + 150 * x, top + 14 * y) for y, row in enumerate(rows) for x, text in enumerate(row)]
    return page(*cells, number=number)


NAMES = ["City", "Grade", "Cap"]


@pytest.mark.parametrize("repeated", [False, True])
def test_a_table_that_goes_on_over_the_page_keeps_its_names_and_its_pages(repeated: bool) -> None:
    rows = [["Berlin", "A", "180 EUR"], ["Paris", "A", "190 EUR"]]
    more = [["Shanghai", "B", "550 CNY"], ["Munich", "A", "170 EUR"]]
    parts = [grid([NAMES, *rows], 600, 1), grid([NAMES, *more] if repeated else more, 110, 2)]
    first, second = elements_of(parts)
    assert first.text == "City: Berlin | Grade: A | Cap: 180 EUR\nCity: Paris | Grade: A | Cap: 190 EUR"
    assert second.text == "City: Shanghai | Grade: B | Cap: 550 CNY\nCity: Munich | Grade: A | Cap: 170 EUR"
    assert (first.page, second.page, second.boxes[0].page) == (1, 2, 2)


def test_another_table_on_the_next_page_gets_no_names() -> None:
    other = page(seg("Berlin", 100, 110), seg("12", 320, 110), seg("Paris", 100, 124), seg("14", 320, 124), number=2)
    _, second = elements_of([grid([NAMES, ["Berlin", "A", "180 EUR"]], 600, 1), other])
    assert second.text == "Berlin | 12\nParis | 14"


def test_a_tables_head_on_every_page_is_no_running_line() -> None:
    rows = [["Berlin", "A", "180 EUR"], ["Paris", "A", "190 EUR"]]
    found = elements_of([grid([NAMES, *rows], 60, number) for number in (1, 2, 3)])
    assert {element.text.splitlines()[0] for element in found} == {"City: Berlin | Grade: A | Cap: 180 EUR"}


def test_contents_lines_with_leaders_go() -> None:
    assert texts(seg("1.1", 100, 200), seg("Leave ............ 7", 130, 200), seg("Real text here.", 100, 300)) == [
        "Real text here."
    ]


def test_a_repeated_line_in_the_margin_goes_and_one_in_the_body_stays() -> None:
    pages = [page(seg("Example Ltd", 100, 20), seg("Same words", 100, 300), number=n) for n in (1, 2, 3)]
    assert [element.text for element in elements_of(pages)] == ["Same words"] * 3


@pytest.mark.parametrize(
    "text",
    [
        "7",
        "- 7 -",
        "Page 7 of 9",
        "7/9",
        "iv",
        "7 | Page",
        "第 7 页",
        "第7页 共9页",
        "共 9 页 第 7 页",
        "Example Ltd - 7 / 9",
    ],
)
def test_page_numbers_go_even_on_a_single_page(text: str) -> None:
    assert texts(seg(text, 280, 780), seg("Same words", 100, 300)) == ["Same words"]


@pytest.mark.parametrize("text", ["Valid from 02/2026", "Form 7", "Illinois", "Room 7 of the annex", "2026-01-05"])
def test_other_lines_in_the_margin_stay(text: str) -> None:
    assert texts(seg(text, 280, 780), seg("Same words", 100, 300)) == [text, "Same words"]


def test_a_number_beside_a_text_is_a_cell_and_beside_a_running_line_a_page_number() -> None:
    assert texts(seg("Floor", 100, 60), seg("7", 300, 60)) == ["Floor", "7"]
    pages = [page(seg("Example Ltd", 100, 780), seg(n, 500, 780), seg(f"Text {n}.", 100, 300)) for n in "123"]
    numbered = [Page(n, p.width, p.height, p.segments) for n, p in enumerate(pages, start=1)]
    assert [element.text for element in elements_of(numbered)] == ["Text 1.", "Text 2.", "Text 3."]


def test_a_paragraph_goes_on_over_the_page() -> None:
    pages = [page(seg(f"{LINE} next", 100, 700), number=1), page(seg("page for the rest.", 100, 100), number=2)]
    (element,) = elements_of(pages)
    assert element.text == f"{LINE} next page for the rest."
    assert [box.page for box in element.boxes] == [1, 2]


def test_sizes_and_weight_give_levels() -> None:
    found = elements_of(
        [
            page(
                seg("Handbook", 100, 100, size=20.0),
                seg("Leave", 100, 150, size=14.0),
                seg("Sick leave", 100, 180, bold=True),
                *(seg(LINE, 100, 200 + 12 * n) for n in range(5)),
            )
        ]
    )
    assert [(e.level, e.text) for e in found if e.kind == "title"] == [(1, "Handbook"), (2, "Leave"), (3, "Sick leave")]


def test_numbers_with_dots_head_sections_of_one_size() -> None:
    found = elements_of([page(seg("2.1 基本守则", 250, 100), *(seg(LINE, 100, 140 + 12 * n) for n in range(4)))])
    assert [(e.level, e.text) for e in found if e.kind == "title"] == [(2, "2.1 基本守则")]


def test_nothing_gives_nothing() -> None:
    assert elements_of([]) == []
    assert elements_of([page()]) == []


LEFT = [
    "The employer grants leave to all who",
    "have worked for six months, counted",
    "from the first day of the contract,",
    "and adds a day for each further year",
    "of service, up to five days, and no more",
    "Leave is agreed with the manager in",
]
RIGHT = [
    "writing and is entered by the office",
    "within three days after it was given.",
    "Leave that was not taken by March of",
    "the next year is lost, unless illness",
    "or work for the firm prevented it, or",
    "the manager has agreed to keep it all.",
]


def side_by_side(left: list[str], right: list[str], top: float = 200) -> list[Segment]:
    """Lines of two columns as a program writes them that goes from line to line across the page."""
    rows = zip(left, right, range(len(left)), strict=True)
    return [seg(text, x, top + 12 * n) for a, b, n in rows for x, text in ((60, a), (320, b))]


def test_columns_that_were_written_across_are_read_one_after_the_other() -> None:
    head, foot = seg("A title over both of the columns of this page", 60, 150, size=18), seg("The end.", 60, 300)
    (title, text, end) = texts(head, *side_by_side(LEFT, RIGHT), foot)
    assert title == head.text
    assert text == " ".join([*LEFT, *RIGHT])
    assert end == "The end."


def test_columns_that_were_written_one_after_the_other_stay() -> None:
    written = side_by_side(LEFT, RIGHT)
    assert texts(*written[::2], *written[1::2]) == [" ".join([*LEFT, *RIGHT])]


def test_three_columns() -> None:
    rows = [(LEFT, 40), (RIGHT, 250), (LEFT, 460)]
    across = [seg(text[n], x, 200 + 12 * n) for n in range(6) for text, x in rows]
    assert [segment.text for segment in in_columns(across)] == [*LEFT, *RIGHT, *LEFT]


def test_a_column_that_ends_earlier_leaves_the_rest_in_place() -> None:
    across = [*side_by_side(LEFT, RIGHT), seg("and in no other way.", 60, 272)]
    assert [segment.text for segment in in_columns(across)] == [*LEFT, "and in no other way.", *RIGHT]


def test_chinese_columns() -> None:
    lines = ["员工每年享有带薪年休假，具体天数按", "工作年限确定，不满一年的按比例折算"]
    across = [seg(lines[side], (60, 320)[side], 200 + 14 * n) for n in range(5) for side in (0, 1)]
    assert [segment.left for segment in in_columns(across)] == [60] * 5 + [320] * 5


def test_cells_are_no_columns() -> None:
    short = [seg(text, x, 200 + 12 * n) for n in range(6) for x, text in ((60, "Berlin office"), (320, "Hall 3"))]
    apart = [seg(text[n], x, 200 + 24 * n) for n in range(6) for x, text in ((60, LEFT), (320, RIGHT))]
    wrapped = [
        seg(text[n % 6], x, 200 + 12 * n + 10 * (n // 3))
        for n in range(12)
        for x, text in ((60, LEFT), (320, RIGHT))
        if x == 320 or n % 3 == 0
    ]
    assert in_columns(short) == short
    assert in_columns(wrapped) == wrapped
    assert len(in_columns(apart)) == len(apart)


def test_nothing_is_lost_or_doubled_by_columns() -> None:
    written = [seg("One line alone", 60, 100), *side_by_side(LEFT, RIGHT), *side_by_side(RIGHT, LEFT, top=400)]
    assert sorted(in_columns(written), key=repr) == sorted(written, key=repr)
