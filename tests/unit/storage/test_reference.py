"""The page on storage names every table there is."""

import re

from storage import migrations
from tests.paths import PROJECT


def test_every_table_is_described() -> None:
    page = (PROJECT / "docs" / "reference" / "storage.md").read_text(encoding="utf-8")
    made = {
        table
        for migration in migrations.known()
        for table in re.findall(r"^CREATE TABLE (?:intramuros\.)?(\w+)", migration.text, re.MULTILINE)
    }
    assert "documents" in made
    assert {table for table in made if f"`{table}`" not in page} == set()
