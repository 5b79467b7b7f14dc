"""Small files of every format, made in the test: nothing binary is kept in the repository."""

import hashlib
import io
import math
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import docx
import openpyxl
import pptx
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from pptx.util import Inches

TABLE = [["City", "Grade", "Cap"], ["Berlin", "A", "180 EUR"], ["Shanghai", "B", "550 CNY"]]


def docx_bytes() -> bytes:
    """Headings, a list, a table, a header line, and runs that no reader sees."""
    document = docx.Document()
    document.sections[0].header.paragraphs[0].text = "Running header"
    document.add_heading("Travel policy", 0)
    document.add_heading("Hotels", 1)
    document.add_paragraph("Hotels are booked by the travel desk.")
    document.add_heading("Caps", 2)
    table = document.add_table(rows=0, cols=3)
    for row in TABLE:
        cells = table.add_row().cells
        for cell, text in zip(cells, row, strict=True):
            cell.text = text
    document.add_heading("Trains", 1)
    document.add_paragraph("Second class", style="List Bullet")
    paragraph = document.add_paragraph("Visible words.")
    paragraph.add_run(" CANARY-VANISH").font.hidden = True
    white = paragraph.add_run(" CANARY-WHITE")
    white.font.color.rgb = docx.shared.RGBColor(255, 255, 255)
    paragraph.add_run(" CANARY-TINY").font.size = docx.shared.Pt(1)
    _tracked(paragraph)
    document.core_properties.title = "Property title"
    return _saved(document)


def _tracked(paragraph: docx.text.paragraph.Paragraph) -> None:
    for tag, kind, words in (("w:ins", "w:t", " Inserted words."), ("w:del", "w:delText", " CANARY-DELETED")):
        change = OxmlElement(tag)
        run = OxmlElement("w:r")
        text = OxmlElement(kind)
        text.text = words
        text.set(qn("xml:space"), "preserve")
        run.append(text)
        change.append(run)
        paragraph._p.append(change)


def pptx_bytes() -> bytes:
    """A title slide, a slide with a table, and a hidden slide."""
    deck = pptx.Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[1])
    first.shapes.title.text = "Continuity plan"
    first.placeholders[1].text = "The crisis team meets within 60 minutes."
    second = deck.slides.add_slide(deck.slide_layouts[5])
    second.shapes.title.text = "Hotel caps"
    grid = second.shapes.add_table(len(TABLE), 3, Inches(1), Inches(2), Inches(6), Inches(2)).table
    for y, row in enumerate(TABLE):
        for x, text in enumerate(row):
            grid.cell(y, x).text = text
    hidden = deck.slides.add_slide(deck.slide_layouts[5])
    hidden.shapes.title.text = "CANARY-SLIDE"
    hidden._element.set("show", "0")
    return _saved(deck)


def xlsx_bytes() -> bytes:
    """A sheet with a table and one that is very hidden."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Hotel caps"
    for row in TABLE:
        sheet.append(row)
    secret = book.create_sheet("Secret")
    secret.append(["CANARY-SHEET", "x"])
    secret.sheet_state = "veryHidden"
    return _saved(book)


def _saved(document: object) -> bytes:
    stream = io.BytesIO()
    document.save(stream)  # type: ignore[attr-defined]
    return stream.getvalue()


CSV = "City,Grade,Cap\nBerlin,A,180 EUR\nShanghai,B,550 CNY\n"
TEXT = "TRAVEL RULES\n\n1. Hotels\nHotels are booked by the travel desk.\n\n2. Trains\nSecond class for everyone.\n"
MARKDOWN = """---
title: Travel policy
effective_from: 2026-01-01
effective_to: 2026-12-31
supersedes: travel-2025.md
---
# Travel policy

## Hotels

Hotels are booked by the travel desk.

### Caps

| City | Grade | Cap |
| --- | --- | --- |
| Berlin | A | 180 EUR |
| Shanghai | B | 550 CNY |

## Trains

1. Book early
   - Second class
2. Keep the receipt

