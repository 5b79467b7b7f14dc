"""`reembed`: the vectors of another model, made beside those in use, measured, swapped in and taken back."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from api import evaluation
from api.cli import console
from api.cli.commands import Json, command
from api.cli.evaluate import NAMES
from api.cli.opened import Opened, opened
from core.errors import AlreadyExists, EmbeddingSetMismatch, InferenceError, InvalidRequest, NotFound
from core.settings import Settings
from storage import embedding_sets
from storage.embedding_sets import EmbeddingSet

if TYPE_CHECKING:
    from inference.interfaces import Embedder

Reports = dict[str, evaluation.Report]
# Words alone find the same whatever the vectors are.
MODES: Final[tuple[evaluation.Mode, ...]] = ("vector", "hybrid", "reranked")


def register(app: typer.Typer) -> None:
    command(app, "reembed")(reembed)


async def reembed(
    settings: Settings,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="embedded, ollama:NAME or openai:NAME; left out: the one begun, or set."),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option("--questions", metavar="QUESTIONS.jsonl", help="Measure both sets on these, as `evaluate` does."),
    ] = None,
    status: Annotated[bool, typer.Option("--status", help="Show the sets of vectors there are.")] = False,
    swap: Annotated[bool, typer.Option("--swap", help="Search by the new vectors from now on; keep the old.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Search by the old vectors again; keep the new.")] = False,
    drop: Annotated[bool, typer.Option("--drop", help="Remove the vectors that are not searched.")] = False,
    as_json: Json = False,
) -> None:
    """Embed all documents anew with another model, while search goes on with the vectors there are.

    Goes on where it was stopped, and lets questions go first. Nothing changes for who searches until --swap; the old
    vectors stay for --undo until --drop. Documents that came in meanwhile are embedded before the swap.
    """
    if sum((status, swap, undo, drop)) > 1:
        raise InvalidRequest("Choose one of --status, --swap, --undo and --drop")
    if (status or swap or undo or drop) and (model or questions):
        raise InvalidRequest("--model and --questions go with making vectors. Leave them out here")
    if as_json and not (status or questions):
        raise InvalidRequest("--json goes with --status or --questions")
    asked = evaluation.load(questions) if questions else []
    async with opened(settings) as at:
        if status:
            await _status(at, as_json=as_json)
            return
        async with embedding_sets.changing(at.runtime.db, at.tenant.id):
            if swap or undo:
                await _swap(at, back=undo)
            elif drop:
                await _drop(at)
            else:
                await _make(at, model, asked, as_json=as_json)


# --- made -------------------------------------------------------------------------------------------------------------


async def _make(at: Opened, model: str | None, asked: Sequence[evaluation.Question], *, as_json: bool) -> None:
    embedder = await _candidate(at, model)
    await embedding_sets.begin(at.runtime.db, at.tenant.id, embedder.id, embedder.dimension)
    made = await _fill(at, embedder)
    console.note(f"{embedder.id}: {console.counted(made, 'vector')} made, none is missing")
    if asked:
        reports = await _measured(at, embedder, asked)
        _print_reports(reports, as_json=as_json)
    if not as_json:
        console.say("`intramuros reembed --swap` searches by it, `intramuros reembed --drop` removes it")


async def _candidate(at: Opened, model: str | None) -> "Embedder":
    """The embedder that is named, else that of the set begun, else that of the settings."""
    other = _other(await embedding_sets.listing(at.runtime.db, at.tenant.id))
    if other is not None and other.role == "previous":
        raise AlreadyExists(
            f"The vectors of {other.embedder_id} are kept for --undo. `intramuros reembed --drop` makes room for others"
        )
    if model is not None:
        return await at.runtime.embedder_named(model)
    return await (at.runtime.embedder() if other is None else _embedder_of(at, other))


async def _embedder_of(at: Opened, one: EmbeddingSet) -> "Embedder":
    from inference.select import model_of

    name = model_of(one.embedder_id)
    embedder = await (at.runtime.embedder() if name is None else at.runtime.embedder_named(name))
    if embedder.id != one.embedder_id:
        raise NotFound(f"The model {one.embedder_id} is not there any more; there is {embedder.id}. Drop its vectors")
    return embedder


async def _fill(at: Opened, embedder: "Embedder") -> int:
    """Make what is missing until nothing is; how many vectors."""
    from ingest.reembedding import fill

    made = 0
    with console.progress("Embedding") as advance:
        while True:
            [one] = [
                each
                for each in await embedding_sets.listing(at.runtime.db, at.tenant.id)
                if each.embedder_id == embedder.id
            ]
            begun = made
            async for vectors in fill(at.runtime.db, at.tenant.id, embedder):
                made = begun + vectors
                advance(one.vectors + vectors, one.vectors + one.missing, embedder.id)
            if await embedding_sets.complete(at.runtime.db, at.tenant.id, embedder.id):
                return made


# --- measured ---------------------------------------------------------------------------------------------------------


async def _measured(at: Opened, candidate: "Embedder", asked: Sequence[evaluation.Question]) -> Reports:
    embedders = {"candidate": candidate}
    try:
        embedders = {"active": await at.runtime.embedder(at.tenant.id), **embedders}
    except (InferenceError, EmbeddingSetMismatch) as error:
        console.note(f"the active set is not measured: {error.message}")
    reports: Reports = {}
    for role, embedder in embedders.items():
        retrieval = at.runtime.retrieval_by(embedder)
        with console.progress(f"Asking the {role} set") as advance:
            reports[role] = await evaluation.evaluate(retrieval, at.principal, asked, modes=MODES, advance=advance)
    return reports


def _print_reports(reports: Reports, *, as_json: bool) -> None:
    if as_json:
        console.print_json({role: report.as_json() for role, report in reports.items()})
        return
    rows = []
    for mode in MODES:
        for role, report in reports.items():
            if (score := report.scores.get(mode)) is not None:
                figures = (f"{value:.3f}" for value in (score.hit_1, score.hit_5, score.mrr))
                rows.append((NAMES[mode], role, report.embedder, *figures))
    columns = ("", "Set", "Model", "hit@1", "hit@5", "MRR")
    console.table(columns, rows, right=columns[3:])


# --- swapped, dropped, shown ------------------------------------------------------------------------------------------


async def _swap(at: Opened, *, back: bool) -> None:
    other = _other(await embedding_sets.listing(at.runtime.db, at.tenant.id))
    if other is None or (other.role == "previous") != back:
        how = (
            "There is no swap to undo" if back else "There are no new vectors. `intramuros reembed --model` makes some"
        )
        raise NotFound(how)
    if not back and not other.filled:
        raise InvalidRequest(f"{other.missing} vectors are missing. `intramuros reembed` goes on with them")
    while not await embedding_sets.swap(at.runtime.db, at.tenant.id, back=back):
        # Documents came in since.
        await _fill(at, await _embedder_of(at, other))
    then = "--swap goes forth again" if back else "--undo goes back"
    console.say(f"search goes by {other.embedder_id} now; {then}, --drop removes the other vectors")


async def _drop(at: Opened) -> None:
    other = _other(await embedding_sets.listing(at.runtime.db, at.tenant.id))
    if other is None:
        raise NotFound("There are no vectors beside those that are searched")
    console.receipt(await embedding_sets.drop(at.runtime.db, at.tenant.id, other.embedder_id))


async def _status(at: Opened, *, as_json: bool) -> None:
    from api.vectors import EmbeddingSetsView

    found = await embedding_sets.listing(at.runtime.db, at.tenant.id)
    running = await embedding_sets.being_changed(at.runtime.db, at.tenant.id)
    if as_json:
        console.print_json(EmbeddingSetsView.of(found, running=running).model_dump(mode="json"))
        return
    if not found:
        console.note("There are no vectors yet. `intramuros ingest PATH` reads a file or a folder")
        return
    rows = [(one.role, one.embedder_id, one.dimension, one.vectors, one.missing, _index(one)) for one in found]
    columns = ("Set", "Model", "Dimension", "Vectors", "Missing", "Searched by")
    console.table(columns, rows, right=columns[2:5])
    if (step := next_step(found, running=running)) is not None:
        console.say(step)


def told(found: Sequence[EmbeddingSet]) -> str:
    """In one line: whose vectors are searched, and how far others beside them are. There must be some."""
    active, *others = found
    beside = (f"those of {one.embedder_id} {_standing(one)}" for one in others)
    searched = f"search goes by {active.embedder_id}, {console.counted(active.vectors, 'vector')}"
    return "; ".join((searched, *beside))


def _standing(one: EmbeddingSet) -> str:
    if one.role == "previous":
        return "are kept"
    return "are ready beside them" if one.filled else f"are being made: {one.vectors} of {one.vectors + one.missing}"


def next_step(found: Sequence[EmbeddingSet], *, running: bool) -> str | None:
    """What can be done about the vectors that are not searched; None where there are none."""
    if running:
        return "`intramuros reembed` is at work"
    other = _other(found)
    if other is None:
        return None
    if other.role == "previous":
        first = "`intramuros reembed --undo` searches by the former vectors again"
    elif other.filled:
        first = "`intramuros reembed --swap` searches by the new vectors"
    else:
        first = "`intramuros reembed` goes on with them"
    return f"{first}, `intramuros reembed --drop` removes them"


def _index(one: EmbeddingSet) -> str:
    return "index" if one.indexed else "comparing all"


def _other(found: Sequence[EmbeddingSet]) -> EmbeddingSet | None:
    """The set beside the active one."""
    return next((one for one in found if one.role != "active"), None)
