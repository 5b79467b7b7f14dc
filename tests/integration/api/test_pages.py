"""The pages: nothing in them comes from elsewhere, and who is not logged in is sent to do so."""

import re
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import pytest

from api.passwords import hash_password
from core.records import Role
from storage import users
from tests.integration.api.conftest import PASSWORD, Site

ADMIN_PAGES = (
    "/documents",
    "/documents/00000000-0000-0000-0000-000000000000",
    "/quarantine",
    "/explain",
    "/synonyms",
    "/traces",
)
PAGES = ("/", "/login", "/approvals", *ADMIN_PAGES)


class Page(HTMLParser):
    """What a page loads and leads to, and what it does inline."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.inline: list[str] = []
        self._script = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "action", "poster") and value]
        self.inline += [name for name in attributes if name.startswith("on") or name == "style"]
        self._script = tag == "script" and "src" not in attributes and attributes.get("type") != "application/json"
        if self._script or tag == "style":
            self.inline.append(tag)


@pytest.mark.threat(35)
@pytest.mark.parametrize("language", ["en", "zh"])
async def test_pages_load_and_lead_to_our_own_server_only(site: Site, language: str) -> None:
    async with site.client(headers={"accept-language": language}) as client:
        await client.post("/v1/login", json={"name": "admin", "password": PASSWORD})
        for path in PAGES:
            reply = await client.get(path)
            assert reply.status_code == 200
            assert reply.headers["content-type"] == "text/html; charset=utf-8"
            page = Page(reply.text)
            assert page.addresses
            assert not page.inline
            for address in page.addresses:
                assert urlsplit(urljoin("http://site/", address)).netloc == "site"
                if address.startswith("/static/"):
                    loaded = await client.get(address)
                    assert loaded.status_code == 200
                    assert not re.search(r"(?:https?:)?//(?!www\.w3\.org)[a-z]+\.[a-z]", loaded.text)
            assert re.search(r'<html lang="(zh|en)', reply.text)[1] == language  # type: ignore[index]


async def test_who_is_not_logged_in_is_sent_to_log_in_and_back(site: Site) -> None:
    async with site.client() as client:
        assert (await client.get("/")).headers["location"] == "/login"
        reply = await client.get("/?document=7&passage=5")
    assert (reply.status_code, reply.headers["location"]) == (303, "/login?next=%2F%3Fdocument%3D7%26passage%3D5")


async def test_a_link_from_a_mail_finds_the_cookie_at_the_second_try(site: Site) -> None:
    async with site.client() as client:
        reply = await client.get("/?document=7&passage=5", headers={"sec-fetch-site": "cross-site"})
    assert reply.status_code == 200
    assert 'http-equiv="refresh"' in reply.text


async def test_documents_are_for_admins(site: Site) -> None:
    async with site.client(site.demo.tokens["employee"]) as client:
        replies = [await client.get(path) for path in ADMIN_PAGES]
        ask = await client.get("/")
    assert [(reply.status_code, reply.headers["location"]) for reply in replies] == [(303, "/")] * len(ADMIN_PAGES)
    assert 'href="/documents"' not in ask.text
    assert 'href="/explain"' not in ask.text


async def test_a_users_name_is_text(site: Site) -> None:

    nasty = '<img src=x onerror=alert(1)>"'
    await users.create(site.runtime.db, site.demo.tenant.id, nasty, hash_password(PASSWORD), Role.ADMIN)
    async with site.client() as client:
        await client.post("/v1/login", json={"name": nasty, "password": PASSWORD})
        reply = await client.get("/")
    assert "<img src=x" not in reply.text
    assert "&lt;img src=x" in reply.text


async def test_static_files_have_fixed_types(site: Site) -> None:
    types = {"page.css": "text/css", "ask.js": "text/javascript", "icon.svg": "image/svg+xml"}
    async with site.client() as client:
        for name, kind in types.items():
            reply = await client.get(f"/static/{name}")
            assert reply.headers["content-type"].startswith(kind)
            assert reply.headers["x-content-type-options"] == "nosniff"
