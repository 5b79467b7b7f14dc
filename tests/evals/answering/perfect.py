"""A scripted model that makes no mistake: it shows what the program around a model loses or lets through.

It knows the question's facts and the documents that state them. It says that passages answer when one of them states a
fact, answers with the sentences of a good writer, searches for what is missing, and refuses when there is nothing.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from pydantic import BaseModel

from agent.grounding.verification import Judged
from agent.language.text import sentences
from agent.models import prompts
from agent.models.prompting import Prompt
from agent.questions.deciding import Assessed, Divided, Routed
from inference.interfaces import Completion, Message
from tests.evals.answering.questions import Question, states
from tests.fakes.chat import CAPABLE, Call, ScriptedChat, tool_call

# Characters of the documents' titles that a query holds.
_TITLES: Final = 120
_MARK: Final = re.compile(r"\[(?:chunk:\w+|\d+)\]")


class Perfect(ScriptedChat):
    """The model for one question; `gold` is the text of the documents that answer it, titles in front."""

    def __init__(self, question: Question, gold: str) -> None:
        super().__init__(
            replies=self._reply, first_tokens=self._first_token, turns=self._turn, traits=CAPABLE, name="perfect"
        )
        self._question = question
        self._gold = gold
        self._sought: set[str] = set()

    def told(self, shown: str) -> list[str]:
        """A sentence with its mark for each fact that the passages shown state."""
        found: dict[str, None] = {}
        for ways in self._question.facts:
            sentence = next(one for one in self._question.sentences if any(states(one, way) for way in ways))
            for mark, piece in self._pieces(shown):
                stated = any(states(piece, way) for way in ways)
                if stated and not any(states(piece, wrong) for wrong in self._question.wrong):
                    found[f"{sentence} {mark}".strip()] = None
                    break
        return list(found)

    def _pieces(self, shown: str) -> list[tuple[str, str]]:
        """Each sentence or cell of the documents that answer, with the mark that it stands under."""
        mark, pieces = "", []
        for line in shown.splitlines():
            if found := _MARK.match(line.strip()):
                mark = found[0]
            for cell in line.split(" | "):
                pieces += [(mark, piece) for piece in sentences(cell) if piece in self._gold]
        return pieces

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        if schema is None:
            return await super().complete(messages, max_tokens=max_tokens, stop=stop)
        self.calls.append(Call("complete", tuple(messages), {"schema": schema}))
        return Completion(self._decided(str(schema["title"]), messages[-1].content).model_dump_json(), "stop", 0, 0)

    def _decided(self, form: str, asked: str) -> BaseModel:
        """What it decides: one fact is looked up quickly, no question is divided, what is not shown is missing."""
        question = self._question
        if form == Judged.__name__:
            return Judged(supported=self._supported(*asked.rsplit("\n\nSentence: ", 1)))
        if form == Routed.__name__:
            return Routed(route="agent" if len(question.facts) > 1 else "quick", reason=f"{len(question.facts)} facts")
        if form == Divided.__name__:
            return Divided(questions=[asked])
        told = [any(states(piece, way) for _, piece in self._pieces(asked) for way in ways) for ways in question.facts]
        about = self._gold.partition("\n")[0][:200]
        missing = [] if told and all(told) else [f"What do the documents {about} state?"]
        verdict: Literal["answer", "caveat", "cannot"] = "caveat" if any(told) else "cannot"
        return Assessed(missing=missing, verdict="answer" if told and all(told) else verdict)

    def _supported(self, shown: str, sentence: str) -> bool:
        """Whether passages of the documents that answer state every fact that a sentence states."""
        pieces = [piece for _, piece in self._pieces(shown)]
        stated = [ways for ways in self._question.facts if any(states(sentence, way) for way in ways)]
        return bool(stated) and all(any(states(piece, way) for piece in pieces for way in ways) for ways in stated)

    def _reply(self, messages: Sequence[Message]) -> str:
        if isinstance(messages, Prompt) and messages.name in ("rewrite", "translate"):
            return self._gold.partition("\n")[0][:_TITLES]
        told = self.told(messages[-1].content)
        return " ".join(told) if told else "NOT FOUND"

    def _first_token(self, messages: Sequence[Message]) -> Mapping[str, float]:
        # A capable model is asked in English to refuse, whatever the question's language.
        return {"The": 1.0} if self.told(messages[-1].content) else {prompts.REFUSING["en"][0]: 1.0}

    def _turn(self, messages: Sequence[BaseMessage]) -> AIMessage:
        shown = "\n".join(message.text for message in messages if isinstance(message, ToolMessage))
        told = self.told(shown)
        for ways in self._question.facts:
            query = f"{self._gold.splitlines()[0]} {ways[0]}"
            if len(told) < len(self._question.facts) and query not in self._sought:
                self._sought.add(query)
                return tool_call("kb_search", query=query)
        return AIMessage(" ".join(told) or "NOT FOUND")


def gold_text(titles: Sequence[str], texts: Sequence[str]) -> str:
    """The first line names the documents, what follows is all they say."""
    return "\n".join((" ".join(titles), *texts))
