"""What the pages of a PDF or of pictures give together: elements, and what could not be read, said once each."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from core.errors import DamagedFile, NoText
from core.records import Element, ParseWarning
from core.settings import variable
from ingest import ocr
from ingest.ocr import Reader
from ingest.pdf_layout import elements_of
from ingest.segments import Page

# What a page gave: its own text, text read from its picture, own text that says nothing, nothing to read, a picture in
# which nothing was read, no picture of itself at all.
Outcome = Literal["text", "scanned", "garbled", "blank", "empty", "unreadable"]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A page, how it was read, and the mean confidence where its picture was."""

    page: Page
    outcome: Outcome
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class PagedText:
    """Elements with pages and boxes, the title property, the number of pages, warnings, confidence of scanned pages."""

    elements: tuple[Element, ...]
    title: str | None
    pages: int
    warnings: tuple[ParseWarning, ...]
    confidence: Mapping[int, float] = field(default_factory=dict)


def gathered(sheets: Sequence[Sheet], reader: Reader, *, title: str | None = None) -> PagedText:
    """The document of its pages. Raises DamagedFile when no page could be read, NoText when they hold none."""
    if all(sheet.outcome == "unreadable" for sheet in sheets):
        raise DamagedFile()
    elements = elements_of([sheet.page for sheet in sheets])
    if not elements:
        raise NoText(_nothing(sheets, reader))
    return PagedText(
        elements=tuple(elements),
        title=title,
        pages=len(sheets),
        warnings=tuple(_warnings(sheets, reader)),
        confidence={sheet.page.number: sheet.confidence for sheet in sheets if sheet.confidence is not None},
    )


def numbers(pages: Collection[int]) -> str:
    """`page 3` or `pages 1-3, 7`, the last of many left out."""
    runs: list[list[int]] = []
    for page in sorted(pages):
        if runs and runs[-1][-1] == page - 1:
            runs[-1][1:] = [page]
        else:
            runs.append([page])
    words = ", ".join("-".join(map(str, run)) for run in runs[:20])
    more = " and others" if len(runs) > 20 else ""
    return f"page {words}" if len(pages) == 1 else f"pages {words}{more}"


def _nothing(sheets: Sequence[Sheet], reader: Reader) -> str:
    unread = [sheet.page.number for sheet in sheets if sheet.outcome == "empty"]
    if not unread:
        return "The pages are blank."
    what = f"There is no text on {numbers(unread)}, only a picture of it."
    return f"{what} {_why_not(reader) or 'Nothing could be read in it. Provide a sharper scan, or the original.'}"


def _why_not(reader: Reader) -> str:
    """Why pictures were not read; empty where they were."""
    if not reader.wanted:
        return f"Reading pictures is turned off ({variable('ocr')})."
    if reader.unavailable:
        return reader.unavailable
    if reader.left:
        return f"Reading it takes longer than {variable('parse_timeout')} allows."
    return ""


def _warnings(sheets: Sequence[Sheet], reader: Reader) -> list[ParseWarning]:
    found: list[ParseWarning] = []

    def warn(code: str, pages: Sequence[int], text: str, count: int | None = None) -> None:
        if pages:
            found.append(ParseWarning(code, text.replace("{pages}", numbers(pages)), count or len(pages), tuple(pages)))

    def of(outcome: Outcome) -> list[int]:
        return [sheet.page.number for sheet in sheets if sheet.outcome == outcome]

    empty, garbled, scanned = of("empty"), of("garbled"), of("scanned")
    unread = sorted(empty + garbled)
    warn("page_unreadable", of("unreadable"), "Damaged, could not be read: {pages}.")
    warn("ocr_used", scanned, "Read from pictures (OCR): {pages}. Check figures and names against the original.")
    poor = [n.page.number for n in sheets if n.confidence is not None and n.confidence < ocr.POOR]
    warn("ocr_low_confidence", poor, "Hard to read, expect errors: {pages}. A sharper scan would help.")
    if reader.wanted and reader.unavailable:
        warn("ocr_unavailable", unread, "Pictures not read: {pages}. " + reader.unavailable)
    elif (unread or scanned) and reader.wanted and reader.missing:
        lacking = ", ".join(reader.missing)
        warn("ocr_unavailable", sorted(unread + scanned), "Read without the language " + lacking + ": {pages}.")
    if reader.left:
        limit = variable("parse_timeout")
        warn("ocr_stopped", reader.left, "Pictures not read, it takes longer than " + limit + " allows: {pages}.")
    warn("page_without_text", empty, "No text on {pages}: what the picture shows there cannot be found.")
    warn("text_garbled", garbled, "The text on {pages} is stored as signs without meaning and cannot be found.")
    hidden = [sheet.page for sheet in sheets if sheet.page.hidden]
    pieces = sum(page.hidden for page in hidden)
    warn("hidden_text", [page.number for page in hidden], "Text that no reader sees was left out on {pages}.", pieces)
    return found
