"""PDF by pdfium: the text that its pages hold, and for pages without a usable one the text in their pictures."""

import threading
from pathlib import Path
from typing import Any

from core.errors import DamagedFile, EncryptedFile, FileTooLarge, NoText
from ingest import ocr
from ingest.ocr import Reader
from ingest.options import ParseOptions
from ingest.paged import PagedText, Sheet, gathered
from ingest.pdf_page import PageText, read_page
from ingest.segments import Page

# pdfium may be entered by one thread at a time in a process; page rendering takes the same lock.
LOCK = threading.Lock()

MAX_PAGES = 5_000
MAX_CHARACTERS = 12_000_000

# Dots per inch of the small picture that tells whether there is anything to read.
_GLANCE = 72
# A picture's text takes the place of junk only when it is at least this sure.
_BETTER_THAN_JUNK = 0.5
_JUNK_TITLES = ("untitled", "microsoft word", "microsoft powerpoint", "powerpoint", "print", "slide 1", "document")


def open_pdf(path: Path) -> Any:
    """A pypdfium2 document; the caller holds `LOCK` and closes it. Raises EncryptedFile, DamagedFile."""
    import pypdfium2
    import pypdfium2.raw as raw

    try:
        return pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise EncryptedFile() from error
        raise DamagedFile() from error


def read_pdf(path: Path, options: ParseOptions) -> PagedText:
    """Read all pages. Raises EncryptedFile, DamagedFile, FileTooLarge, and NoText naming the pages."""
    with LOCK:
        document = open_pdf(path)
    try:
        return _read(document, Reader(options))
    finally:
        with LOCK:
            document.close()


def _read(document: Any, reader: Reader) -> PagedText:
    with LOCK:
        count = len(document)
        title = _title(document)
    if count == 0:
        raise NoText("The PDF has no pages.")
    if count > MAX_PAGES:
        raise FileTooLarge(f"The PDF has {count} pages, the limit is {MAX_PAGES}. Split it.")
    sheets: list[Sheet] = []
    characters = 0
    for number in range(1, count + 1):
        sheets.append(_sheet(document, number, reader))
        characters += sheets[-1].page.characters
        if characters > MAX_CHARACTERS:
            raise FileTooLarge("The PDF holds more text than a document should. Split it.")
    return gathered(sheets, reader, title=title)


def _title(document: Any) -> str | None:
    words = " ".join(document.get_metadata_value("Title").split())
    junk = words.lower().startswith(_JUNK_TITLES) or words.lower().endswith((".doc", ".docx", ".pdf", ".indd"))
    return None if junk else words or None


def _sheet(document: Any, number: int, reader: Reader) -> Sheet:
    with LOCK:
        found = read_page(document, number)
        if found is None:
            return Sheet(Page(number, 1.0, 1.0, ()), "unreadable")
        if found.layer == "good":
            return Sheet(found.page, "text")
        picture = _picture(document, number, found, _GLANCE)
        shows = picture is not None and not ocr.blank(picture)
        if shows and reader.able:
            picture = _picture(document, number, found, ocr.DPI)
    if not shows:
        return Sheet(found.page, _own(found, "blank"))
    scan = reader.read(picture, number)
    if scan is None or (found.layer == "junk" and scan.confidence < _BETTER_THAN_JUNK):
        return Sheet(found.page, _own(found, "empty"))
    return Sheet(scan.page, "scanned", scan.confidence)


def _own(found: PageText, otherwise: Any) -> Any:
    """How a page counts whose picture gave nothing: by the text that it holds, if any."""
    if found.layer == "junk":
        return "garbled"
    return "text" if found.page.segments else otherwise


def _picture(document: Any, number: int, found: PageText, dpi: int) -> Any:
    """The page in grey, as sharp as asked where its size allows it; None where it cannot be drawn."""
    import pypdfium2

    width, height = found.width, found.height
    if min(width, height) < 1:
        return None
    scale = min(dpi / 72, (ocr.MAX_PIXELS / (width * height)) ** 0.5, ocr.MAX_SIDE / max(width, height))
    page = document[number - 1]
    try:
        bitmap = page.render(scale=scale, grayscale=True)
        try:
            return bitmap.to_pil().copy()
        finally:
            bitmap.close()
    except pypdfium2.PdfiumError:
        return None
    finally:
        page.close()
