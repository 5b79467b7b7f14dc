"""Search: what is found, in which order, for whom, and that nothing else is."""

from datetime import date

import numpy as np
import pytest

from core.errors import EmbeddingSetMismatch
from core.records import Filters, Hit, Principal, Tenant
from storage import collections, documents, search, tending, users
from storage.database import Database
from storage.fusing import DEPTH, SURENESS
from storage.hits import SECTION_CHARACTERS
from tests.integration.storage.filling import DIMENSION, EMBEDDER, fill, random_units, unit


async def find(db: Database, reader: Principal, query: str, **options: object) -> list[Hit]:
    options.setdefault("vector", None)
    return await search.search(db, reader, query, embedder_id=EMBEDDER, **options)  # type: ignore[arg-type]


def texts(hits: list[Hit]) -> list[str]:
    return [hit.text for hit in hits]


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("What is form hr-12 for?", "Use Form HR-12 to ask for leave."),
        ("iso27001", "We are certified under ISO 27001."),
        ("差旅－03 是什么？", "依据《差旅-03》执行。"),
        ("請問住宿費是多少？", "住宿费每晚不超过五百元。"),
        ("How often are they paid?", "Salaries are paid monthly."),
        ("travelling", "Travel is booked by the office."),
        ("ＶＰＮ", "The VPN is needed at home."),
    ],
)
async def test_words_find_their_passage(
    database: Database, tenant: Tenant, principal: Principal, question: str, best: str
) -> None:
    passages = [
        "Use Form HR-12 to ask for leave.", "Use Form HR-13 to ask for a laptop.", "We are certified under ISO 27001.",
        "We are not certified under ISO 9001.", "依据《差旅-03》执行。", "依据《差旅-04》执行。",
        "住宿费每晚不超过五百元。",
        "Salaries are paid monthly.", "Travel is booked by the office.", "The VPN is needed at home.",
        "How often, how many and what for: they are asked, and they are told.",
    ]  # fmt: skip
    await fill(database, tenant.id, "all.md", passages)
    assert texts(await find(database, principal, question))[0] == best


async def test_title_and_headings_count(database: Database, tenant: Tenant, principal: Principal) -> None:
    await fill(database, tenant.id, "a.md", ["It is 25 days."], title="Parental leave")
    await fill(database, tenant.id, "b.md", ["It is 30 days."], title="Policy", headings=["Parental leave"])
    await fill(database, tenant.id, "c.md", ["It is 35 days."], title="Sickness")
    assert texts(await find(database, principal, "parental leave")) == ["It is 25 days.", "It is 30 days."]


async def test_bm25_is_the_textbook_number(database: Database, tenant: Tenant, principal: Principal) -> None:
    """Two chunks, one with the word: idf = ln(1 + (2 - 1 + .5) / (1 + .5)), times the saturated weight."""
    await fill(database, tenant.id, "a.md", ["cat", "dog"], title="t")
    [hit] = await find(database, principal, "cat", mode="bm25")
    # Both texts are as long as the average, so length plays no part; the reweighed average is exact.
    assert hit.scores.bm25 == pytest.approx(np.log(2) * 2.2 / 2.2, rel=1e-3)
    assert (hit.scores.vector, hit.scores.fused) == (None, 1.0)


async def test_fusion_is_convex_over_normalised_scores(
    database: Database, tenant: Tenant, principal: Principal
) -> None:
    vectors = np.stack([unit(1), unit(1, 1), unit(0, 1)])
    await fill(database, tenant.id, "a.md", ["leave days", "leave", "nothing"], vectors=vectors)
    hits = await find(database, principal, "leave", vector=unit(1))
    by_text = {hit.text: hit.scores for hit in hits}
    assert by_text["nothing"].bm25 is None
    assert by_text["nothing"].fused == 0
    best = max(scores.bm25 or 0 for scores in by_text.values())
    for scores in by_text.values():
        assert scores.vector is not None
        assert scores.fused == pytest.approx(0.5 * scores.vector + 0.5 * (scores.bm25 or 0) / best, abs=2e-3)
    assert [hit.rank for hit in hits] == [1, 2, 3]


