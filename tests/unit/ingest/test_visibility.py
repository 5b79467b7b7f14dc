"""What nobody sees on a page goes and is counted; what looks alike but is seen stays."""

import pytest

from core.errors import FileTooLarge
from ingest import html, office

SECRET = "Secret words that nobody sees on this page"
SHOWN = "Plain words that everybody reads"


def read(body: str, head: str = "") -> tuple[str, int]:
    elements, _, warnings = office.read_html(f"<html><head>{head}</head><body>{body}</body></html>")
    counts = [warning.count for warning in warnings if warning.code == "hidden_text"]
    return "\n".join(element.text for element in elements), sum(counts)


@pytest.mark.parametrize(
    "style",
    [
        "display:none",
        "DISPLAY : NONE !important",
        "visibility: hidden",
        "visibility:collapse",
        "opacity:0",
        "opacity: 0.01",
        "opacity: 0%",
        "filter: opacity(0)",
        "font-size:0",
        "font-size: 1px",
        "font-size:2px",
        "font-size:1.5pt",
        "font-size: .1em",
        "font: italic 1px/1.2 serif",
        "color:#fff",
        "color: white",
        "color:#fefefe",
        "color:rgb(255, 255, 255)",
        "color:hsl(0, 0%, 100%)",
        "color:rgba(0,0,0,0)",
        "color: transparent",
        "color:#00000000",
        "color:#000;background:#000",
        "background-color:#ffffff;color:snow",
        "position:absolute;left:-9999px",
        "position:fixed; top: -2000px",
        "position:absolute; left: 99999px",
        "position:absolute;left:-999em",
        "margin-left:-10000px",
        "text-indent:-9999px",
        "text-indent:100%;white-space:nowrap;overflow:hidden",
        "position:absolute;clip:rect(0 0 0 0)",
        "position:absolute;clip:rect(1px, 1px, 1px, 1px)",
        "clip-path:inset(50%)",
        "clip-path: inset(100%)",
        "height:0;overflow:hidden",
        "max-height:0px;overflow:hidden",
        "width:1px;height:1px;overflow:hidden",
        "transform:scale(0)",
        "transform:translateX(-9999px)",
    ],
)
def test_hidden_by_a_style_attribute_or_a_sheet(style: str) -> None:
    text, count = read(f'<p>{SHOWN}</p><p style="{style}">{SECRET}</p>')
    assert (text, count) == (SHOWN, 1)
    text, count = read(f'<p>{SHOWN}</p><p class="a b">{SECRET}</p>', f"<style>p.b {{ {style} }}</style>")
    assert (text, count) == (SHOWN, 1)


@pytest.mark.parametrize(
    "carrier",
    [
        f"<div hidden><p>{SECRET}</p></div>",
        f'<font color="#FFFFFF">{SECRET}</font>',
        f'<table bgcolor="#000080"><tr><td bgcolor="white" style="color:white">{SECRET}</td></tr></table>',
        f"<!-- {SECRET} -->",
        f"<template><p>{SECRET}</p></template>",
        f"<noscript>{SECRET}</noscript>",
        f'<div style="display:none"><p style="display:block">{SECRET}</p></div>',
        f'<div style="opacity:.2"><p style="opacity:.2">{SECRET}</p></div>',
        f'<div style="font-size:4px"><p style="font-size:40%">{SECRET}</p></div>',
    ],
)
def test_hidden_by_other_means(carrier: str) -> None:
    assert read(f"<p>{SHOWN}</p>{carrier}") == (SHOWN, 1)


@pytest.mark.parametrize(
    ("selector", "body"),
    [
        ("#x", f'<p id="x">{SECRET}</p>'),
        ("em, .x", f'<p class="x">{SECRET}</p>'),
        ("article", f"<article>{SECRET}</article>"),
        ("div > p.x", f'<div><p class="x">{SECRET}</p></div>'),
        ("section .x", f'<section><div><p class="x">{SECRET}</p></div></section>'),
        ("[data-x]", f'<p data-x="1">{SECRET}</p>'),
        ('p[title="x"]', f'<p title="x">{SECRET}</p>'),
    ],
)
def test_rules_are_matched_by_their_selectors(selector: str, body: str) -> None:
    head = f"<style>/* note */ @media screen {{ {selector} {{ display: none }} }}</style>"
    assert read(f"<p>{SHOWN}</p>{body}", head) == (SHOWN, 1)


