"""A collection that stays what a folder holds, on a real database."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path

import pytest

from core.errors import IntramurosError, NotFound, SyncRefused
from core.records import Document, DocumentState, Filters, Principal, Tenant
from core.settings import Settings
from inference.interfaces import Vectors
from ingest import watching
from ingest.files import FileStore
from ingest.pipeline import Ingestor
from ingest.sync import Done, FolderSync
from storage import collections, documents, search, tending, users
from storage.database import Database
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.reader import DirectReader, LineReader

LEAVE = "Everyone has 25 days of annual leave.\nLeave is asked for two weeks ahead.\nFive days may be kept.\n"
TRAVEL = "A hotel costs at most 180 euros a night.\nTrains are second class.\n"
DATED = (
    "---\ntitle: Dress code\neffective_from: 2025-01-01\neffective_to: 2025-12-31\n---\n# Dress\n\nNo hats at dinner.\n"
)


class CountingEmbedder(FakeEmbedder):
    """Keeps what it was asked to embed."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return await super().embed_passages(texts)


class Share:
    """A folder that is kept in step, and what is known of it."""

    def __init__(self, db: Database, tenant: Tenant, folder: Path, home: Path, reader: LineReader | DirectReader):
        self.db = db
        self.tenant = tenant
        self.folder = folder
        self.reader = reader
        self.embedder = CountingEmbedder()
        self.files = FileStore(home)
        self.ingestor = Ingestor(db, self.embedder, self.files, Settings.load(home=home), reader)
        self.operator = users.operator(tenant.id)

    def put(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def syncing(self, folder: Path | None = None, *, source: str | None = None) -> FolderSync:
        return FolderSync(self.db, self.ingestor, self.tenant.id, "handbook", folder or self.folder, source=source)

    async def sync(self, *, force: bool = False) -> dict[str, object]:
        """Sync once; what was done, without what was not."""
        self.embedder.texts.clear()
        self.reader.names.clear()
        return outline(await self.syncing().run(force=force))

    async def documents(self) -> dict[str, Document]:
        return {document.path: document for document in await documents.listing(self.db, self.operator)}

    async def document(self, path: str) -> Document:
        return (await self.documents())[path]

    async def chunk_ids(self, path: str) -> list[int]:
        found = await documents.chunks(self.db, self.operator, (await self.document(path)).id)
        return [chunk.chunk_id for chunk in found]

    async def found(self, query: str, as_of: date | None = None) -> list[str]:
        vector = await self.embedder.embed_query(query)
        hits = await search.search(
            self.db, self.operator, query, vector, embedder_id=self.embedder.id, filters=Filters(as_of=as_of), limit=3
        )
        return [hit.text for hit in hits]


def outline(done: Done) -> dict[str, object]:
    plan = done.look.plan
    whole = {
        "new": list(plan.new),
        "changed": list(plan.changed),
        "moved": {move.document.path: move.path for move in plan.moved},
        "deleted": [document.path for document in plan.deleted],
        "copies": {copy.path: copy.of for copy in plan.copies},
        "described": list(done.look.described),
        "failed": done.failed,
    }
    return {name: value for name, value in whole.items() if value}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "handbook"
    made.mkdir()
    return made


@pytest.fixture
def share(database: Database, tenant: Tenant, folder: Path, tmp_path: Path) -> Share:
    """Files are read line by line: each line is a passage."""
    return Share(database, tenant, folder, tmp_path / "home", LineReader())


@pytest.fixture
def handbook(database: Database, tenant: Tenant, folder: Path, tmp_path: Path) -> Share:
    """Files are read for what they are."""
    settings = Settings.load(home=tmp_path / "home")
    return Share(database, tenant, folder, tmp_path / "home", DirectReader(settings))


# --- files ------------------------------------------------------------------------------------------------------------


async def test_new_files_become_documents_of_the_folder(share: Share) -> None:
    share.put("people/leave.md", LEAVE)
    share.put("travel.md", TRAVEL)
    assert await share.sync() == {"new": ["handbook/people/leave.md", "handbook/travel.md"]}
    assert (await share.found("hotel euros"))[0] == "A hotel costs at most 180 euros a night."
    assert (await share.document("handbook/travel.md")).source == str(share.folder)
    assert await share.sync() == {}
    assert share.reader.names == share.embedder.texts == []


async def test_of_a_changed_file_only_what_differs_is_embedded(share: Share) -> None:
    share.put("leave.md", LEAVE)
    await share.sync()
    before, numbers = await share.document("handbook/leave.md"), await share.chunk_ids("handbook/leave.md")
    share.put("leave.md", LEAVE.replace("25 days", "30 days"))
    assert await share.sync() == {"changed": ["handbook/leave.md"]}
    after = await share.document("handbook/leave.md")
    assert (after.id, after.revision, after.state) == (before.id, 2, DocumentState.READY)
    assert share.embedder.texts == ["leave\nEveryone has 30 days of annual leave."]
    assert (await share.chunk_ids("handbook/leave.md"))[1:] == numbers[1:]


async def test_a_moved_file_keeps_everything_and_is_not_read(share: Share) -> None:
    path = share.put("leave.md", LEAVE)
    await share.sync()
    before, numbers = await share.document("handbook/leave.md"), await share.chunk_ids("handbook/leave.md")
    (share.folder / "people").mkdir()
    path.rename(share.folder / "people" / "annual.md")
    assert await share.sync() == {"moved": {"handbook/leave.md": "handbook/people/annual.md"}}
    after = await share.document("handbook/people/annual.md")
    assert (after.id, after.title, after.revision) == (before.id, before.title, 1)
    assert await share.chunk_ids("handbook/people/annual.md") == numbers
    assert share.reader.names == share.embedder.texts == []
    assert (await documents.passage(share.db, share.operator, after.id, numbers[0])).text == LEAVE.splitlines()[0]


async def test_a_deleted_file_takes_its_document_along_with_a_receipt(share: Share) -> None:
    share.put("leave.md", LEAVE)
    share.put("travel.md", TRAVEL)
    await share.sync()
    (share.folder / "travel.md").unlink()
    done = await share.syncing().run()
    assert outline(done) == {"deleted": ["handbook/travel.md"]}
    (receipt,) = done.receipts
    assert receipt.what == "handbook/travel.md"
    assert {"documents": 1, "chunks": 2, "vectors": 2, "files": 1, "quoting": 0}.items() <= receipt.counts.items()
    assert list(await share.documents()) == ["handbook/leave.md"]


async def test_files_that_change_places_keep_their_documents(share: Share) -> None:
    share.put("a.md", LEAVE)
    share.put("b.md", TRAVEL)
    await share.sync()
    before = await share.documents()
    share.put("a.md", TRAVEL)
    share.put("b.md", LEAVE)
    assert await share.sync() == {"moved": {"handbook/a.md": "handbook/b.md", "handbook/b.md": "handbook/a.md"}}
    after = await share.documents()
    assert after["handbook/a.md"].id == before["handbook/b.md"].id
    assert after["handbook/b.md"].id == before["handbook/a.md"].id
    assert share.reader.names == []


async def test_paths_that_hand_their_bytes_on_each_get_a_revision(share: Share) -> None:
    for name, text in (("a.md", "One.\n"), ("b.md", "Two.\n"), ("c.md", "Three.\n")):
        share.put(name, text)
    await share.sync()
    before = await share.documents()
    for name, text in (("a.md", "Two.\n"), ("b.md", "Three.\n"), ("c.md", "Four.\n")):
        share.put(name, text)
    assert await share.sync() == {"changed": ["handbook/c.md", "handbook/b.md", "handbook/a.md"]}
    after = await share.documents()
    assert {path: each.id for path, each in after.items()} == {path: each.id for path, each in before.items()}
    assert {each.revision for each in after.values()} == {2}


async def test_a_copy_is_told_and_takes_over_when_the_first_goes(share: Share) -> None:
    share.put("a.md", LEAVE)
    share.put("b.md", LEAVE)
    assert await share.sync() == {"new": ["handbook/a.md"], "copies": {"handbook/b.md": "handbook/a.md"}}
    (share.folder / "a.md").unlink()
    assert await share.sync() == {"moved": {"handbook/a.md": "handbook/b.md"}}


async def test_what_was_inside_a_file_goes_and_moves_with_it(share: Share) -> None:
    mail = share.put("mail.txt", 'See the attached note.\n@note.txt: "Lunch is at noon."\n')
    await share.sync()
    assert set(await share.documents()) == {"handbook/mail.txt", "handbook/mail.txt/note.txt"}
    assert await share.sync() == {}
    mail.rename(share.folder / "post.txt")
    await share.sync()
    assert set(await share.documents()) == {"handbook/post.txt", "handbook/post.txt/note.txt"}
    share.put("other.txt", "Something else.\n")
    (share.folder / "post.txt").unlink()
    assert await share.sync(force=True) == {"new": ["handbook/other.txt"], "deleted": ["handbook/post.txt"]}
    assert set(await share.documents()) == {"handbook/other.txt"}


async def test_what_cannot_be_read_does_not_stop_the_others(handbook: Share) -> None:
    (handbook.folder / "broken.pdf").write_bytes(b"%PDF-1.7\ncut short")
    handbook.put("travel.md", "# Travel\n\n" + TRAVEL)
    done = await handbook.sync()
    assert done["new"] == ["handbook/broken.pdf", "handbook/travel.md"]
    assert list(done["failed"]) == ["handbook/broken.pdf"]  # type: ignore[call-overload]
    # What failed is not tried again before its bytes change.
    assert await handbook.sync() == {}
    assert handbook.reader.names == []


async def test_what_was_left_half_way_is_gone_on_with(share: Share) -> None:
    path = share.put("leave.md", LEAVE)
    home = await collections.ensure(share.db, share.tenant.id, "handbook")
    stored = await share.files.put(share.tenant.id, path)
    await documents.register(
        share.db,
        share.tenant.id,
        home.id,
        path="handbook/leave.md",
        sha256=stored.sha256,
        media_type="text/markdown",
        size=stored.size,
        title="leave",
        source=str(share.folder),
    )
    assert await share.sync() == {}
    assert (await share.document("handbook/leave.md")).state is DocumentState.READY


# --- safety -----------------------------------------------------------------------------------------------------------


async def test_a_dry_run_touches_nothing(share: Share) -> None:
    share.put("leave.md", LEAVE)
    look = await share.syncing().look()
    assert look.plan.new == ("handbook/leave.md",)
    assert await collections.list_visible(share.db, share.operator) == []
    assert not share.files.path(share.tenant.id, "0" * 64).parent.exists()

    await share.sync()
    before = await share.documents()
    share.put("leave.md", TRAVEL)
    share.put("leave.md.meta.yaml", "title: Leave\n")
    look = await share.syncing().look()
    assert (look.plan.changed, look.described) == (("handbook/leave.md",), ("handbook/leave.md",))
    assert await share.documents() == before


async def test_a_share_that_is_not_mounted_deletes_nothing(share: Share) -> None:
    share.put("leave.md", LEAVE)
    share.put("travel.md", TRAVEL)
    await share.sync()
    for path in share.folder.iterdir():
        path.unlink()
    with pytest.raises(SyncRefused, match="all 2 documents"):
        await share.sync()
    assert len(await share.documents()) == 2
    share.folder.rmdir()
    for force in (False, True):
        with pytest.raises(NotFound):
            await share.sync(force=force)
    assert len(await share.documents()) == 2
    share.folder.mkdir()
    assert len((await share.sync(force=True))["deleted"]) == 2  # type: ignore[arg-type]
    assert await share.documents() == {}


async def test_a_refused_sync_does_nothing_at_all(share: Share) -> None:
    for number in range(20):
        share.put(f"{number:02}.md", f"Rule number {number}.\n")
    await share.sync()
    for number in range(11):
        (share.folder / f"{number:02}.md").unlink()
    share.put("new.md", LEAVE)
    with pytest.raises(SyncRefused, match="11 of the 20"):
        await share.sync()
    assert len(await share.documents()) == 20


async def test_nothing_is_concluded_from_a_folder_that_cannot_be_read(
    share: Share, monkeypatch: pytest.MonkeyPatch
) -> None:
    share.put("leave.md", LEAVE)
    share.put("closed/travel.md", TRAVEL)
    await share.sync()
    listed = os.scandir

    def some(place: str) -> object:
        if str(place).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(place))
        return listed(place)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", some)
        assert await share.sync(force=True) == {}
    assert len(await share.documents()) == 2


