"""PDF: pages, boxes, headings, hidden text, and what cannot be read."""

import ctypes
from pathlib import Path

import pypdfium2
import pypdfium2.raw as raw
import pytest

from core.errors import DamagedFile, EncryptedFile, FileTooLarge, NoText
from ingest import parse, pdf
from ingest.chunking import chunk
from ingest.options import ParseOptions
from ingest.paged import PagedText
from tests.unit.ingest.samples import Ink, pdf_bytes, policy_pdf

WITHOUT_OCR = ParseOptions(ocr=False)


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "sample.pdf"
    path.write_bytes(data)
    return path


def read(path: Path) -> PagedText:
    return pdf.read_pdf(path, WITHOUT_OCR)


def words(found: PagedText) -> str:
    return "\n".join(element.text for element in found.elements)


def test_headings_paragraphs_and_tables(tmp_path: Path) -> None:
    found = read(write(tmp_path, policy_pdf()))
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


LEFT = ["The employer grants leave to all who have", "worked for six months, counted from the", "first day of the"]
LEFT += ["contract, and adds one day for each year", "of service. Leave is agreed with the own"]
RIGHT = ["manager in writing and is entered by the", "office within three days after it has been", "given to"]
RIGHT += ["the employee. Leave not taken by March is", "lost, unless illness or work prevented it."]


@pytest.mark.parametrize("across", [True, False], ids=["line by line", "column by column"])
def test_two_columns_are_read_one_after_the_other(tmp_path: Path, across: bool) -> None:
    left = [Ink(text, x=60, y=700 - 13 * n, size=10) for n, text in enumerate(LEFT)]
    right = [Ink(text, x=310, y=700 - 13 * n, size=10) for n, text in enumerate(RIGHT)]
    inks = [ink for pair in zip(left, right, strict=True) for ink in pair] if across else [*left, *right]
    found = read(write(tmp_path, pdf_bytes([[Ink("Leave", x=60, y=740, size=18), *inks]])))
    assert words(found) == "Leave\n" + " ".join([*LEFT, *RIGHT])
    assert [box.left < 0.5 for box in found.elements[1].boxes] == [True] * 5 + [False] * 5


def test_a_table_over_two_pages_names_its_cells_in_every_chunk(tmp_path: Path) -> None:
    def row(cells: list[str], y: int, *, bold: bool = False) -> list[Ink]:
        return [Ink(text, x=72 + 150 * n, y=y, bold=bold) for n, text in enumerate(cells)]

    cities = [[f"City number {n}", f"Grade {n % 3}", f"{100 + n} EUR"] for n in range(40)]
    head = [Ink("Hotel caps", y=760, size=18), *row(["City", "Grade", "Cap"], 720, bold=True)]
    first = [ink for n, cells in enumerate(cells for cells in cities[:25]) for ink in row(cells, 700 - 20 * n)]
    second = [ink for n, cells in enumerate(cells for cells in cities[25:]) for ink in row(cells, 700 - 20 * n)]
    path = write(tmp_path, pdf_bytes([[*head, *first], second]))
    chunks = chunk(parse.parse(path, options=WITHOUT_OCR))
    rows = [line for piece in chunks for line in piece.text.splitlines()]
    assert rows == [f"City: {city} | Grade: {grade} | Cap: {cap}" for city, grade, cap in cities]
    assert len(chunks) > 3
    assert {piece.kind for piece in chunks} == {"table"}
    for piece in chunks:
        assert piece.page == (1 if cities.index(_cells(piece.text)) < 25 else 2)
        assert {box.page for box in piece.boxes} <= {piece.page, 2}


def _cells(text: str) -> list[str]:
    return [cell.partition(": ")[2] for cell in text.splitlines()[0].split(" | ")]


def test_running_headers_and_page_numbers_go(tmp_path: Path) -> None:
    text = words(read(write(tmp_path, policy_pdf())))
    assert "internal" not in text
    assert "Page 1" not in text


