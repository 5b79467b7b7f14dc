"""Lists, outlines and exact texts: what they show, and that they show nothing a search would not."""

from datetime import date

import pytest

from core.errors import InvalidRequest, NotFound
from core.records import Filters, Principal, Tenant
from storage import collections, structure
from storage.database import Database
from storage.structure import place
from tests.integration.storage.filling import fill

ALL = Filters()


async def found(db: Database, reader: Principal, pattern: str, filters: Filters = ALL) -> list[str]:
    return [at.hit.text[at.start - at.hit.start : at.end - at.hit.start] for at in await structure.find(
        db, reader, filters, pattern)]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "pattern", "there"),
    [
        ("Use Form HR-12 now.", "form hr-12", "Form HR-12"),
        ("依据《差旅-03》执行。", "差旅-03", "差旅-03"),
        ("From 2 to 14 days, then 3 days", "2 to*days", "2 to 14 days"),
        ("İstanbul office: A_1 (100%)", "a_1 (100%)", "A_1 (100%)"),
        ("aab", "a*a*c", None),
        ("abc", "b*a", None),
        ("a.c abc", "a.c", "a.c"),
    ],
)
def test_the_place_of_a_pattern(text: str, pattern: str, there: str | None) -> None:
    at = place(text, pattern)
    assert (text[slice(*at)] if at else None) == there


async def test_a_text_is_found_where_it_stands(database: Database, tenant: Tenant, principal: Principal) -> None:
    await fill(database, tenant.id, "a.md", ["Leave is 25 days.", "Use Form HR-12.", "HR_12 is another."])
    (at,) = await structure.find(database, principal, ALL, "form hr-12")
    whole = "Leave is 25 days.\nUse Form HR-12.\nHR_12 is another."
    assert whole[at.start : at.end] == "Form HR-12"
    assert (at.hit.path, at.hit.text) == ("a.md", "Use Form HR-12.")
    assert await found(database, principal, "leave*days") == ["Leave is 25 days"]
    assert await found(database, principal, "HR_12") == ["HR_12"]
    assert await found(database, principal, "hr%12") == []


@pytest.mark.parametrize("pattern", ["", "*", "a", "**a**", "x" * 201, "a*b*c*d*e*f", "a\x00b", "--"])
async def test_a_pattern_that_is_no_good_is_refused(database: Database, principal: Principal, pattern: str) -> None:
    with pytest.raises(InvalidRequest):
        await structure.find(database, principal, ALL, pattern)


async def test_what_takes_too_long_is_given_up(
    database: Database, tenant: Tenant, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(database, tenant.id, "a.md", [f"word {number} " + "abc " * 400 for number in range(200)])
    monkeypatch.setattr(structure, "PATIENCE_MS", 1)
    with pytest.raises(InvalidRequest):
        await structure.find(database, principal, ALL, "a*b*c*a*zz")


async def test_an_outline_is_the_first_chunk_under_each_heading(
    database: Database, tenant: Tenant, principal: Principal
) -> None:
    document = await fill(database, tenant.id, "a.md", ["one", "two"], headings=["Leave"], suspicious=["one"])
    (first,) = await structure.outline(database, principal, ALL, document.id)
    assert (first.heading_path, first.text) == (("Leave",), "two")


async def test_what_stands_around_a_chunk(database: Database, tenant: Tenant, principal: Principal) -> None:
    document = await fill(database, tenant.id, "a.md", ["one", "two", "three", "four"], suspicious=["three"])
    at = {hit.text: hit for hit in [found.hit for found in await structure.find(database, principal, ALL, "two")]}
    around = await structure.around(database, principal, ALL, at["two"])
    assert [hit.text for hit in around] == ["two", "one"]
    assert {hit.document_id for hit in around} == {document.id}


async def test_the_shelf_is_counted_and_narrowed(database: Database, tenant: Tenant, principal: Principal) -> None:
    for name in ("travel.md", "leave.md", "100%.md"):
        await fill(database, tenant.id, name, [name])
    await fill(database, tenant.id, "old.md", ["old"], effective_to=date(2001, 1, 1))
    shown, total = await structure.shelf(database, principal, ALL, most=2)
    assert ([one.path for one in shown], total) == (["100%.md", "leave.md"], 3)
    shown, total = await structure.shelf(database, principal, ALL, about="0%")
    assert ([one.path for one in shown], total) == (["100%.md"], 1)
    shown, _ = await structure.shelf(database, principal, Filters(as_of=date(2000, 1, 1)), about="old")
    assert [one.path for one in shown] == ["old.md"]


@pytest.mark.threat(44, 55)
async def test_nothing_is_shown_that_may_not_be_read(
    database: Database, tenant: Tenant, other_tenant: Tenant, principal: Principal, admin: Principal
) -> None:
    mine = await fill(database, tenant.id, "mine.md", ["The secret word is open."])
    closed = await fill(database, tenant.id, "closed.md", ["The secret word is closed."], collection="board")
    board = await collections.by_name(database, tenant.id, "board")
    await collections.revoke(database, tenant.id, board.id, "everyone")
    theirs = await fill(database, other_tenant.id, "theirs.md", ["The secret word is theirs."])
    assert [one.path for one in (await structure.shelf(database, principal, ALL))[0]] == ["mine.md"]
    assert await found(database, principal, "secret word is*.") == ["secret word is open."]
    assert {one.path for one in (await structure.shelf(database, admin, ALL))[0]} == {"mine.md", "closed.md"}
    (hit,) = [at.hit for at in await structure.find(database, admin, ALL, "is closed")]
    for document in (closed, theirs):
        with pytest.raises(NotFound):
            await structure.outline(database, principal, ALL, document.id)
    with pytest.raises(NotFound):
        await structure.around(database, principal, ALL, hit)
    assert await structure.outline(database, principal, ALL, mine.id)
    narrowed = Filters(collections=("board",))
    assert await found(database, principal, "secret word", narrowed) == []
    assert (await structure.shelf(database, principal, narrowed))[0] == []
