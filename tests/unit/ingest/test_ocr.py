"""Scanned pages: when pictures are read, what comes of Tesseract's table, and what is told about it."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from core.errors import DamagedFile, MissingConverter, NoText, ParserStopped
from ingest import ocr, pdf, programs
from ingest.ocr import Reader, blank
from ingest.options import ParseOptions
from ingest.paged import PagedText
from ingest.pdf_layout import elements_of
from tests.unit.ingest.samples import Ink, pdf_bytes

HEAD = "level page block par line word left top width height conf text".replace(" ", "\t")
OPTIONS = ParseOptions()
GREY = Image.new("L", (2480, 3508), 255)


def table(*lines: Sequence[tuple[str, int, int, int, int]], conf: float = 95.0) -> bytes:
    """Tesseract's table for lines of words: text, left, top, width, height."""
    rows = [HEAD, "1\t1\t0\t0\t0\t0\t0\t0\t2480\t3508\t-1\t"]
    for number, words in enumerate(lines, start=1):
        for at, (text, *box) in enumerate(words, start=1):
            rows.append("\t".join(map(str, (5, 1, 1, 1, number, at, *box, conf, text))))
    return "\n".join(rows).encode()


def line(text: str, top: int, left: int = 300) -> list[tuple[str, int, int, int, int]]:
    """Words side by side, 20 pixels a letter, their height as their letters have it at 48 pixels."""
    words = []
    for word in text.split():
        height = 25 + 10 * any(c in "bdfhkltABCDEFGHIT0123456789" for c in word) + 10 * any(c in "gjpqy," for c in word)
        words.append((word, left, top + 45 - height, 20 * len(word), height))
        left += 20 * len(word) + 14
    return words


class Tesseract:
    """Answers in place of the program: `tables` one after the other, and keeps what it was asked."""

    def __init__(self, *tables: bytes | Exception, languages: str = "eng\nchi_sim\nosd") -> None:
        self.tables = list(tables)
        self.languages = languages
        self.asked: list[Sequence[str]] = []
        self.sizes: list[tuple[int, int]] = []

    def run(self, argv: Sequence[str], *, timeout: float, cwd: Path) -> bytes:
        assert timeout > 0
        if "--list-langs" in argv:
            return self.languages.encode()
        self.asked.append(argv)
        with Image.open(cwd / argv[1]) as picture:
            self.sizes.append(picture.size)
        answer = self.tables.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def tesseract(monkeypatch: pytest.MonkeyPatch) -> Tesseract:
    fake = Tesseract()
    monkeypatch.setattr(programs, "run", fake.run)
    return fake


def scanned(tmp_path: Path, pages: Sequence[Sequence[Ink]], options: ParseOptions = OPTIONS) -> PagedText:
    path = tmp_path / "scan.pdf"
    path.write_bytes(pdf_bytes(pages, picture=(50, 50, 400, 700), shade=90))
    return pdf.read_pdf(path, options)


def texts(tables: bytes) -> list[str]:
    scan = ocr._scan(ocr._words(tables.decode()), 1, GREY)
    assert scan is not None
    return [element.text for element in elements_of([scan.page])]


PARAGRAPH = [
    line("Hotels are booked by the travel desk, which keeps a list of houses that have", 500),
    line("agreed to our prices.", 570),
]


# --- Tesseract's table ------------------------------------------------------------------------------------------------


def test_lines_of_words_become_paragraphs_with_boxes_and_a_confidence() -> None:
    scan = ocr._scan(ocr._words(table(*PARAGRAPH, conf=90.0).decode()), 3, GREY)
    assert scan is not None
    assert scan.confidence == 0.9
    (element,) = elements_of([scan.page])
    assert element.text.endswith("houses that have agreed to our prices.")
    assert element.page == 3
    first, second = element.boxes
    assert first.left == pytest.approx(300 / 2480, abs=0.001)
    assert first.top == pytest.approx(500 / 3508, abs=0.001)
    assert second.top == pytest.approx(570 / 3508, abs=0.005)


