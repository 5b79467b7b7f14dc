"""What the agent knows about text: sentences, content words, amounts with their units, names, token estimates."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import snowballstemmer

from core.text import fold, is_cjk

# Characters a token holds on average: measured on a 150,000-token multilingual vocabulary, rounded to the safe side.
_CHARS_PER_TOKEN: Final = 4.0
_CJK_PER_TOKEN: Final = 1.5

_THINKING: Final = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_STRAY_TAG: Final = re.compile(r"</?(?:think|thinking|reasoning)>", re.IGNORECASE)
_ABBREVIATIONS: Final = frozenset(
    ("e.g.", "i.e.", "etc.", "no.", "mr.", "ms.", "dr.", "approx.", "incl.", "vs.", "ext.", "art.", "sec.", "tel.")
)
_BREAK: Final = re.compile(r"(?<=[。！？；])|(?<=[.!?])(?=\s+[^\sa-z0-9])|\n+")
_WORD: Final = re.compile(r"[a-z0-9]+(?:[-'’./][a-z0-9]+)*")

# Words that carry no content of their own: grammar, and the words a question is made of.
_FUNCTION_WORDS: Final = (
    "a about above after all also am an and any are as at be because been before being both but by can could did "
    "do does doing each for from get given had has have having he her here him his how i if in into is it its "
    "itself just let many may me might more most much must my no nor not of on once only or other our out over "
    "own per please same shall she should so some such than that the their them then there these they this those "
    "through to too under until up us very was we were what when where which while who whom whose why will with "
    "within would you your tell know need needs there's what's"
)
_FUNCTION: Final = frozenset(_FUNCTION_WORDS.split())
_CJK_FUNCTION: Final = frozenset(
    "的了是在和与或及也都就而被把让向对从到等吗呢吧啊么这那其之为以可能会要应该需请问我你您他她它们谁哪几多少"
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a text: its value in plain digits, the unit that stands with it ('' where none is known), and the
    Latin word after it where that is no known unit (`37 telescopes`)."""

    value: str
    unit: str
    word: str = ""


def plain(text: str) -> str:
    """The text without thinking tags and what they enclose, an unclosed one reaching to the end."""
    return _STRAY_TAG.sub("", _THINKING.sub("", text)).strip()


