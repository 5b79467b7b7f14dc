"""The table of threats in SECURITY.md is what the marks on the tests say, and no row is left without a word."""

from tests import threats

FOUND = threats.marked()


def test_every_row_has_a_test_or_a_reason_and_not_both() -> None:
    assert set(threats.ROWS) - set(FOUND) - set(threats.UNCOVERED) == set()
    assert set(FOUND) & set(threats.UNCOVERED) == set()


def test_no_mark_names_a_row_that_is_not_there() -> None:
    assert set(FOUND) | set(threats.UNCOVERED) <= set(threats.ROWS)


def test_the_table_is_the_one_in_the_document() -> None:
    text = threats.SECURITY.read_text()
    assert text == threats.written(text, threats.table(FOUND)), "run: .venv/bin/python -m deploy.threat_table"
