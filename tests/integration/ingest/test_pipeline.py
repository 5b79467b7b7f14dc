"""From a file to searchable chunks on a real database: once, whole, replaceable, and gone when deleted."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import EmptyFile, FileTooLarge, Forbidden, ModelUnavailable, NotFound, StorageError, UnsupportedFormat
from core.records import Document, DocumentState, Principal, Searchable, Tenant
from core.settings import Settings
from inference.interfaces import Vectors
from ingest.embedding import AHEAD, AT_ONCE, BATCH
from ingest.files import FileStore
from ingest.intake import safe_name
from ingest.pipeline import Ingestor, Progress
from ingest.processing import DEEPEST
from ingest.reading import Reading
from storage import answering, documents, search
from storage.database import Database
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.reader import DirectReader, LineReader, inside
from tests.unit.ingest import samples


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "home")


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
def ingestor(database: Database, embedder: FakeEmbedder, store: FileStore, tmp_path: Path) -> Ingestor:
    settings = Settings(home=tmp_path / "home", max_file_mb=1)
    return Ingestor(database, embedder, store, settings, DirectReader(settings))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "handbook"
    made.mkdir()
    return made


def note(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


async def found(db: Database, principal: Principal, query: str) -> list[str]:
    hits = await search.search(db, principal, query, None, embedder_id="fake:bag-64:1", mode="bm25")
    return [hit.text for hit in hits]


async def everywhere(db: Database, principal: Principal, holds: Callable[[Document], bool], of: int = 1) -> bool:
    listed = await documents.listing(db, principal)
    return len(listed) == of and all(map(holds, listed))


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    """Look at the database again and again: nothing tells when another task has written to it."""
    async with asyncio.timeout(30):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def walk(ingestor: Ingestor, tenant: Tenant, folder: Path) -> list[Progress]:
    return [progress async for progress in ingestor.ingest_folder(tenant.id, "handbook", folder)]


async def test_a_sidecar_speaks_of_the_file_beside_it(
    database: Database, ingestor: Ingestor, tenant: Tenant, admin: Principal, folder: Path
) -> None:
    note(folder, "old.md", "# Dress\n\nHats are off at dinner, without any exception.\n")
    note(folder, "new.md", "# Dress code\n\nHats are on at dinner, without any exception.\n")
    note(folder, "new.md.meta.yaml", "effective_from: 2026-01-01\nsupersedes: old.md\n")
    note(folder, "away.md.meta.yaml", "title: Nothing lies beside it\n")
    (folder / "old.md.meta.yaml").symlink_to(folder / "away.md.meta.yaml")
    skipped = {step.path: step.skipped for step in await walk(ingestor, tenant, folder) if step.skipped}
    assert skipped == dict.fromkeys(
        ("away.md.meta.yaml", "new.md.meta.yaml", "old.md.meta.yaml"), "a sidecar, which speaks of the file beside it"
    )
    old, new = sorted(await documents.listing(database, admin), key=lambda document: document.title)
    assert (old.title, new.title, new.revision) == ("Dress", "Dress code", 1)
    assert new.older is not None
    assert new.older.document_id == old.id
    assert await found(database, admin, "hats at dinner") == ["Hats are on at dinner, without any exception."]
    # What it says now counts although the file is the same; that it says the same again changes nothing.
    note(folder, "new.md.meta.yaml", "title: What to wear\n")
    await walk(ingestor, tenant, folder)
    new = await documents.get(database, admin, new.id)
    assert (new.title, new.state, new.revision, new.older) == ("What to wear", DocumentState.READY, 1, None)
    await walk(ingestor, tenant, folder)
    assert await documents.get(database, admin, new.id) == new


def stored(store: FileStore, tenant: Tenant) -> set[str]:
    folder = store.path(tenant.id, "0" * 64).parent
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")} if folder.exists() else set()


async def test_every_format_becomes_searchable(
    ingestor: Ingestor, tenant: Tenant, admin: Principal, database: Database, folder: Path
) -> None:
    samples.write_all(folder)
    results = [progress.result for progress in await walk(ingestor, tenant, folder)]
    assert [result.outcome for result in results if result] == ["new"] * 9
    assert all(result and result.document.chunks > 0 for result in results)
    hits = await found(database, admin, "hotel cap in Berlin for grade A")
    assert "City: Berlin | Grade: A | Cap: 180 EUR" in hits[0]


async def test_the_same_bytes_are_one_document(
    ingestor: Ingestor, tenant: Tenant, admin: Principal, database: Database, embedder: FakeEmbedder, folder: Path
) -> None:
    note(folder, "a.md", "# Leave\n\nThirty days.\n")
    note(folder, "copy/b.md", "# Leave\n\nThirty days.\n")
    first = await walk(ingestor, tenant, folder)
    embedded = embedder.embedded
    second = await walk(ingestor, tenant, folder)
    assert [p.result.outcome for p in first if p.result] == ["new", "unchanged"]
    assert [p.result.outcome for p in second if p.result] == ["unchanged", "unchanged"]
    assert embedder.embedded == embedded
    assert len(await documents.listing(database, admin)) == 1


async def test_changed_bytes_replace_the_old_chunks_and_keep_the_file(
    ingestor: Ingestor, tenant: Tenant, admin: Principal, database: Database, store: FileStore, folder: Path
) -> None:
    path = note(folder, "leave.md", "# Leave\n\nThirty kangaroo days.\n")
    before = await ingestor.ingest_path(tenant.id, "handbook", path, folder)
    path.write_text("# Leave\n\nForty wombat days.\n")
    (progress,) = await walk(ingestor, tenant, folder)
    assert progress.result
    assert (progress.result.outcome, progress.result.document.id) == ("changed", before.document.id)
    assert await found(database, admin, "kangaroo") == []
    assert await found(database, admin, "wombat") == ["Forty wombat days."]
    assert stored(store, tenant) == {before.document.sha256, progress.result.document.sha256}
    receipt = await ingestor.delete(admin, before.document.id)
    assert (receipt.counts["revisions"], receipt.counts["files"]) == (2, 2)
    assert stored(store, tenant) == set()


async def test_a_failed_change_keeps_the_older_version_searchable(
    ingestor: Ingestor, tenant: Tenant, admin: Principal, database: Database, folder: Path
) -> None:
    path = folder / "policy.pdf"
    path.write_bytes(samples.policy_pdf())
    await ingestor.ingest_path(tenant.id, "handbook", path, folder)
    path.write_bytes(b"%PDF-1.7 cut short")
    result = await ingestor.ingest_path(tenant.id, "handbook", path, folder)
    assert result.outcome == "failed"
    assert (result.document.state, result.document.reason_code) == (DocumentState.FAILED, "damaged_file")
    assert result.document.reason
    assert await found(database, admin, "private bookings")
    path.write_bytes(samples.policy_pdf())
    assert (await ingestor.ingest_path(tenant.id, "handbook", path, folder)).document.state is DocumentState.READY


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("empty.md", b"", "empty_file"),
        ("locked.pdf", samples.pdf_bytes([[samples.Ink("x")]], password="secret"), "encrypted_file"),
        ("cut.docx", samples.docx_bytes()[:4000], "damaged_file"),
        ("wrong.pdf", b"plain words", "mismatched_format"),
        ("scan.pdf", samples.pdf_bytes([[]]), "no_text"),
        ("program.exe", b"MZ", "unsupported_format"),
        ("big.txt", b"x" * 2_000_000, "file_too_large"),
        ("bomb.docx", samples.zip_bytes({"[Content_Types].xml": b"<x/>", "a.xml": b" " * 3_000_000}), "archive_bomb"),
    ],
)
async def test_bad_input_fails_with_a_reason_and_leaves_nothing_searchable(
    ingestor: Ingestor,
    tenant: Tenant,
    admin: Principal,
    database: Database,
    folder: Path,
    name: str,
    data: bytes,
    code: str,
) -> None:
    (folder / name).write_bytes(data)
    result = await ingestor.ingest_path(tenant.id, "handbook", folder / name, folder)
    assert (result.outcome, result.document.state, result.document.reason_code) == ("failed", "failed", code)
    assert result.document.reason
    assert await documents.chunks(database, admin, result.document.id) == []


async def test_deleting_removes_everything_and_says_how_much(
    ingestor: Ingestor, tenant: Tenant, admin: Principal, database: Database, store: FileStore, folder: Path
) -> None:
    path = note(folder, "leave.md", "# Leave\n\nThirty kangaroo days.\n")
    result = await ingestor.ingest_path(tenant.id, "handbook", path, folder)
    receipt = await ingestor.delete(admin, result.document.id)
    assert receipt.what == "leave.md"
    tables = ("documents", "revisions", "chunks", "placements", "vectors", "words")
    assert dict(receipt.counts) == {**dict.fromkeys(tables, 1), "quoting": 0, "files": 1}
    assert stored(store, tenant) == set()
    assert await found(database, admin, "kangaroo") == []
    with pytest.raises(NotFound):
        await ingestor.delete(admin, result.document.id)


async def test_a_file_that_another_collection_uses_stays(
    ingestor: Ingestor, tenant: Tenant, admin: Principal, store: FileStore, folder: Path
) -> None:
    path = note(folder, "leave.md", "# Leave\n\nThirty days.\n")
    one = await ingestor.ingest_path(tenant.id, "one", path, folder)
    two = await ingestor.ingest_path(tenant.id, "two", path, folder)
    assert (await ingestor.delete(admin, one.document.id)).counts["files"] == 0
    assert stored(store, tenant) == {two.document.sha256}
    assert (await ingestor.delete(admin, two.document.id)).counts["files"] == 1


async def test_only_an_admin_deletes(ingestor: Ingestor, tenant: Tenant, principal: Principal, folder: Path) -> None:
    path = note(folder, "leave.md", "# Leave\n\nThirty days.\n")
    result = await ingestor.ingest_path(tenant.id, "handbook", path, folder)
    with pytest.raises(Forbidden):
        await ingestor.delete(principal, result.document.id)


async def test_an_upload_is_queued_and_then_processed(
    ingestor: Ingestor, tenant: Tenant, admin: Principal, database: Database
) -> None:
    async def stream() -> AsyncIterator[bytes]:
        yield b"# Leave\n\n"
        yield b"Thirty kangaroo days.\n"

    queued = await ingestor.accept_upload(tenant.id, "handbook", "C:\\docs\\..\\leave.md", stream())
    assert (queued.path, queued.state) == ("leave.md", DocumentState.QUEUED)
    assert [document.id for document in await documents.pending(database, tenant.id)] == [queued.id]
    ready = await ingestor.process(tenant.id, queued.id)
    assert (ready.state, ready.title) == (DocumentState.READY, "Leave")
    assert await found(database, admin, "kangaroo")
    again = await ingestor.accept_upload(tenant.id, "handbook", "leave.md", b"# Leave\n\nThirty kangaroo days.\n")
    assert (again.id, again.state) == (queued.id, DocumentState.READY)


async def test_uploads_that_cannot_be_kept_leave_nothing(
    ingestor: Ingestor, tenant: Tenant, admin: Principal, database: Database, store: FileStore
) -> None:
    for name, data, error in (
        ("a.exe", b"MZ", UnsupportedFormat),
        ("a.md", b"", EmptyFile),
        ("a.md", b"x" * 2_000_000, FileTooLarge),
    ):
        with pytest.raises(error):
            await ingestor.accept_upload(tenant.id, "handbook", name, data)
    assert await documents.listing(database, admin) == []
    assert stored(store, tenant) == set()


async def test_a_bad_upload_fails_when_it_is_processed(ingestor: Ingestor, tenant: Tenant) -> None:
    queued = await ingestor.accept_upload(tenant.id, "handbook", "a.docx", b"MZ not a document")
    failed = await ingestor.process(tenant.id, queued.id)
    assert (failed.state, failed.reason_code) == (DocumentState.FAILED, "mismatched_format")


class BrokenEmbedder(FakeEmbedder):
    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        raise ModelUnavailable


async def test_a_fault_of_the_machinery_is_noted_and_reaches_the_caller_and_a_later_run_succeeds(
    database: Database, store: FileStore, ingestor: Ingestor, tenant: Tenant, admin: Principal, folder: Path
) -> None:
    path = note(folder, "leave.md", "# Leave\n\nThirty kangaroo days.\n")
    broken = Ingestor(database, BrokenEmbedder(), store, Settings(home=folder), DirectReader(Settings()))
    with pytest.raises(ModelUnavailable):
        await broken.ingest_path(tenant.id, "handbook", path, folder)
    (waiting,) = await documents.listing(database, admin)
    assert (waiting.state, waiting.reason_code) == (DocumentState.QUEUED, "model_unavailable")
    assert waiting.progress
    assert waiting.progress.next_attempt_at
    assert waiting.progress.next_attempt_at > waiting.updated_at
    assert await documents.pending(database, tenant.id) == []
    # It was read all the same.
    assert await found(database, admin, "kangaroo")
    result = await ingestor.ingest_path(tenant.id, "handbook", path, folder)
    assert result.document.state is DocumentState.READY


async def test_pauses_grow_and_the_last_attempt_fails_the_document(
    database: Database, store: FileStore, tenant: Tenant, admin: Principal
) -> None:
    settings = Settings(max_attempts=3)
    broken = Ingestor(database, BrokenEmbedder(), store, settings, DirectReader(settings))
    queued = await broken.accept_upload(tenant.id, "handbook", "leave.md", b"# Leave\n\nThirty days.\n")
    pauses = []
    for _ in range(3):
        with pytest.raises(ModelUnavailable):
            await broken.process(tenant.id, queued.id)
        document = await documents.get(database, admin, queued.id)
        if document.progress and document.progress.next_attempt_at:
            pauses.append(round((document.progress.next_attempt_at - document.updated_at).total_seconds()))
    assert pauses == [15, 60]
    assert (document.state, document.reason_code) == (DocumentState.FAILED, "model_unavailable")
    # A job that comes too late leaves it alone.
    assert (await broken.process(tenant.id, queued.id)).state is DocumentState.FAILED
    await documents.requeue(database, tenant.id, queued.id)
    assert [each.id for each in await documents.pending(database, tenant.id)] == [queued.id]


class SlowEmbedder(FakeEmbedder):
    """Holds every call until it is let go. `batches` are the sizes of the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.full, self.go = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.batches: list[int] = []

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(len(texts))
        self.entered.set()
        if len(self.batches) >= AT_ONCE:
            self.full.set()
        await self.go.wait()
        return await super().embed_passages(texts)