def test_no_blanks_between_chinese_characters() -> None:
    words = [
        ("员工", 300, 500, 90, 45),
        ("每年", 410, 500, 90, 45),
        ("，", 505, 500, 20, 45),
        ("享有", 560, 500, 90, 45),
    ]
    assert texts(table(words)) == ["员工每年，享有"]


def test_blanks_beside_latin_text_stay_where_they_are_wide() -> None:
    words = [("共", 300, 500, 45, 45), ("10", 350, 500, 40, 35), ("天", 395, 500, 45, 45), ("IT", 480, 500, 40, 35)]
    assert texts(table(words)) == ["共10天 IT"]


def test_words_far_apart_are_cells_and_rules_part_them_too() -> None:
    rows = [
        [*line("City", 500), *line("Grade", 500, 800), *line("Cap", 500, 1300)],
        [*line("Berlin", 580), *line("A", 580, 800), *line("180 EUR", 580, 1300)],
        [("Shanghai", 300, 660, 160, 45), ("|", 500, 655, 4, 60), ("B", 520, 660, 20, 35), *line("550 CNY", 660, 1300)],
    ]
    (grid,) = texts(table(*rows))
    assert grid.splitlines()[0] == "City: Berlin | Grade: A | Cap: 180 EUR"
    assert "|" not in [cell.strip() for cell in grid.splitlines()[1].split(" | ")]


def test_a_bullet_taken_for_a_stop_is_a_bullet() -> None:
    assert texts(table([("。", 300, 500, 12, 12), *line("Book early", 500, 350)])) == ["• Book early"]


def test_larger_lines_are_headings_and_small_differences_none() -> None:
    head = [(word, left, 300, width, 80) for word, left, _, width, _ in line("Travel policy", 300)]
    scan = ocr._scan(ocr._words(table(head, *PARAGRAPH).decode()), 1, GREY)
    assert scan is not None
    assert [element.kind for element in elements_of([scan.page])] == ["title", "text"]


def test_specks_are_left_out() -> None:
    noise = table([("~:", 900, 2000, 30, 20)], conf=12.0).decode()
    assert ocr._scan(ocr._words(noise), 1, GREY) is None
    assert ocr._scan([], 1, GREY) is None


# --- which pages are read ---------------------------------------------------------------------------------------------


def test_only_pages_without_a_usable_text_layer_are_read(tmp_path: Path, tesseract: Tesseract) -> None:
    tesseract.tables = [table(*PARAGRAPH), table(*PARAGRAPH)]
    good = [Ink(f"Line {n} of a page that was written on a computer.", y=700 - 20 * n) for n in range(5)]
    junk = [Ink("7KLV LV D OLQH WKDW QR RQH FDQ UHDG", y=700 - 20 * n) for n in range(5)]
    found = scanned(tmp_path, [good, [], junk])
    assert len(tesseract.asked) == 2
    assert found.confidence == {2: 0.95, 3: 0.95}
    assert "7KLV" not in "".join(element.text for element in found.elements)
    assert [(w.code, w.pages) for w in found.warnings] == [("ocr_used", (2, 3))]


def test_a_stamp_on_a_scan_is_no_text_layer(tmp_path: Path, tesseract: Tesseract) -> None:
    tesseract.tables = [table(*PARAGRAPH)]
    found = scanned(tmp_path, [[Ink("Received 5 May", y=820)]])
    assert list(found.confidence) == [1]


def test_junk_stays_where_the_picture_says_less(tmp_path: Path, tesseract: Tesseract) -> None:
    tesseract.tables = [table(*PARAGRAPH, conf=40.0), b""]
    junk = [Ink("7KLV LV D OLQH WKDW QR RQH FDQ UHDG", y=700 - 20 * n) for n in range(5)]
    found = scanned(tmp_path, [junk])
    assert not found.confidence
    assert [warning.code for warning in found.warnings] == ["text_garbled"]


