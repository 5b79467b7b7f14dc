"""Which of all that was found is answered from, and what is looked at once more before a question is given up."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from core.records import Hit, Outcome
from core.settings import Settings
from tests.fakes.chat import CAPABLE, SMALL, ScriptedChat, tool_call
from tests.unit.agent.support import events_of, hit, make_run
from tests.unit.agent.test_researching import CAP, CAP_QUESTION, LUNCH, capable, deciding, graded, kinds


def lunches(first: int, *others: Hit) -> list[Hit]:
    """Seven hits that answer nothing, and these in front of the last."""
    made = [hit(f"Lunch {n} is at noon.", title=f"Canteen {n}", chunk=n) for n in range(first, first + 7)]
    return [*made[:-1], *others, made[-1]]


async def test_what_the_model_names_in_the_end_comes_before_what_else_was_found() -> None:
    searches = {CAP_QUESTION: lunches(10), "ceiling": [*lunches(20)[:3], CAP], "rate": lunches(30)}
    words = iter(["ceiling", "rate"])

    def turn(messages: Sequence[Any]) -> AIMessage:
        query = next(words, None)
        if query is not None:
            return tool_call("kb_search", query=query)
        shown = "\n".join(str(message.content) for message in messages)
        return AIMessage(f"DONE {shown[: shown.index(CAP.text)].splitlines()[-2]} [chunk:zzzzzz]")

    run = make_run(capable(turns=turn), searches, CAP_QUESTION, mode="agent")
    await events_of(run)
    assert [one.chunk_id for one in run.evidence.hits(run.named)] == [CAP.chunk_id]
    assert run.tasks[0].handles[:1] == run.named
    assert run.answer is not None
    assert run.answer.citations[0].chunk_id == CAP.chunk_id
    assert kinds(run, "grade") == []


async def test_before_it_gives_up_each_search_is_judged_by_itself() -> None:
    searches = {CAP_QUESTION: lunches(10, CAP), "ceiling": lunches(20)}
    turns = [tool_call("kb_search", query="ceiling"), AIMessage("DONE")]
    run = make_run(capable(turns=turns, verdict="cannot"), searches, CAP_QUESTION, mode="agent")
    await events_of(run)
    assert [step["passed"] for step in kinds(run, "grade")] == [False, False, True]
    assert run.answer is not None
    assert (run.answer.verdict, run.answer.missing) == ("answer", ())
    assert run.answer.citations[0].chunk_id == CAP.chunk_id


async def test_before_it_gives_up_the_question_is_asked_of_the_document_that_was_found() -> None:
    cover = hit("The travel policy is in force from May.", chunk=5)
    searches = {CAP_QUESTION: [LUNCH], "travel policy": [cover, LUNCH], "unfound": [CAP]}
    turns = [tool_call("kb_search", query="travel policy"), AIMessage("DONE")]
    run = make_run(capable(turns=turns, verdict="cannot"), searches, CAP_QUESTION, mode="agent")
    await events_of(run)
    assert run.answer is not None
    assert CAP.chunk_id in {citation.chunk_id for citation in run.answer.citations}


@pytest.mark.parametrize(("traits", "found"), [(CAPABLE, True), (SMALL, False)])
async def test_other_words_find_the_document_and_the_question_the_place_in_it(traits: Any, found: bool) -> None:
    cover = hit("The travel policy is in force from May.", chunk=5)
    searches = {CAP_QUESTION: [LUNCH], "travel policy": [cover], "unfound": [CAP]}
    reply = deciding()
    chat = ScriptedChat(
        lambda messages: "travel policy" if "search query" in messages[0].content else reply(messages),
        first_tokens=graded,
        traits=traits,
    )
    run = make_run(chat, searches, CAP_QUESTION, mode="quick", settings=Settings.load(max_rewrites=1))
    await events_of(run)
    assert run.answer is not None
    assert (run.answer.outcome is Outcome.ANSWERED) is found
    assert run.searched == [CAP_QUESTION, "travel policy"]
