"""The page in a real browser: log in, ask, open a citation, upload; nothing is ever fetched from elsewhere."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import uvicorn
from playwright.async_api import Browser, Page, Route, async_playwright, expect

from core.records import Answered, Event, Outcome, Refused, Source, Status, Token
from storage import search, users
from tests.integration.api.conftest import PASSWORD, Site
from tests.integration.api.samples import POLICY, answer_about

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUESTION = "What may a hotel in Munich cost?"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: apt install chromium)"),
]


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
    async with async_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
        launched = await playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield launched
        await launched.close()


@pytest.fixture
async def page(browser: Browser, address: str) -> AsyncIterator[Page]:
    """A page that is logged in as the administrator; requests to anywhere else and script errors fail the test."""
    context = await browser.new_context(base_url=address, locale="en-GB")
    faults: list[str] = []

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
    assert faults == []


async def log_in(page: Page) -> None:
    await page.goto("/")
    await expect(page.get_by_label("User name")).to_be_focused()
    await page.keyboard.type("admin")
    await page.keyboard.press("Tab")
    await page.keyboard.type(PASSWORD)
    await page.get_by_label("Organisation").fill("demo")
    await page.keyboard.press("Enter")
    # What a script fills in: from here on the page's scripts listen.
    await expect(page.locator("#overview")).to_contain_text("documents")


async def ask(page: Page, question: str) -> None:
    await page.get_by_label("Your question").fill(question)
    await page.get_by_label("Your question").press("Enter")


async def test_ask_and_open_a_citation_by_keyboard(page: Page) -> None:
    await ask(page, QUESTION)
    answer = page.locator(".answer")
    await expect(answer).to_contain_text("at most 180 euros a night")
    mark = page.get_by_role("link", name="Open passage 1")
    await mark.focus()
    await expect(page.get_by_role("tooltip")).to_contain_text("180 euros a night in Munich")
    await mark.press("Enter")
    reading = page.get_by_role("complementary", name="Travel Policy (travel.md)")
    await expect(reading.locator("mark")).to_be_visible()
    await expect(reading).to_contain_text("Alderway Instruments")
    shared = page.url
    assert "passage=" in shared
    await page.go_back()
    await expect(reading).to_be_hidden()
    await expect(answer).to_contain_text("180 euros")
    await page.goto(shared)
    await expect(page.locator("#reading mark")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("#reading")).to_be_hidden()


async def test_the_conversation_is_kept_and_can_be_deleted(page: Page) -> None:
    await ask(page, QUESTION)
    entry = page.locator("#sessions li", has_text=QUESTION)
    await expect(entry).to_have_count(1)
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator(".turn")).to_have_count(0)
    page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.accept()))
    await entry.hover()
    await entry.get_by_role("button", name="Delete").click()
    await expect(entry).to_have_count(0)


async def test_a_stored_answer_is_judged_and_copied(page: Page) -> None:
    # As over plain HTTP from another machine, where browsers have no clipboard for scripts.
    await page.evaluate("delete Navigator.prototype.clipboard")
    entry = page.get_by_role("link", name="Hotels")
    await entry.click()
    await page.get_by_role("button", name="Copy with sources").click()
    await expect(page.locator("#notice")).to_have_text("Copied.")
    async with page.expect_response("**/feedback"):
        await page.get_by_role("button", name="Not helpful").click()
    await expect(page.get_by_label("What was wrong?")).to_be_focused()
    await entry.click()
    await expect(page.get_by_label("What was wrong?")).to_be_hidden()
    await expect(page.get_by_role("button", name="Not helpful")).to_have_attribute("aria-pressed", "true")


async def test_an_answer_that_breaks_off_says_so(page: Page) -> None:
    begun = 'event: token\ndata: {"text": "A hotel"}\n\n'

    async def cut(route: Route) -> None:
        await route.fulfill(content_type="text/event-stream", body=begun)

    await page.route("**/v1/ask", cut)
    await ask(page, QUESTION)
    await expect(page.get_by_text("The server did not answer")).to_be_visible()
    await expect(page.locator(".answer")).to_have_text("A hotel")
    await expect(page.locator(".answer")).not_to_have_attribute("aria-busy", "true")
    await page.unroute("**/v1/ask")
    await page.get_by_role("button", name="Ask again").click()
    await expect(page.locator(".answer").last).to_contain_text("180 euros")


async def test_a_file_that_is_too_large_is_not_sent(page: Page, tmp_path: Path) -> None:
    large = tmp_path / "large.md"
    large.write_bytes(b"a" * (1024 * 1024 + 1))
    await page.get_by_role("link", name="Documents").click()
    await expect(page.locator("#count")).to_contain_text("2")
    await page.locator("#files").set_input_files([large])
    await expect(page.locator("#uploads")).to_contain_text("large.md: larger than the 1 MB")


async def test_a_refusal_says_what_came_closest(page: Page) -> None:
    await ask(page, "Which meals are paid on the day of arrival?")
    await expect(page.get_by_text("Not found in the documents")).to_be_visible()
    await expect(page.get_by_text("Nearest passages found")).to_be_visible()
    await expect(page.locator(".source").first).to_contain_text("Travel Policy")


async def test_enter_while_composing_does_not_send(page: Page) -> None:
    await page.get_by_label("Your question").fill("chailv")
    event = {"key": "Enter", "isComposing": True, "bubbles": True, "cancelable": True}
    await page.locator("#question").dispatch_event("keydown", event)
    await expect(page.locator(".turn")).to_have_count(0)
    await expect(page.get_by_label("Your question")).to_have_value("chailv")


async def test_chinese_page_on_a_phone(page: Page) -> None:
    await page.set_viewport_size({"width": 380, "height": 740})
    await page.get_by_role("button", name="中文").click()
    await expect(page.get_by_role("heading", name="向本单位的文档提问")).to_be_visible()
    await expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_upload_is_read_and_can_be_deleted(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "gifts.md"
    file.write_text(POLICY.format(name="gifts"), encoding="utf-8")
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.7\nnothing more")
    await page.get_by_role("link", name="Documents").click()
    await expect(page.locator("#count")).to_contain_text("2")
    await page.locator("#files").set_input_files([file, broken])
    row = page.locator("#documents tbody tr", has_text="gifts.md")
    await expect(row.locator(".state")).to_have_text("Ready", timeout=20_000)
    failed = page.locator("#documents tbody tr", has_text="broken.pdf")
    await expect(failed.locator(".state")).to_have_text("Failed", timeout=20_000)
    await expect(failed.locator(".reason")).to_contain_text("damaged")
    await row.get_by_role("button", name="As the machine read it").click()
    await expect(page.get_by_role("dialog")).to_contain_text("180 euros a night in Munich")
    await page.keyboard.press("Escape")
    page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.accept()))
    await row.get_by_role("button", name="Delete").click()
    await expect(page.locator("#notice")).to_contain_text("Deleted")
    await expect(row).to_have_count(0)
