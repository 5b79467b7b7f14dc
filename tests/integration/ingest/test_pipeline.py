"""From a file to searchable chunks on a real database: once, whole, replaceable, and gone when deleted."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from core.errors import EmptyFile, FileTooLarge, Forbidden, ModelUnavailable, NotFound, UnsupportedFormat
from core.records import DocumentState, Principal, Tenant
from core.settings import Settings
from inference.interfaces import Vectors
from ingest.files import FileStore
from ingest.pipeline import Ingestor, Progress, safe_name
from storage import documents, search
from storage.database import Database
from tests.fakes.embedder import FakeEmbedder
from tests.unit.ingest import samples


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "home")


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
def ingestor(database: Database, embedder: FakeEmbedder, store: FileStore, tmp_path: Path) -> Ingestor:
    return Ingestor(database, embedder, store, Settings(home=tmp_path / "home", max_file_mb=1))


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


async def walk(ingestor: Ingestor, tenant: Tenant, folder: Path) -> list[Progress]:
    return [progress async for progress in ingestor.ingest_folder(tenant.id, "handbook", folder)]


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


async def test_changed_bytes_replace_the_old_chunks_and_file(
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
    assert stored(store, tenant) == {progress.result.document.sha256}


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
    assert dict(receipt.counts) == {"documents": 1, "chunks": 1, "vectors": 1, "words": 1, "files": 1}
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


async def test_a_fault_of_the_machinery_reaches_the_caller_and_a_later_run_succeeds(
    database: Database, store: FileStore, ingestor: Ingestor, tenant: Tenant, tmp_path: Path, folder: Path
) -> None:
    path = note(folder, "leave.md", "# Leave\n\nThirty days.\n")
    broken = Ingestor(database, BrokenEmbedder(), store, Settings(home=tmp_path / "home"))
    with pytest.raises(ModelUnavailable):
        await broken.ingest_path(tenant.id, "handbook", path, folder)
    result = await ingestor.ingest_path(tenant.id, "handbook", path, folder)
    assert (result.outcome, result.document.state) == ("new", DocumentState.READY)


class SlowEmbedder(FakeEmbedder):
    """Holds the first call until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.go = asyncio.Event(), asyncio.Event()

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.entered.set()
        await self.go.wait()
        return await super().embed_passages(texts)


async def test_bytes_that_change_while_being_read_are_read_again(
    database: Database, store: FileStore, tenant: Tenant, admin: Principal, tmp_path: Path, folder: Path
) -> None:
    slow = SlowEmbedder()
    ingestor = Ingestor(database, slow, store, Settings(home=tmp_path / "home"))
    path = note(folder, "leave.md", "# Leave\n\nThirty kangaroo days.\n")
    first = asyncio.create_task(ingestor.ingest_path(tenant.id, "handbook", path, folder))
    await slow.entered.wait()
    path.write_text("# Leave\n\nForty wombat days.\n")
    second = await ingestor.ingest_path(tenant.id, "handbook", path, folder)
    assert second.document.state is not DocumentState.READY
    slow.go.set()
    assert (await first).document.state is DocumentState.READY
    assert await found(database, admin, "wombat")
    assert await found(database, admin, "kangaroo") == []


async def test_a_cancelled_run_leaves_the_document_pending_and_nothing_half_done(
    database: Database,
    store: FileStore,
    ingestor: Ingestor,
    tenant: Tenant,
    admin: Principal,
    tmp_path: Path,
    folder: Path,
) -> None:
    slow = SlowEmbedder()
    path = note(folder, "leave.md", "# Leave\n\nThirty kangaroo days.\n")
    run = asyncio.create_task(
        Ingestor(database, slow, store, Settings(home=tmp_path / "home")).ingest_path(
            tenant.id, "handbook", path, folder
        )
    )
    await slow.entered.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert await found(database, admin, "kangaroo") == []
    (pending,) = await documents.pending(database, tenant.id)
    assert (await ingestor.process(tenant.id, pending.id)).state is DocumentState.READY


async def test_a_folder_passes_over_what_is_not_for_it(
    ingestor: Ingestor, tenant: Tenant, tmp_path: Path, folder: Path
) -> None:
    outside = note(tmp_path, "outside.md", "# Secret\n\nNot below the folder.\n")
    note(folder, "leave.md", "# Leave\n\nThirty days.\n")
    note(folder, ".git/config.md", "hidden")
    note(folder, "empty.md", "")
    note(folder, "picture.png", "x")
    (folder / "link.md").symlink_to(outside)
    progress = await walk(ingestor, tenant, folder)
    assert [(p.path, p.skipped) for p in progress] == [
        ("empty.md", "empty"),
        ("leave.md", None),
        ("link.md", "a link that leads out of the folder"),
        ("picture.png", "not a supported format"),
    ]
    assert [p.done for p in progress] == [1, 2, 3, 4]


async def test_a_file_that_goes_while_a_folder_is_read_stops_nothing(
    ingestor: Ingestor, tenant: Tenant, folder: Path
) -> None:
    note(folder, "a.md", "# A\n\nStays.\n")
    note(folder, "b.md", "# B\n\nStays.\n")
    gone = note(folder, "c.md", "# C\n\nGone soon.\n")
    skipped = {}
    async for step in ingestor.ingest_folder(tenant.id, "handbook", folder):
        skipped[step.path] = step.skipped
        gone.unlink(missing_ok=True)
    assert skipped == {"a.md": None, "b.md": None, "c.md": "gone since the folder was listed"}


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
