"""Books: chapters in reading order, with the style sheets that may hide their text."""

import pytest

from core.errors import DamagedFile, FileTooLarge
from ingest import book
from tests.unit.ingest import samples


def package(manifest: str, spine: str) -> bytes:
    return (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title> Staff  handbook </dc:title></metadata><manifest>{manifest}</manifest>"
        f"<spine>{spine}</spine></package>"
    ).encode()


def test_chapters_come_in_reading_order_without_the_contents() -> None:
    listed = package(
        '<item id="b" href="text/b%20b.xhtml"/><item id="a" href="a.xhtml"/>'
        '<item id="n" href="n.xhtml" properties="nav"/>',
        '<itemref idref="n"/><itemref idref="a"/><itemref idref="b"/><itemref idref="gone"/>',
    )
    chapters = {"a.xhtml": b"<p>A</p>", "text/b b.xhtml": b"<?xml version='1.0'?><p>B</p>", "n.xhtml": b"contents"}
    found = book.read_book(samples.epub_bytes(parts={"book.opf": listed, **chapters}))
    assert found == book.Book("Staff handbook", ("<p>A</p>", "<p>B</p>"))


def test_listed_chapters_that_are_not_there_are_counted() -> None:
    listed = package(
        '<item id="a" href="one.xhtml"/><item id="b" href="two.xhtml"/>', '<itemref idref="a"/><itemref idref="b"/>'
    )
    assert book.read_book(samples.epub_bytes(parts={"book.opf": listed})).missing == 1


def test_style_sheets_are_put_into_the_chapter() -> None:
    chapter = b'<html><head><link rel="stylesheet" href="s.css"/></head><body><p class="x">hidden</p></body></html>'
    parts = {"one.xhtml": chapter, "s.css": b".x{display:none}</style>"}
    (text,) = book.read_book(samples.epub_bytes(parts=parts)).chapters
    assert "<style>.x{display:none}/style></style></head>" in text


@pytest.mark.parametrize("parts", [{"book.opf": b"<broken"}, {"META-INF/container.xml": b"<container/>"}])
def test_a_book_without_its_list_is_damaged(parts: dict[str, bytes]) -> None:
    with pytest.raises(DamagedFile):
        book.read_book(samples.epub_bytes(parts=parts))


def test_a_book_of_too_much_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "MAX_CHARACTERS", 100)
    with pytest.raises(FileTooLarge):
        book.read_book(samples.epub_bytes())
