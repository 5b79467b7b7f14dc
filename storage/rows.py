"""From rows to the records they hold, and back to JSON where a column is JSON."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Final

from psycopg.rows import DictRow

from core.records import (
    Box,
    Chunk,
    Document,
    DocumentState,
    ParsedDocument,
    ParseWarning,
    Progress,
    Revision,
    Searchable,
    Sidecar,
    Succession,
)

# What a file may say of a document beside its text; a sidecar says the same.
SAID: Final = ("title", "effective_from", "effective_to", "supersedes")

_FAULTS: Final = {
    "unknown": "It is to supersede “{}”, and its collection has no document of this path, name, title or id.",
    "ambiguous": "It is to supersede “{}”, and its collection has several of this name. Give a longer path, or the id.",
    "circular": "It is to supersede “{}”, which supersedes it, at once or by others. Correct one of them.",
}


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk of a document and the number it is cited by. `released`: an admin let it into search."""

    chunk_id: int
    chunk: Chunk
    released: bool = False

    @property
    def suspicion(self) -> str | None:
        """Why it waits, or waited, for an admin; None: it never did."""
        return self.chunk.suspicion

    @property
    def quarantined(self) -> bool:
        """Whether it is kept from search."""
        return self.suspicion is not None and not self.released


def document_of(row: DictRow, embedded: int = 0) -> Document:
    """`embedded`: how many of its chunks have vectors; asked for documents in progress only."""
    return Document(
        id=row["id"],
        collection_id=row["collection_id"],
        collection=row["collection"],
        path=row["path"],
        title=row["title"],
        media_type=row["media_type"],
        sha256=row["sha256"],
        size=row["size"],
        state=DocumentState(row["state"]),
        reason_code=row["reason_code"],
        reason=row["reason"],
        pages=row["pages"],
        chunks=row["chunks"],
        language=row["language"],
        effective_from=row["effective_from"],
        effective_to=row["effective_to"],
        supersedes=row["supersedes"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        searchable=Searchable(row["searchable"]),
        revision=row["revision"],
        warnings=(*warnings_of(row), *_unresolved(row)),
        quarantined=row["quarantined"],
        progress=_progress(row, embedded),
        source=row["source"],
        parent_id=row["parent_id"],
        read_sha256=row["read_sha256"],
        older=_succession(row, "older", row["older_until"]),
        newer=_succession(row, "newer", row["superseded_from"]),
    )


def _succession(row: DictRow, which: str, day: date | None) -> Succession | None:
    other = row[f"{which}_id"]
    return None if other is None else Succession(other, row[f"{which}_title"], day)


def _unresolved(row: DictRow) -> tuple[ParseWarning, ...]:
    """Why the document supersedes none although it says so."""
    fault = row["supersedes_fault"]
    return (ParseWarning(f"supersedes_{fault}", _FAULTS[fault].format(row["supersedes"])),) if fault else ()


def being_embedded(row: DictRow) -> bool:
    """Whether a document was read and waits for vectors."""
    return row["state"] in ("queued", "processing") and row["read_sha256"] == row["sha256"]


def _progress(row: DictRow, embedded: int) -> Progress | None:
    if row["state"] not in ("queued", "processing"):
        return None
    read = being_embedded(row)
    return Progress(
        step="waiting" if row["state"] == "queued" else "embedding" if read else "reading",
        done=embedded if read else 0,
        total=row["chunks"] - row["quarantined"] if read else 0,
        attempts=row["attempts"],
        next_attempt_at=row["next_attempt_at"],
    )


def revision_of(row: DictRow) -> Revision:
    return Revision(
        number=row["number"],
        sha256=row["sha256"],
        title=row["title"],
        size=row["size"],
        pages=row["pages"],
        chunks=row["chunks"],
        effective_from=row["effective_from"],
        effective_to=row["effective_to"],
        supersedes=row["supersedes"],
        in_force_from=row["in_force_from"],
        created_at=row["created_at"],
        warnings=warnings_of(row),
        confidence=_confidence(row),
    )


def _confidence(row: DictRow) -> dict[int, float]:
    return {int(page): float(mean) for page, mean in row["confidence"].items()}


def stored_chunk_of(row: DictRow) -> StoredChunk:
    chunk = Chunk(
        ordinal=row["ordinal"],
        text=row["text"],
        heading_path=tuple(row["heading_path"]),
        section=row["section"],
        start=row["start_at"],
        end=row["end_at"],
        kind=row["kind"],
        page=row["page"],
        boxes=boxes_of(row),
        suspicion=row["suspicion"],
    )
    return StoredChunk(row["chunk_id"], chunk, row["released"])


def boxes_of(row: DictRow) -> tuple[Box, ...]:
    return tuple(Box(**box) for box in row["boxes"])


def warnings_of(row: Mapping[str, Any]) -> tuple[ParseWarning, ...]:
    return tuple(ParseWarning(**{**warning, "pages": tuple(warning["pages"])}) for warning in row["warnings"])


def warnings_json(warnings: Iterable[ParseWarning]) -> str:
    return json.dumps([asdict(warning) for warning in warnings])


def said_json(parsed: ParsedDocument) -> str:
    return json.dumps({name: _plain(getattr(parsed, name)) for name in SAID})


def sidecar_json(sidecar: Sidecar) -> str:
    said = {name: _plain(getattr(sidecar, name)) for name in SAID}
    return json.dumps({"sha256": sidecar.sha256, **said, "warnings": [asdict(each) for each in sidecar.warnings]})


def sidecar_of(row: DictRow | None) -> Sidecar | None:
    stored = row["sidecar"] if row is not None else None
    if stored is None:
        return None
    return Sidecar(sha256=stored["sha256"], **_said(stored), warnings=warnings_of(stored))


def parsed_of(row: DictRow) -> ParsedDocument:
    """What a revision's file said, without its text; `title` is its own where the file's is not known any more."""
    said = {"title": row["title"], **{name: value for name, value in _said(row["said"]).items() if value is not None}}
    return ParsedDocument(elements=(), pages=row["pages"], confidence=_confidence(row), **said)


def _said(stored: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: stored.get(name) for name in SAID}
    dates = {name: stored[name] for name in ("effective_from", "effective_to") if stored.get(name)}
    return said | {name: date.fromisoformat(text) for name, text in dates.items()}


def _plain(value: date | str | None) -> str | None:
    return value.isoformat() if isinstance(value, date) else value


def confidence_json(confidence: Mapping[int, float]) -> str:
    return json.dumps({str(page): mean for page, mean in confidence.items()})
