"""An element that is taken out of the recipe is out of it for as long as that is measured, and no longer."""

import pytest

from storage import lexical, synonyms
from tests.evals import corpora, retrieval
from tests.evals.corpora import thinned

QUERY = "What does Form 1164 say about hotel rooms? 差旅住宿的标准是多少"


def test_each_element_of_a_query_is_taken_out_and_put_back() -> None:
    whole = lexical.query_weights(QUERY)
    left = {}
    for element, taken_out in retrieval.WORDS_WITHOUT.items():
        with taken_out():
            left[element] = lexical.query_weights(QUERY)
        assert lexical.query_weights(QUERY) == whole
    gone = {element: whole.keys() - terms.keys() for element, terms in left.items()}
    assert "hotel room" in gone["pairs of words"]
    # A code is no pair of words.
    assert "form-1164" in left["pairs of words"]
    assert {"住宿", "标准"} <= gone["pairs of Chinese characters"]
    assert {"住", "宿"} <= gone["single Chinese characters"]
    assert "住宿" in left["single Chinese characters"]
    assert gone["numbers and codes twice"] == set()
    assert (whole["1164"], left["numbers and codes twice"]["1164"]) == (2, 1)
    assert {"what", "about"} <= left["function words dropped"].keys() - whole.keys()


def test_what_a_synonym_counts_is_among_what_is_measured() -> None:
    assert lexical.SYNONYM in retrieval.WEIGHTS


@pytest.mark.parametrize("domain", ["office", "software"])
def test_the_synonyms_of_a_set_can_all_be_added(domain: str) -> None:
    groups = corpora.synonyms(domain)
    assert len(groups) == 50
    for words in groups:
        synonyms.check(words)


def test_no_more_questions_are_asked_than_said() -> None:
    for total, most in ((10, 10), (10, 3), (11, 5), (1, 300)):
        left = thinned(range(total), most)
        assert 0 < len(left) <= most
        assert left[0] == 0
