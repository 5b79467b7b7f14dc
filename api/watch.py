"""What changes among a tenant's documents, for who watches: looked at again and again, told once."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from api.pace import Pace
from api.views import DocumentView, GoneView, QueueView
from core.records import Document, Principal
from storage import documents, jobs
from storage.database import Database

# A transaction is seen when it ends and dated when it began: changes are looked for this far back.
MARGIN: Final = timedelta(seconds=30)

_NAMES: Final = {DocumentView: "document", GoneView: "gone", QueueView: "queue"}

Told = DocumentView | GoneView | QueueView


class Watch:
    """Looks on behalf of one admin."""

    def __init__(self, db: Database, principal: Principal) -> None:
        self._db = db
        self._principal = principal
        self._pace = Pace()
        self._last: jobs.Load | None = None
        self._embedded: dict[UUID, int] = {}
        self._documents: dict[UUID, DocumentView] = {}
        self._gone: frozenset[UUID] = frozenset()
        self._queue: QueueView | None = None

    async def look(self) -> list[Told]:
        """The documents that changed since the last look or are gone, and how much is waiting where that changed.

        The first look tells what is under way and what changed a moment ago.
        """
        tenant_id = self._principal.tenant_id
        load = await jobs.load(self._db, tenant_id)
        changed = await jobs.moving(self._db, tenant_id, load.at - MARGIN)
        gone = frozenset(await jobs.departed(self._db, tenant_id, load.at - MARGIN))
        found = await documents.several(self._db, self._principal, changed)
        self._note(load, found)
        left = self._left(load, found)
        queue = QueueView(
            waiting=load.waiting, processing=load.processing, seconds_left=_rounded(self._pace.seconds_for(left))
        )
        views = {document.id: DocumentView.of(self._timed(document)) for document in found}
        told: list[Told] = [view for id, view in views.items() if view != self._documents.get(id)]
        told.extend(GoneView(id=id) for id in gone - self._gone)
        if queue != self._queue:
            told.append(queue)
        self._last, self._documents, self._gone, self._queue = load, views, gone, queue
        return told

    def _note(self, load: jobs.Load, found: Sequence[Document]) -> None:
        """See how much was embedded since the last look."""
        embedded = {document.id: _embedded(document) for document in found}
        # What is seen for the first time was embedded at some time before.
        steps = [now - self._embedded.get(id, now) for id, now in embedded.items()]
        working = any(step > 0 for step in steps) or any(one.progress and one.progress.total for one in found)
        if self._last is not None and working:
            self._pace.note((load.at - self._last.at).total_seconds(), sum(step for step in steps if step > 0))
        self._embedded = embedded

    def _left(self, load: jobs.Load, found: Sequence[Document]) -> float:
        """Chunks that are still to be embedded; of documents that were not read yet, as many as is usual."""
        begun = [document.progress for document in found if document.progress and document.progress.total]
        unread = max(load.waiting + load.processing - len(begun), 0)
        return sum(progress.total - progress.done for progress in begun) + unread * max(load.usual_chunks, 1.0)

    def _timed(self, document: Document) -> Document:
        progress = document.progress
        if progress is None or not progress.total:
            return document
        seconds = self._pace.seconds_for(progress.total - progress.done)
        return replace(document, progress=replace(progress, seconds_left=_rounded(seconds)))


def _embedded(document: Document) -> int:
    if document.progress is not None:
        return document.progress.done
    return document.chunks - document.quarantined


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else float(round(seconds))


def events(told: Sequence[Told]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and data of each as sent."""
    for one in told:
        yield _NAMES[type(one)], one.model_dump(mode="json")
