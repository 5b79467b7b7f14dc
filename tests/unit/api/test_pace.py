"""How long it will still take."""

import pytest

from api.pace import SPAN, Pace


def test_nothing_is_known_before_anything_was_done() -> None:
    pace = Pace()
    assert pace.seconds_for(10) is None
    pace.note(5.0, 0)
    assert pace.seconds_for(10) is None


def test_nothing_left_takes_no_time() -> None:
    assert Pace().seconds_for(0) == 0.0


def test_an_even_pace_goes_on() -> None:
    pace = Pace()
    for _ in range(100):
        pace.note(1.0, 8)
    assert pace.seconds_for(80) == pytest.approx(10.0)


def test_what_was_lately_counts_for_more() -> None:
    pace = Pace()
    for _ in range(round(10 * SPAN)):
        pace.note(1.0, 1)
    for _ in range(round(5 * SPAN)):
        pace.note(1.0, 4)
    assert pace.seconds_for(100) == pytest.approx(25.0, rel=0.05)
