"""Every command against a real database: what it does, what it prints, how it fails."""

import io
import json
import sys
from datetime import date
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from core.records import Answered, Failed, Refused, Status, Token
from core.settings import Settings
from tests.conftest import DatabaseUnderTest
from tests.integration.cli.conftest import Terminal
from tests.unit.cli.records import answer

LEAVE = "# Annual leave\n\nEvery employee has 25 days of annual leave.\n"
TRAVEL = "# Travel\n\n## Hotels\n\nThe hotel cap in Berlin is EUR 140 per night.\n"


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    folder = tmp_path / "handbook"
    (folder / "leave").mkdir(parents=True)
    (folder / "leave" / "annual.md").write_text(LEAVE)
    (folder / "travel.md").write_text(TRAVEL)
    return folder


# --- ingest, documents, search --------------------------------------------------------------------------------------


async def test_ingest_says_what_came_of_the_files(terminal: Terminal, handbook: Path) -> None:
    first = await terminal("ingest", str(handbook))
    assert (first.code, first.out) == (0, "2 files: 2 new, 0 changed, 0 unchanged, 0 failed\n")
    assert "Created tenant demo" in first.err
    (handbook / "travel.md").write_text(TRAVEL.replace("140", "150"))
    again = await terminal("ingest", str(handbook))
    assert again.out == "2 files: 0 new, 1 changed, 1 unchanged, 0 failed\n"


async def test_a_collection_names_whom_to_ask(terminal: Terminal, handbook: Path) -> None:
    await terminal("ingest", str(handbook))
    named = await terminal("collections", "owner", "handbook", " HR, ext. 12 ")
    assert (named.code, named.out) == (0, "about handbook, ask HR, ext. 12\n")
    listed = json.loads((await terminal("collections", "list", "--json")).out)["collections"]
    assert [(one["name"], one["documents"], one["owner_contact"]) for one in listed] == [("handbook", 2, "HR, ext. 12")]
    assert "HR, ext. 12" in (await terminal("collections", "list")).out
    await terminal("collections", "owner", "handbook")
    listed = json.loads((await terminal("collections", "list", "--json")).out)["collections"]
    assert listed[0]["owner_contact"] is None
    assert (await terminal("collections", "owner", "nowhere", "HR")).code == 1
    assert (await terminal("collections", "owner", "handbook", "x" * 201)).code == 1


async def test_a_single_file_keeps_the_path_it_has_in_its_folder(terminal: Terminal, handbook: Path) -> None:
    await terminal("ingest", str(handbook))
    (handbook / "leave" / "annual.md").write_text(LEAVE.replace("25", "30"))
    said = await terminal("ingest", str(handbook / "leave" / "annual.md"))
    assert said.out == "1 file: 0 new, 1 changed, 0 unchanged, 0 failed\n"
    listed = json.loads((await terminal("documents", "--json")).out)["documents"]
    assert [document["path"] for document in listed] == ["handbook/leave/annual.md", "handbook/travel.md"]


async def test_one_bad_document_does_not_stop_the_others(terminal: Terminal, handbook: Path) -> None:
    (handbook / "broken.pdf").write_bytes(b"%PDF-1.7\ncut short")
    (handbook / "tool.exe").write_bytes(b"MZ")
    said = await terminal("ingest", str(handbook))
    assert (said.code, said.out) == (0, "4 files: 2 new, 0 changed, 0 unchanged, 1 failed, 1 skipped\n")
    assert "handbook/broken.pdf: " in said.err
    assert "handbook/tool.exe: not a supported format" in said.err
    strict = await terminal("ingest", str(handbook), "--strict")
    assert strict.code == 1
    assert strict.err.splitlines()[-1].startswith("error: 1 document")


async def test_a_missing_path_stops_before_anything_is_read(terminal: Terminal, handbook: Path) -> None:
    said = await terminal("ingest", str(handbook), str(handbook / "absent"))
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("error: There is nothing at ")
    assert said.err.count("\n") == 1


async def test_nothing_readable_is_a_failure(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "picture.png").write_bytes(b"\x89PNG")
    assert (await terminal("ingest", str(tmp_path / "only"))).code == 1


