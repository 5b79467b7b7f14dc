"""Keeping documents what a folder holds: new, changed, moved and deleted files, by the digests of their bytes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from core.errors import IntramurosError, NotFound, SyncRefused
from core.records import Document, DocumentState, Receipt, Sidecar
from ingest import metadata, planning, watching
from ingest.pipeline import Ingestor
from ingest.planning import Plan
from ingest.scanning import Entry, Scan, Scanner
from storage import collections, documents, sidecars, users
from storage.database import Database
from storage.locks import key_of

log = logging.getLogger(__name__)

# Seconds that a file must have been left alone before a watching sync reads it.
SETTLE = 2.0

# done, total, what is being worked on
Advance = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Look:
    """What a sync found and what it would do. `known` counts the documents of the source before it.

    `described` are the paths of known documents whose sidecars are not those last taken in.
    """

    scan: Scan
    plan: Plan
    known: int
    described: tuple[str, ...] = ()

    @property
    def refusal(self) -> str | None:
        """Why it is not carried out unasked, None where it may be."""
        return planning.refusal(self.plan, self.known)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return self.plan.empty and not self.described


@dataclass(slots=True)
class Done:
    """What a sync did: `failed` gives the reasons of documents that could not be read, `receipts` of those deleted."""

    look: Look
    failed: dict[str, str] = field(default_factory=dict)
    receipts: list[Receipt] = field(default_factory=list)


class FolderSync:
    """One folder, kept in step with the documents of one collection that came from it.

    `source` is the name under which they are known as the folder's; by default its resolved path.
    """

    def __init__(
        self,
        db: Database,
        ingestor: Ingestor,
        tenant_id: UUID,
        collection: str,
        folder: Path,
        *,
        source: str | None = None,
        settle: float = 0.0,
    ) -> None:
        self._db = db
        self._ingestor = ingestor
        self._tenant_id = tenant_id
        self._collection = collection
        self._folder = folder.resolve()
        self._scanner = Scanner(self._folder, settle=settle)
        self.source = source or str(self._folder)

    async def look(self) -> Look:
        """What there would be to do; nothing is touched. Raises NotFound, IngestError (see Scanner), StorageError."""
        scan = await asyncio.to_thread(self._scanner.scan)
        known, elsewhere = await self._documents()
        plan = planning.plan(scan.digests, known, elsewhere, scan.may_hold)
        moved = {move.document.id: move.path for move in plan.moved}
        stale = await self._stale(scan, {document.id: moved.get(document.id, document.path) for document in known})
        return Look(scan, plan, len(known), tuple(sorted(stale.values())))

    async def run(self, *, force: bool = False, advance: Advance | None = None) -> Done:
        """Look, and do it. Where a document cannot be read the others go on.

        Raises SyncRefused where it would delete so much that files may be missing (not with `force`), or where another
        sync of this source is at work; else as `look`, and InferenceError.
        """
        async with self._alone():
            look = await self.look()
            if look.refusal and not force:
                raise SyncRefused(f"Nothing was done: {look.refusal}. Is the share mounted? With --force it is done")
            done = Done(look)
            await self._delete(done)
            await self._move(look.plan)
            await self._ingest(done, advance)
            await self._describe(look.scan)
            if not look.plan.empty:
                await self._ingestor.sweep(self._tenant_id)
        return done

    async def follow(self, tell: Callable[[Done | IntramurosError], None], *, force: bool = False) -> None:
        """Run now and whenever something changes, until cancelled; `tell` hears what came of each round.

        A fault ends its round only: a share or a database that is away comes back. `force` is for the first round.
        """
        async with watching.watching(self._folder) as watch:
            while True:
                soon = False
                try:
                    done = await self.run(force=force)
                    soon = bool(done.look.scan.unsettled)
                    tell(done)
                except IntramurosError as error:
                    tell(error)
                force = False
                await watch.next(soon=soon)

    # --- steps ---

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        key = key_of(self._tenant_id, "sync", self._collection, self.source)
        async with self._db.locks.hold(key) as free:
            if not free:
                raise SyncRefused("Another sync of this source is at work. Wait for it, or stop it")
            yield

    async def _documents(self) -> tuple[list[Document], list[Document]]:
        """The source's own documents, and the collection's others."""
        found = await documents.listing(self._db, users.operator(self._tenant_id), self._collection)
        own = [document for document in found if document.source == self.source and document.parent_id is None]
        mine = {document.id for document in own}
        return own, [document for document in found if document.id not in mine]

    async def _stale(self, scan: Scan, paths: Mapping[UUID, str]) -> dict[UUID, str]:
        """Those of these documents, with their paths, whose sidecars are not those last taken in."""
        try:
            home = await collections.by_name(self._db, self._tenant_id, self._collection)
        except NotFound:
            return {}
        taken = await sidecars.known(self._db, self._tenant_id, home.id)
        files = scan.files
        return {id: path for id, path in paths.items() if path in files and taken.get(id) != files[path].sidecar}

    async def _delete(self, done: Done) -> None:
        for document in done.look.plan.deleted:
            try:
                done.receipts.append(await self._ingestor.delete(users.operator(self._tenant_id), document.id))
            except NotFound:
                log.info("deleted meanwhile", extra={"document": str(document.id)})

    async def _move(self, plan: Plan) -> None:
        targets = {move.path for move in plan.moved}
        # Documents that change their paths among themselves: no two may have the same for a moment.
        aside = [
            (move.document, f"{move.path}~{move.document.id}") for move in plan.moved if move.document.path in targets
        ]
        for document, path in (*aside, *((move.document, move.path) for move in plan.moved)):
            try:
                await documents.move(self._db, self._tenant_id, document.id, path)
            except NotFound:
                log.info("deleted meanwhile", extra={"document": str(document.id)})

    async def _ingest(self, done: Done, advance: Advance | None) -> None:
        """Read what is changed and new, in the plan's order, and what was left half-way or was not yet the source's."""
        plan, files = done.look.plan, done.look.scan.files
        again = [document.path for document in plan.unchanged if self._unfinished(document)]
        paths = [files[path].path for path in (*plan.changed, *plan.new, *again)]
        async for step in self._ingestor.ingest_files(
            self._tenant_id, self._collection, paths, self._folder.parent, source=self.source
        ):
            if step.result is None:
                done.failed[step.path] = step.skipped or ""
            elif step.result.outcome == "failed":
                done.failed[step.path] = step.result.document.reason or ""
            if advance is not None:
                advance(step.done, step.total, step.path)

    def _unfinished(self, document: Document) -> bool:
        return document.state in (DocumentState.QUEUED, DocumentState.PROCESSING) or document.source != self.source

    async def _describe(self, scan: Scan) -> None:
        """Take in the sidecars that are not those last taken in."""
        own, _ = await self._documents()
        for document_id, path in (await self._stale(scan, {each.id: each.path for each in own})).items():
            try:
                sidecar = await asyncio.to_thread(self._sidecar, scan.files[path])
                described = await sidecars.describe(self._db, self._tenant_id, document_id, sidecar)
            except (OSError, NotFound) as error:
                # Not readable now, or the document was deleted meanwhile: the next sync will tell.
                log.info("not described", extra={"document": str(document_id), "error": type(error).__name__})
                continue
            if described.state is DocumentState.PROCESSING:
                await self._ingestor.process(self._tenant_id, document_id)

    @staticmethod
    def _sidecar(entry: Entry) -> Sidecar | None:
        return metadata.read(metadata.sidecar_of(entry.path)) if entry.sidecar else None
