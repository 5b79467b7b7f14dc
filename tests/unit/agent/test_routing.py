import pytest

from agent.questions.routing import MAX_QUESTION, by_code, clean_question, small_talk, unconcerned
from core.errors import InvalidRequest
from core.records import Mode, Scores
from inference.interfaces import Traits
from tests.fakes.chat import CAPABLE, SMALL
from tests.unit.agent.support import hit


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
        ("Are you a robot?", "identity"),
        ("How can you help me?", "identity"),
        ("你是机器人吗？", "identity"),
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
        "How can you help me book a hotel?",
        "你是机器人部门的吗？",
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


ONE_FACT = "How much is the hotel cap in Shanghai?"
LONG = (
    "Under which circumstances must managers of overseas warehouse subsidiaries notify regional security before "
    "contractors enter restricted loading areas?"
)


@pytest.mark.parametrize(
    ("mode", "tools", "capable", "question", "route", "reason"),
    [
        ("auto", True, True, ONE_FACT, "quick", "one_fact"),
        ("auto", True, True, "How long is leave and who approves it?", "agent", "several_parts"),
        ("auto", True, True, "What is the difference between P2 and M2?", "agent", "comparison"),
        ("auto", True, True, "P3 去上海出差，住宿标准和每天的餐补是多少？", "agent", "several_parts"),
        ("auto", True, True, "年假有几天？", "quick", "one_fact"),
        ("auto", True, False, "What is the difference between P2 and M2?", "quick", "small_model"),
        ("auto", False, True, "What is the difference between P2 and M2?", "quick", "no_tools"),
        ("agent", True, False, ONE_FACT, "agent", "asked_for"),
        ("agent", False, False, ONE_FACT, "quick", "no_tools"),
        ("quick", True, True, "What is the difference between P2 and M2?", "quick", "asked_for"),
    ],
)
def test_the_way_and_its_reason(mode: Mode, tools: bool, capable: bool, question: str, route: str, reason: str) -> None:
    traits = Traits(tools=tools, logprobs=True, capable=capable, context_tokens=4096)
    decision = by_code(question, mode, traits)
    assert decision is not None
    assert (decision.route, decision.reason) == (route, reason)
    assert decision.by == ("caller" if reason == "asked_for" else "code")


def test_only_a_capable_model_is_asked_where_words_do_not_tell() -> None:
    assert by_code(LONG, "auto", CAPABLE) is None
    assert by_code(LONG, "auto", SMALL) is not None


@pytest.mark.parametrize(
    ("text", "cosine", "embedder", "concerned"),
    [
        ("Lunch is at noon.", 0.70, "embedded:multilingual-e5-small", False),
        ("Lunch is at noon.", 0.95, "embedded:multilingual-e5-small", True),
        ("The hotel cap in the north.", 0.70, "embedded:multilingual-e5-small", True),
        ("午餐在中午供应。", 0.80, "embedded:multilingual-e5-small", True),
        ("午餐在中午供应。", 0.75, "embedded:multilingual-e5-small", False),
        ("上海 Shanghai 的午餐。", 0.75, "embedded:multilingual-e5-small", True),
        ("Lunch is at noon.", 0.10, "ollama:unmeasured", True),
    ],
)
def test_what_the_documents_cannot_concern_is_far_off_and_shares_no_word(
    text: str, cosine: float, embedder: str, concerned: bool
) -> None:
    found = [hit(text, scores=Scores(cosine, None, 1.0))]
    assert (unconcerned(ONE_FACT, found, embedder) is None) is concerned
    nothing = unconcerned(ONE_FACT, [], embedder)
    assert nothing is not None
    assert nothing.reason == "nothing_found"
