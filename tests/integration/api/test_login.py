"""Logging in by cookie, and what a cookie alone may not do."""

from http.cookies import SimpleCookie

import httpx
import pytest

from api.throttle import PER_NAME
from storage import users
from tests.integration.api.conftest import PASSWORD, Site
from tests.integration.api.table import ROUTES, guard_of, name_of, send

CSRF = {"X-Intramuros": "1"}


async def _log_in(client: httpx.AsyncClient, name: str = "employee", password: str = PASSWORD) -> httpx.Response:
    return await client.post("/v1/login", json={"name": name, "password": password})


async def test_a_log_in_sets_a_cookie_that_scripts_and_other_sites_cannot_use(site: Site) -> None:
    async with site.client() as client:
        reply = await _log_in(client, "Employee")
        assert reply.json() == {"user": {"name": "employee", "role": "employee"}}
        (cookie,) = SimpleCookie(reply.headers["set-cookie"]).values()
        assert cookie.key == "intramuros_session"
        assert cookie["httponly"] is True
        assert cookie["samesite"] == "strict"
        assert (cookie["path"], cookie["domain"], int(cookie["max-age"])) == ("/", "", 12 * 3600)
        assert (await client.get("/v1/me")).json() == {"name": "employee", "role": "employee"}


async def test_each_log_in_has_a_token_of_its_own_whatever_was_sent(site: Site) -> None:
    async with site.client() as client:
        client.cookies.set("intramuros_session", f"im_{site.demo.tenant.id.hex}_{'A' * 43}")
        first = (await _log_in(client)).cookies["intramuros_session"]
        second = (await _log_in(client)).cookies["intramuros_session"]
    assert len({first, second, f"im_{site.demo.tenant.id.hex}_{'A' * 43}"}) == 3


@pytest.mark.parametrize(
    "body",
    [
        {"name": "employee", "password": "wrong password"},
        {"name": "nobody", "password": PASSWORD},
        {"name": "employee", "password": PASSWORD, "tenant": "nowhere"},
        {"name": "operator", "password": PASSWORD},
    ],
)
async def test_every_failure_reads_the_same(site: Site, body: dict[str, str]) -> None:
    async with site.client() as client:
        reply = await client.post("/v1/login", json=body)
    assert reply.status_code == 401
    assert reply.json()["detail"] == "The name or the password is not right."
    assert "set-cookie" not in reply.headers


async def test_the_tenant_decides_where_a_name_is_looked_up(site: Site) -> None:
    async with site.client() as client:
        await client.post("/v1/login", json={"name": "admin", "password": PASSWORD, "tenant": "other"})
        (open_document,) = [
            item for item in (await client.get("/v1/documents")).json()["documents"] if item["collection"] == "open"
        ]
    assert site.other.open
    assert open_document["id"] == str(site.other.open.id)


@pytest.mark.threat(105)
async def test_guessing_is_held_up_also_for_the_right_password(site: Site) -> None:
    async with site.client() as client:
        for _ in range(PER_NAME):
            assert (await _log_in(client, password="wrong password")).status_code == 401
        reply = await _log_in(client)
        assert (reply.status_code, reply.json()["code"]) == (429, "too_many_attempts")
        assert int(reply.headers["retry-after"]) > 0
        assert (await _log_in(client, "admin")).status_code == 200


async def test_a_cookie_changes_nothing_without_the_header(site: Site) -> None:
    async with site.client() as client:
        await _log_in(client, "admin")
        for route in ROUTES:
            if min(route.methods) != "GET" and guard_of(route) != "anyone":
                for headers in ({}, {"X-Intramuros": "0"}, {"Origin": "http://evil.example"}):
                    reply = await send(client, route, headers=headers)
                    assert (reply.status_code, reply.json()["code"]) == (403, "forbidden"), name_of(route)
        assert (await client.get("/v1/sessions")).status_code == 200
        assert (await client.post("/v1/sessions", json={}, headers=CSRF)).status_code == 201


async def test_a_form_of_another_site_cannot_log_in(site: Site) -> None:
    forged = f'{{"name": "employee", "password": "{PASSWORD}"}}'
    async with site.client() as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
            reply = await client.post("/v1/login", content=forged, headers={"content-type": kind})
            assert reply.status_code == 422
            assert "set-cookie" not in reply.headers


async def test_logging_out_ends_the_token_too(site: Site) -> None:
    async with site.client() as client:
        cookie = (await _log_in(client)).cookies["intramuros_session"]
        reply = await client.post("/v1/logout", headers=CSRF)
        assert reply.status_code == 204
        assert 'intramuros_session=""' in reply.headers["set-cookie"]
    async with site.client(cookie) as client:
        assert (await client.get("/v1/me")).status_code == 401
    async with site.client(site.demo.tokens["employee"]) as client:
        assert (await client.get("/v1/me")).status_code == 200


async def test_a_header_wins_over_a_cookie(site: Site) -> None:
    async with site.client(site.demo.tokens["admin"]) as client:
        await _log_in(client, "employee")
        assert (await client.get("/v1/me")).json()["name"] == "admin"
        assert (await client.post("/v1/sessions", json={})).status_code == 201


async def test_a_disabled_user_cannot_log_in(site: Site) -> None:
    principal = site.demo.principals["employee"]
    await users.set_disabled(site.runtime.db, principal.tenant_id, principal.user_id, True)
    async with site.client() as client:
        assert (await _log_in(client)).status_code == 401


async def test_secure_cookies_are_a_setting(site: Site) -> None:
    site.runtime.settings = site.runtime.settings.model_copy(update={"secure_cookies": True})
    async with site.client() as client:
        reply = await _log_in(client)
    assert "; Secure" in reply.headers["set-cookie"]