def estimate_tokens(text: str) -> int:
    """Tokens that a text is likely to take: about 4 characters each, 1.5 for Chinese."""
    cjk = sum(map(is_cjk, text))
    return int(cjk / _CJK_PER_TOKEN + (len(text) - cjk) / _CHARS_PER_TOKEN) + 1


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, verbatim, without the space around them."""
    spans: list[list[int]] = []
    start = 0
    for end in [*(match.end() for match in _BREAK.finditer(text)), len(text)]:
        if text[start:end].strip():
            if spans and _abbreviated(text[spans[-1][0] : spans[-1][1]]):
                spans[-1][1] = end
            else:
                spans.append([start, end])
        start = end
    return [text[start:end].strip() for start, end in spans]


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
    latin = {stem(word) for word in words if word not in _FUNCTION and (len(word) > 1 or word.isdigit())}
    return frozenset(latin.union(_cjk_terms(folded)))


def overlap(wanted: frozenset[str], text: str) -> float:
    """Share of the wanted terms that a text holds, 0 to 1 (1 when nothing is wanted)."""
    return len(wanted & terms(text)) / len(wanted) if wanted else 1.0


def names(text: str) -> frozenset[str]:
    """Names in a text, folded: Latin words with a capital that does not merely open a sentence, codes, and any Latin
    word within Chinese."""
    found: set[str] = set()
    for sentence in sentences(text):
        chinese = any(map(is_cjk, sentence))
        for match in re.finditer(r"[A-Za-z][A-Za-z0-9&-]*", sentence):
            word = match.group()
            opens = not sentence[: match.start()].strip(" “\"'(*-•#0123456789.")
            capital = word[0].isupper() and (not opens or (len(word) > 1 and word.isupper()))
            if word.casefold() not in _FUNCTION | _UNIT_OF.keys() and (chinese or capital):
                found.add(fold(word))
    return frozenset(found)


# --- amounts --------------------------------------------------------------------------------------------------------

# One name per unit, so that 天 and "days" meet. Longest first where one form begins another.
_UNITS: Final[dict[str, tuple[str, ...]]] = {
    "minute": ("minutes", "minute", "mins", "min", "分钟"),
    "hour": ("hours", "hour", "hrs", "小时", "个小时"),
    "day": ("days", "day", "天", "日", "个工作日", "工作日", "个自然日", "自然日", "个日历日"),
    "week": ("weeks", "week", "周", "星期", "个星期"),
    "month": ("months", "month", "个月", "月"),
    "year": ("years", "year", "年"),
    "percent": ("percent", "per cent", "%", "％"),
    "cny": ("cny", "rmb", "yuan", "元", "人民币", "¥", "￥"),
    "usd": ("usd", "dollars", "dollar", "us$", "$", "美元"),
    "eur": ("eur", "euros", "euro", "€", "欧元"),
    "gbp": ("gbp", "pounds", "pound", "£", "英镑"),
    "hkd": ("hkd", "hk$", "港元", "港币"),
    "sgd": ("sgd", "s$", "新元", "新加坡元"),
    "jpy": ("jpy", "yen", "日元"),
    "person": ("people", "persons", "person", "人", "名"),
    "kilometre": ("kilometres", "kilometers", "km", "公里"),
    "megabyte": ("megabytes", "mb"),
    "gigabyte": ("gigabytes", "gb"),
    "character": ("characters", "character", "个字符", "字符", "位"),
    "time": ("times", "次"),
}
_UNIT_OF: Final[dict[str, str]] = {form: name for name, forms in _UNITS.items() for form in forms}
_FORMS: Final = "|".join(re.escape(form) for form in sorted(_UNIT_OF, key=len, reverse=True))
_SCALE: Final[dict[str, int]] = {"千": 1_000, "万": 10_000, "百万": 1_000_000, "亿": 100_000_000}
_COUNTING: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
_MONTH_NAMES: Final = "january february march april may june july august september october november december"
_WORDED: Final[dict[str, int]] = {word: value for value, word in enumerate(_COUNTING.split())} | {
    "thirty": 30,
    "forty": 40,
    "forty-five": 45,
    "fifty": 50,
    "sixty": 60,
    "ninety": 90,
}
_MONTHS: Final = tuple(_MONTH_NAMES.split())
_CJK_DIGIT: Final[dict[str, int]] = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"两": 2}
_CJK_TEN: Final[dict[str, int]] = {"十": 10, "百": 100, "千": 1000}

# The forms of units hold plain letters only where a word ends, so "5 min" is minutes and "5 minor" is not.
_UNIT_END: Final = r"(?![a-z])"
_NUMBER: Final = re.compile(
    rf"(?P<before>(?:us|hk|s)?\$|[¥￥€£]|\b(?:cny|rmb|usd|eur|gbp|hkd|sgd|jpy)\b)?\s*"
    rf"(?<![\d.])(?P<number>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    rf"(?:\s*(?P<scale>百万|千|万|亿))?"
    rf"(?:\s*(?:-\s*)?(?:(?:full|working|business|calendar|consecutive|paid)\s+)*(?P<after>{_FORMS}){_UNIT_END})?"
    rf"(?:\s+(?P<word>[a-z]{{3,}}))?"
)
_WORDED_NUMBER: Final = re.compile(
    rf"\b(?P<number>{'|'.join(sorted(_WORDED, key=len, reverse=True))})(?:\s+|-)"
    rf"(?:(?:full|working|business|calendar|consecutive|paid)\s+)*(?P<after>{_FORMS}){_UNIT_END}"
)
_CJK_NUMBER: Final = re.compile(
    rf"(?P<number>[零一二两三四五六七八九十百千]+)(?P<scale>万|亿)?(?P<after>{_FORMS}){_UNIT_END}"
)
_CJK_PERCENT: Final = re.compile(r"百分之(?P<number>[零一二两三四五六七八九十百]+|\d+(?:\.\d+)?)")


def _digits(text: str, scale: str | None = None) -> str:
    value = float(text.replace(",", "")) * _SCALE.get(scale or "", 1)
    return str(int(value)) if value == int(value) else f"{value:g}"


def _cjk_value(text: str) -> int:
    total, digit = 0, 0
    for char in text:
        if char in _CJK_TEN:
            total += (digit or 1) * _CJK_TEN[char]
            digit = 0
        else:
            digit = _CJK_DIGIT[char]
    return total + digit


_UNIT_TERMS: Final = frozenset(term for form in _UNIT_OF for term in terms(form))


def _quantity(match: re.Match[str]) -> Quantity:
    unit = _UNIT_OF.get(match["after"] or match["before"] or "", "")
    word = match["word"] or ""
    return Quantity(_digits(match["number"], match["scale"]), unit, "" if unit or word in _FUNCTION else word)


def located(folded: str) -> list[tuple[Quantity, int, int]]:
    """The numbers written in digits of a folded text with where they start and end, unit included."""
    found = []
    for match in _NUMBER.finditer(folded):
        end = match.end("after") if match["after"] else match.end("scale") if match["scale"] else match.end("number")
        found.append((_quantity(match), match.start("before") if match["before"] else match.start("number"), end))
    return found


def quantities(text: str) -> frozenset[Quantity]:
    """Every number of a text with its unit, in one form for both languages: digits, number words that a unit follows,
    Chinese numerals that a unit follows, and the names of months as their number."""
    folded = fold(text)
    found = {_quantity(match) for match in _NUMBER.finditer(folded)}
    found |= {Quantity(str(_WORDED[m["number"]]), _UNIT_OF[m["after"]]) for m in _WORDED_NUMBER.finditer(folded)}
    found |= {
        Quantity(_digits(str(_cjk_value(m["number"])), m["scale"]), _UNIT_OF[m["after"]])
        for m in _CJK_NUMBER.finditer(folded)
    }
    found |= {
        Quantity(number if number[0].isdigit() else str(_cjk_value(number)), "percent")
        for number in (m["number"] for m in _CJK_PERCENT.finditer(folded))
    }
    found |= {
        Quantity(str(number), "month") for number, name in enumerate(_MONTHS, 1) if re.search(rf"\b{name}\b", folded)
    }
    return frozenset(found)


def is_unit(term: str) -> bool:
    """Whether a term of `terms` is a unit of amounts."""
    return term in _UNIT_TERMS or term.isdigit()


def mentions_unit(unit: str, text: str) -> bool:
    """Whether any form of a unit stands in a text."""
    folded = fold(text)
    return any(
        re.search(rf"\b{form}\b", folded) is not None if form.isascii() and form.isalpha() else form in folded
        for form in _UNITS[unit]
    )


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