async def test_two_syncs_of_one_source_do_not_mix(share: Share) -> None:
    share.put("leave.md", LEAVE)
    first = share.syncing()
    async with first._alone():
        with pytest.raises(SyncRefused, match="at work"):
            await share.sync()
    assert await share.sync() == {"new": ["handbook/leave.md"]}


async def test_grants_outlive_every_sync(share: Share, principal: Principal) -> None:
    home = await collections.create(share.db, share.tenant.id, "handbook", ["group:staff"])
    for text in (LEAVE, LEAVE + "More.\n"):
        share.put("leave.md", text)
        await share.sync()
    (share.folder / "leave.md").rename(share.folder / "annual.md")
    await share.sync()
    assert await collections.grants(share.db, share.tenant.id, home.id) == ["group:staff"]
    assert [each.path for each in await documents.listing(share.db, principal)] == ["handbook/annual.md"]


# --- sources ----------------------------------------------------------------------------------------------------------


async def test_only_the_folders_own_documents_are_deleted(share: Share, tmp_path: Path) -> None:
    share.put("leave.md", LEAVE)
    await share.sync()
    upload = await share.ingestor.accept_upload(share.tenant.id, "handbook", "upload.md", b"An upload.\n")
    await share.ingestor.process(share.tenant.id, upload.id)
    other = tmp_path / "other"
    other.mkdir()
    (other / "travel.md").write_text(TRAVEL)
    assert outline(await share.syncing(other).run()) == {"new": ["other/travel.md"]}
    (share.folder / "leave.md").unlink()
    assert await share.sync(force=True) == {"deleted": ["handbook/leave.md"]}
    assert set(await share.documents()) == {"other/travel.md", "upload.md"}


