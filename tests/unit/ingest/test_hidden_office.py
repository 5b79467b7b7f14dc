"""Text that nobody sees in Word, PowerPoint and Excel files goes and is counted; what looks alike stays."""

import io
from collections.abc import Callable

import docx
import openpyxl
import pptx
import pytest
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from openpyxl.styles import Font, PatternFill
from openpyxl.worksheet.table import Table, TableStyleInfo
from pptx.dml.color import RGBColor
from pptx.enum.dml import MSO_THEME_COLOR
from pptx.util import Emu, Inches, Pt

from core.records import ParseWarning
from ingest import office
from tests.unit.ingest import samples

SECRET = "Secret words that nobody sees"
SHOWN = "Plain words that everybody reads"
_DRAWING = (
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:v="urn:schemas-microsoft-com:vml" '
    'xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"'
)


def saved(document: object) -> bytes:
    stream = io.BytesIO()
    document.save(stream)  # type: ignore[attr-defined]
    return stream.getvalue()


def hidden(warnings: list[ParseWarning]) -> int:
    return sum(warning.count for warning in warnings if warning.code == "hidden_text")


# --- Word -------------------------------------------------------------------------------------------------------------


def read_docx(document: object) -> tuple[str, int]:
    elements, warnings = office.read_docx(saved(document))
    return "\n".join(element.text for element in elements), hidden(warnings)


def word(run: str, *, paragraph: str = "", styles: str = "") -> tuple[str, int]:
    """Read a file with a plain paragraph and one whose run has these properties."""
    document = docx.Document()
    if styles:
        document.styles.element.append(parse_xml(f"<w:style {nsdecls('w')} {styles}</w:style>"))
    document.add_paragraph(SHOWN)
    document._body._element.insert(
        1,
        parse_xml(
            f"<w:p {nsdecls('w')} {_DRAWING}><w:pPr>{paragraph}</w:pPr><w:r><w:rPr>{run}</w:rPr>"
            f"<w:t>{SECRET}</w:t></w:r></w:p>"
        ),
    )
    return read_docx(document)


@pytest.mark.parametrize(
    ("run", "paragraph"),
    [
        ("<w:vanish/>", ""),
        ('<w:vanish w:val="1"/>', ""),
        ('<w:color w:val="FFFFFF"/>', ""),
        ('<w:color w:val="FEFEFE"/>', ""),
        ('<w:color w:val="000000" w:themeColor="background1"/>', ""),
        ('<w:color w:val="FF0000"/><w:shd w:val="clear" w:fill="FF0000"/>', ""),
        ('<w:color w:val="FFFFFF"/><w:highlight w:val="white"/>', ""),
        ('<w:color w:val="FFFFFF"/>', '<w:shd w:val="clear" w:color="auto" w:fill="FFFFFF"/>'),
        ('<w:color w:val="FFFFFF"/>', '<w:shd w:val="clear" w:color="auto" w:fill="auto"/>'),
        ('<w:sz w:val="2"/>', ""),
        ('<w:sz w:val="4"/>', ""),
        ('<w:w w:val="1"/>', ""),
        ("<w14:textFill><w14:noFill/></w14:textFill>", ""),
        ('<w14:textFill><w14:solidFill><w14:srgbClr w14:val="FFFFFF"/></w14:solidFill></w14:textFill>', ""),
        ("", '<w:framePr w:w="2000" w:x="-20000" w:y="100" w:hAnchor="page"/>'),
        ("", '<w:ind w:left="31680"/>'),
    ],
)
def test_word_hides_by_a_runs_or_paragraphs_properties(run: str, paragraph: str) -> None:
    assert word(run, paragraph=paragraph) == (SHOWN, 1)


