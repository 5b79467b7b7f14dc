"""`sync`: what it prints, what it refuses, and that it goes on."""

import json
import os
from pathlib import Path

import pytest

from tests.integration.cli.conftest import Terminal

LEAVE = "# Annual leave\n\nEvery employee has 25 days of annual leave.\n"
TRAVEL = "# Travel\n\n## Hotels\n\nThe hotel cap in Berlin is EUR 140 per night.\n"


@pytest.fixture
def share(tmp_path: Path) -> Path:
    folder = tmp_path / "share"
    (folder / "people").mkdir(parents=True)
    (folder / "people" / "leave.md").write_text(LEAVE)
    (folder / "travel.md").write_text(TRAVEL)
    return folder


def _unmount(share: Path) -> None:
    share.rename(share.with_name("away"))


async def _sync(terminal: Terminal, share: Path, *options: str) -> tuple[str, list[str]]:
    said = await terminal("sync", str(share), "--collection", "staff", *options)
    assert said.code == 0, said.err
    return said.out, said.err.splitlines()


async def test_each_kind_of_change_is_told(terminal: Terminal, share: Path) -> None:
    (share / "photo.xyz").write_text("?")
    out, notes = await _sync(terminal, share)
    assert out == "2 files: 2 new, 0 changed, 0 moved, 0 deleted, 0 dated, 0 unchanged\n"
    assert {"new: share/people/leave.md", "new: share/travel.md", "share/photo.xyz: not a supported format"} <= set(
        notes
    )

    (share / "travel.md").write_text(TRAVEL.replace("140", "150"))
    (share / "people" / "leave.md").rename(share / "leave.md")
    (share / "copy.md").write_text(LEAVE)
    (share / "broken.pdf").write_bytes(b"%PDF-1.7\ncut short")
    out, notes = await _sync(terminal, share)
    assert out == "4 files: 1 new, 1 changed, 1 moved, 0 deleted, 0 dated, 0 unchanged\n"
    assert "moved: share/people/leave.md to share/copy.md" in notes
    assert "share/leave.md: the same as share/copy.md, which stands for both" in notes
    assert any(note.startswith("share/broken.pdf: failed: ") for note in notes)

    (share / "copy.md").unlink()
    (share / "leave.md").unlink()
    (share / "travel.md.meta.yaml").write_text("effective_from: 2026-01-01\n")
    out, notes = await _sync(terminal, share)
    receipt, summary = out.splitlines()
    assert receipt.startswith("deleted share/copy.md: 1 documents, ")
    assert receipt.endswith("; 0 stored answers quote it and stay")
    assert summary == "2 files: 0 new, 0 changed, 0 moved, 1 deleted, 1 dated, 2 unchanged"
    assert "dated: share/travel.md" in notes


async def test_a_dry_run_says_what_would_be_done_and_does_nothing(terminal: Terminal, share: Path) -> None:
    await terminal("tenants", "create", "demo")
    out, notes = await _sync(terminal, share, "--dry-run")
    assert out == "2 files: 2 new, 0 changed, 0 moved, 0 deleted, 0 dated, 0 unchanged (nothing was done: dry run)\n"
    assert notes == ["new: share/people/leave.md", "new: share/travel.md"]
    assert json.loads((await terminal("documents", "--json")).out)["documents"] == []

    await _sync(terminal, share)
    for path in (share / "travel.md", share / "people" / "leave.md"):
        path.unlink()
    out, notes = await _sync(terminal, share, "--dry-run")
    assert notes[-1] == "Without --force it would be refused: it would delete all 2 documents of this source"


async def test_a_dry_run_without_a_tenant_makes_none(terminal: Terminal, share: Path) -> None:
    said = await terminal("sync", str(share), "-c", "staff", "--dry-run")
    assert (said.code, said.out) == (1, "")
    assert (await terminal("tenants", "list")).err.startswith("No tenants yet")


async def test_json_is_one_object(terminal: Terminal, share: Path) -> None:
    said = await terminal("sync", str(share), "-c", "staff", "--json", "--dry-run", "--source", "hr")
    assert said.code == 1
    out, _ = await _sync(terminal, share, "--source", "hr")
    (share / "travel.md").rename(share / "trips.md")
    for options, dry in ((["--dry-run"], True), ([], False)):
        out, notes = await _sync(terminal, share, "--source", "hr", "--json", *options)
        assert notes == []
        shown = json.loads(out)
        assert (shown["source"], shown["collection"], shown["dry_run"], shown["refused"]) == ("hr", "staff", dry, None)
        assert [(move["before"], move["path"]) for move in shown["moved"]] == [("share/travel.md", "share/trips.md")]
        assert (shown["new"], shown["unchanged"], shown["receipts"]) == ([], 1, [])


async def test_what_would_delete_too_much_needs_force(terminal: Terminal, share: Path) -> None:
    await _sync(terminal, share)
    for path in (share / "travel.md", share / "people" / "leave.md"):
        path.unlink()
    said = await terminal("sync", str(share), "-c", "staff")
    assert (said.code, said.out) == (1, "")
    assert said.err.splitlines()[-1].startswith("error: Nothing was done: it would delete all 2 documents")
    assert len(json.loads((await terminal("documents", "--json")).out)["documents"]) == 2
    out, _ = await _sync(terminal, share, "--force")
    assert out.splitlines()[-1].startswith("0 files: 0 new, 0 changed, 0 moved, 2 deleted")


async def test_a_folder_that_is_not_there(terminal: Terminal, share: Path) -> None:
    await _sync(terminal, share)
    said = await terminal("sync", str(share / "absent"), "-c", "staff", "--force")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("error: There is no folder ")


async def test_watching_goes_with_no_dry_run_and_no_json(terminal: Terminal, share: Path) -> None:
    for option in ("--dry-run", "--json"):
        said = await terminal("sync", str(share), "-c", "staff", "--watch", option)
        assert (said.code, said.err.count("\n")) == (1, 1)


async def test_a_watching_sync_tells_each_round_until_it_is_stopped(
    terminal: Terminal, share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (share / "travel.md", share / "people" / "leave.md"):
        os.utime(path, (1e9, 1e9))
    rounds = []

    class Watch:
        async def next(self, *, soon: bool = False) -> None:
            rounds.append(soon)
            if len(rounds) == 3:
                raise KeyboardInterrupt
            if len(rounds) == 2:
                _unmount(share)

    class Watching:
        def __init__(self, folder: Path) -> None:
            assert folder == share

        async def __aenter__(self) -> Watch:
            return Watch()

        async def __aexit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr("ingest.watching.watching", Watching)
    said = await terminal("sync", str(share), "-c", "staff", "--watch")
    assert said.code == 130
    assert said.out == "2 files: 2 new, 0 changed, 0 moved, 0 deleted, 0 dated, 0 unchanged\n"
    notes = said.err.splitlines()
    assert notes[-2].startswith("waiting: There is no folder ")
    assert notes[-1].startswith("error: stopped. What was finished is kept")
