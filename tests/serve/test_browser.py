"""The page in a real browser: what a person types, sees, clicks and takes back."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import serving, small_run

from wordward.datasets import Example
from wordward.explain.explainer import explain
from wordward.runs.opening import load_run
from wordward.runs.run import Run
from wordward.runs.run_folder import CLASS_COUNTS

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
from playwright.sync_api import Browser, Dialog, Locator, Page, expect  # noqa: E402

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium"),
]

TEXT = "the film was warm and clever"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_api.sync_playwright() as playwright:
        root = hasattr(os, "geteuid") and os.geteuid() == 0  # Chromium's sandbox refuses root
        arguments = ["--no-sandbox"] if root else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return small_run(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def address(run: Run) -> Iterator[str]:
    with serving(run, examples=[TEXT, "the story was bright and funny"]) as address:
        yield address


@pytest.fixture(scope="module")
def visitor(browser: Browser) -> "Visit":
    return Visit(browser.new_page())


@pytest.fixture
def visit(visitor: "Visit") -> Iterator["Visit"]:
    yield visitor
    try:
        visitor.check()
    finally:
        visitor.leave()


# From now on the page asks for nothing and keeps nothing. The next one is opened in its place: for an empty page in
# between the browser would start two processes.
STILL = """() => {
  sessionStorage.clear();
  Storage.prototype.setItem = () => {};
  window.fetch = () => new Promise(() => {});
}"""


class Visit:
    """A person at the page, and what went on behind it; all in one tab, since a new one takes long to open."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        self.expected: tuple[str, ...] = ()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("dialog", self._close)
        page.on("request", lambda request: self.asked.append(request.url))

    def _close(self, dialog: Dialog) -> None:
        self.said.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, address: str) -> Page:
        self.address = address
        self.page.goto(address)
        expect(self.page.locator(".word").first).to_be_visible()
        return self.page

    def check(self) -> None:
        """Nothing left for another host, and nothing was complained of."""
        assert self.asked
        assert [
            url for url in self.asked if not url.startswith((self.address, "data:", f"blob:{self.address}"))
        ] == []
        assert [said for said in self.said if not any(each in said for each in self.expected)] == []

    def leave(self) -> None:
        """Forget all, so that the next test finds a tab like a new one."""
        self.page.unroute_all(behavior="ignoreErrors")
        self.page.evaluate(STILL)
        self.page.emulate_media(media="screen", color_scheme="light")
        self.page.set_viewport_size({"width": 1280, "height": 720})
        self.said.clear()
        self.asked.clear()
        self.expected = ()


def numbers(page: Page, view: int = 0) -> dict[str, str]:
    bars = page.locator(f".prediction.view{view} .chance").all()
    return {
        (bar.locator(".name").text_content() or ""): (bar.locator(".number").text_content() or "") for bar in bars
    }


def percent(chance: float) -> str:
    if 0 < chance < 0.001 or 0.999 < chance < 1:
        return "<0.1 %" if chance < 0.5 else ">99.9 %"
    hundred = 100 * chance
    return f"{hundred:.1f} %" if hundred > 99 or hundred < 1 else f"{int(hundred + 0.5)} %"


def predicted(run: Run, text: str) -> dict[str, str]:
    return {label: percent(chance) for label, chance in run.predict([text])[0].probabilities.items()}


def settled(page: Page, text: str) -> None:
    """Wait until the page shows what the model says of a text."""
    expect(page.locator("#text")).to_have_value(text)
    expect(page.locator("body")).not_to_have_attribute("aria-busy", "true")


def strongest(page: Page) -> Locator:
    """The bar that is darkest."""
    return page.locator(".view0 .bar", has=page.locator(".amount", has_text="1.00")).first