@pytest.mark.parametrize(
    "style",
    [
        "color:#999",
        "color:#ddd",
        "color:lightgrey",
        "font-size:6pt",
        "font-size:8px",
        "font-size:.8em",
        "opacity:.6",
        "color:#fff;background:#036",
        "color:white;background:linear-gradient(red, blue)",
        "color:white;background:url(dark.png)",
        "color:white;background:var(--brand)",
        "color:var(--text)",
        "color:#fff;text-shadow:0 0 2px #000",
        "color:transparent;background:linear-gradient(red,blue);-webkit-background-clip:text",
        "color:#fff;-webkit-text-fill-color:#000",
        "display:flex;visibility:visible",
        "position:relative;left:-20px",
        "position:absolute;clip:auto",
        "text-indent:-1.5em;padding-left:1.5em",
        "text-indent:2em",
        "height:0",
        "transform:scale(0.9)",
        "margin-left:-30px",
        "background:#fff",
        "background:#000;background-color:#000;color:#eee",
    ],
)
def test_what_looks_alike_stays(style: str) -> None:
    assert read(f'<p style="{style}">{SHOWN}</p>') == (SHOWN, 0)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("", f'<div style="background:#036"><p style="color:#fff">{SHOWN}</p></div>'),
        ("<style>body{background:#222;color:#fff}</style>", f"<p>{SHOWN}</p>"),
        ("<style>.hero{background:navy} h1{color:#fff}</style>", f'<div class="hero"><h1>{SHOWN}</h1></div>'),
        ("<style>div{font-size:0} p{font-size:14px}</style>", f"<div><p>{SHOWN}</p></div>"),
        (
            "<style>.a{visibility:hidden} .b{visibility:visible}</style>",
            f'<div class="a"><p class="b">{SHOWN}</p></div>',
        ),
        ("<style>.tab{display:none} .tab.active{display:block}</style>", f'<div class="tab active">{SHOWN}</div>'),
        ("<style>.tab{display:none} .tab:target{display:block}</style>", f'<div class="tab">{SHOWN}</div>'),
        ("<style>.more{display:none} input:checked ~ .more{display:block}</style>", f'<p class="more">{SHOWN}</p>'),
        ("<style>.x{display:none} #y{display:block}</style>", f'<p class="x" id="y">{SHOWN}</p>'),
        ("<style>.x{display:none !important}</style>", f'<p class="y">{SHOWN}</p>'),
        ("<style>.x{display:none}</style>", f'<p class="x" style="display:block">{SHOWN}</p>'),
        ("<style>@media print{.x{display:none}}</style>", f'<p class="x">{SHOWN}</p>'),
        ("<style>@media (max-width:600px){.x{display:none}}</style>", f'<p class="x">{SHOWN}</p>'),
        ("<style>nav .x{display:none}</style>", f'<p class="x">{SHOWN}</p>'),
        ("<style>p::before{display:none} p:hover{opacity:0}</style>", f"<p>{SHOWN}</p>"),
        ("<style>html{opacity:0} body{visibility:hidden}</style>", f"<p>{SHOWN}</p>"),
        ('<link rel="stylesheet" href="a.css">', f'<div class="bar"><p style="color:#fff">{SHOWN}</p></div>'),
        ("", f"<details><p>{SHOWN}</p></details>"),
        ("", f'<p hidden="until-found">{SHOWN}</p>'),
        ("", f'<div aria-hidden="true"><p>{SHOWN}</p></div>'),
        ("", f'<table bgcolor="#000"><tr><td><font color="#ffffff">{SHOWN}</font></td></tr></table>'),
    ],
)
def test_what_a_visitor_sees_or_can_open_stays(head: str, body: str) -> None:
    assert read(body, head) == (SHOWN, 0)


def test_what_a_button_opens_stays() -> None:
    body = f'<p><button aria-controls="more">More</button></p><div id="more" style="display:none">{SHOWN}</div>'
    assert read(body) == (SHOWN, 0)


def test_only_the_letters_in_the_grounds_colour_go() -> None:
    body = f'<p>{SHOWN} <span style="color:white">{SECRET} <b style="color:black">again</b></span> daily</p>'
    assert read(body) == (f"{SHOWN} again daily", 1)


def test_each_place_counts_once() -> None:
    assert read(f'<div style="color:#fff"><p>{SECRET}</p><p>{SECRET}</p></div><p hidden>{SECRET}</p>')[1] == 2


def test_names_of_page_parts_are_no_hidden_text() -> None:
    assert read(
        f"<!-- end of header --><!--[if mso]> one two three four five six seven <![endif]--><p>{SHOWN}</p>"
    ) == (
        SHOWN,
        0,
    )


def test_a_links_own_sign_is_dropped_and_not_counted() -> None:
    assert read(f'<h2>{SHOWN} <a aria-hidden="true" href="#x">#</a></h2><i aria-hidden="true">home</i>') == (SHOWN, 0)


@pytest.mark.parametrize(
    "sheet", ["p{", "}{", "@media{", "p{color", "a,,b{x:y}", "{}" * 50, "p{display:none" * 3, "@import x"]
)
def test_a_broken_sheet_is_passed_over(sheet: str) -> None:
    assert isinstance(html.prepare(f"<style>{sheet}</style><b>{SHOWN}</b>"), html.Prepared)


def test_style_sheets_that_ask_for_endless_looking_up_are_refused() -> None:
    rules = "".join(f"div div p.c{number % 3}{{display:none}}" for number in range(5000))
    with pytest.raises(FileTooLarge):
        html.prepare(f"<style>{rules}</style>" + '<div><div><p class="c0 c1 c2">x</p></div></div>' * 500)
