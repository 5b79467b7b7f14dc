"""A prompt that knows its name and its version, so that a trace can say which words a model was given."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from inference.interfaces import Message

_LENGTH: Final = 8


class Prompt(list[Message]):
    """The messages of one call. `version` is another whenever the words that stay the same from call to call are."""

    def __init__(self, name: str, fixed: Sequence[Message], last: str) -> None:
        super().__init__([*fixed, Message("user", last)])
        self.name = name
        self.version = version_of("\n".join(f"{message.role}\n{message.content}" for message in fixed))


@lru_cache(maxsize=256)
def version_of(fixed: str) -> str:
    """A short hash of a prompt's fixed words."""
    return hashlib.sha256(fixed.encode()).hexdigest()[:_LENGTH]