@pytest.fixture
def slow() -> SlowEmbedder:
    return SlowEmbedder()


@pytest.fixture
def reader() -> LineReader:
    return LineReader()


@pytest.fixture
def lines(database: Database, store: FileStore, slow: SlowEmbedder, reader: LineReader, tmp_path: Path) -> Ingestor:
    """Reads lines, and waits until its embedder is let go."""
    return Ingestor(database, slow, store, Settings(home=tmp_path / "home"), reader)


async def test_words_are_found_before_meaning_is(
    lines: Ingestor, slow: SlowEmbedder, tenant: Tenant, admin: Principal, database: Database, folder: Path
) -> None:
    path = note(folder, "leave.md", "Thirty kangaroo days.")
    run = asyncio.create_task(lines.ingest_path(tenant.id, "handbook", path, folder))
    await slow.entered.wait()
    (document,) = await documents.listing(database, admin)
    assert (document.state, document.searchable) == (DocumentState.PROCESSING, Searchable.WORDS)
    assert document.progress
    assert (document.progress.step, document.progress.done, document.progress.total) == ("embedding", 0, 1)
    assert await found(database, admin, "kangaroo") == ["Thirty kangaroo days."]
    slow.go.set()
    done = (await run).document
    assert (done.state, done.searchable, done.progress) == (DocumentState.READY, Searchable.MEANING, None)


