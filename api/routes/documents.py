"""Documents: uploaded, listed, shown, dated, compared with what they were, and deleted."""

from collections.abc import AsyncIterator
from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field, StringConstraints, TypeAdapter, ValidationError
from starlette.datastructures import FormData, UploadFile

from api import cursors
from api.auth import Admin, User
from api.bodies import Body, Day, Name
from api.clients import GONE, unless_gone
from api.context import InContext, Open
from api.differences import compare
from api.views import (
    ChunksView,
    ChunkView,
    CountsView,
    DiffView,
    DocumentsView,
    DocumentView,
    PassageView,
    ReceiptView,
    RevisionsView,
    RevisionView,
)
from core.errors import InvalidRequest
from storage import documents, listing, tending

router = APIRouter(prefix="/v1/documents", tags=["documents"])

# Documents on a page, unless more or fewer are asked for, and at most.
PAGE: Final = 200
LONGEST_PAGE: Final = 1000
LONGEST_CURSOR: Final = 10_000
PAGE_WIDTH: Final = 1200
BLOCK: Final = 256 * 1024
_NAME: Final = TypeAdapter(Name)

ChunkId = Annotated[int, Path(ge=0, lt=2**31)]
PageNumber = Annotated[int, Path(ge=1, le=100_000)]
Number = Annotated[int, Path(ge=1, lt=2**31)]


class DatesBody(Body):
    """What an admin says of a document. Members left out stay as they are; null takes a date back."""

    effective_from: Day | None = None
    effective_to: Day | None = None
    supersedes: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)] | None = None


class ReleaseBody(Body):
    """Which passages to release; all of the document when left out."""

    chunk_ids: Annotated[list[Annotated[int, Field(ge=0, lt=2**31)]], Field(min_length=1, max_length=1000)] | None = (
        None
    )


@router.get("")
async def list_documents(
    principal: User,
    runtime: Open,
    collection: Annotated[str | None, Query(max_length=100)] = None,
    q: Annotated[str, Query(max_length=200)] = "",
    standing: listing.Standing | None = None,
    parent: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE)] = PAGE,
    after: Annotated[str | None, Query(max_length=LONGEST_CURSOR)] = None,
) -> DocumentsView:
    """The documents that one may see, by collection and path, a page at a time: `after` is the `next` of the last page.

    Narrowed to one collection, to titles and paths with these words, to a standing, to what came in one document. The
    first page says how many there are in all and of each standing.
    """
    wanted = listing.Wanted(collection, q, standing, parent)
    place = None if after is None else cursors.read(after)
    page = await listing.page(runtime.db, principal, wanted, limit=limit, after=place)
    counts = await listing.tally(runtime.db, principal, wanted) if place is None else None
    return DocumentsView(
        documents=tuple(DocumentView.of(document, principal) for document in page.documents),
        next=None if page.end is None else cursors.written(page.end),
        counts=None if counts is None else CountsView.of(counts),
        max_bytes=runtime.settings.max_file_bytes,
    )


@router.post(
    "",
    status_code=202,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["file", "collection"],
                        "properties": {
                            "file": {"type": "string", "format": "binary"},
                            "collection": {"type": "string"},
                        },
                    }
                }
            },
        }
    },
)
async def upload_document(request: Request, principal: Admin, context: InContext) -> DocumentView:
    """Take a file (multipart: `file`, `collection`). It is searchable once its state is `ready`."""
    # Read here and not by a parameter: a parameter is read before the guard has asked who is there.
    async with request.form(max_files=1, max_fields=1) as form:
        collection, file = _parts(form)
        document = await context.runtime.ingestor.accept_upload(
            principal.tenant_id, collection, file.filename or "", _blocks(file), by=principal.user_id
        )
    context.worker.wake(principal.tenant_id)
    return DocumentView.of(document)


async def _blocks(file: UploadFile) -> AsyncIterator[bytes]:
    while block := await file.read(BLOCK):
        yield block


def _parts(form: FormData) -> tuple[str, UploadFile]:
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise InvalidRequest("The part `file` with a file name is missing.")
    try:
        return _NAME.validate_python(form.get("collection")), file
    except ValidationError:
        raise InvalidRequest("The part `collection` must be a collection's name.") from None


@router.get("/{document_id}")
async def show_document(document_id: UUID, principal: User, runtime: Open) -> DocumentView:
    """One document and its state."""
    return DocumentView.of(await documents.get(runtime.db, principal, document_id), principal)


