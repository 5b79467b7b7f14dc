import pytest

from agent.routing import MAX_QUESTION, choose_path, clean_question, small_talk
from core.errors import InvalidRequest
from inference.interfaces import Traits


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Hello!", "greeting"),
        ("good morning", "greeting"),
        ("你好", "greeting"),
        ("您好！", "greeting"),
        ("Thanks a lot.", "thanks"),
        ("谢谢您", "thanks"),
        ("Who are you?", "identity"),
        ("你能做什么？", "identity"),
        ("再见", "goodbye"),
    ],
)
def test_small_talk_is_known(question: str, kind: str) -> None:
    assert small_talk(question) == kind


@pytest.mark.parametrize(
    "question",
    [
        "Hello, how many days of leave do I get?",
        "What can you tell me about travel?",
        "你好，年假几天？",
        "Who are you supposed to call in an emergency?",
        "thanks to whom is the bonus paid",
        "hi-vis vests",
    ],
)
def test_a_question_is_never_small_talk(question: str) -> None:
    assert small_talk(question) is None


def test_invisible_characters_are_dropped() -> None:
    assert clean_question("annual\u200b \U000e0041leave\x00\n days\ud800?") == "annual leave days?"


@pytest.mark.parametrize("question", ["", "  \n", "???", "\u200b", "x" * (MAX_QUESTION + 1)])
def test_an_unusable_question_is_refused(question: str) -> None:
    with pytest.raises(InvalidRequest):
        clean_question(question)


@pytest.mark.parametrize(
    ("mode", "tools", "capable", "path"),
    [
        ("auto", True, True, "agent"),
        ("auto", True, False, "quick"),
        ("auto", False, True, "quick"),
        ("agent", True, False, "agent"),
        ("agent", False, False, "quick"),
        ("quick", True, True, "quick"),
    ],
)
def test_the_path_follows_the_model(mode: str, tools: bool, capable: bool, path: str) -> None:
    traits = Traits(tools=tools, logprobs=True, capable=capable, context_tokens=4096)
    assert choose_path(mode, traits) == path  # type: ignore[arg-type]
