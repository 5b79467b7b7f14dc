"""What a question is, decided by code alone: a model can never route a question away from search."""

import re
import unicodedata
from typing import Final, Literal

from agent.words import say
from core.errors import InvalidRequest
from core.text import fold, language_of
from inference.interfaces import Traits

MAX_QUESTION: Final = 2000

SmallTalk = Literal["greeting", "thanks", "identity", "goodbye"]
Mode = Literal["auto", "quick", "agent"]
Path = Literal["quick", "agent"]

_PATTERNS: Final[dict[SmallTalk, str]] = {
    "greeting": r"(hi|hello|hey|good (morning|afternoon|evening|day)|greetings)( (there|all|everyone|intramuros))?"
    r"|how are you( today)?|(您|你|大家)好(呀|啊|吗)?|哈喽|嗨|早上好|上午好|下午好|晚上好|早安|在吗",
    "thanks": r"(ok(ay)? |great )?(thanks|thank you|thx|cheers)( (a lot|so much|very much|again|for your help))*"
    r"|(好的)?(非常|多|太)?(感谢|谢谢|谢啦|多谢)(您|你|了|啦|您的帮助|你的帮助)?",
    "identity": r"(who|what) are you|what can you do( for me)?|what is your name|how do you work|introduce yourself"
    r"|(请问)?(你|您)(是谁|是什么|叫什么(名字)?|能做什么|会做什么|能干什么|可以做什么)(呢|呀)?|(请)?(自我介绍|介绍(一下)?你自己)(一下)?",
    "goodbye": r"(good ?bye|bye( bye)?|see you( later)?)|再见|拜拜",
}
_SMALL_TALK: Final = {kind: re.compile(pattern) for kind, pattern in _PATTERNS.items()}


def _wanted(char: str) -> bool:
    # Surrogates and NUL cannot be stored; tag characters and other format controls hide text from the reader.
    category = unicodedata.category(char)
    return char in "\n\t" or category not in ("Cc", "Cf", "Cs", "Co", "Cn") or char in "\u200c\u200d"


def clean_question(question: str) -> str:
    """The question as it is used: invisible characters gone, space evened. Raises InvalidRequest when nothing is
    left, or more than MAX_QUESTION characters."""
    cleaned = " ".join("".join(filter(_wanted, question)).split())
    language = language_of(question)
    if not any(char.isalnum() for char in cleaned):
        raise InvalidRequest(say("question_empty", language))
    if len(cleaned) > MAX_QUESTION:
        raise InvalidRequest(say("question_long", language, limit=MAX_QUESTION))
    return cleaned


def small_talk(question: str) -> SmallTalk | None:
    """The kind of small talk that a message consists of wholly; None for everything else, which is searched."""
    words = " ".join(re.sub(r"[^\w\s]|_", " ", fold(question)).split())
    for kind, pattern in _SMALL_TALK.items():
        if pattern.fullmatch(words) or pattern.fullmatch(words.replace(" ", "")):
            return kind
    return None


def choose_path(mode: Mode, traits: Traits) -> Path:
    """`agent` where the model may steer its own search: capable ones by default, any with tools when asked for."""
    if mode == "quick" or not traits.tools:
        return "quick"
    return "agent" if mode == "agent" or traits.capable else "quick"
