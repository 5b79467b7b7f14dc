"""Names in a text: those that capitals or another script give away."""

import re
from typing import Final

from agent.language.amounts import UNIT_OF, without_facts
from agent.language.text import FUNCTION_WORDS, sentences
from core.text import fold, is_cjk

# What follows a surname, and what ends the name of an office or a place.
_TITLED: Final = re.compile(r"[\u4e00-\u9fff](?=先生|女士|老师|医生|教授)")
_OFFICES: Final = re.compile(r"([\u4e00-\u9fff]{2})(?:[部处科局]|总监|主任|委员会)(?![\u4e00-\u9fff]?[门理长学])")


def names(text: str) -> frozenset[str]:
    """Names in a text, folded: Latin words with a capital that does not merely open a sentence, codes, any Latin word
    within Chinese, and what stands before a Chinese title or office."""
    found: set[str] = set()
    for sentence in sentences(text):
        chinese = any(map(is_cjk, sentence))
        if chinese:
            sentence = without_facts(sentence)
            found |= {match[0] for match in _TITLED.finditer(sentence)} | set(_OFFICES.findall(sentence))
        for match in re.finditer(r"[A-Za-z][A-Za-z0-9&-]*", sentence):
            word = match.group()
            opens = not sentence[: match.start()].strip(" “\"'(*-•#0123456789.")
            capital = word[0].isupper() and (not opens or (len(word) > 1 and word.isupper()))
            if word.casefold() not in FUNCTION_WORDS | UNIT_OF.keys() and (chinese or capital):
                found.add(fold(word))
    return frozenset(found)