async def test_documents_are_listed_and_deleted_with_a_receipt(terminal: Terminal, handbook: Path) -> None:
    await terminal("ingest", str(handbook))
    listed = await terminal("documents")
    assert "handbook/leave/annual.md" in listed.out
    assert "Annual leave" in listed.out
    gone = await terminal("documents", "delete", "annual.md", "--yes")
    assert (gone.code, gone.err) == (0, "")
    assert gone.out.startswith("deleted handbook/leave/annual.md: 1 documents")
    assert "1 files" in gone.out
    missing = await terminal("documents", "delete", "annual.md", "--yes")
    assert (missing.code, missing.err) == (
        1,
        "error: There is no document 'annual.md'. `intramuros documents` lists them with their ids\n",
    )


async def test_an_ambiguous_path_deletes_nothing(terminal: Terminal, handbook: Path) -> None:
    (handbook / "travel").mkdir()
    (handbook / "travel" / "annual.md").write_text("# Other\n\nSomething else.\n")
    await terminal("ingest", str(handbook))
    said = await terminal("documents", "delete", "annual.md", "--yes")
    assert said.code == 1
    assert said.err.startswith("error: 2 documents are called that")
    assert len(json.loads((await terminal("documents", "--json")).out)["documents"]) == 3


async def test_search_shows_passages_and_speaks_json(terminal: Terminal, handbook: Path) -> None:
    await terminal("ingest", str(handbook))
    shown = await terminal("search", "hotel cap in Berlin")
    assert shown.out.startswith("1   Travel · Hotels\n    handbook/travel.md   fused ")
    found = json.loads((await terminal("search", "hotel cap in Berlin", "--json", "--limit", "1")).out)
    assert found["query"] == "hotel cap in Berlin"
    (hit,) = found["hits"]
    assert (hit["rank"], hit["document"], hit["heading_path"]) == (1, "handbook/travel.md", ["Hotels"])
    assert set(hit["scores"]) == {"vector", "bm25", "fused", "reranked"}


async def test_an_unknown_collection_is_named_with_those_that_exist(terminal: Terminal, handbook: Path) -> None:
    await terminal("ingest", str(handbook), "--collection", "staff")
    said = await terminal("search", "hotel", "--collection", "board")
    assert (said.code, said.err) == (1, "error: There is no collection 'board'. There are: staff\n")


# --- ask ------------------------------------------------------------------------------------------------------------


async def test_ask_streams_status_answer_and_sources(terminal: Terminal, handbook: Path) -> None:
    await terminal("ingest", str(handbook))
    final = answer()
    terminal.script = lambda _: (Status("searching", "Searching the documents"), Token(final.answer), Answered(final))
    said = await terminal("ask", "What is the cap?", "-c", "handbook", "--mode", "quick", "--as-of", "2026-01-31")
    assert said.code == 0
    assert said.err == "Searching the documents\n"
    assert said.out.startswith("    The cap in Berlin is EUR 140 per night [1].\n\n    Sources\n[1] Travel policy")
    assert terminal.asked[0][2] == {
        "session_id": None,
        "collections": ["handbook"],
        "mode": "quick",
        "as_of": date(2026, 1, 31),
    }


async def test_ask_json_is_one_object_and_nothing_else(terminal: Terminal, handbook: Path) -> None:
    await terminal("ingest", str(handbook))
    final = answer()
    terminal.script = lambda _: (Status("searching", "Searching"), Token(final.answer), Refused(final))
    said = await terminal("ask", "What is the cap?", "--json")
    assert (said.code, said.err) == (0, "")
    shown = json.loads(said.out)
    assert (shown["outcome"], shown["language"], shown["model_calls"]) == ("answered", "en", 3)
    assert shown["citations"][0]["document"] == "handbook/en/travel.md"
    assert shown["timings"] == {"search": 0.04, "answer": 2.31}


