"""One page of a PDF by pdfium: what its text layer says, hidden text out, and whether that is of any use."""

from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

from ingest.legible import legible
from ingest.pdf_characters import SAMPLE, Frame, characters_of
from ingest.pdf_hidden import COVERED, Pictures, hidden_characters, pieces
from ingest.pdf_words import segments_of
from ingest.segments import Page

Layer = Literal["good", "missing", "junk"]

# A page with fewer characters than this over pictures that cover most of it is a scan with a stamp.
_STAMP = 80


@dataclass(frozen=True, slots=True)
class PageText:
    """The text that a page holds, what its text layer is worth, and its extent as shown, in points."""

    page: Page
    layer: Layer
    width: float
    height: float


def read_page(document: Any, number: int) -> PageText | None:
    """The page, or None when pdfium cannot load it. The caller holds the lock of pdfium."""
    import pypdfium2

    try:
        with closing(_opened(document, number)) as page, closing(page.get_textpage()) as text:
            return _page_text(page, text, number)
    except pypdfium2.PdfiumError:
        return None


def _opened(document: Any, number: int) -> Any:
    """The page with what is written into forms and on top of it as part of its text, as far as it is shown."""
    import pypdfium2.raw as raw

    page = document[number - 1]
    if raw.FPDFPage_GetAnnotCount(page.raw) > 0:
        changed = raw.FPDFPage_Flatten(page.raw, raw.FLAT_NORMALDISPLAY) == raw.FLATTEN_SUCCESS
        if changed:
            page.close()
            page = document[number - 1]
    return page


def _page_text(page: Any, text: Any, number: int) -> PageText:
    frame = Frame.of(page, text)
    characters = characters_of(text, frame)
    covered = Pictures(page)
    hidden = hidden_characters(page, characters, frame, covered)
    segments = tuple(segments_of(characters, hidden, number))
    found = Page(number, frame.width, frame.height, segments, pieces(hidden, characters.inked), frame.turned)
    width, height = page.get_size()
    return PageText(found, _layer(found, text, covered), width, height)


def _layer(page: Page, text: Any, covered: Pictures) -> Layer:
    import pypdfium2.raw as raw

    if not page.segments or (page.characters < _STAMP and covered.share > COVERED):
        return "missing"
    sample = range(0, text.count_chars(), max(text.count_chars() // SAMPLE, 1))
    unmapped = sum(raw.FPDFText_HasUnicodeMapError(text.raw, index) == 1 for index in sample)
    words = "\n".join(segment.text for segment in page.segments)
    return "good" if unmapped * 3 < len(sample) and legible(words) else "junk"
