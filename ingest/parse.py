"""One file to elements: the gate, the format's reader, then what holds for every format."""

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from core.errors import FileTooLarge, IntramurosError, NoText
from core.records import Element, ParsedDocument
from core.text import fold
from ingest import gate, mail, markdown, office, ooxml, pdf
from ingest.clean import clean
from ingest.encoding import decode, decode_markup
from ingest.gate import Kind
from ingest.markdown import FrontMatter

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
    warnings: list[str] = field(default_factory=list)


def parse(path: Path, *, max_bytes: int, name: str | None = None) -> ParsedDocument:
    """Read one file; `name` is the name it was given when `path` is a stored copy.

    Blocking and heavy: call it in a thread. Raises IngestError for what the file is to blame for, NotFound for a path
    that is no file, MissingExtra where the parsing library is not the one we know.
    """
    kind = gate.check(path, max_bytes=max_bytes, name=name)
    try:
        return _document(_read(kind, path), Path(name or path.name))
    except IntramurosError:
        raise
    except Exception as error:
        # Parsers of hostile files raise anything at all; this is the one edge where it becomes ours.
        log.warning("parser failed", extra={"kind": kind.name, "error": type(error).__name__}, exc_info=True)
        raise office.translated(error) from error


def _read(kind: Kind, path: Path) -> _Read:
    if kind is Kind.PDF:
        found = pdf.read_pdf(path)
        return _Read(list(found.elements), found.title, pages=found.pages, warnings=list(found.warnings))
    data = path.read_bytes()
    if kind is Kind.DOCX:
        elements, warnings = office.read_docx(data)
        pages = max((element.page or 0 for element in elements), default=0) or None
        return _Read(elements, ooxml.property_title(data), pages=pages, warnings=warnings)
    if kind is Kind.PPTX:
        elements, slides, warnings = office.read_pptx(data)
        return _Read(elements, ooxml.property_title(data), pages=slides, warnings=warnings)
    if kind is Kind.XLSX:
        elements, warnings = office.read_xlsx(data)
        return _Read(elements, ooxml.property_title(data), warnings=warnings)
    if kind is Kind.CSV:
        return _Read(office.read_csv(data))
    if kind is Kind.EML:
        return _read_mail(data)
    return _read_text(kind, data)


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
    return _Read(elements, title if kind is Kind.HTML else None, front=front, warnings=warnings + more)


def _read_mail(data: bytes) -> _Read:
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    message = mail.read_mail(decode(data).encode("utf-8") if wide else data)
    elements: list[Element] = []
    warnings: list[str] = []
    for body in message.bodies:
        if body.form == "headers":
            elements.append(Element("text", body.text))
        elif body.form == "plain":
            elements += office.read_text(body.text)
        else:
            found, _, more = office.read_html(body.text)
            elements += found
            warnings += more
    if not any(body.form != "headers" for body in message.bodies):
        raise NoText("The message holds no text of its own. Upload its attachments as files.")
    if message.attachments:
        names = ", ".join(message.attachments)
        elements.append(Element("text", f"Attachments: {names}"))
        warnings.append(f"Attachments were not read: {names}. Upload them as files.")
    return _Read(elements, message.subject, warnings=warnings)


# --- what holds for every format --------------------------------------------------------------------------------------


def _document(read: _Read, name: Path) -> ParsedDocument:
    elements, removed = _cleaned(read.elements)
    if not elements:
        raise NoText()
    warnings = list(read.warnings)
    if removed:
        warnings.append(f"{removed} invisible characters were removed.")
    title = _title(read, elements, name)
    return ParsedDocument(
        title=title,
        elements=tuple(_without_title(elements, title)),
        pages=read.pages,
        warnings=tuple(clean(warning)[0] for warning in warnings),
        effective_from=read.front.effective_from,
        effective_to=read.front.effective_to,
        supersedes=clean(read.front.supersedes)[0] if read.front.supersedes else None,
    )


def _cleaned(elements: Iterable[Element]) -> tuple[list[Element], int]:
    kept: list[Element] = []
    removed = 0
    for element in elements:
        text, gone = clean(element.text)
        removed += gone
        if text.strip():
            kept.append(replace(element, text=text if element.kind != "title" else " ".join(text.split())))
    return kept, removed


def _title(read: _Read, elements: list[Element], name: Path) -> str:
    """Front matter, else the heading that stands for the whole, else the property, else the file's name."""
    for candidate in (read.front.title, _leading_heading(elements), read.title):
        words = " ".join(clean(candidate or "")[0].split())
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
    words = " ".join(re.sub(r"[_\-.]+", " ", clean(stem)[0]).split())
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
