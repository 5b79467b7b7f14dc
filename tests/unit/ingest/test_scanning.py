"""Looks at real folders: what is found, what is passed over, and what nothing may be concluded from."""

import hashlib
import os
import socket
from pathlib import Path

import pytest

from core.errors import IngestError, NotFound
from ingest import files, scanning
from ingest.scanning import Scan, Scanner

LONG_AGO = 1_000_000_000
# Whoever is root may read everything.
as_somebody = pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "handbook"
    made.mkdir()
    return made


def put(path: Path, text: str = "text") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (LONG_AGO, LONG_AGO))
    return hashlib.sha256(text.encode()).hexdigest()


def scan(folder: Path) -> Scan:
    return Scanner(folder).scan()


def test_files_are_known_by_their_names_from_the_folder_on(folder: Path) -> None:
    leave, trip = put(folder / "people/leave.md", "leave"), put(folder / "差旅.md", "差旅")
    assert scan(folder).digests == {"handbook/people/leave.md": leave, "handbook/差旅.md": trip}


def test_sidecars_are_no_documents(folder: Path) -> None:
    put(folder / "a.md")
    sidecar = put(folder / "a.md.meta.yaml", "title: A")
    put(folder / "b.md.META.yaml")
    found = scan(folder)
    assert {name: entry.sidecar for name, entry in found.files.items()} == {"handbook/a.md": sidecar}
    assert found.passed_over == {}


def test_hidden_files_and_lock_files_are_not_looked_at(folder: Path) -> None:
    for name in (".a.md", ".git/b.md", "~$report.docx", ".~lock.report.docx#"):
        put(folder / name)
    assert scan(folder) == Scan()


def test_what_is_none_of_ours_is_passed_over(folder: Path, tmp_path: Path) -> None:
    put(folder / "tool.exe")
    put(tmp_path / "secret.md")
    put(tmp_path / "elsewhere/b.md")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "linked").symlink_to(tmp_path / "elsewhere")
    (folder / "round").symlink_to(folder)
    os.mkfifo(folder / "pipe.md")
    found = scan(folder)
    assert found.digests == {}
    assert found.passed_over == {
        "handbook/link.md": "a link that leads out of the folder",
        "handbook/linked": "a link to a folder",
        "handbook/pipe.md": "not a file",
        "handbook/round": "a link to a folder",
        "handbook/tool.exe": "not a supported format",
    }


def test_a_link_within_the_folder_is_a_file(folder: Path) -> None:
    digest = put(folder / "a.md")
    (folder / "b.md").symlink_to(folder / "a.md")
    assert scan(folder).digests == {"handbook/a.md": digest, "handbook/b.md": digest}


def test_a_sidecar_that_leads_out_of_the_folder_says_nothing(folder: Path, tmp_path: Path) -> None:
    put(folder / "a.md")
    put(tmp_path / "secret")
    (folder / "a.md.meta.yaml").symlink_to(tmp_path / "secret")
    assert scan(folder).files["handbook/a.md"].sidecar is None


def test_an_empty_file_and_a_broken_link_leave_their_documents_alone(folder: Path) -> None:
    put(folder / "cut.md", "")
    (folder / "broken.md").symlink_to(folder / "absent.md")
    found = scan(folder)
    assert found.unclear == {"handbook/broken.md": "No such file or directory", "handbook/cut.md": "empty"}
    assert found.may_hold("handbook/cut.md")
    assert not found.may_hold("handbook/cut.md.md")


def test_no_folder_is_an_error_and_not_an_empty_one(folder: Path) -> None:
    with pytest.raises(NotFound):
        scan(folder / "absent")
    put(folder / "a.md")
    with pytest.raises(NotFound):
        scan(folder / "a.md")


def test_a_folder_that_cannot_be_listed_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: object) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(IngestError, match="cannot be listed"):
        scan(folder)


def test_nothing_is_concluded_from_a_folder_below_that_cannot_be_listed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder / "a.md")
    put(folder / "closed/b.md")
    listed = os.scandir

    def some(place: str) -> object:
        if str(place).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(place))
        return listed(place)

    monkeypatch.setattr(os, "scandir", some)
    found = scan(folder)
    assert list(found.files) == ["handbook/a.md"]
    assert found.unclear == {"handbook/closed": "Permission denied"}
    assert found.may_hold("handbook/closed/b.md")


def test_a_file_that_cannot_be_read_is_unclear(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder / "a.md")

    def lost(_: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(scanning, "digest", lost)
    assert scan(folder).unclear == {"handbook/a.md": "Input/output error"}


@as_somebody
def test_a_file_without_the_right_to_read_it_is_unclear(folder: Path) -> None:
    put(folder / "a.md")
    (folder / "a.md").chmod(0)
    assert scan(folder).unclear == {"handbook/a.md": "Permission denied"}


def test_a_socket_is_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("s.md")
        assert scan(folder).passed_over == {"handbook/s.md": "not a file"}


def test_names_that_look_the_same_are_one(folder: Path) -> None:
    for name in (b"a\xff.md", b"a\xfe.md"):
        put(folder / os.fsdecode(name))
    found = scan(folder)
    assert list(found.files) == ["handbook/a\ufffd.md"]
    assert found.passed_over == {"handbook/a\ufffd.md": "another file's name looks the same"}


# --- again and again --------------------------------------------------------------------------------------------------


def test_a_file_is_read_again_only_when_it_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder / "a.md", "one")
    put(folder / "b.md", "two")
    read: list[str] = []
    digest = files.digest

    def counted(path: Path) -> object:
        read.append(path.name)
        return digest(path)

    monkeypatch.setattr(scanning, "digest", counted)
    scanner = Scanner(folder)
    first = scanner.scan()
    assert scanner.scan() == first
    assert sorted(read) == ["a.md", "b.md"]
    put(folder / "a.md", "three")
    assert scanner.scan().digests["handbook/a.md"] != first.digests["handbook/a.md"]
    assert sorted(read) == ["a.md", "a.md", "b.md"]


def test_a_file_that_was_just_written_waits(folder: Path) -> None:
    put(folder / "old.md")
    (folder / "new.md").write_text("not yet who")
    scanner = Scanner(folder, settle=3600)
    found = scanner.scan()
    assert list(found.files) == ["handbook/old.md"]
    assert (found.unclear, found.unsettled) == ({"handbook/new.md": "being written"}, 1)
    put(folder / "new.md", "now whole")
    assert (len(scanner.scan().files), scanner.scan().unsettled) == (2, 0)


def test_a_file_that_grows_while_it_is_read_waits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder / "a.md")
    digest = files.digest

    def grows(path: Path) -> object:
        found = digest(path)
        put(path, "text and more")
        return found

    monkeypatch.setattr(scanning, "digest", grows)
    scanner = Scanner(folder, settle=1)
    assert scanner.scan().unsettled == 1
    monkeypatch.setattr(scanning, "digest", digest)
    expected = hashlib.sha256(b"text and more").hexdigest()
    assert scanner.scan().digests == {"handbook/a.md": expected}
