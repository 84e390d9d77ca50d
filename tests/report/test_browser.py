"""The page of a report in a real browser."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
from playwright.sync_api import Browser, Page  # noqa: E402

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


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Page:
    """One for all tests, since a new one takes long to open."""
    return browser.new_page()


@pytest.mark.parametrize("kind", ["page", "tags"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_the_page_fits_and_asks_for_nothing(
    width: int, scheme: Any, kind: str, tab: Page, request: pytest.FixtureRequest
) -> None:
    said: list[str] = []
    asked: list[str] = []
    listening = {
        "console": lambda message: said.append(message.text),
        "pageerror": lambda error: said.append(str(error)),
        "request": lambda request: asked.append(request.url),
    }
    address = request.getfixturevalue(kind).path.as_uri()
    tab.set_viewport_size({"width": width, "height": 800})
    tab.emulate_media(color_scheme=scheme)
    for event, listener in listening.items():
        tab.on(event, listener)  # type: ignore[call-overload]
    tab.goto(address)
    assert asked == [address]
    assert said == []
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    for number in range(tab.locator("details").count()):
        tab.locator("summary").nth(number).click()
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    light = tab.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every(c => c > 128)")
    assert light == (scheme == "light")
    assert tab.locator("svg.rp-lines").first.bounding_box()["width"] > 250  # type: ignore[index]
    tab.get_by_role("link", name="How it was made").click()
    assert tab.get_by_role("heading", name="How it was made").is_visible()
    for event, listener in listening.items():
        tab.remove_listener(event, listener)
