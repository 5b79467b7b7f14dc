"""Amounts and dates of a text in one form for both languages.

1,000, １０００, 一千 and 1k are one number; 1 March 2026, 2026年3月1日 and 2026-03-01 are one date. Units are never
converted: two weeks are not 14 days.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

from agent.language.text import FUNCTION_WORDS, terms
from core.text import fold

# Texts whose amounts are remembered: a passage is held against many sentences.
_KEPT: Final = 2048


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a text: its value in plain digits, the unit that stands with it ('' where none is known), and the
    Latin word after it where that is no known unit (`37 telescopes`)."""

    value: str
    unit: str
    word: str = ""


@dataclass(frozen=True, slots=True)
class Date:
    """A date or a part of one; None: not said."""

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def within(self, other: "Date") -> bool:
        """Whether the other says all that this one says."""
        pairs = ((self.year, other.year), (self.month, other.month), (self.day, other.day))
        return all(mine is None or mine == its for mine, its in pairs)


# --- units and numerals ---------------------------------------------------------------------------------------------

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
    "metre": ("metres", "meters", "metre", "meter", "米"),
    "kilometre": ("kilometres", "kilometers", "km", "公里"),
    "megabyte": ("megabytes", "mb"),
    "gigabyte": ("gigabytes", "gb"),
    "character": ("characters", "character", "个字符", "字符", "位"),
    "degree": ("degrees", "degree", "°c", "摄氏度", "度"),
    "time": ("times", "次"),
}
UNIT_OF: Final[dict[str, str]] = {form: name for name, forms in _UNITS.items() for form in forms}
_FORMS: Final = "|".join(re.escape(form) for form in sorted(UNIT_OF, key=len, reverse=True))
_UNIT_TERMS: Final = frozenset(term for form in UNIT_OF for term in terms(form))
# Adverbs that name a unit of time.
_PERIODS: Final = {
    "hour": ("hourly", "每小时"),
    "day": ("daily", "每日", "每天", "日均"),
    "week": ("weekly", "每周"),
    "month": ("monthly", "每月", "月度"),
    "year": ("annually", "annual", "yearly", "每年", "年度", "年休假", "年假"),
}

_SCALES: Final = (("千", "k", "thousand"), ("万",), ("百万", "million"), ("亿",), ("billion", "bn", "十亿"))
_FACTORS: Final = (1_000, 10_000, 1_000_000, 100_000_000, 1_000_000_000)
_SCALE: Final = {form: factor for forms, factor in zip(_SCALES, _FACTORS, strict=True) for form in forms}
_COUNTING: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS_WORDS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS: Final = {word: 10 * n for n, word in enumerate(_TENS_WORDS.split(), 2)}
_WORDED: Final = {word: value for value, word in enumerate(_COUNTING.split())} | _TENS
_PARTS: Final = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "tenth": 10}
_MONTH_NAMES: Final = "january february march april may june july august september october november december"
_MONTHS: Final = {
    form: n for n, month in enumerate(_MONTH_NAMES.split(), 1) for form in (month, month[:3], "sept" if n == 9 else "")
}
_CJK_DIGIT: Final = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_CJK_TEN: Final = {"十": 10, "百": 100, "千": 1000}

_CJK: Final = "[零〇一二两三四五六七八九十百千]"
# The forms of units hold plain letters only where a word ends, so "5 min" is minutes and "5 minor" is not.
_UNIT_END: Final = r"(?![a-z])"
_KIND: Final = r"(?:(?:full|working|business|calendar|consecutive|paid)\s+)*"
_ONES: Final = "|".join(sorted(_WORDED.keys() - _TENS.keys(), key=len, reverse=True))
_WORDED_FORM: Final = rf"(?:(?:{'|'.join(_TENS)})(?:[- ](?:{_ONES}))?|{_ONES}|an?(?= (?:hundred|thousand|million)\b))"
_NUMBER: Final = re.compile(
    rf"(?P<before>(?:us|hk|s)?\$|[¥￥€£]|\b(?:cny|rmb|usd|eur|gbp|hkd|sgd|jpy)\b)?\s*"
    rf"(?<![\d.])(?<!\b[a-z])(?P<number>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    rf"(?:\s*(?P<scale>百万|十亿|千|万|亿|(?:k|thousand|million|billion|bn){_UNIT_END}))?"
    rf"(?:\s*(?:-\s*)?{_KIND}(?P<after>{_FORMS}){_UNIT_END}|\s+(?P<word>[a-z]{{3,}}))?"
)
_WORDED_NUMBER: Final = re.compile(
    rf"\b(?P<number>{_WORDED_FORM})(?:[- ](?P<scale>hundred|thousand|million))?(?:\s+|-)"
    rf"{_KIND}(?:(?P<after>{_FORMS}){_UNIT_END}|(?P<word>[a-z]{{3,}}))"
)
_CJK_NUMBER: Final = re.compile(
    rf"(?<!第)(?!一次)(?P<number>{_CJK}+)(?P<scale>万|亿)?(?:(?P<after>{_FORMS}){_UNIT_END}|(?=至|到|[号楼层级岁倍角分件册本台辆张条项]))"
)
_CJK_PERCENT: Final = re.compile(rf"百分之(?P<number>{_CJK}+|\d+(?:\.\d+)?)")
_CJK_FRACTION: Final = re.compile(rf"(?P<under>{_CJK}+|\d+)分之(?P<over>{_CJK}+|\d+)|(?P<half>一半|半数)")
_FRACTION: Final = re.compile(
    rf"\b(?:(?P<over>one|two|three|four|a)[- ](?P<under>{'|'.join(_PARTS)})s?|(?P<half>half))\b(?![- ]day)"
)
# What stands between the two ends of a range.
_RANGE: Final = re.compile(r"\s*(?:to|and|-|–|—|~|至|到)\s*")
_CLOCK: Final = re.compile(r"(?<!\d)(?P<hour>[01]?\d|2[0-4])[:：](?P<minute>[0-5]\d)(?!\d)")
_OFTEN: Final = re.compile(r"\b(?P<number>twice)\b")