def test_blank_pages_are_not_read(tmp_path: Path, tesseract: Tesseract) -> None:
    path = tmp_path / "blank.pdf"
    path.write_bytes(pdf_bytes([[], [Ink("Words that need no picture.")]]))
    assert not pdf.read_pdf(path, OPTIONS).warnings
    assert not tesseract.asked


def test_what_shows_nothing_is_blank() -> None:
    assert blank(Image.new("L", (1000, 1000), 255))
    assert blank(Image.new("L", (1000, 1000), 30))
    spotted = Image.new("L", (1000, 1000), 250)
    ImageDraw.Draw(spotted).rectangle((10, 10, 14, 14), fill=0)
    assert blank(spotted)
    ImageDraw.Draw(spotted).rectangle((10, 10, 90, 20), fill=120)
    assert not blank(spotted)


def test_a_hostile_page_size_makes_no_huge_picture(tmp_path: Path, tesseract: Tesseract) -> None:
    tesseract.tables = [table(*PARAGRAPH)]
    data = pdf_bytes([[]], picture=(50, 50, 4000, 9000), shade=90)
    path = tmp_path / "huge.pdf"
    path.write_bytes(data.replace(b"[0 0 595 842]", b"[0 0 9e3 14400]".replace(b"9e3", b"999")))
    pdf.read_pdf(path, OPTIONS)
    ((width, height),) = tesseract.sizes
    assert width * height <= ocr.MAX_PIXELS + ocr.MAX_SIDE
    assert max(width, height) <= ocr.MAX_SIDE + 1


# --- turned pictures --------------------------------------------------------------------------------------------------


def test_a_scan_that_lies_on_its_side_is_turned_and_its_boxes_lie_where_it_is_shown(tesseract: Tesseract) -> None:
    tesseract.tables = [table(*PARAGRAPH, conf=30.0), b"Orientation in degrees: 270\nRotate: 90\n", table(*PARAGRAPH)]
    scan = Reader(OPTIONS).read(GREY, 1)
    assert scan is not None
    assert (scan.confidence, scan.page.turned) == (0.95, 90)
    assert tesseract.sizes == [(2480, 3508), (2480, 3508), (3508, 2480)]
    box = elements_of([scan.page])[0].boxes[0]
    # Near the top left once turned clockwise: near the bottom left as it lies.
    assert box.left < 0.5 < box.bottom


def test_a_turn_that_does_not_help_is_taken_back(tesseract: Tesseract) -> None:
    tesseract.tables = [table(*PARAGRAPH, conf=50.0), b"Rotate: 180\n", table(*PARAGRAPH, conf=45.0)]
    scan = Reader(OPTIONS).read(GREY, 1)
    assert scan is not None
    assert (scan.confidence, scan.page.turned) == (0.5, 0)


def test_words_that_stand_on_end_are_turned_however_sure(tesseract: Tesseract) -> None:
    standing = [("Hotels", 300, 300, 45, 160), ("booked", 300, 500, 45, 160)]
    tesseract.tables = [table(standing, conf=97.0), b"Rotate: 270\n", table(*PARAGRAPH)]
    scan = Reader(OPTIONS).read(GREY, 1)
    assert scan is not None
    assert (scan.confidence, scan.page.turned) == (0.95, 270)


@pytest.mark.parametrize("answers", [(DamagedFile(),), (ParserStopped(),), (b"Rotate: 90\n", ParserStopped())])
def test_an_orientation_that_is_not_found_in_time_changes_nothing(
    tesseract: Tesseract, answers: tuple[bytes | Exception, ...]
) -> None:
    tesseract.tables = [table(*PARAGRAPH, conf=50.0), *answers]
    scan = Reader(OPTIONS).read(GREY, 1)
    assert scan is not None
    assert scan.confidence == 0.5


# --- what is told -----------------------------------------------------------------------------------------------------


