"""Small facts about text that several packages share: folding, script, language."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from opencc import OpenCC

from core.records import Language

# Share of CJK letters above which a text counts as Chinese.
CJK_SHARE = 0.15

# Unified ideographs, extensions A to H, compatibility ones, and the numeral 〇.
_HAN = re.compile("[\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")


@lru_cache(maxsize=1)
def _simplifier() -> OpenCC:
    return OpenCC("t2s")


def is_cjk(char: str) -> bool:
    """Whether a character is a Han ideograph (unified, extension A to H, compatibility, or the numeral 〇)."""
    return _HAN.match(char) is not None


def count_cjk(text: str) -> int:
    """How many Han ideographs a text has."""
    return 0 if text.isascii() else len(_HAN.findall(text))


def cjk_share(text: str) -> float:
    """Han ideographs as a share of all letters and digits, 0 to 1 (0 for a text without any)."""
    if text.isascii():
        return 0.0
    letters = "".join(filter(str.isalnum, text))
    return count_cjk(letters) / len(letters) if letters else 0.0


def language_of(text: str) -> Language:
    """`zh` when more than 15 % of the letters are Han ideographs, else `en`."""
    return "zh" if cjk_share(text) > CJK_SHARE else "en"


def fold(text: str) -> str:
    """One form for matching: NFKC (full-width to half), traditional to simplified Chinese, case folded."""
    if text.isascii():
        return text.lower()
    normal = unicodedata.normalize("NFKC", text)
    if _HAN.search(normal):
        normal = str(_simplifier().convert(normal))
    return normal.casefold()


def embedded_text(title: str, heading_path: Sequence[str], text: str) -> str:
    """What is embedded for a chunk: `Title > Heading > Subheading`, a line feed, the text."""
    return " > ".join((title, *heading_path)) + "\n" + text


def visible(text: str) -> str:
    """The text without characters that show nothing: controls, tag characters and other format marks, surrogates."""
    return "".join(filter(_visible, text))


def _visible(char: str) -> bool:
    # Surrogates and NUL cannot be stored; the two joiners are part of how some scripts are written.
    category = unicodedata.category(char)
    return char in "\n\t\u200c\u200d" or category not in ("Cc", "Cf", "Cs", "Co", "Cn")
