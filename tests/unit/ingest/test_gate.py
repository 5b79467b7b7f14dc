"""The gate: size, first bytes, name and container must agree."""

from pathlib import Path

import pytest

from core.errors import (
    ActiveContent,
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
from ingest.kinds import EXTENSIONS, Kind, ending, kind_of, supported
from tests.unit.ingest import compound_file as old
from tests.unit.ingest import samples

LIMIT = 10_000_000
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
PICTURES = {
    "a.png": b"\x89PNG\r\n\x1a\n....",
    "a.jpg": b"\xff\xd8\xff\xe0....",
    "a.jpeg": b"\xff\xd8\xff\xe1....",
    "a.tif": b"II*\0....",
    "a.tiff": b"MM\0*....",
    "a.bmp": b"BM\x10\0\0\0\0\0\0\0....",
    "a.webp": b"RIFF\x10\0\0\0WEBP....",
}


def check(tmp_path: Path, name: str, data: bytes, limit: int = LIMIT) -> Kind:
    path = tmp_path / name
    path.write_bytes(data)
    return gate.check(path, max_bytes=limit)


def test_every_sample_passes(tmp_path: Path) -> None:
    kinds = {gate.check(path, max_bytes=LIMIT) for path in samples.write_all(tmp_path)}
    assert len(kinds) == 9


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.doc", old.word_bytes(), Kind.DOC),
        ("a.xls", old.workbook_bytes(), Kind.XLS),
        ("a.ppt", old.slides_bytes(), Kind.PPT),
        ("a.msg", old.message_bytes(subject="x"), Kind.MSG),
        ("a.odt", samples.odt_bytes(), Kind.ODT),
        ("a.epub", samples.epub_bytes(), Kind.EPUB),
        ("a.zip", samples.zip_bytes({"a.txt": b"x"}), Kind.ZIP),
        ("a.rtf", samples.RTF.encode(), Kind.RTF),
        ("a.rtf", rb'{\rtf1{\field{\*\fldinst HYPERLINK "https://example.org/LINK"}}}', Kind.RTF),
        ("a.rst", samples.RST.encode(), Kind.RST),
        ("a.org", samples.ORG.encode(), Kind.ORG),
        ("a.tsv", b"a\tb\n", Kind.CSV),
    ],
)
def test_formats_that_other_readers_read_pass(tmp_path: Path, name: str, data: bytes, kind: Kind) -> None:
    assert check(tmp_path, name, data) is kind


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_known_by_their_first_bytes(tmp_path: Path, name: str) -> None:
    assert check(tmp_path, name, PICTURES[name]) is EXTENSIONS[Path(name).suffix]
    with pytest.raises(MismatchedFormat):
        check(tmp_path, name, b"%PDF-1.7")


