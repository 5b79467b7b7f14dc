"""Build the Office and PDF files of the sample handbook from the Markdown files in `sources/`.

Run it after an edit in `sources/`:

    python deploy/demo/generate.py            # all files
    python deploy/demo/generate.py travel     # only sources whose path contains "travel"

`sources/en/leave/x.docx.md` becomes `handbook/en/leave/x.docx`; a name that ends in `-scan.pdf.md` becomes a PDF that
holds only pictures of its pages. The text formats (.md, .txt, .html, .csv, .eml) live in `handbook/` and are edited
by hand.

Development tools only, not needed by the product: python-docx, python-pptx, openpyxl, pypdfium2, Pillow, numpy,
fonttools, Chromium (`chromium` on PATH, or its path in the variable CHROMIUM) and the font Noto Sans CJK (Debian:
fonts-noto-cjk; another place can be given in the variable CJK_FONT). Times inside the files are fixed, so a second run
with the same tools gives the same files.

Sources use a small part of Markdown: `#` and `##` headings, paragraphs, `-` lists, `>` notes and pipe tables.
"""

from __future__ import annotations

import html
import io
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import docx
import numpy as np
import openpyxl
import pptx
import pypdfium2 as pdfium
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from fontTools import subset
from fontTools.ttLib import TTFont
from openpyxl.styles import Alignment, Font
from PIL import Image, ImageFilter
from pptx.util import Inches, Pt

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "sources"
HANDBOOK = HERE / "handbook"
COMPANY = "Alderway Instruments"
CJK_FONT = Path(os.environ.get("CJK_FONT", "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc"))
SIMPLIFIED_FACE = 2  # the face "Noto Sans CJK SC" of the collection
OFFICE_TIME = "2026-01-05T08:00:00Z"
ZIP_TIME = (2026, 1, 5, 8, 0, 0)
PDF_TIME = b"D:20260105080000+00'00'"

Kind = Literal["title", "heading", "paragraph", "bullet", "note", "table"]
Rows = list[list[str]]


@dataclass(frozen=True)
class Block:
    kind: Kind
    text: str = ""
    rows: Rows | None = None


@dataclass(frozen=True)
class Section:
    heading: str
    blocks: list[Block]

    @property
    def bullets(self) -> list[str]:
        return [block.text for block in self.blocks if block.kind in ("bullet", "paragraph")]

    @property
    def notes(self) -> list[str]:
        return [block.text for block in self.blocks if block.kind == "note"]

    @property
    def table(self) -> Rows | None:
        return next((block.rows for block in self.blocks if block.rows), None)


PREFIXES: tuple[tuple[str, Kind], ...] = (("# ", "title"), ("## ", "heading"), ("- ", "bullet"), ("> ", "note"))


def parse(text: str) -> list[Block]:
    """Read the Markdown subset; every line is one block, and table lines that touch form one table."""
    blocks: list[Block] = []
    rows: Rows = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("| ").split(" | ")])
            continue
        if rows:
            blocks.append(Block("table", rows=[rows[0], *rows[2:]]))
            rows = []
        if line.strip():
            blocks.append(parse_line(line))
    return blocks


def parse_line(line: str) -> Block:
    for prefix, kind in PREFIXES:
        if line.startswith(prefix):
            return Block(kind, line[len(prefix) :].strip())
    return Block("paragraph", line.strip())


def sections(blocks: list[Block]) -> Iterator[Section]:
    """Group the blocks below each title or heading."""
    current: Section | None = None
    for block in blocks:
        if block.kind in ("title", "heading"):
            if current:
                yield current
            current = Section(block.text, [])
        elif current:
            current.blocks.append(block)
    if current:
        yield current


# --- Word -----------------------------------------------------------------------------------------------------------


def build_docx(blocks: list[Block], target: Path) -> None:
    document = docx.Document()
    set_docx_fonts(document)
    for block in blocks:
        if block.kind == "title":
            document.add_heading(block.text, level=0)
            document.core_properties.title = block.text
        elif block.kind == "heading":
            document.add_heading(block.text, level=1)
        elif block.rows:
            add_docx_table(document, block.rows)
        else:
            document.add_paragraph(block.text, style="List Bullet" if block.kind == "bullet" else None)
    document.core_properties.author = COMPANY
    document.core_properties.comments = ""
    document.save(str(target))
    settle_office_file(target)


def set_docx_fonts(document: Any) -> None:
    for name in ("Normal", "Title", "Heading 1"):
        style = document.styles[name]
        style.font.name = "Calibri"
        style.element.get_or_add_rPr().get_or_add_rFonts().set(qn("w:eastAsia"), "Noto Sans CJK SC")


