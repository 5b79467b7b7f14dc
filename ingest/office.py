"""The one module that touches unstructured: caged, lazily imported, its pieces turned into our elements.

unstructured reports home at import and at every call unless told not to beforehand, and downloads an English
language model in the middle of ingestion. Here it is told so before its import, and gets a blank multilingual
pipeline instead of the model: we use its structure, not its guesses about what is prose.
"""

import csv
import io
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from lxml import html as lxml_html

from core.errors import DamagedFile, EncryptedFile, FileTooLarge, MissingExtra, NoText
from core.records import Element, ParseWarning
from ingest import html, plain, sheets, slides, tables, word
from ingest.encoding import decode

# Beyond this a file is data, not a document (about 4,000 pages).
MAX_CHARACTERS = 12_000_000
# Table cells of one workbook or CSV file.
MAX_CELLS = 500_000

# How much of a table is looked at to find its delimiter.
_SNIFFED, _SNIFFED_LINES = 20_000, 30

_GUESSES = ("is_possible_narrative_text", "is_possible_title")
_STOPS = "。！？；…．"
_MARKER = re.compile(r"^(?:[-*•·●○▪◦–—]|\(?\d{1,3}[.)、．]|[（(]\d{1,2}[）)]|\(?[a-zA-Z][.)]|[①-⑳])\s*")
_HEADING_STYLE = re.compile(r"^heading (\d)$", re.I)
_CONTENTS_STYLE = re.compile(r"^(?:toc \d|toc ?heading|table of figures)$", re.I)
_LONGEST_BOLD_HEADING = 80

# unstructured's HTML parser, spaCy's cache and its own caches are not made for threads at the same time.
_LOCK = threading.Lock()


@lru_cache(maxsize=1)
def _library() -> Any:
    """unstructured's partitioners, imported once, silenced and without its model download."""
    from policy import boot

    boot.seal()
    try:
        from unstructured.nlp import tokenize

        # Before the partitioners are imported, and only what is there: another version may download by another name.
        if not hasattr(tokenize, "_load_spacy_model") or not hasattr(tokenize, "_install_spacy_model"):
            raise MissingExtra("unstructured is not of the version that is pinned. Install Intramuros again.")
        tokenize._load_spacy_model = pipeline
        tokenize._install_spacy_model = _never_install
        return _partitioners()
    except ImportError as error:
        raise MissingExtra("The parsing library is not installed whole. Install Intramuros again.") from error


def _partitioners() -> dict[str, Callable[..., list[Any]]]:
    from unstructured.partition.csv import partition_csv
    from unstructured.partition.docx import partition_docx
    from unstructured.partition.html import partition_html
    from unstructured.partition.pptx import partition_pptx
    from unstructured.partition.text import partition_text
    from unstructured.partition.xlsx import partition_xlsx

    return {
        "csv": partition_csv,
        "docx": partition_docx,
        "html": partition_html,
        "pptx": partition_pptx,
        "text": partition_text,
        "xlsx": partition_xlsx,
    }


def pipeline() -> Any:
    """A blank multilingual spaCy pipeline that ends sentences at Latin and Chinese stops."""
    import spacy
    from spacy.attrs import IS_PUNCT
    from spacy.util import compile_infix_regex

    blank = spacy.blank("xx")
    # Chinese text has no blanks between words: without this a stop inside it is no token of its own.
    stops = f"[{''.join(_STOPS)}]"
    tokenizer: Any = blank.tokenizer
    tokenizer.infix_finditer = compile_infix_regex([*(blank.Defaults.infixes or ()), stops]).finditer
    blank.add_pipe("sentencizer", config={"punct_chars": [*".!?", *_STOPS]})
    # Of each new word a score of traits would be worked out: the end of a sentence asks for this one.
    vocabulary: Any = blank.vocab
    vocabulary.lex_attr_getters = {IS_PUNCT: vocabulary.lex_attr_getters[IS_PUNCT]}
    return blank