@router.patch("/{document_id}")
async def date_document(document_id: UUID, body: DatesBody, principal: Admin, runtime: Open) -> DocumentView:
    """Say when the newest revision is in force and what it supersedes. This wins over what its file says."""
    if not body.model_fields_set:
        raise InvalidRequest("Nothing to set. Send effective_from, effective_to or supersedes.")
    now = await documents.get(runtime.db, principal, document_id)
    said = {name: getattr(body if name in body.model_fields_set else now, name) for name in DatesBody.model_fields}
    return DocumentView.of(await tending.set_dates(runtime.db, principal, document_id, **said))


@router.get("/{document_id}/deletion")
async def show_deletion(document_id: UUID, principal: Admin, runtime: Open) -> ReceiptView:
    """What deleting the document would remove."""
    return ReceiptView.of(await tending.deletion(runtime.db, principal, document_id))


@router.post("/{document_id}/retry")
async def retry_document(document_id: UUID, principal: Admin, context: InContext) -> DocumentView:
    """Process a document again that failed, or that waits for its next try."""
    await documents.get(context.runtime.db, principal, document_id)
    document = await documents.requeue(context.runtime.db, principal.tenant_id, document_id)
    context.worker.wake(principal.tenant_id)
    return DocumentView.of(document)


@router.post("/{document_id}/release")
async def release_passages(document_id: UUID, body: ReleaseBody, principal: Admin, context: InContext) -> DocumentView:
    """Let passages that were kept from search be found: by their words at once, by meaning once they are embedded."""
    document = await tending.release(context.runtime.db, principal, document_id, body.chunk_ids)
    context.worker.wake(principal.tenant_id)
    return DocumentView.of(document)


@router.delete("/{document_id}")
async def delete_document(document_id: UUID, principal: Admin, runtime: Open) -> ReceiptView:
    """Remove a document with its file, chunks, vectors and statistics."""
    return ReceiptView.of(await runtime.ingestor.delete(principal, document_id))


@router.get("/{document_id}/chunks")
async def list_chunks(document_id: UUID, principal: User, runtime: Open) -> ChunksView:
    """A document as the machine read it."""
    found = await documents.chunks(runtime.db, principal, document_id)
    return ChunksView(chunks=tuple(map(ChunkView.of, found)))


@router.get("/{document_id}/revisions")
async def list_revisions(document_id: UUID, principal: User, runtime: Open) -> RevisionsView:
    """The revisions of a document that are kept, the newest first."""
    found = await documents.revisions(runtime.db, principal, document_id)
    newest_first = sorted(found, key=lambda revision: -revision.number)
    return RevisionsView(revisions=tuple(map(RevisionView.of, newest_first)))


@router.get("/{document_id}/revisions/{revision}/chunks")
async def list_chunks_of_revision(document_id: UUID, revision: Number, principal: User, runtime: Open) -> ChunksView:
    """A revision as the machine read it."""
    found = await documents.revision_chunks(runtime.db, principal, document_id, revision)
    return ChunksView(chunks=tuple(map(ChunkView.of, found)))


@router.get("/{document_id}/diff")
async def compare_revisions(
    document_id: UUID,
    principal: User,
    runtime: Open,
    first: Annotated[int | None, Query(alias="from", ge=1, lt=2**31)] = None,
    second: Annotated[int | None, Query(alias="to", ge=1, lt=2**31)] = None,
) -> DiffView:
    """What changed from one revision to another, sentence by sentence; by default from the last but one to the last."""
    document = await documents.get(runtime.db, principal, document_id)
    return DiffView.of(await compare(runtime.db, principal, document, first, second))


@router.get("/{document_id}/passages/{chunk_id}")
async def show_passage(
    document_id: UUID,
    chunk_id: ChunkId,
    principal: User,
    runtime: Open,
    revision: Annotated[int, Query(ge=0, lt=2**31)] = 0,
) -> PassageView:
    """A cited passage in its context: in the revision it was cited from, or where that is gone the last that has it."""
    found = await documents.passage(runtime.db, principal, document_id, chunk_id, revision=revision)
    return PassageView.of(found, principal)


@router.get("/{document_id}/pages/{number}.png", response_class=Response)
async def show_page(
    document_id: UUID,
    number: PageNumber,
    principal: User,
    runtime: Open,
    request: Request,
    revision: Annotated[int, Query(ge=0, lt=2**31)] = 0,
) -> Response:
    """The picture of a page, counted from 1, of a PDF or a picture file: of one revision, or of the newest.

    It is drawn anew, so that nothing of the file itself is sent.
    """
    document = await documents.get(runtime.db, principal, document_id)
    shown = await documents.revision(runtime.db, principal, document_id, revision)
    drawing = runtime.ingestor.picture(principal.tenant_id, document, shown, number, PAGE_WIDTH)
    # A browser takes back what it asked for when its reader scrolls on.
    picture = await unless_gone(request, drawing)
    return Response(picture, media_type="image/png") if picture is not None else Response(status_code=GONE)
