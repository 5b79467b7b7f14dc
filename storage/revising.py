"""Writing a revision inside the caller's transaction: what did not change keeps its chunk, vector and words."""

import hashlib
import json
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date
from uuid import UUID

from core.records import Chunk, Document, ParsedDocument, Sidecar
from core.text import language_of
from storage import indexing, rows
from storage.database import Transaction

# Chunks that tell a document's language.
_TELLING = 20


def digest(title: str, chunk: Chunk) -> bytes:
    """SHA-256 over all that is embedded or indexed of a chunk; migration 0002 computes the same."""
    head = "\x1f".join((chunk.kind, chunk.suspicion or "", title, *chunk.heading_path))
    return hashlib.sha256(f"{head}\n{chunk.text}".encode()).digest()


async def write(
    tx: Transaction, document: Document, parsed: ParsedDocument, chunks: Sequence[Chunk], *, keep: int
) -> None:
    """Store what was read of the document's bytes as its newest revision, findable by its words.

    Bytes that the newest revision was read from already replace it instead. `keep` revisions remain.
    """
    again = document.read_sha256 == document.sha256
    number = document.revision if again else document.revision + 1
    # What was never read has nothing to look for or to replace.
    before = await tx.row("revisions.one", document=document.id, number=0) if document.revision else None
    told = over(rows.sidecar_of(await tx.row("documents.sidecar", id=document.id)), parsed)
    facts = {
        "title": told.title or document.title,
        "pages": parsed.pages,
        "chunks": len(chunks),
        "language": language_of(" ".join(chunk.text for chunk in chunks[:_TELLING])),
        "warnings": rows.warnings_json(told.warnings),
    }
    tx.later(
        "revisions.put",
        document=document.id,
        number=number,
        sha256=document.sha256,
        size=document.size,
        confidence=rows.confidence_json(parsed.confidence),
        said=rows.said_json(parsed),
        **facts,
    )
    tx.later("documents.read", id=document.id, revision=number, **facts)
    if again:
        tx.later("revisions.unplace", document=document.id, number=number)
    await _place(tx, document, number, str(facts["title"]), chunks)
    if number > keep:
        tx.later("revisions.forget", document=document.id, number=number - keep)
    set_before = before is not None and before["dates_set"]
    if before is None or not set_before or (not again and any(dates_of(parsed))):
        await date_it(tx, document.id, number, *dates_of(told))
    elif not again:
        kept = (before["effective_from"], before["effective_to"], before["supersedes"])
        await date_it(tx, document.id, number, *kept, dates_set=True, inherited=True)
    await follow(tx, document.id)


def over(sidecar: Sidecar | None, parsed: ParsedDocument) -> ParsedDocument:
    """What a file says with what its sidecar says over it."""
    if sidecar is None:
        return parsed
    said = {name: value for name in rows.SAID if (value := getattr(sidecar, name)) is not None}
    return replace(parsed, **said, warnings=(*parsed.warnings, *sidecar.warnings))


def dates_of(parsed: ParsedDocument) -> tuple[date | None, date | None, str | None]:
    """In the order of `date_it`."""
    return parsed.effective_from, parsed.effective_to, parsed.supersedes


async def follow(tx: Transaction, document_id: UUID) -> None:
    """Make dates in force, words and counts follow what was written of the document's revisions."""
    tx.later("revisions.settle", document=document_id)
    await indexing.align(tx, document_id)
    tx.later("documents.weigh", id=document_id)
    await indexing.settle(tx)


async def date_it(
    tx: Transaction,
    document_id: UUID,
    number: int,
    effective_from: date | None,
    effective_to: date | None,
    supersedes: str | None,
    *,
    dates_set: bool = False,
    inherited: bool = False,
) -> None:
    """Date a revision. Dates that an admin gave to an earlier one (`inherited`) do not reach back before this one."""
    tx.later(
        "revisions.date",
        document=document_id,
        number=number,
        effective_from=effective_from,
        effective_to=effective_to,
        supersedes=supersedes,
        dates_set=dates_set,
        inherited=inherited,
    )


async def _place(tx: Transaction, document: Document, number: int, title: str, chunks: Sequence[Chunk]) -> None:
    numbered = zip(chunks, await _numbered(tx, document, title, chunks), strict=True)
    places = [
        {
            "ordinal": chunk.ordinal,
            "chunk_id": chunk_id,
            "section": chunk.section,
            "page": chunk.page,
            "boxes": [asdict(box) for box in chunk.boxes],
            "start_at": chunk.start,
            "end_at": chunk.end,
        }
        for chunk, chunk_id in numbered
    ]
    tx.later("revisions.place", document=document.id, number=number, places=_json(places))


async def _numbered(tx: Transaction, document: Document, title: str, chunks: Sequence[Chunk]) -> list[int]:
    """A stored chunk's number for each chunk: of chunks that are alike, the first is the first that was stored."""
    known: defaultdict[bytes, deque[int]] = defaultdict(deque)
    for row in await tx.rows("revisions.known", document=document.id) if document.revision else ():
        known[bytes(row["digest"])].append(row["chunk_id"])
    digests = [digest(title, chunk) for chunk in chunks]
    found = [known[key].popleft() if known[key] else None for key in digests]
    new = [(chunk, key) for chunk, key, number in zip(chunks, digests, found, strict=True) if number is None]
    if not new:
        return [number for number in found if number is not None]
    given = await indexing.numbers(tx, len(new))
    rows = [
        {
            "chunk_id": number,
            "kind": chunk.kind,
            "language": language_of(chunk.text),
            "heading_path": chunk.heading_path,
            "text": chunk.text,
            "digest": key.hex(),
            "suspicion": chunk.suspicion,
        }
        for number, (chunk, key) in zip(given, new, strict=True)
    ]
    tx.later("revisions.insert_chunks", document=document.id, title=title, chunks=_json(rows))
    fresh = iter(given)
    return [next(fresh) if number is None else number for number in found]


def _json(rows: Sequence[Mapping[str, object]]) -> str:
    """Not in ASCII: what PostgreSQL cannot store is to be refused like any other text."""
    return json.dumps(rows, ensure_ascii=False)
