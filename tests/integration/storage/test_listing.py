"""Documents found in the database by what one knows of them, and no others than one may see."""

from datetime import UTC, datetime, timedelta

import pytest

from core.records import Principal, Role, Tenant
from storage import collections, documents, listing, tending, users
from storage.database import Database
from tests.integration.storage.filling import fill, read

TODAY = datetime.now(UTC).date()
HIDDEN = "board/leave.md"


@pytest.fixture
async def shelves(database: Database, tenant: Tenant) -> Database:
    """Three documents that everyone may read, and one that nobody but administrators may."""
    for path in ("leave.md", "a/leave.md", "b/sick-leave.md"):
        await fill(database, tenant.id, path, [f"What {path} says."])
    board = await collections.create(database, tenant.id, "board")
    await fill(database, tenant.id, HIDDEN, ["Five days."], collection=board.name)
    return database


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("leave.md", ["leave.md"]),  # not those that end so: one is called just that
        ("a/leave.md", ["a/leave.md"]),
        ("sick-leave.md", ["b/sick-leave.md"]),
        ("eave.md", []),
        ("%", []),
        ("_/leave.md", []),
        (HIDDEN, []),
    ],
)
async def test_by_path_or_by_its_end_in_whole_parts(
    shelves: Database, principal: Principal, wanted: str, found: list[str]
) -> None:
    assert [each.path for each in await listing.called(shelves, principal, wanted)] == found


async def test_what_ends_so_where_nothing_is_called_so(shelves: Database, admin: Principal) -> None:
    await documents.move(shelves, admin.tenant_id, (await listing.called(shelves, admin, "leave.md"))[0].id, "c/x.md")
    assert [each.path for each in await listing.called(shelves, admin, "leave.md")] == [HIDDEN, "a/leave.md"]


async def test_all_paths_that_one_may_see(shelves: Database, admin: Principal, principal: Principal) -> None:
    ours = ["a/leave.md", "b/sick-leave.md", "leave.md"]
    assert await listing.paths(shelves, principal) == ours
    assert await listing.paths(shelves, admin) == [HIDDEN, *ours]
    assert await listing.paths(shelves, admin, "board") == [HIDDEN]


async def test_another_tenant_finds_nothing(shelves: Database, other_tenant: Tenant) -> None:
    stranger = await users.create(shelves, other_tenant.id, "ada", "$hash", Role.ADMIN)
    assert await listing.called(shelves, stranger, "leave.md") == []
    assert await listing.paths(shelves, stranger) == []
    assert await listing.latest(shelves, stranger, "en", TODAY, chunks=9, limit=9) == []


async def test_the_latest_in_force_in_one_language(shelves: Database, admin: Principal, principal: Principal) -> None:
    tenant_id = admin.tenant_id
    await fill(shelves, tenant_id, "假期.md", ["每年有三十天假期。"])
    await fill(shelves, tenant_id, "long.md", ["One.", "Two.", "Three."])
    await fill(shelves, tenant_id, "over.md", ["Was so."], effective_to=TODAY - timedelta(days=1))
    await fill(shelves, tenant_id, "later.md", ["Will be so."], effective_from=TODAY + timedelta(days=1))
    await read(shelves, tenant_id, "half.md", ["Not ready yet."])
    newer = await fill(shelves, tenant_id, "new.md", ["Instead."], effective_from=TODAY)
    await tending.set_dates(
        shelves, admin, newer.id, effective_from=TODAY, effective_to=None, supersedes="b/sick-leave.md"
    )

    async def latest(reader: Principal, limit: int = 9) -> list[str]:
        found = await listing.latest(shelves, reader, "en", TODAY, chunks=2, limit=limit)
        return [each.path for each in found]

    assert await latest(principal) == ["new.md", "a/leave.md", "leave.md"]
    assert await latest(principal, 1) == ["new.md"]
    assert HIDDEN in await latest(admin)
    assert [each.path for each in await listing.latest(shelves, admin, "zh", TODAY, chunks=2, limit=9)] == ["假期.md"]
