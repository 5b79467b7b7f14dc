"""`sync`: a collection that stays what a folder holds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli import console
from api.cli.commands import Json, command
from api.cli.ingest import ensure_tenant
from api.runtime import Runtime
from core.errors import IntramurosError, InvalidRequest
from core.settings import Settings
from storage import tenants

if TYPE_CHECKING:
    from ingest.planning import Plan
    from ingest.scanning import Scan
    from ingest.sync import Done, FolderSync, Look

# Paths named of each kind before the rest is only counted.
NAMED = 20


def register(app: typer.Typer) -> None:
    command(app, "sync")(sync)


async def sync(
    settings: Settings,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder, with all below it.")],
    collection: Annotated[
        str, typer.Option("--collection", "-c", help="The collection to keep current, made when absent.")
    ],
    source: Annotated[
        str | None,
        typer.Option(
            "--source", help="Name by which the documents are known as this folder's. By default where it lies."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Go on whenever something changes, until Ctrl-C.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Delete even where so much is gone that the share may be missing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a collection hold what a folder holds: new, changed, moved and deleted files.

    Files are compared by the digests of their bytes. A moved file keeps its document with all that was made of it;
    of a changed one only what differs is embedded anew; documents that came from this folder and whose file is gone
    are deleted, with a receipt. It refuses to delete all documents of a source, or more than half of twenty or more,
    because the share may not be mounted. A file NAME.meta.yaml beside NAME says its title, effective_from,
    effective_to and supersedes.
    """
    # Imported late: what reads documents takes a second that the other commands need not wait for.
    from ingest.sync import SETTLE, FolderSync

    if watch and (dry_run or as_json):
        raise InvalidRequest("--watch goes with neither --dry-run nor --json. Run it without them")
    async with Runtime.open(settings) as runtime:
        tenant = await (
            tenants.get(runtime.db, settings.tenant) if dry_run else ensure_tenant(runtime, settings.tenant)
        )
        settle = SETTLE if watch else 0.0
        work = FolderSync(runtime.db, runtime.ingestor, tenant.id, collection, folder, source=source, settle=settle)
        if watch:
            console.note(f"Watching {folder}. Ctrl-C ends it")
            await work.follow(_tell, force=force)
        elif dry_run:
            _show(work, collection, await work.look(), None, as_json)
        else:
            await _run(work, collection, folder.name, force, as_json)


async def _run(work: FolderSync, collection: str, name: str, force: bool, as_json: bool) -> None:
    with console.progress(f"Syncing {name}") as advance:
        done = await work.run(force=force, advance=advance)
    _show(work, collection, done.look, done, as_json)


def _show(work: FolderSync, collection: str, look: Look, done: Done | None, as_json: bool) -> None:
    if as_json:
        from api import views

        console.print_json(views.SyncView.of(work.source, collection, look, done).model_dump(mode="json"))
        return
    _name(look.plan)
    if look.described:
        _list("dated", look.described)
    _remarks(look.scan, look.plan)
    if done is not None:
        _outcome(done)
    console.say(_line(look) + ("" if done else " (nothing was done: dry run)"))
    if done is None and look.refusal:
        console.note(f"Without --force it would be refused: {look.refusal}")


def _tell(heard: Done | IntramurosError) -> None:
    """One round of a watching sync: silent where nothing was to do."""
    if isinstance(heard, IntramurosError):
        console.note(f"waiting: {heard.message}")
    elif not heard.look.empty:
        _name(heard.look.plan)
        _outcome(heard)
        console.say(_line(heard.look))


def _line(look: Look) -> str:
    plan = look.plan
    counts = {
        "new": plan.new,
        "changed": plan.changed,
        "moved": plan.moved,
        "deleted": plan.deleted,
        "dated": look.described,
        "unchanged": plan.unchanged,
    }
    shown = ", ".join(f"{len(of)} {kind}" for kind, of in counts.items())
    return f"{console.counted(len(look.scan.files), 'file')}: {shown}"


def _name(plan: Plan) -> None:
    _list("new", plan.new)
    _list("changed", plan.changed)
    _list("moved", (f"{move.document.path} to {move.path}" for move in plan.moved))
    _list("deleted", (document.path for document in plan.deleted))


def _list(what: str, paths: Iterable[str]) -> None:
    named = list(paths)
    for path in named[:NAMED]:
        console.note(f"{what}: {path}")
    if len(named) > NAMED:
        console.note(f"{what}: and {len(named) - NAMED} more")


def _remarks(scan: Scan, plan: Plan) -> None:
    for copy in plan.copies:
        console.note(f"{copy.path}: the same as {copy.of}, which stands for both")
    for path in plan.clashes:
        console.note(f"{path}: left alone, another source has a document at this path")
    for path, reason in (*scan.passed_over.items(), *scan.unclear.items()):
        console.note(f"{path}: {reason}")


def _outcome(done: Done) -> None:
    for path, reason in done.failed.items():
        console.note(f"{path}: failed: {reason}")
    for receipt in done.receipts:
        console.receipt(receipt)