async def test_the_list_that_is_surer_of_its_first_document_weighs_more(
    database: Database, tenant: Tenant, principal: Principal
) -> None:
    """Only one document holds the word, while the vectors hardly tell the first two apart: words get .9 at most."""
    await fill(database, tenant.id, "words.md", ["leave"], vectors=np.stack([unit(0.9, 0.1)]))
    await fill(database, tenant.id, "vectors.md", ["absence"], vectors=np.stack([unit(1)]))
    await fill(database, tenant.id, "neither.md", ["nothing"], vectors=np.stack([unit(0, 1)]))
    first, second, last = await find(database, principal, "leave", vector=unit(1))
    assert (first.text, second.text, last.text) == ("leave", "absence", "nothing")
    words_lead, vectors_lead = 1.0, 1 - (first.scores.vector or 0)
    weight = 1 - second.scores.fused
    assert weight == pytest.approx(0.5 + SURENESS * (words_lead - vectors_lead), abs=2e-3)
    assert weight > 0.85
    assert last.scores.fused == 0


async def test_across_languages_words_weigh_less(database: Database, tenant: Tenant, principal: Principal) -> None:
    """The Chinese chunk shares a code with the English question, the English one shares its meaning."""
    vectors = np.stack([unit(1), unit(0.2, 1), unit(0, 1)])
    await fill(database, tenant.id, "a.md", ["年假为二十五天", "请用表格 HR-12 申请休假", "其他"], vectors=vectors)
    question = "form HR-12 for annual leave"
    crossed = await find(database, principal, question, vector=unit(1))
    assert texts(crossed)[0] == "年假为二十五天"
    assert crossed[0].scores.fused == pytest.approx(0.85, abs=1e-3)
    assert crossed[1].scores.fused == pytest.approx(0.15 + 0.85 * (crossed[1].scores.vector or 0), abs=2e-3)
    same = await find(database, principal, "表格 HR-12 申请休假", vector=unit(1))
    assert same[0].text == "请用表格 HR-12 申请休假"


@pytest.mark.parametrize(
    ("mode", "expected"), [("vector", ["two", "one", "three"]), ("bm25", ["one"]), ("hybrid", ["one", "two", "three"])]
)
async def test_modes_use_their_list(
    database: Database, tenant: Tenant, principal: Principal, mode: search.Mode, expected: list[str]
) -> None:
    vectors = np.stack([unit(0.8, 0.6), unit(1), unit(0, 1)])
    await fill(database, tenant.id, "a.md", ["one", "two", "three"], vectors=vectors)
    assert texts(await find(database, principal, "one", vector=unit(1), mode=mode)) == expected


async def test_a_list_that_is_empty_leaves_its_weight_to_the_other(
    database: Database, tenant: Tenant, principal: Principal
) -> None:
    await fill(database, tenant.id, "a.md", ["one"])
    assert (await find(database, principal, "unheard", vector=unit(1)))[0].scores.fused == 1.0
    assert (await find(database, principal, "one"))[0].scores.fused == 1.0
    assert await find(database, principal, "what is it?") == []


async def test_nothing_is_found_where_nothing_is(database: Database, tenant: Tenant, principal: Principal) -> None:
    assert await find(database, principal, "leave", vector=unit(1)) == []


@pytest.mark.threat(55)
async def test_an_employee_finds_what_is_granted_to_him(
    database: Database, tenant: Tenant, principal: Principal, admin: Principal
) -> None:
    """Rights are part of the query: one readable passage among a thousand better ones is still found."""
    secret = await fill(
        database, tenant.id, "secret.md", ["bonus"] * 1000, collection="board", vectors=np.tile(unit(1), (1000, 1))
    )
    await collections.revoke(database, tenant.id, secret.collection_id, "everyone")
    await fill(database, tenant.id, "open.md", ["the bonus is paid in May"], vectors=np.stack([unit(0.1, 1)]))
    for mode in ("hybrid", "vector", "bm25"):
        found = await find(database, principal, "bonus", vector=unit(1), mode=mode)
        assert texts(found) == ["the bonus is paid in May"]
    assert {hit.collection for hit in await find(database, admin, "bonus", vector=unit(1))} == {"board"}
    await collections.grant(database, tenant.id, secret.collection_id, "group:staff")
    assert {hit.collection for hit in await find(database, principal, "bonus", vector=unit(1))} == {"board"}
    await collections.revoke(database, tenant.id, secret.collection_id, "group:staff")
    assert {hit.collection for hit in await find(database, principal, "bonus", vector=unit(1))} == {"handbook"}