def test_type_swap_undo_redo_reset(visit: Visit, address: str, run: Run) -> None:
    page = visit.open(address)
    page.fill("#text", "")
    page.locator("#text").press_sequentially("This story was lovely.")
    expect(page.locator(".word")).to_have_text(["This", "story", "was", "lovely"])
    settled(page, "This story was lovely.")
    before = predicted(run, "This story was lovely.")
    assert numbers(page) == before
    bars = page.locator("#ladder .bar")
    assert bars.count() > 0

    bar = strongest(page)
    word, toward = re.findall(r"^Swap (.+) for (.+): relative", bar.get_attribute("aria-label") or "")[0]
    bar.click()
    swapped = page.locator(".word.swapped")
    expect(swapped.locator(".letters")).to_have_text(re.compile(f"^{toward}$", re.IGNORECASE))
    expect(swapped.locator("del")).to_have_text(word)
    text = page.input_value("#text")
    settled(page, text)
    assert text.lower() == "this story was lovely.".replace(word.lower(), toward)
    assert numbers(page) == predicted(run, text) != before
    expect(page.locator(".change")).to_contain_text("before the swaps")
    assert page.locator(":focus").count() == 1  # the keyboard has not lost its place

    page.click("#undo")
    settled(page, "This story was lovely.")
    assert numbers(page) == before
    expect(swapped).to_have_count(0)
    page.locator("#redo").press("Control+Shift+Z")
    settled(page, text)
    expect(swapped).to_have_count(1)
    page.click("#reset")
    settled(page, "This story was lovely.")
    expect(page.locator("#reset")).to_have_attribute("aria-disabled", "true")
    page.locator("#reset").press("Control+z")
    settled(page, text)


def test_what_the_model_says_with_the_strongest_word_put_in_is_told(visit: Visit, address: str, run: Run) -> None:
    page = visit.open(address)
    page.fill("#text", TEXT)
    settled(page, TEXT)
    (explained,) = run.explain([TEXT])
    place = explained.strongest
    assert place is not None
    assert place.pull is not None
    told = page.locator("#legend .effect")
    expect(told).to_contain_text(f"{place.word} → {place.pull.toward}: {explained.predicted}")
    assert place.pull.prediction is not None
    if place.pull.prediction != explained.predicted:
        expect(told).to_contain_text(f"so {place.pull.prediction}")


@pytest.fixture
def every_pull(run: Run, tmp_path: Path) -> Iterator[str]:
    """A server of the same run without its counts of words by label, so that all pulls are shown."""
    shutil.copytree(run.folder, tmp_path / "run")
    (tmp_path / "run" / CLASS_COUNTS).unlink()
    with serving(
        load_run(tmp_path / "run", device="cpu"), examples=[TEXT, "the story was bright and funny"]
    ) as there:
        yield there


def test_pick_an_example_and_use_the_keyboard_alone(visit: Visit, every_pull: str, run: Run) -> None:
    page = visit.open(every_pull)
    page.locator("#examples button").nth(1).press("Enter")
    settled(page, "the story was bright and funny")
    expect(page.locator(".word")).to_have_count(6)
    page.locator("#ladder .bar").first.focus()
    page.keyboard.press("ArrowDown")
    second = page.locator("#ladder .bar").nth(1)
    expect(second).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.locator("#ladder .bar").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".word.swapped")).to_have_count(1)
    page.keyboard.press("Control+z")
    settled(page, "the story was bright and funny")
    assert numbers(page) == predicted(run, "the story was bright and funny")
    for control in page.locator("button:visible, select:visible, textarea").all():
        assert control.evaluate("node => (node.ariaLabel || node.textContent || node.labels?.length || '') !== ''")


def test_an_alternative_is_applied_like_a_bar(visit: Visit, every_pull: str, run: Run) -> None:
    page = visit.open(every_pull)
    page.fill("#text", "the story was cold and dull")
    settled(page, "the story was cold and dull")
    other = page.locator("#ladder .other").first
    toward = other.text_content() or ""
    other.click()
    expect(page.locator(".word.swapped .letters")).to_have_text(toward)
    settled(page, page.input_value("#text"))
    assert toward in page.input_value("#text").split()
    assert numbers(page) == predicted(run, page.input_value("#text"))


