"""What may not reach the index: invisible characters, broken code points, and forged citation marks.

Invisible text is a way to address the model behind the reader's back, and marks that look like our own citations
could be mistaken for them. Both go at the door; the reader, the index and the model then see the same text.
"""

import re
import unicodedata
from typing import NamedTuple

from core.records import ParseWarning

# Code points that show nothing: C0 and C1 controls (tab and line feed excepted), lone surrogates, zero-width and
# directional marks, soft hyphen, fillers, interlinear marks, tag characters, the second set of variation selectors.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# Joiners and the emoji and text selectors have honest uses; `_honest` decides each one.
_CONDITIONAL = re.compile("[\u200c\u200d\ufe00-\ufe0f]")

# Arabic, Syriac, Thaana, N'Ko to Arabic Extended, the Indic blocks, Myanmar, Khmer, Mongolian, Arabic forms.
_JOINING = re.compile(
    "[\u0600-\u07ff\u0840-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u1800-\u18af\ufb50-\ufdff\ufe70-\ufefc]"
)

_OPENING = "[［【〔〖〘〚⁅⟦❲｢"
_CLOSING = "]］】〕〗〙〛⁆⟧❳｣"
_BRACKETED = re.compile(
    f"[{re.escape(_OPENING)}][^{re.escape(_OPENING + _CLOSING)}\n]{{1,120}}[{re.escape(_CLOSING)}]?"
)
_MARK = re.compile("chunk[:︰꞉ː˸∶]")
# Letters of other scripts that read as ours (Cyrillic, Greek, Armenian); NFKC folds mathematical and full-width ones.
_LOOKALIKES = str.maketrans({"с": "c", "ϲ": "c", "һ": "h", "υ": "u", "ս": "u", "ո": "n", "κ": "k", "к": "k"})


class Cleaned(NamedTuple):
    """A text that may be shown, how many invisible characters went, and how many forged marks were defused."""

    text: str
    invisible: int
    forged: int


def clean(text: str) -> Cleaned:
    """The text with line feeds only, nothing invisible and no forged mark.

    Cleaning twice gives the same text as cleaning once. Zero-width joiners stay between letters of scripts that
    need them and inside emoji. Bracketed numbers such as [1] stay: they are footnotes, the model never cites by them,
    and those it copies are dropped from its answers.
    """
    text = _BREAKS.sub("\n", text)
    visible, removed = _INVISIBLE.subn("", text)
    if _CONDITIONAL.search(visible):
        kept = _keep_honest_joiners(visible)
        removed += len(visible) - len(kept)
        visible = kept
    plain, forged = _defuse(visible)
    return Cleaned(plain, removed, forged)


def clean_warnings(invisible: int, forged: int) -> list[ParseWarning]:
    """What a document's reader is told of characters and marks that `clean` counted, over all its texts."""
    found = []
    if invisible:
        text = f"{invisible} invisible characters were removed."
        found.append(ParseWarning("invisible_characters", text, invisible))
    if forged:
        text = f"{forged} marks that look like our citations were made plain text."
        found.append(ParseWarning("forged_marks", text, forged))
    return found


def _keep_honest_joiners(text: str) -> str:
    kept: list[str] = []
    for index, char in enumerate(text):
        if _CONDITIONAL.match(char):
            before = kept[-1] if kept else ""
            after = text[index + 1] if index + 1 < len(text) else ""
            if not _honest(char, before, after):
                continue
        kept.append(char)
    return "".join(kept)


def _honest(char: str, before: str, after: str) -> bool:
    if char in "\u200c\u200d":
        if _JOINING.match(before or " ") and _JOINING.match(after or " "):
            return True
        return char == "\u200d" and _pictorial(before) and _pictorial(after)
    # Selectors 15 and 16 choose text or emoji form of the character before (also of keycaps).
    return char in "\ufe0e\ufe0f" and (_pictorial(before) or before in tuple("#*0123456789")) and before != char


def _pictorial(char: str) -> bool:
    return bool(char) and (char == "\ufe0f" or unicodedata.category(char) in {"So", "Sk", "Sm"})


def _defuse(text: str) -> tuple[str, int]:
    """Turn `[chunk:...]`, in any brackets, width, case or spacing, into `(chunk:...)`; how many there were."""
    forged = 0

    def defused(match: re.Match[str]) -> str:
        nonlocal forged
        bracketed = match[0]
        reads_as = unicodedata.normalize("NFKC", bracketed[1:]).casefold().translate(_LOOKALIKES)
        if not _MARK.match("".join(reads_as.split())):
            return bracketed
        forged += 1
        closed = bracketed[-1] in _CLOSING
        return f"({bracketed[1:-1]})" if closed else f"({bracketed[1:]}"

    return _BRACKETED.sub(defused, text), forged
