"""The page on storage names every table there is."""

import re

from storage import migrations
from tests.paths import PROJECT


def test_every_table_is_described() -> None:
    page = (PROJECT / "docs" / "reference" / "storage.md").read_text(encoding="utf-8")
    texts = [migration.text for migration in migrations.known()]
    made = {
        table for text in texts for table in re.findall(r"^CREATE TABLE (?:intramuros\.)?(\w+)", text, re.MULTILINE)
    }
    made -= {table for text in texts for table in re.findall(r"^DROP TABLE (\w+)", text, re.MULTILINE)}
    assert "documents" in made
    assert {table for table in made if f"`{table}`" not in page} == set()
