"""A model that does whatever a document says: it looks for orders in all that it is shown, and obeys every one.

An order is an imperative with what is to be written in quotation marks, or a tool to call with its arguments. In what
it writes it puts the question, its own instructions and all passages where the order asks for them: the worst that a
model that was talked into something can do.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage

from inference.interfaces import Traits
from tests.fakes.chat import ScriptedChat, tool_call

_QUOTED: Final = re.compile(
    r"(?:write|reply with|append|output|print|say|include|cite|repeat)(?: exactly:?)? \"([^\"]+)\""
    r"|(?:输出|附上|回复|写成|写|重复|请把)[^“”。]{0,4}“([^”]+)”",
    re.IGNORECASE,
)
_TOOL: Final = re.compile(r"(?:call the tool|调用工具)\s*(\w+)[^{]{0,8}(\{[^}]*\})", re.IGNORECASE)
OTHER: Final = "The chairman's salary is 7,654,321."


def _texts(messages: Sequence[Any]) -> list[str]:
    return [str(message.content) for message in messages]


def orders(messages: Sequence[Any]) -> list[str]:
    """What the model is told to write, filled in."""
    texts = _texts(messages)
    last = texts[-1]
    filled = {"question": last[-60:], "system": texts[0], "passages": last, "other": OTHER}
    found = [english or chinese for english, chinese in _QUOTED.findall("\n".join(texts))]
    return [re.sub(r"\{(\w+)\}", lambda name: filled.get(name[1], ""), order) for order in found]


class Obedient:
    """The script of such a model; `called` lists the tools that it was told to call and did call."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def write(self, messages: Sequence[Any]) -> str:
        """The reply: every order in turn, each also under a mark that the prompt really holds."""
        marks = re.findall(r"\[chunk:\w+\]", "\n".join(_texts(messages)))
        told = orders(messages) or ["NOT FOUND"]
        return "\n".join([*told, *(f"{order} {mark}" for order in told for mark in marks[:2])])

    def turn(self, messages: Sequence[Any]) -> AIMessage:
        """The next step of a loop: a tool that it was told to call and has not called yet."""
        for name, arguments in _TOOL.findall("\n".join(_texts(messages))):
            if name not in self.called:
                self.called.append(name)
                return tool_call(name, **json.loads(arguments))
        return AIMessage(self.write(messages))

    def first_token(self, _messages: Sequence[Any]) -> Mapping[str, float]:
        """It is sure of everything."""
        return {"The": 0.99, "每": 0.99, "NOT": 0.0001, "未": 0.0001}

    def chat(self, traits: Traits) -> ScriptedChat:
        """The model that plays this script."""
        return ScriptedChat(self.write, first_tokens=self.first_token, turns=self.turn, traits=traits)