async def test_bytes_that_change_while_being_embedded_are_read_again(
    lines: Ingestor, slow: SlowEmbedder, tenant: Tenant, admin: Principal, database: Database, folder: Path
) -> None:
    path = note(folder, "leave.md", "Thirty kangaroo days.")
    first = asyncio.create_task(lines.ingest_path(tenant.id, "handbook", path, folder))
    await slow.entered.wait()
    path.write_text("Forty wombat days.")
    second = asyncio.create_task(lines.ingest_path(tenant.id, "handbook", path, folder))
    await until(lambda: everywhere(database, admin, lambda one: one.state is DocumentState.QUEUED))
    slow.go.set()
    results = [await first, await second]
    assert [result.document.state for result in results] == [DocumentState.READY] * 2
    assert results[1].outcome != "unchanged"
    assert await found(database, admin, "wombat")
    assert await found(database, admin, "kangaroo") == []
    assert (await documents.listing(database, admin))[0].revision == 2


async def test_a_cancelled_run_goes_on_where_it_was(
    lines: Ingestor,
    slow: SlowEmbedder,
    reader: LineReader,
    tenant: Tenant,
    database: Database,
    folder: Path,
) -> None:
    path = note(folder, "leave.md", "Thirty days.\nForty days.")
    run = asyncio.create_task(lines.ingest_path(tenant.id, "handbook", path, folder))
    await slow.entered.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    (pending,) = await documents.pending(database, tenant.id)
    slow.go.set()
    assert (await lines.process(tenant.id, pending.id)).state is DocumentState.READY
    assert reader.names == ["leave.md"]