def test_low_confidence_is_told_by_page(tmp_path: Path, tesseract: Tesseract) -> None:
    tesseract.tables = [table(*PARAGRAPH), table(*PARAGRAPH, conf=55.0), DamagedFile()]
    found = scanned(tmp_path, [[], []])
    assert [(w.code, w.pages) for w in found.warnings] == [("ocr_used", (1, 2)), ("ocr_low_confidence", (2,))]


def test_without_tesseract_the_other_pages_are_read_and_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: object, **__: object) -> bytes:
        raise MissingConverter("Tesseract is not installed.")

    monkeypatch.setattr(programs, "run", absent)
    written = [Ink(f"Line {n} of a page that was written on a computer.", y=700 - 20 * n) for n in range(5)]
    found = scanned(tmp_path, [written, []])
    assert [(w.code, w.pages) for w in found.warnings] == [("ocr_unavailable", (2,)), ("page_without_text", (2,))]
    assert "Tesseract is not installed" in found.warnings[0].text
    with pytest.raises(NoText, match="Tesseract is not installed"):
        scanned(tmp_path, [[], []])


def test_missing_languages_are_told_and_the_others_used(tmp_path: Path, tesseract: Tesseract) -> None:
    tesseract.languages, tesseract.tables = "eng", [table(*PARAGRAPH)]
    found = scanned(tmp_path, [[]])
    assert "eng" in tesseract.asked[0]
    assert [(w.code, w.pages) for w in found.warnings] == [("ocr_used", (1,)), ("ocr_unavailable", (1,))]
    assert "chi_sim" in found.warnings[1].text
    tesseract.languages = "deu"
    with pytest.raises(NoText, match="lacks the language eng, chi_sim"):
        scanned(tmp_path, [[]])


def test_turned_off_nothing_is_asked(tmp_path: Path, tesseract: Tesseract) -> None:
    with pytest.raises(NoText, match="INTRAMUROS_OCR"):
        scanned(tmp_path, [[]], ParseOptions(ocr=False))
    assert not tesseract.asked


def test_a_page_that_takes_too_long_is_left_and_told(tmp_path: Path, tesseract: Tesseract) -> None:
    tesseract.tables = [table(*PARAGRAPH), ParserStopped(), table(*PARAGRAPH)]
    found = scanned(tmp_path, [[], [], []])
    codes = [(w.code, w.pages) for w in found.warnings]
    assert codes == [("ocr_used", (1, 3)), ("ocr_stopped", (2,)), ("page_without_text", (2,))]


def test_when_the_time_is_over_nothing_more_is_asked(tmp_path: Path, tesseract: Tesseract) -> None:
    written = [Ink(f"Line {n} of a page that was written on a computer.", y=700 - 20 * n) for n in range(5)]
    found = scanned(tmp_path, [written, [], []], ParseOptions(seconds=0.0))
    assert not tesseract.asked
    assert [(w.code, w.pages) for w in found.warnings] == [("ocr_stopped", (2, 3)), ("page_without_text", (2, 3))]
    with pytest.raises(NoText, match="INTRAMUROS_PARSE_TIMEOUT"):
        scanned(tmp_path, [[]], ParseOptions(seconds=0.0))


@pytest.mark.skipif(programs.find("tesseract") is None, reason="Tesseract is not installed")
@pytest.mark.parametrize("turn", [0, 180, 270])
def test_tesseract_itself_reads_a_page_however_it_lies(turn: int) -> None:
    from tests.paths import PROJECT

    source = PROJECT / "deploy/demo/handbook/en/facilities/berlin-fire-safety-notice-scan.pdf"
    import pypdfium2

    document = pypdfium2.PdfDocument(source)
    picture = document[0].render(scale=2, grayscale=True).to_pil().rotate(turn, expand=True)
    document.close()
    scan = Reader(ParseOptions(ocr_languages="eng")).read(picture, 1)
    assert scan is not None
    found = elements_of([scan.page])
    assert scan.confidence > 0.9
    assert found[0].text == "Fire Safety and First Aid"
    assert "Floor: 2 | Fire warden: Sabine Aydin | First aider: Ralf Ehlers" in "\n".join(e.text for e in found)
