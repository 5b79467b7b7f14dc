"""`trace`: the last questions by their runs, and one of them step by step."""

from typing import Annotated, Any
from uuid import UUID

import typer

from api.cli import console
from api.cli.commands import Json, command, identifier
from api.cli.opened import opened
from core.records import RunInfo, RunTrace, Step
from core.settings import Settings
from storage import traces

# What of a step's data stands first on its line, where it is there.
FIRST = ("prompt", "query", "path", "reason", "outcome", "subtopic")


def register(app: typer.Typer) -> None:
    command(app, "trace")(trace)


async def trace(
    settings: Settings,
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="A run's id; left out: list the last ones.")
    ] = None,
    reason: Annotated[
        str, typer.Option("--reason", help="Why you want to read it; kept, and shown to whoever asked.")
    ] = "",
    user: Annotated[str | None, typer.Option("--user", help="List the runs of this user alone.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many are listed, the latest first.")] = 20,
    as_json: Json = False,
) -> None:
    """Show how an answer came about: searches, hits with scores, decisions, model calls.

    The list says when whose questions ran and what they took. To read one, say why: the reading is recorded in the
    audit log, and whoever asked is shown that it was read, when, and the reason.
    """
    from api.oversight import RunsView, TraceView

    async with opened(settings) as at:
        if run is None:
            found = await traces.listing(at.runtime.db, at.principal, user=user, most=limit)
            view: RunsView | TraceView = RunsView.of(found)
        else:
            whole = await traces.read(at.runtime.db, at.principal, _id(run), reason)
            view = TraceView.of(whole)
    if as_json:
        console.print_json(view.model_dump(mode="json"))
    elif run is None:
        _list(found)
    else:
        _show(whole)


def _id(run: str) -> UUID:
    return identifier(run, "a run's id. `intramuros trace` lists them")


def _list(found: list[RunInfo]) -> None:
    if not found:
        console.note("No runs yet, or none that are still kept")
        return
    rows = [
        (
            f"{one.started_at:%Y-%m-%d %H:%M:%S}",
            one.user,
            one.state,
            one.outcome or one.code or "",
            str(one.model_calls),
            str(one.prompt_tokens + one.completion_tokens),
            "" if one.ms is None else f"{one.ms / 1000:.1f}",
            str(one.id),
        )
        for one in found
    ]
    heads = ("At (UTC)", "User", "State", "Outcome", "Calls", "Tokens", "Seconds", "Run")
    console.table(heads, rows, right=("Calls", "Tokens", "Seconds"))


def _show(whole: RunTrace) -> None:
    info = whole.info
    console.say(
        f"{info.user}, {info.started_at:%Y-%m-%d %H:%M:%S} UTC, {info.mode}: {console.one_line(whole.question)}"
    )
    rows = [(f"{step.at_ms / 1000:.2f}", step.kind, told(step)) for step in whole.steps]
    console.table(("Seconds", "Step", "What"), rows, right=("Seconds",))
    if whole.turn is not None:
        console.say(f"{whole.turn.outcome}: {console.one_line(whole.turn.answer)}")
    else:
        console.say(f"{info.state}{f' ({info.code})' if info.code else ''}: no answer was stored")


def told(step: Step) -> str:
    """A step's data on one line."""
    names = [name for name in FIRST if name in step.data] + [name for name in step.data if name not in FIRST]
    return console.one_line(", ".join(f"{name}: {_brief(step.data[name])}" for name in names))


def _brief(value: Any) -> str:
    match value:
        case list():
            return f"{len(value)} of them" if value and isinstance(value[0], dict) else ", ".join(map(str, value))
        case dict():
            return ", ".join(f"{name} {_brief(one)}" for name, one in value.items())
        case _:
            return str(value)
