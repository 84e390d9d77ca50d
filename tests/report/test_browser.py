"""The page of a report in a real browser."""

import os
import shutil
from collections.abc import Iterator

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
from playwright.sync_api import Browser  # noqa: E402

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_api.sync_playwright() as playwright:
        root = hasattr(os, "geteuid") and os.geteuid() == 0  # Chromium's sandbox refuses root
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"] if root else [])
        yield browser
        browser.close()


@pytest.mark.parametrize("kind", ["page", "tags"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_the_page_fits_and_asks_for_nothing(
    width: int, scheme: str, kind: str, browser: Browser, request: pytest.FixtureRequest
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    address = request.getfixturevalue(kind).path.as_uri()
    page.goto(address)
    assert asked == [address]
    assert said == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for number in range(page.locator("details").count()):
        page.locator("summary").nth(number).click()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    light = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every(c => c > 128)")
    assert light == (scheme == "light")
    assert page.locator("svg.rp-lines").first.bounding_box()["width"] > 250  # type: ignore[index]
    page.get_by_role("link", name="How it was made").click()
    assert page.get_by_role("heading", name="How it was made").is_visible()
    context.close()
