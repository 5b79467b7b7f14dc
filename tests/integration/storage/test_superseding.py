"""One document in the place of another: hidden from its first day on, found as of earlier days, and back again."""

from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest

from core.errors import Forbidden
from core.records import Document, DocumentState, Filters, Principal, Sidecar, Tenant
from storage import collections, documents, search, sidecars, tending
from storage.database import Database
from tests.integration.storage.filling import EMBEDDER, fill, register

TODAY = datetime.now(UTC).date()
YESTERDAY, JANUARY, JUNE = TODAY - timedelta(days=1), date(2024, 1, 1), date(2024, 6, 1)


async def found(db: Database, reader: Principal, as_of: date | None = None, query: str = "hats") -> list[str]:
    """The paths that a search finds, in order."""
    hits = await search.search(db, reader, query, None, embedder_id=EMBEDDER, filters=Filters(as_of=as_of))
    return sorted(hit.path for hit in hits)


async def supersede(
    db: Database, admin: Principal, document: Document, older: str | None, since: date | None = None
) -> Document:
    return await tending.set_dates(db, admin, document.id, effective_from=since, effective_to=None, supersedes=older)


async def pair(db: Database, tenant: Tenant, **more: str) -> tuple[Document, Document]:
    old = await fill(db, tenant.id, "dress/2023.md", ["Hats are off."], **more)  # type: ignore[arg-type]
    return old, await fill(db, tenant.id, "dress/2024.md", ["Hats are on."], **more)  # type: ignore[arg-type]


def warnings(document: Document) -> list[str]:
    return [warning.code for warning in document.warnings]


async def test_the_older_is_found_as_of_earlier_days_only(
    database: Database, tenant: Tenant, admin: Principal, principal: Principal
) -> None:
    old, new = await pair(database, tenant)
    new = await supersede(database, admin, new, "2023.md", JUNE)
    old = await documents.get(database, principal, old.id)
    assert await found(database, principal) == [new.path]
    assert await found(database, principal, JUNE) == [new.path]
    assert await found(database, principal, JUNE - timedelta(days=1)) == [old.path]
    assert new.older is not None
    assert old.newer is not None
    assert (new.older.document_id, new.older.title, new.older.day) == (old.id, old.title, JUNE)
    assert (old.newer.document_id, old.newer.title, old.newer.day) == (new.id, new.title, JUNE)
    assert (warnings(new), old.older, new.newer) == ([], None, None)


async def test_one_without_dates_hides_from_the_day_it_was_read(
    database: Database, tenant: Tenant, admin: Principal
) -> None:
    old, new = await pair(database, tenant)
    await supersede(database, admin, new, old.path)
    assert await found(database, admin) == [new.path]
    assert await found(database, admin, YESTERDAY) == [old.path, new.path]


async def test_one_that_is_not_in_force_yet_hides_nothing_yet(
    database: Database, tenant: Tenant, admin: Principal
) -> None:
    old, new = await pair(database, tenant)
    tomorrow = TODAY + timedelta(days=1)
    await supersede(database, admin, new, old.path, tomorrow)
    assert await found(database, admin) == [old.path]
    assert await found(database, admin, tomorrow) == [new.path]


async def test_taken_back_or_deleted_the_older_is_found_again(
    database: Database, tenant: Tenant, admin: Principal
) -> None:
    old, new = await pair(database, tenant)
    both = [old.path, new.path]
    await supersede(database, admin, new, old.path, JUNE)
    assert (await supersede(database, admin, new, None)).older is None
    assert await found(database, admin) == both
    await supersede(database, admin, new, old.path, JUNE)
    assert await found(database, admin) == [new.path]
    await tending.delete(database, admin, new.id)
    assert await found(database, admin) == [old.path]
    assert (await documents.get(database, admin, old.id)).newer is None


