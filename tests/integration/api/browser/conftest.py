"""A real browser before the real application, logged in; nothing is ever fetched from elsewhere."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import uvicorn
from playwright.async_api import Browser, Page, Route, async_playwright, expect

from core.records import Answered, Event, Outcome, Refused, Source, Status, Token
from core.settings import Settings
from storage import search, users
from tests.integration.api.conftest import PASSWORD, Site
from tests.integration.api.samples import answer_about

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MARKS = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: apt install chromium)"),
]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """With a worker inside the server, as an organisation runs it."""
    return Settings.load(home=tmp_path / "home", cache=tmp_path / "cache", max_file_mb=1)


@pytest.fixture
async def address(site: Site) -> AsyncIterator[str]:
    """The application on a free port, in this event loop, with a scripted agent."""
    site.agent.script = lambda question: _play(site, question)
    server = uvicorn.Server(uvicorn.Config(site.app, port=0, lifespan="off", log_level="error", ws="none"))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 uvicorn tells it by this attribute alone
        await asyncio.sleep(0)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    await serving


async def _play(site: Site, question: str) -> AsyncIterator[Event]:
    document = site.demo.open
    assert document is not None
    yield Status("searching", "Searching the documents")
    hits = await search.search(
        site.runtime.db, users.operator(site.demo.tenant.id), question, None, embedder_id="none", mode="bm25"
    )
    for hit in hits[:2]:
        yield Source(hit)
    answer = replace(answer_about(document, site.demo.chunk_id), question=question, standalone_question=question)
    if "Munich" not in question:
        refusal = "I could not find this in the documents."
        yield Refused(replace(answer, outcome=Outcome.REFUSED, answer=refusal, citations=(), nearest=tuple(hits[:2])))
        return
    yield Token(answer.answer)
    yield Answered(answer)


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    # A machine that does other things besides is slow, which is no fault of the page.
    expect.set_options(timeout=30_000)
    async with async_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
        # The browser asks for its maker's names of its own accord, whatever page it shows.
        options.append("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
        launched = await playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield launched
        await launched.close()


@pytest.fixture
def meant() -> list[str]:
    """Words of the faults that a test brings about on purpose; a browser may tell of them late."""
    return []


@pytest.fixture
async def page(browser: Browser, address: str, meant: list[str]) -> AsyncIterator[Page]:
    """A page that is logged in as the administrator; requests to anywhere else and script errors fail the test."""
    faults: list[str] = []
    context = await browser.new_context(base_url=address, locale="en-GB")

    async def only_ours(route: Route) -> None:
        if route.request.url.startswith((address, "data:")):
            await route.continue_()
        else:
            faults.append(f"left the server: {route.request.url}")
            await route.abort()

    await context.route("**/*", only_ours)
    opened = await context.new_page()
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
    await log_in(opened)
    yield opened
    await context.close()
    assert [fault for fault in faults if not any(words in fault for words in meant)] == []


async def looked_at(page: Page, name: str) -> None:
    """In both themes: a picture of the page where SHOTS names a folder, and nothing that axe-core finds where AXE names
    its file.
    """
    axe = os.environ.get("AXE")
    if axe:
        await page.evaluate(await asyncio.to_thread(Path(axe).read_text, encoding="utf-8"))
    for scheme in ("dark", "light"):
        await page.emulate_media(color_scheme=scheme)
        if folder := os.environ.get("SHOTS"):
            await page.screenshot(path=Path(folder) / f"{name}-{scheme}.png", full_page=True)
        if axe:
            found = await page.evaluate("axe.run()")
            faults = [(fault["id"], [one["html"] for one in fault["nodes"]]) for fault in found["violations"]]
            assert faults == [], (name, scheme)


async def log_in(page: Page, name: str = "admin") -> None:
    await page.goto("/")
    await expect(page.get_by_label("User name")).to_be_focused()
    await page.keyboard.type(name)
    await page.keyboard.press("Tab")
    await page.keyboard.type(PASSWORD)
    await page.get_by_label("Organisation").fill("demo")
    await page.keyboard.press("Enter")
    # What a script fills in: from here on the page's scripts listen.
    await expect(page.locator("#overview")).to_contain_text("documents")
