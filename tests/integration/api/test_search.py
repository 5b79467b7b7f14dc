"""Searches narrowed and explained, and the synonyms they look for: for whom, and what is told."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from tests.integration.api.conftest import Site


async def test_an_explanation_tells_how_the_hits_came_about(site: Site) -> None:
    async with site.client(site.demo.tokens["admin"]) as client:
        await client.post("/v1/synonyms", json={"words": ["lodgings", "hotel"]})
        body = {"query": "What does the lodging cost?", "limit": 3, "rerank": False}
        found = (await client.post("/v1/search/explain", json=body)).json()
        hits = (await client.post("/v1/search", json=body)).json()["hits"]
    assert found["synonyms"] == {"lodgings": ["hotel"]}
    wide = {"collections": None, "documents": None, "languages": None, "media_types": None}
    assert found["filters"] == {**wide, "as_of": datetime.now(UTC).date().isoformat()}
    terms = {term["text"]: term for term in found["terms"]}
    assert terms["hotel"]["added"]
    assert not terms["lodg"]["added"]
    assert terms["hotel"]["counts"] < terms["lodg"]["counts"] == 1
    for term in found["terms"]:
        assert term["weight"] == pytest.approx(term["counts"] * term["idf"])
    assert found["documents"] == 2
    assert found["chunks"] >= len(found["hits"]) > 0
    assert [hit["hit"] for hit in found["hits"]] == hits
    best = found["lexical"][0]
    assert "hotel" in best["matched"]
    assert found["nearest"]
    marked = next(hit for hit in found["hits"] if hit["lexical_rank"] == 1)
    assert any(piece["matched"] and piece["text"].lower().startswith("hotel") for piece in marked["passage"])
    assert "".join(piece["text"] for piece in marked["passage"]) == marked["hit"]["text"]


async def test_an_explanation_is_of_ones_own_tenant(site: Site) -> None:
    async with site.client(site.other.tokens["admin"]) as client:
        await client.post("/v1/synonyms", json={"words": ["lodging", "hotel"]})
        theirs = (await client.get("/v1/synonyms")).json()["synonyms"]
    async with site.client(site.demo.tokens["admin"]) as client:
        found = (await client.post("/v1/search/explain", json={"query": "lodging"})).json()
        mine = (await client.get("/v1/synonyms")).json()["synonyms"]
        gone = await client.delete(f"/v1/synonyms/{theirs[0]['id']}")
    assert (found["synonyms"], mine, gone.status_code) == ({}, [], 404)
    assert site.demo.open
    assert site.demo.closed
    own = {str(site.demo.open.id), str(site.demo.closed.id)}
    assert {listed["document_id"] for listed in (*found["nearest"], *found["lexical"])} <= own


async def test_a_search_as_a_group_has_the_rights_of_that_group_only(site: Site) -> None:
    async with site.client(site.demo.tokens["admin"]) as client:
        await client.post("/v1/collections", json={"name": "board", "grantees": ["group:board"]})
        for group, documents in ((None, 2), ("board", 1), ("strangers", 1)):
            body = {"query": "hotel", **({"as_group": group} if group else {})}
            found = (await client.post("/v1/search/explain", json=body)).json()
            assert found["documents"] == documents, group
            if group:
                assert {hit["hit"]["collection"] for hit in found["hits"]} == {"open"}
        assert (await client.post("/v1/search", json={"query": "hotel", "as_group": "board"})).status_code == 422


async def test_a_search_is_narrowed(site: Site) -> None:
    assert site.demo.open
    here = {"documents": [str(site.demo.open.id)], "languages": ["en"], "media_types": ["text/markdown"]}
    async with site.client(site.demo.tokens["admin"]) as client:

        async def found(**filters: object) -> set[str]:
            reply = await client.post("/v1/search", json={"query": "hotel", **filters})
            return {hit["document_id"] for hit in reply.json()["hits"]}

        assert len(await found()) == 2
        assert await found(**here) == {str(site.demo.open.id)}
        body = {"query": "hotel", "as_of": "2020-02-29", **here}
        explained = (await client.post("/v1/search/explain", json=body)).json()
        assert explained["filters"] == {"collections": None, "as_of": "2020-02-29", **here}
        narrow: tuple[dict[str, object], ...] = (
            {"documents": [str(uuid4())]},
            {"languages": ["zh"]},
            {"media_types": ["application/pdf"]},
            {"collections": []},
            {"as_of": "1990-01-01", "documents": []},
        )
        for nothing in narrow:
            assert await found(**nothing) == set(), nothing
        for wrong in ({"languages": ["fr"]}, {"documents": ["x"]}, {"documents": here["documents"] * 101}):
            assert (await client.post("/v1/search", json={"query": "hotel", **wrong})).status_code == 422


async def test_a_foreign_document_is_not_found_by_naming_it(site: Site) -> None:
    assert site.demo.closed
    for token in (site.demo.tokens["employee"], site.other.tokens["admin"]):
        async with site.client(token) as client:
            reply = await client.post("/v1/search", json={"query": "hotel", "documents": [str(site.demo.closed.id)]})
            assert reply.json()["hits"] == []


async def test_synonyms_are_added_and_removed(site: Site) -> None:
    async with site.client(site.demo.tokens["admin"]) as client:
        made = await client.post("/v1/synonyms", json={"words": [" gear ", "kit", "equipment"]})
        assert (made.status_code, made.json()["words"]) == (201, ["equipment", "gear", "kit"])
        one = f"/v1/synonyms/{made.json()['id']}"
        assert (await client.delete(one, params={"word": "kit"})).status_code == 204
        assert (await client.delete(one, params={"word": "kit"})).status_code == 404
        assert (await client.get("/v1/synonyms")).json()["synonyms"][0]["words"] == ["equipment", "gear"]
        assert (await client.delete(one)).status_code == 204
        for words in (["gear"], ["gear", "the"], ["gear", "x" * 81], ["gear", ""], [f"w{n}" for n in range(21)]):
            assert (await client.post("/v1/synonyms", json={"words": words})).status_code == 422, words
        assert (await client.get("/v1/synonyms")).json()["synonyms"] == []