def add_docx_table(document: Any, rows: Rows) -> None:
    table = document.add_table(rows=len(rows), cols=len(rows[0]), style="Table Grid")
    for row, cells in zip(table.rows, rows, strict=True):
        for cell, text in zip(row.cells, cells, strict=True):
            cell.text = text
    for cell in table.rows[0].cells:
        cell.paragraphs[0].runs[0].bold = True
    table.rows[0]._tr.get_or_add_trPr().append(OxmlElement("w:tblHeader"))
    document.add_paragraph()


# --- PowerPoint -----------------------------------------------------------------------------------------------------


def build_pptx(blocks: list[Block], target: Path) -> None:
    deck = pptx.Presentation()
    deck.core_properties.author = COMPANY
    first, *others = sections(blocks)
    deck.core_properties.title = first.heading
    cover = deck.slides.add_slide(deck.slide_layouts[0])
    cover.shapes.title.text = first.heading
    cover.placeholders[1].text = "\n".join(first.bullets)
    for section in others:
        add_slide(deck, section)
    deck.save(str(target))
    settle_office_file(target)


def add_slide(deck: Any, section: Section) -> None:
    layout = deck.slide_layouts[5 if section.table else 1]
    slide = deck.slides.add_slide(layout)
    slide.shapes.title.text = section.heading
    if section.table:
        add_slide_table(slide, section.table)
    else:
        slide.placeholders[1].text = "\n".join(section.bullets)
        for paragraph in slide.placeholders[1].text_frame.paragraphs:
            paragraph.font.size = Pt(22)
    if section.notes:
        slide.notes_slide.notes_text_frame.text = "\n".join(section.notes)


def add_slide_table(slide: Any, rows: Rows) -> None:
    frame = slide.shapes.add_table(len(rows), len(rows[0]), Inches(0.5), Inches(1.7), Inches(9), Inches(0.5))
    for r, cells in enumerate(rows):
        for c, text in enumerate(cells):
            cell = frame.table.cell(r, c)
            cell.text = text
            cell.text_frame.paragraphs[0].font.size = Pt(16)


# --- Excel ----------------------------------------------------------------------------------------------------------


def build_xlsx(blocks: list[Block], target: Path) -> None:
    """Make one sheet for each section with a table; its paragraphs follow below the table."""
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    workbook.properties.creator = COMPANY
    for section in sections(blocks):
        if section.table:
            fill_sheet(workbook.create_sheet(section.heading), section.table, section.bullets)
        else:
            workbook.properties.title = section.heading
    workbook.save(target)
    settle_office_file(target)


def fill_sheet(sheet: Any, rows: Rows, remarks: list[str]) -> None:
    for cells in rows:
        sheet.append([int(text) if text.isdecimal() else text for text in cells])
    for number, column in enumerate(sheet.iter_cols(max_row=len(rows)), start=1):
        sheet.column_dimensions[openpyxl.utils.get_column_letter(number)].width = 32 if number == 1 else 24
        column[0].font = Font(bold=True)
        for cell in column:
            cell.alignment = Alignment(wrap_text=True, vertical="top")
    sheet.freeze_panes = "A2"
    for offset, remark in enumerate(remarks, start=2):
        sheet.cell(row=len(rows) + offset, column=1, value=remark)


