"""The page in a browser: what a person does, and that no text is ever taken for markup."""

import dataclasses
import re
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from components.explaining.opened import Opened
from components.library import KnownConcept
from tests.components.serving.served import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HOSTILE = "<img src=x onerror=window.hit=1>"
NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """A browser of this machine; the tests are skipped where there is none."""
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    return found or pytest.skip(f"no browser here: none of {', '.join(NAMES)}")


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def address(opened: Opened) -> Iterator[str]:
    """A server whose second concept has a name that is markup."""
    known = list(opened.vocabulary.known)
    known[1] = KnownConcept(1, HOSTILE, HOSTILE, 0.1)
    vocabulary = dataclasses.replace(opened.vocabulary, known=tuple(known))
    with serving(dataclasses.replace(opened, vocabulary=vocabulary)) as at:
        yield at


def test_a_person_asks_looks_changes_and_compares(browser: "Browser", address: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    faults: list[str] = []
    asked: list[str] = []
    page.on("console", lambda said: faults.append(said.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "request", lambda sent: None if sent.url.startswith(address) else faults.append(sent.url)
    )
    page.goto(address)
    page.locator("#facts", has_text="6 known and 18 unknown").wait_for()
    _explains(page)
    _compares(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("window.hit") is None
    assert page.locator("img[src=x]").count() == 0
    assert faults == []
    assert all(url.startswith(address) for url in asked)
    page.close()


def _explains(page: "Page") -> None:
    page.fill("#prompt", f"the rain {HOSTILE} and ")
    page.fill("#n-new", "20")
    page.fill("#temperature", "0")
    page.press("#prompt", "Control+Enter")
    page.wait_for_selector(".chunk[aria-pressed=true]")
    assert HOSTILE in (page.text_content("#answer .prompt") or "")
    assert page.locator("#answer .prompt mark").count() > 0
    assert "every token’s logit" in (page.text_content("#concepts") or "")
    page.locator("#tab-concepts").press("ArrowRight")
    assert "without an index" in page.inner_text("#sources")
    page.click("#tab-inputs")
    assert page.locator("#inputs tbody tr").count() > 3
    assert re.search(r"tokens, \d+ passes each on average", page.inner_text("#inputs"))


def _compares(page: "Page") -> None:
    page.fill("#query", "img src")
    page.locator("#found [role=option]", has_text=HOSTILE).first.wait_for()
    page.press("#query", "Enter")
    slider = page.locator("#wishes input[type=range]")
    slider.press("ArrowLeft")
    assert page.inner_text("#wishes output") == "amplify by 7.5 logits"
    page.click("#compare")
    page.wait_for_selector("#text-after")
    assert HOSTILE in page.inner_text("#comparison")
    assert "nats a token" in page.inner_text("#comparison")


def test_refusals_are_told_and_a_token_opens_the_server(
    browser: "Browser", opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVE_TOKEN", "a-token-of-some-length")
    with serving(opened, token_reference="env:SERVE_TOKEN") as address:
        page = browser.new_page(color_scheme="dark")
        page.goto(address)
        page.fill("#prompt", "rain " * 90)
        page.click("#go")
        page.locator("#problem", has_text="asks for its token").wait_for()
        page.fill("#token", "a-token-of-some-length")
        page.press("#token", "Enter")
        page.click("#go")
        page.locator("#problem", has_text="the network reads 64 at most; shorten").wait_for()
        assert page.is_hidden("#unlock")
        assert page.is_enabled("#go")
        page.close()