def _never_install() -> None:
    raise RuntimeError("A language model was asked for although none is needed.")


@contextmanager
def _no_guessing() -> Iterator[None]:
    """Whether a paragraph is prose, or a heading by its looks, is guessed at length, and told apart nowhere below."""
    from unstructured.partition import docx, text, xlsx
    from unstructured.partition.html import parser

    modules = [vars(module) for module in (docx, parser, text, xlsx)]
    guesses = [(names, name, names[name]) for names in modules for name in _GUESSES if name in names]
    for names, name, _ in guesses:
        names[name] = lambda _: False
    try:
        yield
    finally:
        for names, name, guess in guesses:
            names[name] = guess


def _partition(form: str, **options: Any) -> list[Any]:
    with _LOCK:
        partitioner = _library()[form]
        with _no_guessing():
            # languages=[""]: no language detection; ours looks at the script.
            return list(partitioner(languages=[""], **options))


# --- formats ----------------------------------------------------------------------------------------------------------


def read_html(source: str | bytes) -> tuple[list[Element], str | None, list[ParseWarning]]:
    """Elements, the page's own title, and warnings."""
    prepared = html.prepare(source)
    if len(prepared.html) > MAX_CHARACTERS * 2:
        raise FileTooLarge("The page holds more text than a document should. Split it.")
    found = _partition("html", text=prepared.html) if prepared.html.strip() else []
    return list(_elements(found)), prepared.title, hidden_warning(prepared.hidden)


def read_text(text: str) -> list[Element]:
    """Elements of plain text: headings by their looks, paragraphs, list items."""
    found = plain.paragraphs(text)
    levels = {paragraph.text: paragraph.level for paragraph in found if paragraph.level}
    lines = "\n".join(plain.as_lines(found))
    elements = _partition("text", text=lines, paragraph_grouper=False) if lines.strip() else []
    return list(_text_elements(elements, levels))


def read_csv(data: bytes) -> list[Element]:
    """One table; the first row names the columns when it looks like names."""
    even = table_source(decode(data))
    found = _partition("csv", file=io.BytesIO(even.encode("utf-8", errors="ignore")), include_header=False)
    return list(_elements(found, named_columns=True))


def table_source(text: str) -> str:
    """The same table with commas, all cells quoted and rows of one length, whatever the file used.

    The partitioner guesses the delimiter from one line and fails on rows longer than the first.
    """
    sample = [line for line in text[:_SNIFFED].split("\n") if line.strip()][:_SNIFFED_LINES]
    delimiter = max(",;\t|", key=lambda char: _steadiness(sample, char))
    csv.field_size_limit(MAX_CHARACTERS)
    rows = [row for row in csv.reader(io.StringIO(text.replace("\0", "")), delimiter=delimiter) if any(row)]
    width = max((len(row) for row in rows), default=0)
    if width * len(rows) > MAX_CELLS:
        raise FileTooLarge("The table has too many cells. Split it.")
    if not rows:
        raise NoText("The file holds no table.")
    even = io.StringIO()
    csv.writer(even, quoting=csv.QUOTE_ALL).writerows(row + [""] * (width - len(row)) for row in rows)
    return even.getvalue()


def _steadiness(lines: list[str], delimiter: str) -> tuple[int, int]:
    """How many lines have as many delimiters as the first one has, and how many those are."""
    wanted = lines[0].count(delimiter) if lines else 0
    return (sum(line.count(delimiter) == wanted for line in lines), wanted) if wanted else (0, 0)


def read_docx(data: bytes) -> tuple[list[Element], list[ParseWarning]]:
    """Elements and warnings; headers and footers, which repeat on every page, are left out."""
    readable, hidden = word.readable_docx(data)
    found = _partition("docx", file=io.BytesIO(readable), include_page_breaks=False)
    return list(_docx_elements(found)), hidden_warning(hidden)


