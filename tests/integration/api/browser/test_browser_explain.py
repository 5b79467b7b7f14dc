"""The pages of explained searches and synonyms: by keyboard, in both languages, narrow and wide."""

import pytest
from playwright.async_api import Page, expect

from ingest.reembedding import fill
from storage import embedding_sets, synonyms
from tests.fakes.embedder import FakeEmbedder
from tests.integration.api.browser.conftest import MARKS, looked_at
from tests.integration.api.conftest import Site

pytestmark = MARKS


async def test_words_that_mean_the_same_are_found_and_shown(page: Page, site: Site, meant: list[str]) -> None:
    meant.append("status of 422")
    await page.goto("/explain")
    await page.get_by_role("link", name="Synonyms").click()
    await expect(page.get_by_text("There are none yet.")).to_be_visible()
    await page.get_by_label("Words that mean the same").fill("hotel = the")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("left out of every search")
    await page.get_by_label("Words that mean the same").fill("hotel = lodging；住宿")
    await page.keyboard.press("Enter")
    await expect(page.locator(".chips li")).to_have_count(3)
    await expect(page.get_by_role("alert")).to_be_hidden()
    await page.get_by_role("button", name="Remove “住宿”").press("Enter")
    await expect(page.locator(".chips li")).to_have_count(2)

    await page.get_by_role("link", name="Explain a search").click()
    await page.get_by_label("Query").fill("Where is lodging paid?")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("“lodging” means the same as hotel")).to_be_visible()
    await expect(page.get_by_text("Rights and filters leave 2 documents with")).to_be_visible()
    await expect(page.locator(".terms tbody tr", has_text="hotel")).to_contain_text("synonym")
    await expect(page.locator(".lists > section").nth(1).locator("li mark").first).to_be_visible()
    await expect(page.locator(".hits mark").first).to_be_visible()
    await page.get_by_label("Collection").select_option("open")
    await page.get_by_label("As a member of the group").fill("strangers")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Rights and filters leave 1 document with")).to_be_visible()
    await page.reload()
    await expect(page.get_by_text("Rights and filters leave 1 document with")).to_be_visible()


@pytest.mark.parametrize("width", [380, 1280])
async def test_nothing_sticks_out_in_either_language(page: Page, site: Site, width: int) -> None:
    await page.set_viewport_size({"width": width, "height": 740})
    await synonyms.add(site.runtime.db, site.demo.tenant.id, ["hotel", "lodging", "住宿"])
    settled = {"/explain?q=hotel+caps+in+Munich": ".hits li", "/synonyms": "#synonyms .chips"}
    for language in ("en", "zh-CN"):
        for path, sign in settled.items():
            await page.goto(path)
            await expect(page.locator("html")).to_have_attribute("lang", language)
            await expect(page.locator(sign).first).to_be_visible()
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            await looked_at(page, f"{path[1:8]}-{language}-{width}")
        async with page.expect_navigation():
            await page.locator("#switch-language").click()


async def test_a_search_is_narrowed_to_a_document_a_type_and_a_day(page: Page, site: Site) -> None:
    await page.goto("/explain?q=hotel+caps")
    await expect(page.get_by_text("Rights and filters leave 2 documents with")).to_be_visible()
    document = page.get_by_role("combobox", name="Document (title or path)")
    await document.press_sequentially("boar")
    await expect(page.locator("#documents-known option")).to_have_count(1)
    path = await page.locator("#documents-known option").get_attribute("value")
    assert path is not None
    await document.fill(path)
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Rights and filters leave 1 document with")).to_be_visible()
    await expect(page.locator(".hits .where").first).to_contain_text(path)
    await page.get_by_label("File type").select_option("MD, MARKDOWN")
    await page.get_by_role("button", name="Explain").click()
    await expect(page.get_by_text("Rights and filters leave 1 document with")).to_be_visible()
    # The address holds all of it, and may be handed on.
    await page.get_by_label("In force on").fill("2020-02-29")
    await page.get_by_label("File type").select_option("PDF")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Nothing was found.")).to_be_visible()
    await page.reload()
    await expect(page.get_by_text("Nothing was found.")).to_be_visible()
    await expect(document).to_have_value(path)
    await expect(page.get_by_label("In force on")).to_have_value("2020-02-29")
    await document.fill("no such thing")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status").first).to_contain_text("There is no document of that path or title.")


@pytest.mark.parametrize("width", [380, 1280])
async def test_the_vectors_that_are_searched_and_those_beside_them(page: Page, site: Site, width: int) -> None:
    db, tenant_id = site.runtime.db, site.demo.tenant.id
    await page.set_viewport_size({"width": width, "height": 740})
    vectors = page.locator("#vectors")

    async def says(text: str) -> None:
        await page.goto("/explain")
        await expect(vectors).to_contain_text(text)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await looked_at(page, f"vectors-{text[:3]}-{width}")

    await says("Searched by the vectors of fake:bag-64:1: 6 passages.")
    await embedding_sets.begin(db, tenant_id, "ollama:new:1", 24)
    async with embedding_sets.changing(db, tenant_id):
        await says("made beside them: 0 of 6 passages.")
        await expect(vectors.get_by_role("progressbar")).to_be_visible()
    await says("intramuros reembed goes on with them")
    async for _ in fill(db, tenant_id, FakeEmbedder("ollama:new:1", 24)):
        pass
    assert await embedding_sets.complete(db, tenant_id, "ollama:new:1")
    await says("intramuros reembed --swap searches by them")
    assert await embedding_sets.swap(db, tenant_id)
    await says("intramuros reembed --undo searches by them again")