@pytest.mark.parametrize(
    ("run", "paragraph"),
    [
        ('<w:vanish w:val="0"/>', ""),
        ("<w:webHidden/>", ""),
        ('<w:color w:val="808080"/>', ""),
        ('<w:color w:val="D9D9D9"/>', ""),
        ('<w:color w:val="FFFFFF" w:themeColor="background1" w:themeShade="BF"/>', ""),
        ('<w:color w:val="auto"/>', ""),
        ('<w:color w:val="FFFFFF"/><w:shd w:val="clear" w:fill="003366"/>', ""),
        ('<w:color w:val="FFFFFF"/><w:highlight w:val="darkBlue"/>', ""),
        ('<w:color w:val="FFFFFF"/>', '<w:shd w:val="clear" w:color="auto" w:fill="003366"/>'),
        ('<w:color w:val="FFFFFF"/>', '<w:shd w:val="pct50" w:color="000000" w:fill="auto"/>'),
        ('<w:sz w:val="12"/>', ""),
        ('<w:w w:val="80"/>', ""),
        # A hidden paragraph mark joins two paragraphs; the words of both are seen.
        ("", "<w:rPr><w:vanish/><w:specVanish/></w:rPr>"),
        ("", '<w:ind w:left="720" w:hanging="360"/>'),
        ("", '<w:framePr w:w="2000" w:x="1200" w:y="100" w:hAnchor="page"/>'),
    ],
)
def test_word_keeps_what_looks_alike(run: str, paragraph: str) -> None:
    text, count = word(run, paragraph=paragraph)
    assert (SECRET in text, count) == (True, 0)


@pytest.mark.parametrize(
    ("style", "run", "paragraph"),
    [
        (
            'w:type="character" w:styleId="Ghost"><w:name w:val="Ghost"/><w:rPr><w:vanish/></w:rPr>',
            '<w:rStyle w:val="Ghost"/>',
            "",
        ),
        (
            'w:type="paragraph" w:styleId="Ghost"><w:name w:val="Ghost"/><w:rPr><w:color w:val="FFFFFF"/></w:rPr>',
            "",
            '<w:pStyle w:val="Ghost"/>',
        ),
        (
            'w:type="paragraph" w:styleId="Ghost"><w:name w:val="Ghost"/><w:rPr><w:sz w:val="2"/></w:rPr>',
            "",
            '<w:pStyle w:val="Ghost"/>',
        ),
    ],
)
def test_word_hides_by_styles(style: str, run: str, paragraph: str) -> None:
    assert word(run, paragraph=paragraph, styles=style) == (SHOWN, 1)


def test_word_styles_inherit_and_are_overruled() -> None:
    document = docx.Document()
    base = document.styles.add_style("Ghost", WD_STYLE_TYPE.PARAGRAPH)
    base.font.hidden = True
    below = document.styles.add_style("Ghostly", WD_STYLE_TYPE.PARAGRAPH)
    below.base_style = base
    shown = document.styles.add_style("Shown", WD_STYLE_TYPE.PARAGRAPH)
    shown.base_style = base
    shown.font.hidden = False
    document.add_paragraph(SECRET, style="Ghostly")
    document.add_paragraph(SHOWN, style="Shown")
    assert read_docx(document) == (SHOWN, 1)


def test_word_cells_and_rows() -> None:
    document = docx.Document()
    document.add_paragraph(SHOWN)
    table = document.add_table(rows=3, cols=2)
    for row, words in zip(table.rows, ("City", "Berlin", SECRET), strict=True):
        for cell in row.cells:
            cell.text = words
    for cell in table.rows[0].cells:
        cell.paragraphs[0].runs[0].font.color.rgb = docx.shared.RGBColor(255, 255, 255)
        cell._tc.get_or_add_tcPr().append(parse_xml(f'<w:shd {nsdecls("w")} w:val="clear" w:fill="003366"/>'))
    table.rows[2]._tr.get_or_add_trPr().append(parse_xml(f"<w:hidden {nsdecls('w')}/>"))
    text, count = read_docx(document)
    assert "City" in text
    assert "Berlin" in text
    assert (SECRET in text, count) == (False, 1)


def test_a_table_style_that_colours_its_header_shows_white_letters() -> None:
    document = docx.Document()
    table = document.add_table(rows=1, cols=1, style="Medium Shading 1 Accent 1")
    table.rows[0].cells[0].text = SHOWN
    table.rows[0].cells[0].paragraphs[0].runs[0].font.color.rgb = docx.shared.RGBColor(255, 255, 255)
    assert read_docx(document) == (SHOWN, 0)


