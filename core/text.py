"""Small facts about text that several packages share: folding, script, language."""

import unicodedata
from functools import lru_cache

from opencc import OpenCC

from core.records import Language

# Share of CJK letters above which a text counts as Chinese.
CJK_SHARE = 0.15

_HAN = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0xF900, 0xFAFF), (0x20000, 0x323AF))


@lru_cache(maxsize=1)
def _simplifier() -> OpenCC:
    return OpenCC("t2s")


def is_cjk(char: str) -> bool:
    """Whether a character is a Han ideograph (unified, extension A to H, compatibility, or the numeral 〇)."""
    code = ord(char)
    return char == "〇" or any(first <= code <= last for first, last in _HAN)


def cjk_share(text: str) -> float:
    """Han ideographs as a share of all letters and digits, 0 to 1 (0 for a text without any)."""
    letters = [char for char in text if char.isalnum()]
    return sum(map(is_cjk, letters)) / len(letters) if letters else 0.0


def language_of(text: str) -> Language:
    """`zh` when more than 15 % of the letters are Han ideographs, else `en`."""
    return "zh" if cjk_share(text) > CJK_SHARE else "en"


def fold(text: str) -> str:
    """One form for matching: NFKC (full-width to half), traditional to simplified Chinese, case folded."""
    normal = unicodedata.normalize("NFKC", text)
    if any(map(is_cjk, normal)):
        normal = str(_simplifier().convert(normal))
    return normal.casefold()
