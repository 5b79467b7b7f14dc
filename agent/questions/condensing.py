"""Follow-ups: a question that leans on the one before it is made to stand alone before it is searched."""

import re
from typing import Final

from agent.language.text import plain, terms
from core.text import fold, is_cjk, language_of

# A follow-up of at most so many content words may lean on the question before it; a longer one says what it means.
_SHORT_TERMS: Final = {"en": 3, "zh": 4}
# The longest that leans because of how it opens, and because it points back: words, or characters of Chinese.
_SHORT_OPENING: Final = {"en": 5, "zh": 8}
_POINTING_BACK: Final = {"en": 14, "zh": 24}
# A rewritten question is not longer than both questions together and this many characters.
_SLACK: Final = 40

_OPENS: Final = re.compile(
    r"(and|or|but|what about|how about|what if|same for|in that case)\b|那|还有|另外|以及|换成|同样"
)
# These open whole questions as well ("Why do we ...?", 如果我生病了 ...): only a short one leans.
_MAY_OPEN: Final = re.compile(r"(so|then|also|why|how come|since when)\b|如果|要是|为什么|然后|其他|其它")
# Words that point back, where they are not the everyday "is there a", "a form that", "this year", 应该.
_LEANS: Final = re.compile(
    r"\b(it|its|these|those|they|them|their|he|she|his|her|same|former|latter|instead|otherwise|the above)\b"
    r"|\bthis\b(?! (year|month|week|quarter|company)\b)"
    r"|\bthat (case|one|too|policy|rule|amount|limit)\b|\bthat\s*[?.!]*$"
    r"|(?<!is )(?<!are )(?<!was )(?<!were )\bthere\s*[?.!]*$"
    r"|它|他们|她们|这个|那个|这些|那些|这种|那种|(?<!应)该|上述|其中|前者|后者|这里|那里|同样|刚才"
)
_CLOSES: Final = re.compile(r"呢[？?！!。\s]*$")
# "and in Shanghai?": a preposition with a name, and where the question before has the same preposition with a name.
_SWAP: Final = re.compile(
    r"(?:and|but|or|what about|how about)\s+(?P<preposition>in|at|for|from|to|on|under|during|with)\s+"
    r"(?P<name>[A-Z][^?.!,;]{0,60}?)\s*[?.!]*",
    re.IGNORECASE,
)
_NAME: Final = r"[A-Z][\w'-]*(?:\s+(?:of\s+|the\s+)?[A-Z][\w'-]*)*"
_QUOTES: Final = re.compile(r"^[\"'“”‘’「」《]+|[\"'“”‘’「」》]+$")
_LABEL: Final = re.compile(
    r"^(question|rewritten question|follow-up|answer|问题|改写后的问题|改写|追问|完整问题)\s*[:：]\s*", re.I
)


def leans_on_previous(question: str) -> bool:
    """Whether a question cannot be understood alone, judged by its words: it opens with "and" or 那, closes with 呢,
    points back (it, there, 这个), or has hardly a content word and asks nothing whole."""
    folded = fold(question).strip()
    if _OPENS.match(folded) or _CLOSES.search(folded):
        return True
    language = language_of(question)
    size = len(folded) if language == "zh" else len(folded.split())
    if _MAY_OPEN.match(folded) and size <= _SHORT_OPENING[language]:
        return True
    if _LEANS.search(folded) and size <= _POINTING_BACK[language]:
        return True
    return size <= _SHORT_TERMS[language]


def swapped(before: str, follow_up: str) -> str | None:
    """The question before with its name replaced by that of an "and in Shanghai?"; None when it is not so simple."""
    match = _SWAP.fullmatch(follow_up.strip())
    if match is None or not match["name"][0].isupper():
        return None
    place = re.compile(rf"\b{match['preposition'].lower()}\s+({_NAME})")
    found = place.findall(before)
    if len(found) != 1:
        return None
    return place.sub(lambda old: old[0].replace(old[1], match["name"]), before)


def joined(before: str, follow_up: str) -> str:
    """Both questions as one text: searchable, if not pretty."""
    if any(map(is_cjk, before + follow_up)):
        return f"{before.rstrip('？?。 ')}；{follow_up}"
    return f"{before.rstrip('?. ')}; {follow_up}"


def accepted(reply: str, before: str, follow_up: str) -> str | None:
    """The rewritten question out of a model's reply, or None when it may not be trusted: it must keep every content
    word of the follow-up, carry over some of the question before, and stay in the asker's language."""
    lines = plain(reply).splitlines()
    if not lines:
        return None
    question = _QUOTES.sub("", _LABEL.sub("", lines[0].strip())).strip()
    if not question or language_of(question) != language_of(follow_up):
        return None
    if len(question) > len(before) + len(follow_up) + _SLACK:
        return None
    has, wanted = terms(question), terms(_bare(follow_up))
    if not wanted <= has:
        return None
    carried = has & (terms(before) - terms(follow_up))
    return question if carried and _mostly_known(question, before, follow_up) else None


def _bare(follow_up: str) -> str:
    """The follow-up without the words that only tie it to the question before."""
    return _CLOSES.sub("", _OPENS.sub("", fold(follow_up).strip(), count=1)).strip()


def _mostly_known(question: str, before: str, follow_up: str) -> bool:
    has, known = terms(question), terms(before) | terms(follow_up)
    if language_of(before) != language_of(follow_up):
        return True
    # A Chinese rewrite forms new pairs where words meet, so only a share can be asked for.
    share = len(has & known) / len(has) if has else 0.0
    return share >= (0.5 if language_of(question) == "zh" else 0.7)