async def test_a_share_mounted_elsewhere_is_the_same_source_by_its_name(share: Share, tmp_path: Path) -> None:
    share.put("leave.md", LEAVE)
    await share.syncing(source="hr share").run()
    before = await share.document("handbook/leave.md")
    (tmp_path / "mnt").mkdir()
    elsewhere = share.folder.rename(tmp_path / "mnt" / "hr")
    done = await share.syncing(elsewhere, source="hr share").run()
    assert outline(done) == {"moved": {"handbook/leave.md": "hr/leave.md"}}
    assert (await share.document("hr/leave.md")).id == before.id


async def test_two_folders_of_one_name_do_not_take_each_others_paths(share: Share, tmp_path: Path) -> None:
    share.put("leave.md", LEAVE)
    await share.sync()
    other = tmp_path / "copy" / "handbook"
    other.mkdir(parents=True)
    (other / "leave.md").write_text(TRAVEL)
    done = await share.syncing(other).run()
    assert done.look.plan.clashes == ("handbook/leave.md",)
    assert (await share.document("handbook/leave.md")).source == str(share.folder)
    assert await share.sync() == {}


async def test_what_was_ingested_before_becomes_the_folders_own(share: Share) -> None:
    path = share.put("leave.md", LEAVE)
    await share.ingestor.ingest_path(share.tenant.id, "handbook", path, share.folder.parent)
    assert (await share.document("handbook/leave.md")).source is None
    assert await share.sync() == {}
    assert (await share.document("handbook/leave.md")).source == str(share.folder)
    assert share.embedder.texts == []
    path.unlink()
    assert await share.sync(force=True) == {"deleted": ["handbook/leave.md"]}


