"""Keeping a model's thinking out of what anybody reads."""

import re

_OPENERS = ("<think>", "<thinking>", "<reasoning>")
_CLOSERS = ("</think>", "</thinking>", "</reasoning>")
_OPEN = re.compile("|".join(_OPENERS), re.IGNORECASE)
_CLOSE = re.compile("|".join(_CLOSERS), re.IGNORECASE)


class ThinkingFilter:
    """Takes the pieces of a reply and gives back what is not thinking, tags split over pieces understood.

    A tag that is never closed hides all that follows. A closing tag without an opening one (some templates open it in
    the prompt) hides what came before it in the same piece; `without_thinking` on a whole reply hides all of it.
    """

    def __init__(self) -> None:
        self._held = ""
        self._inside = False

    def feed(self, piece: str) -> str:
        """The visible part of what has come so far and was not given out before."""
        text, visible = self._held + piece, []
        while True:
            tag = (_CLOSE if self._inside else _OPEN).search(text)
            if tag is None:
                break
            if not self._inside:
                visible.append(text[: tag.start()])
            self._inside = not self._inside
            text = text[tag.end() :]
        if not self._inside:
            text = _CLOSE.split(text)[-1]
        keep = _beginning_of_tag(text, _CLOSERS if self._inside else _OPENERS + _CLOSERS)
        self._held = text[len(text) - keep :]
        if not self._inside:
            visible.append(text[: len(text) - keep])
        return "".join(visible)

    def finish(self) -> str:
        """What was held back because it could have become a tag."""
        held, self._held = self._held, ""
        return "" if self._inside else held


def without_thinking(text: str) -> str:
    """A whole reply without its thinking and without blank space at its ends."""
    if not _OPEN.search(text):
        text = _CLOSE.split(text)[-1]
    thinking = ThinkingFilter()
    return (thinking.feed(text) + thinking.finish()).strip()


def _beginning_of_tag(text: str, tags: tuple[str, ...]) -> int:
    """Length of the longest end of `text` that begins one of the tags."""
    longest = max(map(len, tags)) - 1
    for length in range(min(longest, len(text)), 0, -1):
        end = text[-length:].lower()
        if any(tag.startswith(end) for tag in tags):
            return length
    return 0