def test_boxes_are_fractions_around_the_lines(tmp_path: Path) -> None:
    found = read(write(tmp_path, policy_pdf()))
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
    (box,) = read(write(tmp_path, data)).elements[0].boxes
    # Straight, the text is left of the middle and near the top.
    near_top, near_left = {90: (True, False), 180: (False, False), 270: (False, True)}[rotate]
    assert (box.top < 0.5) is near_top
    assert (box.left < 0.5) is near_left


HIDDEN = {
    "invisible": Ink("CANARY", y=500, mode=3),
    "white": Ink("CANARY", y=500, grey=1.0),
    "nearly white": Ink("CANARY", y=500, grey=0.95),
    "tiny": Ink("CANARY", y=500, size=0.8),
    "left of the page": Ink("CANARY", x=-400, y=500),
    "above the page": Ink("CANARY", y=900),
}


@pytest.mark.parametrize("carrier", HIDDEN.values(), ids=HIDDEN)
@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
def test_hidden_text_is_left_out_and_counted(tmp_path: Path, carrier: Ink, rotate: int) -> None:
    seen = Ink("Visible words of a longer line.")
    found = read(write(tmp_path, pdf_bytes([[seen], [seen, carrier]], rotate=rotate)))
    assert words(found) == "Visible words of a longer line.\nVisible words of a longer line."
    assert [(w.code, w.count, w.pages) for w in found.warnings] == [("hidden_text", 1, (2,))]


def test_pieces_of_hidden_text_are_counted_apart(tmp_path: Path) -> None:
    line = [Ink("seen", y=700), Ink("hidden words", y=680, mode=3), Ink("seen", y=660), Ink("more", y=640, mode=3)]
    found = read(write(tmp_path, pdf_bytes([[*line, Ink("A line that is there to be read.", y=500)]])))
    assert [warning.count for warning in found.warnings] == [2]


def test_white_text_on_a_dark_ground_is_seen(tmp_path: Path) -> None:
    page = [Ink("Words in white on black", y=500, grey=1.0)]
    found = read(write(tmp_path, pdf_bytes([page], picture=(0, 0, 595, 842), shade=20)))
    assert words(found) == "Words in white on black"
    assert not found.warnings


WHOLE, CORNER = (0, 0, 595, 842), (0, 0, 200, 200)


def test_the_text_layer_of_a_scan_stays(tmp_path: Path) -> None:
    page = [Ink(f"Recognised words of line {n}, enough of them to count.", y=700 - 20 * n, mode=3) for n in range(4)]
    found = read(write(tmp_path, pdf_bytes([page], picture=WHOLE)))
    assert words(found).startswith("Recognised words of line 0")
    assert not found.warnings


@pytest.mark.parametrize("picture", [None, CORNER], ids=["no picture", "a small one"])
def test_invisible_text_beside_a_picture_is_hidden(tmp_path: Path, picture: tuple[int, ...] | None) -> None:
    page = [Ink("Words that are drawn nowhere on this page", mode=3)]
    found = read(write(tmp_path, pdf_bytes([[Ink("A first page.")], page], picture=picture)))
    assert words(found) == "A first page."
    assert "hidden_text" in [warning.code for warning in found.warnings]


def test_invisible_text_mixed_with_visible_is_hidden_also_on_a_picture(tmp_path: Path) -> None:
    page = [Ink("Words on a picture", y=600), Ink("CANARY", y=500, mode=3)]
    found = read(write(tmp_path, pdf_bytes([page], picture=WHOLE)))
    assert words(found) == "Words on a picture"


def test_text_written_upwards_is_read_and_its_boxes_lie_where_it_is_shown(tmp_path: Path) -> None:
    page = [Ink("Upwards along the left edge", x=60, y=100, turn=90), Ink("and a second line.", x=74, y=100, turn=90)]
    (element,) = read(write(tmp_path, pdf_bytes([page]))).elements
    assert element.text == "Upwards along the left edge and a second line."
    first, second = element.boxes
    assert first.left < second.left < 0.2
    assert first.bottom == pytest.approx((842 - 100) / 842, abs=0.01)
    assert first.bottom - first.top > 3 * (first.right - first.left)