async def test_documents_are_read_ahead_of_the_embedder_but_not_all(
    lines: Ingestor,
    slow: SlowEmbedder,
    reader: LineReader,
    tenant: Tenant,
    admin: Principal,
    database: Database,
    folder: Path,
) -> None:
    for number in range(12):
        note(folder, f"{number:02}.txt", f"Document {number} of many.")
    run = asyncio.create_task(walk(lines, tenant, folder))
    await slow.entered.wait()
    await until(lambda: everywhere(database, admin, lambda one: one.searchable is Searchable.WORDS, of=6))
    assert len(reader.names) == 6
    slow.go.set()
    assert len(await run) == 12
    # What came while the embedder was busy went into one call.
    assert max(slow.batches) > 1
    assert sum(slow.batches) == 12


async def test_the_same_text_is_embedded_once(
    lines: Ingestor, slow: SlowEmbedder, tenant: Tenant, admin: Principal, database: Database, folder: Path
) -> None:
    for number in range(4):
        note(folder / str(number), "notice.txt", f"Smoking is not allowed.\nFloor {number}.")
    slow.go.set()
    await walk(lines, tenant, folder)
    assert slow.embedded == 5
    assert {one.searchable for one in await documents.listing(database, admin)} == {Searchable.MEANING}


async def test_a_long_document_is_embedded_in_batches(
    lines: Ingestor, slow: SlowEmbedder, tenant: Tenant, folder: Path
) -> None:
    path = note(folder, "long.txt", "\n".join(f"Line {number}." for number in range(AHEAD + 10)))
    slow.go.set()
    result = await lines.ingest_path(tenant.id, "handbook", path, folder)
    assert (result.document.state, result.document.chunks) == (DocumentState.READY, AHEAD + 10)
    assert max(slow.batches) == BATCH
    assert sum(slow.batches) == AHEAD + 10


