"""Mixed documents for measurements: the public corpora's own pages, written into the formats an organisation has.

Texts are real and each is used once, so that identical chunks are as rare as in life; only their wrapping is made here.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from html import escape
from itertools import islice
from pathlib import Path

import docx

from core.text import is_cjk
from tests.paths import shared_data
from tests.unit.ingest.samples import Ink, pdf_bytes

# Characters of one document at most: long pages are cut at a paragraph, so that a run of a thousand stays bounded.
LONGEST = 5000
_CORPORA = ("handbook-gsa-tts/pages", "docs-dify-en-zh", "policies-github", "policies-strongdm-comply")
_LINES_ON_PAGE = 48
_PLAIN_MARKS = str.maketrans("‘’“”–—…", "''\"\"--.")


def texts() -> Iterator[str]:
    """Every page of the public corpora as plain paragraphs, in a fixed order."""
    folder = shared_data()
    if folder is None:
        raise SystemExit("The folder of public data sets is not beside the project: nothing to measure on.")
    for corpus in _CORPORA:
        for path in sorted((folder / corpus).rglob("*.md*")):
            text = _plain(path.read_text(encoding="utf-8", errors="replace"))
            if len(text) > 400:
                yield text


def write(folder: Path, count: int, *, first: int = 0) -> list[Path]:
    """Write `count` documents, from number `first` on and formats by turns, below the folder; their paths.

    The corpora hold about a thousand.
    """
    made = []
    for number, text in enumerate(islice(_endless(), first, first + count), start=first):
        extension, build = FORMATS[number % len(FORMATS)]
        if extension == "pdf" and any(map(is_cjk, text)):
            extension, build = "docx", as_docx  # the PDF's built-in font has no Chinese
        path = folder / f"{number % 20:02}" / f"page-{number:05}.{extension}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(build(f"Page {number}", text))
        made.append(path)
    return made


def _endless() -> Iterator[str]:
    """All texts, then all again with each paragraph marked by its round, for counts beyond the corpora's size."""
    found = list(texts())
    yield from found
    number = 1
    while True:
        number += 1
        for text in found:
            yield "\n\n".join(f"{paragraph} (edition {number})" for paragraph in text.split("\n\n"))


def _plain(markdown: str) -> str:
    text = re.sub(r"\A---\n.*?\n---\n", "", markdown, flags=re.S)
    text = re.sub(r"<[^>]+>|!?\[([^\]]*)\]\([^)]*\)|[*_`#>|]", r"\1", text)
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]
    kept: list[str] = []
    for paragraph in filter(None, paragraphs):
        if sum(map(len, kept)) + len(paragraph) > LONGEST:
            break
        kept.append(paragraph)
    return "\n\n".join(kept)


def as_markdown(title: str, text: str) -> bytes:
    return f"# {title}\n\n{text}\n".encode()


def as_text(title: str, text: str) -> bytes:
    return f"{title}\n\n{text}\n".encode()


def as_html(title: str, text: str) -> bytes:
    body = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in text.split("\n\n"))
    return (
        f"<!DOCTYPE html><html><head><title>{title}</title></head><body><h1>{title}</h1>{body}</body></html>".encode()
    )


def as_docx(title: str, text: str) -> bytes:
    document = docx.Document()
    document.add_heading(title, level=1)
    for paragraph in text.split("\n\n"):
        document.add_paragraph("".join(char for char in paragraph if char.isprintable()))
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def as_mail(title: str, text: str) -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "hr@example.org", "all@example.org", title
    message.set_content(text)
    return message.as_bytes()


def as_csv(title: str, text: str) -> bytes:
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(["Topic", "Rule"])
    rows.writerows([f"{title} {number}", paragraph] for number, paragraph in enumerate(text.split("\n\n"), start=1))
    return out.getvalue().encode()


def as_pdf(title: str, text: str) -> bytes:
    text = text.translate(_PLAIN_MARKS).encode("ascii", "ignore").decode()
    lines = [line for paragraph in text.split("\n\n") for line in (*_wrapped(paragraph), "")]
    pages = [lines[at : at + _LINES_ON_PAGE] for at in range(0, len(lines), _LINES_ON_PAGE)]
    inks = [[Ink(line, y=780 - 15 * row) for row, line in enumerate(page) if line] for page in pages]
    inks[0].insert(0, Ink(title, y=805, size=18))
    return pdf_bytes(inks, title=title)


def _wrapped(paragraph: str) -> list[str]:
    return re.findall(r"\S.{0,84}(?:\s+|$)|\S{85}", paragraph)


# Formats by turns, about as often as they are met in a shared folder of policies.
FORMATS: tuple[tuple[str, Callable[[str, str], bytes]], ...] = (
    ("docx", as_docx),
    ("pdf", as_pdf),
    ("md", as_markdown),
    ("html", as_html),
    ("docx", as_docx),
    ("pdf", as_pdf),
    ("txt", as_text),
    ("eml", as_mail),
    ("md", as_markdown),
    ("csv", as_csv),
)
