"""ZIP containers: bombs, protection, and content that would load or run something."""

import zipfile
from pathlib import Path

import pytest

from core.errors import ActiveContent, ArchiveBomb, DamagedFile, EncryptedFile, IngestError, MismatchedFormat
from ingest import containers
from ingest.kinds import Kind
from tests.unit.ingest import samples

DOCUMENT = "word/_rels/document.xml.rels"
SETTINGS = "word/_rels/settings.xml.rels"
DOCX, XLSX = samples.docx_bytes(), samples.xlsx_bytes()


def check(tmp_path: Path, data: bytes, kind: Kind = Kind.DOCX) -> None:
    containers.check(written(tmp_path, data), kind)


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "file"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (samples.zip_bytes({"hello.txt": b"x"}), MismatchedFormat),
        (samples.with_part(DOCX, "word/vbaProject.bin", b"x"), ActiveContent),
        (samples.with_part(DOCX, "word/activeX/activeX1.xml", b"<x/>"), ActiveContent),
        (samples.with_part(DOCX, "word/inner.zip", b"x"), ArchiveBomb),
        (samples.with_part(DOCX, "word/e.xml", b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'), DamagedFile),
        (samples.with_part(DOCX, "word/e.xml", '<!DOCTYPE a SYSTEM "file:///x">'.encode("utf-16")), DamagedFile),
        (samples.with_part(DOCX, DOCUMENT, b"<Relationships"), DamagedFile),
        (samples.with_link(DOCX, SETTINGS, "attachedTemplate", "https://example.org/x.dotm"), ActiveContent),
        (samples.with_link(DOCX, SETTINGS, "attachedTemplate", r"\\server\x.dotm"), ActiveContent),
        (samples.with_link(DOCX, SETTINGS, "attachedTemplate", "file://server/x.dotm"), ActiveContent),
        (samples.with_link(DOCX, SETTINGS, "attachedTemplate", "file:////server/x.dotm"), ActiveContent),
        (samples.with_link(DOCX, DOCUMENT, "image", "http://example.org/x.png"), ActiveContent),
        (samples.with_link(DOCX, DOCUMENT, "oleObject", "file:///x.xlsx"), ActiveContent),
        (samples.with_link(DOCX, DOCUMENT, "oleObject", "embeddings/oleObject1.bin", outside=False), ActiveContent),
        (samples.with_link(DOCX, DOCUMENT, "package", "embeddings/x.bin", outside=False), ActiveContent),
        (samples.with_link(DOCX, DOCUMENT, "frame", "http://example.org/"), ActiveContent),
    ],
)
def test_office_files_are_refused_by_kind(tmp_path: Path, data: bytes, error: type[IngestError]) -> None:
    with pytest.raises(error):
        check(tmp_path, data)


@pytest.mark.parametrize(
    "data",
    [
        samples.with_link(DOCX, DOCUMENT, "hyperlink", "https://example.org/"),
        samples.with_link(DOCX, SETTINGS, "attachedTemplate", "file:///C:/Templates/letter.dotx"),
        samples.with_link(DOCX, SETTINGS, "attachedTemplate", r"C:\Templates\letter.dotx"),
        samples.with_link(DOCX, SETTINGS, "attachedTemplate", "Normal.dotm"),
        samples.with_link(DOCX, SETTINGS, "attachedTemplate", "/Users/me/letter.dotx"),
    ],
)
def test_ordinary_links_are_no_harm(tmp_path: Path, data: bytes) -> None:
    check(tmp_path, data)
    assert containers.remarks(data, 100) == []


def test_what_is_not_in_the_file_is_told(tmp_path: Path) -> None:
    linked = samples.with_link(XLSX, "xl/externalLinks/_rels/l.xml.rels", "externalLinkPath", "file:///other.xlsx")
    check(tmp_path, linked, Kind.XLSX)
    assert [(w.code, w.count) for w in containers.remarks(linked, 100)] == [("external_links", 1)]


def test_embedded_documents_are_told_but_not_the_workbook_of_a_chart() -> None:
    chart = samples.with_link(
        DOCX, "word/charts/_rels/chart1.xml.rels", "package", "../embeddings/a.xlsx", outside=False
    )
    assert containers.remarks(chart, 100) == []
    embedded = samples.with_link(DOCX, DOCUMENT, "package", "embeddings/a.xlsx", outside=False)
    assert [(w.code, w.count) for w in containers.remarks(embedded, 100)] == [("embedded_files", 1)]


def test_a_document_of_pictures_with_little_text_is_told() -> None:
    data = samples.with_part(samples.with_part(DOCX, "word/media/1.png", b"x" * 40_000), "word/media/2.png", b"logo")
    assert [(w.code, w.count) for w in containers.remarks(data, 299)] == [("pictures_unread", 1)]
    assert containers.remarks(data, 300) == []