def read_pptx(data: bytes) -> tuple[list[Element], int, list[ParseWarning]]:
    """Elements with slide numbers as pages, the number of slides, and warnings."""
    deck = slides.readable_pptx(data)
    found = _partition("pptx", file=io.BytesIO(deck.data), include_page_breaks=False)
    shown = [piece for piece in found if piece.metadata.page_number not in deck.hidden_slides]
    warnings = hidden_warning(sum(deck.hidden.values()), deck.hidden)
    if deck.hidden_slides:
        numbers = tuple(sorted(deck.hidden_slides))
        text = f"Hidden slides were left out: {', '.join(map(str, numbers))}."
        warnings.append(ParseWarning("hidden_slides", text, len(numbers), numbers))
    return list(_slide_elements(shown)), deck.slides, warnings


def read_xlsx(data: bytes) -> tuple[list[Element], list[ParseWarning]]:
    """Elements, each sheet under its name, and warnings."""
    book = sheets.readable_xlsx(data)
    found = _partition("xlsx", file=io.BytesIO(book.data))
    shown = [piece for piece in found if piece.metadata.page_name not in book.hidden_sheets]
    warnings = hidden_warning(book.hidden)
    if book.hidden_sheets:
        text = f"Hidden sheets were left out: {', '.join(sorted(book.hidden_sheets))}."
        warnings.append(ParseWarning("hidden_sheets", text, len(book.hidden_sheets)))
    return list(_sheet_elements(shown)), warnings


def hidden_warning(count: int, pages: Iterable[int] = ()) -> list[ParseWarning]:
    """What is told of text that no reader sees; nothing where there was none."""
    if not count:
        return []
    places = "1 place" if count == 1 else f"{count} places"
    return [ParseWarning("hidden_text", f"Hidden text was left out in {places}.", count, tuple(sorted(pages)))]


# --- pieces to elements -----------------------------------------------------------------------------------------------


def _elements(found: Iterable[Any], *, named_columns: bool = False) -> Iterator[Element]:
    for piece in found:
        element = _element(piece, named_columns=named_columns)
        if element.text.strip():
            yield element


def _element(piece: Any, *, named_columns: bool = False) -> Element:
    page = piece.metadata.page_number
    depth = piece.metadata.category_depth or 0
    if piece.category == "Table":
        return Element("table", _table(piece, named_columns), page=page)
    if piece.category == "Title":
        return Element("title", _one_line(piece.text), level=depth + 1, page=page)
    if piece.category == "ListItem":
        return Element("list", _item(piece.text, depth), page=page)
    return Element("text", piece.text if piece.category == "CodeSnippet" else piece.text.strip(), page=page)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _item(text: str, depth: int) -> str:
    mark = "" if _MARKER.match(text) else "- "
    return "  " * max(depth - 1, 0) + mark + text.strip()


def _table(piece: Any, named_columns: bool) -> str:
    source = piece.metadata.text_as_html
    if not source:
        return str(piece.text)
    rows, kinds = [], []
    caption = ""
    for node in lxml_html.fragment_fromstring(source).iter("caption", "tr"):
        if node.tag == "caption":
            caption = _one_line("".join(node.itertext()))
            continue
        cells = [cell for cell in node if cell.tag in ("td", "th")]
        rows.append([text for cell in cells for text in [_cell(cell)] * _columns(cell)])
        kinds.append([str(cell.tag) for cell in cells])
    header = tables.leading_header_rows(kinds)
    text = tables.table_text(rows, header_rows=header, named=named_columns)
    return f"{caption}\n{text}" if caption and text else text


def _cell(cell: Any) -> str:
    for line_break in cell.iter("br"):
        line_break.tail = " " + (line_break.tail or "")
    # Excel stores a day as midnight of it.
    text = _one_line("".join(cell.itertext())).removesuffix(" 00:00:00")
    # pandas writes a line break inside a cell as backslash n; a path such as C:\\new has it after a colon.
    return _one_line(re.sub(r"(?<![:\\])\\n", " ", text))


