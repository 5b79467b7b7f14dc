"""Answers, sources and hits as a person reads them in a terminal or a file, in the asker's language."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from rich.console import Console
from rich.text import Text

from api.cli.console import clean, measure, one_line
from api.cli.wrapping import wrap
from api.differences import Piece, words
from core.records import Answer, Hit, Language, Outcome
from core.text import language_of

INDENT = 4
# Characters of a quoted passage; the whole stands in the document, a citation shows where to look.
QUOTE = 280
# Characters of what stayed that are shown beside a change.
EDGE = 60
# Passages that a refusal shows.
NEAREST = 3
# Keeps a step's name and its seconds on one line; printed as a space.
NO_BREAK = "\u2423"

WORDS: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "sources": "Sources",
        "missing": "Not found in the documents",
        "contacts": "Whom to ask",
        "nearest": "Nearest passages",
        "page": "page {page}",
        "asked as": "understood as: {question}",
        "calls": "{calls} model calls",
        "one call": "1 model call",
        "incomplete": "This answer was cut short.",
        "total": "total",
        "condense": "understanding",
        "plan": "planning",
        "search": "searching",
        "grade": "judging",
        "rewrite": "rewording",
        "agent": "exploring",
        "answer": "answering",
    },
    "zh": {
        "sources": "来源",
        "missing": "文档中未找到",
        "contacts": "可以咨询",
        "nearest": "最接近的段落",
        "page": "第 {page} 页",
        "asked as": "理解为：{question}",
        "calls": "调用模型 {calls} 次",
        "one call": "调用模型 1 次",
        "incomplete": "回答未完成。",
        "total": "共",
        "condense": "理解",
        "plan": "规划",
        "search": "检索",
        "grade": "判断",
        "rewrite": "改写",
        "agent": "探查",
        "answer": "作答",
    },
}


def show_answer(console: Console, answer: Answer) -> None:
    """The answer with its [n], then its numbered sources (a refusal: the nearest passages), then the time it took."""
    show_body(console, answer.answer)
    show_evidence(console, answer)


def show_evidence(console: Console, answer: Answer) -> None:
    """Everything below an answer's text."""
    words = WORDS[answer.language]
    if answer.notice or answer.outcome is Outcome.INCOMPLETE:
        console.print()
        paragraph(console, one_line(answer.notice or words["incomplete"]), style="yellow")
    if answer.citations:
        _heading(console, words["sources"])
        for citation in answer.citations:
            hit_title(console, f"[{citation.n}]", citation.title, citation.heading_path, citation.page, words)
            paragraph(console, one_line(citation.document), style="dim")
            paragraph(console, f"“{shorten(citation.quote)}”", style="italic")
    elif answer.outcome is Outcome.REFUSED and answer.nearest:
        _heading(console, words["nearest"])
        for hit in answer.nearest[:NEAREST]:
            hit_title(console, "·", hit.title, hit.heading_path, hit.page, words)
            paragraph(console, one_line(hit.path), style="dim")
    _show_lack(console, answer)
    console.print()
    for line in footer(answer):
        paragraph(console, line, style="dim")


def _show_lack(console: Console, answer: Answer) -> None:
    """What was asked for and not found, where that is not all of the question, and whom to ask."""
    words = WORDS[answer.language]
    missing = [part for part in answer.missing if part not in (answer.question, answer.standalone_question)]
    for key, lines in (("missing", missing), ("contacts", answer.contacts)):
        if lines:
            _heading(console, words[key])
        for line in lines:
            paragraph(console, one_line(line))


def show_body(console: Console, text: str) -> None:
    """An answer's text, wrapped and indented, with its marks picked out."""
    for line in _body_lines(console, text):
        _body_line(console, line)


