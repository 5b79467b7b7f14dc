"""An explained search as a person reads it in a terminal: its terms, both lists, their fusion, the passages found."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from rich.console import Console
from rich.text import Text

from api.cli import console as words
from api.cli.console import one_line
from api.explained import ExplainedHitView, ExplanationView, ListedView, MarkedView, TermView

# Places of either list that are shown; --json has them all.
LISTED = 10
# Characters of a passage, of which the first match is shown.
QUOTE = 280
BEFORE = 60


def show(console: Console, found: ExplanationView) -> None:
    """Everything, in the order in which the search came to it."""
    for line in _reach(found):
        console.print(Text(one_line(line)), soft_wrap=True)
    _heading(console, "Terms")
    if found.terms:
        words.table(("Term", "Counts", "Chunks", "idf", "Weight", ""), list(map(_term, found.terms)), right=NUMBERS)
    else:
        console.print(Text("None: every word of the query is left out of a search."))
    _heading(console, f"By meaning ({'compared one by one' if found.exact else 'through an index'}) and by words")
    rows = [
        (rank, *_listed(near), *_listed(lexical), " ".join(lexical.matched) if lexical else "")
        for rank, (near, lexical) in enumerate(zip_longest(found.nearest[:LISTED], found.lexical[:LISTED]), start=1)
    ]
    words.table(("Rank", "By meaning", "Cosine", "By words", "BM25", "Matched"), rows, right=NUMBERS)
    _heading(console, f"Fused: {1 - found.words:.0%} meaning, {found.words:.0%} words")
    for hit in found.hits:
        _hit(console, hit)


NUMBERS = ("Counts", "Chunks", "idf", "Weight", "Rank", "Cosine", "BM25")


def _reach(found: ExplanationView) -> Iterator[str]:
    documents, chunks = words.counted(found.documents, "document"), words.counted(found.chunks, "chunk")
    yield f"Rights and filters leave {documents} with {chunks}."
    for word, others in found.synonyms.items():
        yield f"{word}: looked for {', '.join(others)} as well."


def _term(term: TermView) -> tuple[object, ...]:
    rounded = (f"{term.counts:g}", term.chunks, f"{term.idf:.2f}", f"{term.weight:.2f}")
    return (term.text, *rounded, "synonym" if term.added else "")


def _listed(one: ListedView | None) -> tuple[str, str]:
    return ("", "") if one is None else (" › ".join((one.title, *one.heading_path)), f"{one.score:.3f}")


def _hit(console: Console, found: ExplainedHitView) -> None:
    hit = found.hit
    console.print(Text.assemble((f"{hit.rank}".ljust(4), "bold cyan"), (one_line(hit.title), "bold")), soft_wrap=True)
    parts = [
        one_line(" › ".join((hit.document, *hit.heading_path))),
        f"meaning {found.by_vector:.2f}{_rank(found.nearest_rank)}",
        f"words {found.by_words:.2f}{_rank(found.lexical_rank)}",
        f"fused {hit.scores.fused:.2f}",
        *([] if hit.scores.reranked is None else [f"reranked {hit.scores.reranked:.2f}"]),
    ]
    console.print(Text("    " + " · ".join(parts), style="dim"), soft_wrap=True)
    for line in _passage(found.passage, marks=not console.is_terminal or console.no_color).wrap(
        console, words.measure(console) - 4
    ):
        line.rstrip()
        console.print(Text.assemble("    ", line), soft_wrap=True)
    console.print()


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
