import math

import pytest

from agent.language.tiers import Tier, contradicts, fitting, tier

LEAVE = [
    "Service: less than 2 years | Leave: 20 days",
    "Service: 2 years to less than 5 years | Leave: 22 days",
    "Service: 5 to 9 years | Leave: 25 days",
    "Service: 10 years of service and more | Leave: 28 days",
]
LEAVE_ZH = ["服务不满 2 年 | 20 个工作日", "服务满 2 年不满 5 年 | 22 个工作日", "服务满 10 年及以上 | 28 个工作日"]


@pytest.mark.parametrize(
    ("row", "unit", "expected"),
    [
        (LEAVE[0], "year", Tier(-math.inf, 2, True)),
        (LEAVE[1], "year", Tier(2, 5, True)),
        (LEAVE[2], "year", Tier(5, 9, False)),
        (LEAVE[3], "year", Tier(10, math.inf, True)),
        ("Up to EUR 1,000 (CNY 8,000)", "eur", Tier(-math.inf, 1000, False)),
        ("Above EUR 10,000 to EUR 50,000", "eur", Tier(10000, 50000, False)),
        (LEAVE_ZH[0], "year", Tier(-math.inf, 2, True)),
        (LEAVE_ZH[1], "year", Tier(2, 5, True)),
        (LEAVE_ZH[2], "year", Tier(10, math.inf, True)),
        ("Leave: 22 days", "day", None),
        ("no number", "year", None),
    ],
)
def test_the_range_of_a_row(row: str, unit: str, expected: Tier | None) -> None:
    assert tier(row, unit) == expected


@pytest.mark.parametrize(
    ("question", "rows", "expected"),
    [
        ("How many days after 3 years?", LEAVE, [LEAVE[1]]),
        ("How many days after 5 years?", LEAVE, [LEAVE[2]]),
        ("How many days after 12 years?", LEAVE, [LEAVE[3]]),
        ("我干满 12 年了，年假几天？", LEAVE_ZH, [LEAVE_ZH[2]]),
        ("Compare the days after 3 years and after 12 years.", LEAVE, [LEAVE[1], LEAVE[3]]),
        ("How many days do I get?", LEAVE, None),
        ("What is paid for 3 weeks?", LEAVE, None),
    ],
)
def test_the_rows_that_hold_the_askers_quantity(question: str, rows: list[str], expected: list[str] | None) -> None:
    assert fitting(rows, question) == expected


def test_a_number_from_another_tier_is_found_out() -> None:
    assert contradicts("You have 28 days.", LEAVE, "How many days after 3 years?")
    assert not contradicts("You have 22 days.", LEAVE, "How many days after 3 years?")
    assert contradicts("You have 28 days.", LEAVE[2:], "How many days after 3 years?")
    assert not contradicts("You have 28 days.", LEAVE, "How many days do I have?")
    assert not contradicts("You have 28 days.", LEAVE, "How many days after 3 years, and after 12 years?")
