"""The live page in Chromium: start a run with approval, edit nothing, approve, watch it end, open a task."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.pace import PATIENCE_S
from tests.server.serving import TOKEN, Client
from tests.trace.browser import browser, needs_chromium, open_window

__all__ = ["browser"]

pytestmark = [needs_chromium, pytest.mark.slow]


def test_a_run_is_started_approved_and_watched_in_the_page(client: Client, browser: Browser) -> None:
    """From the list of runs to the answer and to what a worker was asked, without a reload."""
    own = f"http://127.0.0.1:{client.port}/"
    window = open_window(browser, f"{own}?token={TOKEN}", own)
    page = window.page
    page.set_default_timeout(PATIENCE_S * 1000)
    page.locator("summary:has-text('Start a run')").click()
    page.locator("textarea[name=request]").fill("Do both parts")
    page.get_by_label("Show me the plan before it runs").check()
    page.get_by_role("button", name="Start").click()
    page.wait_for_selector(".question")
    assert "Approve the plan" in window.words(".question")
    page.get_by_role("button", name="Approve").click()
    page.wait_for_selector(".pill.r-complete")
    assert "All is done" in window.words(".answer")
    assert page.locator(".question").count() == 0
    page.locator(".answer a.cite").first.click()
    page.wait_for_selector(".attempt-part")
    assert "Do the first part" in window.words(".drawer")
    page.locator("a.brand").click()
    page.wait_for_selector(".run")
    assert "Do both parts" in window.words(".runs")
    assert window.problems == []