def swap(page: Page, at: int) -> tuple[str, str]:
    """Put in the word that pulls the first (0) or last (-1) of those that are pulled; that word, and what came."""
    rung = page.locator("#ladder .rung", has=page.locator(".bar")).nth(at)
    was, came = (rung.locator(name).first.text_content() or "" for name in (".from", ".bar bdi"))
    before = page.input_value("#text")
    rung.locator(".bar").first.click()
    expect(page.locator("#text")).not_to_have_value(before)
    settled(page, page.input_value("#text"))
    return was, came


def test_every_swapped_word_says_what_it_was(visit: Visit, every_pull: str) -> None:
    page = visit.open(every_pull)
    text: str = "clever warm bright funny lovely"
    page.fill("#text", text)
    expect(page.locator(".word")).to_have_count(5)
    words: list[str] = [*text.split()]
    swapped: list[int] = []
    for at in (-1, 0, -1, 0):
        was, came = swap(page, at)
        now = page.input_value("#text").split()
        (place,) = [i for i, (old, new) in enumerate(zip(words, now, strict=True)) if old != new]
        assert (words[place], now[place]) == (was, came)
        swapped.append(place)
        words[place] = came
        told = [old for old, word in zip(text.split(), words, strict=True) if word != old]
        expect(page.locator(".word del")).to_have_text(told)
    assert 1 < len(set(swapped)) < len(swapped)  # several words, and one of them again
    for _ in swapped:
        page.click("#undo")
    settled(page, text)
    expect(page.locator(".word del")).to_have_count(0)


def test_a_click_while_a_text_is_typed_does_not_hit_another_word(visit: Visit, address: str) -> None:
    page = visit.open(address)
    page.evaluate("""() => {
      const box = document.getElementById("text");
      box.value = "well , " + box.value;
      box.dispatchEvent(new Event("input"));
      document.querySelector(".bar").click();
    }""")
    expect(page.locator(".word")).to_have_count(7)
    settled(page, f"well , {TEXT}")
    expect(page.locator(".word del")).to_have_count(0)


def test_compare_two_methods_and_two_runs(
    visit: Visit, address: str, run: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    page = visit.open(address)
    assert page.locator(".view1").count() == 0
    page.select_option("#compare", '{"run":"iadvt","method":"advt"}')
    expect(page.locator("#ladder.two .cell.view1").first).to_be_visible()
    assert numbers(page, 0) == numbers(page, 1) == predicted(run, TEXT)
    assert [each.text_content() for each in page.locator(".prediction h2").all()] == ["iadvt", "advt"]
    for view, method in enumerate(("iadvt", "advt")):
        (explained,) = explain(run, [Example(TEXT)], method=method)
        towards = [place.pull.toward for place in explained.places if place.pull]
        expect(page.locator(f".cell.view{view} .bar bdi")).to_have_text(towards)
    page.select_option("#compare", "")
    expect(page.locator(".view1")).to_have_count(0)

    baseline = small_run(tmp_path_factory.mktemp("other"), method="baseline")
    with serving(run, baseline, examples=[TEXT]) as both:
        visit.check()
        visit.asked.clear()
        page = visit.open(both)
        expect(page.locator(".prediction h2")).to_have_text(["iadvt", "baseline"])
        assert numbers(page, 0) == predicted(run, TEXT)
        assert numbers(page, 1) == predicted(baseline, TEXT)
        page.locator("#ladder .view1 .bar").first.click()
        expect(page.locator(".word.swapped")).to_have_count(1)
        settled(page, page.input_value("#text"))
        assert numbers(page, 0) == predicted(run, page.input_value("#text"))
        assert numbers(page, 1) == predicted(baseline, page.input_value("#text"))
        visit.check()


def test_method_and_label_change_what_pulls(visit: Visit, address: str) -> None:
    page = visit.open(address)
    first = page.locator("#ladder").text_content()
    page.select_option("#label", "bad")
    expect(page.locator("#legend")).to_contain_text("makes bad less likely")
    assert page.locator("#ladder").text_content() != first
    page.select_option("#method", "vat")
    expect(page.locator("#label")).to_be_disabled()
    expect(page.locator("#legend")).to_contain_text("changes the prediction")
    page.select_option("#method", "iadvt")
    page.select_option("#label", "")
    expect(page.locator("#legend")).to_contain_text("makes good less likely")
    assert page.locator("#ladder").text_content() == first


def test_an_attack_shows_its_steps_and_can_be_taken_over(visit: Visit, address: str, run: Run) -> None:
    page = visit.open(address)
    text = "the film was warm and clever , said this friend of mine"
    page.fill("#text", text)
    expect(page.locator(".word")).to_have_count(11)
    page.select_option("#swaps", "8")
    page.click("#attack")
    expect(page.locator("#attacked h2")).to_contain_text("good becomes bad")
    steps = page.locator("#attacked .steps li")
    expect(steps.last.locator(".then")).to_contain_text("bad")
    count = steps.count()
    page.get_by_role("button", name="Put it into the text").click()
    expect(page.locator(".word.swapped")).to_have_count(count)
    settled(page, page.input_value("#text"))
    assert run.predict([page.input_value("#text")])[0].label == "bad"
    assert numbers(page) == predicted(run, page.input_value("#text"))
    expect(page.locator("#attacked")).to_be_hidden()
    page.click("#undo")
    settled(page, text)


def test_markup_is_shown_as_text(visit: Visit, address: str) -> None:
    page = visit.open(address)
    text = """<script>alert("warm")</script> <img src=x onerror='alert(1)'> & 😀 "lovely" שלום"""
    page.fill("#text", text)
    expect(page.locator("#sentence")).to_have_text(text)
    assert page.locator("#sentence img, #sentence script, #ladder img").count() == 0
    page.locator("#sentence .word", has_text="lovely").click()
    expect(page.locator("#ladder .rung", has_text="lovely").locator(".bar").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".word.swapped del")).to_have_text("lovely")
    assert page.input_value("#text").startswith(text[: text.index("lovely")])
    assert page.input_value("#text").endswith('" שלום')


