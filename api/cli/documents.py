"""`documents`: what has been ingested, and its deletion."""

from typing import Annotated
from uuid import UUID

import typer

from api.cli import console
from api.cli.commands import Json, command, group
from api.cli.opened import chosen_collections, opened
from core.errors import InvalidRequest, NotFound
from core.records import Document, DocumentState
from core.settings import Settings
from storage import documents as stored

app = typer.Typer()


def register(root: typer.Typer) -> None:
    group(app)(listing)
    command(app, "delete")(delete)
    root.add_typer(app, name="documents")


async def listing(
    settings: Settings,
    collection: Annotated[str | None, typer.Option("--collection", "-c", help="Only this collection.")] = None,
    as_json: Json = False,
) -> None:
    """List the documents with their state, or delete one."""
    from api import views

    async with opened(settings) as at:
        await chosen_collections(at, [collection] if collection else None)
        found = await stored.listing(at.runtime.db, at.principal, collection)
    if as_json:
        console.print_json(views.documents_json(found, settings.max_file_bytes))
        return
    if not found:
        console.note("No documents yet. `intramuros ingest PATH` reads a file or a folder")
        return
    columns = ("State", "Collection", "Path", "Title", "Pages", "Chunks", "In force", "Id")
    console.table(columns, [_row(document) for document in found], right=("Pages", "Chunks"))
    for document in found:
        if document.state is DocumentState.FAILED:
            console.note(f"{document.path}: {document.reason}")


async def delete(
    settings: Settings,
    document: Annotated[str, typer.Argument(metavar="ID|PATH", help="Its id, or its path or the end of it.")],
) -> None:
    """Delete a document: its file, chunks, vectors and statistics; says how many of each."""
    async with opened(settings) as at:
        chosen = _choose(await stored.listing(at.runtime.db, at.principal), document)
        receipt = await at.runtime.ingestor.delete(at.principal, chosen.id)
    console.receipt(receipt)


def _row(document: Document) -> tuple[object, ...]:
    return (
        document.state.value,
        document.collection,
        document.path,
        document.title,
        document.pages or "",
        document.chunks,
        _in_force(document),
        document.id,
    )


def _in_force(document: Document) -> str:
    if document.effective_from is None and document.effective_to is None:
        return ""
    return f"{document.effective_from or '…'} to {document.effective_to or '…'}"


def _choose(found: list[Document], wanted: str) -> Document:
    """The one document of that id or path. Errors: NotFound, InvalidRequest where several end so."""
    try:
        matches = [document for document in found if document.id == UUID(wanted)]
    except ValueError:
        tail = wanted.strip("/")
        matches = [document for document in found if document.path == tail] or [
            document for document in found if document.path.endswith("/" + tail)
        ]
    if not matches:
        raise NotFound(f"There is no document '{wanted}'. `intramuros documents` lists them with their ids")
    if len(matches) > 1:
        names = ", ".join(f"{document.collection}: {document.path} ({document.id})" for document in matches[:5])
        raise InvalidRequest(f"{len(matches)} documents are called that: {names}. Give the id of one")
    return matches[0]
