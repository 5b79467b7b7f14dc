"""`reembed`: from the first vector of another model to the last of the old one."""

import json
from pathlib import Path
from typing import Any

import pytest

from api.cli import doctor
from api.cli.checks import Check
from core.records import Tenant
from storage import embedding_sets, tenants
from storage.database import Database
from tests.integration.cli.conftest import Said, Terminal

OLD, NEW = "fake:bag-64:1", "ollama:new:1"
TEXTS = {"leave.md": "# Leave\n\nThirty kangaroo days a year.\n", "hotel.md": "# Hotels\n\nThe cap is CNY 550.\n"}


@pytest.fixture
async def terminal(terminal: Terminal, tmp_path: Path) -> Terminal:
    """With two documents ingested."""
    folder = tmp_path / "handbook"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    await terminal("ingest", str(folder))
    return terminal


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    rows = [{"question": "kangaroo days", "document": "leave.md"}, {"question": "hotel cap", "document": "hotel.md"}]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


async def done(terminal: Terminal, *options: str) -> Said:
    said = await terminal("reembed", *options)
    assert said.code == 0, said.err
    return said


async def refused(terminal: Terminal, *options: str) -> str:
    said = await terminal("reembed", *options)
    assert (said.code, said.out) == (1, "")
    return said.err


async def sets(terminal: Terminal) -> dict[str, tuple[Any, ...]]:
    shown = json.loads((await done(terminal, "--status", "--json")).out)
    assert shown["running"] is False
    return {one["embedder_id"]: (one["role"], one["vectors"], one["missing"]) for one in shown["sets"]}


async def first(terminal: Terminal, query: str) -> str:
    said = await terminal("search", query, "--json")
    assert said.code == 0, said.err
    hit = json.loads(said.out)["hits"][0]
    assert hit["scores"]["vector"] is not None
    return str(hit["document"])


async def test_made_measured_swapped_taken_back_and_dropped(
    terminal: Terminal, questions: Path, tmp_path: Path
) -> None:
    shown = await done(terminal, "--model", "ollama:new", "--questions", str(questions))
    for words in ("vectors alone", "active", OLD, "candidate", NEW, "1.000", "--swap"):
        assert words in shown.out
    assert f"{NEW}: 2 vectors made, none is missing" in shown.err
    assert await sets(terminal) == {OLD: ("active", 2, 0), NEW: ("candidate", 2, 0)}
    measured = json.loads((await done(terminal, "--questions", str(questions), "--json")).out)
    assert {role: report["embedder"] for role, report in measured.items()} == {"active": OLD, "candidate": NEW}
    assert measured["candidate"]["modes"]["vector"]["hit@1"] == 1

    # What comes in before the swap is taken along; after it, vectors are the new model's.
    (tmp_path / "handbook" / "late.md").write_text("# Parking\n\nPark behind the mill.\n")
    await terminal("ingest", str(tmp_path / "handbook"))
    assert f"search goes by {NEW} now" in (await done(terminal, "--swap")).out
    assert await sets(terminal) == {NEW: ("active", 3, 0), OLD: ("previous", 3, 0)}
    assert await first(terminal, "park behind the mill") == "handbook/late.md"
    (tmp_path / "handbook" / "later.md").write_text("# Canteen\n\nLunch is at noon.\n")
    await terminal("ingest", str(tmp_path / "handbook"))
    assert await sets(terminal) == {NEW: ("active", 4, 0), OLD: ("previous", 3, 1)}

    # The way back takes along what came in since, too.
    assert f"search goes by {OLD} now" in (await done(terminal, "--undo")).out
    assert await sets(terminal) == {OLD: ("active", 4, 0), NEW: ("candidate", 4, 0)}
    assert await first(terminal, "lunch at noon") == "handbook/later.md"
    await done(terminal, "--swap")
    assert (await done(terminal, "--drop")).out == f"deleted the set of {OLD}: 4 vectors\n"
    assert await sets(terminal) == {NEW: ("active", 4, 0)}
    assert await first(terminal, "kangaroo days") == "handbook/leave.md"