async def test_named_collections_narrow_and_never_widen(
    database: Database, tenant: Tenant, principal: Principal
) -> None:
    await fill(database, tenant.id, "a.md", ["leave a"], collection="one")
    await fill(database, tenant.id, "b.md", ["leave b"], collection="two")
    hidden = await fill(database, tenant.id, "c.md", ["leave c"], collection="three")
    await collections.revoke(database, tenant.id, hidden.collection_id, "everyone")
    assert texts(await find(database, principal, "leave", filters=Filters(("two", "three")))) == ["leave b"]
    assert await find(database, principal, "leave", filters=Filters(())) == []
    assert len(await find(database, principal, "leave", filters=Filters(None))) == 2


async def test_only_what_is_in_force_is_found(database: Database, tenant: Tenant, principal: Principal) -> None:
    await fill(database, tenant.id, "old.md", ["leave 20"], effective_to=date(2024, 12, 31))
    await fill(
        database, tenant.id, "now.md", ["leave 25"], effective_from=date(2025, 1, 1), effective_to=date(2099, 12, 31)
    )
    await fill(database, tenant.id, "next.md", ["leave 30"], effective_from=date(2100, 1, 1))
    assert texts(await find(database, principal, "leave")) == ["leave 25"]
    assert texts(await find(database, principal, "leave", filters=Filters(as_of=date(2024, 12, 31)))) == ["leave 20"]
    assert texts(await find(database, principal, "leave", filters=Filters(as_of=date(2100, 1, 1)))) == ["leave 30"]


@pytest.mark.threat(48)
async def test_other_tenants_change_neither_hits_nor_scores(
    database: Database, tenant: Tenant, other_tenant: Tenant, principal: Principal
) -> None:
    vectors = random_units(10, seed=7)
    await fill(database, tenant.id, "a.md", [f"leave number {i}" for i in range(10)], vectors=vectors)
    before = await find(database, principal, "leave 3", vector=unit(1))
    for part in range(3):
        near = np.tile(unit(1), (500, 1))
        await fill(database, other_tenant.id, f"{part}.md", ["leave leave 3"] * 500, vectors=near)
    assert await find(database, principal, "leave 3", vector=unit(1)) == before
    assert len(before) == 10
    order = [int(i) for i in np.argsort(-(vectors @ unit(1)))]
    by_vector = await find(database, principal, "leave 3", vector=unit(1), mode="vector")
    assert [int(hit.text.split()[-1]) for hit in by_vector] == order


async def test_an_index_is_made_once_and_where_it_pays(database: Database, tenant: Tenant) -> None:
    await fill(database, tenant.id, "a.md", [f"text {i}" for i in range(30)])
    assert not await documents.ensure_index(database, tenant.id, threshold=100)
    assert await documents.ensure_index(database, tenant.id, threshold=30)
    assert not await documents.ensure_index(database, tenant.id, threshold=30)


async def test_an_index_is_made_for_as_many_chunks_as_there_are_numbers(database: Database, tenant: Tenant) -> None:
    await fill(database, tenant.id, "a.md", ["text"])
    async with database.transaction(tenant.id) as tx:
        await tx.connection.execute("UPDATE lex_stat SET n = 2147483647")
    assert await documents.ensure_index(database, tenant.id, threshold=1)


async def test_an_explanation_says_how_hits_were_found(
    database: Database, tenant: Tenant, principal: Principal, admin: Principal
) -> None:
    vectors = np.stack([unit(1), unit(1, 1), unit(0, 1)])
    texts = ["annual leave", "leave", "nothing"]
    await fill(database, tenant.id, "a.md", texts, title="T", headings=["H"], vectors=vectors)
    hidden = await fill(database, tenant.id, "b.md", ["leave leave"], collection="board")
    await collections.revoke(database, tenant.id, hidden.collection_id, "everyone")
    asked = {"embedder_id": EMBEDDER, "limit": 2, "also": ["nothing"]}
    found = await search.explain(database, principal, "What is annual leave?", unit(1), **asked)  # type: ignore[arg-type]
    hits = await search.search(database, principal, "What is annual leave?", unit(1), **asked)  # type: ignore[arg-type]
    assert list(found.hits) == hits
    assert [hit.text for hit in hits] == ["annual leave", "leave"]
    assert [one.rank for one in found.nearest] == [1, 2, 3]
    assert [one.matched for one in found.lexical] == [("annual", "leav", "annual leav"), ("noth",), ("leav",)]
    assert (found.lexical[0].title, found.lexical[0].heading_path) == ("T", ("H",))
    assert {term.text: term.chunks for term in found.terms} == {"annual": 1, "leav": 3, "annual leav": 1, "noth": 1}
    by_name = {term.text: term.weight for term in found.terms}
    assert by_name["leav"] < by_name["noth"] < by_name["annual"]
    assert (found.documents, found.chunks, found.exact) == (1, 3, True)
    assert 0 < found.words < 1
    first = found.hits[0].scores
    assert (first.by_vector, first.by_words) == (1.0, 1.0)
    assert first.fused == pytest.approx(found.words * first.by_words + (1 - found.words) * first.by_vector)
    by_words = await search.explain(database, admin, "leave", None, embedder_id=EMBEDDER)
    assert (by_words.documents, by_words.chunks, by_words.words, by_words.nearest) == (2, 4, 1.0, ())


