"""One file to elements: the gate, the format's reader, then what holds for every format."""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from core.errors import FileTooLarge, IntramurosError, NoText
from core.records import Attachment, Element, ParsedDocument, ParseWarning
from core.text import fold
from ingest import archive, book, containers, convert, gate, mail, markdown, office, ooxml, outlook, pdf, pictures
from ingest.clean import clean, clean_warnings
from ingest.encoding import decode, decode_markup
from ingest.kinds import PICTURES, Kind
from ingest.markdown import FrontMatter
from ingest.options import ParseOptions
from ingest.paged import PagedText

log = logging.getLogger(__name__)

_LONGEST_TITLE = 300
_NUMBERED_HEADING = re.compile(r"^(?:第.{1,6}[章节条编]|[一二三四五六七八九十]+、|\d+[.、 ])")


@dataclass(slots=True)
class _Read:
    """What a format's reader found."""

    elements: list[Element]
    title: str | None = None
    front: FrontMatter = field(default_factory=FrontMatter)
    pages: int | None = None
    warnings: Sequence[ParseWarning] = ()
    attachments: Sequence[Attachment] = ()
    confidence: Mapping[int, float] = field(default_factory=dict)


def parse(path: Path, *, options: ParseOptions, name: str | None = None) -> ParsedDocument:
    """Read one file; `name` is the name it was given when `path` is a stored copy.

    Blocking and heavy. Raises IngestError for what the file is to blame for, NotFound for a path that is no file,
    MissingExtra where the parsing library is not the one we know.
    """
    kind = gate.check(path, max_bytes=options.max_bytes, name=name)
    try:
        return _document(_read(kind, path, options), Path(name or path.name))
    except IntramurosError:
        raise
    except Exception as error:
        # Parsers of hostile files raise anything at all; this is the one edge where it becomes ours.
        log.warning("parser failed", extra={"kind": kind.name, "error": type(error).__name__}, exc_info=True)
        raise office.translated(error) from error


def _read(kind: Kind, path: Path, options: ParseOptions) -> _Read:
    if kind is Kind.PDF:
        return _read_pages(pdf.read_pdf(path, options))
    if kind in PICTURES:
        return _read_pages(pictures.read_image(path.read_bytes(), options))
    if kind in convert.OFFICE:
        return _read_office(convert.OFFICE[kind], convert.to_office(path, kind))
    if kind in convert.MARKUP:
        return _read_converted(*convert.to_html(path, kind))
    if kind is Kind.ZIP:
        return _read_archive(path, options)
    data = path.read_bytes()
    if kind is Kind.EPUB:
        return _read_book(data)
    if kind in (Kind.DOCX, Kind.PPTX, Kind.XLSX):
        return _read_office(kind, data)
    if kind is Kind.CSV:
        return _Read(office.read_csv(data))
    if kind is Kind.MSG:
        return _read_mail(outlook.to_mail(data), options)
    if kind is Kind.EML:
        return _read_mail(data, options)
    return _read_text(kind, data)


def _read_pages(found: PagedText) -> _Read:
    return _Read(
        list(found.elements),
        found.title,
        pages=found.pages,
        warnings=found.warnings,
        confidence=found.confidence,
    )


def _read_office(kind: Kind, data: bytes) -> _Read:
    pages: int | None = None
    if kind is Kind.PPTX:
        elements, pages, warnings = office.read_pptx(data)
    elif kind is Kind.XLSX:
        elements, warnings = office.read_xlsx(data)
    else:
        elements, warnings = office.read_docx(data)
        pages = max((element.page or 0 for element in elements), default=0) or None
    remarks = containers.remarks(data, sum(len(element.text) for element in elements))
    return _Read(elements, ooxml.property_title(data), pages=pages, warnings=[*warnings, *remarks])


def _read_converted(html: str, remarks: Sequence[ParseWarning]) -> _Read:
    elements, title, warnings = office.read_html(html)
    return _Read(elements, title, warnings=[*remarks, *warnings])


def _read_book(data: bytes) -> _Read:
    found = book.read_book(data)
    elements, warnings = _read_pieces(found.chapters)
    if found.missing:
        text = f"Chapters that the book lists are not in it ({found.missing})."
        warnings.append(ParseWarning("page_unreadable", text, found.missing))
    return _Read(elements, found.title, warnings=warnings)


def _read_pieces(pages: Iterable[str]) -> tuple[list[Element], list[ParseWarning]]:
    """Several pages of HTML as one text; what was hidden in them is told once."""
    elements: list[Element] = []
    hidden = 0
    for page in pages:
        found, _, warnings = office.read_html(page)
        elements += found
        hidden += sum(warning.count for warning in warnings)
    return elements, office.hidden_warning(hidden)


