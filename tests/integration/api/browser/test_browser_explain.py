"""The pages of explained searches and synonyms: by keyboard, in both languages, narrow and wide."""

import os
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.integration.api.browser.conftest import MARKS
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
    settled = {"/explain?q=hotel+caps+in+Munich": ".hits li", "/synonyms": "#synonyms-empty"}
    for language in ("en", "zh-CN"):
        for path, sign in settled.items():
            await page.goto(path)
            await expect(page.locator("html")).to_have_attribute("lang", language)
            await expect(page.locator(sign).first).to_be_visible()
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            if folder := os.environ.get("SHOTS"):
                await page.screenshot(path=Path(folder) / f"{path[1:4]}-{language}-{width}.png", full_page=True)
                await page.emulate_media(color_scheme="dark")
                await page.screenshot(path=Path(folder) / f"{path[1:4]}-{language}-{width}-dark.png", full_page=True)
                await page.emulate_media(color_scheme="light")
        async with page.expect_navigation():
            await page.locator("#switch-language").click()