async def test_documents_languages_and_types_narrow(database: Database, tenant: Tenant, principal: Principal) -> None:
    english = await fill(database, tenant.id, "a.md", ["leave HR-12"])
    await fill(database, tenant.id, "b.md", ["用表格 HR-12 申请休假"])
    for filters, wanted in (
        (Filters(documents=(english.id,)), ["leave HR-12"]), (Filters(documents=()), []),
        (Filters(languages=("zh",)), ["用表格 HR-12 申请休假"]), (Filters(languages=("en",)), ["leave HR-12"]),
        (Filters(media_types=("text/plain",)), []), (Filters(languages=("zh",), documents=(english.id,)), []),
    ):  # fmt: skip
        assert texts(await find(database, principal, "HR-12", vector=unit(1), filters=filters)) == wanted


@pytest.mark.threat(106)
async def test_vectors_of_another_model_are_not_compared(
    database: Database, tenant: Tenant, principal: Principal
) -> None:
    await fill(database, tenant.id, "a.md", ["one"])
    with pytest.raises(EmbeddingSetMismatch):
        await search.search(database, principal, "one", unit(1), embedder_id="another")
    with pytest.raises(EmbeddingSetMismatch):
        await search.search(database, principal, "one", np.ones(DIMENSION + 1, dtype=np.float32), embedder_id=EMBEDDER)
    assert texts(await search.search(database, principal, "one", None, embedder_id="another")) == ["one"]


async def test_a_hit_carries_its_section_and_document(database: Database, tenant: Tenant, principal: Principal) -> None:
    long = "word " * 200
    await fill(database, tenant.id, "a.md", ["before", "needle", "after", long, long], title="T", headings=["H", "I"])
    [hit] = await find(database, principal, "needle")
    assert hit.section_text == "before\nneedle\nafter\n" + long
    assert len(hit.section_text) <= SECTION_CHARACTERS
    assert (hit.title, hit.path, hit.heading_path, hit.collection) == ("T", "a.md", ("H", "I"), "handbook")


@pytest.mark.threat(53)
async def test_a_deleted_document_is_found_no_more(
    database: Database, tenant: Tenant, principal: Principal, admin: Principal
) -> None:
    document = await fill(database, tenant.id, "a.md", ["leave"])
    await tending.delete(database, admin, document.id)
    assert await find(database, principal, "leave", vector=unit(1)) == []


async def test_limit_cuts_the_list(database: Database, tenant: Tenant, principal: Principal) -> None:
    await fill(database, tenant.id, "a.md", [f"leave {i}" for i in range(150)])
    assert len(await find(database, principal, "leave", limit=3)) == 3
    assert len(await find(database, principal, "leave", limit=1000)) == DEPTH


async def test_the_operator_reads_everything_of_the_tenant(database: Database, tenant: Tenant) -> None:
    hidden = await fill(database, tenant.id, "a.md", ["leave"])
    await collections.revoke(database, tenant.id, hidden.collection_id, "everyone")
    assert texts(await find(database, users.operator(tenant.id), "leave")) == ["leave"]


@pytest.mark.parametrize(
    "odd", ["", " ", "'; DROP TABLE chunks; --", "{1:2}/3", "%s %(tenant)s", "\u202e🙂", "a" * 9000]
)
async def test_odd_questions_are_only_questions(
    database: Database, tenant: Tenant, principal: Principal, odd: str
) -> None:
    await fill(database, tenant.id, "a.md", ["leave"])
    assert texts(await find(database, principal, odd, vector=unit(1))) == ["leave"]
