"""Who may do what: every route, without a token, with a wrong one, and with the wrong role."""

from datetime import timedelta

import pytest

from api import auth
from storage import runs, synonyms, users
from tests.integration.api.conftest import Site, answered, scripted
from tests.integration.api.table import ENDLESS, ROUTES, guard_of, name_of, send

GUARDED = [route for route in ROUTES if guard_of(route) != "anyone"]
ADMIN = [route for route in ROUTES if guard_of(route) == "admin"]


def test_the_matrix_is_not_empty() -> None:
    assert len(GUARDED) > 15
    assert {name_of(route) for route in ADMIN} == {
        "POST /v1/collections",
        "PATCH /v1/collections/{collection_id}",
        "PUT /v1/collections/{collection_id}/approval",
        "GET /v1/runs",
        "POST /v1/documents",
        "DELETE /v1/documents/{document_id}",
        "PATCH /v1/documents/{document_id}",
        "GET /v1/documents/{document_id}/deletion",
        "POST /v1/documents/{document_id}/retry",
        "POST /v1/documents/{document_id}/release",
        "GET /v1/quarantine",
        "POST /v1/search/explain",
        "GET /v1/models-in-use",
        "GET /v1/embedding-sets",
        "GET /v1/synonyms",
        "POST /v1/synonyms",
        "DELETE /v1/synonyms/{synonym_id}",
        "GET /v1/documents/events",
    }


@pytest.mark.threat(114)
async def test_without_a_token_nothing_is_to_be_had(site: Site) -> None:
    async with site.client() as client:
        for route in GUARDED:
            reply = await send(client, route)
            assert (reply.status_code, reply.json()["code"]) == (401, "unauthenticated"), name_of(route)
            assert reply.headers["www-authenticate"] == "Bearer"


async def test_with_a_bad_token_nothing_is_to_be_had(site: Site) -> None:
    good = site.demo.tokens["admin"]
    _, tenant, secret = good.split("_", 2)
    expired = await auth.issue(site.runtime.db, site.demo.principals["admin"], "old", "api", timedelta(seconds=-1))
    bad = [
        f"im_{site.other.tenant.id.hex}_{secret}",
        f"im_{'0' * 32}_{secret}",
        f"im_{tenant}_{secret[:-1]}",
        f"im_{tenant}_{secret}x",
        f"im_{tenant}_{'A' * 43}",
        f"{good}\x00",
        good.upper(),
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
        "' OR 1=1 --",
        expired,
    ]
    for token in bad:
        async with site.client() as client:
            client.headers["Authorization"] = f"Bearer {token}"
            reply = await client.get("/v1/me")
            assert (reply.status_code, reply.json()["code"]) == (401, "unauthenticated"), token
    async with site.client() as client:
        client.headers["Authorization"] = f"Basic {good}"
        assert (await client.get("/v1/me")).status_code == 401


async def test_an_employee_is_no_admin(site: Site) -> None:
    ids = {"document_id": site.demo.open.id if site.demo.open else None}
    async with site.client(site.demo.tokens["employee"]) as client:
        for route in ADMIN:
            reply = await send(client, route, ids)
            assert (reply.status_code, reply.json()["code"]) == (403, "forbidden"), name_of(route)
        assert len((await client.get("/v1/documents")).json()["documents"]) == 1


@pytest.mark.threat(99)
async def test_a_disabled_user_is_out_at_once(site: Site) -> None:
    principal = site.demo.principals["employee"]
    async with site.client(site.demo.tokens["employee"]) as client:
        assert (await client.get("/v1/me")).json() == {"name": "employee", "role": "employee"}
        await users.set_disabled(site.runtime.db, principal.tenant_id, principal.user_id, True)
        for route in GUARDED:
            assert (await send(client, route)).status_code == 401, name_of(route)


async def test_the_guard_comes_before_the_body(site: Site) -> None:
    async with site.client() as client:
        for route in GUARDED:
            if "POST" in route.methods or "PATCH" in route.methods:
                reply = await send(
                    client, route, content=b'{"unknown": 1}', headers={"content-type": "application/json"}
                )
                assert reply.status_code == 401, name_of(route)


async def test_an_admin_passes_every_guard(site: Site) -> None:
    demo = site.demo
    assert demo.open
    assert demo.session
    site.agent.script = scripted(*answered(demo.open, demo.chunk_id))
    ids = {
        "document_id": demo.open.id,
        "session_id": demo.session.id,
        "turn_id": demo.turn_id,
        "chunk_id": demo.chunk_id,
        "synonym_id": (await synonyms.add(site.runtime.db, demo.tenant.id, ["cap", "limit"])).id,
        "collection_id": demo.open.collection_id,
        "run_id": await runs.begin(
            site.runtime.db, demo.principals["employee"], None, "hotel?", "auto", checkpointed=False
        ),
    }
    # A Markdown file has no page to show, nobody is called `nobody`, and no answer waits.
    expected = {
        "GET /v1/documents/{document_id}/pages/{number}.png": 404,
        "POST /v1/login": 401,
        "POST /v1/approvals/{turn_id}": 404,
    }
    # What deletes, and logging out, comes last.
    finite = [route for route in ROUTES if name_of(route) not in ENDLESS]
    order = sorted(finite, key=lambda route: (route.path == "/v1/logout", "DELETE" in route.methods))
    async with site.client(demo.tokens["admin"]) as client:
        for route in order:
            reply = await send(client, route, ids)
            status = expected.get(name_of(route))
            assert reply.status_code == status if status else reply.is_success, (name_of(route), reply.text)
