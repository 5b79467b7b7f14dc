"""Markdown: front matter, static-site templates, and rendering to HTML."""

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import yaml
from markdown_it import MarkdownIt

from core.records import ParseWarning

_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S)
_FENCE = re.compile(r"^([ \t]*)(```+|~~~+).*?(?:^[ \t]*\2[ \t]*$|\Z)", re.S | re.M)
_COMMENT_LINE = re.compile(r"""^ {0,3}\[[^\]\n]+\]:[ \t]*(?:<>|\#)[ \t]+["'(](.*?)["')][ \t]*$""", re.M)
_COMMENT_BLOCK = re.compile(r"\{%-?\s*comment\b.*?%\}.*?\{%-?\s*endcomment\s*-?%\}", re.S)
_LINK_TARGET = re.compile(r"\]\(\s*(?:\{%[^%]*%\}|\{\{[^}]*\}\})[^)\n]*\)")
# A tag's only argument, when it is a bare word in quotes, is what the tag shows: {% channel "travel" %}.
_SHOWN = re.compile(r"""\{%-?\s*\w+\s+["']([^"'/.%]+)["']\s*-?%\}""")
_TEMPLATE = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", re.S)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What a document's head says of it."""

    title: str | None = None
    effective_from: datetime.date | None = None
    effective_to: datetime.date | None = None
    supersedes: str | None = None
    # The head's plain entries, `name: value`.
    lines: tuple[str, ...] = ()


def split_front_matter(text: str) -> tuple[FrontMatter, str, list[ParseWarning]]:
    """The head, the text below it, and warnings. A head that is no YAML mapping stays text."""
    match = _FRONT_MATTER.match(text)
    if not match:
        return FrontMatter(), text, []
    try:
        head = yaml.safe_load(match[1])
    except (yaml.YAMLError, ValueError, RecursionError):
        return FrontMatter(), text, [_bad_head("is not valid YAML")]
    if head is None:
        return FrontMatter(), text[match.end() :], []
    if not isinstance(head, Mapping):
        return FrontMatter(), text, [_bad_head("holds no names")]
    warnings: list[ParseWarning] = []
    front = FrontMatter(
        title=_words(head.get("title")),
        effective_from=_date(head, "effective_from", warnings),
        effective_to=_date(head, "effective_to", warnings),
        supersedes=_words(head.get("supersedes")),
        lines=tuple(f"{name}: {words}" for name, value in head.items() if (words := _words(value))),
    )
    return front, text[match.end() :], warnings


def without_templates(text: str) -> str:
    """The text without the tags of static-site generators (Liquid, Nunjucks, Jinja), code blocks left alone."""
    if "{%" not in text and "{{" not in text and "{#" not in text:
        return text
    return _outside_code(text, _bare)


def to_html(text: str) -> str:
    """CommonMark with tables and strike-through, raw HTML kept: it is judged with all other HTML.

    So are comments written as links that lead nowhere, `[//]: # (words)`.
    """
    return str(_renderer().render(_outside_code(text, lambda part: _COMMENT_LINE.sub(r"<!-- \1 -->\n", part))))


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with everything changed but its fenced code blocks."""
    pieces: list[str] = []
    position = 0
    for fence in _FENCE.finditer(text):
        pieces += [change(text[position : fence.start()]), fence[0]]
        position = fence.end()
    return "".join(pieces) + change(text[position:])


@lru_cache(maxsize=1)
def _renderer() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def _bare(text: str) -> str:
    text = _COMMENT_BLOCK.sub("", text)
    text = _LINK_TARGET.sub("](#)", text)
    text = _SHOWN.sub(r"\1", text)
    return _TEMPLATE.sub("", text)


def _bad_head(why: str) -> ParseWarning:
    return ParseWarning("bad_front_matter", f"The head between --- lines {why} and was read as text.")


def _words(value: Any) -> str | None:
    return " ".join(str(value).split()) or None if isinstance(value, str | int | float) else None


def _date(head: Mapping[Any, Any], name: str, warnings: list[ParseWarning]) -> datetime.date | None:
    try:
        return as_date(head.get(name))
    except ValueError:
        warnings.append(ParseWarning("bad_date", f"{name} is not a date like 2026-01-31 and was left out."))
        return None


def as_date(value: object) -> datetime.date | None:
    """A date as YAML gives it, or as it writes it. Raises ValueError for anything else."""
    if isinstance(value, datetime.datetime):
        return value.date()
    if value is None or isinstance(value, datetime.date):
        return value
    return datetime.date.fromisoformat(str(value).strip())