def test_a_text_that_is_too_long_gets_a_message(visit: Visit, address: str) -> None:
    page = visit.open(address)
    page.fill("#text", "warm " * 20_000)
    problem = page.get_by_role("alert")
    expect(problem).to_have_text("The text has 100,000 characters; at most 20,000 can be explained here.")
    assert not [url for url in visit.asked if url.endswith("/api/swap")]
    visit.expected = ("422",)  # the browser itself notes an answer that is no success
    page.fill("#text", "a " * 5_000)
    expect(problem).to_contain_text("5,000 words; at most 3,000")
    page.fill("#text", "?!")
    expect(problem).to_contain_text("no words to read")
    page.fill("#text", TEXT)
    expect(problem).to_be_hidden()
    expect(page.locator(".word")).to_have_count(6)
    page.fill("#text", "")
    expect(page.locator("#ladder")).to_be_hidden()


def test_a_long_text_shows_its_strongest_words_first(visit: Visit, address: str) -> None:
    page = visit.open(address)
    page.fill("#text", f"{TEXT} " * 20)
    expect(page.locator(".word")).to_have_count(120)
    expect(page.locator("#ladder .rung")).to_have_count(20)
    page.get_by_role("button", name="Show all 120 words").click()
    expect(page.locator("#ladder .rung")).to_have_count(120)


def test_the_downloads(visit: Visit, address: str, tmp_path: Path) -> None:
    page = visit.open(address)
    for button, name in (("#save-json", "wordward.json"), ("#save-html", "wordward.html")):
        with page.expect_download() as waiting:
            page.click(button)
        assert waiting.value.suggested_filename == name
        waiting.value.save_as(tmp_path / name)
    kept = json.loads((tmp_path / "wordward.json").read_text())
    assert (kept["format"], kept["text"], kept["method"]) == (1, TEXT, "iadvt")
    html = (tmp_path / "wordward.html").read_text()
    assert "clever" in html
    assert "<html" in html