# --- sidecars ---------------------------------------------------------------------------------------------------------


def dates(document: Document) -> tuple[date | None, date | None, str | None]:
    return document.effective_from, document.effective_to, document.supersedes


async def test_a_sidecar_speaks_over_the_file_and_is_never_a_document(handbook: Share) -> None:
    handbook.put("dress.md", DATED)
    handbook.put("dress.md.meta.yaml", "effective_to: 2027-12-31\nsupersedes: HR-12\n")
    assert await handbook.sync() == {"new": ["handbook/dress.md"]}
    document = await handbook.document("handbook/dress.md")
    assert dates(document) == (date(2025, 1, 1), date(2027, 12, 31), "HR-12")
    assert await handbook.found("hats", date(2024, 1, 1)) == []
    assert len(await handbook.found("hats", date(2027, 1, 1))) == 1
    assert list(await handbook.documents()) == ["handbook/dress.md"]
    assert await handbook.sync() == {}


async def test_a_changed_sidecar_dates_without_reading_the_file(handbook: Share) -> None:
    handbook.put("dress.md", DATED)
    await handbook.sync()
    for text, expected in (
        ("effective_from: 2026-06-01\neffective_to: 2026-12-31\n", (date(2026, 6, 1), date(2026, 12, 31), None)),
        ("effective_to: 2030-12-31\n", (date(2025, 1, 1), date(2030, 12, 31), None)),
    ):
        handbook.put("dress.md.meta.yaml", text)
        assert await handbook.sync() == {"described": ["handbook/dress.md"]}
        assert dates(await handbook.document("handbook/dress.md")) == expected
        assert handbook.reader.names == handbook.embedder.texts == []
    (handbook.folder / "dress.md.meta.yaml").unlink()
    assert await handbook.sync() == {"described": ["handbook/dress.md"]}
    document = await handbook.document("handbook/dress.md")
    assert dates(document) == (date(2025, 1, 1), date(2025, 12, 31), None)
    assert (document.revision, document.title) == (1, "Dress code")


