"""Words that mean the same, kept by tenant and looked up by what a query holds."""

from uuid import uuid4

import pytest

from core.errors import InvalidRequest, NotFound
from core.records import Principal, Tenant
from storage import lexical, search, synonyms
from storage.database import Database
from tests.integration.storage.filling import EMBEDDER, fill


async def groups(db: Database, tenant: Tenant) -> list[tuple[str, ...]]:
    return [one.words for one in await synonyms.listing(db, tenant.id)]


async def test_a_word_stands_in_one_group(database: Database, tenant: Tenant) -> None:
    await synonyms.add(database, tenant.id, ["physical  therapy", "Physiotherapy", "physical therapies"])
    await synonyms.add(database, tenant.id, ["年假", "annual leave"])
    assert await groups(database, tenant) == [("annual leave", "年假"), ("physical therapy", "Physiotherapy")]
    await synonyms.add(database, tenant.id, ["holiday", "leave of absence"])
    made = await synonyms.add(database, tenant.id, ["Annual Leaves", "PTO", "holidays"])
    assert made.words == ("annual leave", "holiday", "leave of absence", "PTO", "年假")
    assert await groups(database, tenant) == [made.words, ("physical therapy", "Physiotherapy")]


async def test_words_and_groups_are_removed(database: Database, tenant: Tenant) -> None:
    made = await synonyms.add(database, tenant.id, ["gear", "equipment", "kit"])
    await synonyms.remove(database, tenant.id, made.id, "Kits")
    assert await groups(database, tenant) == [("equipment", "gear")]
    await synonyms.remove(database, tenant.id, made.id, "gear")
    assert await groups(database, tenant) == []
    again = await synonyms.add(database, tenant.id, ["gear", "equipment"])
    await synonyms.remove(database, tenant.id, again.id)
    assert await groups(database, tenant) == []
    for synonym_id, word in ((again.id, None), (uuid4(), "gear")):
        with pytest.raises(NotFound):
            await synonyms.remove(database, tenant.id, synonym_id, word)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["gear"], "at least two"),
        (["gear", "Gears"], "at least two"),
        (["gear", "the"], "left out of every search"),
        (["gear", "?!"], "left out of every search"),
        (["gear", "假"], "one character"),
        (["gear", "x" * 81], "80 characters"),
        (["gear", "a1 b2 c3 d4 e5 f6 g7"], "12 words"),
        ([f"word{number}" for number in range(21)], "at most 20"),
    ],
)
async def test_what_cannot_be_looked_for_is_refused(
    database: Database, tenant: Tenant, words: list[str], why: str
) -> None:
    with pytest.raises(InvalidRequest, match=why):
        await synonyms.add(database, tenant.id, words)
    assert await groups(database, tenant) == []


async def test_a_group_does_not_grow_over_its_limit(database: Database, tenant: Tenant) -> None:
    half = [[f"{letter}{number}" for number in range(11)] for letter in ("alpha", "beta")]
    before = await synonyms.add_all(database, tenant.id, half)
    with pytest.raises(InvalidRequest, match="at most 20"):
        await synonyms.add(database, tenant.id, ["alpha3", "beta4"])
    assert len(await groups(database, tenant)) == len(before) == 2


async def test_a_tenant_has_room_for_so_many(
    database: Database, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synonyms, "IN_A_TENANT", 3)
    with pytest.raises(InvalidRequest, match="3 synonyms in all"):
        await synonyms.add_all(database, tenant.id, [["gear", "kit"], ["leave", "holiday"]])
    assert await groups(database, tenant) == []


async def test_a_query_is_searched_for_words_that_have_synonyms(database: Database, tenant: Tenant) -> None:
    await synonyms.add_all(
        database,
        tenant.id,
        [
            ["physical therapy", "physiotherapy"],
            ["therapy", "treatment"],
            ["年假", "annual leave"],
            ["HR-12", "leave form"],
        ],
    )
    find = {
        "Are physical therapies paid?": {"physical therapy": ("physiotherapy",)},
        "a therapy that is physical": {"therapy": ("treatment",)},
        "今年年假有几天": {"年假": ("annual leave",)},
        "ANNUAL LEAVE in 2026": {"annual leave": ("年假",)},
        "where is hr 12": {"HR-12": ("leave form",)},
        "nothing of that": {},
        "": {},
    }
    for query, expected in find.items():
        assert await synonyms.expansions(database, tenant.id, query) == expected, query


async def test_synonyms_are_ones_own(database: Database, tenant: Tenant, other_tenant: Tenant) -> None:
    made = await synonyms.add(database, tenant.id, ["gear", "equipment"])
    assert await synonyms.listing(database, other_tenant.id) == []
    assert await synonyms.expansions(database, other_tenant.id, "gear") == {}
    assert await synonyms.group_of(database, other_tenant.id, "gear") is None
    with pytest.raises(NotFound):
        await synonyms.remove(database, other_tenant.id, made.id)
    await synonyms.add(database, other_tenant.id, ["gear", "cog"])
    assert await groups(database, tenant) == [("equipment", "gear")]


async def test_synonyms_are_found_and_count_less_than_what_was_typed(
    database: Database, tenant: Tenant, admin: Principal
) -> None:
    await fill(database, tenant.id, "typed.md", ["Gear is lent for a year."])
    await fill(database, tenant.id, "meant.md", ["Equipment is lent for a year."])
    await fill(database, tenant.id, "other.md", ["Meals are paid for a day."])
    found = [
        [hit.path for hit in await search.search(
            database, admin, "gear", None, embedder_id=EMBEDDER, mode="bm25", also=also
        )]
        for also in ([], ["equipment"])
    ]  # fmt: skip
    assert found == [["typed.md"], ["typed.md", "meant.md"]]
    assert lexical.query_weights("gear", ["equipment", "gear"]) == {"gear": 1, "equip": lexical.SYNONYM}
