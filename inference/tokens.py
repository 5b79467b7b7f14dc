"""How many tokens a text has, without the model's tokenizer: about, and at most; and what a prompt must leave room for.

Measured on the tokenizer of the embedded model (Qwen2.5, 150,000 entries) over 2,827 windows of English and Chinese
handbooks, policies, questions and articles of an encyclopaedia: `at_most` was below the true count in 4 of them, by 7 %
at most, and is 1.2 to 1.7 times the true count of a whole corpus, twice for Markdown full of signs. A text of random
rare Han characters is the one kind that takes more. A vocabulary of 32,000 entries may need twice as many tokens for
Chinese: what such a server then cuts is found after the call (`was_cut`).
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage

from core.errors import PromptTooLong
from core.settings import variable
from core.text import is_cjk

# About: characters to a token.
_LETTERS: Final = 4.0
_HAN: Final = 1.5
# A prompt that was cut reports far fewer tokens than its text must have; prose and tables stay within a third.
_LEAST_SHARE: Final = 0.65
_LEAST_ESTIMATE: Final = 200

_PIECE: Final = re.compile(
    r"(?P<word>[A-Za-z]+)|(?P<digits> ?[0-9]+)|(?P<space>\s+)|(?P<wide>[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]+)"
    r"|(?P<marks>[!-/:-@\[-`{-~]+)|(?P<other>.)",
    re.DOTALL,
)
_MARGIN, _SPARE = 1.1, 4
# What a chat template lays around a message, around the prompt, and around the definitions of tools.
_MESSAGE, _PROMPT, _TOOLS = 8, 16, 160


def about(text: str) -> float:
    """The tokens that a text is likely to have: 4 letters or 1.5 Han characters each."""
    han = sum(map(is_cjk, text))
    return han / _HAN + (len(text) - han) / _LETTERS


def at_most(text: str) -> int:
    """The tokens that a text has at most, as far as a vocabulary that knows English and Chinese goes."""
    pieces = (_piece(str(match.lastgroup), match[0]) for match in _PIECE.finditer(text))
    return int(sum(pieces) * _MARGIN) + _SPARE


def _piece(kind: str, piece: str) -> float:
    length = len(piece)
    if kind == "word":
        # A word of a language takes few; a code of mixed letters, or of very many, hardly two letters to a token.
        spoken = length < 20 and (length == 1 or piece[1:].islower())
        return 1 + max(0, length - 6) / 4 if spoken else max(1.0, length / 1.6)
    if kind == "digits":  # one each, the blank before them too
        return length
    if kind == "space":
        return 0 if piece == " " else max(1.0, length / 2)
    if kind == "other":
        return len(piece.encode(errors="replace")) / 2 if ord(piece) < 0x20000 else 3.4
    return length * (0.9 if kind == "marks" else 1.0)


def of_prompt(prompt: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]] = ()) -> int:
    """The tokens that a whole request takes at most: messages, tool calls, definitions of tools, the template."""
    defined = at_most(json.dumps(list(tools), ensure_ascii=False)) + _TOOLS if tools else 0
    return of_texts(map(written, prompt)) + defined


def of_texts(texts: Iterable[str]) -> int:
    """The same for messages that are nothing but text."""
    return _PROMPT + sum(at_most(text) + _MESSAGE for text in texts)


def written(message: BaseMessage) -> str:
    """All of a message that the model reads: its text, and the calls of tools in it."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    said = (json.dumps({"name": call["name"], "arguments": call["args"]}, ensure_ascii=False) for call in calls)
    return "\n".join((str(message.text), *said))


def check_room(prompt: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], reply: int, context: int) -> None:
    """Raises PromptTooLong where prompt and reply may not fit: before the call, so that nothing is cut in silence."""
    if (needed := of_prompt(prompt, tools) + reply) > context:
        raise PromptTooLong(
            f"The prompt and its reply may take {needed} tokens, and the model reads {context}. Ask something shorter, "
            f"or raise {variable('num_ctx')}."
        )


def was_cut(read: int, prompt: Sequence[BaseMessage], context: int) -> bool:
    """Whether a server that counted `read` tokens cut the prompt: at its context, or for some models at half of it."""
    if read >= context:
        return True
    estimate = about("\n".join(str(message.text) for message in prompt))
    possible = estimate / _LEAST_SHARE > context / 2 and estimate >= _LEAST_ESTIMATE
    return possible and 0 < read < estimate * _LEAST_SHARE
