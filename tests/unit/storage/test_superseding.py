"""Which document takes the place of which: chains, circles, several that are meant, several that speak."""

from datetime import date
from uuid import UUID

from storage.superseding import Standing, heirs, resolve

A, B, C, D = (UUID(int=number) for number in range(1, 5))


def says(id: UUID, year: int, supersedes: str | None = "something", **more: bool | UUID | None) -> Standing:
    return Standing(id, supersedes, date(year, 1, 1), **more)  # type: ignore[arg-type]


def test_a_chain_is_followed_step_by_step() -> None:
    standings = {A: says(A, 2020, None), B: says(B, 2021), C: says(C, 2022)}
    links, faults = resolve(standings.values(), {B: [A], C: [B]})
    assert (links, faults) == ({B: A, C: B}, {})
    found = heirs(standings, links)
    assert {older: (newer.id, newer.since) for older, newer in found.items()} == {
        A: (B, date(2021, 1, 1)),
        B: (C, date(2022, 1, 1)),
    }


def test_what_is_not_known_or_not_clear_hides_nothing() -> None:
    links, faults = resolve([says(A, 2020), says(B, 2021)], {B: [C, D]})
    assert (links, faults) == ({}, {A: "unknown", B: "ambiguous"})


def test_of_a_circle_the_oldest_word_gives_way() -> None:
    standings = [says(A, 2020), says(B, 2021), says(C, 2022)]
    links, faults = resolve(standings, {A: [C], B: [A], C: [B]})
    assert (links, faults) == ({B: A, C: B}, {A: "circular"})
    # Whichever comes first.
    assert resolve(reversed(standings), {A: [C], B: [A], C: [B]}) == (links, faults)  # type: ignore[arg-type]


def test_the_first_of_several_counts() -> None:
    standings = {A: says(A, 2020, None), B: says(B, 2022), C: says(C, 2021)}
    found = heirs(standings, {B: A, C: A})
    assert found[A].id == C


def test_what_is_under_way_keeps_hiding_and_does_not_begin_to() -> None:
    reading = says(B, 2021, ready=False)
    assert not reading.hides(says(A, 2020, None))
    assert reading.hides(says(A, 2020, None, superseded_by=B))


def test_what_nobody_can_find_hides_nothing() -> None:
    assert not says(B, 2021, found=False).hides(says(A, 2020, None, superseded_by=B))
