"""The search bench writes into the tables what ingest would have written."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from storage import lexical
from tests.bench.search import corpus
from tests.bench.search.likeness import compared
from tests.bench.search.pool import NEIGHBOURS, Bags, Pool, nearest
from tests.bench.search.reference import _top, recall

ENGLISH = ("Travel costs are paid by the office.", "Form 1164 is due in ten days.", "A lost laptop is told to IT-12.")
CHINESE = ("出差费用由办公室支付。", "报销单应在十天之内提交。", "丢失的电脑见差旅-03。")
TITLES = ("Travel policy", "差旅制度")
CENTRES = np.eye(4, 8, dtype=np.float32)


def _pool() -> Pool:
    sentences = [*ENGLISH * 4, *CHINESE * 4]
    headings = [("Costs",), ("费用",)]
    return Pool(
        sentences=sentences,
        bags=Bags.of(lexical.fields(one, "", ()).text for one in sentences),
        titles=TITLES,
        title_bags=Bags.of(lexical.fields("", title, ()).title for title in TITLES),
        headings=headings,
        heading_starts=np.array([0, 1, 2]),
        heading_bags=Bags.of(lexical.fields("", "", path).headings for path in headings),
        page_of=np.array([0, 0, 1, 1]),
        first=np.array([0, 3, 12, 15]),
        last=np.array([3, 6, 15, 18]),
        centres=CENTRES,
        neighbours=nearest(CENTRES),
        english_sentences=12,
        english_centres=2,
        questions={"en": [], "zh": []},
    )


def test_words_of_a_chunk_are_those_of_its_text() -> None:
    pool = _pool()
    made = corpus._make(pool, 300, 10)
    assert len(made) == 300
    for chunk in range(0, 300, 7):
        title = pool.titles[made.doc_page[made.document[chunk]]]
        heading = pool.headings[made.heading[chunk]]
        wanted = lexical.vector(lexical.document_terms(made.text(pool, chunk), title, heading, made.averages))
        span = slice(made.term_starts[chunk], made.term_starts[chunk + 1])
        found = dict(zip(made.terms[span].tolist(), made.weights[span].tolist(), strict=True))
        assert found == pytest.approx(wanted, rel=1e-5)


def test_vectors_are_of_unit_length() -> None:
    made = corpus._make(_pool(), 100, 0)
    assert np.linalg.norm(made.vectors.astype(np.float32), axis=1) == pytest.approx(1, abs=1e-2)


def test_the_nearest_are_those_at_the_least_angle() -> None:
    turned = np.linspace(0, np.pi, 3 * NEIGHBOURS)
    found = nearest(np.stack([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32))
    assert set(found[0]) == set(range(1, NEIGHBOURS + 1))
    middle = len(turned) // 2
    assert set(found[middle]) == set(range(middle - NEIGHBOURS // 2, middle + NEIGHBOURS // 2 + 1)) - {middle}


def test_a_vector_lies_around_its_passage() -> None:
    vectors = corpus.surroundings(np.random.default_rng(1), CENTRES, nearest(CENTRES), np.arange(4).repeat(50))
    alike = vectors @ CENTRES.T
    assert (alike.argmax(axis=1) == np.arange(4).repeat(50)).all()
    assert 0.9 < np.median(alike.max(axis=1)) < 0.999


def test_vectors_of_as_many_dimensions_are_told_by_their_dimension() -> None:
    flat = np.zeros((4000, 32), np.float32)
    flat[:, :6] = np.random.default_rng(1).standard_normal((4000, 6))
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    pool, made = replace(_pool(), centres=flat[100:]), corpus._make(_pool(), 100, 0)
    seen = compared(pool, replace(made, vectors=flat[100:].astype(np.float16)), flat[:100])
    assert seen["passages"]["dimension"] == pytest.approx(5, abs=1)
    assert seen["corpus"]["distance_1"] == pytest.approx(seen["passages"]["distance_1"], abs=0.01)


def test_the_same_seed_gives_the_same_corpus() -> None:
    first, second = (corpus._make(_pool(), 100, 5) for _ in range(2))
    assert np.array_equal(first.terms, second.terms)
    assert np.array_equal(first.vectors, second.vectors)
    assert first.codes == second.codes


@pytest.mark.parametrize(
    ("found", "true", "share"),
    [([[1, 2]], [[1, 2]], 1.0), ([[1, 9]], [[1, 2]], 0.5), ([[1], [2]], [[1], []], 1.0), ([[]], [[4]], 0.0)],
)
def test_recall(found: Sequence[Sequence[int]], true: Sequence[Sequence[int]], share: float) -> None:
    assert recall(found, true) == share


def test_of_those_that_score_the_same_the_first_are_the_truth() -> None:
    assert _top(np.array([1.0, 3.0, 2.0, 3.0, 2.0, 2.0]), 4) == [(1, 3.0), (3, 3.0), (2, 2.0), (4, 2.0)]
    assert _top(np.array([1.0, 3.0]), 4) == [(1, 3.0), (0, 1.0)]