def test_white_letters_on_a_dark_page_are_seen() -> None:
    document = docx.Document()
    document.element.insert(0, parse_xml(f'<w:background {nsdecls("w")} w:color="1F1F1F"/>'))
    document.add_paragraph(SHOWN).runs[0].font.color.rgb = docx.shared.RGBColor(255, 255, 255)
    assert read_docx(document) == (SHOWN, 0)


def box(text: str, *, x: int = 1_000_000, width: int = 2_000_000, fill: str = "", run: str = "") -> str:
    content = f"<w:txbxContent><w:p><w:r><w:rPr>{run}</w:rPr><w:t>{text}</w:t></w:r></w:p></w:txbxContent>"
    return (
        f"<w:p {nsdecls('w')} {_DRAWING}><w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing><wp:anchor>"
        f'<wp:positionH relativeFrom="page"><wp:posOffset>{x}</wp:posOffset></wp:positionH>'
        f'<wp:extent cx="{width}" cy="500000"/><wp:docPr id="1" name="Box"/><a:graphic><a:graphicData><wps:wsp>'
        f"<wps:spPr>{fill}</wps:spPr><wps:txbx>{content}</wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:anchor>"
        f"</w:drawing></mc:Choice><mc:Fallback><w:pict><v:shape><v:textbox>{content}</v:textbox></v:shape></w:pict>"
        "</mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        (box("In the box"), (f"{SHOWN}\nIn the box", 0)),
        (box("In the box", x=-5_000_000), (SHOWN, 1)),
        (box("In the box", x=20_000_000), (SHOWN, 1)),
        (box("In the box", width=100), (SHOWN, 1)),
        (box("In the box", x=-500_000), (f"{SHOWN}\nIn the box", 0)),
        (box("In the box", run="<w:vanish/>"), (SHOWN, 1)),
        (box("In the box", run='<w:color w:val="FFFFFF"/>'), (SHOWN, 1)),
        (
            box(
                "In the box",
                run='<w:color w:val="FFFFFF"/>',
                fill='<a:solidFill><a:schemeClr val="tx2"/></a:solidFill>',
            ),
            (f"{SHOWN}\nIn the box", 0),
        ),
    ],
)
def test_word_text_boxes_are_read_once_unless_off_the_page(drawn: str, expected: tuple[str, int]) -> None:
    document = docx.Document()
    document.add_paragraph(SHOWN)
    document._body._element.insert(1, parse_xml(drawn))
    assert read_docx(document) == expected


def test_one_passage_in_many_runs_counts_once() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph(SHOWN)
    for word_ in SECRET.split():
        paragraph.add_run(f" {word_}").font.hidden = True
    assert read_docx(document) == (SHOWN, 1)


def test_the_main_part_is_found_by_its_relation() -> None:
    document = docx.Document()
    document.add_paragraph(SHOWN).add_run(SECRET).font.hidden = True
    moved = samples.renamed_part(saved(document), "word/document.xml", "word/other.xml")
    elements, warnings = office.read_docx(moved)
    assert ([element.text for element in elements], hidden(warnings)) == ([SHOWN], 1)


# --- PowerPoint -------------------------------------------------------------------------------------------------------


def slide() -> tuple[object, object]:
    deck = pptx.Presentation()
    page = deck.slides.add_slide(deck.slide_layouts[6])
    page.shapes.add_textbox(Inches(1), Inches(1), Inches(4), Inches(1)).text_frame.text = SHOWN
    return deck, page


def read_pptx(deck: object) -> tuple[str, int]:
    elements, _, warnings = office.read_pptx(saved(deck))
    return "\n".join(element.text for element in elements if element.kind != "title"), hidden(warnings)


def written(page: object, x: int = 1, y: int = 3) -> object:
    frame = page.shapes.add_textbox(Inches(x), Inches(y), Inches(4), Inches(1))  # type: ignore[attr-defined]
    frame.text_frame.text = SECRET
    return frame


def run_of(shape: object) -> object:
    return shape.text_frame.paragraphs[0].runs[0]  # type: ignore[attr-defined]


def _white(shape: object) -> None:
    run_of(shape).font.color.rgb = RGBColor(255, 255, 255)  # type: ignore[attr-defined]