```
code = True
```
"""
HTML = """<!doctype html><html><head><title>Travel policy - Intranet</title><style>p{}</style></head><body>
<header><a href="/">Intranet</a></header><nav><a href="/x">News</a></nav>
<main><h1>Travel policy</h1><h2>Hotels</h2><p>Hotels are booked by the travel desk.</p>
<table><tr><th>City</th><th>Grade</th><th>Cap</th></tr><tr><td>Berlin</td><td>A</td><td>180 EUR</td></tr></table>
<p style="display:none">CANARY-DISPLAY</p></main><footer>Imprint</footer></body></html>"""
EML = (
    "From: Priya Nair <priya@example.org>\r\nTo: Daniel <daniel@example.org>\r\n"
    "Subject: =?utf-8?b?5beu5peF?= receipts\r\n"
    "Date: Thu, 22 Jan 2026 16:12:40 +0000\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
    "Content-Transfer-Encoding: 8bit\r\n\r\nHello Daniel,\r\n\r\nA lost receipt needs Form FIN-07.\r\n"
)


@dataclass(frozen=True, slots=True)
class Ink:
    """One piece of text on a page, in points from the bottom left, turned counter-clockwise by degrees."""

    text: str
    x: float = 72
    y: float = 700
    size: float = 11
    bold: bool = False
    mode: int = 0
    grey: float = 0.0
    turn: int = 0


def pdf_bytes(
    pages: Sequence[Sequence[Ink]],
    *,
    title: str = "",
    password: str | None = None,
    rotate: int = 0,
    picture: tuple[int, ...] | None = None,
    shade: int = 200,
) -> bytes:
    """A PDF with Helvetica text; with a password it cannot be opened without one (RC4, 40 bits).

    `picture` (left, bottom, width, height) is drawn under the text of each page in one shade of grey (0 to 255).
    """
    count = len(pages)
    kids = " ".join(f"{5 + 2 * n} 0 R" for n in range(count))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {count}/MediaBox[0 0 595 842]>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Bold>>",
    ]
    key, encrypt = _security(password)
    for number, page in enumerate(pages):
        content = 6 + 2 * number
        objects.append(
            f"<</Type/Page/Parent 2 0 R/Rotate {rotate}/Contents {content} 0 R"
            "/Resources<</Font<</F1 3 0 R/F2 4 0 R>>>>>>".encode()
        )
        stream = _picture(picture, shade) + _content(page)
        data = _rc4(hashlib.md5(key + bytes([content, 0, 0, 0, 0])).digest()[:10], stream) if key else stream
        objects.append(f"<</Length {len(data)}>>stream\n".encode() + data + b"\nendstream")
    objects.append(f"<</Title({title})>>".encode())
    trailer = f"/Root 1 0 R/Info {len(objects)} 0 R"
    if encrypt:
        objects.append(encrypt)
        trailer += f"/Encrypt {len(objects)} 0 R/ID[<{'00' * 16}><{'00' * 16}>]"
    return _assembled(objects, trailer)


def _picture(place: tuple[int, ...] | None, shade: int) -> bytes:
    if place is None:
        return b""
    left, bottom, width, height = place
    return (
        f"q {width} 0 0 {height} {left} {bottom} cm BI /W 1 /H 1 /CS /G /BPC 8 /F /AHx ID {shade:02x}> EI Q\n"
    ).encode()


def _content(page: Sequence[Ink]) -> bytes:
    parts = []
    for ink in page:
        words = ink.text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
        font = "F2" if ink.bold else "F1"
        cos, sin = round(math.cos(math.radians(ink.turn))), round(math.sin(math.radians(ink.turn)))
        place = f"{cos} {sin} {-sin} {cos} {ink.x} {ink.y} Tm"
        parts.append(f"BT {ink.grey} g {ink.mode} Tr /{font} {ink.size} Tf {place} ({words}) Tj ET")
    return "\n".join(parts).encode("latin-1")


def _assembled(objects: Sequence[bytes], trailer: str) -> bytes:
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += f"{number} 0 obj".encode() + body + b"endobj\n"
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets)
    out += f"trailer<</Size {len(objects) + 1}{trailer}>>\nstartxref\n{start}\n%%EOF".encode()
    return bytes(out)


_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def _security(password: str | None) -> tuple[bytes, bytes]:
    """The file key and the encryption dictionary of the standard handler, revision 2."""
    if password is None:
        return b"", b""
    padded = (password.encode() + _PADDING)[:32]
    owner = _rc4(hashlib.md5(padded).digest()[:5], padded)
    key = hashlib.md5(padded + owner + b"\xff\xff\xff\xff" + bytes(16)).digest()[:5]
    user = _rc4(key, _PADDING)
    entries = f"/O<{owner.hex()}>/U<{user.hex()}>/P -1"
    return key, f"<</Filter/Standard/V 1/R 2{entries}>>".encode()


def _rc4(key: bytes, data: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out = bytearray()
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


def policy_pdf() -> bytes:
    """Two pages: headings by size and weight, a wrapped paragraph, a table, running header and page numbers."""

    def page(number: int, *inks: Ink) -> list[Ink]:
        return [Ink("Example Ltd - internal", y=810, size=8), *inks, Ink(f"Page {number} of 2", y=20, size=8)]

    return pdf_bytes(
        [
            page(
                1,
                Ink("Travel policy", y=760, size=20),
                Ink("Hotels", y=720, size=14),
                Ink("Hotels are booked by the travel desk, which keeps a list of houses that", y=690),
                Ink("have agreed to our prices. Private bookings are not paid.", y=676),
                Ink("City", x=72, y=640, bold=True),
                Ink("Grade", x=200, y=640, bold=True),
                Ink("Cap", x=300, y=640, bold=True),
                Ink("Berlin", x=72, y=620),
                Ink("A", x=200, y=620),
                Ink("180 EUR", x=300, y=620),
                Ink("Shanghai", x=72, y=600),
                Ink("B", x=200, y=600),
                Ink("550 CNY", x=300, y=600),
            ),
            page(
                2,
                Ink("Trains", y=760, size=14),
                Ink("Second class for everyone.", y=730),
            ),
        ],
        title="Property title",
    )


def zip_bytes(parts: dict[str, bytes], *, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return stream.getvalue()


def with_part(office: bytes, name: str, data: bytes) -> bytes:
    """The Office file with one more (or another) part."""
    with zipfile.ZipFile(io.BytesIO(office)) as archive:
        parts = {entry: archive.read(entry) for entry in archive.namelist()}
    return zip_bytes(parts | {name: data})


def with_link(office: bytes, part: str, kind: str, target: str, *, outside: bool = True) -> bytes:
    """The Office file with a relationship of this kind in one of its lists (`word/_rels/document.xml.rels`)."""
    mode = ' TargetMode="External"' if outside else ""
    link = (
        f'<Relationship Id="rIdX" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}" '
        f'Target="{target}"{mode}/>'
    )
    empty = b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"></Relationships>'
    with zipfile.ZipFile(io.BytesIO(office)) as archive:
        links = archive.read(part) if part in archive.namelist() else empty
    return with_part(office, part, links.replace(b"</Relationships>", f"{link}</Relationships>".encode()))


_ODF = "urn:oasis:names:tc:opendocument:xmlns"


def odt_bytes(body: str = "", *, parts: dict[str, bytes] | None = None, manifest: str = "") -> bytes:
    """An OpenDocument text with a heading, a paragraph and `body` in it, and more parts."""
    content = (
        f'<office:document-content xmlns:office="{_ODF}:office:1.0" xmlns:text="{_ODF}:text:1.0" '
        f'xmlns:draw="{_ODF}:drawing:1.0" xmlns:xlink="http://www.w3.org/1999/xlink" office:version="1.3"><office:body>'
        '<office:text><text:h text:outline-level="1">Leave</text:h><text:p>Leave is thirty days.</text:p>'
        f"{body}</office:text></office:body></office:document-content>"
    )
    media = "application/vnd.oasis.opendocument.text"
    listed = (
        f'<manifest:manifest xmlns:manifest="{_ODF}:manifest:1.0" manifest:version="1.3">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{media}"/>'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
        f"{manifest}</manifest:manifest>"
    )
    first = {"mimetype": media.encode(), "META-INF/manifest.xml": listed.encode(), "content.xml": content.encode()}
    return zip_bytes(first | (parts or {}))


def epub_bytes(*, parts: dict[str, bytes] | None = None) -> bytes:
    """A book of one chapter."""
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>'
        '<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id"><metadata '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Staff handbook</dc:title>'
        '<dc:identifier id="id">x</dc:identifier><dc:language>en</dc:language></metadata><manifest>'
        '<item id="one" href="one.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="one"/></spine></package>'
    )
    chapter = (
        '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>One</title></head><body><h2>Leave</h2>'
        '<p>Leave is thirty days.</p><p style="display:none">CANARY-BOOK</p></body></html>'
    )
    first = {"mimetype": b"application/epub+zip", "META-INF/container.xml": container.encode()}
    return zip_bytes(first | {"book.opf": package.encode(), "one.xhtml": chapter.encode()} | (parts or {}))


RTF = (
    r"{\rtf1\ansi{\fonttbl{\f0 Arial;}}\f0\fs24 Leave is thirty days.\par {\v CANARY-RTF\par}"
    r"Second class for everyone.\par}"
)
RST = "Staff handbook\n==============\n\nLeave\n-----\n\nLeave is thirty days.\n\n* Second class\n"
ORG = "#+TITLE: Staff handbook\n* Leave\nLeave is thirty days.\n- Second class\n"


def write_all(folder: Path) -> list[Path]:
    """One readable file of each format that needs no other program."""
    contents: dict[str, bytes] = {
        "a.docx": docx_bytes(),
        "b.pptx": pptx_bytes(),
        "c.xlsx": xlsx_bytes(),
        "d.pdf": policy_pdf(),
        "e.csv": CSV.encode(),
        "f.txt": TEXT.encode(),
        "g.md": MARKDOWN.encode(),
        "h.html": HTML.encode(),
        "i.eml": EML.encode(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return [folder / name for name in contents]


def renamed_part(office: bytes, name: str, other: str) -> bytes:
    """The Office file with a part under another name, wherever it is named."""
    with zipfile.ZipFile(io.BytesIO(office)) as archive:
        parts = {entry: archive.read(entry) for entry in archive.namelist()}
    parts[other] = parts.pop(name)
    folder, _, base = name.rpartition("/")
    relations = f"{folder}/_rels/{base}.rels"
    parts[f"{folder}/_rels/{other.rpartition('/')[2]}.rels"] = parts.pop(relations)
    for entry in ("_rels/.rels", "[Content_Types].xml"):
        parts[entry] = parts[entry].replace(name.encode(), other.encode())
    return zip_bytes(parts)
