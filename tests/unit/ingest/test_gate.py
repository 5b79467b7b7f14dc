"""The gate: size, first bytes, name and container must agree."""

import zipfile
from pathlib import Path

import pytest

from core.errors import (
    ArchiveBomb,
    DamagedFile,
    EmptyFile,
    EncryptedFile,
    FileTooLarge,
    IngestError,
    MismatchedFormat,
    NotFound,
    UnsupportedFormat,
)
from ingest import gate
from ingest.gate import Kind
from tests.unit.ingest import samples

LIMIT = 10_000_000
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def check(tmp_path: Path, name: str, data: bytes, limit: int = LIMIT) -> Kind:
    path = tmp_path / name
    path.write_bytes(data)
    return gate.check(path, max_bytes=limit)


def test_every_sample_passes(tmp_path: Path) -> None:
    kinds = [gate.check(path, max_bytes=LIMIT) for path in samples.write_all(tmp_path)]
    assert set(kinds) == set(Kind)


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("a.exe", b"MZ", UnsupportedFormat),
        ("noextension", b"x", UnsupportedFormat),
        ("a.docm", samples.docx_bytes(), UnsupportedFormat),
        ("a.txt", b"", EmptyFile),
        ("a.txt", b" \n\t\r\n", EmptyFile),
        ("a.md", b"\xef\xbb\xbf\n", EmptyFile),
        ("a.pdf", b"<html><body>x</body></html>", MismatchedFormat),
        ("a.pdf", samples.docx_bytes(), MismatchedFormat),
        ("a.docx", b"MZ\x90\0" * 100, MismatchedFormat),
        ("a.docx", samples.xlsx_bytes(), MismatchedFormat),
        ("a.docx", samples.zip_bytes({"hello.txt": b"x"}), MismatchedFormat),
        ("a.docx", OLE + b"Word.Document.8", MismatchedFormat),
        ("a.docx", OLE + "EncryptedPackage".encode("utf-16-le"), EncryptedFile),
        ("a.txt", b"\x89PNG\r\n\x1a\n", MismatchedFormat),
        ("a.txt", b"text\0with one nul and more text", MismatchedFormat),
        ("a.csv", samples.xlsx_bytes(), MismatchedFormat),
        ("a.html", b"%PDF-1.7 ...", MismatchedFormat),
        ("a.eml", b"just words, no headers", MismatchedFormat),
        ("a.docx", samples.docx_bytes()[:3000], DamagedFile),
        ("a.docx", samples.with_part(samples.docx_bytes(), "word/vbaProject.bin", b"x"), UnsupportedFormat),
        ("a.docx", samples.with_part(samples.docx_bytes(), "word/activeX/activeX1.xml", b"<x/>"), UnsupportedFormat),
        ("a.docx", samples.with_part(samples.docx_bytes(), "word/inner.zip", b"x"), ArchiveBomb),
        (
            "a.docx",
            samples.with_part(samples.docx_bytes(), "word/e.xml", b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'),
            DamagedFile,
        ),
        (
            "a.docx",
            samples.with_part(samples.docx_bytes(), "word/e.xml", '<!DOCTYPE a SYSTEM "file:///x">'.encode("utf-16")),
            DamagedFile,
        ),
    ],
)
def test_bad_input_is_refused_by_kind(tmp_path: Path, name: str, data: bytes, error: type[IngestError]) -> None:
    with pytest.raises(error):
        check(tmp_path, name, data)


def test_size_is_judged_before_anything_is_read(tmp_path: Path) -> None:
    path = tmp_path / "big.pdf"
    with path.open("wb") as file:
        file.truncate(200 * 1024 * 1024)
    with pytest.raises(FileTooLarge, match="200 MB"):
        gate.check(path, max_bytes=100 * 1024 * 1024)


@pytest.mark.parametrize(
    "parts",
    [
        {"word/big.xml": b"<a>" + b" " * 5_000_000},
        {f"word/part{n}.txt": b"" for n in range(gate.MAX_ENTRIES + 1)},
    ],
    ids=["ratio", "entries"],
)
def test_archive_bombs(tmp_path: Path, parts: dict[str, bytes]) -> None:
    with pytest.raises(ArchiveBomb):
        check(tmp_path, "a.docx", samples.zip_bytes({"[Content_Types].xml": b"<x/>"} | parts))


def test_a_large_xml_part_and_a_large_total_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = samples.docx_bytes()
    monkeypatch.setattr(gate, "MAX_XML_PART", 100)
    with pytest.raises(ArchiveBomb):
        check(tmp_path, "a.docx", data)
    monkeypatch.undo()
    monkeypatch.setattr(gate, "MAX_UNPACKED", 1000)
    with pytest.raises(ArchiveBomb):
        check(tmp_path, "a.docx", data)


def test_overlapping_entries_are_a_bomb(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(samples.docx_bytes())
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    with pytest.raises(ArchiveBomb):
        gate._check_listing(entries * 20, path.stat().st_size)


def test_two_parts_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(samples.docx_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("Word/Document.xml", b"<other/>")
    with pytest.raises(DamagedFile):
        gate.check(path, max_bytes=LIMIT)


def test_an_encrypted_entry_is_told(tmp_path: Path) -> None:
    data = bytearray(samples.zip_bytes({"[Content_Types].xml": b"x"}))
    directory = data.index(b"PK\x01\x02")
    data[6] |= 1
    data[directory + 8] |= 1
    with pytest.raises(EncryptedFile):
        check(tmp_path, "a.docx", bytes(data))


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "gb18030"])
def test_text_of_other_encodings_is_text(tmp_path: Path, codec: str) -> None:
    assert check(tmp_path, "a.txt", "Leave policy: thirty days. 休假".encode(codec)) is Kind.TEXT


def test_a_given_name_decides_for_a_stored_copy(tmp_path: Path) -> None:
    path = tmp_path / "0123"
    path.write_text("words")
    assert gate.check(path, max_bytes=LIMIT, name="Leave.MD") is Kind.MARKDOWN


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        gate.check(tmp_path / "gone.txt", max_bytes=LIMIT)