def _read_archive(path: Path, options: ParseOptions) -> _Read:
    takings = archive.read_zip(path, options)
    elements = [Element("list", f"- {attachment.name}") for attachment in takings.kept]
    return _Read(elements, warnings=takings.warnings, attachments=takings.kept)


def _read_text(kind: Kind, data: bytes) -> _Read:
    text = (decode_markup(data) if kind is Kind.HTML else decode(data)).replace("\r\n", "\n").replace("\r", "\n")
    if len(text) > office.MAX_CHARACTERS:
        raise FileTooLarge("The file holds more text than a document should. Split it.")
    if kind is Kind.TEXT:
        return _Read(office.read_text(text))
    front, body, warnings = markdown.split_front_matter(text)
    body = markdown.without_templates(body)
    if not body.strip():
        # A page that only points elsewhere: what its head says is all there is to find.
        return _Read([Element("text", line) for line in front.lines], front=front, warnings=warnings)
    source = markdown.to_html(body) if kind is Kind.MARKDOWN else body
    elements, title, more = office.read_html(source)
    return _Read(elements, title if kind is Kind.HTML else None, front=front, warnings=[*warnings, *more])


def _read_mail(data: bytes, options: ParseOptions) -> _Read:
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    message = mail.read_mail(decode(data).encode("utf-8") if wide else data, options)
    elements: list[Element] = []
    hidden = 0
    for body in message.bodies:
        if body.form == "headers":
            elements.append(Element("text", body.text))
        elif body.form == "plain":
            elements += office.read_text(body.text)
        else:
            found, _, more = office.read_html(body.text)
            elements += found
            hidden += sum(warning.count for warning in more)
    names = ", ".join(attachment.name for attachment in message.attachments)
    if names:
        elements.append(Element("text", f"Attachments: {names}"))
    elif all(body.form == "headers" for body in message.bodies):
        raise NoText("The message holds no text and no attachment that can be read.")
    # The subject is the title, whatever headings the text has.
    front = FrontMatter(title=message.subject)
    warnings = [*message.warnings, *office.hidden_warning(hidden)]
    return _Read(elements, front=front, warnings=warnings, attachments=message.attachments)


# --- what holds for every format --------------------------------------------------------------------------------------


def _document(read: _Read, name: Path) -> ParsedDocument:
    elements, invisible, forged = _cleaned(read.elements)
    if not elements:
        raise NoText("The file holds no text: it is empty, or shows pictures only.")
    warnings = [*read.warnings, *clean_warnings(invisible, forged)]
    title = _title(read, elements, name)
    return ParsedDocument(
        title=title,
        elements=tuple(_without_title(elements, title)),
        pages=read.pages,
        warnings=tuple(replace(warning, text=clean(warning.text).text) for warning in warnings),
        effective_from=read.front.effective_from,
        effective_to=read.front.effective_to,
        supersedes=clean(read.front.supersedes).text if read.front.supersedes else None,
        attachments=tuple(read.attachments),
        confidence=read.confidence,
    )


def _cleaned(elements: Iterable[Element]) -> tuple[list[Element], int, int]:
    """The elements that still have a text, and how many invisible characters and forged marks they had."""
    kept: list[Element] = []
    invisible = forged = 0
    for element in elements:
        text, gone, defused = clean(element.text)
        invisible += gone
        forged += defused
        if text.strip():
            kept.append(replace(element, text=text if element.kind != "title" else " ".join(text.split())))
    return kept, invisible, forged


def _title(read: _Read, elements: list[Element], name: Path) -> str:
    """Front matter, else the heading that stands for the whole, else the property, else the file's name."""
    for candidate in (read.front.title, _leading_heading(elements), read.title):
        words = " ".join(clean(candidate or "").text.split())
        if words:
            return words[:_LONGEST_TITLE]
    return humanised(name.stem)


def _leading_heading(elements: list[Element]) -> str | None:
    """The first heading of the first level, unless it is one numbered chapter of several."""
    tops = [element.text for element in elements if element.kind == "title" and element.level == 1]
    if not tops or (len(tops) > 1 and (_NUMBERED_HEADING.match(tops[0]) or elements[0].text != tops[0])):
        return None
    return tops[0]


def humanised(stem: str) -> str:
    """A file name as a title: `travel_policy-2026` becomes `Travel policy 2026`."""
    words = " ".join(re.sub(r"[_\-.]+", " ", clean(stem).text).split())
    return (words[:1].upper() + words[1:])[:_LONGEST_TITLE] or "Untitled"


def _without_title(elements: list[Element], title: str) -> list[Element]:
    """The elements without the heading that only repeats the title; headings alone become text, to be found."""
    if all(element.kind == "title" for element in elements):
        return [replace(element, kind="text", level=0) for element in elements]
    same = fold(title)
    for index, element in enumerate(elements):
        if element.kind == "title":
            if fold(element.text) == same:
                return elements[:index] + elements[index + 1 :]
            break
    return elements
