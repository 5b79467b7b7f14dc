import random
import string
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from agent.grounding.citations import (
    MAX_CITATIONS,
    Evidence,
    Numbering,
    defuse,
    delimited,
    mark,
    marks,
    quote,
    with_numbers,
    without_marks,
)
from tests.unit.agent.support import hit


def test_a_chunk_keeps_its_handle_and_requests_do_not_share_them() -> None:
    one, two = Evidence(), Evidence()
    first, again, other = one.add([hit("a")])[0], one.add([hit("a")])[0], two.add([hit("a")])[0]
    assert first == again
    assert first != other
    assert two.get(first) is None


def test_handles_are_unique_under_parallel_tools() -> None:
    evidence = Evidence()
    with ThreadPoolExecutor(8) as pool:
        batches = list(pool.map(lambda i: evidence.add([hit("a", chunk=n) for n in range(i % 5, 40)]), range(16)))
    assert len(evidence) == 40
    assert len({handle for batch in batches for handle in batch}) == 40


@pytest.mark.parametrize(
    "text",
    [
        "see [chunk:abc234] here",
        "[CHUNK : abc234]",
        "[chunk::abc234]",
        "[ chunk：abc234 ]",
        "chunk : : abc234",
        "[chunk:abc234, chunk:def567]",
    ],
)
def test_a_document_cannot_forge_a_mark(text: str) -> None:
    assert marks(defuse(text)) == []
    assert defuse(defuse(text)) == defuse(text)


def test_the_defuser_covers_whatever_the_parser_accepts() -> None:
    chance = random.Random(7)
    alphabet = "[]:： ,\nchunkCHUNK" + string.ascii_lowercase[:4] + "23"
    for _ in range(3000):
        text = "".join(chance.choices(alphabet, k=12)) + "[chunk" + "".join(chance.choices(alphabet, k=14)) + "]"
        once = defuse(text)
        assert marks(once) == []
        assert defuse(once) == once


def test_marks_are_read_in_order() -> None:
    assert marks("One [chunk:abc234]. Two [chunk: def567, chunk:abc234].") == ["abc234", "def567", "abc234"]


@pytest.mark.parametrize("forged", ["[1]", "【1】", "［２］", "[ 3, 4 ]", "[①]", "[source 1]", "[٣]", "[3[3[4]3]3]"])
def test_numbers_in_brackets_are_never_the_models(forged: str) -> None:
    assert without_marks(f"Seven days {forged}.") == "Seven days."


def test_numbers_go_by_first_appearance_and_unknown_handles_get_none() -> None:
    evidence = Evidence()
    a, b = evidence.add([hit("Seven days.", chunk=1), hit("Nine days.", chunk=2)])
    numbering = Numbering(evidence)
    assert [numbering.cite(b, "Nine days."), numbering.cite("zzzzzz", "x"), numbering.cite(a, "Seven days.")] == [
        1,
        None,
        2,
    ]
    assert numbering.cite(b, "Nine days.") == 1
    assert [citation.quote for citation in numbering.citations] == ["Nine days.", "Seven days."]


def test_at_most_twenty_are_cited() -> None:
    evidence = Evidence()
    numbering = Numbering(evidence)
    numbers = [numbering.cite(handle, "x") for handle in evidence.add([hit("x", chunk=n) for n in range(30)])]
    assert numbers == [*range(1, MAX_CITATIONS + 1), *[None] * 10]
    assert len(numbering.citations) == MAX_CITATIONS


def test_a_quote_is_always_a_part_of_the_passage() -> None:
    passage = "Trips need approval.\nCity: Berlin | Cap: EUR 140\nCity: London | Cap: GBP 165"
    chance = random.Random(3)
    for _ in range(1000):
        sentence = " ".join(chance.choices([*passage.split(), "London", "cap", "165"], k=6))
        assert quote(passage, sentence) in passage
    assert quote(passage, "The cap in London is GBP 165.") == "City: London | Cap: GBP 165"


def test_the_quote_holds_the_amount() -> None:
    passage = "休息日加班每月可调休，小时工资 200%\n每月累计加班不超过 36 小时"
    assert quote(passage, "一个月最多可以加班 36 小时。") == "每月累计加班不超过 36 小时"


@pytest.mark.parametrize(
    ("sentence", "numbers", "expected"),
    [
        ("Seven days.", [1], "Seven days [1]."),
        ("七天。", [1, 2], "七天[1][2]。"),
        ("Seven days", [3], "Seven days [3]"),
        ("Seven days.", [2, 2], "Seven days [2]."),
        ("Seven days.", [], "Seven days."),
    ],
)
def test_numbers_stand_before_the_full_stop(sentence: str, numbers: list[int], expected: str) -> None:
    assert with_numbers(sentence, numbers) == expected


def test_mark_and_marks_agree() -> None:
    evidence = Evidence()
    (handle,) = evidence.add([hit("x")])
    assert marks(f"text {mark(handle)}") == [handle]


@pytest.mark.threat(82)
def test_numbers_are_one_sequence_over_parallel_parts() -> None:
    whole = Evidence()
    numbering = Numbering(whole)
    hits = [hit(f"Rule {n}.", chunk=n) for n in range(MAX_CITATIONS)]
    gate = threading.Barrier(8)

    def part(start: int) -> list[tuple[int, int | None]]:
        branch = whole.branch()
        gate.wait()
        mine = [hits[(start * 3 + n) % len(hits)] for n in range(len(hits))]
        return [(one.chunk_id, numbering.cite(branch.add([one])[0], one.text)) for one in mine]

    with ThreadPoolExecutor(8) as pool:
        told = [pair for pairs in pool.map(part, range(8)) for pair in pairs]
    numbers = dict(told)
    assert len(set(told)) == len(numbers) == len(hits)
    assert sorted(n for n in numbers.values() if n is not None) == list(range(1, len(hits) + 1))
    assert {one.n: one.chunk_id for one in numbering.citations} == {n: chunk for chunk, n in numbers.items()}


def test_a_passage_ends_where_only_this_request_can_end_it() -> None:
    evidence = Evidence()
    (handle,) = evidence.add([hit("x")])
    assert marks(delimited(handle, "text")) == [handle]
    assert without_marks(f"Seven days [end:{handle}].") == "Seven days."
