"""What a question asks for, part by part, and which of its parts are not covered: by code, without a model call."""

import re
from collections.abc import Sequence
from typing import Final

from agent.language.names import names
from agent.language.text import terms
from core.text import language_of

# A part with fewer words of its own than this is not judged by them: 每天 is answered with 每日.
LEAST_OWN: Final = 2
_TELLING: Final = re.compile(r"分别|各自|各是|说明|\b(?:respectively|compare|each)\b", re.IGNORECASE)
_ASKS: Final = re.compile(
    r"\b(how|what|who|whom|whose|when|where|which|why)\b|多少|多久|多长|几|谁|什么|怎么|如何|哪|吗|是否|能否",
    re.IGNORECASE,
)
# Where one clause may end and the next begin; it does where both ask something.
_CLAUSE: Final = re.compile(r"(?<=[?？;；])\s*|\s*(?:,(?!\d)|，)\s*(?:and\s+)?|\s+and\s+|以及|还有", re.IGNORECASE)
_JOINED: Final = re.compile(
    r"\s*,?\s+(?:and also|and|as well as|plus)\s+|\s*[，,]?(?:以及|还有|并且|另外)|、"
    r"|(?<=[\u4e00-\u9fff）])(?:和|与|及)(?=[\u4e00-\u9fff])|(?<=\w)\s+(?:和|与|及)\s*(?=\w)",
    re.IGNORECASE,
)


def parts(question: str) -> list[str]:
    """The things that a question asks for, in its own words, one when it asks for one: its clauses, and in them what
    `and`, 以及 and the like join. Only pieces with content words of their own count."""
    pieces = [piece.strip(" ,，、") for clause in clauses(question) for piece in _JOINED.split(clause)]
    found: list[str] = []
    known: frozenset[str] = frozenset()
    for piece in pieces:
        if terms(piece) - known:
            found.append(piece)
            known |= terms(piece)
    return found or [question]


def clauses(question: str) -> list[str]:
    """The clauses of a question that each ask something, the whole where there is one."""
    found: list[str] = []
    start = 0
    for match in _CLAUSE.finditer(question):
        if _ASKS.search(question[start : match.start()]) and _ASKS.search(question[match.end() :]):
            found.append(question[start : match.start()].strip())
            start = match.end()
    return [*found, question[start:].strip()]


def uncovered(question: str, texts: Sequence[str]) -> list[str]:
    """The parts of a question of whose own words no text holds one; none for a question that is one, or where all texts
    are in the other language. Numbers and codes are not counted (P5 is answered with "P4 and above"), nor names, which
    go with every part."""
    asked = parts(question)
    if len(asked) < 2:
        return []
    held = frozenset().union(*(terms(text) for text in texts if language_of(text) == language_of(question)))
    return [] if not held else [part for part, own in _own(asked) if len(own) >= LEAST_OWN and not own & held]


def _own(asked: Sequence[str]) -> list[tuple[str, frozenset[str]]]:
    """Each part with the content words that no other has."""
    named = terms(" ".join(names("\n".join(asked))))
    each = [frozenset(filter(_worded, terms(_TELLING.sub(" ", part)))) - named for part in asked]
    return [
        (part, words - frozenset().union(*each[:at], *each[at + 1 :]))
        for at, (part, words) in enumerate(zip(asked, each, strict=True))
    ]


def _worded(term: str) -> bool:
    return not any(map(str.isdigit, term))
