"""PDF: pages, boxes, headings, hidden text, and what cannot be read."""

from pathlib import Path

import pytest

from core.errors import DamagedFile, EncryptedFile, FileTooLarge, NoText, NotFound
from ingest import pages, parse, pdf
from tests.unit.ingest.samples import Ink, pdf_bytes, policy_pdf

LIMIT = 10_000_000


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "sample.pdf"
    path.write_bytes(data)
    return path


def words(found: pdf.PdfText) -> str:
    return "\n".join(element.text for element in found.elements)


def test_headings_paragraphs_and_tables(tmp_path: Path) -> None:
    found = pdf.read_pdf(write(tmp_path, policy_pdf()))
    assert [(e.kind, e.level, e.page) for e in found.elements] == [
        ("title", 1, 1),
        ("title", 2, 1),
        ("text", 0, 1),
        ("table", 0, 1),
        ("title", 2, 2),
        ("text", 0, 2),
    ]
    assert found.elements[2].text.startswith(
        "Hotels are booked by the travel desk, which keeps a list of houses that have"
    )
    assert found.title == "Property title"
    assert found.pages == 2


def test_running_headers_and_page_numbers_go(tmp_path: Path) -> None:
    text = words(pdf.read_pdf(write(tmp_path, policy_pdf())))
    assert "internal" not in text
    assert "Page 1" not in text


def test_boxes_are_fractions_around_the_lines(tmp_path: Path) -> None:
    found = pdf.read_pdf(write(tmp_path, policy_pdf()))
    paragraph = found.elements[2]
    assert len(paragraph.boxes) == 2
    first = paragraph.boxes[0]
    assert first.page == 1
    assert first.left == pytest.approx(72 / 595, abs=0.01)
    assert first.top == pytest.approx((842 - 700) / 842, abs=0.02)
    assert 0 <= first.top < first.bottom <= paragraph.boxes[1].bottom <= 1


@pytest.mark.parametrize("rotate", [90, 180, 270])
def test_boxes_follow_a_turned_page(tmp_path: Path, rotate: int) -> None:
    data = pdf_bytes([[Ink("Turned page with words")]], rotate=rotate)
    (box,) = pdf.read_pdf(write(tmp_path, data)).elements[0].boxes
    # Straight, the text is left of the middle and near the top.
    near_top, near_left = {90: (True, False), 180: (False, False), 270: (False, True)}[rotate]
    assert (box.top < 0.5) is near_top
    assert (box.left < 0.5) is near_left


@pytest.mark.parametrize(
    "carrier",
    [
        Ink("CANARY", y=500, mode=3),
        Ink("CANARY", y=500, grey=1.0),
        Ink("CANARY", y=500, size=0.8),
        Ink("CANARY", x=-400, y=500),
    ],
    ids=["invisible", "white", "tiny", "off the page"],
)
def test_hidden_text_is_left_out_with_a_warning(tmp_path: Path, carrier: Ink) -> None:
    found = pdf.read_pdf(write(tmp_path, pdf_bytes([[Ink("Visible words of a longer line."), carrier]])))
    assert words(found) == "Visible words of a longer line."
    assert found.warnings == ("Hidden text was left out on page 1.",)


def test_the_text_layer_of_a_scan_stays(tmp_path: Path) -> None:
    found = pdf.read_pdf(write(tmp_path, pdf_bytes([[Ink("Recognised words", mode=3)]])))
    assert words(found) == "Recognised words"


def test_pages_without_text_are_named(tmp_path: Path) -> None:
    found = pdf.read_pdf(write(tmp_path, pdf_bytes([[Ink("Words on a page.")], [], [], [Ink("More words.")], []])))
    assert found.warnings == ("No text on pages 2-3, 5: blank or scanned. What is shown there cannot be found.",)
    with pytest.raises(NoText, match="pages 1-2"):
        pdf.read_pdf(write(tmp_path, pdf_bytes([[], []])))


def test_a_password_is_told(tmp_path: Path) -> None:
    with pytest.raises(EncryptedFile):
        pdf.read_pdf(write(tmp_path, pdf_bytes([[Ink("Secret")]], password="open sesame")))


def test_an_empty_password_is_no_obstacle(tmp_path: Path) -> None:
    assert words(pdf.read_pdf(write(tmp_path, pdf_bytes([[Ink("Readable words")]], password="")))) == "Readable words"


@pytest.mark.parametrize("data", [b"%PDF-1.7\nrubbish", policy_pdf()[:200], b"%PDF-1.4\n" + b"\0" * 5000])
def test_damage_is_told(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(DamagedFile):
        parse.parse(write(tmp_path, data), max_bytes=LIMIT)


def test_too_many_pages_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "MAX_PAGES", 1)
    with pytest.raises(FileTooLarge):
        pdf.read_pdf(write(tmp_path, policy_pdf()))


def test_too_much_text_is_refused_whatever_pages_it_is_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, pdf_bytes([[Ink("words" * 4)], [Ink("words" * 4)]]))
    monkeypatch.setattr(pdf, "MAX_CHARACTERS", 30)
    with pytest.raises(FileTooLarge):
        pdf.read_pdf(path)


def test_a_page_becomes_a_picture_of_the_asked_width(tmp_path: Path) -> None:
    path = write(tmp_path, policy_pdf())
    png = pages.render(path, 2, 300)
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") == 300
    assert int.from_bytes(pages.render(path, 1, 10**9)[16:20], "big") == pages.MAX_WIDTH


@pytest.mark.parametrize("page", [0, 3, -1])
def test_a_page_that_is_not_there(tmp_path: Path, page: int) -> None:
    with pytest.raises(NotFound):
        pages.render(write(tmp_path, policy_pdf()), page, 300)
