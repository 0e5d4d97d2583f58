"""Runs of every size and in every state -> build/looks: pictures of the page, 400 to 1,600 px wide, light and dark.

`python -m scripts.looks [WORD]...` takes only the pictures whose names have one of the words; the home is made once.
Needs Chromium.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from scripts.look_runs import LIVE, REQUEST, ROOT, Maker, twelve_tasks, write_material
from tests.server.server_process import ServerProcess, server_process
from tests.server.serving import TOKEN
from tests.trace.browser import CHROMIUM

LOOKS = ROOT / "build" / "looks"
WIDTHS = (400, 900, 1_600)
HEIGHTS = {400: 860, 900: 1_000, 1_600: 1_000}
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
# A higher page is cut off.
MOST_HEIGHT = 2_600
Act = Callable[[Page], None]


@dataclass(frozen=True)
class Look:
    """One page: its address below the server's, what is done on it first, and whether all of its height is taken."""

    name: str
    path: str
    act: Act | None = None
    whole: bool = True
    # Only a narrow dark and a wide light one.
    few: bool = False

    @property
    def forms(self) -> list[tuple[int, Scheme]]:
        return [(400, "dark"), (1_600, "light")] if self.few else [(w, s) for w in WIDTHS for s in SCHEMES]


def click(*selectors: str) -> Act:
    def act(page: Page) -> None:
        for selector in selectors:
            page.locator(selector).first.click()
        page.wait_for_timeout(300)

    return act


def edit_plan(page: Page) -> None:
    page.locator("summary:has-text('Edit the plan')").click()
    text = page.get_by_label("Plan as JSON")
    plan = json.loads(text.input_value())
    plan["tasks"][0] |= {"instruction": "Find how many analysts live in Oslo and its suburbs.", "worker": "nobody"}
    plan["tasks"].pop(5)
    text.fill(json.dumps(plan, indent=2))
    page.wait_for_selector(".diff")


def find_events(page: Page) -> None:
    page.locator("summary:has-text('Events')").click()
    page.get_by_label("Find events").fill("attempt_ended failed")
    page.wait_for_timeout(400)
    page.locator(".row.event").first.click()
    page.wait_for_selector(".event-data:not([hidden])")


def fill_start(page: Page) -> None:
    page.locator("summary:has-text('Start a run')").click()
    page.locator("textarea[name=request]").fill(REQUEST)


def open_first_call(page: Page) -> None:
    page.wait_for_selector(".call-part")
    for kind in ("model", "tool"):
        page.locator(f".call-part.{kind} summary").last.click()


def looks(runs: dict[str, str]) -> list[Look]:
    def of(name: str, extra: str = "") -> str:
        return f"runs/{runs[name]}{extra}"

    sizes = ("one", "complete", "300", "5000")
    waiting = ("running", "plan", "question", "form", "tool", "provider", "paused", "interrupted")
    ended = ("cancelled", "partial", "failed", "review", "nested", "forked")
    return [
        *(Look(f"run-{name}", of(name)) for name in (*sizes, *waiting, *ended)),
        Look("runs-many", ""),
        Look("runs-start", "", fill_start),
        Look("runs-none-fits", "?", lambda page: page.get_by_label("Find runs").fill("zebra"), few=True),
        Look("plan-edited", of("plan"), edit_plan),
        Look("task-running", of("running", "#task/oslo-people"), open_first_call, whole=False),
        Look("task-partial", of("partial", "#task/gateway"), open_first_call, whole=False),
        Look("task-attempts", of("partial", "#task/hosts"), whole=False),
        Look("task-escalated", of("partial", "#task/mails"), whole=False, few=True),
        Look("task-nested", of("nested", "#task/t1/1/counts"), whole=False, few=True),
        Look("graph-12", of("complete"), click("button:text-is('Graph')")),
        Look("graph-300", of("300"), click("button:text-is('Graph')"), few=True),
        Look("graph-5000", of("5000"), click("button:text-is('Graph')"), few=True),
        Look("group-open", of("300"), click(".row.group"), few=True),
        Look("events", of("partial"), find_events),
        Look("menu-fork", of("partial"), click(".menu summary:has-text('Fork')"), whole=False),
        Look("menu-top-up", of("paused"), click(".menu summary:has-text('Top up')"), whole=False, few=True),
        Look("menu-export", of("partial"), click(".menu summary:has-text('Export')"), whole=False, few=True),
        Look("keys", of("partial"), lambda page: page.keyboard.press("?"), whole=False, few=True),
        Look("no-such-run", "runs/20200101-000000-none", whole=False, few=True),
    ]  # fmt: skip


