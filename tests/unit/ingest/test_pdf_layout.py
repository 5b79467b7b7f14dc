"""Geometry alone: segments to elements."""

from ingest.pdf_layout import Page, Segment, elements_of


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


def test_contents_lines_with_leaders_go() -> None:
    assert texts(seg("1.1", 100, 200), seg("Leave ............ 7", 130, 200), seg("Real text here.", 100, 300)) == [
        "Real text here."
    ]


def test_a_repeated_line_in_the_margin_goes_and_one_in_the_body_stays() -> None:
    pages = [page(seg("Example Ltd", 100, 20), seg("Same words", 100, 300), number=n) for n in (1, 2, 3)]
    assert [element.text for element in elements_of(pages)] == ["Same words"] * 3


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