class Stream:
    """An answer's text as it comes, a line as soon as it is full. A full line never changes: see `wrap`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._text = ""
        self._shown = 0

    def write(self, text: str) -> None:
        """Take the next piece and show the lines that it completes."""
        self._text += text
        # A mark that has only begun will move to the line of its word.
        settled = re.sub(r"\s*\[\d*$", "", self._text)
        self._show(_body_lines(self._console, settled)[:-1])

    def end(self, answer: str) -> None:
        """Show what is left; `answer` is the whole, of which nothing may have been streamed."""
        if clean(answer).strip() != clean(self._text).strip():
            # The pieces and the whole differ only when the turn was cut short: the whole is what counts.
            self._show(_body_lines(self._console, self._text) if self._text.strip() else [])
            self._text, self._shown = answer, 0
        self._show(_body_lines(self._console, self._text))

    def _show(self, lines: Sequence[str]) -> None:
        for line in lines[self._shown :]:
            _body_line(self._console, line)
        self._shown = max(self._shown, len(lines))


def _body_lines(console: Console, text: str) -> list[str]:
    return wrap(clean(text).strip(), measure(console) - INDENT)


def _body_line(console: Console, line: str) -> None:
    shown = Text(line)
    shown.highlight_regex(r"\[\d+\]", "bold cyan")
    console.print(Text.assemble(" " * INDENT, shown) if line else Text(), soft_wrap=True)


def show_question(console: Console, text: str) -> None:
    """A question as a heading."""
    first, *rest = wrap(one_line(text), measure(console) - INDENT)
    console.print(Text.assemble(("?".ljust(INDENT), "bold cyan"), (first, "bold")), soft_wrap=True)
    for line in rest:
        console.print(Text(" " * INDENT + line, style="bold"), soft_wrap=True)
    console.print()


def footer(answer: Answer) -> list[str]:
    """How the question was understood where that differs from what was asked, and how long each step took."""
    words = WORDS[answer.language]
    steps = [f"{words.get(step, step)} {seconds:.1f} s" for step, seconds in answer.timings.items()]
    calls = words["one call"] if answer.model_calls == 1 else words["calls"].format(calls=answer.model_calls)
    lines = [" · ".join(part.replace(" ", NO_BREAK) for part in (*steps, calls))]
    if answer.standalone_question.strip() not in ("", answer.question.strip()):
        lines.insert(0, words["asked as"].format(question=one_line(answer.standalone_question)))
    return lines


def show_hits(console: Console, hits: Sequence[Hit]) -> None:
    """Search hits by rank: where, scores, and the passage."""
    for hit in hits:
        scores = {
            "reranked": hit.scores.reranked,
            "fused": hit.scores.fused,
            "vector": hit.scores.vector,
            "bm25": hit.scores.bm25,
        }
        shown = " · ".join(f"{name}{NO_BREAK}{value:.2f}" for name, value in scores.items() if value is not None)
        hit_title(console, str(hit.rank), hit.title, hit.heading_path, hit.page, WORDS[language_of(hit.text)])
        paragraph(console, f"{one_line(hit.path)}   {shown}", style="dim")
        paragraph(console, shorten(hit.text))
        console.print()


def show_facts(console: Console, facts: Mapping[str, str]) -> None:
    """Names with their values, one a line."""
    width = max(map(len, facts), default=0) + 2
    for name, value in facts.items():
        console.print(Text.assemble((name.ljust(width), "bold"), one_line(value)), soft_wrap=True)


def show_differences(console: Console, pieces: Sequence[Piece]) -> None:
    """What changed, word by word, under its headings: removed struck out, added underlined.

    Without colours it is set between marks, `[-removed-]` and `{+added+}`.
    """
    for headings, group in groupby(pieces, key=lambda piece: piece.heading_path):
        under = list(group)
        if all(piece.op == "same" for piece in under):
            continue
        paragraph(console, " › ".join(one_line(heading) for heading in headings) or "·", style="bold")
        text = Text()
        for piece in _by_word(under):
            text.append_text(_marked(piece, plain=not console.is_terminal or console.no_color))
        text.rstrip()
        for line in text.wrap(console, measure(console) - INDENT):
            line.rstrip()
            console.print(Text.assemble(" " * INDENT, line), soft_wrap=True)
        console.print()


def _by_word(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Sentences that took the place of others as the words that differ; of those that stayed, their edges."""
    waiting: Piece | None = None
    for number, piece in enumerate(pieces):
        if piece.op == "removed":
            waiting = piece
            continue
        if waiting is not None:
            yield from words(waiting.text, piece.text) if piece.op == "added" else (waiting,)
        if piece.op == "same":
            yield replace(piece, text=_edges(piece.text, first=number == 0, last=number == len(pieces) - 1))
        elif waiting is None:
            yield piece
        waiting = None
    if waiting is not None:
        yield waiting


def _edges(text: str, *, first: bool, last: bool) -> str:
    """The end of what comes before a change and the beginning of what comes after one."""
    head, tail = ("" if first else text[:EDGE]), ("" if last else text[-EDGE:])
    return text if len(head) + len(tail) >= len(text) else f"{head} … {tail}"


def _marked(piece: Piece, *, plain: bool) -> Text:
    shown = clean(piece.text)
    if piece.op == "same":
        return Text(shown, style="" if plain else "dim")
    body = shown.rstrip()
    opening, closing, style = ("[-", "-]", "red strike") if piece.op == "removed" else ("{+", "+}", "green underline")
    blanks = shown[len(body) :]
    return Text(f"{opening}{body}{closing}{blanks}") if plain else Text.assemble((body, style), blanks)


def shorten(text: str, length: int = QUOTE) -> str:
    """A passage on one line, cut at `length` characters with an ellipsis."""
    line = one_line(text)
    return line if len(line) <= length else line[:length].rstrip() + " …"


def hit_title(
    console: Console,
    mark: str,
    title: str,
    heading_path: Sequence[str],
    page: int | None,
    words: Mapping[str, str],
) -> None:
    """The first line of a hit or source: its mark, title, place and page, folded where it is long."""
    where = " › ".join(one_line(heading) for heading in heading_path)
    parts = [one_line(title), *([where] if where else []), *([_page(page, words)] if page else [])]
    first, *rest = (line.replace(NO_BREAK, " ") for line in wrap(" · ".join(parts), measure(console) - INDENT))
    # A title that had to be folded is bold no further than its first line: the eye looks for it there.
    end = min(len(parts[0]), len(first))
    line = Text.assemble((mark.ljust(INDENT), "bold cyan"), (first[:end], "bold"), first[end:])
    console.print(line, soft_wrap=True)
    for line_of_rest in rest:
        console.print(Text(" " * INDENT + line_of_rest), soft_wrap=True)


def _page(page: int, words: Mapping[str, str]) -> str:
    return words["page"].format(page=page).replace(" ", NO_BREAK)


def paragraph(console: Console, text: str, style: str = "") -> None:
    """Running text, indented and folded."""
    for line in wrap(text, measure(console) - INDENT):
        console.print(Text.assemble(" " * INDENT, (line.replace(NO_BREAK, " "), style)), soft_wrap=True)


def _heading(console: Console, text: str) -> None:
    console.print()
    paragraph(console, text, style="bold")
