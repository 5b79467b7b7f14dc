"""Whether a text layer says anything: a page without usable letters is better read from its picture.

Fonts that lack a table to Unicode, or hold a wrong one, give letters that no one wrote. What was written shows in
three ways that need no dictionary: few characters without meaning, words with vowels and consonants as European
languages mix them, and Chinese characters that are mostly common ones.
"""

import re
import unicodedata

# So much of a page tells for all of it.
_SAMPLE = 3000
# Fewer letters than this prove nothing.
_ENOUGH = 40
# European languages have 33 to 55 vowels in 100 letters; text shifted by a font's own numbering 15 or fewer.
_FEWEST_VOWELS, _MOST_VOWELS = 0.22, 0.75
# Of running Chinese text, simplified or traditional, about 95 in 100 are common; of characters at random 35.
_COMMON_SHARE = 0.55
_LATIN_WORD = re.compile(r"[a-zß-öø-ÿœšžłčćęąőűāēīū]{3,}", re.I)
# Letters and figures; and what is neither plain nor Western nor Chinese, to be looked up one by one.
_WRITTEN = re.compile(r"[^\W_]")
_RARE = re.compile("[^!-~\u00a1-\u024f\u2010-\u2027\u3001-\u3011\u4e00-\u9fff]")
_IDEOGRAPHS = re.compile("[\u3400-\u9fff]")
_VOWELS = set("aeiouy")


def legible(text: str) -> bool:
    """Whether the text reads as a language; also True where there is too little of it to tell."""
    inked = "".join(text[:_SAMPLE].split())
    if len(inked) < _ENOUGH // 2:
        return not inked or _meaningless(inked) * 2 < len(inked)
    if _meaningless(inked) * 5 > len(inked):
        return False
    if len(_WRITTEN.findall(inked)) * 4 < len(inked) and not _drawn_lines(inked):
        return False
    return _reads_as_latin(text[:_SAMPLE]) and _reads_as_chinese(_IDEOGRAPHS.findall(inked))


def _meaningless(inked: str) -> int:
    """How many private, unassigned, replacement and control characters there are."""
    odd = _RARE.findall(inked)
    return sum(char == "\ufffd" or unicodedata.category(char) in {"Co", "Cn", "Cs", "Cc"} for char in odd)


def _drawn_lines(inked: str) -> bool:
    """Whether a page of signs is leaders and rules, such as a form or a table of contents has."""
    return sum(char in "._-–—…·=*|" for char in inked) * 2 > len(inked)


def _reads_as_latin(text: str) -> bool:
    letters = "".join(_LATIN_WORD.findall(text)).lower()
    if len(letters) < _ENOUGH:
        return True
    plain = unicodedata.normalize("NFD", letters)
    vowels = sum(char in _VOWELS for char in plain)
    return _FEWEST_VOWELS < vowels / len(letters) < _MOST_VOWELS


def _reads_as_chinese(characters: list[str]) -> bool:
    if len(characters) < _ENOUGH // 2:
        return True
    return sum(map(_common, characters)) > _COMMON_SHARE * len(characters)


def _common(char: str) -> bool:
    """Level 1 of GB 2312 (simplified) or of Big5 (traditional): the characters of everyday writing."""
    return b"\xb0" <= char.encode("gb2312", "ignore")[:1] < b"\xd8" or (
        b"\xa4" <= char.encode("big5", "ignore")[:1] < b"\xc7"
    )
