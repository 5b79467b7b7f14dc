"""Bodies and addresses that no honest client sends: refused by status, on every route."""

import json
from itertools import product
from typing import Any

import pytest

from tests.integration.api.conftest import Site, answered, scripted
from tests.integration.api.table import BODIES, ROUTES, UPLOAD, name_of, send, takes_json

TAKING_JSON = [route for route in ROUTES if takes_json(route)]
# Speaks as others do, whose clients send much that says nothing to us: what it makes of that has a test of its own.
LENIENT = "POST /v1/chat/completions"
STRICT = [route for route in TAKING_JSON if name_of(route) != LENIENT]
# What other systems let a caller set about itself.
SELF_MADE = ("role", "tenant_id", "user_id", "owner_ids", "groups", "disabled", "id", "is_admin", "principal")
WRONG: list[Any] = [
    None,
    [],
    "text",
    7,
    True,
    {"": ""},
    {"name": {"$ne": None}, "query": {"$ne": None}, "question": {"$ne": None}, "title": {"$ne": None}, "value": "1"},
    {"name": "", "query": "", "question": "", "title": "", "value": 0},
    {"name": " \t", "query": " \n", "question": "\u3000", "title": " ", "value": 2},
    {"name": "x" * 101, "query": "x" * 4001, "question": "x" * 4001, "title": "x" * 201, "value": 10**30},
    {"question": "a", "session_id": "' OR 1=1 --"},
    {"question": "a", "session_id": 1},
    {"question": "a", "collections": "open"},
    {"question": "a", "collections": [None]},
    {"question": "a", "mode": "unlimited"},
    {"query": "a", "limit": 0},
    {"query": "a", "limit": 51},
    {"query": "a", "limit": True},
    {"name": "a", "grantees": ["nobody"]},
    {"value": 1.5},
    {"value": True},
    {"value": 1, "reason": "x" * 2001},
]

RAW = (b"", b"\x00", b"[" * 5000, b'{"a": "\\ud800"}', b'{"question": NaN}', b"\xff\xfe{}")


def test_the_table_of_bodies_is_complete() -> None:
    writing = {name_of(route) for route in ROUTES if {"POST", "PATCH", "PUT"} & route.methods}
    assert writing - set(BODIES) == {
        UPLOAD,
        "POST /v1/logout",
        "POST /v1/documents/{document_id}/retry",
        "POST /v1/sessions/{session_id}/cancel",
        "POST /v1/turns/{turn_id}/fork",
    }


async def test_bodies_of_the_wrong_shape(site: Site) -> None:
    assert site.demo.session
    ids = {"session_id": site.demo.session.id, "turn_id": site.demo.turn_id}
    kind = {"content-type": "application/json"}
    async with site.client(site.demo.tokens["admin"]) as client:
        for route, body in product(TAKING_JSON, WRONG):
            reply = await send(client, route, ids, json=body)
            assert reply.status_code == 422, (name_of(route), body, reply.text)
            assert reply.headers["content-type"] == "application/problem+json"
            assert "SELECT" not in reply.text
        for route, raw in product(TAKING_JSON, RAW):
            reply = await send(client, route, ids, content=raw, headers=kind)
            assert reply.status_code == 422, (name_of(route), raw)


@pytest.mark.threat(100, 113)
async def test_nobody_makes_themselves_somebody_else(site: Site) -> None:
    assert site.demo.session
    ids = {"session_id": site.demo.session.id, "turn_id": site.demo.turn_id}
    async with site.client(site.demo.tokens["employee"]) as client:
        for route, member in product(STRICT, SELF_MADE):
            reply = await send(client, route, ids, json={**BODIES[name_of(route)], member: "admin"})
            assert reply.status_code in (403, 404, 422), (name_of(route), member)
    async with site.client(site.demo.tokens["admin"]) as client:
        for route, member in product(STRICT, SELF_MADE):
            reply = await send(client, route, ids, json={**BODIES[name_of(route)], member: "admin"})
            assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request"), (name_of(route), member)


