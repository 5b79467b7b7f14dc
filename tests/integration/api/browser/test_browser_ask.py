"""Asking in a real browser: answers, citations, conversations, in both languages and without a mouse."""

import asyncio

from playwright.async_api import Page, Route, expect

from tests.integration.api.browser.conftest import MARKS

QUESTION = "What may a hotel in Munich cost?"

pytestmark = MARKS


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
