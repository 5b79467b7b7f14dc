"""`approvals`: answers that are shown once somebody approved them, listed, read and decided about."""

from typing import Annotated
from uuid import UUID

import typer

from api.cli import console, printing
from api.cli.commands import Json, command, identifier
from api.cli.opened import opened
from core.settings import Settings
from storage import approvals as stored

app = typer.Typer(help="Approve or reject the answers that wait for it.", no_args_is_help=True)

Turn = Annotated[str, typer.Argument(metavar="TURN", help="The answer's id, as `intramuros approvals list` shows it.")]


def register(root: typer.Typer) -> None:
    command(app, "list")(listing)
    command(app, "show")(show)
    command(app, "approve")(approve)
    command(app, "reject")(reject)
    root.add_typer(app, name="approvals")


async def listing(settings: Settings, as_json: Json = False) -> None:
    """List the answers that wait for approval, oldest first: who asked what, and which collections ask for it."""
    from api.oversight import waiting_for

    async with opened(settings) as at:
        view = await waiting_for(at.runtime.db, at.principal)
    found = view.approvals
    if as_json:
        console.print_json(view.model_dump(mode="json"))
    elif not found:
        console.note("No answer waits for approval")
    else:
        rows = [
            (f"{one.asked_at:%Y-%m-%d %H:%M}", one.user, ", ".join(one.collections), one.question, str(one.turn_id))
            for one in found
        ]
        console.table(("At (UTC)", "User", "Cites", "Question", "Turn"), rows)
        if view.waiting > len(found):
            console.note(f"The oldest {len(found)} of {view.waiting} are shown")


async def show(settings: Settings, turn: Turn, as_json: Json = False) -> None:
    """Show one answer that waits: the question, the answer as it would be shown, and what it cites."""
    from api.oversight import pending_views

    async with opened(settings) as at:
        held = await stored.one(at.runtime.db, at.principal, _id(turn))
        (view,) = await pending_views(at.runtime.db, at.principal, [held])
    if as_json:
        console.print_json(view.model_dump(mode="json"))
        return
    console.say(f"{held.user}, {held.asked_at:%Y-%m-%d %H:%M} UTC, cites {', '.join(held.collections)}")
    out = console.out()
    printing.show_question(out, held.answer.question)
    printing.show_answer(out, held.answer)


async def approve(
    settings: Settings,
    turn: Turn,
    note: Annotated[str | None, typer.Option("--note", help="A note that whoever asked is shown with it.")] = None,
) -> None:
    """Let an answer be shown to whoever asked."""
    await _decide(settings, turn, approved=True, reason=note)


async def reject(
    settings: Settings,
    turn: Turn,
    note: Annotated[str, typer.Option("--note", help="Why; whoever asked is told. It must be given.")] = "",
) -> None:
    """Keep an answer from being shown, and say why."""
    await _decide(settings, turn, approved=False, reason=note)


async def _decide(settings: Settings, turn: str, *, approved: bool, reason: str | None) -> None:
    async with opened(settings) as at:
        held = await stored.decide(at.runtime.db, at.principal, _id(turn), approved=approved, reason=reason)
    console.say(f"{'approved' if approved else 'rejected'}: {held.user} asked “{held.answer.question}”")


def _id(turn: str) -> UUID:
    return identifier(turn, "an answer's id. `intramuros approvals list` shows them")
