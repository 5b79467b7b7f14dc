"""Citations that outlive their document, traces for a stated reason, approvals: in a real browser, by keyboard."""

import pytest
from playwright.async_api import Browser, Page, expect

from storage import approvals, audit, runs, sessions
from tests.integration.api.browser.conftest import MARKS, log_in, looked_at
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
    await a_run(site, held=True)
    await a_run(site, held=True)
    await page.goto("/")
    await page.get_by_role("link", name="Approvals 2").press("Enter")
    cards = page.locator("#approvals article")
    await expect(page.get_by_text("2 answers wait for your approval")).to_be_visible()
    await expect(cards).to_have_count(2)
    await expect(cards.first).to_contain_text(QUOTE)
    await cards.first.get_by_role("button", name="Approve").press("Enter")
    await expect(cards).to_have_count(1)
    await expect(cards.get_by_role("heading")).to_be_focused()
    await expect(page.locator("#waiting")).to_have_text("1")
    note = page.get_by_label("Note, which whoever asked is shown")
    await cards.get_by_role("button", name="Reject").press("Enter")
    await expect(note).to_be_focused()
    await page.keyboard.type("out of date")
    await page.keyboard.press("Enter")
    await expect(cards).to_have_count(1)
    await cards.get_by_role("button", name="Reject").press("Enter")
    await expect(page.get_by_text("No answer waits for you.")).to_be_focused()
    await expect(page.locator("#waiting")).to_be_hidden()
    decided = [one.action for one in await audit.listing(site.runtime.db, site.demo.tenant.id, 2)]
    assert decided == ["answer.rejected", "answer.approved"]


async def test_what_comes_and_goes_leaves_a_note_that_is_being_written(page: Page, site: Site) -> None:
    _, first, _ = await a_run(site, held=True)
    await a_run(site, held=True)
    await page.clock.install()
    await page.goto("/approvals")
    cards = page.locator("#approvals article")
    await expect(cards).to_have_count(2)
    await cards.last.get_by_label("Note").fill("until June")
    _, newest, _ = await a_run(site, held=True)
    admin = site.demo.principals["admin"]
    await approvals.decide(site.runtime.db, admin, first, approved=True, reason=None)
    await page.clock.run_for(10_000)
    await expect(page.locator(f"#asked-{first}")).to_have_count(0)
    await expect(page.locator(f"#asked-{newest}")).to_be_visible()
    await expect(cards.first.get_by_label("Note")).to_have_value("until June")
    await expect(cards.first.get_by_label("Note")).to_be_focused()


async def test_whoever_asked_sees_what_was_decided_without_reloading(
    browser: Browser, address: str, site: Site
) -> None:
    db, admin = site.runtime.db, site.demo.principals["admin"]
    session, first, _ = await a_run(site, held=True)
    second = (await a_run(site, held=True, session=session))[1]
    page = await browser.new_page(base_url=address)
    await page.clock.install()
    await log_in(page, "employee")
    await expect(page.get_by_role("link", name="Approvals")).to_have_count(0)
    await page.goto(f"/?session={session}")
    turns = page.locator(".turn")
    await expect(turns.first).to_contain_text("Waiting for approval")
    await expect(turns.first).to_contain_text("the answer appears by itself as soon as somebody has decided")
    await approvals.decide(db, admin, first, approved=True, reason="until June")
    await page.clock.run_for(10_000)
    await expect(turns.first).to_contain_text("180 euros a night")
    await expect(turns.first).to_contain_text("Approved with this note: until June")
    await expect(turns.first.get_by_role("link", name="Open passage 1")).to_be_visible()
    await expect(page.locator("#notice")).to_have_text("Your answer was approved.")
    await expect(turns.last).to_contain_text("Waiting for approval")
    await approvals.decide(db, admin, second, approved=False, reason="out of date")
    await page.clock.run_for(10_000)
    await expect(turns.last).to_contain_text("This answer was not approved: out of date")
    # Nothing waits any more, and nothing is asked for any more.
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.clock.run_for(60_000)
    assert asked == []
    await page.close()


@pytest.mark.parametrize("width", [380, 1280])
async def test_nothing_sticks_out_in_either_language(page: Page, site: Site, width: int) -> None:
    session, _, run = await a_run(site, user="admin")
    await a_run(site, held=True)
    await a_run(site, held=True)
    waits, _, _ = await a_run(site, user="admin", held=True)
    await runs.begin(
        site.runtime.db, site.demo.principals["admin"], session, "And in London?", "auto", checkpointed=False
    )
    from storage import traces

    await traces.read(site.runtime.db, site.demo.principals["admin"], run, "complaint 12 of 30 November")
    await page.set_viewport_size({"width": width, "height": 740})
    settled = {
        f"/?session={session}": "#readings li",
        f"/?session={waits}": ".outcome",
        "/traces": "#runs tbody tr",
        "/approvals": "#approvals article",
    }
    for language in ("en", "zh-CN"):
        for path, sign in settled.items():
            await page.goto(path)
            await expect(page.locator("html")).to_have_attribute("lang", language)
            await expect(page.locator(sign).first).to_be_visible()
            name = "waiting" if str(waits) in path else path.strip("/").partition("?")[0] or "ask"
            if name == "traces":
                await page.locator("#runs button").last.click()
                await page.locator("#reason").fill("complaint 13")
                await page.keyboard.press("Enter")
                await expect(page.locator(".steps tbody tr")).to_have_count(2)
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            await looked_at(page, f"{name}-{language}-{width}")
        async with page.expect_navigation():
            await page.locator("#switch-language").click()
