"""Citations that outlive their document, traces for a stated reason, approvals: in a real browser, by keyboard."""

import asyncio
import os
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from storage import runs, sessions
from tests.integration.api.browser.conftest import MARKS
from tests.integration.api.conftest import Site
from tests.integration.api.samples import POLICY
from tests.integration.api.test_oversight import a_run

pytestmark = MARKS

QUOTE = "A hotel room costs at most 180 euros a night in Munich"


async def test_a_citation_opens_as_it_was_cited_and_outlives_its_document(
    page: Page, site: Site, meant: list[str]
) -> None:
    assert site.demo.open
    session, _, _ = await a_run(site, user="admin")
    await page.goto(f"/?session={session}")
    await page.get_by_role("link", name="Open passage 1").press("Enter")
    await expect(page.locator("#reading mark")).to_have_text(QUOTE)
    await expect(page.locator("#reading .passage")).to_contain_text("breakfast included")
    assert "revision=1&start=360&end=414" in page.url
    changed = POLICY.replace("180 euros", "190 euros").format(name="travel.md").encode()
    tenant_id = site.demo.tenant.id
    newer = await site.runtime.ingestor.accept_upload(tenant_id, "open", "travel.md", changed)
    await site.runtime.ingestor.process(tenant_id, newer.id)
    await page.reload()
    await expect(page.locator("#reading mark")).to_have_text(QUOTE)
    await expect(page.locator("#reading")).to_contain_text("1, as it was cited; the newest is 2")
    await expect(page.locator(".source")).to_contain_text("The document was changed since")
    await page.keyboard.press("Escape")
    await site.runtime.ingestor.delete(site.demo.principals["admin"], newer.id)
    await page.goto(f"/?session={session}")
    await expect(page.locator(".source")).to_contain_text("The document was deleted since")
    await page.locator("a.cite").press("Enter")
    await expect(page.locator("#reading blockquote")).to_have_text(QUOTE)
    await expect(page.locator("#reading mark")).to_have_count(0)


async def test_a_conversation_is_forked_exported_and_tells_what_was_broken_off(page: Page, site: Site) -> None:
    session, _, _ = await a_run(site, user="admin")
    db, admin = site.runtime.db, site.demo.principals["admin"]
    await runs.begin(db, admin, session, "And in London?", "auto", checkpointed=False)
    await page.goto(f"/?session={session}")
    await expect(page.get_by_text("This question was broken off")).to_be_visible()
    await expect(page.locator(".turn")).to_have_count(2)
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Save as Markdown").press("Enter")
    assert (await download.value).suggested_filename == f"intramuros-{session}.md"
    await page.get_by_role("button", name="Continue in a new conversation").press("Enter")
    await expect(page.locator("#notice")).to_contain_text("new conversation")
    await expect(page.locator(".turn")).to_have_count(1)
    assert str(session) not in page.url
    assert len(await sessions.listing(db, admin)) == 3


async def test_a_run_is_read_for_a_reason_that_the_asker_is_shown(page: Page, site: Site) -> None:
    session, _, _ = await a_run(site, user="admin")
    await page.get_by_role("link", name="Oversight").press("Enter")
    row = page.locator("#runs tbody tr")
    await expect(row).to_have_count(1)
    await expect(row).to_contain_text("answered")
    await row.get_by_role("button", name="Read").press("Enter")
    await expect(page.get_by_label("Why do you want to read it?")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#trace")).to_be_hidden()
    await page.keyboard.type("complaint 12")
    await page.keyboard.press("Enter")
    await expect(page.locator("#trace h2")).to_have_text("What may a hotel in Munich cost?")
    await expect(page.locator(".steps tbody tr")).to_have_count(2)
    await page.locator(".steps summary").press("Enter")
    await expect(page.locator(".steps pre")).to_contain_text('"score": 0.5')
    await page.goto(f"/?session={session}")
    await expect(page.locator("#readings li")).to_contain_text("Read by admin on")
    await expect(page.locator("#readings li")).to_contain_text("complaint 12")


async def test_answers_that_wait_are_approved_and_rejected(page: Page, site: Site) -> None:
    session, _, _ = await a_run(site, held=True)
    await a_run(site, held=True)
    await page.goto("/")
    await page.get_by_role("link", name="2 answers wait for your approval").press("Enter")
    cards = page.locator("#approvals article")
    await expect(cards).to_have_count(2)
    await expect(cards.first).to_contain_text(QUOTE)
    await cards.first.get_by_role("button", name="Approve").press("Enter")
    await expect(cards).to_have_count(1)
    await page.get_by_label("Why not?").fill("out of date")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("No answer waits for you.")).to_be_visible()
    stored = await sessions.turns(site.runtime.db, site.demo.principals["employee"], session)
    assert stored[0].outcome == "waiting"


@pytest.mark.parametrize("width", [380, 1280])
async def test_nothing_sticks_out_in_either_language(page: Page, site: Site, width: int) -> None:
    session, _, run = await a_run(site, user="admin")
    await a_run(site, held=True)
    await runs.begin(
        site.runtime.db, site.demo.principals["admin"], session, "And in London?", "auto", checkpointed=False
    )
    from storage import traces

    await traces.read(site.runtime.db, site.demo.principals["admin"], run, "complaint 12 of 30 November")
    await page.set_viewport_size({"width": width, "height": 740})
    settled = {f"/?session={session}": "#readings li", "/traces": "#runs tbody tr", "/approvals": "#approvals article"}
    for language in ("en", "zh-CN"):
        for path, sign in settled.items():
            await page.goto(path)
            await expect(page.locator("html")).to_have_attribute("lang", language)
            await expect(page.locator(sign).first).to_be_visible()
            name = path.strip("/").partition("?")[0] or "ask"
            if name == "traces":
                await page.locator("#runs button").last.click()
                await page.locator("#reason").fill("complaint 13")
                await page.keyboard.press("Enter")
                await expect(page.locator(".steps tbody tr")).to_have_count(2)
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            if folder := os.environ.get("SHOTS"):
                for scheme in ("dark", "light"):
                    await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                    shot = Path(folder) / f"{name}-{language}-{width}-{scheme}.png"
                    await page.screenshot(path=shot, full_page=True)
            if axe := os.environ.get("AXE"):
                await page.evaluate(await asyncio.to_thread(Path(axe).read_text, encoding="utf-8"))
                found = await page.evaluate("axe.run()")
                assert [fault["id"] for fault in found["violations"]] == [], (path, language)
        async with page.expect_navigation():
            await page.locator("#switch-language").click()
