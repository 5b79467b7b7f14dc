"""The parent section around a hit: as much of it as fits."""

import pytest

from storage.hits import section_around


@pytest.mark.parametrize(
    ("at", "limit", "expected"),
    [
        (1, 100, "aaaa\nbbbb\ncccc\ndddd"),
        (1, 9, "bbbb\ncccc"),
        (1, 14, "aaaa\nbbbb\ncccc"),
        (3, 9, "cccc\ndddd"),
        (0, 3, "aaaa"),
    ],
)
def test_neighbours_join_while_they_fit(at: int, limit: int, expected: str) -> None:
    assert section_around(at, ["aaaa", "bbbb", "cccc", "dddd"], limit) == expected


def test_a_neighbour_too_long_to_fit_does_not_stop_the_other_side() -> None:
    assert section_around(1, ["aa", "bb", "c" * 50], 10) == "aa\nbb"
