"""An answer's Markdown as HTML that is safe to show.

An answer quotes documents that anyone may have written, so nothing in it may load, run or lead anywhere but to our own
pages: no images, no raw HTML, no link to another address. [n] becomes a link that opens the cited passage.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline

from core.records import Citation

_MARK = re.compile(r"\[(\d{1,2})\]")
# A path on this server. Not //host and not /\host, which browsers read as another server.
_OWN = re.compile(r"/(?![/\\])[\w\-./?=&%#]*", re.ASCII)
_TAGS: Final = frozenset(
    {"a", "blockquote", "br", "code", "em", "hr", "li", "ol", "p", "pre", "strong", "ul"}
    | {"h1", "h2", "h3", "h4", "h5", "h6"}
    | {"table", "tbody", "td", "th", "thead", "tr"}
)
# "*": what the sanitiser would otherwise allow everywhere.
_ATTRIBUTES: Final = {"a": {"href", "class", "data-n"}, "ol": {"start"}, "*": set[str]()}


def passage_address(citation: Citation) -> str:
    """The address that opens a cited passage; it can be handed to a colleague."""
    address = f"/?document={citation.document_id}&passage={citation.chunk_id}"
    pinned = f"&revision={citation.revision}&start={citation.start}&end={citation.end}"
    return address + pinned if citation.revision else address


def render(markdown: str, citations: Sequence[Citation] = ()) -> str:
    """Sanitised HTML of `markdown`; a mark [n] without its citation stays plain text."""
    addresses = {one.n: passage_address(one) for one in citations if one.origin == "library"}
    html = _parser().render(markdown, {"addresses": addresses})
    return nh3.clean(
        html,
        tags=set(_TAGS),
        attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
        attribute_filter=_own_links_only,
        link_rel=None,
    )


def bare_markdown() -> MarkdownIt:
    """A parser of Markdown that knows no HTML, no pictures and no addresses but those in a link's brackets."""
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table")
    # `reference` would let a line of the answer give a mark [n] an address of its own.
    return parser.disable(["image", "autolink", "html_inline", "html_block", "reference"])


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = bare_markdown()
    parser.inline.ruler.before("link", "citation", _citation)
    return parser


def _citation(state: StateInline, silent: bool) -> bool:
    match = _MARK.match(state.src, state.pos)
    addresses: Mapping[int, str] = state.env["addresses"]
    if match is None or int(match[1]) not in addresses:
        return False
    if not silent:
        opening = state.push("link_open", "a", 1)
        opening.attrs = {"href": addresses[int(match[1])], "class": "cite", "data-n": match[1]}
        state.push("text", "", 0).content = match[0]
        state.push("link_close", "a", -1)
    state.pos = match.end()
    return True


def _own_links_only(_tag: str, name: str, value: str) -> str | None:
    return value if name != "href" or _OWN.fullmatch(value) else None
