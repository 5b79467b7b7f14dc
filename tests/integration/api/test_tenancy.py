"""What one may not see does not exist: every route with an id, for strangers of every kind."""

from typing import Any
from uuid import uuid4

import pytest

from core.records import Failed
from storage import runs, synonyms
from tests.integration.api.conftest import Side, Site, scripted
from tests.integration.api.table import ROUTES, guard_of, name_of, send

# The pages hold no data.
WITH_IDS = [route for route in ROUTES if "{" in route.path and route.path.startswith("/v1/")]


async def _ids(site: Site, side: Side) -> dict[str, object]:
    assert side.closed
    assert side.session
    return {
        "synonym_id": (await synonyms.add(site.runtime.db, side.tenant.id, ["hotel", "lodging"])).id,
        "document_id": side.closed.id,
        "collection_id": side.closed.collection_id,
        "run_id": await runs.begin(
            site.runtime.db, side.principals["admin"], side.session.id, "hotel?", "auto", checkpointed=False
        ),
        "session_id": side.session.id,
        "turn_id": side.turn_id,
        "chunk_id": side.chunk_id,
        "number": 1,
    }


def _body(reply: Any) -> dict[str, Any]:
    return {key: value for key, value in reply.json().items() if key != "trace"}


def test_the_table_is_covered() -> None:
    assert len(WITH_IDS) >= 9


@pytest.mark.threat(44)
async def test_foreign_ids_look_like_ids_that_nobody_has(site: Site) -> None:
    foreigns = await _ids(site, site.demo)
    nobodys = {**{name: uuid4() for name in foreigns}, "chunk_id": 2_000_000_000, "number": 1}
    for token in (site.other.tokens["admin"], site.other.tokens["employee"], site.demo.tokens["employee"]):
        async with site.client(token) as client:
            for route in WITH_IDS:
                foreign, missing = await send(client, route, foreigns), await send(client, route, nobodys)
                assert _body(foreign) == _body(missing), name_of(route)
                assert foreign.headers["content-length"] == missing.headers["content-length"], name_of(route)
                employee = token != site.other.tokens["admin"]
                status = 403 if employee and guard_of(route) == "admin" else 404
                assert (foreign.status_code, missing.status_code) == (status, status), name_of(route)


@pytest.mark.threat(44, 45)
async def test_nothing_was_changed_by_strangers(site: Site) -> None:
    assert site.demo.session
    ids = await _ids(site, site.demo)
    async with site.client(site.other.tokens["admin"]) as client:
        for route in WITH_IDS:
            await send(client, route, ids)
    async with site.client(site.demo.tokens["admin"]) as client:
        documents = (await client.get("/v1/documents")).json()["documents"]
        session = (await client.get(f"/v1/sessions/{site.demo.session.id}")).json()
        groups = (await client.get("/v1/synonyms")).json()["synonyms"]
    assert len(documents) == 2
    assert groups == [{"id": str(ids["synonym_id"]), "words": ["hotel", "lodging"]}]
    assert session["session"]["title"] == "Hotels"
    assert session["turns"][0]["feedback"] is None


async def test_lists_and_searches_hold_ones_own_only(site: Site) -> None:
    seen: dict[str, Any] = {}
    for side in (site.demo, site.other):
        for name, token in side.tokens.items():
            async with site.client(token) as client:
                documents = (await client.get("/v1/documents")).json()["documents"]
                hits = (await client.post("/v1/search", json={"query": "hotel caps in Munich"})).json()["hits"]
                overview = (await client.get("/v1/overview")).json()
                sessions = (await client.get("/v1/sessions")).json()["sessions"]
            seen[f"{side.tenant.slug} {name}"] = (
                {item["id"] for item in documents} | {hit["document_id"] for hit in hits},
                [collection["name"] for collection in overview["collections"]],
                overview["documents"],
                len(sessions),
            )
    for side in (site.demo, site.other):
        assert side.open
        assert side.closed
        both = {str(side.open.id), str(side.closed.id)}
        assert seen[f"{side.tenant.slug} admin"] == (both, ["closed", "open"], 2, 1)
        assert seen[f"{side.tenant.slug} employee"] == ({str(side.open.id)}, ["open"], 1, 0)


async def test_naming_a_foreign_collection_widens_nothing(site: Site) -> None:
    async with site.client(site.demo.tokens["employee"]) as client:
        reply = await client.post("/v1/search", json={"query": "hotel", "collections": ["closed"]})
        listed = await client.get("/v1/documents", params={"collection": "closed"})
    assert reply.json()["hits"] == []
    assert listed.json()["documents"] == []


async def test_a_question_in_a_foreign_session_is_refused_by_status(site: Site) -> None:
    assert site.demo.session
    site.agent.script = scripted(Failed("not_found", "There is no such thing, or you may not see it."))
    async with site.client(site.other.tokens["admin"]) as client:
        for accept in ("application/json", "text/event-stream"):
            reply = await client.post(
                "/v1/ask",
                json={"question": "hotel?", "session_id": str(site.demo.session.id)},
                headers={"accept": accept},
            )
            assert (reply.status_code, reply.json()["code"]) == (404, "not_found")
