"""What a model makes of the conversation before a question fails, or is nothing: the conversation stays as it was."""

from typing import Any

import pytest

from core.errors import ModelUnavailable
from core.records import Answered, Event, Failed, Principal, Refused
from storage import sessions
from storage.database import Database
from tests.fakes.chat import ScriptedChat
from tests.integration.agent.test_ask import QUESTION, agent_over, answer, chat, events, handbook, honest, reading

__all__ = ["handbook"]

# It leans on the question before it, and code alone does not make it whole.
FOLLOW_UP = "What about it in Beijing then?"


def chat_that_condenses_to(reply: str | Exception) -> ScriptedChat:
    """A model that makes no follow-up whole, and does all else as it should."""

    def says(messages: Any) -> str | Exception:
        return reply if "Follow-up:" in messages[-1].content else honest(messages)

    return ScriptedChat(says, first_tokens=reading)


async def after(database: Database, principal: Principal, model: ScriptedChat) -> tuple[Event, list[str]]:
    """The last event of a follow-up to an answered question, and the questions that the session then holds."""
    session = await sessions.create(database, principal, "Hotels")
    first = await answer(agent_over(database, chat()), principal, session_id=session.id)
    last = (await events(agent_over(database, model), principal, FOLLOW_UP, session_id=session.id))[-1]
    turns = await sessions.turns(database, principal, session.id)
    assert (turns[0].answer, turns[0].citations) == (first.answer, first.citations)
    # The next question finds the conversation whole.
    again = await answer(agent_over(database, chat()), principal, QUESTION, session_id=session.id)
    assert again.answer == first.answer
    return last, [turn.question for turn in turns]


@pytest.mark.threat(112)
@pytest.mark.parametrize("reply", ["", "   ", "Error: context length exceeded", "error", "<think>hm"])
async def test_a_follow_up_that_was_made_to_nothing_is_asked_with_the_question_before_it(
    handbook: Database, principal: Principal, reply: str
) -> None:
    model = chat_that_condenses_to(reply)
    last, questions = await after(handbook, principal, model)
    assert any("Follow-up:" in call.messages[-1].content for call in model.calls)
    assert isinstance(last, Answered | Refused), last
    assert questions == [QUESTION, FOLLOW_UP]
    assert QUESTION.rstrip("?") in last.answer.standalone_question
    assert FOLLOW_UP in last.answer.standalone_question
    assert "Error" not in last.answer.answer


@pytest.mark.threat(112)
async def test_where_the_model_fails_the_run_ends_cleanly(handbook: Database, principal: Principal) -> None:
    last, questions = await after(handbook, principal, chat_that_condenses_to(ModelUnavailable()))
    assert isinstance(last, Failed)
    assert last.code == ModelUnavailable.code
    assert questions == [QUESTION]