def _columns(cell: Any) -> int:
    return min(int(cell.get("colspan", "1")), html.MAX_SPAN)


def _text_elements(found: Iterable[Any], levels: dict[str, int]) -> Iterator[Element]:
    for piece in found:
        level = levels.get(piece.text)
        if level:
            yield Element("title", piece.text, level=level)
        else:
            yield Element("list" if piece.category == "ListItem" else "text", _plain_item(piece))


def _plain_item(piece: Any) -> str:
    return _item(piece.text, 0) if piece.category == "ListItem" else str(piece.text)


def _docx_elements(found: Iterable[Any]) -> Iterator[Element]:
    depth = 0
    for piece in found:
        style = piece.metadata.style_name or ""
        if piece.category in ("Header", "Footer", "PageBreak") or _CONTENTS_STYLE.match(style):
            continue
        heading = _HEADING_STYLE.match(style)
        if heading or style.lower() == "title":
            depth = int(heading[1]) if heading else 1
            yield Element("title", _one_line(piece.text), level=depth, page=piece.metadata.page_number)
        elif _bold_heading(piece):
            yield Element("title", _one_line(piece.text), level=depth + 1, page=piece.metadata.page_number)
        elif piece.category == "Title":
            yield Element("text", _one_line(piece.text), page=piece.metadata.page_number)
        else:
            yield from _elements([piece])


def _bold_heading(piece: Any) -> bool:
    """A short paragraph of its own in bold throughout: a heading by somebody who uses no styles."""
    tags, contents = piece.metadata.emphasized_text_tags or [], piece.metadata.emphasized_text_contents or []
    if piece.category in ("Table", "ListItem") or "b" not in tags or len(piece.text) > _LONGEST_BOLD_HEADING:
        return False
    bold = "".join(text for text, tag in zip(contents, tags, strict=False) if tag == "b")
    ends_like_prose = piece.text.rstrip().endswith((".", "。", "；", ";", "，", ","))
    return "".join(bold.split()) == "".join(piece.text.split()) and not ends_like_prose


def _slide_elements(found: Iterable[Any]) -> Iterator[Element]:
    """Each slide's title is its heading; unstructured's other titles are guesses and stay text."""
    page = 0
    for piece in found:
        number = piece.metadata.page_number or 0
        titled = number != page and piece.category == "Title" and not piece.metadata.category_depth
        if number != page and not titled:
            yield Element("title", f"Slide {number}", level=1, page=number)
        page = number
        if piece.category == "Title" and not titled:
            yield Element("text", _one_line(piece.text), page=number)
        elif piece.category != "PageBreak":
            yield from _elements([piece])


def _sheet_elements(found: Iterable[Any]) -> Iterator[Element]:
    sheet = None
    for piece in found:
        if piece.metadata.page_name != sheet:
            sheet = piece.metadata.page_name
            # Below the first level: a sheet's name is never the workbook's title.
            yield Element("title", _one_line(sheet or "Sheet"), level=2)
        if piece.category == "Table":
            yield Element("table", _table(piece, named_columns=False))
        elif piece.text.strip():
            yield Element("text", _one_line(piece.text))


def translated(error: Exception) -> DamagedFile | EncryptedFile | FileTooLarge | NoText:
    """The typed error for one that unstructured or a library under it raised."""
    words = str(error).lower()
    if "password" in words or "encrypted" in words:
        return EncryptedFile()
    if "exceeds the maximum" in words:
        return FileTooLarge("The table has too many cells. Split it.")
    if isinstance(error, MemoryError):
        return FileTooLarge("The file needs more memory than there is. Split it.")
    if "no columns to parse" in words:
        return NoText("The file holds no table.")
    return DamagedFile()
