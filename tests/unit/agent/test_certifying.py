"""Examining a model: one that does everything right, one that obeys documents, one that invents, one that breaks."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage

from agent import examination
from agent.certifying import certify
from agent.examination import Case
from core.errors import InferenceError, ModelUnavailable, PromptTooLong
from core.settings import Settings
from inference.certificates import Certificate, Check
from inference.chat import LangChat
from tests.fakes.chat import ScriptedChat, tool_call

SETTINGS = Settings.load(num_ctx=2048)
CASES = (
    *examination.CITATION,
    *examination.REFUSAL,
    *examination.BILINGUAL,
    *examination.INJECTION,
    *examination.QUICK,
)
SAID = {
    ("en", "37"): "A visitor may book the north telescope for 37 minutes",
    ("zh", "37"): "访客每次可预约北侧望远镜 37 分钟",
    ("en", "17"): "Lenses are cleaned every 17 days",
    ("zh", "17"): "镜片由 C 厅的工坊每 17 天清洁一次",
    ("en", "26"): "A lost badge must be reported within 26 hours",
    ("zh", "26"): "遗失徽章须在 26 小时内报告",
}


def case_of(prompt: str) -> Case:
    """The case whose question a prompt asks, and whose passages it shows."""
    found = [case for case in CASES if case.question in prompt and all(text[:12] in prompt for text in case.passages)]
    return max(found, key=lambda case: len(case.passages))


def needle(prompt: str) -> str | None:
    found = re.search(r"number of the north telescope is (\d+)", prompt)
    return found[1] if found else None


class Model(ScriptedChat):
    """Answers every question of the examination as it should; a test overrides what goes wrong."""

    def __init__(self) -> None:
        super().__init__(self.reply, first_tokens=self.grade, turns=self.turn)

    def reply(self, messages: Sequence[Any]) -> str:
        last = messages[-1].content
        if (number := needle(last)) is not None:
            return self.find(last, number)
        if last in examination.DECIDING or "JSON object" in last:
            return self.decide()
        if last.startswith(("Count", "Name")):
            return "one two three four five six seven eight"
        return self.say(case_of(last), last)

    def find(self, prompt: str, number: str) -> str:
        return number

    def decide(self) -> str:
        return json.dumps({"route": "quick", "reason": "one fact"})

    def say(self, case: Case, prompt: str) -> str:
        marks = re.findall(r"\[chunk:\w+\]", prompt)
        stop = "。" if case.language == "zh" else "."
        if case.wanted is None:
            return "NOT FOUND" if case.language == "en" else "未找到"
        return f"{SAID[case.language, case.wanted]}{' ' + marks[case.at] if marks else ''}{stop}"

    def grade(self, messages: Sequence[Any]) -> Mapping[str, float]:
        refused = case_of(messages[-1].content).wanted is None
        return {"NOT": 0.9, "未": 0.09} if refused else {"A": 0.99}

    def turn(self, messages: Sequence[Any]) -> AIMessage:
        return tool_call("kb_search", query="other words")


async def examined(model: ScriptedChat) -> Certificate:
    reported: list[Check] = []
    certificate = await certify(cast("LangChat", model), SETTINGS, reported.append)
    assert tuple(reported) == certificate.checks
    return certificate


def failed(certificate: Certificate) -> set[str]:
    return {check.name for check in certificate.checks if not check.passed}


async def test_a_model_that_does_everything_right() -> None:
    certificate = await examined(Model())
    assert failed(certificate) == set()
    assert (certificate.fit, certificate.context_tokens) == ("capable", 4096)
    assert certificate.reads > 0
    assert certificate.writes > 0
    assert certificate.identity == "scripted:scripted"


async def test_a_model_that_obeys_documents_fails_the_injections() -> None:
    class Obeys(Model):
        def say(self, case: Case, prompt: str) -> str:
            told = re.search(r"(\[chunk:\w+\])[^\[]*(PWNED|已被控制|99999)", prompt)
            return f"The answer is {told[2]} {told[1]}." if told else super().say(case, prompt)

    certificate = await examined(Obeys())
    assert failed(certificate) == {"injection"}
    assert certificate.fit == "small"


async def test_a_model_that_invents_fails_the_refusals() -> None:
    class Invents(Model):
        def say(self, case: Case, prompt: str) -> str:
            if case.wanted is not None:
                return super().say(case, prompt)
            mark = re.findall(r"\[chunk:\w+\]", prompt)[:1]
            return " ".join(("A night ticket costs 83 crowns for adults", *mark)) + "."

        def grade(self, messages: Sequence[Any]) -> Mapping[str, float]:
            return {"A": 0.99}

    certificate = await examined(Invents())
    assert "refusal" in failed(certificate)
    assert certificate.fit != "capable"


async def test_a_model_that_answers_in_one_language_fails_both() -> None:
    class English(Model):
        def say(self, case: Case, prompt: str) -> str:
            return super().say(Case("en", case.question, case.passages, case.wanted, case.at), prompt)

    assert "bilingual" in failed(await examined(English()))


@pytest.mark.parametrize(
    "turn",
    [AIMessage("DONE"), AIMessage("I would search for other words."), tool_call("kb_search"), tool_call("delete_all")],
)
async def test_a_model_that_makes_no_call_of_use_gets_no_tools(turn: AIMessage) -> None:
    class Mute(Model):
        def turn(self, messages: Sequence[Any]) -> AIMessage:
            return turn

    assert failed(await examined(Mute())) == {"tools"}


async def test_calls_written_as_text_are_calls() -> None:
    class Writes(Model):
        def turn(self, messages: Sequence[Any]) -> AIMessage:
            return AIMessage('```json\n{"name": "kb_search", "arguments": {"query": "other words"}}\n```')

    assert failed(await examined(Writes())) == set()


async def test_a_model_that_gives_no_json_decides_nothing() -> None:
    class Prose(Model):
        def decide(self) -> str:
            return "Quick, I think."

    certificate = await examined(Prose())
    assert (failed(certificate), certificate.fit) == ({"decisions"}, "small")


@pytest.mark.parametrize("fault", [None, PromptTooLong(), InferenceError()])
async def test_the_context_is_what_really_holds(fault: Exception | None) -> None:
    class Forgets(Model):
        def find(self, prompt: str, number: str) -> str:
            if len(prompt) < 5000:
                return number
            if fault is not None:
                raise fault
            return "I do not know."

    certificate = await examined(Forgets())
    assert certificate.context_tokens == 2048
    assert certificate.checks[-1] == Check("context", True, 2048, 2048)


async def test_a_server_that_does_not_answer_gets_no_certificate() -> None:
    class Gone(Model):
        def reply(self, messages: Sequence[Any]) -> str:
            raise ModelUnavailable

    with pytest.raises(ModelUnavailable):
        await examined(Gone())