async def test_a_session_is_begun_by_title_and_found_by_title_and_id(terminal: Terminal, handbook: Path) -> None:
    await terminal("ingest", str(handbook))
    terminal.script = lambda _: (Answered(answer()),)
    await terminal("ask", "What is the cap?", "--session", "Berlin trip")
    await terminal("ask", "And in Shanghai?", "--session", "Berlin trip")
    first, second = (options["session_id"] for _, _, options in terminal.asked)
    assert isinstance(first, UUID)
    assert first == second
    await terminal("ask", "And in London?", "--session", str(first))
    assert terminal.asked[2][2]["session_id"] == first
    unknown = await terminal("ask", "And?", "--session", str(UUID(int=1)))
    assert (unknown.code, unknown.out) == (1, "")
    assert "There is no session" in unknown.err


async def test_a_failed_turn_is_one_line_and_exit_code_1(terminal: Terminal, handbook: Path) -> None:
    await terminal("ingest", str(handbook))
    terminal.script = lambda _: (Failed("model_unavailable", "The model is away. Start it"),)
    for extra in ((), ("--json",)):
        said = await terminal("ask", "What is the cap?", *extra)
        assert (said.code, said.out, said.err) == (1, "", "error: The model is away. Start it\n")


async def test_an_empty_question_is_refused(terminal: Terminal) -> None:
    assert (await terminal("ask", "  ")).err.startswith("error: The question is empty")
    assert (await terminal("search", "  ")).err.startswith("error: The query is empty")


# --- tenants, users, tokens -----------------------------------------------------------------------------------------


async def test_tenants_come_and_go(terminal: Terminal, handbook: Path) -> None:
    assert (await terminal("tenants", "list")).err.startswith("No tenants yet")
    assert (await terminal("tenants", "create", "acme", "--name", "Acme Ltd")).out == "created tenant acme\n"
    await terminal("ingest", str(handbook), "--tenant", "acme")
    assert "Acme Ltd" in (await terminal("tenants", "list")).out
    assert (await terminal("tenants", "create", "acme")).code == 1
    assert (await terminal("tenants", "create", "No Slug")).code == 1
    gone = await terminal("tenants", "remove", "acme", "--yes")
    assert gone.out.startswith("deleted tenant acme: ")
    assert "2 documents" in gone.out
    assert "2 files" in gone.out
    assert "the whole home folder" in gone.err
    assert (await terminal("documents", "--tenant", "acme")).err.startswith("error: There is no tenant acme")


@pytest.mark.parametrize("stray", ["run/page-{hex}.png", "files/{id}.old", "{id}/note"])
async def test_what_is_left_of_a_tenant_on_disk_is_named(terminal: Terminal, stray: str) -> None:
    home = Settings.load().home
    await terminal("tenants", "create", "acme")
    listed = (await terminal("tenants", "list")).out
    tenant_id = UUID(listed.split()[-1])
    left = home / stray.format(id=tenant_id, hex=tenant_id.hex)
    left.parent.mkdir(parents=True, exist_ok=True)
    left.touch()
    gone = await terminal("tenants", "remove", "acme", "--yes")
    assert gone.code == 1
    assert "on disk" in gone.err
    assert str(tenant_id) in gone.err or tenant_id.hex in gone.err


async def test_the_audit_log_is_listed_and_verified(
    terminal: Terminal, fresh: DatabaseUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await terminal("audit", "verify", "--installation")).out.startswith("1 entry, whole;")
    await terminal("tenants", "create", "demo")
    monkeypatch.setattr(sys, "stdin", io.StringIO("correct horse battery\n"))
    await terminal("users", "create", "ada", "--password-stdin")
    listed = json.loads((await terminal("audit", "list", "--json")).out)["entries"]
    assert [(entry["number"], entry["actor"], entry["action"]) for entry in listed] == [
        (2, "operator", "user.created"),
        (1, "operator", "tenant.created"),
    ]
    assert "user.created" in (await terminal("audit", "list", "--limit", "1")).out
    assert "audit.begun" in (await terminal("audit", "list", "--installation")).out
    whole = await terminal("audit", "verify")
    assert (whole.code, whole.out[:17]) == (0, "2 entries, whole;")
    head = whole.out.split()[-1]
    assert (await terminal("audit", "verify", "--installation")).code == 0
    await terminal("users", "disable", "ada")
    assert (await terminal("audit", "verify", "--head", head)).code == 0
    other = await terminal("audit", "verify", "--head", f"2:{'0' * 64}")
    assert (other.code, other.err) == (
        1,
        "error: The audit log is not whole: entry 2 is not the one that was noted down\n",
    )
    assert (await terminal("audit", "verify", "--head", "2")).code == 1
    with psycopg.connect(fresh.owner_dsn) as connection:
        connection.execute("DELETE FROM intramuros.audit WHERE number = 2")
    broken = await terminal("audit", "verify")
    assert (broken.code, broken.err) == (1, "error: The audit log is not whole: entry 2 is missing\n")


