"""Which answers may be given again: whole ones, sure of themselves, from documents that nobody has to approve."""

from dataclasses import replace

import pytest

from agent.workflow.recalling import whole
from agent.workflow.run import Run
from core.records import Answer, Outcome
from tests.fakes.chat import ScriptedChat
from tests.unit.agent.support import SURE, events_of, hit, make_run

CAP = hit("The hotel cap in Shanghai is CNY 550 per night.")


async def answered() -> tuple[Run, Answer]:
    run = make_run(ScriptedChat([CAP.text], first_tokens=[SURE]), [CAP])
    await events_of(run)
    assert run.answer is not None
    return run, run.answer


async def test_a_whole_answer_is_kept() -> None:
    run, answer = await answered()
    assert whole(run, answer)


async def test_what_cites_a_collection_that_somebody_approves_is_not() -> None:
    run, answer = await answered()
    run.approvals = frozenset({"handbook"})
    assert not whole(run, answer)
    run.approvals = frozenset({"another"})
    assert whole(run, answer)


@pytest.mark.parametrize(
    "fields",
    [
        {"outcome": Outcome.REFUSED},
        {"outcome": Outcome.INCOMPLETE},
        {"verdict": "caveat"},
        {"missing": ("the rest",)},
        {"notice": "Something is missing."},
        {"citations": ()},
    ],
)
async def test_what_is_not_whole_is_not(fields: dict[str, object]) -> None:
    run, answer = await answered()
    assert not whole(run, replace(answer, **fields))  # type: ignore[arg-type]


async def test_what_a_peer_said_is_not() -> None:
    run, answer = await answered()
    cited = tuple(replace(citation, origin="peer") for citation in answer.citations)
    assert not whole(run, replace(answer, citations=cited))


async def test_what_a_limit_cut_short_is_not() -> None:
    run, answer = await answered()
    run.limit = "out_of_calls"
    assert not whole(run, answer)