def test_a_taggers_tags_and_focus(visit: Visit, tmp_path: Path) -> None:
    tagger = small_run(tmp_path, tagging=True)
    with serving(tagger, examples=["well the film are lovely"]) as address:
        page = visit.open(address)
        expect(page.locator(".word .tag")).to_have_text(["c", "c", "c", "i", "c"])
        expect(page.locator(".word.flag .letters")).to_have_text("are")
        page.locator(".word", has_text="are").click()
        expect(page.locator('.word[aria-pressed="true"] .letters')).to_have_text("are")
        expect(page.locator("#legend")).to_contain_text("makes the tag i of are less likely")
        page.select_option("#label", "c")
        expect(page.locator("#legend")).to_contain_text("makes the tag c of are less likely")
        visit.check()


CONTRAST = """node => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (...colours) => {
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    const [red, green, blue] = [...canvas.getImageData(0, 0, 1, 1).data].map((each) =>
      each > 10 ? ((each / 255 + 0.055) / 1.055) ** 2.4 : each / 255 / 12.92);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
  };
  const behind = [];
  for (let each = node; each; each = each.parentElement) behind.unshift(getComputedStyle(each).backgroundColor);
  const [ground, ink] = [luminance(...behind), luminance(...behind, getComputedStyle(node).color)];
  return Math.max(ground, ink) / Math.min(ground, ink);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_in_both_colour_schemes(visit: Visit, address: str, scheme: Any) -> None:
    visit.page.emulate_media(color_scheme=scheme)
    page = visit.open(address)
    page.select_option("#compare", '{"run":"iadvt","method":"advt"}')
    expect(page.locator(".cell.view1 .bar").first).to_be_visible()
    page.evaluate("document.querySelectorAll('.bar, .word').forEach(node => node.style.setProperty('--pull', 1))")
    page.wait_for_timeout(300)  # until the colours have changed
    for seen in (
        ".view0 .bar",
        ".view1 .bar",
        ".amount",
        ".letters",
        ".legend",
        ".name",
        "#examples button",
        "#attack",
    ):
        assert page.locator(seen).first.evaluate(CONTRAST) >= 4.5, seen  # WCAG 2, level AA


@pytest.mark.parametrize("width", [390, 1200])
def test_it_fits_the_width(visit: Visit, address: str, width: int) -> None:
    visit.page.set_viewport_size({"width": width, "height": 800})
    page = visit.open(address)
    page.fill("#text", f"{TEXT} {'x' * 200}")
    expect(page.locator(".word")).to_have_count(7)
    page.select_option("#compare", '{"run":"iadvt","method":"advt"}')
    expect(page.locator(".prediction.view1")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_when_the_server_is_gone_the_page_says_so(visit: Visit, run: Run) -> None:
    with serving(run, examples=[TEXT]) as address:
        page = visit.open(address)
    visit.expected = ("ERR_CONNECTION_REFUSED",)
    page.fill("#text", "this story was dull")
    expect(page.get_by_role("alert")).to_contain_text("does not answer")


def test_an_attack_that_takes_long_is_asked_once_and_its_end_is_told(visit: Visit, address: str) -> None:
    page = visit.open(address)
    page.route("**/api/attack", lambda route: (page.wait_for_timeout(300), route.continue_()))
    page.click("#attack", click_count=3, no_wait_after=True)
    expect(page.locator("#attacked h2")).to_be_visible()
    expect(page.get_by_role("status")).to_have_text(page.locator("#attacked h2").text_content() or "")
    assert len([url for url in visit.asked if url.endswith("/api/attack")]) == 1


def test_what_is_awaited_is_seen_to_be(visit: Visit, address: str) -> None:
    page = visit.open(address)
    answers: list[Any] = []
    page.route("**/api/explain", lambda route: answers.append(route))
    with page.expect_request("**/api/explain"):
        page.fill("#text", "this story was dull")
    words = page.locator("#words")
    expect(words).to_have_css("opacity", "0.55")
    while not answers:
        page.wait_for_timeout(20)
    answers.pop().continue_()
    settled(page, "this story was dull")
    expect(words).to_have_css("opacity", "1")


def test_a_problem_is_seen_from_the_end_of_the_page(visit: Visit, run: Run) -> None:
    with serving(run, examples=[f"{TEXT} " * 6]) as address:
        page = visit.open(address)
    visit.expected = ("ERR_CONNECTION_REFUSED",)
    page.locator("#save-html").scroll_into_view_if_needed()
    page.click("#save-html")
    expect(page.get_by_role("alert")).to_be_in_viewport()


def test_an_empty_text_leaves_no_note_of_another(visit: Visit, address: str) -> None:
    page = visit.open(address)
    assert page.title() == "iadvt · wordward"
    page.fill("#text", "qwertz uiop")
    expect(page.locator("#note")).to_contain_text("No word of this text")
    page.fill("#text", "")
    expect(page.locator("#note")).to_be_hidden()
    expect(page.get_by_role("status")).to_have_text("")


def test_a_typed_text_is_still_there_on_the_way_back(visit: Visit, address: str) -> None:
    page = visit.open(address)
    page.fill("#text", "this ending was bland")
    settled(page, "this ending was bland")
    page.reload()
    settled(page, "this ending was bland")
    expect(page.locator(".word")).to_have_count(4)
    visit.expected = ("404",)  # the next page has no picture of its own
    page.goto(f"{address}/openapi.json")
    page.go_back()
    settled(page, "this ending was bland")


def test_a_text_from_right_to_left_is_shown_so(visit: Visit, address: str) -> None:
    page = visit.open(address)
    page.fill("#text", "הסרט היה warm")
    expect(page.locator(".word")).to_have_count(3)
    first, last = (page.locator(".word").nth(number).bounding_box() for number in (0, 2))
    assert first is not None
    assert last is not None
    assert first["x"] > last["x"]
    page.fill("#text", TEXT)
    expect(page.locator("#sentence")).to_have_css("direction", "ltr")


def test_what_is_almost_certain_is_not_called_certain(visit: Visit, address: str) -> None:
    page = visit.open(address)

    def surely(route: Any) -> None:
        answer = route.fetch()
        found = answer.json() | {"predicted": "good", "probabilities": {"good": 0.9996, "bad": 0.0004}}
        found["places"][0]["pulls"] = [{"toward": "bold", "strength": 1e-4, "relative": 1e-3, "cosine": 0.1}]
        route.fulfill(response=answer, json=found)

    page.route("**/api/explain", surely)
    page.fill("#text", "this story was dull")
    expect(page.locator(".chance .number")).to_have_text([">99.9 %", "<0.1 %"])
    expect(page.locator("#ladder .bar .amount").first).to_have_text("<0.01")


def test_labels_that_are_left_out_are_counted(visit: Visit, address: str) -> None:
    page = visit.open(address)
    chances = {f"label {number}": 1 / 9 for number in range(9)}

    def many(route: Any) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"predicted": "label 0", "probabilities": chances})

    page.route("**/api/explain", many)
    page.fill("#text", "this story was dull")
    expect(page.locator(".prediction .left")).to_have_text("and 3 labels less likely")
    expect(page.locator(".chance")).to_have_count(6)
    del chances["label 8"], chances["label 7"]
    page.fill("#text", "this ending was dull")
    expect(page.locator(".chance")).to_have_count(7)
    expect(page.locator(".prediction .left")).to_have_count(0)


def test_the_legend_says_what_numbers_and_dots_are(visit: Visit, address: str) -> None:
    page = visit.open(address)
    legend = page.locator("#legend")
    expect(legend).to_contain_text("the number is its strength relative to the text’s strongest")
    expect(legend).not_to_contain_text("Dotted")
    page.fill("#text", "this story was qwertz")
    expect(legend).to_contain_text("Dotted words are not in the model’s vocabulary.")


def test_on_paper_stands_what_was_found_and_no_button(visit: Visit, address: str) -> None:
    page = visit.open(address)
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator("body")).to_have_css("color", "rgb(32, 36, 43)")  # white paper needs dark ink
    for control in ("#text", "#undo", "#attack", "#method", "#save-html"):
        expect(page.locator(control)).to_be_hidden()
    for found in ("#predictions", "#sentence", "#legend", "#ladder .bar >> nth=0"):
        expect(page.locator(found)).to_be_visible()
    expect(page.locator("#predictions")).to_have_css("position", "static")
