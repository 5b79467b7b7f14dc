"""What the agent knows about text: sentences, content words, token estimates. Amounts and names: see amounts, names."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import snowballstemmer

from core.records import Hit
from core.text import fold, is_cjk
from inference.tokens import about

_THINKING: Final = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_STRAY_TAG: Final = re.compile(r"</?(?:think|thinking|reasoning)>", re.IGNORECASE)
_ABBREVIATIONS: Final = frozenset(
    ("e.g.", "i.e.", "etc.", "no.", "mr.", "ms.", "dr.", "approx.", "incl.", "vs.", "ext.", "art.", "sec.", "tel.")
)
_BREAK: Final = re.compile(r"(?<=[。！？；])|(?<=[.!?])(?=\s+[^\sa-z0-9])|\n+")
_WORD: Final = re.compile(r"[a-z0-9]+(?:[-'’./][a-z0-9]+)*")

# Words that carry no content of their own: grammar, and the words a question is made of.
_GRAMMAR: Final = (
    "a about above after all also am an and any are as at be because been before being both but by can could did "
    "do does doing each for from get given had has have having he her here him his how i if in into is it its "
    "itself just let many may me might more most much must my no nor not of on once only or other our out over "
    "own per please same shall she should so some such than that the their them then there these they this those "
    "through to too under until up us very was we were what when where which while who whom whose why will with "
    "within would you your tell know need needs there's what's"
)
FUNCTION_WORDS: Final = frozenset(_GRAMMAR.split())
_CJK_FUNCTION: Final = frozenset(
    "的了是在和与或及也都就而被把让向对从到等吗呢吧啊么这那其之为以可能会要应该需请问我你您他她它们谁哪几多少"
)


def plain(text: str) -> str:
    """The text without thinking tags and what they enclose, an unclosed one reaching to the end.

    Taken out until there is none: what stood around one may be another.
    """
    before = ""
    while text != before:
        before, text = text, _THINKING.sub("", text).strip()
        if text == before:
            text = _STRAY_TAG.sub("", text).strip()
    return text


def estimate_tokens(text: str) -> int:
    """Whole tokens that a text is likely to take, one at least."""
    return int(about(text)) + 1


def spans(text: str) -> list[tuple[int, int]]:
    """Where the sentences and lines of a text start and end, without the space around them."""
    found: list[list[int]] = []
    start = 0
    for end in [*(match.end() for match in _BREAK.finditer(text)), len(text)]:
        if text[start:end].strip():
            if found and _abbreviated(text[found[-1][0] : found[-1][1]]):
                found[-1][1] = end
            else:
                found.append([start, end])
        start = end
    return [(start + _leading(text[start:end]), start + len(text[start:end].rstrip())) for start, end in found]


def _leading(piece: str) -> int:
    return len(piece) - len(piece.lstrip())


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, verbatim, without the space around them."""
    return [text[start:end] for start, end in spans(text)]


def _abbreviated(piece: str) -> bool:
    return not piece.endswith("\n") and piece.rsplit(None, 1)[-1].casefold() in _ABBREVIATIONS


@lru_cache(maxsize=1)
def _stemmer() -> "snowballstemmer.stemmer":
    return snowballstemmer.stemmer("english")


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """The English stem of a lower-case word."""
    return str(_stemmer().stemWord(word))


def _cjk_terms(folded: str) -> Iterable[str]:
    run = ""
    for char in f"{folded} ":
        if is_cjk(char):
            run += char
            continue
        yield from (run[i : i + 2] for i in range(len(run) - 1) if not _CJK_FUNCTION & set(run[i : i + 2]))
        if len(run) == 1 and run not in _CJK_FUNCTION:
            yield run
        run = ""


def terms(text: str) -> frozenset[str]:
    """Content words: English stems, Chinese pairs of characters; grammar and question words left out."""
    folded = fold(text)
    words = (word.removesuffix("'s").removesuffix("’s") for word in _WORD.findall(folded))
    latin = {stem(word) for word in words if word not in FUNCTION_WORDS and (len(word) > 1 or word.isdigit())}
    return frozenset(latin.union(_cjk_terms(folded)))


def passage_text(hit: Hit) -> str:
    """All that a passage says: its title and headings are part of it."""
    return "\n".join((hit.title, *hit.heading_path, hit.text))


def overlap(wanted: frozenset[str], text: str) -> float:
    """Share of the wanted terms that a text holds, 0 to 1 (1 when nothing is wanted)."""
    return len(wanted & terms(text)) / len(wanted) if wanted else 1.0


def covered(wanted: frozenset[str], held: frozenset[str]) -> float:
    """Share of the characters of wanted terms that stand in a term that is held, 0 to 1 (1 when nothing is wanted)."""
    found = {char for term in wanted & held for char in term}
    chars = {char for term in wanted for char in term}
    return len(found) / len(chars) if chars else 1.0


# --- cutting to a budget --------------------------------------------------------------------------------------------


def around(text: str, wanted: frozenset[str], budget: int) -> str:
    """The part of a text that fits `budget` tokens: whole sentences or lines, grown around the best match."""
    if estimate_tokens(text) <= budget:
        return text
    pieces = sentences(text)
    best = max(range(len(pieces)), key=lambda i: (len(wanted & terms(pieces[i])), -i))
    first = last = best
    size = estimate_tokens(pieces[best])
    while True:
        grown = [i for i in (last + 1, first - 1) if 0 <= i < len(pieces)]
        fitting = [i for i in grown if size + estimate_tokens(pieces[i]) <= budget]
        if not fitting:
            break
        size += estimate_tokens(pieces[fitting[0]])
        first, last = min(first, fitting[0]), max(last, fitting[0])
    kept = "\n".join(pieces[first : last + 1])
    # A single sentence longer than the budget is cut by characters: a prompt must fit.
    while estimate_tokens(kept) > budget:
        kept = kept[: int(len(kept) * 0.9)]
    return kept