def main() -> None:
    wanted = sys.argv[1:]
    home = LOOKS / "home"
    runs = make_home(home)
    script = {"replies": LIVE}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with server_process(LOOKS, script) as server:
            if "running" not in runs:
                runs |= make_live(server, runs["partial"])
                (LOOKS / "runs.json").write_text(json.dumps(runs))
            for look in looks(runs):
                take(browser, server, look, wanted)
            take_packed(browser, server, runs, wanted)
            take_disconnected(browser, server, runs, wanted)
        with server_process(empty_folder(), script) as server:
            take(browser, server, Look("runs-empty", ""), wanted)
        browser.close()


def empty_folder() -> Path:
    folder = LOOKS / "empty"
    folder.mkdir(exist_ok=True)
    return folder


def make_home(home: Path) -> dict[str, str]:
    """The ids of the runs by what they show; each part is made once."""
    listed = LOOKS / "runs.json"
    maker = Maker(home)
    if listed.exists():
        maker.runs = json.loads(listed.read_text())
    for last, make in (
        ("failed", maker.make_ends),
        ("5000", maker.make_sizes),
        ("form", maker.make_questions),
        ("provider", maker.make_stops),
    ):
        if last not in maker.runs:
            asyncio.run(make())
            listed.write_text(json.dumps(maker.runs))
    if "interrupted" not in maker.runs:
        maker.make_by_commands()
        listed.write_text(json.dumps(maker.runs))
    return maker.runs


def make_live(server: ServerProcess, demo: str) -> dict[str, str]:
    """Runs of the server itself: one at work, one that was cancelled, a fork."""
    client = server.client
    material = [{"name": file.name, "content": file.read_text()} for file in write_material(LOOKS / "material")]
    both = {"plan": twelve_tasks(), "material": material}
    running = client.start(request=REQUEST, tokens=300_000, deadline=1_800, **both)
    cancelled = client.start(request="Compare four cities, until somebody changes their mind", **both)
    for run in (running, cancelled):
        with client.stream(f"/api/v1/runs/{run}/stream") as events:
            next(event for event in events if '"kind": "attempt_ended"' in event["data"])
    client.post(f"/api/v1/runs/{cancelled}/cancel")
    forked = client.post(f"/api/v1/runs/{demo}/fork", {"at": "impact"}).json["run"]
    client.wait(forked)
    return {"running": running, "cancelled": cancelled, "forked": forked}


def take(browser: Browser, server: ServerProcess, look: Look, wanted: list[str], own: str | None = None) -> None:
    for width, scheme in look.forms:
        name = f"{look.name}-{width}-{scheme}"
        if wanted and not any(word in name for word in wanted):
            continue
        page = browser.new_page(
            viewport={"width": width, "height": HEIGHTS[width]},
            color_scheme=scheme,
            extra_http_headers={} if own else {"authorization": f"Bearer {TOKEN}"},
        )
        page.goto(own or f"http://127.0.0.1:{server.port}/{look.path}")
        shoot(page, look, name, width)
        page.close()


def shoot(page: Page, look: Look, name: str, width: int) -> None:
    try:
        page.wait_for_selector(".figures, .runs .run, .runs + .quiet:not(:empty), .alert", timeout=20_000)
        page.wait_for_timeout(400)
        if look.act is not None:
            page.set_default_timeout(5_000)
            look.act(page)
    except PlaywrightError as error:
        print(f"{name}: {str(error).splitlines()[0]}")
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        print(f"{name}: scrolls sideways")
    file = LOOKS / f"{name}.png"
    if look.whole:
        height = min(page.evaluate("document.documentElement.scrollHeight"), MOST_HEIGHT)
        page.screenshot(path=file, full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height})
    else:
        page.screenshot(path=file)
    print(name, flush=True)


def take_packed(browser: Browser, server: ServerProcess, runs: dict[str, str], wanted: list[str]) -> None:
    file = LOOKS / "packed.html"
    file.write_bytes(server.client.get(f"/api/v1/runs/{runs['partial']}/trace?format=html").body)
    take(browser, server, Look("packed", ""), wanted, own=file.as_uri())


def take_disconnected(browser: Browser, server: ServerProcess, runs: dict[str, str], wanted: list[str]) -> None:
    """The server dies while the page is open, and comes back."""

    def die(page: Page) -> None:
        server.kill()
        page.wait_for_selector(".pill:has-text('Not connected')")

    look = Look("run-disconnected", f"runs/{runs['running']}", die)
    for width, scheme in look.forms:
        name = f"{look.name}-{width}-{scheme}"
        if not wanted or any(word in name for word in wanted):
            take(browser, server, look, [name])
            server.start()


if __name__ == "__main__":
    main()