@pytest.mark.parametrize(
    "parts",
    [
        {"word/big.xml": b"<a>" + b" " * 5_000_000},
        {f"word/part{n}.txt": b"" for n in range(containers.MAX_ENTRIES + 1)},
    ],
    ids=["ratio", "entries"],
)
def test_archive_bombs(tmp_path: Path, parts: dict[str, bytes]) -> None:
    with pytest.raises(ArchiveBomb):
        check(tmp_path, samples.zip_bytes({"[Content_Types].xml": b"<x/>"} | parts))


def test_a_large_xml_part_and_a_large_total_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "MAX_XML_PART", 100)
    with pytest.raises(ArchiveBomb):
        check(tmp_path, DOCX)
    monkeypatch.undo()
    monkeypatch.setattr(containers, "MAX_UNPACKED", 1000)
    with pytest.raises(ArchiveBomb):
        check(tmp_path, DOCX)


def test_overlapping_entries_are_a_bomb(tmp_path: Path) -> None:
    path = written(tmp_path, DOCX)
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    with pytest.raises(ArchiveBomb):
        containers._check_listing(entries * 20, path.stat().st_size)


def test_two_parts_of_one_name_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, DOCX)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("Word/Document.xml", b"<other/>")
    with pytest.raises(DamagedFile):
        containers.check(path, Kind.DOCX)


@pytest.mark.parametrize("kind", [Kind.DOCX, Kind.ZIP])
def test_an_encrypted_entry_is_told(tmp_path: Path, kind: Kind) -> None:
    data = bytearray(samples.zip_bytes({"[Content_Types].xml": b"x"}))
    directory = data.index(b"PK\x01\x02")
    data[6] |= 1
    data[directory + 8] |= 1
    with pytest.raises(EncryptedFile):
        check(tmp_path, bytes(data), kind)


# --- OpenDocument and EPUB --------------------------------------------------------------------------------------------

IMAGE = '<text:p><draw:frame><draw:image xlink:href="{}"/></draw:frame></text:p>'


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (samples.odt_bytes(manifest="<manifest:encryption-data/>"), EncryptedFile),
        (samples.odt_bytes(parts={"Basic/Standard/Module1.xml": b"<x/>"}), ActiveContent),
        (samples.odt_bytes(parts={"Scripts/python/x.py": b"x"}), ActiveContent),
        (samples.odt_bytes(manifest="<!--application/vnd.sun.star.oleobject-->"), ActiveContent),
        (samples.odt_bytes(IMAGE.format("http://example.org/x.png")), ActiveContent),
        (samples.odt_bytes(IMAGE.format("file:///etc/hosts")), ActiveContent),
        (samples.odt_bytes(IMAGE.format("../outside.png")), ActiveContent),
        (samples.odt_bytes("<broken"), DamagedFile),
        (samples.odt_bytes(parts={"content.xml": b'<!DOCTYPE a [<!ENTITY b "c">]><a/>'}), DamagedFile),
        (
            samples.odt_bytes('<text:section><text:section-source xlink:href="/etc/hosts"/></text:section>'),
            ActiveContent,
        ),
    ],
)
def test_opendocument_is_refused_by_kind(tmp_path: Path, data: bytes, error: type[IngestError]) -> None:
    with pytest.raises(error):
        check(tmp_path, data, Kind.ODT)


def test_packaged_pictures_and_links_of_opendocument_are_no_harm(tmp_path: Path) -> None:
    link = '<text:p><text:a xlink:href="https://example.org/">x</text:a></text:p>'
    check(tmp_path, samples.odt_bytes(IMAGE.format("Pictures/1.png") + IMAGE.format("./Object 1") + link), Kind.ODT)


def test_a_protected_book_is_told_but_obscured_fonts_are_no_protection(tmp_path: Path) -> None:
    listed = '<encryption><EncryptedData><EncryptionMethod Algorithm="{}"/></EncryptedData></encryption>'
    fonts = {"META-INF/encryption.xml": listed.format("http://www.idpf.org/2008/embedding").encode()}
    check(tmp_path, samples.epub_bytes(parts=fonts), Kind.EPUB)
    text = {"META-INF/encryption.xml": listed.format("http://www.w3.org/2001/04/xmlenc#aes128-cbc").encode()}
    with pytest.raises(EncryptedFile):
        check(tmp_path, samples.epub_bytes(parts=text), Kind.EPUB)


def test_a_book_that_declares_entities_is_refused(tmp_path: Path) -> None:
    bomb = {"two.xhtml": b'<!DOCTYPE html [<!ENTITY a "b">]><html/>'}
    with pytest.raises(DamagedFile):
        check(tmp_path, samples.epub_bytes(parts=bomb), Kind.EPUB)
