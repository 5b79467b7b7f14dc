"""HTML made fit to read."""

import pytest

from core.errors import FileTooLarge
from ingest import html, office

WORDS = "Words that stand on the page"


def texts(source: str) -> list[str]:
    return [element.text for element in office.read_html(source)[0]]


@pytest.mark.parametrize(
    "carrier",
    [
        f'<img src="x.png" alt="{WORDS}">',
        f"<script>{WORDS}</script>",
        f"<textarea>{WORDS}</textarea>",
        f"<svg><title>{WORDS}</title></svg>",
        f"<del>{WORDS}</del>",
    ],
)
def test_what_is_no_text_of_the_page_goes(carrier: str) -> None:
    assert texts(f"<main><p>Seen before</p>{carrier}<p>Seen after</p></main>") == ["Seen before", "Seen after"]


@pytest.mark.parametrize(
    "shown",
    [
        f"<details><summary>{WORDS}</summary></details>",
        f"<form><div><p>{WORDS}</p></div></form>",
        f"<figure><figcaption>{WORDS}</figcaption></figure>",
    ],
)
def test_what_a_reader_sees_stays(shown: str) -> None:
    assert texts(f"<body>{shown}</body>") == [WORDS]


def test_furniture_goes_and_an_articles_own_header_stays() -> None:
    source = """<body><header><a href=/>Home</a></header><div class="breadcrumb"><a href=a>A</a> <a href=b>B</a></div>
    <div role="navigation"><a href=n>N</a></div><article><header><h1>Leave</h1></header><p>Thirty days.</p>
    <aside><p>Own note.</p></aside></article><aside><p>Also of interest</p></aside><footer>Imprint</footer></body>"""
    assert texts(source) == ["Leave", "Thirty days.", "Own note."]


def test_a_page_header_with_the_heading_stays() -> None:
    assert texts("<body><header><h1>Leave</h1></header><p>Thirty days.</p></body>") == ["Leave", "Thirty days."]


def test_cells_that_span_are_repeated() -> None:
    source = """<table><tr><th>City</th><th>Grade</th><th>Cap</th></tr>
    <tr><td rowspan=2>Berlin</td><td>A</td><td>180</td></tr><tr><td>B</td><td>140</td></tr>
    <tr><td>London</td><td colspan=2>on request</td></tr></table>"""
    assert texts(source)[0].splitlines() == [
        "City: Berlin | Grade: A | Cap: 180",
        "City: Berlin | Grade: B | Cap: 140",
        "City: London | Grade: on request | Cap: on request",
    ]


def test_a_huge_span_is_bounded() -> None:
    prepared = html.prepare("<table><tr><td colspan=99999999>a</td><td>b</td></tr></table>")
    assert prepared.html.count("<td") <= html.MAX_SPAN + 1


def test_a_page_that_asks_for_endless_cells_is_refused() -> None:
    row = "<tr>" + "<td rowspan=100 colspan=100>x</td>" * 20 + "</tr>"
    with pytest.raises(FileTooLarge):
        html.prepare(f"<table>{row * 100}</table>")


def test_tables_that_lay_out_a_page_are_opened() -> None:
    source = "<table><tr><td><h2>Leave</h2><p>Thirty days.</p></td></tr></table>"
    assert texts(source) == ["Leave", "Thirty days."]


def test_ordered_lists_keep_their_numbers() -> None:
    assert texts("<ol start=3><li>Three</li><li><p>Four</p></li></ol><ol type=a><li>A</li></ol>") == [
        "3. Three",
        "4. Four",
        "a. A",
    ]


def test_line_breaks_between_chinese_characters_are_no_blanks() -> None:
    assert texts("<p>不得因举报而被解雇、\n  调岗。\n任何人 ABC\nDEF</p>") == [
        "不得因举报而被解雇、调岗。任何人 ABC DEF"
    ]


def test_headings_in_accordions_stay() -> None:
    assert texts("<h4><button>How many days?</button></h4><div><p>Thirty.</p></div>") == ["How many days?", "Thirty."]


@pytest.mark.parametrize("source", ["", "   ", "<!-- only -->", "<html></html>", "\0"])
def test_empty_pages_give_nothing(source: str) -> None:
    assert texts(source) == []


def test_deep_nesting_ends() -> None:
    assert isinstance(html.prepare("<div>" * 5000 + "x"), html.Prepared)


def test_control_characters_do_not_end_the_reading() -> None:
    assert texts("<p>One\x0ctwo\x01 three&#1;\x00</p>") == ["One two three"]
