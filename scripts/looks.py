"""Runs of every size and in every state -> build/looks: pictures of the page, 400 to 1,600 px wide, light and dark.

`python -m scripts.looks [WORD]...` takes only the pictures whose names have one of the words; the home is made once.
Needs Chromium.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from scripts.look_runs import (
    ANSWER,
    LIVE,
    REQUEST,
    ROOT,
    SIZES,
    Maker,
    done,
    plan_of,
    request_of,
    twelve_tasks,
    write_material,
)
from tests.loopback import Answer, Seen, answer_json, serving
from tests.server.server_process import ServerProcess, server_process
from tests.server.serving import TOKEN
from tests.trace.browser import CHROMIUM

LOOKS = ROOT / "build" / "looks"
WIDTHS = (400, 900, 1_600)
HEIGHTS = {400: 860, 900: 1_000, 1_600: 1_000}
Scheme = Literal["light", "dark"]
STATES = ("running", "plan", "question", "provider", "paused", "partial", "failed", "complete")
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
# A higher page is cut off.
MOST_HEIGHT = 2_600
HEADERS = {"authorization": f"Bearer {TOKEN}"}
PRICED = "openai:gpt-4.1"
WRITING = "Describe four cities at length, each in ten parts"
Act = Callable[[Page], None]


@dataclass(frozen=True)
class Look:
    """One page: its address below the server's, what is done on it first, and whether all of its height is taken."""

    name: str
    path: str
    act: Act | None = None
    whole: bool = True
    # Only narrow and wide.
    few: bool = False

    @property
    def forms(self) -> list[tuple[int, Scheme]]:
        return [(w, s) for w in WIDTHS for s in SCHEMES if not self.few or w != 900]


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

    others = ("tool", "form", "interrupted", "cancelled", "demo", "review", "nested", "forked", "priced")
    return [
        *(Look(f"run-{state}-{number}", of(f"{state}-{number}")) for state in STATES for number in SIZES),
        *(Look(f"run-{name}", of(name)) for name in others),
        Look("runs-many", "", lambda page: page.wait_for_selector(".inbox .question") and None),
        Look("runs-start", "", fill_start),
        Look("runs-none-fits", "?", lambda page: page.get_by_label("Find runs").fill("zebra"), few=True),
        Look("plan-edited", of("plan-12"), edit_plan),
        Look("task-running", of("running-12", "#task/oslo-people"), open_first_call, whole=False),
        Look("task-partial", of("demo", "#task/gateway"), open_first_call, whole=False),
        Look("task-attempts", of("demo", "#task/hosts"), whole=False),
        Look("task-escalated", of("demo", "#task/mails"), whole=False, few=True),
        Look("task-long", of("partial-1", "#task/oslo"), open_first_call, whole=False, few=True),
        Look("task-nested", of("nested", "#task/t1/1/counts"), whole=False, few=True),
        Look("graph-12", of("complete-12"), click("button:text-is('Graph')")),
        Look("graph-300", of("complete-300"), click("button:text-is('Graph')"), few=True),
        Look("graph-5000", of("complete-5000"), click("button:text-is('Graph')"), few=True),
        Look("group-open", of("partial-300"), click(".row.group"), few=True),
        Look("events", of("demo"), find_events),
        Look("menu-fork", of("demo"), click(".menu summary:has-text('Fork')"), whole=False),
        Look("menu-top-up", of("paused-12"), click(".menu summary:has-text('Top up')"), whole=False, few=True),
        Look("menu-export", of("demo"), click(".menu summary:has-text('Export')"), whole=False, few=True),
        Look("keys", of("demo"), lambda page: page.keyboard.press("?"), whole=False, few=True),
        Look("no-such-run", "runs/20200101-000000-none", whole=False, few=True),
    ]  # fmt: skip


def main() -> None:
    wanted = sys.argv[1:]
    runs = make_home(LOOKS / "home")
    script = {"replies": LIVE}
    with sync_playwright() as playwright, serving(answer_as_provider) as provider:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        url = f"{provider.url}/v1"
        with server_process(LOOKS, script, OPENAI_BASE_URL=url, OPENAI_API_KEY="of nobody") as server:
            if "priced" not in runs:
                runs |= make_live(server, runs["demo"])
                (LOOKS / "runs.json").write_text(json.dumps(runs))
            for look in looks(runs):
                take(browser, server, look, wanted)
            take_writing(browser, server, wanted)
            take_packed(browser, server, runs, wanted)
            take_disconnected(browser, server, runs, wanted)
        with server_process(empty_folder(), script) as server:
            take(browser, server, Look("runs-empty", ""), wanted)
        browser.close()


