"""ZIP archives: members become documents, whatever their names and sizes say."""

import io
import zipfile
from pathlib import Path

import pytest

from core.errors import ArchiveBomb, DamagedFile, UnsupportedFormat
from ingest import archive
from ingest.attachments import Takings
from ingest.options import ParseOptions
from tests.unit.ingest import samples


def read(tmp_path: Path, data: bytes, **options: int) -> Takings:
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    return archive.read_zip(path, ParseOptions(**options))


def test_members_keep_folders_and_lose_ways_out(tmp_path: Path) -> None:
    takings = read(
        tmp_path,
        samples.zip_bytes(
            {
                "hr/leave.md": b"# Leave",
                "../up.txt": b"x",
                "/root.txt": b"y",
                "__MACOSX/hr/._leave.md": b"z",
                "hr/.DS_Store": b"z",
                "hr/": b"",
            }
        ),
    )
    assert [(a.name, a.data) for a in takings.kept] == [
        ("hr/leave.md", b"# Leave"),
        ("up.txt", b"x"),
        ("root.txt", b"y"),
    ]
    assert takings.warnings == []


def test_members_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    takings = read(
        tmp_path, samples.zip_bytes({"a.txt": b"x", "b.exe": b"MZ", "c.txt": b"12345", "d.txt": b""}), max_bytes=4
    )
    assert [attachment.name for attachment in takings.kept] == ["a.txt"]
    assert takings.warnings[0].text == (
        "Files inside it that were not taken: b.exe (not a supported format), "
        "c.txt (larger than the limit), d.txt (empty)."
    )


def test_no_more_than_the_limit_is_taken(tmp_path: Path) -> None:
    takings = read(tmp_path, samples.zip_bytes({f"{n}.txt": b"x" for n in range(5)}), max_attachments=3)
    assert len(takings.kept) == 3
    assert takings.warnings[0].count == 2


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as out:
        link = zipfile.ZipInfo("passwd.txt")
        link.external_attr = 0o120777 << 16
        out.writestr(link, "/etc/passwd")
        out.writestr("a.txt", "x")
    assert read(tmp_path, stream.getvalue()).refused == ["passwd.txt (a link)"]


@pytest.mark.parametrize("codec", ["gb18030", "cp437"])
def test_names_in_the_encoding_of_who_packed_them(tmp_path: Path, codec: str) -> None:
    name = {"gb18030": "休假规定通知.txt", "cp437": "plain.txt"}[codec]
    raw = name.encode(codec)
    placeholder = "x" * (len(raw) - 4) + ".txt"
    data = samples.zip_bytes({placeholder: b"x"}).replace(placeholder.encode(), raw)
    assert [attachment.name for attachment in read(tmp_path, data).kept] == [name]


def test_an_archive_without_documents_says_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFormat, match=r"tool\.exe"):
        read(tmp_path, samples.zip_bytes({"tool.exe": b"MZ"}))
    with pytest.raises(UnsupportedFormat, match="empty"):
        read(tmp_path, samples.zip_bytes({}))


def test_too_much_in_all_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_TOTAL", 10)
    with pytest.raises(ArchiveBomb):
        read(tmp_path, samples.zip_bytes({"a.txt": b"123456", "b.txt": b"123456"}))


def test_a_member_that_is_not_what_the_listing_says_is_damage(tmp_path: Path) -> None:
    data = bytearray(samples.zip_bytes({"a.txt": b"hello"}, compression=zipfile.ZIP_STORED))
    data[data.index(b"hello")] ^= 1
    with pytest.raises(DamagedFile):
        read(tmp_path, bytes(data))