# --- dates ----------------------------------------------------------------------------------------------------------

_MONTH_FORMS: Final = "|".join(sorted(filter(None, _MONTHS), key=len, reverse=True))
_YEAR: Final = r"(?:19|20)\d\d"
_CJK_YEAR: Final = rf"(?P<year>{_YEAR}|[一二][零〇一二三四五六七八九]{{3}})"
_DATES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?<!\d)(?P<year>{_YEAR})[-/.](?P<month>\d{{1,2}})[-/.](?P<day>\d{{1,2}})(?!\d)",
        rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<name>{_MONTH_FORMS})\b\.?(?:,? (?P<year>{_YEAR}))?",
        rf"\b(?P<name>{_MONTH_FORMS})\b\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<year>{_YEAR}))?",
        rf"\b(?P<name>{_MONTH_FORMS})\b\.?,? (?P<year>{_YEAR})\b",
        rf"{_CJK_YEAR}\s*年\s*(?P<month>\d{{1,2}}|{_CJK}{{1,2}})\s*月(?:\s*(?P<day>\d{{1,2}}|{_CJK}{{1,3}})\s*[日号])?",
        rf"(?<!\d)(?P<month>\d{{1,2}}|{_CJK}{{1,2}})\s*月\s*(?P<day>\d{{1,2}}|{_CJK}{{1,3}})\s*[日号]",
        rf"(?:每月|当月|次月|每个月)\s*(?P<day>\d{{1,2}}|{_CJK}{{1,3}})\s*[日号]",
        r"\bthe (?P<day>\d{1,2})(?:st|nd|rd|th)\b(?= of (?:each|every|the)\b| day\b)",
        rf"\b(?P<name>{'|'.join(month for month in _MONTH_NAMES.split() if month not in ('may', 'march'))})\b",
        rf"(?<![\d.,年-]){_CJK_YEAR}\s*年(?!内|以上|以下|期|限|级)",
        rf"(?<![\d.,$¥￥€£-])(?<!eur )(?<!cny )(?<!rmb )(?<!usd )(?<!gbp )(?P<year>{_YEAR})\b(?![.,-]?\d)"
        rf"(?!\s*(?:{_FORMS}){_UNIT_END})",
    )
)


def _value(text: str) -> int:
    return int(text) if text.isdecimal() else _cjk_value(text)


def _date(match: re.Match[str]) -> Date | None:
    parts = match.groupdict()
    name = parts.get("name")
    year, day = parts.get("year"), parts.get("day")
    month = _MONTHS[name] if name else _value(parts["month"]) if parts.get("month") else None
    found = Date(_value(year) if year else None, month, _value(day) if day else None)
    return found if (found.month or 1) <= 12 and (found.day or 1) <= 31 else None


def _dated(folded: str) -> tuple[frozenset[Date], str]:
    """The dates of a folded text, and the text with them blanked out, no character moved."""
    found: set[Date] = set()
    for pattern in _DATES:
        for match in list(pattern.finditer(folded)):
            if (date := _date(match)) is not None:
                found.add(date)
                folded = folded[: match.start()] + " " * (match.end() - match.start()) + folded[match.end() :]
    return frozenset(found), folded


def dates(text: str) -> frozenset[Date]:
    """The dates of a text, parts of dates too: a month, a year, a day of every month."""
    return frozenset(fact for fact in facts(text) if isinstance(fact, Date))


# --- numbers --------------------------------------------------------------------------------------------------------


def _digits(text: str, scale: str | None = None) -> str:
    value = float(text.replace(",", "")) * _SCALE.get(scale or "", 1)
    return str(int(value)) if value == int(value) else f"{value:g}"


def _cjk_value(text: str) -> int:
    """A Chinese numeral, one of units (`二百五十`) or of digits in a row (`二〇二六`)."""
    if len(text) > 1 and not _CJK_TEN.keys() & set(text):
        return int("".join(str(_CJK_DIGIT[char]) for char in text))
    total, digit = 0, 0
    for char in text:
        if char in _CJK_TEN:
            total += (digit or 1) * _CJK_TEN[char]
            digit = 0
        else:
            digit = _CJK_DIGIT[char]
    return total + digit