def settle_office_file(path: Path) -> None:
    """Write the package again with fixed times."""
    with zipfile.ZipFile(path) as package:
        parts = [(info.filename, package.read(info)) for info in package.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name, data in parts:
            if name == "docProps/core.xml":
                times = rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*"
                data = re.sub(times, rb"\g<1>" + OFFICE_TIME.encode(), data)
            package.writestr(zipfile.ZipInfo(name, ZIP_TIME), data, zipfile.ZIP_DEFLATED)


# --- PDF ------------------------------------------------------------------------------------------------------------

PAGE = """<!DOCTYPE html><html lang="{language}"><head><meta charset="utf-8"><title>{title}</title><style>
@font-face {{ font-family: Handbook; src: url("handbook.otf"); }}
@page {{ size: A4; margin: 22mm 20mm; @bottom-center {{ content: "{company} - " counter(page) " / " counter(pages);
  font: 8pt Handbook; color: #666; }} }}
body {{ font: 10.5pt/1.55 Handbook; font-synthesis: none; }}
h1 {{ font-size: 20pt; color: #17365d; }} h2 {{ font-size: 13pt; color: #17365d; break-after: avoid; }}
table {{ border-collapse: collapse; width: 100%; margin: 1em 0; break-inside: avoid; }}
th, td {{ border: 1px solid #888; padding: 4px 8px; text-align: left; vertical-align: top; }}
th {{ background: #e6ecf4; white-space: nowrap; }}
</style></head><body>{body}</body></html>"""

TAGS: dict[Kind, str] = {"title": "h1", "heading": "h2", "paragraph": "p", "note": "p", "bullet": "li"}


def build_pdf(blocks: list[Block], target: Path) -> None:
    """Print the page with Chromium."""
    page = to_html(blocks)
    with tempfile.TemporaryDirectory() as folder:
        source, printed = Path(folder, "page.html"), Path(folder, "page.pdf")
        source.write_text(page, encoding="utf-8")
        write_font(page, Path(folder, "handbook.otf"))
        program = os.environ.get("CHROMIUM", "chromium")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", "--disable-pdf-tagging"]
        command = [program, *options, f"--user-data-dir={folder}/user", f"--print-to-pdf={printed}", source.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        target.write_bytes(settle_pdf(printed.read_bytes()))


def to_html(blocks: list[Block]) -> str:
    title = next(block.text for block in blocks if block.kind == "title")
    body = "\n".join(block_html(block) for block in blocks)
    body = re.sub(r"(?:<li>.*</li>\n?)+", lambda found: f"<ul>{found.group()}</ul>\n", body)
    language = "en" if title.isascii() else "zh-CN"
    return PAGE.format(language=language, title=html.escape(title), company=COMPANY, body=body)


def block_html(block: Block) -> str:
    if not block.rows:
        return f"<{TAGS[block.kind]}>{html.escape(block.text)}</{TAGS[block.kind]}>"
    head, *rows = block.rows
    lines = [row_html(head, "th"), *(row_html(row, "td") for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def row_html(cells: list[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def write_font(text: str, target: Path) -> None:
    """Cut the font down to the characters in use.

    The full font gives one glyph to a common character and to its look-alike radical, and Chromium then writes the
    radical into the text layer of the PDF. With only the characters in use, the text layer holds what was written.
    """
    font = TTFont(CJK_FONT, fontNumber=SIMPLIFIED_FACE, recalcTimestamp=False)
    cutter = subset.Subsetter(subset.Options(notdef_outline=True, layout_features=["kern"]))
    cutter.populate(text=text + "0123456789/ -")
    cutter.subset(font)
    font.save(target)


def settle_pdf(data: bytes) -> bytes:
    """Replace the times in the file; the length stays the same, so the cross-reference table stays valid."""
    return re.sub(rb"D:\d{14}\+00'00'", PDF_TIME, data)


# --- Scanned PDF ----------------------------------------------------------------------------------------------------


def build_scan(blocks: list[Block], target: Path) -> None:
    """Make a PDF that holds only slightly turned, noisy grey pictures of the printed pages."""
    with tempfile.TemporaryDirectory() as folder:
        printed = Path(folder, "printed.pdf")
        build_pdf(blocks, printed)
        pages = [scan(page.render(scale=150 / 72).to_pil()) for page in pdfium.PdfDocument(printed)]
    buffer = io.BytesIO()
    first, *others = pages
    date = "D:20260105080000Z"
    first.save(buffer, "PDF", save_all=True, append_images=others, resolution=150, quality=50)
    target.write_bytes(re.sub(rb"D:\d{14}Z", date.encode(), buffer.getvalue()))


def scan(page: Image.Image) -> Image.Image:
    grey = page.convert("L").rotate(0.8, resample=Image.Resampling.BICUBIC, fillcolor=245)
    grey = grey.filter(ImageFilter.GaussianBlur(0.5))
    pixels = np.asarray(grey, dtype=np.float64)
    shade = np.linspace(-10, 4, pixels.shape[1])
    noise = np.random.default_rng(2026).normal(0, 7, pixels.shape)
    return Image.fromarray(np.clip(pixels * 0.93 + shade + noise, 0, 255).astype(np.uint8))


# --- All files ------------------------------------------------------------------------------------------------------

Builder = Callable[[list[Block], Path], None]
BUILDERS: dict[str, Builder] = {".docx": build_docx, ".pptx": build_pptx, ".xlsx": build_xlsx, ".pdf": build_pdf}


def build(source: Path) -> Path:
    target = HANDBOOK / source.relative_to(SOURCES).with_suffix("")
    target.parent.mkdir(parents=True, exist_ok=True)
    builder = build_scan if target.stem.endswith("-scan") else BUILDERS[target.suffix]
    builder(parse(source.read_text(encoding="utf-8")), target)
    return target


def main(wanted: str = "") -> None:
    for source in sorted(SOURCES.rglob("*.md")):
        if wanted in str(source.relative_to(SOURCES)):
            target = build(source)
            print(f"{target.relative_to(HERE)}: {target.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main(*sys.argv[1:2])
