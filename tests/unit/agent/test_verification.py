"""Each sentence of an answer gets the passages that say it, or none."""

from collections.abc import Sequence

import numpy as np
import pytest

from agent.grounding.citations import Evidence, mark
from agent.grounding.verification import MEANING, MOST_JUDGED, Verified, Verifier
from agent.models.metered import MeteredChat
from agent.models.trace import Trace
from core.errors import ModelUnavailable
from core.records import Hit
from inference.interfaces import Embedder, Vectors
from tests.fakes.chat import CAPABLE, SMALL, ScriptedChat
from tests.fakes.embedder import FakeEmbedder
from tests.unit.agent.support import hit

CAP = hit("The hotel cap in Shanghai is CNY 550 per night.", chunk=1)
MEAL = hit("The meal allowance in Berlin is EUR 45 per day.", chunk=2)
TRAIN = hit("Second class is booked for trains.", chunk=3)
FEES = hit("Visa fees are refunded within 14 days.", chunk=4)
PASS = hit("签证费在 14 天内报销。", chunk=5, title="差旅管理办法")
ALL = (TRAIN, MEAL, FEES, CAP)


async def verified(
    sentence: str,
    hits: Sequence[Hit] = ALL,
    *,
    named: Sequence[Hit] = (),
    question: str = "What is paid?",
    shown: int = 5,
    embedder: Embedder | None = None,
    judge: ScriptedChat | None = None,
) -> tuple[Verified, list[Hit], Trace]:
    """What becomes of a sentence whose marks name some of the hits, and the hits that it is given."""
    evidence, trace = Evidence(), Trace()
    handles = evidence.add(hits)
    marked = " ".join([sentence, *(mark(evidence.add([one])[0]) for one in named)])
    verifier = Verifier(evidence, embedder, MeteredChat(judge, 60) if judge else None, trace)
    found = await verifier.verify(marked, question, handles[:shown])
    return found, evidence.hits(found.handles), trace


async def test_what_the_mark_names_is_cited_where_it_says_so() -> None:
    found, hits, trace = await verified("The hotel cap in Shanghai is CNY 550 per night.", named=[CAP])
    assert (hits, found.fault) == ([CAP], None)
    (step,) = trace.steps
    assert (step.kind, step.data["chunks"], step.data["fault"]) == ("verify", [1], None)


async def test_a_wrong_mark_is_put_right() -> None:
    _, hits, _ = await verified("The hotel cap in Shanghai is CNY 550 per night.", named=[MEAL])
    assert hits == [CAP]


async def test_without_a_mark_all_evidence_is_searched_whatever_its_rank() -> None:
    _, hits, _ = await verified("The hotel cap in Shanghai is CNY 550 per night.", shown=1)
    assert hits == [CAP]


async def test_a_passage_in_the_other_language_is_found() -> None:
    _, hits, _ = await verified("Visa fees are refunded within 14 days.", (TRAIN, MEAL, PASS))
    assert hits == [PASS]
    found, _, _ = await verified("Visa fees are refunded within 15 days.", (TRAIN, MEAL, PASS))
    assert found.handles == ()


async def test_a_sentence_of_two_passages_gets_both() -> None:
    sentence = "The hotel cap in Shanghai is CNY 550 per night, and the meal allowance in Berlin is EUR 45 per day."
    _, hits, _ = await verified(sentence)
    assert hits == [CAP, MEAL]
    _, hits, _ = await verified("The caps are CNY 550 in Shanghai with meals of EUR 45 in Berlin.", (CAP, MEAL, TRAIN))
    assert {one.chunk_id for one in hits} == {1, 2}


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("The hotel cap in Shanghai is CNY 560 per night.", "number"),
        ("The hotel cap in Shanghai is EUR 550 per night.", "unit"),
        ("The hotel cap in Beijing is CNY 550 per night.", "name"),
        ("The hotel cap in Shanghai is not CNY 550 per night.", "negation"),
        ("The hotel cap in Shanghai is CNY 550 per night, and lunch is free for each visitor.", "words"),
        ("The passages do not specify the cap.", "refusal"),
    ],
)
async def test_what_nothing_says_is_not_cited(sentence: str, fault: str) -> None:
    found, hits, trace = await verified(sentence, (CAP,))
    assert (hits, found.fault) == ([], fault)
    assert trace.steps[-1].data["fault"] == fault