async def test_where_the_older_is_deleted_its_name_is_not_known_any_more(
    database: Database, tenant: Tenant, admin: Principal
) -> None:
    old, new = await pair(database, tenant)
    assert warnings(await supersede(database, admin, new, old.path)) == []
    await tending.delete(database, admin, old.id)
    left = await documents.get(database, admin, new.id)
    assert (warnings(left), left.older) == (["supersedes_unknown"], None)
    assert left.warnings[0].text.startswith("It is to supersede “dress/2023.md”")


@pytest.mark.parametrize("said", ["2023.md", "dress/2023.md", "handbook/dress/2023.md", "Dress code"])
async def test_what_is_said_may_be_a_name_a_path_or_a_title(
    database: Database, tenant: Tenant, admin: Principal, said: str
) -> None:
    old = await fill(database, tenant.id, "handbook/dress/2023.md", ["Hats are off."], title="Dress code")
    new = await fill(database, tenant.id, "handbook/dress/2024.md", ["Hats are on."])
    await supersede(database, admin, new, said)
    assert await found(database, admin) == [new.path]
    await supersede(database, admin, new, str(old.id))
    assert await found(database, admin) == [new.path]


async def test_the_neighbour_is_meant_before_a_stranger_of_the_same_name(
    database: Database, tenant: Tenant, admin: Principal
) -> None:
    for path in ("a/old.md", "b/old.md", "c/new.md"):
        await fill(database, tenant.id, path, [f"Hats of {path}."])
    near = await fill(database, tenant.id, "a/new.md", ["Hats are on."])
    await supersede(database, admin, near, "old.md")
    assert await found(database, admin) == ["a/new.md", "b/old.md", "c/new.md"]
    far = next(one for one in await documents.listing(database, admin) if one.path == "c/new.md")
    assert warnings(await supersede(database, admin, far, "old.md")) == ["supersedes_ambiguous"]
    assert await found(database, admin) == ["a/new.md", "b/old.md", "c/new.md"]


async def test_the_older_may_come_later_or_be_moved_there(database: Database, tenant: Tenant, admin: Principal) -> None:
    new = await fill(database, tenant.id, "new.md", ["Hats are on."])
    assert warnings(await supersede(database, admin, new, "old.md")) == ["supersedes_unknown"]
    old = await fill(database, tenant.id, "old.md", ["Hats are off."], title="Dress")
    assert await found(database, admin) == ["new.md"]
    assert warnings(await documents.get(database, admin, new.id)) == []
    await documents.move(database, tenant.id, old.id, "elsewhere.md")
    assert await found(database, admin) == ["elsewhere.md", "new.md"]
    await documents.move(database, tenant.id, old.id, "deep/old.md")
    assert await found(database, admin) == ["new.md"]


async def test_a_chain_hides_all_but_its_end(database: Database, tenant: Tenant, admin: Principal) -> None:
    old, new = await pair(database, tenant)
    newest = await fill(database, tenant.id, "dress/2025.md", ["Hats are up."])
    await supersede(database, admin, new, old.path, JANUARY)
    await supersede(database, admin, newest, new.path, JUNE)
    assert await found(database, admin) == [newest.path]
    assert await found(database, admin, JANUARY) == [new.path]
    assert await found(database, admin, JANUARY - timedelta(days=1)) == [old.path]
    await tending.delete(database, admin, newest.id)
    assert await found(database, admin) == [new.path]


async def test_a_circle_leaves_the_newest(database: Database, tenant: Tenant, admin: Principal) -> None:
    old, new = await pair(database, tenant)
    await supersede(database, admin, old, new.path, JANUARY)
    await supersede(database, admin, new, old.path, JUNE)
    assert await found(database, admin) == [new.path]
    assert warnings(await documents.get(database, admin, old.id)) == ["supersedes_circular"]
    await supersede(database, admin, new, None, JUNE)
    assert warnings(await documents.get(database, admin, old.id)) == []
    assert await found(database, admin) == [old.path]
    assert warnings(await supersede(database, admin, old, old.path)) == ["supersedes_unknown"]