def answer_as_provider(seen: Seen) -> Answer:
    """A provider whose prices are known; of a long text it writes on while one looks."""
    usage = (1_400, 900, 600)
    if seen.role != "synthesizer":
        return answer_json(done("The figure is 717,710 (2024).")["json"], usage=usage)
    if WRITING not in seen.text:
        return Answer(ANSWER, usage=usage)
    parts = (f"## Part {number}\n\n{ANSWER.partition('What speaks')[0]}" for number in range(1, 40))
    return Answer("\n".join(parts), usage=usage, drip=0.08)


def take_writing(browser: Browser, server: ServerProcess, wanted: list[str]) -> None:
    """The answer is being written in each picture; a run is started for each of them."""

    def see_text(page: Page) -> None:
        page.wait_for_function("() => document.querySelector('.draft')?.textContent.length > 900", timeout=60_000)

    look = Look("run-writing", "", see_text)
    for width, scheme in look.forms:
        name = f"{look.name}-{width}-{scheme}"
        if not wanted or any(word in name for word in wanted):
            run = server.client.start(request=WRITING, model=PRICED, usd=5, deadline=1_800, plan=twelve_tasks())
            take(browser, server, replace(look, path=f"runs/{run}"), [name])
            server.client.post(f"/api/v1/runs/{run}/cancel")


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
    (maker.home / "config.toml").write_text(f'max_tasks = 5000\n[serve]\nmodels = ["{PRICED}"]\n')
    for last, make in (
        ("one", maker.make_list),
        *((f"paused-{number}", partial(maker.make_states, number)) for number in SIZES),
        ("form", maker.make_questions),
    ):
        if last not in maker.runs:
            asyncio.run(make())
            listed.write_text(json.dumps(maker.runs))
    if "interrupted" not in maker.runs:
        maker.make_by_commands()
        listed.write_text(json.dumps(maker.runs))
    return maker.runs


def make_live(server: ServerProcess, demo: str) -> dict[str, str]:
    """Runs of the server itself: some at work, one that was cancelled, a fork, one with prices."""
    client = server.client
    material = [{"name": file.name, "content": file.read_text()} for file in write_material(LOOKS / "material")]
    both = {"plan": twelve_tasks(), "material": material}
    made = {
        f"running-{number}": client.start(
            request=request_of(number), plan=plan_of(number), material=material, tokens=50_000_000, deadline=3_600
        )
        for number in SIZES
    }
    made["cancelled"] = client.start(request="Compare four cities, until somebody changes their mind", **both)
    for name, ended in (("running-12", 4), ("running-300", 250), ("running-5000", 2_000), ("cancelled", 1)):
        with client.stream(f"/api/v1/runs/{made[name]}/stream") as events:
            seen = (event for event in events if '"kind": "attempt_ended"' in event["data"])
            list(islice(seen, ended))
    client.post(f"/api/v1/runs/{made['cancelled']}/cancel")
    made["forked"] = client.post(f"/api/v1/runs/{demo}/fork", {"at": "impact"}).json["run"]
    made["priced"] = client.start(request=f"{REQUEST}, for two dollars", model=PRICED, usd=2, **both)
    for name in ("forked", "priced"):
        client.wait(made[name])
    return made


def take(browser: Browser, server: ServerProcess, look: Look, wanted: list[str], own: str | None = None) -> None:
    for width, scheme in look.forms:
        name = f"{look.name}-{width}-{scheme}"
        if wanted and not any(word in name for word in wanted):
            continue
        page = open_page(browser, width, scheme, {} if own else HEADERS)
        page.goto(own or f"http://127.0.0.1:{server.port}/{look.path}")
        shoot(page, look, name, width)
        page.close()


def open_page(browser: Browser, width: int, scheme: Scheme, headers: dict[str, str]) -> Page:
    viewport: ViewportSize = {"width": width, "height": HEIGHTS[width]}
    return browser.new_page(viewport=viewport, color_scheme=scheme, extra_http_headers=headers)


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
    file.write_bytes(server.client.get(f"/api/v1/runs/{runs['demo']}/trace?format=html").body)
    take(browser, server, Look("packed", ""), wanted, own=file.as_uri())


def take_disconnected(browser: Browser, server: ServerProcess, runs: dict[str, str], wanted: list[str]) -> None:
    """The server dies while pages are open, and comes back."""
    look = Look("run-disconnected", "", lambda page: page.wait_for_selector(".pill:has-text('Not connected')") and None)
    for width, scheme in look.forms:
        pages: dict[str, Page] = {}
        for number in SIZES:
            name = f"{look.name}-{number}-{width}-{scheme}"
            if not wanted or any(word in name for word in wanted):
                pages[name] = page = open_page(browser, width, scheme, HEADERS)
                page.goto(f"http://127.0.0.1:{server.port}/runs/{runs[f'running-{number}']}")
                page.wait_for_selector(".pill.r-running")
        if pages:
            server.kill()
            for name, page in pages.items():
                shoot(page, look, name, width)
                page.close()
            server.start()


if __name__ == "__main__":
    main()