async def test_removing_a_tenant_without_a_terminal_needs_yes(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    await terminal("tenants", "create", "acme")
    monkeypatch.setattr(sys, "stdin", io.StringIO("acme\n"))
    said = await terminal("tenants", "remove", "acme")
    assert said.code == 1
    assert "--yes" in said.err
    assert "acme" in (await terminal("tenants", "list")).out


async def test_users_and_their_tokens(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    await terminal("tenants", "create", "demo")
    monkeypatch.setattr(sys, "stdin", io.StringIO("correct horse battery\n"))
    made = await terminal("users", "create", "ada", "--admin", "--group", "finance", "--password-stdin")
    assert made.out == "created admin ada in tenant demo\n"
    listed = (await terminal("users", "list")).out
    assert "ada" in listed
    assert "finance" in listed
    token = await terminal("tokens", "create", "--user", "ada", "--label", "report")
    assert token.out.startswith("im_")
    assert token.out.count("\n") == 1
    row = next(line for line in (await terminal("tokens", "list", "-u", "ada")).out.splitlines() if "report" in line)
    assert token.out.strip() not in row
    assert (await terminal("tokens", "revoke", row.split()[-1], "-u", "ada")).code == 0
    assert (await terminal("tokens", "revoke", "nonsense", "-u", "ada")).code == 1
    assert (await terminal("users", "disable", "ada")).out == "disabled ada\n"
    assert "disabled" in (await terminal("users", "list")).out
    assert (await terminal("users", "enable", "ADA")).out == "enabled ADA\n"
    assert (await terminal("users", "disable", "bob")).code == 1


async def test_a_short_password_or_none_makes_no_user(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    await terminal("tenants", "create", "demo")
    monkeypatch.setattr(sys, "stdin", io.StringIO("short\n"))
    assert (await terminal("users", "create", "ada", "--password-stdin")).code == 1
    assert "--password-stdin" in (await terminal("users", "create", "ada")).err
    assert (await terminal("users", "list")).err.startswith("No users yet")


# --- evaluate, the command line itself ------------------------------------------------------------------------------


async def test_evaluate_scores_questions_and_names_stray_ones(
    terminal: Terminal, handbook: Path, tmp_path: Path
) -> None:
    await terminal("ingest", str(handbook))
    file = tmp_path / "questions.jsonl"
    rows = [
        {"question": "hotel cap in Berlin", "document": "travel.md"},
        {"question": "days of annual leave", "document": "leave/annual.md"},
        {"question": "who knows", "document": "absent.md"},
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    shown = await terminal("evaluate", str(file))
    assert "BM25 alone" in shown.out
    assert "no document ends with absent.md" in shown.err
    report = json.loads((await terminal("evaluate", str(file), "--json")).out)
    assert report["questions"] == 3
    assert set(report["modes"]) == {"vector", "bm25", "hybrid"}
    assert report["modes"]["hybrid"]["hit@1"] == pytest.approx(2 / 3, abs=1e-3)
    assert [missed["documents"] for missed in report["missed"]] == [["absent.md"]]


async def test_usage_errors_are_one_line(terminal: Terminal) -> None:
    for arguments in (("ask",), ("nonsense",), ("ask", "x", "--nonsense"), ("ask", "x", "--mode", "slow")):
        said = await terminal(*arguments)
        assert (said.code, said.out) == (1, "")
        assert said.err.startswith("error: ")
        assert said.err.count("\n") == 1


async def test_the_version_is_printed(terminal: Terminal) -> None:
    said = await terminal("--version")
    assert said.code == 0
    assert said.out.startswith("intramuros ")
