"""What comes out of the jail is looked at before it is believed."""

import json
import os
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from core.errors import DamagedFile, EgressDenied, MissingExtra, NotFound, ParserStopped
from core.records import Attachment, Box, Chunk, Element, ParsedDocument, ParseWarning
from ingest import reading
from ingest.pixels import Pixels
from ingest.reading import Reading, Refusal, pack, refused, unpack, unpack_picture
from policy import ledger

PARSED = ParsedDocument(
    title="差旅 policy",
    elements=(Element("title", "x"),),
    pages=2,
    warnings=(ParseWarning("hidden_text", "Gone.", 3, (1, 2)),),
    effective_from=date(2026, 1, 31),
    supersedes="old",
    attachments=(Attachment("a/b", b"\0"), Attachment("", b"")),
    confidence={1: 0.25},
)
CHUNKS = (
    Chunk(0, "one", ("A", "B"), 0, 0, 3, page=1, boxes=(Box(1, 0.1, 0.2, 0.3, 0.4),)),
    Chunk(1, "a | b", (), 1, 4, 9, kind="table", suspicion="ignore_instructions"),
)


def test_all_but_the_elements_comes_through(tmp_path: Path) -> None:
    pack(tmp_path, Reading(PARSED, CHUNKS))
    found = unpack(tmp_path, max_bytes=1)
    assert found.chunks == CHUNKS
    assert found.parsed.elements == ()
    for name in ("title", "pages", "warnings", "effective_from", "effective_to", "supersedes", "attachments"):
        assert getattr(found.parsed, name) == getattr(PARSED, name)
    assert found.parsed.confidence == {1: 0.25}


@pytest.mark.parametrize("error", [DamagedFile("Torn."), NotFound("Not there."), MissingExtra("No library.")])
def test_an_error_comes_through_as_itself(tmp_path: Path, error: Exception) -> None:
    pack(tmp_path, refused(error))
    with pytest.raises(type(error)) as raised:
        unpack(tmp_path, max_bytes=1)
    assert str(raised.value) == str(error)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), reading.MEMORY),
        (EgressDenied(), reading.REACHED_OUT),
        (PermissionError(), reading.REACHED_OUT),
        (KeyError(), ParserStopped().message),
    ],
)
def test_other_errors_are_the_documents_fault(error: Exception, message: str) -> None:
    assert refused(error) == Refusal("ParserStopped", message, type(error).__name__)


def test_a_cause_behind_an_error_tells_more_than_the_error() -> None:
    try:
        try:
            raise MemoryError
        except MemoryError as cause:
            raise DamagedFile from cause
    except DamagedFile as error:
        assert refused(error).message == reading.MEMORY


@pytest.mark.parametrize("name", ["Unauthenticated", "IntramurosError", "SystemExit", "inspect", ""])
def test_an_error_that_no_reader_raises_is_not_raised(tmp_path: Path, name: str) -> None:
    pack(tmp_path, Refusal(name, "x"))
    with pytest.raises(ParserStopped):
        unpack(tmp_path, max_bytes=1)


@pytest.mark.usefixtures("own_ledger")
def test_what_was_denied_to_the_reader_is_kept_for_the_audit_log_in_words_of_ours(tmp_path: Path) -> None:
    pack(tmp_path, Reading(PARSED, CHUNKS))
    told = json.loads((tmp_path / OUTCOME).read_text())
    told["denied"] = ["no_network", "no_network", "the salary of Erin is 90000"]
    (tmp_path / OUTCOME).write_text(json.dumps(told))
    unpack(tmp_path, max_bytes=1)
    assert sorted(map(str, ledger.unwritten())) == ["reader no_network", "reader unknown_shape"]


def test_an_attachment_over_the_limit_is_refused(tmp_path: Path) -> None:
    pack(tmp_path, Reading(PARSED, CHUNKS))
    with pytest.raises(ParserStopped):
        unpack(tmp_path, max_bytes=0)


OUTCOME, ATTACHMENT = "outcome.json", "attachment-0"


@pytest.mark.parametrize("name", [OUTCOME, ATTACHMENT])
@pytest.mark.parametrize("make", [Path.symlink_to, Path.hardlink_to])
def test_links_are_not_followed(tmp_path: Path, name: str, make: object) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    pack(folder, Reading(PARSED, CHUNKS))
    (folder / name).rename(tmp_path / "elsewhere")
    assert callable(make)
    make(folder / name, tmp_path / "elsewhere")
    with pytest.raises(ParserStopped):
        unpack(folder, max_bytes=1)


@pytest.mark.parametrize("name", [OUTCOME, ATTACHMENT])
def test_a_pipe_is_not_waited_for(tmp_path: Path, name: str) -> None:
    pack(tmp_path, Reading(PARSED, CHUNKS))
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(ParserStopped):
        unpack(tmp_path, max_bytes=1)


@pytest.mark.parametrize(
    "outcome",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        json.dumps({"reading": {"parsed": {"title": "t", "elements": []}, "chunks": [{"text": 1}]}}).encode(),
        json.dumps({"reading": {"parsed": {"elements": []}, "chunks": []}}).encode(),
    ],
)
def test_an_outcome_of_another_shape_is_refused(tmp_path: Path, outcome: bytes) -> None:
    (tmp_path / OUTCOME).write_bytes(outcome)
    with pytest.raises(ParserStopped):
        unpack(tmp_path, max_bytes=1)


def test_no_outcome_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParserStopped):
        unpack(tmp_path, max_bytes=1)


# --- pictures ---------------------------------------------------------------------------------------------------------

PICTURE = Pixels(2, 1, b"\0\1\2\3\4\5")


def test_a_picture_comes_through(tmp_path: Path) -> None:
    pack(tmp_path, PICTURE)
    assert unpack_picture(tmp_path) == PICTURE


def test_an_error_of_drawing_comes_through_as_itself(tmp_path: Path) -> None:
    pack(tmp_path, refused(NotFound("No such page.")))
    with pytest.raises(NotFound, match="No such page"):
        unpack_picture(tmp_path)


def test_one_outcome_is_not_taken_for_another(tmp_path: Path) -> None:
    pack(tmp_path, PICTURE)
    with pytest.raises(ParserStopped):
        unpack(tmp_path, max_bytes=1)
    pack(tmp_path, Reading(PARSED, CHUNKS))
    with pytest.raises(ParserStopped):
        unpack_picture(tmp_path)


@pytest.mark.parametrize("size", [[1, 1], [3, 1], [-2, -1], [0, 0], [2], [2, "1.5"], [10**9, 10**9], None])
def test_a_picture_of_another_size_is_refused(tmp_path: Path, size: object) -> None:
    pack(tmp_path, PICTURE)
    (tmp_path / OUTCOME).write_text(json.dumps({"picture": size}))
    with pytest.raises(ParserStopped):
        unpack_picture(tmp_path)


def test_too_many_pixels_are_not_even_read(tmp_path: Path) -> None:
    pack(tmp_path, PICTURE)
    with (tmp_path / "pixels").open("r+b") as file:
        file.truncate(10**12)
    with pytest.raises(ParserStopped):
        unpack_picture(tmp_path)


@pytest.mark.parametrize("make", [Path.symlink_to, Path.hardlink_to])
def test_links_to_pixels_are_not_followed(tmp_path: Path, make: Callable[[Path, Path], None]) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    pack(folder, PICTURE)
    (folder / "pixels").rename(tmp_path / "elsewhere")
    make(folder / "pixels", tmp_path / "elsewhere")
    with pytest.raises(ParserStopped):
        unpack_picture(folder)