def annotated(path: Path, words: str, *, hidden: bool) -> None:
    """Put a stamp with words on the first page."""
    document = pypdfium2.PdfDocument(path)
    page = document[0]
    note = raw.FPDFPage_CreateAnnot(page.raw, raw.FPDF_ANNOT_STAMP)
    raw.FPDFAnnot_SetRect(note, raw.FS_RECTF(left=70, top=520, right=400, bottom=480))
    text = raw.FPDFPageObj_NewTextObj(document.raw, b"Helvetica", 12)
    raw.FPDFText_SetText(text, ctypes.cast(ctypes.create_string_buffer((words + "\0").encode("utf-16-le")),
                                           ctypes.POINTER(ctypes.c_ushort)))  # fmt: skip
    raw.FPDFPageObj_Transform(text, 1, 0, 0, 1, 72, 490)
    raw.FPDFAnnot_AppendObject(note, text)
    raw.FPDFAnnot_SetFlags(note, raw.FPDF_ANNOT_FLAG_HIDDEN if hidden else raw.FPDF_ANNOT_FLAG_PRINT)
    raw.FPDFPage_CloseAnnot(note)
    page.close()
    document.save(path)
    document.close()


def test_what_is_written_on_top_of_a_page_is_read_unless_it_is_hidden(tmp_path: Path) -> None:
    path = write(tmp_path, pdf_bytes([[Ink("Approved by the board.")]]))
    annotated(path, "On 5 May 2026.", hidden=False)
    assert words(read(path)) == "Approved by the board.\nOn 5 May 2026."
    annotated(path, "CANARY", hidden=True)
    assert "CANARY" not in words(read(path))


def test_pages_without_text_are_named(tmp_path: Path) -> None:
    full, empty = [Ink("Words on a page.")], list[Ink]()
    found = read(write(tmp_path, pdf_bytes([full, empty, empty, full], picture=CORNER)))
    assert [(w.code, w.pages) for w in found.warnings] == [("page_without_text", (2, 3))]
    with pytest.raises(NoText, match="pages 1-2, only a picture of it"):
        read(write(tmp_path, pdf_bytes([empty, empty], picture=CORNER)))


def test_blank_pages_need_no_words(tmp_path: Path) -> None:
    assert not read(write(tmp_path, pdf_bytes([[Ink("Words on a page.")], []]))).warnings
    with pytest.raises(NoText, match="blank"):
        read(write(tmp_path, pdf_bytes([[], []])))


def test_a_text_layer_that_says_nothing_is_told(tmp_path: Path) -> None:
    shifted = [Ink("7KLV LV D OLQH WKDW QR RQH FDQ UHDG", y=700 - 20 * n) for n in range(4)]
    found = read(write(tmp_path, pdf_bytes([shifted, [Ink("A page that can be read.")]])))
    assert [(w.code, w.pages) for w in found.warnings] == [("text_garbled", (1,))]


def test_a_password_is_told(tmp_path: Path) -> None:
    with pytest.raises(EncryptedFile):
        read(write(tmp_path, pdf_bytes([[Ink("Secret")]], password="open sesame")))


def test_an_empty_password_is_no_obstacle(tmp_path: Path) -> None:
    assert words(read(write(tmp_path, pdf_bytes([[Ink("Readable words")]], password="")))) == "Readable words"


@pytest.mark.parametrize("data", [b"%PDF-1.7\nrubbish", policy_pdf()[:200], b"%PDF-1.4\n" + b"\0" * 5000])
def test_damage_is_told(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(DamagedFile):
        parse.parse(write(tmp_path, data), options=WITHOUT_OCR)


def test_too_many_pages_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "MAX_PAGES", 1)
    with pytest.raises(FileTooLarge):
        read(write(tmp_path, policy_pdf()))


def test_too_much_text_is_refused_whatever_pages_it_is_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, pdf_bytes([[Ink("words" * 4)], [Ink("words" * 4)]]))
    monkeypatch.setattr(pdf, "MAX_CHARACTERS", 30)
    with pytest.raises(FileTooLarge):
        read(path)
