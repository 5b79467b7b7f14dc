"""Documents: uploaded, listed, shown and deleted."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import FormData, UploadFile

from api.auth import Admin, User
from api.bodies import Name
from api.context import InContext, Open
from api.views import ChunksView, ChunkView, DocumentsView, DocumentView, PassageView, ReceiptView
from core.errors import InvalidRequest, NotFound
from core.records import DocumentState
from ingest import pages
from storage import documents

router = APIRouter(prefix="/v1/documents", tags=["documents"])

PAGE_WIDTH: Final = 1200
BLOCK: Final = 256 * 1024
_NAME: Final = TypeAdapter(Name)

ChunkId = Annotated[int, Path(ge=0, lt=2**31)]
PageNumber = Annotated[int, Path(ge=1, le=100_000)]


@router.get("")
async def list_documents(
    principal: User, runtime: Open, collection: Annotated[str | None, Query(max_length=100)] = None
) -> DocumentsView:
    """The documents that one may see, of one collection or of all."""
    found = await documents.listing(runtime.db, principal, collection)
    return DocumentsView(documents=tuple(map(DocumentView.of, found)), max_bytes=runtime.settings.max_file_bytes)


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
            principal.tenant_id, collection, file.filename or "", _blocks(file)
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
    return DocumentView.of(await documents.get(runtime.db, principal, document_id))


@router.delete("/{document_id}")
async def delete_document(document_id: UUID, principal: Admin, runtime: Open) -> ReceiptView:
    """Remove a document with its file, chunks, vectors and statistics."""
    return ReceiptView.of(await runtime.ingestor.delete(principal, document_id))


@router.get("/{document_id}/chunks")
async def list_chunks(document_id: UUID, principal: User, runtime: Open) -> ChunksView:
    """A document as the machine read it."""
    found = await documents.chunks(runtime.db, principal, document_id)
    return ChunksView(chunks=tuple(map(ChunkView.of, found)))


@router.get("/{document_id}/passages/{chunk_id}")
async def show_passage(document_id: UUID, chunk_id: ChunkId, principal: User, runtime: Open) -> PassageView:
    """A cited passage in its context."""
    return PassageView.of(await documents.passage(runtime.db, principal, document_id, chunk_id))


@router.get("/{document_id}/pages/{number}.png", response_class=Response)
async def show_page(document_id: UUID, number: PageNumber, principal: User, runtime: Open) -> Response:
    """The picture of a PDF's page, counted from 1. There is none while newer bytes than those searched are waiting."""
    document = await documents.get(runtime.db, principal, document_id)
    searched = document.state is DocumentState.READY
    if not searched or document.media_type != "application/pdf" or number > (document.pages or 0):
        raise NotFound
    path = runtime.files.path(principal.tenant_id, document.sha256)
    picture = await asyncio.to_thread(pages.render, path, number, PAGE_WIDTH)
    return Response(picture, media_type="image/png")
