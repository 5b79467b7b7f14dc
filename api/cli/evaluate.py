"""`evaluate`: how well search finds the right document, on questions of one's own."""

from pathlib import Path
from typing import Annotated

import typer

from api import evaluation
from api.cli import console
from api.cli.commands import Json, command
from api.cli.opened import chosen_collections, opened
from api.cli.search import Collections
from core.errors import NotFound
from core.records import Filters
from core.settings import Settings
from storage import listing

# Questions that are named whose document was missed; --json has them all.
NAMED = 10

NAMES = {"vector": "vectors alone", "bm25": "BM25 alone", "hybrid": "both, fused", "reranked": "fused, then reranked"}


def register(app: typer.Typer) -> None:
    command(app, "evaluate")(evaluate)


async def evaluate(
    settings: Settings,
    questions: Annotated[
        Path,
        typer.Argument(
            metavar="QUESTIONS.jsonl",
            help='Rows {"question": ..., "document": ...}; document is the end of the path of the one that answers.',
        ),
    ],
    collection: Collections = None,
    as_json: Json = False,
) -> None:
    """Measure search on questions of your own.

    Prints hit@1, hit@5, hit@10 and MRR by document, for vectors alone, BM25 alone, both fused, and fused and reranked.
    Needs no language model.
    """
    asked = evaluation.load(questions)
    async with opened(settings) as at:
        found = await listing.paths(at.runtime.db, at.principal)
        if not found:
            raise NotFound("There are no documents to search. `intramuros ingest PATH` reads a file or a folder")
        wanted = await chosen_collections(at, collection)
        retrieval = await at.runtime.retrieval(at.tenant.id)
        filters = Filters(None if wanted is None else tuple(wanted))
        with console.progress("Asking") as advance:
            report = await evaluation.evaluate(retrieval, at.principal, asked, filters=filters, advance=advance)
    unknown = evaluation.unknown(found, asked)
    for question in unknown:
        console.note(f"no document ends with {' or '.join(question.documents)} ({question.question})")
    if as_json:
        console.print_json(report.as_json())
    else:
        show(report)


def show(report: evaluation.Report) -> None:
    """A table of the scores, how fast they were found, and the questions whose document is not among the first ten."""
    by_language = report.by_language
    rows = [
        (
            NAMES[mode],
            *(f"{value:.3f}" for value in score.as_json().values()),
            *(f"{scores[mode].mrr:.3f}" for scores in by_language.values()),
        )
        for mode, score in report.scores.items()
    ]
    columns = ("", "hit@1", "hit@5", "hit@10", "MRR", *(f"MRR {language}" for language in by_language))
    console.table(columns, rows, right=columns[1:])
    speed = len(report.questions) / report.seconds
    console.say(f"{len(report.questions)} questions, {speed:.1f} a second, embedder {report.embedder}")
    for asked in report.missed[:NAMED]:
        console.say(f"not among the first 10: {' or '.join(asked.documents)} ({asked.question})")
    if len(report.missed) > NAMED:
        console.say(f"and {len(report.missed) - NAMED} more, which --json names")
