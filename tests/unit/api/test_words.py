"""The words of the page: both languages say the same things, and Chinese has its own for what the server says."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from api.routes.pages import WEB
from core.errors import IngestError, SyncRefused

# In English the server's own sentences serve.
BY_CODE = ("reason_", "warning_")
ROOT = WEB.parent.parent


def words(language: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((WEB / "words" / f"{language}.json").read_text(encoding="utf-8"))
    return found


def sources() -> str:
    files = [*(WEB / "static").glob("*.js"), *(WEB / "templates").glob("*.html")]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def test_both_languages_have_the_same_keys() -> None:
    chinese = {key for key in words("zh") if not key.startswith(BY_CODE)}
    assert chinese == words("en").keys()


def test_both_languages_fill_in_the_same() -> None:
    english, chinese = words("en"), words("zh")
    for key, text in english.items():
        if not key.endswith("_one"):
            assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", chinese[key])), key


def test_every_word_that_a_page_asks_for_is_there() -> None:
    asked = set(re.findall(r'words\.(\w+)|(?:say|tell)\("(\w+)"', sources()))
    assert {a or b for a, b in asked} <= words("en").keys()


def test_every_way_that_a_file_fails_is_told_in_chinese() -> None:
    # A sync is refused as a whole: no document carries that reason.
    codes = {
        kind.code for kind in subclasses(IngestError) if kind is not SyncRefused and kind.__module__ == "core.errors"
    }
    assert {f"reason_{code}" for code in codes} <= words("zh").keys()


def test_every_warning_is_told_in_chinese() -> None:
    ingest = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "ingest").glob("*.py"))
    codes = set(re.findall(r'(?:ParseWarning|warn)\(\s*(?:code=)?"(\w+)"', ingest))
    assert codes
    assert {f"warning_{code}" for code in codes} <= words("zh").keys()


def test_the_reference_lists_the_warnings_that_are_told() -> None:
    reference = (ROOT / "docs" / "reference" / "ingestion.md").read_text(encoding="utf-8")
    table = reference.partition("\n## Warnings\n")[2].partition("\n## ")[0]
    codes = re.findall(r"^\| `(\w+)` \|", table, re.M)
    assert {f"warning_{code}" for code in codes} == {key for key in words("zh") if key.startswith("warning_")}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_state_has_words(language: str) -> None:
    assert {"state_queued", "state_processing", "state_ready", "state_failed"} <= words(language).keys()