def _worded_value(match: re.Match[str]) -> str:
    words = re.split("[- ]", match["number"])
    value = sum(_WORDED.get(word, 1) for word in words)
    return str(value * {"hundred": 100, "thousand": 1_000, "million": 1_000_000}.get(match["scale"] or "", 1))


def _quantity(match: re.Match[str]) -> Quantity:
    unit = UNIT_OF.get(match["after"] or match["before"] or "", "")
    word = match["word"] or ""
    return Quantity(_digits(match["number"], match["scale"]), unit, "" if unit or word in FUNCTION_WORDS else word)


def located(folded: str) -> list[tuple[Quantity, int, int]]:
    """The numbers of a folded text, dates aside, in order, with where they start and end, unit included: digits, number
    words, Chinese numerals that a unit or a measure follows, fractions (`2/3`). `8 to 16 weeks` are two of weeks."""
    rest = _dated(folded)[1]
    found = sorted((*_clocks(rest), *_fractions(rest), *_numbers(_blanked(rest))), key=lambda one: one[1:])
    for at in range(len(found) - 2, -1, -1):
        (quantity, start, end), (following, next_start, _) = found[at], found[at + 1]
        if not quantity.unit and not quantity.word and _RANGE.fullmatch(rest[end:next_start]):
            found[at] = Quantity(quantity.value, following.unit, following.word), start, end
    return found


def quantities(text: str) -> frozenset[Quantity]:
    """Every number of a text with its unit, dates aside (see `located`)."""
    return frozenset(fact for fact in facts(text) if isinstance(fact, Quantity))


def _blanked(rest: str) -> str:
    """Without fractions and times of day, whose parts are no numbers of their own."""
    for pattern in (_CJK_FRACTION, _FRACTION, _CLOCK):
        rest = pattern.sub(lambda found: found[0] if found[0].startswith("百分之") else " " * len(found[0]), rest)
    return rest


def _numbers(rest: str) -> Iterator[tuple[Quantity, int, int]]:
    for match in _NUMBER.finditer(rest):
        end = match.end("after") if match["after"] else match.end("scale") if match["scale"] else match.end("number")
        yield _quantity(match), match.start("before") if match["before"] else match.start("number"), end
    for match in _WORDED_NUMBER.finditer(rest):
        unit, word = UNIT_OF.get(match["after"] or "", ""), match["word"] or ""
        # "one" before a word is seldom a number ("one of them", "no one may").
        if unit or (match["number"] != "one" and word not in FUNCTION_WORDS):
            yield Quantity(_worded_value(match), unit, word), match.start(), match.end()
    for match in _OFTEN.finditer(rest):
        yield Quantity("2", "time"), match.start(), match.end()
    for match in _CJK_PERCENT.finditer(rest):
        number = match["number"]
        value = _digits(number) if number[0].isdigit() else str(_cjk_value(number))
        yield Quantity(value, "percent"), match.start(), match.end()
    for match in _CJK_NUMBER.finditer(_CJK_PERCENT.sub(lambda found: " " * len(found[0]), rest)):
        number = _digits(str(_cjk_value(match["number"])), match["scale"])
        yield Quantity(number, UNIT_OF.get(match["after"] or "", "")), match.start(), match.end()


def _clocks(rest: str) -> Iterator[tuple[Quantity, int, int]]:
    for match in _CLOCK.finditer(rest):
        yield Quantity(f"{int(match['hour'])}:{match['minute']}", "clock"), match.start(), match.end()


def _fractions(rest: str) -> Iterator[tuple[Quantity, int, int]]:
    for match in _CJK_FRACTION.finditer(rest):
        over, under = (1, 2) if match["half"] else (_value(match["over"]), _value(match["under"]))
        if under and not match[0].startswith("百分之"):
            yield Quantity(str(Fraction(over, under)), "part"), match.start(), match.end()
    for match in _FRACTION.finditer(rest):
        over = _WORDED.get(match["over"] or "one", 1)
        value = Fraction(over, _PARTS[match["under"] or "half"])
        yield Quantity(str(value), "part"), match.start(), match.end()


@lru_cache(maxsize=_KEPT)
def facts(text: str) -> frozenset[Quantity | Date]:
    """All that can be compared exactly: amounts and dates."""
    folded = fold(text)
    return frozenset(quantity for quantity, _, _ in located(folded)) | _dated(folded)[0]


def without_facts(text: str) -> str:
    """The folded text with its amounts and dates blanked out."""
    rest = _dated(fold(text))[1]
    for _, start, end in reversed(located(rest)):
        rest = rest[:start] + " " + rest[end:]
    return rest


def is_unit(term: str) -> bool:
    """Whether a term of `terms` is a unit of amounts."""
    return term in _UNIT_TERMS or term.isdigit()


def mentions_unit(unit: str, text: str) -> bool:
    """Whether any form of a unit stands in a text."""
    folded = fold(text)
    return any(
        re.search(rf"\b{form}\b", folded) is not None if form.isascii() and form.isalpha() else form in folded
        for form in (*_UNITS.get(unit, ()), *_PERIODS.get(unit, ()))
    )