@pytest.mark.threat(113)
async def test_nobody_becomes_somebody_else_by_the_address(site: Site) -> None:
    query = {member: str(site.other.tenant.id) for member in SELF_MADE}
    assert site.other.open
    async with site.client(site.demo.tokens["employee"]) as client:
        for route in ROUTES:
            if name_of(route) != "POST /v1/logout":
                reply = await send(client, route, {"document_id": site.other.open.id}, params=query, json={})
                assert reply.status_code < 500, name_of(route)
                assert str(site.other.open.id) not in reply.text, name_of(route)


NOWHERE = (
    "/v1/documents/not-a-uuid",
    "/v1/documents/%00",
    "/v1/documents/..%2f..%2fetc%2fpasswd",
    "/v1/documents/{id}/passages/-1",
    "/v1/documents/{id}/passages/99999999999999999999",
    "/v1/documents/{id}/passages/1e3",
    "/v1/documents/{id}/pages/0.png",
    "/v1/documents/{id}/pages/9999999.png",
    "/v1/documents?collection=%00",
    "/v1/documents?collection=" + "x" * 101,
    "/v1/sessions/;DROP TABLE turns",
    "/static/../app.py",
    "/static/%2e%2e/app.py",
    "/static/..%2fapp.py",
    "/static//etc/passwd",
    "/nowhere",
    "/v1/",
    "/v1/documents/",
    "/docs",
    "/redoc",
    "/openapi.json",
)


async def test_addresses_that_lead_nowhere(site: Site) -> None:
    assert site.demo.open
    async with site.client(site.demo.tokens["admin"]) as client:
        for path in NOWHERE:
            reply = await client.get(path.format(id=site.demo.open.id))
            assert reply.status_code in (404, 422), path
            assert reply.headers["content-type"] == "application/problem+json", path


async def test_a_method_that_is_not_offered(site: Site) -> None:
    async with site.client(site.demo.tokens["admin"]) as client:
        reply = await client.put("/v1/documents")
    assert (reply.status_code, reply.json()["code"]) == (405, "method_not_allowed")
    assert "allow" in reply.headers


async def test_a_megabyte_is_enough(site: Site) -> None:
    async with site.client(site.demo.tokens["admin"]) as client:
        reply = await client.post("/v1/search", json={"query": "x" * 1_000_000})
    assert (reply.status_code, reply.json()["code"]) == (413, "request_too_large")


async def test_many_ranges_and_many_parts_are_bounded(site: Site) -> None:
    ranges = ",".join(f"{number}-{number}" for number in range(10_000))
    async with site.client(site.demo.tokens["admin"]) as client:
        many = await client.get("/static/page.css", headers={"range": f"bytes={ranges}"})
        whole = await client.get("/static/page.css")
        parts = [("file", (f"{number}.md", b"x")) for number in range(10_000)]
        reply = await client.post("/v1/documents", files=parts)
        fields = await client.post("/v1/documents", data={str(number): "x" for number in range(1000)}, files=parts[:1])
    assert len(many.content) <= 2 * len(whole.content)
    assert reply.status_code in (400, 413, 422)
    assert fields.status_code in (400, 413, 422)


@pytest.mark.threat(50)
async def test_an_error_inside_is_told_without_its_text(site: Site) -> None:
    async def broken(*_: Any) -> Any:
        raise RuntimeError("password=hunter2 in SELECT * FROM users")

    await site.runtime.close()
    site.runtime.open_embedder = broken
    async with site.client(site.demo.tokens["employee"]) as client:
        reply = await client.post("/v1/search", json={"query": "hotel"})
    assert (reply.status_code, reply.json()["code"]) == (500, "internal")
    assert "hunter2" not in reply.text
    assert reply.json()["trace"] == reply.headers["x-request-id"]


async def test_user_text_comes_back_as_json_only(site: Site) -> None:
    nasty = "<script>alert(1)</script>\u202e\r\nX-Evil: 1"
    assert site.demo.open
    site.agent.script = scripted(*answered(site.demo.open, site.demo.chunk_id))
    async with site.client(site.demo.tokens["employee"]) as client:
        reply = await client.post("/v1/sessions", json={"title": nasty})
        listed = await client.get("/v1/sessions")
    assert reply.status_code == 201
    assert "x-evil" not in listed.headers
    assert listed.headers["content-type"] == "application/json"
    assert json.loads(listed.text)["sessions"][0]["title"] == nasty