async def test_the_status_is_a_table(terminal: Terminal) -> None:
    await done(terminal, "--model", "ollama:new")
    lines = (await done(terminal, "--status")).out.splitlines()
    assert lines[0].split() == ["Set", "Model", "Dimension", "Vectors", "Missing", "Searched", "by"]
    assert [line.split()[:5] for line in lines[2:4]] == [
        ["active", OLD, "64", "2", "0"],
        ["candidate", NEW, "24", "2", "0"],
    ]


async def test_doctor_and_status_say_what_is_searched_and_what_can_be_done(
    terminal: Terminal, database: Database, tenant_of_terminal: Tenant
) -> None:
    async def says() -> Check:
        [check] = await doctor._vectors(database, tenant_of_terminal)
        last = (await done(terminal, "--status")).out.splitlines()[-1]
        assert check.remedy is None or last == check.remedy
        return check

    assert await says() == Check("vectors", "ok", f"search goes by {OLD}, 2 vectors")
    await embedding_sets.begin(database, tenant_of_terminal.id, NEW, 24)
    halted = await says()
    assert halted.state == "warn"
    assert halted.detail.endswith(f"; those of {NEW} are being made: 0 of 2")
    assert halted.remedy == "`intramuros reembed` goes on with them, `intramuros reembed --drop` removes them"
    async with embedding_sets.changing(database, tenant_of_terminal.id):
        running = await says()
    assert (running.state, running.remedy) == ("ok", "`intramuros reembed` is at work")
    await done(terminal)
    ready = await says()
    assert (ready.state, "are ready beside them" in ready.detail) == ("ok", True)
    assert ready.remedy is not None
    assert ready.remedy.startswith("`intramuros reembed --swap`")
    await done(terminal, "--swap")
    kept = await says()
    assert kept.detail == f"search goes by {NEW}, 2 vectors; those of {OLD} are kept"
    assert kept.remedy is not None
    assert kept.remedy.startswith("`intramuros reembed --undo`")


async def test_nothing_is_said_of_vectors_before_there_are_any(database: Database, other_tenant: Tenant) -> None:
    assert await doctor._vectors(database, other_tenant) == []


async def test_what_cannot_be_done_is_said_with_what_to_do(terminal: Terminal, questions: Path) -> None:
    assert "of fake:bag-64:1 already. Name another model" in await refused(terminal)
    assert "no new vectors" in await refused(terminal, "--swap")
    assert "no swap to undo" in await refused(terminal, "--undo")
    assert "no vectors beside" in await refused(terminal, "--drop")
    for model in ("", "new", "ollama:", "embedded:new", "pigeon:new"):
        assert "Write embedded, ollama:NAME or openai:NAME" in await refused(terminal, "--model", model), model
    assert "Choose one of" in await refused(terminal, "--swap", "--drop")
    assert "Leave them out" in await refused(terminal, "--swap", "--model", "ollama:new")
    assert "--json goes with" in await refused(terminal, "--swap", "--json")
    await done(terminal, "--model", "ollama:new")
    assert "a set of ollama:new:1 beside" in await refused(terminal, "--model", "ollama:third")
    await done(terminal, "--swap")
    assert "kept for --undo" in await refused(terminal, "--model", "ollama:third")
    assert await sets(terminal) == {NEW: ("active", 2, 0), OLD: ("previous", 2, 0)}


async def test_a_set_that_is_not_whole_is_not_swapped_in(
    terminal: Terminal, database: Database, tenant_of_terminal: Tenant
) -> None:
    await embedding_sets.begin(database, tenant_of_terminal.id, NEW, 24)
    assert "2 vectors are missing" in await refused(terminal, "--swap")
    # Without a name it goes on with what was begun.
    assert "2 vectors made" in (await done(terminal)).err
    await done(terminal, "--swap")


async def test_one_at_a_time(terminal: Terminal, database: Database, tenant_of_terminal: Tenant) -> None:
    async with embedding_sets.changing(database, tenant_of_terminal.id):
        assert "Another `intramuros reembed`" in await refused(terminal, "--model", "ollama:new")
        assert "is at work" in (await done(terminal, "--status")).out


@pytest.fixture
async def tenant_of_terminal(terminal: Terminal, database: Database) -> Tenant:
    return await tenants.get(database, "demo")
