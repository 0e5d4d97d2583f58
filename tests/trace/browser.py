"""Debian's Chromium, driven by Playwright: one for all tests of a module, a fresh window for each."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request, sync_playwright

from tests.pace import PATIENCE_S

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium")


@dataclass
class Window:
    """A page in the browser, and everything that happened which should not."""

    page: Page
    problems: list[str] = field(default_factory=list[str])

    def words(self, selector: str = "body") -> str:
        """What a reader sees, on one line."""
        return " ".join(self.page.locator(selector).first.inner_text().split())


# Not for the whole session: while it is open, its thread has a running event loop, which other tests start themselves.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    with sync_playwright() as playwright:
        # Tests may run as root, where Chromium refuses its own sandbox.
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE_S * 1000)
        yield started
        started.close()


def open_window(browser: Browser, address: str, own: str, **options: Any) -> Window:
    """Open an address. Requests that do not begin with `own`, dialogs and errors of scripts are problems."""
    page = browser.new_page(**options)
    page.set_default_timeout(PATIENCE_S * 1000)
    window = Window(page)

    def requested(request: Request) -> None:
        if not request.url.startswith(own):
            window.problems.append(f"request {request.url}")

    page.on("request", requested)
    page.on("pageerror", lambda error: window.problems.append(f"error {error}"))
    page.on("console", lambda said: window.problems.append(said.text) if said.type == "error" else None)
    page.on("dialog", lambda dialog: (window.problems.append("dialog"), dialog.dismiss()))
    page.goto(address)
    page.wait_for_selector(".figures, .runs", state="attached")
    return window


def open_file(browser: Browser, file: Path, html: str, fragment: str = "", **options: Any) -> Window:
    """Open a packed page."""
    file.write_text(html, encoding="utf-8")
    return open_window(browser, f"{file.as_uri()}{fragment}", file.as_uri(), **options)


def serious_violations(page: Page) -> list[tuple[str, str]]:
    """What axe finds that keeps people from using the page: the rule and an element."""
    found = Axe().run(page).response["violations"]
    return [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")]