async def test_the_embedder_has_two_batches_at_once_and_no_more(
    lines: Ingestor, slow: SlowEmbedder, tenant: Tenant, folder: Path
) -> None:
    path = note(folder, "long.txt", "\n".join(f"Line {number}." for number in range(4 * BATCH)))
    run = asyncio.create_task(lines.ingest_path(tenant.id, "handbook", path, folder))
    await slow.full.wait()
    assert slow.batches == [BATCH] * AT_ONCE
    slow.go.set()
    assert (await run).document.state is DocumentState.READY
    assert slow.batches == [BATCH] * 4


async def test_embedding_waits_for_a_question(
    lines: Ingestor, slow: SlowEmbedder, tenant: Tenant, admin: Principal, database: Database, folder: Path
) -> None:
    path = note(folder, "leave.md", "Thirty kangaroo days.")
    slow.go.set()
    async with answering.answering(database):
        run = asyncio.create_task(lines.ingest_path(tenant.id, "handbook", path, folder))
        await until(lambda: found(database, admin, "kangaroo"))
        assert slow.batches == []
    assert (await run).document.state is DocumentState.READY


async def test_embedding_does_not_wait_for_ever(
    lines: Ingestor, slow: SlowEmbedder, tenant: Tenant, database: Database, folder: Path
) -> None:
    lines._processor._batches._patience = 0.0
    path = note(folder, "leave.md", "Thirty kangaroo days.")
    slow.go.set()
    async with answering.answering(database):
        assert (await lines.ingest_path(tenant.id, "handbook", path, folder)).document.state is DocumentState.READY


