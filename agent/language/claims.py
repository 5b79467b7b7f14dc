"""What a sentence claims beside its amounts and names: at least or at most, yes or no, per what time.

Each function compares a sentence with one piece of a passage and says whether the two contradict each other. All work
within one language; `bounds` and `denies` also across.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from agent.language.amounts import UNIT_OF, located
from agent.language.text import FUNCTION_WORDS, stem, terms
from core.text import fold, language_of

Bound = Literal["least", "most"]

# --- at least, at most ----------------------------------------------------------------------------------------------

_BEFORE: Final[tuple[tuple[Bound, re.Pattern[str]], ...]] = (
    (
        "most",
        re.compile(
            r"(?:\b(?:at (?:the )?most|up to|(?:no|not|never|nor) (?:more|longer|later|higher|greater|older) than"
            r"|not exceed(?:ing)?|maximum(?: of)?|(?<!no )(?<!not )(?:less|fewer|younger) than|under|below|within"
            r"|limited to|capped at)\s+(?:\w+\s+)?|(?:至多|最多|不超过|不得超过|不能超过|不多于|不高于|不迟于|不晚于"
            r"|最高|不满|未满|不足|(?<!不)低于|(?<!不)少于|(?<!不)小于|最长)[\u4e00-\u9fff]{0,4}\s*)\Z"
        ),
    ),
    (
        "least",
        re.compile(
            r"(?:\b(?:at least|(?:no|not) (?:less|fewer|lower|earlier|sooner|younger) than|minimum(?: of)?|more than"
            r"|longer than|older than|higher than|greater than|over|above|exceed(?:s|ing)?)\s+(?:\w+\s+)?"
            r"|(?:至少|不少于|不低于|不早于|最少|最低|超过|多于|高于|大于|达到|年满|已满|满)[\u4e00-\u9fff]{0,4}\s*)\Z"
        ),
    ),
)
_AFTER: Final[tuple[tuple[Bound, re.Pattern[str]], ...]] = (
    (
        "most",
        re.compile(
            r"\s*(?:\w+\s+)?(?:or|and) (?:less|fewer|under|below|younger)\b|[周岁个]{0,2}(?:及?以下|以内|之内|内|为限)"
        ),
    ),
    ("least", re.compile(r"\s*(?:\w+\s+)?(?:or|and) (?:more|over|above|longer|older)\b|[周岁个]{0,2}及?以上")),
)


def bounds(text: str) -> dict[str, set[Bound]]:
    """The bounds that a text sets to its numbers, by value; a number without one is not there."""
    folded = fold(text)
    found: dict[str, set[Bound]] = {}
    for quantity, start, end in located(folded):
        before, after = folded[max(start - 40, 0) : start], folded[end : end + 24]
        bound = next((kind for kind, pattern in _BEFORE if pattern.search(before)), None)
        bound = bound or next((kind for kind, pattern in _AFTER if pattern.match(after)), None)
        if bound is not None:
            found.setdefault(quantity.value, set()).add(bound)
    return found


def bound_differs(sentence: str, piece: str) -> bool:
    """Whether a number of the sentence is bounded from the other side in the piece."""
    stated = bounds(piece)
    return any(value in stated and not said & stated[value] for value, said in bounds(sentence).items())


# --- per what time --------------------------------------------------------------------------------------------------

_TIMES: Final = ("hour", "day", "week", "month", "year")
_PER: Final = re.compile(
    rf"\d[^.;。；]{{0,24}}?\b(?:per|a|each|every)\s+(?P<unit>{'|'.join(_TIMES)})\b|每个?(?P<zh>小时|天|日|周|星期|月|年)"
)


def periods(text: str) -> frozenset[str]:
    """The units of time per which something is counted: `EUR 22 a month`, 每月."""
    found = (match["unit"] or UNIT_OF[match["zh"]] for match in _PER.finditer(fold(text)))
    return frozenset(found)


# --- under what condition --------------------------------------------------------------------------------------------

_CONDITIONS: Final = (
    re.compile(r"\b(?:only|if|unless|provided|except|subject to|as long as|who|whoever|that)\b([^.;]*)"),
    re.compile(
        r"除([^，,。;；]{1,30})外|([^，,。;；]{1,40})的(?=[，,])|([^，,。;；]{1,30})(?:后方可|方可|后才能|才可)|须?经([^，,。;；]{1,20})(?:批准|同意)"
    ),
)


def drops_condition(sentence: str, piece: str) -> bool:
    """Whether a piece sets a condition of which the sentence says nothing, in one language."""
    if language_of(sentence) != language_of(piece):
        return False
    said = terms(sentence)
    conditions = (
        terms(" ".join(filter(None, match.groups()))) for form in _CONDITIONS for match in form.finditer(fold(piece))
    )
    return any(condition and not condition & said for condition in conditions)


# --- yes or no ------------------------------------------------------------------------------------------------------

_NO_NEGATION: Final = re.compile(
    r"\b(?:no|not|nor|never) (?:more|less|fewer|later|longer|earlier|sooner|higher|lower|greater|older) than\b"
    r"|\bnot exceed\w*|\bnot only\b|\bno matter\b|\bno later\b"
    r"|不超过|不得超过|不能超过|不少于|不低于|不高于|不多于|不迟于|不晚于|不早于|不满|未满|不足|不论|无论|不管|不仅|不同|不断|未来|不良"
)
_NOT: Final = re.compile(r"(?:not|no|never|nobody|none|nothing|neither|nor|without|cannot|n't)\Z|.*n['’]t\Z")
_OBJECTS: Final = frozenset(("nothing", "none", "nobody"))
_NOT_ZH: Final = re.compile(
    r"不(?:得|能|准|许|可|予|作|会|再|必|需|用|应|在|是)?|没有?|未(?:经)?|无(?:需|须|权)?|勿|禁止|严禁|谢绝|拒绝"
)
_FORBIDS: Final = re.compile(
    r"\b(?:forbidden|prohibited|banned|declined|refused|rejected|excluded)\b|(?:禁止|严禁|谢绝|拒绝)(?=[。；，,.;]|\Z)"
)
_ALLOWS: Final = re.compile(r"\b(?:allowed|permitted|accepted|admitted|accept|may|can)\b|可以|允许|可(?!能)|准许|接受")
# A rule with its exception says yes and no: which of them a sentence takes up is not told by words.
_EXCEPT: Final = re.compile(r"\b(?:unless|except|only)\b|除外|除非|除[^，,。]{1,20}外|仅|方可|才能|才可")
_CLAUSE: Final = re.compile(
    r"[,;:.!?，。；：！？\n]|\b(?:but|unless|except|because|although|while|if|when|and)\b|但|而且|除"
)
_TOKEN: Final = re.compile(r"[a-z0-9]+(?:['’][a-z]+)?")
# Content words that a negation reaches.
_REACH: Final = 3


def denials(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    """For each negation of a text the word denied first, and the words that it reaches, as `terms` has them."""
    folded = _NO_NEGATION.sub(" ", fold(text))
    find = _denials_zh if language_of(text) == "zh" else _denials_en
    for clause in _CLAUSE.split(folded):
        yield from find(clause)


def _denials_en(clause: str) -> Iterator[tuple[str, frozenset[str]]]:
    words = _TOKEN.findall(clause)
    for at, word in enumerate(words):
        if _NOT.match(word) is None:
            continue
        following = [stem(after) for after in words[at + 1 :] if after not in FUNCTION_WORDS]
        reach = 1 if word == "without" else _REACH
        if word in _OBJECTS and not following:
            following = [stem(before) for before in words[:at] if before not in FUNCTION_WORDS][-1:]
        if following:
            yield following[0], frozenset(following[:reach])


def _denials_zh(clause: str) -> Iterator[tuple[str, frozenset[str]]]:
    for match in _NOT_ZH.finditer(clause):
        rest = clause[match.end() :].partition("的")[0]
        ordered = sorted(terms(rest), key=rest.find)
        if ordered:
            # What is not there is a thing, what is not done takes all that follows with it.
            yield ordered[0], frozenset(ordered[:1] if match[0] in ("无", "没有", "没") else ordered)


def denies(text: str) -> bool:
    """Whether a text says no somewhere."""
    folded = _NO_NEGATION.sub(" ", fold(text))
    if language_of(text) == "zh":
        return _NOT_ZH.search(folded) is not None
    return any(_NOT.match(word) for word in _TOKEN.findall(folded)) or _FORBIDS.search(folded) is not None


def negation_differs(sentence: str, piece: str) -> bool:
    """Whether one of the two denies what the other says, in one language."""
    if _EXCEPT.search(fold(sentence)) and _EXCEPT.search(fold(piece)):
        return False
    said, stated = list(denials(sentence)), list(denials(piece))
    denied_said, denied_stated = _denied(sentence, said), _denied(piece, stated)
    if any(head in terms(piece) - denied_stated for head, _ in said):
        return True
    if any(head in terms(sentence) - denied_said for head, _ in stated):
        return True
    return _permission(sentence, bool(said)) * _permission(piece, bool(stated)) < 0


def _denied(text: str, found: Sequence[tuple[str, frozenset[str]]]) -> frozenset[str]:
    """The words that negations reach; what is forbidden is denied as a whole."""
    whole = terms(text) if _FORBIDS.search(fold(text)) is not None else frozenset[str]()
    return whole.union(*(reached for _, reached in found))


def _permission(text: str, negated: bool) -> int:
    """-1 where a text forbids, 1 where it allows, 0 where it does neither."""
    folded = fold(text)
    if _FORBIDS.search(folded) is not None:
        return 0 if negated else -1
    return 1 if _ALLOWS.search(folded) is not None and not negated else 0
