"""An explained search as a person reads it in a terminal: its terms, both lists, their fusion, the passages found."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from api.cli import console as words
from api.cli.console import one_line
from api.cli.printing import INDENT, WORDS, hit_title, paragraph
from api.cli.wrapping import wrap
from api.explained import ExplainedHitView, ExplanationView, FiltersView, ListedView, MarkedView, TermView
from core.text import language_of

# Places of either list that are shown; --json has them all.
LISTED = 10
# Characters of a passage, of which the first match is shown.
QUOTE = 280
BEFORE = 60
NUMBERS = ("Counts", "Chunks", "idf", "Weight", "Rank", "Cosine", "BM25")


def show(console: Console, found: ExplanationView) -> None:
    """Everything, in the order in which the search came to it."""
    for line in _reach(found):
        console.print(Text(one_line(line)), soft_wrap=True)
    _heading(console, "Terms")
    if found.terms:
        words.table(("Term", "Counts", "Chunks", "idf", "Weight", ""), list(map(_term, found.terms)), right=NUMBERS)
    else:
        console.print(Text("None: every word of the query is left out of a search."))
    # One below the other: side by side, titles and headings would be folded to a few characters a line.
    _heading(console, f"By meaning, {'compared one by one' if found.exact else 'through an index'}")
    _list(console, found.nearest, ("Rank", "Passage", "Cosine"))
    _heading(console, "By words")
    _list(console, found.lexical, ("Rank", "Passage", "BM25", "Matched"))
    _heading(console, f"Fused: {1 - found.words:.0%} meaning, {found.words:.0%} words")
    for hit in found.hits:
        _hit(console, hit)
    if not found.hits:
        console.print(Text("Nothing found."))


def _reach(found: ExplanationView) -> Iterator[str]:
    documents, chunks = words.counted(found.documents, "document"), words.counted(found.chunks, "chunk")
    yield f"Rights and filters leave {documents} with {chunks}: {', '.join(_filters(found.filters))}."
    for word, others in found.synonyms.items():
        yield f"{word}: looked for {', '.join(others)} as well."


def _filters(filters: FiltersView) -> Iterator[str]:
    for name, values in (
        ("collection", filters.collections),
        ("document", filters.documents),
        ("language", filters.languages),
        ("type", filters.media_types),
    ):
        if values is not None:
            yield f"{name} {' or '.join(map(str, values))}"
    yield f"in force on {filters.as_of}"


def _term(term: TermView) -> tuple[object, ...]:
    rounded = (f"{term.counts:g}", term.chunks, f"{term.idf:.2f}", f"{term.weight:.2f}")
    return (term.text, *rounded, "synonym" if term.added else "")


def _list(console: Console, listed: Sequence[ListedView], columns: Sequence[str]) -> None:
    if not listed:
        console.print(Text("Nothing in this list."))
        return
    rows = [
        (one.rank, " › ".join((one.title, *one.heading_path)), f"{one.score:.3f}", ", ".join(one.matched))
        for one in listed[:LISTED]
    ]
    words.table(columns, [row[: len(columns)] for row in rows], right=NUMBERS)
    if len(listed) > LISTED:
        console.print(Text(f"and {len(listed) - LISTED} more, which --json shows", style="dim"))


def _hit(console: Console, found: ExplainedHitView) -> None:
    hit = found.hit
    hit_title(console, str(hit.rank), hit.title, hit.heading_path, hit.page, WORDS[language_of(hit.text)])
    parts = [
        one_line(hit.document),
        f"meaning {found.by_vector:.2f}{_rank(found.nearest_rank)}",
        f"words {found.by_words:.2f}{_rank(found.lexical_rank)}",
        f"fused {hit.scores.fused:.2f}",
        *([] if hit.scores.reranked is None else [f"reranked {hit.scores.reranked:.2f}"]),
    ]
    paragraph(console, " · ".join(parts), style="dim")
    shown = _passage(found.passage, marks=not console.is_terminal or console.no_color)
    for line in _wrapped(shown, words.measure(console) - INDENT):
        console.print(Text.assemble(" " * INDENT, line), soft_wrap=True)
    console.print()


def _wrapped(text: Text, width: int) -> Iterator[Text]:
    """Its lines, with their styles."""
    at = 0
    for line in wrap(text.plain, width):
        at = text.plain.index(line, at)
        yield text[at : at + len(line)]
        at += len(line)


def _rank(rank: int | None) -> str:
    return "" if rank is None else f" (rank {rank})"


def _passage(pieces: Sequence[MarkedView], *, marks: bool) -> Text:
    """The passage around its first match, matches bold; between marks `*...*` where nothing can be bold."""
    text = Text()
    for piece in pieces:
        shown = " ".join(words.clean(piece.text).split("\n"))
        text.append(f"*{shown}*" if piece.matched and marks else shown, "bold" if piece.matched else "")
    first = next((at for at, piece in _places(pieces) if piece.matched), 0)
    start = max(0, first - BEFORE) if first > QUOTE - BEFORE else 0
    shortened = text[start : start + QUOTE]
    return Text.assemble("… " if start else "", shortened, " …" if start + QUOTE < len(text) else "")


def _places(pieces: Sequence[MarkedView]) -> Iterator[tuple[int, MarkedView]]:
    at = 0
    for piece in pieces:
        yield at, piece
        at += len(piece.text)


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"), soft_wrap=True)
