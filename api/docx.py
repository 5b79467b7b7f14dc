"""Markdown as a Word document: what an answer, a brief or a conversation looks like when it leaves the page.

Only text leaves: no pictures, no fields, no links. A link's words stay, its address does not.
"""

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Final

from markdown_it.token import Token

from api.rendering import bare_markdown

if TYPE_CHECKING:
    from docx.document import Document
    from docx.text.paragraph import Paragraph

_MOST_LEVELS: Final = 9
_LISTS: Final = {"bullet_list_open": "List Bullet", "ordered_list_open": "List Number"}
# Word has styles for lists in lists down to the third level.
_DEEPEST_LIST: Final = 3
_BREAKS: Final = {"softbreak": "\n", "hardbreak": "\n"}


def docx(markdown: str, title: str) -> bytes:
    """The bytes of a .docx file whose title (in its properties) is `title`."""
    # Imported late: nothing else needs it.
    from docx import Document as new_document

    document = new_document()
    document.core_properties.title = title
    document.core_properties.author = "Intramuros"
    _Writer(document).write(bare_markdown().parse(markdown))
    out = BytesIO()
    document.save(out)
    return out.getvalue()


class _Writer:
    """Walks over block tokens; `_lists` are the styles of the lists that are open, `_quoted` counts open quotations."""

    def __init__(self, document: "Document") -> None:
        self._document = document
        self._lists: list[str] = []
        self._quoted = 0

    def write(self, tokens: Sequence[Token]) -> None:
        """Add every block of the document."""
        at = 0
        while at < len(tokens):
            token = tokens[at]
            if token.type == "table_open":
                end = next(n for n in range(at, len(tokens)) if tokens[n].type == "table_close")
                self._table(tokens[at:end])
                at = end
            elif token.type == "heading_open":
                level = min(int(token.tag[1:]), _MOST_LEVELS)
                _runs(self._document.add_heading(level=level), tokens[at + 1].children or [])
                at += 1
            else:
                self._block(token)
            at += 1

    def _block(self, token: Token) -> None:
        if token.type in _LISTS:
            self._lists.append(_LISTS[token.type])
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            self._lists.pop()
        elif token.type in ("blockquote_open", "blockquote_close"):
            self._quoted += token.nesting
        elif token.type == "inline":
            _runs(self._document.add_paragraph(style=self._style()), token.children or [])
        elif token.type in ("fence", "code_block"):
            self._document.add_paragraph(token.content.rstrip("\n"), style="No Spacing")

    def _style(self) -> str:
        if self._quoted:
            return "Quote"
        if not self._lists:
            return "Normal"
        depth = min(len(self._lists), _DEEPEST_LIST)
        return self._lists[-1] if depth == 1 else f"{self._lists[-1]} {depth}"

    def _table(self, tokens: Sequence[Token]) -> None:
        rows: list[list[Token]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                rows[-1].append(token)
        table = self._document.add_table(rows=len(rows), cols=max(map(len, rows)), style="Table Grid")
        for row, cells in zip(table.rows, rows, strict=True):
            for place, token in zip(row.cells, cells, strict=False):
                _runs(place.paragraphs[0], token.children or [])


def _runs(paragraph: "Paragraph", inline: Sequence[Token]) -> None:
    """The words of one block, bold and italic as they are marked."""
    bold = italic = 0
    for token in inline:
        bold += token.nesting if token.tag == "strong" else 0
        italic += token.nesting if token.tag == "em" else 0
        text = _BREAKS.get(token.type, token.content if token.type in ("text", "code_inline") else "")
        if text:
            run = paragraph.add_run(text)
            run.bold, run.italic = bold > 0, italic > 0
