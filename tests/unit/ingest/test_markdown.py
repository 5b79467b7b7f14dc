"""Front matter and templates."""

import datetime

import pytest

from core.records import ParseWarning
from ingest import office
from ingest.markdown import split_front_matter, to_html, without_templates


def test_front_matter_is_taken_out() -> None:
    front, body, warnings = split_front_matter(
        "---\ntitle: 'Leave: 2026'\neffective_from: 2026-01-01\n"
        "effective_to: '2026-12-31'\nsupersedes: old.md\n---\nText\n"
    )
    assert (front.title, front.supersedes, body, warnings) == ("Leave: 2026", "old.md", "Text\n", [])
    assert front.effective_from == datetime.date(2026, 1, 1)
    assert front.effective_to == datetime.date(2026, 12, 31)


@pytest.mark.parametrize("head", ["title: [unclosed", "- a\n- list", "a: b: c", "!!python/object/apply:os.system [x]"])
def test_a_malformed_head_is_text_with_a_warning(head: str) -> None:
    text = f"---\n{head}\n---\nBody\n"
    front, body, warnings = split_front_matter(text)
    assert (front.title, body, [warning.code for warning in warnings]) == (None, text, ["bad_front_matter"])


def test_a_bad_date_is_left_out_with_a_warning() -> None:
    front, _, warnings = split_front_matter("---\neffective_from: soon\n---\nBody")
    assert front.effective_from is None
    assert warnings == [ParseWarning("bad_date", "effective_from is not a date like 2026-01-31 and was left out.")]


def test_a_rule_at_the_start_is_no_head() -> None:
    assert split_front_matter("---\n\nText")[1] == "---\n\nText"


def test_templates_go_and_their_words_stay() -> None:
    text = (
        'Ask in {% slack_channel "travel" %} or [the guide]({% page "/travel/" %}).\n'
        "{% comment %}TODO{% endcomment %}{{ site.name }}{% include 'nav.html' %}"
    )
    assert without_templates(text) == "Ask in travel or [the guide](#).\n"


def test_templates_in_code_blocks_stay() -> None:
    text = "```\n{% raw %}\n```\n{% raw %}x"
    assert without_templates(text) == "```\n{% raw %}\n```\nx"


def test_lists_nest_with_two_blanks() -> None:
    assert to_html("- a\n  - b\n").count("<ul>") == 2


HIDDEN = "Secret words that no reader of this page sees"


@pytest.mark.parametrize(
    "carrier",
    [
        f"<!-- {HIDDEN} -->",
        f"[//]: # ({HIDDEN})",
        f'[comment]: <> "{HIDDEN}"',
        f'<span style="display:none">{HIDDEN}</span>',
        f'<font color="white">{HIDDEN}</font>',
        f"<p hidden>{HIDDEN}</p>",
    ],
)
def test_hidden_text_in_markdown_goes_and_is_counted(carrier: str) -> None:
    elements, _, warnings = office.read_html(to_html(f"Plain words.\n\n{carrier}\n\nMore words.\n"))
    assert [element.text for element in elements] == ["Plain words.", "More words."]
    assert [(warning.code, warning.count) for warning in warnings] == [("hidden_text", 1)]


def test_markup_shown_as_code_is_text() -> None:
    elements, _, warnings = office.read_html(to_html(f"```\n<!-- {HIDDEN} -->\n[//]: # ({HIDDEN})\n```\n"))
    assert elements[0].text.splitlines() == [f"<!-- {HIDDEN} -->", f"[//]: # ({HIDDEN})"]
    assert warnings == []
