"""Rows that can be read alone."""

import pytest

from ingest.tables import leading_header_rows, table_text

TIERS = [["City", "Grade", "Cap"], ["Berlin", "A", "180 EUR"], ["Shanghai", "", "550 CNY"]]


def test_rows_name_their_columns_and_leave_out_empty_cells() -> None:
    assert table_text(TIERS).splitlines() == [
        "City: Berlin | Grade: A | Cap: 180 EUR",
        "City: Shanghai | Cap: 550 CNY",
    ]


def test_two_header_rows_are_joined() -> None:
    rows = [["City", "Cap", "Cap"], ["City", "low", "high"], ["Berlin", "100", "180"]]
    assert table_text(rows, header_rows=2) == "City: Berlin | Cap / low: 100 | Cap / high: 180"


@pytest.mark.parametrize(
    "rows",
    [
        [["Name", "Ada"], ["Office", "Berlin"], ["Role", "Lead"]],
        [["1", "2", "3"], ["4", "5", "6"]],
        [["a", "a", "b"], ["1", "2", "3"]],
    ],
    ids=["names and values side by side", "numbers", "a name twice"],
)
def test_a_first_row_that_names_nothing_is_a_row(rows: list[list[str]]) -> None:
    assert table_text(rows).splitlines()[0] == " | ".join(rows[0])


def test_two_columns_with_values_have_names() -> None:
    assert table_text([["Destination", "Allowance"], ["Berlin", "42 EUR"], ["London", "45 GBP"]]).startswith(
        "Destination: Berlin | Allowance: 42 EUR"
    )


def test_csv_custom_makes_the_first_row_names() -> None:
    assert table_text([["a", "b"], ["x", "y"]], named=True) == "a: x | b: y"
    assert table_text([["a", "b"], ["x", "y"]]) == "a | b\nx | y"


def test_captions_stand_above_the_names() -> None:
    assert table_text([["Caps", "Caps", "Caps"], *TIERS]).splitlines()[:2] == [
        "Caps",
        "City: Berlin | Grade: A | Cap: 180 EUR",
    ]


def test_empty_rows_columns_and_tables() -> None:
    assert table_text([["", ""], ["", ""]]) == ""
    assert table_text([]) == ""
    assert table_text([["a", "", "b"], ["1", "", "2"]], header_rows=1) == "a: 1 | b: 2"


def test_a_header_without_rows_is_kept() -> None:
    assert table_text([["Name", "Title"]], header_rows=1) == "Name | Title"


def test_only_rows_of_header_cells_count() -> None:
    assert leading_header_rows([["th", "th"], ["th", "td"]]) == 1
    assert leading_header_rows([["th", "td"], ["th", "td"]]) is None