async def test_a_file_that_this_machine_does_not_have_is_waited_for(
    lines: Ingestor, slow: SlowEmbedder, store: FileStore, tenant: Tenant, admin: Principal, database: Database
) -> None:
    slow.go.set()
    queued = await lines.accept_upload(tenant.id, "handbook", "leave.md", b"Thirty days.")
    path = store.path(tenant.id, queued.sha256)
    path.unlink()
    with pytest.raises(StorageError, match="not on this machine"):
        await lines.process(tenant.id, queued.id)
    assert (await documents.get(database, admin, queued.id)).state is DocumentState.QUEUED
    path.write_bytes(b"Thirty days.")
    assert (await lines.process(tenant.id, queued.id)).state is DocumentState.READY


# --- files inside others ---


async def test_files_inside_a_document_become_documents(
    lines: Ingestor, slow: SlowEmbedder, tenant: Tenant, admin: Principal, database: Database, folder: Path
) -> None:
    slow.go.set()
    files = {"plan.txt": "Thirty kangaroo days.", "run.exe": "MZ", "sub/more.txt": "Wombat."}
    note(folder, "mail.txt", "\n".join(["See the files.", *map(inside, *zip(*files.items(), strict=True))]))
    steps = await walk(lines, tenant, folder)
    assert sorted((step.path, step.result and step.result.outcome) for step in steps) == [
        ("mail.txt", "new"),
        ("mail.txt/plan.txt", "new"),
        ("mail.txt/sub/more.txt", "new"),
    ]
    assert (steps[-1].done, steps[-1].total) == (3, 3)
    mail, plan, _ = await documents.listing(database, admin)
    assert (plan.parent_id, plan.state) == (mail.id, DocumentState.READY)
    assert [(warning.code, warning.count) for warning in mail.warnings] == [("attachments_refused", 1)]
    assert "run.exe" in mail.warnings[0].text
    assert await found(database, admin, "kangaroo")


async def test_files_that_are_no_longer_inside_go(
    lines: Ingestor, slow: SlowEmbedder, tenant: Tenant, admin: Principal, database: Database, folder: Path
) -> None:
    slow.go.set()
    path = note(
        folder, "mail.txt", f"See.\n{inside('one.txt', 'Thirty kangaroo days.')}\n{inside('two.txt', 'Wombat.')}"
    )
    await walk(lines, tenant, folder)
    kept = {one.path: one.id for one in await documents.listing(database, admin)}
    path.write_text(f"See.\n{inside('two.txt', 'Wombat.')}")
    await walk(lines, tenant, folder)
    assert {one.path: one.id for one in await documents.listing(database, admin)} == {
        path: kept[path] for path in ("mail.txt", "mail.txt/two.txt")
    }
    assert await found(database, admin, "kangaroo") == []


async def test_files_inside_files_inside_files_end_somewhere(
    lines: Ingestor, slow: SlowEmbedder, tenant: Tenant, admin: Principal, database: Database, folder: Path
) -> None:
    slow.go.set()
    text = "The last."
    for level in range(DEEPEST + 2, 0, -1):
        text = f"Level {level - 1}.\n{inside(f'{level}.txt', text)}"
    note(folder, "0.txt", text)
    await walk(lines, tenant, folder)
    *_, deepest = await documents.listing(database, admin)
    assert deepest.path.count("/") == DEEPEST
    assert "nested too deeply" in deepest.warnings[0].text


async def test_a_document_goes_with_what_was_inside(
    lines: Ingestor,
    slow: SlowEmbedder,
    tenant: Tenant,
    admin: Principal,
    database: Database,
    store: FileStore,
    folder: Path,
) -> None:
    slow.go.set()
    note(folder, "mail.txt", f"See.\n{inside('one.txt', 'Thirty days.')}\n{inside('two.txt', 'Forty days.')}")
    await walk(lines, tenant, folder)
    (mail,) = [one for one in await documents.listing(database, admin) if one.parent_id is None]
    receipt = await lines.delete(admin, mail.id)
    assert (receipt.counts["documents"], receipt.counts["files"]) == (3, 3)
    assert stored(store, tenant) == set()


