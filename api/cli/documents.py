"""`documents`: what has been ingested, how it changed, what is kept from search, and its deletion."""

import sys
from collections.abc import AsyncIterator
from datetime import date
from typing import Annotated

import typer

from api.cli import console, printing
from api.cli.commands import Json, command, day, group
from api.cli.opened import chosen_collections, chosen_document, opened
from api.differences import compare
from core.errors import InvalidRequest
from core.records import Document, DocumentState, Succession
from core.settings import Settings
from storage import documents as stored
from storage import listing, tending
from storage.listing import Standing

app = typer.Typer()

Which = Annotated[str, typer.Argument(metavar="ID|PATH", help="Its id, or its path or the end of it.")]
InCollection = Annotated[str | None, typer.Option("--collection", "-c", help="Only this collection.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def register(root: typer.Typer) -> None:
    group(app)(documents)
    command(app, "show")(show)
    command(app, "revisions")(revisions)
    command(app, "diff")(diff)
    command(app, "set")(set_dates)
    command(app, "retry")(retry)
    command(app, "quarantine")(quarantine)
    command(app, "release")(release)
    command(app, "delete")(delete)
    root.add_typer(app, name="documents")


# --- reading --------------------------------------------------------------------------------------------------------


async def documents(
    settings: Settings,
    collection: InCollection = None,
    find: Annotated[str, typer.Option("--find", metavar="WORDS", help="Only titles and paths with these words.")] = "",
    standing: Annotated[Standing | None, typer.Option("--standing", help="Only what stands so.")] = None,
    as_json: Json = False,
) -> None:
    """List the documents with their state, or do something with one. They are printed as they are read."""
    wanted = listing.Wanted(collection, find, standing)
    async with opened(settings) as at:
        await chosen_collections(at, [collection] if collection else None)
        pages = listing.walk(at.runtime.db, at.principal, wanted)
        if as_json:
            await _print_json(pages, settings.max_file_bytes)
        elif not await _print_table(pages):
            none = "No document is so" if wanted != listing.Wanted() else "No documents yet"
            console.note(f"{none}. `intramuros ingest PATH` reads a file or a folder")


async def _print_json(pages: AsyncIterator[tuple[Document, ...]], max_bytes: int) -> None:
    from api import views

    with console.json_list("documents", max_bytes=max_bytes) as add:
        async for page in pages:
            for document in page:
                add(views.DocumentView.of(document).model_dump(mode="json"))


async def _print_table(pages: AsyncIterator[tuple[Document, ...]]) -> int:
    """How many documents there were."""
    columns = ("State", "Collection", "Path", "Title", "Pages", "Chunks", "Revision", "In force", "Id")
    printed = 0
    async for page in pages:
        if page:
            rows = [_row(document) for document in page]
            console.table(columns, rows, right=("Pages", "Chunks", "Revision"), header=not printed)
        printed += len(page)
        for document in page:
            if document.state is DocumentState.FAILED:
                console.note(f"{document.path}: {document.reason}")
    return printed


async def show(settings: Settings, document: Which, as_json: Json = False) -> None:
    """Show all that is known of a document: state, warnings, dates, where it comes from."""
    from api import views

    async with opened(settings) as at:
        chosen = await chosen_document(at, document)
    if as_json:
        console.print_json(views.DocumentView.of(chosen).model_dump(mode="json"))
    else:
        printing.show_facts(console.out(), _facts(chosen))


async def revisions(settings: Settings, document: Which, as_json: Json = False) -> None:
    """List the revisions of a document that are kept, the newest first."""
    from api import views

    async with opened(settings) as at:
        found = await stored.revisions(at.runtime.db, at.principal, (await chosen_document(at, document)).id)
    found = sorted(found, key=lambda revision: -revision.number)
    if as_json:
        shown = views.RevisionsView(revisions=tuple(map(views.RevisionView.of, found)))
        console.print_json(shown.model_dump(mode="json"))
        return
    if not found:
        console.note("Nothing of this document was read yet")
        return
    columns = ("Revision", "Read", "In force", "Supersedes", "Pages", "Chunks", "Warnings", "Bytes")
    rows = [
        (
            revision.number,
            f"{revision.created_at:%Y-%m-%d %H:%M}",
            _span(revision.in_force_from, revision.effective_to),
            revision.supersedes or "",
            revision.pages or "",
            revision.chunks,
            len(revision.warnings) or "",
            revision.sha256[:12],
        )
        for revision in found
    ]
    console.table(columns, rows, right=("Revision", "Pages", "Chunks", "Warnings"))


async def diff(
    settings: Settings,
    document: Which,
    first: Annotated[int | None, typer.Option("--from", min=1, help="The older revision; the last but one.")] = None,
    second: Annotated[int | None, typer.Option("--to", min=1, help="The newer revision; the last.")] = None,
    as_json: Json = False,
) -> None:
    """Show what changed from one revision to another, word by word. Of what is the same only the edges are shown."""
    from api import views

    async with opened(settings) as at:
        found = await compare(at.runtime.db, at.principal, await chosen_document(at, document), first, second)
    if as_json:
        console.print_json(views.DiffView.of(found).model_dump(mode="json"))
    elif all(piece.op == "same" for piece in found.pieces):
        console.note(f"Revisions {found.first} and {found.second} say the same")
    else:
        printing.show_differences(console.out(), found.pieces)


# --- tending --------------------------------------------------------------------------------------------------------


async def set_dates(
    settings: Settings,
    document: Which,
    effective_from: Annotated[
        str | None, typer.Option("--effective-from", help="First day in force, as 2026-01-31; '' takes it back.")
    ] = None,
    effective_to: Annotated[
        str | None, typer.Option("--effective-to", help="Last day in force, as 2026-12-31; '' takes it back.")
    ] = None,
    supersedes: Annotated[
        str | None, typer.Option("--supersedes", help="What it takes the place of; '' takes it back.")
    ] = None,
) -> None:
    """Say when the newest revision is in force. This wins over the file's front matter and its sidecar."""
    if effective_from is None and effective_to is None and supersedes is None:
        raise InvalidRequest("Nothing to set. Give --effective-from, --effective-to or --supersedes")
    async with opened(settings) as at:
        now = await chosen_document(at, document)
        changed = await tending.set_dates(
            at.runtime.db,
            at.principal,
            now.id,
            effective_from=now.effective_from if effective_from is None else day(effective_from),
            effective_to=now.effective_to if effective_to is None else day(effective_to),
            supersedes=now.supersedes if supersedes is None else supersedes.strip() or None,
        )
    console.say(f"{changed.path}: in force {_span(changed.effective_from, changed.effective_to) or 'always'}")


async def retry(
    settings: Settings,
    document: Annotated[
        str | None, typer.Argument(metavar="[ID|PATH]", help="Its id, or its path or the end of it.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="All documents that failed.")] = False,
    collection: InCollection = None,
) -> None:
    """Process documents again that failed, or that wait for their next try."""
    if (document is None) != failed:
        raise InvalidRequest("Name one document, or all that failed with --failed")
    async with opened(settings) as at:
        if document is not None:
            chosen = [await chosen_document(at, document)]
        else:
            await chosen_collections(at, [collection] if collection else None)
            wanted = listing.Wanted(collection, standing="failed")
            chosen = [each async for page in listing.walk(at.runtime.db, at.principal, wanted) for each in page]
        for each in chosen:
            await stored.requeue(at.runtime.db, at.tenant.id, each.id)
            done = await at.runtime.ingestor.process(at.tenant.id, each.id)
            console.say(f"{done.path}: {done.state.value}" + (f": {done.reason}" if done.reason else ""))
    if not chosen:
        console.note("No document failed")


async def quarantine(settings: Settings, collection: InCollection = None, as_json: Json = False) -> None:
    """List the passages that are kept from search because they read like instructions to the model."""
    from api import views

    async with opened(settings) as at:
        await chosen_collections(at, [collection] if collection else None)
        held = await tending.quarantined(at.runtime.db, at.principal, collection)
    if as_json:
        console.print_json(views.QuarantineView.of(held).model_dump(mode="json"))
        return
    if not held:
        console.note("No passage waits to be released")
        return
    columns = ("Collection", "Path", "Passage", "Why", "Text", "Document")
    rows = [
        (
            document.collection,
            document.path,
            kept.chunk_id,
            kept.chunk.suspicion,
            printing.shorten(kept.chunk.text, 120),
            document.id,
        )
        for document, kept in held
    ]
    console.table(columns, rows, right=("Passage",))


async def release(
    settings: Settings,
    document: Which,
    passage: Annotated[
        list[int] | None,
        typer.Option("--passage", min=0, help="Only this passage; may be given several times.", show_default=False),
    ] = None,
) -> None:
    """Let a document's passages that were kept from search be found."""
    async with opened(settings) as at:
        chosen = await chosen_document(at, document)
        await tending.release(at.runtime.db, at.principal, chosen.id, passage)
        done = await at.runtime.ingestor.process(at.tenant.id, chosen.id)
    console.say(f"{done.path}: {console.counted(chosen.quarantined - done.quarantined, 'passage')} released")


async def delete(settings: Settings, document: Which, yes: Yes = False) -> None:
    """Delete a document: its file, revisions, passages, vectors and statistics.

    Says first what will go and asks; the receipt counts what went, and the stored answers that quoted the document.
    """
    async with opened(settings) as at:
        chosen = await chosen_document(at, document)
        if not yes:
            going = await tending.deletion(at.runtime.db, at.principal, chosen.id)
            _confirm(chosen, console.counts(going))
        receipt = await at.runtime.ingestor.delete(at.principal, chosen.id)
    console.receipt(receipt)


def _confirm(document: Document, going: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidRequest(f"Deleting {document.path} cannot be undone. Add --yes to do it without being asked")
    console.note(f"This deletes {document.path} from {document.collection}: {going}")
    if not typer.confirm("Delete it?", err=True):
        raise InvalidRequest("Nothing was deleted")


# --- one document ---------------------------------------------------------------------------------------------------


def _row(document: Document) -> tuple[object, ...]:
    return (
        _state(document),
        document.collection,
        document.path,
        document.title,
        document.pages or "",
        document.chunks,
        document.revision or "",
        _span(document.effective_from, document.effective_to),
        document.id,
    )


def _state(document: Document) -> str:
    remarks = []
    if document.progress is not None and document.progress.total:
        remarks.append(f"{document.progress.done} of {document.progress.total}")
    if document.warnings:
        remarks.append(console.counted(len(document.warnings), "warning"))
    if document.quarantined:
        remarks.append(f"{document.quarantined} held back")
    return document.state.value + (f" ({', '.join(remarks)})" if remarks else "")


def _facts(document: Document) -> dict[str, str]:
    facts = {
        "Title": document.title,
        "Path": document.path,
        "Collection": document.collection,
        "State": _state(document),
        "Reason": document.reason,
        "Found by": document.searchable.value,
        "Revision": str(document.revision or ""),
        "In force": _span(document.effective_from, document.effective_to) or "always",
        "Supersedes": _succession(document.older) or document.supersedes,
        "Superseded by": _succession(document.newer),
        "Pages": str(document.pages or ""),
        "Chunks": str(document.chunks),
        "Language": document.language,
        "Kind": document.media_type,
        "Size": f"{document.size} bytes",
        "SHA-256": document.sha256,
        "Folder": document.source,
        "Came in": str(document.parent_id or ""),
        "Added": f"{document.created_at:%Y-%m-%d %H:%M}",
        "Changed": f"{document.updated_at:%Y-%m-%d %H:%M}",
        "Id": str(document.id),
    }
    warnings = {f"Warning {number}": warning.text for number, warning in enumerate(document.warnings, start=1)}
    return {name: value for name, value in (facts | warnings).items() if value}


def _succession(other: Succession | None) -> str | None:
    return None if other is None else f"{other.title} ({other.document_id}) from {other.day or 'when it is ready'}"


def _span(first: date | None, last: date | None) -> str:
    if first is None and last is None:
        return ""
    return f"{first or '…'} to {last or '…'}"
