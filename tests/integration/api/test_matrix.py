"""Every operation that the interface describes, with ids of others: told apart from ids that nobody has by nothing.

Made from the OpenAPI description, so that a new route is in it. What is compared is status, headers, body and the
statements that ran in the database: where they are the same there is nothing whose time could differ.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from api import auth
from core.logs import trace_id
from core.records import Role
from storage import audit, runs, sessions, synonyms, users
from tests.integration.api.conftest import Side, Site
from tests.integration.api.samples import answer_about
from tests.integration.api.table import ROUTES, guard_of, name_of, send

BY_NAME = {name_of(route): route for route in ROUTES}
# Members of bodies that are ids, with a body that names one; what is found by such an id is told by an empty list.
IN_BODIES: Mapping[tuple[str, str], Any] = {
    ("POST /v1/ask", "session_id"): None,  # the agent's own tests: here an agent is played
    ("POST /v1/search", "documents"): lambda one: {"query": "hotel", "documents": [str(one)]},
    ("POST /v1/search/explain", "documents"): lambda one: {"query": "hotel", "documents": [str(one)]},
}
# Statements that go out together hold their values.
VALUES = re.compile(r"'[^']*'|\b\d+\b")
# Says how often the pool looked whether a connection lives, which depends on the time since its last use.
POOLS_OWN = re.compile(r"^$|SELECT 1|RESET ALL|^BEGIN|^COMMIT|^ROLLBACK")


def operations(app: Any) -> dict[str, dict[str, Any]]:
    """`METHOD /path` -> operation."""
    paths = app.openapi()["paths"]
    return {f"{method.upper()} {path}": said for path, methods in paths.items() for method, said in methods.items()}


def ids_in_bodies(app: Any) -> set[tuple[str, str]]:
    """(operation, member) of each member of a JSON body that is a UUID or a list of them."""
    described, found = app.openapi(), set()
    for name, operation in operations(app).items():
        schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        body = described["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], {})
        found |= {(name, key) for key, value in body.get("properties", {}).items() if "'uuid'" in str(value)}
    return found


@contextmanager
def statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The statements that requests run while inside, without their values."""
    ran: list[str] = []
    execute = psycopg.AsyncCursor.execute

    async def counting(self: Any, query: Any, *args: Any, **options: Any) -> Any:
        text = query if isinstance(query, str) else repr(query)
        if trace_id() != "-" and not POOLS_OWN.search(text):
            ran.append(VALUES.sub("?", text))
        return await execute(self, query, *args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(psycopg.AsyncCursor, "execute", counting)
        yield ran


def _told(reply: httpx.Response, asked: object = None) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, body and headers; the id that was asked with may come back, whosever it is."""
    shown = json.loads(reply.text.replace(str(asked), "asked") if asked else reply.text)
    body = {key: value for key, value in shown.items() if key != "trace"}
    headers = {key: value for key, value in reply.headers.items() if key != "x-request-id"}
    return reply.status_code, body, headers


async def _ids(site: Site, side: Side, owner: str) -> dict[str, object]:
    """Ids of what belongs to a user of this side and, where it has an owner of no kind, of what is closed."""
    assert side.closed
    principal = side.principals[owner]
    session = await sessions.create(site.runtime.db, principal, "Hotels")
    turn = await sessions.add_turn(site.runtime.db, principal, session.id, answer_about(side.closed, side.chunk_id))
    group = await synonyms.add(site.runtime.db, side.tenant.id, ["hotel", "lodging"])
    return {
        "document_id": side.closed.id,
        "session_id": session.id,
        "turn_id": turn.id,
        "synonym_id": group.id,
        "collection_id": side.closed.collection_id,
        "run_id": await runs.begin(site.runtime.db, principal, session.id, "hotel?", "auto", checkpointed=False),
        "chunk_id": side.chunk_id,
    }


async def _disabled(site: Site) -> str:
    principal = await users.create(site.runtime.db, site.demo.tenant.id, "gone", "$hash", Role.ADMIN)
    token = await auth.issue(site.runtime.db, principal, "test", "api", None)
    await users.set_disabled(site.runtime.db, principal.tenant_id, principal.user_id, True)
    return token


async def askers(site: Site) -> dict[str, tuple[str | None, dict[str, object]]]:
    """Who asks, and ids of what is not theirs."""
    demo, other = site.demo, site.other
    foreign = await _ids(site, other, "admin")
    of_admin, of_employee = await _ids(site, demo, "admin"), await _ids(site, demo, "employee")
    private = {name: of_employee[name] for name in ("session_id", "turn_id")}
    return {
        "nobody": (None, of_admin),
        "disabled": (await _disabled(site), of_admin),
        "employee, another tenant's": (demo.tokens["employee"], foreign),
        "admin, another tenant's": (demo.tokens["admin"], foreign),
        "employee, an admin's": (demo.tokens["employee"], of_admin),
        "admin, an employee's": (demo.tokens["admin"], private),
    }


def expected(asker: str, name: str) -> int:
    guard = guard_of(BY_NAME[name])
    if asker in ("nobody", "disabled"):
        return 401
    return 403 if guard == "admin" and asker.startswith("employee") else 404


@pytest.mark.threat(44, 51, 54)
async def test_ids_of_others_are_ids_that_nobody_has(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    everybody, asked = await askers(site), 0
    with_ids = [name for name in operations(site.app) if "_id}" in name]
    assert len(with_ids) > 15
    for asker, (token, ids) in everybody.items():
        async with site.client(token) as client:
            for name in with_ids:
                wanted = set(re.findall(r"\{(\w+)\}", name))
                if not any(one in ids for one in wanted if one != "chunk_id"):
                    continue
                missing = {one: 2_000_000_000 if one == "chunk_id" else uuid4() for one in ids}
                with statements(monkeypatch) as for_theirs:
                    theirs = await send(client, BY_NAME[name], ids)
                with statements(monkeypatch) as for_nobodys:
                    nobodys = await send(client, BY_NAME[name], missing)
                assert theirs.status_code == expected(asker, name), (asker, name, theirs.text)
                assert _told(theirs) == _told(nobodys), (asker, name)
                assert for_theirs == for_nobodys, (asker, name)
                assert for_theirs or token is None, (asker, name)
                asked += 1
    assert asked > 80


@pytest.mark.threat(44)
async def test_a_passage_of_another_document_is_no_passage_of_ones_own(site: Site) -> None:
    assert site.demo.open
    route = BY_NAME["GET /v1/documents/{document_id}/passages/{chunk_id}"]
    async with site.client(site.demo.tokens["admin"]) as client:
        closed = (await client.get(f"/v1/documents/{site.demo.closed.id}/chunks")).json()["chunks"]  # type: ignore[union-attr]
    async with site.client(site.demo.tokens["employee"]) as client:
        for chunk in closed:
            theirs = await send(client, route, {"document_id": site.demo.open.id, "chunk_id": chunk["id"]})
            nobodys = await send(client, route, {"document_id": site.demo.open.id, "chunk_id": 2_000_000_000})
            assert (theirs.status_code, _told(theirs)) == (404, _told(nobodys))


@pytest.mark.threat(44, 113)
async def test_ids_in_bodies_reach_no_further(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ids_in_bodies(site.app) == set(IN_BODIES)
    assert site.other.open
    assert site.demo.closed
    for (name, _), body in IN_BODIES.items():
        for user, one in (("admin", site.other.open.id), ("employee", site.demo.closed.id)):
            if body is None or (user == "employee" and guard_of(BY_NAME[name]) == "admin"):
                continue
            async with site.client(site.demo.tokens[user]) as client:
                await send(client, BY_NAME[name], json=body(uuid4()))  # the first opens the models
                with statements(monkeypatch) as for_theirs:
                    theirs = await send(client, BY_NAME[name], json=body(one))
                nobody = uuid4()
                with statements(monkeypatch) as for_nobodys:
                    nobodys = await send(client, BY_NAME[name], json=body(nobody))
            assert theirs.json()["hits"] == []
            assert _told(theirs, one) == _told(nobodys, nobody), name
            assert for_theirs == for_nobodys, name


@pytest.mark.threat(101, 103)
async def test_what_is_refused_is_noted_once(site: Site) -> None:
    async with site.client(site.demo.tokens["employee"]) as client:
        reply = await client.get("/v1/quarantine")
    entry = (await audit.listing(site.runtime.db, site.demo.tenant.id, 1))[0]
    assert (entry.action, entry.subject) == ("access.refused", "GET /v1/quarantine")
    assert (entry.actor, entry.trace) == (site.demo.principals["employee"].user_id, reply.headers["x-request-id"])
    async with site.client() as client:
        for tenant, chain in (("demo", site.demo.tenant.id), ("nowhere", audit.INSTALLATION)):
            await client.post("/v1/login", json={"tenant": tenant, "name": "admin", "password": "wrong"})
            entry = (await audit.listing(site.runtime.db, chain, 1))[0]
            assert (entry.action, entry.subject) == ("login.failed", "")
            assert entry.actor == (site.demo.principals["admin"].user_id if tenant == "demo" else None)