async def test_a_folder_passes_over_what_is_not_for_it(
    ingestor: Ingestor, tenant: Tenant, tmp_path: Path, folder: Path
) -> None:
    outside = note(tmp_path, "outside.md", "# Secret\n\nNot below the folder.\n")
    note(folder, "leave.md", "# Leave\n\nThirty days.\n")
    note(folder, ".git/config.md", "hidden")
    note(folder, "empty.md", "")
    note(folder, "picture.gif", "x")
    (folder / "link.md").symlink_to(outside)
    progress = await walk(ingestor, tenant, folder)
    assert sorted((p.path, p.skipped) for p in progress) == [
        ("empty.md", "empty"),
        ("leave.md", None),
        ("link.md", "a link that leads out of the folder"),
        ("picture.gif", "not a supported format"),
    ]
    assert [(p.done, p.total) for p in progress] == [(1, 4), (2, 4), (3, 4), (4, 4)]


async def test_a_file_that_goes_while_a_folder_is_read_stops_nothing(
    ingestor: Ingestor, tenant: Tenant, folder: Path
) -> None:
    note(folder, "a.md", "# A\n\nStays.\n")
    gone = note(folder, "b.md", "# B\n\nGone soon.\n")
    note(folder, "c.exe", "Not for us.")
    skipped = {}
    async for step in ingestor.ingest_folder(tenant.id, "handbook", folder):
        # The first step tells what was passed over; the files come after it.
        skipped[step.path] = step.skipped
        gone.unlink(missing_ok=True)
    assert skipped == {"a.md": None, "b.md": f"There is no file {gone}.", "c.exe": "not a supported format"}


async def test_tenants_do_not_meet(
    ingestor: Ingestor, tenant: Tenant, other_tenant: Tenant, admin: Principal, database: Database, folder: Path
) -> None:
    path = note(folder, "leave.md", "# Leave\n\nThirty kangaroo days.\n")
    result = await ingestor.ingest_path(other_tenant.id, "handbook", path, folder)
    assert result.document.state is DocumentState.READY
    assert await found(database, admin, "kangaroo") == []
    with pytest.raises(NotFound):
        await ingestor.delete(admin, result.document.id)


async def test_a_file_name_that_is_no_utf8_is_shown_all_the_same(
    ingestor: Ingestor, tenant: Tenant, folder: Path
) -> None:
    path = note(folder, os.fsdecode(b"caf\xe9.md"), "# Coffee\n\nFree for all.\n")
    result = await ingestor.ingest_path(tenant.id, "handbook", path, folder)
    assert (result.document.path, result.outcome) == ("caf\ufffd.md", "new")


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("../../etc/passwd.md", "passwd.md"),
        ("C:\\Users\\x\\a.pdf", "a.pdf"),
        ("a\0b\u202e\u200b.txt", "ab.txt"),
        ("x" * 300 + ".docx", "x" * 195 + ".docx"),
        ("", "document"),
        ("员工手册.pdf", "员工手册.pdf"),
    ],
)
def test_uploaded_names_are_made_safe(given: str, safe: str) -> None:
    assert safe_name(given) == safe


# --- pictures of pages ------------------------------------------------------------------------------------------------