def _theme_white(shape: object) -> None:
    run_of(shape).font.color.theme_color = MSO_THEME_COLOR.BACKGROUND_1  # type: ignore[attr-defined]


def _tiny(shape: object) -> None:
    run_of(shape).font.size = Pt(2)  # type: ignore[attr-defined]


def _left(shape: object) -> None:
    shape.left = Emu(-9_000_000)  # type: ignore[attr-defined]


def _below(shape: object) -> None:
    shape.top = Inches(30)  # type: ignore[attr-defined]


def _switched_off(shape: object) -> None:
    shape._element.nvSpPr.cNvPr.set("hidden", "1")  # type: ignore[attr-defined]


@pytest.mark.parametrize("hide", [_white, _theme_white, _tiny, _left, _below, _switched_off])
def test_powerpoint_hides(hide: Callable[[object], None]) -> None:
    deck, page = slide()
    hide(written(page))
    assert read_pptx(deck) == (SHOWN, 1)


def _grey(shape: object) -> None:
    run_of(shape).font.color.rgb = RGBColor(0x99, 0x99, 0x99)  # type: ignore[attr-defined]


def _small(shape: object) -> None:
    run_of(shape).font.size = Pt(6)  # type: ignore[attr-defined]


def _white_on_dark(shape: object) -> None:
    _white(shape)
    shape.fill.solid()  # type: ignore[attr-defined]
    shape.fill.fore_color.rgb = RGBColor(0, 0, 0x40)  # type: ignore[attr-defined]


def _half_off(shape: object) -> None:
    shape.left, shape.top = Emu(-100_000), Emu(-100_000)  # type: ignore[attr-defined]


@pytest.mark.parametrize("change", [_grey, _small, _white_on_dark, _half_off])
def test_powerpoint_keeps_what_looks_alike(change: Callable[[object], None]) -> None:
    deck, page = slide()
    change(written(page))
    text, count = read_pptx(deck)
    assert (SECRET in text, SHOWN in text, count) == (True, True, 0)


def test_white_letters_over_a_dark_slide_or_shape_are_seen() -> None:
    deck, page = slide()
    page.background.fill.solid()  # type: ignore[attr-defined]
    page.background.fill.fore_color.rgb = RGBColor(0, 0, 0)  # type: ignore[attr-defined]
    _white(written(page))
    assert read_pptx(deck)[1] == 0
    deck, page = slide()
    page.shapes.add_shape(1, Inches(0), Inches(2), Inches(9), Inches(3))  # type: ignore[attr-defined]
    _white(written(page))
    assert read_pptx(deck)[1] == 0


def test_a_shape_in_a_group_is_placed_by_the_group() -> None:
    deck, page = slide()
    group = page.shapes.add_group_shape()  # type: ignore[attr-defined]
    group.shapes.add_textbox(Inches(1), Inches(5), Inches(2), Inches(1)).text_frame.text = SECRET
    assert read_pptx(deck)[1] == 0
    group.left = Inches(-40)
    assert read_pptx(deck) == (SHOWN, 1)


def test_hidden_slides_are_named_and_pages_of_hidden_text_too() -> None:
    deck = pptx.Presentation(io.BytesIO(samples.pptx_bytes()))
    _white(written(deck.slides[1], y=5))
    _, slides, warnings = office.read_pptx(saved(deck))
    assert slides == 3
    assert [(warning.code, warning.count, warning.pages) for warning in warnings] == [
        ("hidden_text", 1, (2,)),
        ("hidden_slides", 1, (3,)),
    ]


# --- Excel ------------------------------------------------------------------------------------------------------------

ROWS = [["City", "Grade", "Cap"], ["Berlin", "A", "180"], ["Secret", "Words", "Here"], ["Shanghai", "B", "550"]]
ALL = (
    "City: Berlin | Grade: A | Cap: 180\nCity: Secret | Grade: Words | Cap: Here\nCity: Shanghai | Grade: B | Cap: 550"
)


def book() -> tuple[object, object]:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    for row in ROWS:
        sheet.append(row)
    return workbook, sheet


