"""`search` narrowed and explained, and `synonyms`, against a real database."""

import io
import json
import sys
from pathlib import Path

import pytest

from tests.integration.cli.conftest import Terminal

LEAVE = "# Annual leave\n\nEvery employee has 25 days of annual leave.\n"
REST = "# 休假\n\n每位员工每年享有二十五天年假，入职满一年后开始计算。\n"


@pytest.fixture
async def terminal(terminal: Terminal, tmp_path: Path) -> Terminal:
    """With two documents ingested."""
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "leave.md").write_text(LEAVE)
    (folder / "rest.txt").write_text(REST)
    await terminal("ingest", str(folder))
    return terminal


async def paths(terminal: Terminal, *options: str) -> list[str]:
    said = await terminal("search", "annual leave", "--json", *options)
    assert said.code == 0, said.err
    return sorted(hit["document"] for hit in json.loads(said.out)["hits"])


async def test_a_search_is_narrowed_by_options(terminal: Terminal) -> None:
    assert await paths(terminal) == ["handbook/leave.md", "handbook/rest.txt"]
    for options in (["--document", "leave.md"], ["--language", "en"], ["--type", "md"]):
        assert await paths(terminal, *options) == ["handbook/leave.md"], options
    assert await paths(terminal, "--type", "pdf", "--type", ".TXT") == ["handbook/rest.txt"]
    assert await paths(terminal, "--as-group", "strangers") == ["handbook/leave.md", "handbook/rest.txt"]
    for options, why in (
        (["--document", "gone.md"], "no document 'gone.md'"),
        (["--language", "fr"], "Write en or zh"),
        (["--type", "exe"], "ending of its name"),
    ):
        said = await terminal("search", "annual leave", *options)
        assert said.code == 1
        assert why in said.err


async def test_a_search_is_explained(terminal: Terminal) -> None:
    await terminal("synonyms", "add", "年假", "annual leave")
    said = await terminal("search", "年假有几天", "--explain", "--no-rerank", "-n", "2")
    assert said.code == 0, said.err
    for words in (
        "Rights and filters leave 2 documents with 2 chunks: in force on 20",
        "年假: looked for annual leave as well.",
        "By meaning, compared one by one\nRank",
        "By words\nRank",
        "synonym",
        "handbook/rest.txt",
        "年假*，",
        "fused 1.00",
        "(rank 1)",
    ):
        assert words in said.out
    shown = json.loads((await terminal("search", "年假有几天", "--explain", "--no-rerank", "--json")).out)
    assert shown["synonyms"] == {"年假": ["annual leave"]}
    assert {listed["title"] for listed in shown["lexical"]} == {"Annual leave", "休假"}


async def test_an_explanation_names_what_it_was_narrowed_to(terminal: Terminal) -> None:
    narrowed = ("--document", "leave.md", "--language", "en", "--type", "md", "--as-of", "2026-02-28")
    said = await terminal("search", "annual leave", "--explain", "--no-rerank", *narrowed)
    assert said.code == 0, said.err
    assert said.out.startswith("Rights and filters leave 1 document with 1 chunk: document ")
    assert ", language en, type text/markdown, in force on 2026-02-28.\n" in said.out
    none = await terminal("search", "annual leave", "--explain", "--no-rerank", "--type", "pdf")
    assert "By words\nNothing in this list.\n" in none.out
    assert none.out.endswith("Nothing found.\n")


async def test_a_query_without_terms_is_explained(terminal: Terminal) -> None:
    said = await terminal("search", "what is the", "--explain", "--no-rerank")
    assert said.code == 0, said.err
    assert "every word of the query is left out" in said.out


async def test_synonyms_are_added_listed_and_removed(terminal: Terminal) -> None:
    assert "none yet" in (await terminal("synonyms", "list")).err
    assert (await terminal("synonyms", "add", "gear", "kit", "equipment")).out == "equipment = gear = kit\n"
    assert (await terminal("synonyms", "remove", "kits")).out == "removed kits\n"
    assert (await terminal("synonyms", "list")).out == "equipment = gear\n"
    assert json.loads((await terminal("synonyms", "list", "--json")).out)["synonyms"][0]["words"] == [
        "equipment",
        "gear",
    ]
    assert (await terminal("synonyms", "remove", "gear", "--group")).out == "removed equipment = gear\n"
    gone = await terminal("synonyms", "remove", "gear")
    assert (gone.code, gone.err.startswith("error: 'gear' has no synonyms")) == (1, True)


async def test_synonyms_come_from_a_file_and_go_back_into_one(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "words.csv"
    file.write_text('\ufeff# ours\nannual leave, PTO,年假\n\n"gear, heavy",equipment\n', encoding="utf-8")
    assert (await terminal("synonyms", "import", str(file))).out == "added 2 groups\n"
    exported = (await terminal("synonyms", "export")).out
    assert exported == 'annual leave,PTO,年假\nequipment,"gear, heavy"\n'
    monkeypatch.setattr(sys, "stdin", io.StringIO(exported))
    assert (await terminal("synonyms", "import", "-")).out == "added 2 groups\n"
    assert (await terminal("synonyms", "export")).out == exported


async def test_a_file_that_cannot_be_used_adds_nothing(terminal: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "words.csv"
    for content, why in (
        (b"gear,kit\nalone\n", "words.csv, line 2: Give at least two words"),
        (b"gear,kit\n\nkit,the\n", "words.csv, line 3: 'the' is left out of every search"),
        (b"\xff\xfe", "not text in UTF-8"),
        (None, "No such file"),
    ):
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(content)
        said = await terminal("synonyms", "import", str(file))
        assert (said.code, why in said.err) == (1, True), said.err
    assert (await terminal("synonyms", "list")).out == ""