class Painter(LineReader):
    """Draws what it was asked for as text."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[tuple[str, int, int]] = []

    async def read(self, path: Path, name: str) -> Reading:
        found = await super().read(path, name)
        return replace(found, parsed=replace(found.parsed, pages=2))

    async def picture(self, path: Path, name: str, page: int, width_px: int) -> bytes:
        self.drawn.append((name, page, width_px))
        return await asyncio.to_thread(path.read_bytes)


@pytest.fixture
def painter() -> Painter:
    return Painter()


@pytest.fixture
def gallery(database: Database, embedder: FakeEmbedder, store: FileStore, tmp_path: Path, painter: Painter) -> Ingestor:
    return Ingestor(database, embedder, store, Settings(home=tmp_path / "home"), painter)


async def test_a_page_is_drawn_once_and_forgotten_with_its_document(
    gallery: Ingestor, painter: Painter, tenant: Tenant, admin: Principal, folder: Path, database: Database
) -> None:
    path = note(folder, "leave.pdf", "Thirty days.")
    document = (await gallery.ingest_path(tenant.id, "handbook", path, folder)).document
    read = await documents.revision(database, admin, document.id, 0)
    pictures = [await gallery.picture(tenant.id, document, read, page, 600) for page in (1, 2, 1, 2)]
    assert pictures == [b"Thirty days."] * 4
    assert painter.drawn == [("leave.pdf", 1, 600), ("leave.pdf", 2, 600)]
    await gallery.delete(admin, document.id)
    with pytest.raises(StorageError, match="not on this machine"):
        await gallery.picture(tenant.id, document, read, 1, 600)


async def test_a_revision_keeps_its_file_for_as_long_as_it_is_kept(
    embedder: FakeEmbedder, painter: Painter, store: FileStore, tenant: Tenant, admin: Principal, folder: Path,
    database: Database, tmp_path: Path,
) -> None:  # fmt: skip
    settings = Settings(home=tmp_path / "home", keep_revisions=2)
    gallery = Ingestor(database, embedder, store, settings, painter)
    texts = [f"{number} days." for number in range(3)]
    for number, text in enumerate(texts):
        path = note(folder, "leave.pdf", text)
        document = (await gallery.ingest_path(tenant.id, "handbook", path, folder)).document
        assert len(stored(store, tenant)) == min(number + 1, 2)
    kept = await documents.revisions(database, admin, document.id)
    assert [revision.number for revision in kept] == [2, 3]
    pictures = [await gallery.picture(tenant.id, document, revision, 1, 600) for revision in kept]
    assert pictures == [text.encode() for text in texts[1:]]
    await gallery.sweep(tenant.id)
    assert stored(store, tenant) == {revision.sha256 for revision in kept}
    # A file that an earlier program did not keep is no fault of the machine.
    painter.drawn.clear()
    await store.remove(tenant.id, kept[0].sha256)
    with pytest.raises(NotFound, match="was not kept"):
        await gallery.picture(tenant.id, document, kept[0], 2, 600)
    assert painter.drawn == []


async def test_there_is_no_picture_beyond_what_was_read(
    gallery: Ingestor, painter: Painter, tenant: Tenant, admin: Principal, folder: Path, database: Database
) -> None:
    path = note(folder, "leave.pdf", "Thirty days.")
    document = (await gallery.ingest_path(tenant.id, "handbook", path, folder)).document
    read = await documents.revision(database, admin, document.id, 0)
    with pytest.raises(NotFound):
        await gallery.picture(tenant.id, document, read, 3, 600)
    text = (await gallery.ingest_path(tenant.id, "handbook", note(folder, "leave.md", "Sixty days."), folder)).document
    with pytest.raises(NotFound):
        await gallery.picture(tenant.id, text, await documents.revision(database, admin, text.id, 0), 1, 600)
    assert painter.drawn == []


async def test_while_newer_bytes_wait_the_pages_are_those_that_were_read(
    gallery: Ingestor, tenant: Tenant, admin: Principal, folder: Path, database: Database
) -> None:
    path = note(folder, "leave.pdf", "Thirty days.")
    document = (await gallery.ingest_path(tenant.id, "handbook", path, folder)).document
    await gallery.accept_upload(tenant.id, "handbook", "leave.pdf", b"Ninety days.")
    waiting = await documents.get(database, admin, document.id)
    read = await documents.revision(database, admin, document.id, 0)
    assert await gallery.picture(tenant.id, waiting, read, 1, 600) == b"Thirty days."
    with pytest.raises(NotFound):
        await documents.revision(database, admin, document.id, 2)


async def test_a_page_is_drawn_while_its_text_is_still_being_embedded(
    gallery: Ingestor, tenant: Tenant, admin: Principal, folder: Path, database: Database, store: FileStore,
    painter: Painter, tmp_path: Path,
) -> None:  # fmt: skip
    broken = Ingestor(database, BrokenEmbedder(), store, Settings(home=tmp_path / "home"), painter)
    with pytest.raises(ModelUnavailable):
        await broken.ingest_path(tenant.id, "handbook", note(folder, "leave.pdf", "Thirty days."), folder)
    (document,) = await documents.listing(database, admin)
    assert document.state is not DocumentState.READY
    read = await documents.revision(database, admin, document.id, 0)
    assert await gallery.picture(tenant.id, document, read, 1, 600) == b"Thirty days."