def read_xlsx(workbook: object) -> tuple[str, int]:
    elements, warnings = office.read_xlsx(saved(workbook))
    return "\n".join(element.text for element in elements if element.kind != "title"), hidden(warnings)


def test_excel_hidden_rows_leave_the_table_whole() -> None:
    workbook, sheet = book()
    sheet.row_dimensions[3].hidden = True  # type: ignore[attr-defined]
    assert read_xlsx(workbook) == ("City: Berlin | Grade: A | Cap: 180\nCity: Shanghai | Grade: B | Cap: 550", 1)


def test_excel_hidden_columns_leave_the_table_whole() -> None:
    workbook, sheet = book()
    sheet.column_dimensions["B"].hidden = True  # type: ignore[attr-defined]
    text, count = read_xlsx(workbook)
    assert (text.splitlines()[0], count) == ("City: Berlin | Cap: 180", 1)


def dress(cell: object, font: Font | None, fill: PatternFill | None) -> None:
    if font:
        cell.font = font  # type: ignore[attr-defined]
    if fill:
        cell.fill = fill  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("font", "fill", "code"),
    [
        (Font(color="FFFFFFFF"), None, None),
        (Font(color="00FEFEFE"), None, None),
        (Font(color=openpyxl.styles.colors.Color(theme=0)), None, None),
        (Font(color=openpyxl.styles.colors.Color(indexed=9)), None, None),
        (Font(color="FFFF0000"), PatternFill("solid", fgColor="FFFF0000"), None),
        (Font(size=1), None, None),
        (None, None, ";;;"),
    ],
)
def test_excel_cells_that_show_nothing_are_emptied(
    font: Font | None, fill: PatternFill | None, code: str | None
) -> None:
    workbook, sheet = book()
    for cell in sheet[3]:  # type: ignore[index]
        dress(cell, font, fill)
        cell.number_format = code or cell.number_format
    text, count = read_xlsx(workbook)
    assert ("Secret" in text, "Shanghai" in text, count) == (False, True, 3)


@pytest.mark.parametrize(
    ("font", "fill"),
    [
        (Font(color="FF999999"), None),
        (Font(color=openpyxl.styles.colors.Color(theme=0, tint=-0.35)), None),
        (Font(color="FFFFFFFF"), PatternFill("solid", fgColor="FF003366")),
        (Font(color="FFFFFFFF"), PatternFill("darkGrid")),
        (Font(size=6), None),
    ],
)
def test_excel_keeps_what_looks_alike(font: Font, fill: PatternFill | None) -> None:
    workbook, sheet = book()
    for cell in sheet[3]:  # type: ignore[index]
        dress(cell, font, fill)
    assert read_xlsx(workbook) == (ALL, 0)


def test_a_styled_table_shows_its_white_header() -> None:
    workbook, sheet = book()
    table = Table(displayName="Caps", ref="A1:C4")
    table.tableStyleInfo = TableStyleInfo(name="TableStyleMedium9", showRowStripes=True)
    sheet.add_table(table)  # type: ignore[attr-defined]
    for cell in sheet[1]:  # type: ignore[index]
        cell.font = Font(color="FFFFFFFF")
    assert read_xlsx(workbook) == (ALL, 0)


def test_white_pieces_inside_a_cell_go() -> None:
    workbook, sheet = book()
    white = openpyxl.cell.text.InlineFont(color="FFFFFFFF")
    sheet["B2"] = openpyxl.cell.rich_text.CellRichText(  # type: ignore[index]
        "A", openpyxl.cell.rich_text.TextBlock(white, " and a secret")
    )
    assert read_xlsx(workbook) == (ALL, 1)


def test_sheets_that_are_not_shown_are_named() -> None:
    workbook, _ = book()
    for name, state in (("Notes", "hidden"), ("Deep", "veryHidden")):
        sheet = workbook.create_sheet(name)  # type: ignore[attr-defined]
        sheet.append([SECRET, "x"])
        sheet.sheet_state = state
    elements, warnings = office.read_xlsx(saved(workbook))
    assert not any(SECRET in element.text for element in elements)
    assert warnings == [ParseWarning("hidden_sheets", "Hidden sheets were left out: Deep, Notes.", 2)]