async def test_a_title_is_embedded_anew_without_reading_the_file(handbook: Share) -> None:
    handbook.put("dress.md", DATED)
    await handbook.sync()
    handbook.put("dress.md.meta.yaml", "title: What to wear\n")
    assert await handbook.sync() == {"described": ["handbook/dress.md"]}
    document = await handbook.document("handbook/dress.md")
    assert (document.title, document.state, document.revision) == ("What to wear", DocumentState.READY, 1)
    assert handbook.reader.names == []
    assert [text.splitlines()[0] for text in handbook.embedder.texts] == ["What to wear > Dress"]
    assert len(await handbook.found("what to wear", date(2025, 6, 1))) == 1
    # It outlasts the next revision of the file.
    handbook.put("dress.md", DATED.replace("dinner", "lunch"))
    await handbook.sync()
    document = await handbook.document("handbook/dress.md")
    assert (document.title, document.revision) == ("What to wear", 2)
    (handbook.folder / "dress.md.meta.yaml").unlink()
    await handbook.sync()
    assert (await handbook.document("handbook/dress.md")).title == "Dress code"


async def test_an_admin_speaks_over_both(handbook: Share, admin: Principal) -> None:
    handbook.put("dress.md", DATED)
    handbook.put("dress.md.meta.yaml", "effective_to: 2027-12-31\n")
    await handbook.sync()
    document = await handbook.document("handbook/dress.md")
    said = (date(2026, 3, 1), None, "an older one")
    await tending.set_dates(
        handbook.db, admin, document.id, effective_from=said[0], effective_to=said[1], supersedes=said[2]
    )
    handbook.put("dress.md.meta.yaml", "effective_to: 2028-12-31\n")
    await handbook.sync()
    assert dates(await handbook.document("handbook/dress.md")) == said
    assert await handbook.sync() == {}


async def test_what_a_sidecar_has_wrong_is_told_with_the_document(handbook: Share) -> None:
    handbook.put("dress.md", DATED)
    handbook.put("dress.md.meta.yaml", "effective_from: soon\nsupersedes: HR-12\n")
    await handbook.sync()
    document = await handbook.document("handbook/dress.md")
    assert [warning.code for warning in document.warnings] == ["bad_metadata", "supersedes_unknown"]
    assert "effective_from is not a date" in document.warnings[0].text
    assert dates(document) == (date(2025, 1, 1), date(2025, 12, 31), "HR-12")
    handbook.put("dress.md", DATED.replace("dinner", "lunch"))
    await handbook.sync()
    document = await handbook.document("handbook/dress.md")
    assert [warning.code for warning in document.warnings] == ["bad_metadata", "supersedes_unknown"]
    handbook.put("dress.md.meta.yaml", "effective_to: 2027-12-31\n")
    await handbook.sync()
    assert (await handbook.document("handbook/dress.md")).warnings == ()