@pytest.mark.parametrize(
    ("name", "data", "error"),
    [
        ("a.txt", b"", EmptyFile),
        ("a.txt", b" \n\t\r\n", EmptyFile),
        ("a.md", b"\xef\xbb\xbf\n", EmptyFile),
        ("a.pdf", b"<html><body>x</body></html>", MismatchedFormat),
        ("a.pdf", samples.docx_bytes(), MismatchedFormat),
        ("a.docx", b"MZ\x90\0" * 100, MismatchedFormat),
        ("a.docx", old.word_bytes(), MismatchedFormat),
        ("a.docx", old.compound_file({"EncryptedPackage": b"x"}), EncryptedFile),
        ("a.docx", OLE + b"broken", MismatchedFormat),
        ("a.doc", samples.docx_bytes(), MismatchedFormat),
        ("a.doc", b"<html><body>exported</body></html>", MismatchedFormat),
        ("a.doc", samples.RTF.encode(), MismatchedFormat),
        ("a.rtf", b"plain words", MismatchedFormat),
        ("a.zip", b"Rar!\x1a\x07", MismatchedFormat),
        ("a.txt", PICTURES["a.png"], MismatchedFormat),
        ("a.txt", b"\xca\xfe\xba\xbe", MismatchedFormat),
        ("a.txt", b"text\0with one nul and more text", MismatchedFormat),
        ("a.txt", samples.RTF.encode(), MismatchedFormat),
        ("a.csv", samples.xlsx_bytes(), MismatchedFormat),
        ("a.html", b"%PDF-1.7 ...", MismatchedFormat),
        ("a.eml", b"just words, no headers", MismatchedFormat),
        ("a.rtf", rb"{\rtf1 {\object\objemb{\*\objdata 0105}}}", ActiveContent),
        ("a.rtf", rb"{\rtf1{\*\template http://example.org/x.dot}}", ActiveContent),
        ("a.rtf", rb'{\rtf1{\field{\*\fldinst INCLUDETEXT "file:///etc/hosts"}}}', ActiveContent),
        ("a.rtf", rb"{\rtf1{\field{\*\fldinst {\rtlch\fs20 \f1 DDEAUTO c:\\x.exe}}}}", ActiveContent),
    ],
)
def test_bad_input_is_refused_by_kind(tmp_path: Path, name: str, data: bytes, error: type[IngestError]) -> None:
    with pytest.raises(error):
        check(tmp_path, name, data)


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("a.exe", UnsupportedFormat, "Save it as PDF"),
        ("mail", UnsupportedFormat, "no ending"),
        ("a.tar.gz", UnsupportedFormat, "ZIP"),
        ("a.7z", UnsupportedFormat, "ZIP"),
        ("a.xml", UnsupportedFormat, "data for programs"),
        ("a.heic", UnsupportedFormat, "PNG or JPEG"),
        ("a.json", UnsupportedFormat, "data for programs"),
        ("a.docm", ActiveContent, "macros"),
        ("A.XLSM", ActiveContent, "macros"),
    ],
)
def test_a_name_that_is_refused_says_why(name: str, error: type[IngestError], words: str) -> None:
    assert not supported(name)
    with pytest.raises(error, match=words):
        kind_of(name)


@pytest.mark.parametrize(
    ("name", "data", "found"),
    [
        ("a.doc", samples.docx_bytes(), ".docx"),
        ("a.ppt", samples.pptx_bytes(), ".pptx"),
        ("a.docx", samples.xlsx_bytes(), ".xlsx"),
        ("a.docx", old.word_bytes(), ".doc"),
        ("a.xls", old.word_bytes(), ".doc"),
        ("a.zip", samples.docx_bytes(), ".docx"),
        ("a.zip", samples.epub_bytes(), ".epub"),
        ("a.odt", samples.epub_bytes(), ".epub"),
        ("a.doc", samples.RTF.encode(), ".rtf"),
        ("a.txt", PICTURES["a.jpg"], ".jpg"),
    ],
)
def test_a_wrong_name_is_told_the_right_ending(tmp_path: Path, name: str, data: bytes, found: str) -> None:
    with pytest.raises(MismatchedFormat, match=rf"ending \{found} "):
        check(tmp_path, name, data)


def test_a_damaged_container_is_told(tmp_path: Path) -> None:
    with pytest.raises(DamagedFile):
        check(tmp_path, "a.docx", samples.docx_bytes()[:3000])
    with pytest.raises(DamagedFile):
        check(tmp_path, "a.doc", old.word_bytes()[:700])


def test_size_is_judged_before_anything_is_read(tmp_path: Path) -> None:
    path = tmp_path / "big.pdf"
    with path.open("wb") as file:
        file.truncate(200 * 1024 * 1024)
    with pytest.raises(FileTooLarge, match="200 MB"):
        gate.check(path, max_bytes=100 * 1024 * 1024)


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


def test_every_kind_has_an_ending() -> None:
    assert all(EXTENSIONS[ending(kind)] is kind for kind in Kind)


def test_an_archive_inside_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchiveBomb, match="another archive"):
        check(tmp_path, "a.zip", samples.zip_bytes({"inner.7z": b"x"}))
