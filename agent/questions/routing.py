"""What a question is and how it is looked up. Nothing that a model says keeps a question from being searched.

Code decides first; only where words do not tell is a capable model asked. What it says chooses between two ways that
lead to each other: the quick one goes on to the other where what it found is not enough.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from agent.language.text import overlap, passage_text, terms
from agent.language.words import say
from agent.questions.sufficiency import parts
from core.errors import InvalidRequest
from core.records import Hit, Mode
from core.text import fold, language_of, visible
from inference.interfaces import Traits

MAX_QUESTION: Final = 2000

SmallTalk = Literal["greeting", "thanks", "identity", "goodbye"]
Path = Literal["quick", "agent"]
Route = Literal["converse", "unrelated", "quick", "agent", "brief"]
Reason = Literal[
    "small_talk",
    "nothing_found",
    "far_off",
    "asked_for",
    "no_tools",
    "small_model",
    "several_parts",
    "comparison",
    "one_fact",
    "model",
    "undecided",
    "insufficient",
]


@dataclass(frozen=True, slots=True)
class Decision:
    """The way a question takes, why, and who said so."""

    route: Route
    reason: Reason
    by: Literal["caller", "code", "model"] = "code"


# A question of at most so many content words that joins and compares nothing asks for one fact.
ONE_FACT: Final = {"en": 8, "zh": 16}
_COMPARES: Final = re.compile(
    r"\b(compare[ds]?|comparison|difference|differ|versus|vs|than|respectively|both|each of)\b"
    r"|区别|差别|不同|相比|比较|对比|分别|哪个更|各是",
    re.IGNORECASE,
)
# Below this best cosine, and with no passage that holds more of the question's words than SHARED, nothing found
# concerns it: for passages of its own language and across languages, by embedder (how its id begins). On 224 answerable
# questions over two handbooks it was wrong in none; of 36 that concern neither it caught 57 %.
FAR_OFF: Final = {"embedded:multilingual-e5-small": (0.82, 0.79)}
SHARED: Final = 0.34

_PATTERNS: Final[dict[SmallTalk, str]] = {
    "greeting": r"(hi|hello|hey|good (morning|afternoon|evening|day)|greetings)( (there|all|everyone|intramuros))?"
    r"|how are you( today)?|(您|你|大家)好(呀|啊|吗)?|哈喽|嗨|早上好|上午好|下午好|晚上好|早安|在吗",
    "thanks": r"(ok(ay)? |great )?(thanks|thank you|thx|cheers)( (a lot|so much|very much|again|for your help))*"
    r"|(好的)?(非常|多|太)?(感谢|谢谢|谢啦|多谢)(您|你|了|啦|您的帮助|你的帮助)?",
    "identity": r"(who|what) are you|what can you do( for me)?|what is your name|how do you work|introduce yourself"
    r"|are you (a |an )?(human|person|robot|bot|chatbot|ai|machine)|how can you help( me)?|which model are you"
    r"|(请问)?(你|您)(是谁|是什么|叫什么(名字)?|能做什么|会做什么|能干什么|可以做什么)(呢|呀)?|(请)?(自我介绍|介绍(一下)?你自己)(一下)?"
    r"|(你|您)(是|不是)(机器人|人工智能|真人|人|ai)吗|(你|您)是(什么|哪个)模型",
    "goodbye": r"(good ?bye|bye( bye)?|see you( later)?)|再见|拜拜",
}
_SMALL_TALK: Final = {kind: re.compile(pattern) for kind, pattern in _PATTERNS.items()}


def clean_question(question: str) -> str:
    """The question as it is used: invisible characters gone, space evened. Raises InvalidRequest when nothing is
    left, or more than MAX_QUESTION characters."""
    cleaned = " ".join(visible(question).split())
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


def by_code(question: str, mode: Mode, traits: Traits) -> Decision | None:
    """The way to look, as far as the caller, the model's abilities and the question's words tell; None where only a
    model can say."""
    if mode == "brief":
        return Decision("brief", "asked_for", "caller")
    if not traits.tools:
        return Decision("quick", "no_tools")
    if mode != "auto":
        return Decision("quick" if mode == "quick" else "agent", "asked_for", "caller")
    if not traits.capable:
        return Decision("quick", "small_model")
    if _COMPARES.search(question):
        return Decision("agent", "comparison")
    if len(parts(question)) > 1:
        return Decision("agent", "several_parts")
    return Decision("quick", "one_fact") if len(terms(question)) <= ONE_FACT[language_of(question)] else None


def unconcerned(question: str, hits: Sequence[Hit], embedder_id: str) -> Decision | None:
    """The decision that the documents cannot concern a question, by what a search for it found: nothing, or only what
    is as far from it as from any question. None where they may, and with an embedder that was not measured."""
    if not hits:
        return Decision("unrelated", "nothing_found")
    measured = next((far for name, far in FAR_OFF.items() if embedder_id.startswith(name)), None)
    if measured is None:
        return None
    words, language = terms(question), language_of(question)
    own = any(language_of(hit.text) == language for hit in hits)
    near = max(hit.scores.vector or 0.0 for hit in hits)
    held = max(overlap(words, passage_text(hit)) for hit in hits) if words else 0.0
    # Across languages a word in common is a name or a code.
    far_off = near < measured[0] and held <= SHARED if own else near < measured[1] and held == 0.0
    return Decision("unrelated", "far_off") if far_off else None