class Measured(FakeEmbedder):
    """An embedder whose cosines are what a test says, under the name of one that was measured."""

    def __init__(self, near: float) -> None:
        super().__init__("embedded:multilingual-e5-small:1", 2)
        self.near = near

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return np.tile(np.array([self.near, 0], np.float32), (len(texts), 1))

    async def embed_query(self, text: str) -> Vectors:
        return np.array([1, 0], np.float32)


LEAST, SURE = MEANING["embedded:multilingual-e5-small:1", "en", "en"]


async def test_what_is_far_in_meaning_is_not_cited() -> None:
    found, _, _ = await verified("Second class is booked for trains.", embedder=Measured(LEAST - 0.01))
    assert found.fault == "meaning"
    found, _, _ = await verified("Second class is booked for trains.", embedder=Measured(SURE + 0.01))
    assert found.handles


async def test_other_words_pass_where_the_meaning_is_sure() -> None:
    reworded = "Railway journeys go by second class seats, never first."
    assert not (await verified("Railway trips happen in the second class only.", (TRAIN,)))[0].handles
    found, _, _ = await verified(
        "Railway trips happen in the second class only.", (TRAIN,), embedder=Measured(SURE + 0.01)
    )
    assert found.handles
    assert not (await verified(reworded, (TRAIN,), embedder=Measured(LEAST)))[0].handles


@pytest.mark.parametrize(("reply", "cited"), [('{"supported": true}', True), ('{"supported": false}', False)])
async def test_what_is_in_doubt_the_judging_model_decides(reply: str, cited: bool) -> None:
    judge = ScriptedChat([reply], traits=CAPABLE)
    found, _, _ = await verified("Second class is booked for trains.", embedder=Measured(LEAST), judge=judge)
    assert bool(found.handles) is cited
    assert judge.calls[0].options["schema"] is not None


LEAST_ACROSS, SURE_ACROSS = MEANING["embedded:multilingual-e5-small:1", "zh", "en"]


@pytest.mark.parametrize(
    ("near", "reply", "cited"),
    [
        (LEAST_ACROSS, '{"supported": true}', True),
        (LEAST_ACROSS, '{"supported": false}', False),
        (LEAST_ACROSS, "I cannot say.", False),
        (LEAST_ACROSS, None, False),
        (LEAST_ACROSS - 0.01, '{"supported": true}', False),
        (SURE_ACROSS, None, True),
    ],
)
async def test_across_languages_a_middling_meaning_is_for_the_judging_model(
    near: float, reply: str | None, cited: bool
) -> None:
    judge = None if reply is None else ScriptedChat(lambda _: reply, traits=CAPABLE)
    found, _, _ = await verified("火车只订二等座。", (TRAIN,), embedder=Measured(near), judge=judge)
    assert bool(found.handles) is cited
    assert (found.fault is None) is cited


async def test_only_so_many_sentences_are_judged() -> None:
    judge = ScriptedChat(['{"supported": true}'] * MOST_JUDGED, traits=CAPABLE)
    evidence = Evidence()
    handles = evidence.add([TRAIN])
    verifier = Verifier(evidence, Measured(LEAST_ACROSS), MeteredChat(judge, 60))
    told = [await verifier.verify("火车只订二等座。", "?", handles) for _ in range(MOST_JUDGED + 1)]
    assert [bool(one.handles) for one in told] == [True] * MOST_JUDGED + [False]


async def test_a_small_model_judges_nothing_and_a_sure_sentence_needs_no_judge() -> None:
    for near, traits in ((LEAST, SMALL), (SURE + 0.01, CAPABLE)):
        judge = ScriptedChat(traits=traits)
        found, _, _ = await verified("Second class is booked for trains.", embedder=Measured(near), judge=judge)
        assert found.handles
        assert judge.calls == []


async def test_an_embedder_that_fails_leaves_the_rules() -> None:
    class Failing(FakeEmbedder):
        async def embed_query(self, text: str) -> Vectors:
            raise ModelUnavailable

    _, hits, _ = await verified("Second class is booked for trains.", embedder=Failing())
    assert hits == [TRAIN]


async def test_a_tier_of_another_row_is_not_cited() -> None:
    rows = hit("Service: 2 to 4 years | Leave: 22 days\nService: 5 to 9 years | Leave: 25 days", kind="table")
    question = "How many days of leave do I have after 3 years?"
    assert (await verified("You have 22 days of leave.", (rows,), question=question))[0].handles
    assert (await verified("You have 25 days of leave.", (rows,), question=question))[0].fault == "row"