async def test_a_sidecar_says_it_too(database: Database, tenant: Tenant, admin: Principal) -> None:
    old, new = await pair(database, tenant)
    described = await sidecars.describe(database, tenant.id, new.id, Sidecar("s1", supersedes=old.path))
    assert described.older is not None
    assert await found(database, admin) == [new.path]
    await sidecars.describe(database, tenant.id, new.id, None)
    assert await found(database, admin) == [old.path, new.path]


async def test_the_first_revision_that_said_so_counts(database: Database, tenant: Tenant, admin: Principal) -> None:
    old, new = await pair(database, tenant)
    await supersede(database, admin, new, old.path, JANUARY)
    # A later revision says no dates of its own: the admin's word stays, and the older stays hidden since then.
    await fill(database, tenant.id, new.path, ["Hats are quite on."])
    assert await found(database, admin) == [new.path]
    assert await found(database, admin, JUNE) == [new.path]
    assert await found(database, admin, JANUARY - timedelta(days=1)) == [old.path]


async def test_only_what_is_ready_begins_to_hide(database: Database, tenant: Tenant, admin: Principal) -> None:
    old, new = await pair(database, tenant)
    home = await collections.ensure(database, tenant.id, "handbook")
    await register(database, tenant.id, home.id, new.path, "newer bytes")
    waiting = await supersede(database, admin, new, old.path)
    assert waiting.state is DocumentState.QUEUED
    assert waiting.older is not None
    assert waiting.older.day is None
    assert await found(database, admin) == [old.path, new.path]


async def test_nothing_reaches_beyond_its_collection_or_its_mail(
    database: Database, tenant: Tenant, admin: Principal
) -> None:
    old, _ = await pair(database, tenant)
    board = await fill(database, tenant.id, "board.md", ["Hats of the board."], collection="board")
    assert warnings(await supersede(database, admin, board, old.path)) == ["supersedes_unknown"]
    mail = await fill(database, tenant.id, "mail.eml", ["A mail."])
    inside = await _inside(database, tenant, mail, "mail.eml/policy.md")
    assert warnings(await supersede(database, admin, inside, old.path)) == ["supersedes_unknown"]
    beside = await _inside(database, tenant, mail, "mail.eml/older.md")
    assert warnings(await supersede(database, admin, inside, "older.md")) == []
    assert (await documents.get(database, admin, beside.id)).newer is not None


async def _inside(db: Database, tenant: Tenant, parent: Document, path: str) -> Document:
    document = await fill(db, tenant.id, path, [f"Hats in {path}."])
    registered, _ = await documents.register(
        db, tenant.id, document.collection_id, path=path, sha256=document.sha256, media_type=document.media_type,
        size=document.size, title=path, parent_id=parent.id,
    )  # fmt: skip
    return registered


async def test_other_tenants_and_employees_change_nothing(
    database: Database, tenant: Tenant, other_tenant: Tenant, admin: Principal, principal: Principal
) -> None:
    old, new = await pair(database, tenant)
    theirs = await fill(database, other_tenant.id, new.path, ["Hats are theirs."])
    stranger = Principal(other_tenant.id, UUID(int=1), "eve", admin.role)
    assert warnings(await supersede(database, stranger, theirs, str(old.id))) == ["supersedes_unknown"]
    assert warnings(await supersede(database, stranger, theirs, old.path)) == ["supersedes_unknown"]
    with pytest.raises(Forbidden):
        await supersede(database, principal, new, old.path)
    assert await found(database, admin) == [old.path, new.path]


async def test_what_is_hidden_does_not_come_through_the_lists(
    database: Database, tenant: Tenant, admin: Principal
) -> None:
    """An older revision of the superseded document is no way around it."""
    old, new = await pair(database, tenant)
    await tending.set_dates(
        database, admin, old.id, effective_from=TODAY + timedelta(days=9), effective_to=None, supersedes=None
    )
    await fill(database, tenant.id, old.path, ["Hats are off, still."])
    await supersede(database, admin, new, old.path, JANUARY)
    assert await found(database, admin) == [new.path]
    explained = await search.explain(database, admin, "hats", None, embedder_id=EMBEDDER)
    assert (explained.documents, len(explained.lexical)) == (1, 1)