async def test_a_sidecar_moves_with_its_file(handbook: Share) -> None:
    path = handbook.put("dress.md", DATED)
    sidecar = handbook.put("dress.md.meta.yaml", "supersedes: HR-12\n")
    await handbook.sync()
    path.rename(handbook.folder / "clothes.md")
    sidecar.rename(handbook.folder / "clothes.md.meta.yaml")
    assert await handbook.sync() == {"moved": {"handbook/dress.md": "handbook/clothes.md"}}
    assert (await handbook.document("handbook/clothes.md")).supersedes == "HR-12"


# --- watching ---------------------------------------------------------------------------------------------------------


class Script:
    """Stands for `ingest.watching.Watch`: before each next round, the next thing happens; in the end, a stop."""

    def __init__(self, *happenings: object) -> None:
        self._happenings = list(happenings)
        self.soon: list[bool] = []

    async def next(self, *, soon: bool = False) -> None:
        self.soon.append(soon)
        if not self._happenings:
            raise asyncio.CancelledError
        happening = self._happenings.pop(0)
        assert callable(happening)
        happening()


async def _followed(
    share: Share, script: Script, monkeypatch: pytest.MonkeyPatch, *, force: bool = False
) -> list[dict[str, object] | str]:
    @asynccontextmanager
    async def watched(_: Path) -> AsyncIterator[Script]:
        yield script

    heard: list[dict[str, object] | str] = []

    def tell(what: Done | IntramurosError) -> None:
        heard.append(what.code if isinstance(what, IntramurosError) else outline(what))

    monkeypatch.setattr(watching, "watching", watched)
    with pytest.raises(asyncio.CancelledError):
        await share.syncing().follow(tell, force=force)
    return heard


async def test_a_watching_sync_goes_on_round_by_round(share: Share, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(
        lambda: share.put("leave.md", LEAVE),
        lambda: None,
        lambda: (share.folder / "leave.md").rename(share.folder / "annual.md"),
    )
    assert await _followed(share, script, monkeypatch) == [
        {},
        {"new": ["handbook/leave.md"]},
        {},
        {"moved": {"handbook/leave.md": "handbook/annual.md"}},
    ]


async def test_a_watching_sync_outlives_faults(share: Share, monkeypatch: pytest.MonkeyPatch) -> None:
    share.put("leave.md", LEAVE)
    away = share.folder.with_name("away")

    def remount() -> None:
        share.folder.rmdir()
        away.rename(share.folder)

    script = Script(
        lambda: share.folder.rename(away),
        lambda: share.folder.mkdir(),
        remount,
        lambda: share.put("travel.md", TRAVEL),
    )
    assert await _followed(share, script, monkeypatch) == [
        {"new": ["handbook/leave.md"]},
        "not_found",
        "sync_refused",
        {},
        {"new": ["handbook/travel.md"]},
    ]


async def test_force_is_for_the_first_round_only(share: Share, monkeypatch: pytest.MonkeyPatch) -> None:
    path = share.put("leave.md", LEAVE)
    await share.sync()
    path.unlink()

    def again() -> None:
        share.put("travel.md", TRAVEL)

    script = Script(again, lambda: (share.folder / "travel.md").unlink())
    heard = await _followed(share, script, monkeypatch, force=True)
    assert heard == [{"deleted": ["handbook/leave.md"]}, {"new": ["handbook/travel.md"]}, "sync_refused"]


async def test_files_being_written_wait_and_are_looked_at_soon(share: Share, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(lambda: os.utime(share.folder / "leave.md", (1e9, 1e9)))
    settling = FolderSync(share.db, share.ingestor, share.tenant.id, "handbook", share.folder, settle=3600.0)
    monkeypatch.setattr(share, "syncing", lambda: settling)
    share.put("leave.md", LEAVE)
    assert await _followed(share, script, monkeypatch) == [{}, {"new": ["handbook/leave.md"]}]
    assert script.soon == [True, False]
