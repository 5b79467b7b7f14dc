"""Near-duplicates: what counts as one, and how many stay."""

from uuid import UUID

import pytest

from agent.sources.duplicates import capped
from core.records import Hit
from tests.unit.agent.support import hit

CAP = "The hotel cap in Berlin is EUR 140 per night, breakfast and local taxes included, for every grade."


def hits(*texts: tuple[int, str]) -> list[Hit]:
    return [
        hit(text, chunk=number, document_id=UUID(int=document))
        for number, (document, text) in enumerate(texts, start=1)
    ]


def kept(*texts: tuple[int, str]) -> list[int]:
    return [found.chunk_id for found in capped(hits(*texts))]


def test_a_document_says_a_thing_once() -> None:
    assert kept((1, CAP), (1, CAP), (1, "Another matter altogether."), (1, CAP)) == [1, 3]


def test_a_counter_or_another_case_does_not_make_it_new() -> None:
    assert kept((1, f"Copy 1. {CAP}"), (1, f"Copy 2. {CAP}"), (1, CAP.upper())) == [1]


def test_copies_in_other_documents_stay_but_not_all() -> None:
    assert kept(*((document, CAP) for document in range(1, 7))) == [1, 2, 3]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (CAP, CAP.replace("Berlin is EUR 140", "Shanghai is CNY 550").replace("breakfast", "without breakfast")),
        ("差旅-03 住宿标准：上海每晚550元。", "差旅-04 餐费标准：每人每天100元。"),
        ("", "!"),
    ],
)
def test_what_says_something_else_stays(one: str, other: str) -> None:
    assert kept((1, one), (1, other)) == ([1, 2] if one else [1])
