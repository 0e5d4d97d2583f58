"""A run of `chargehand demo` -> docs/images: its page and its terminal, light and dark, and what `serve` shows of it.

Needs tmux and Chromium.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, TerminalTheme
from rich.text import Text

from chargehand.apps import demo

SCRIPT = Path(demo.__file__).with_name("script.json")
IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
COLUMNS, LINES = 100, 70
PATIENCE_S = 60
Scheme = Literal["light", "dark"]
# Black to white, then the same brighter, as terminals number them.
_DARK = ["484f58", "ff7b72", "3fb950", "d29922", "58a6ff", "bc8cff", "39c5cf", "b1bac4"]
_BRIGHT = ["6e7681", "ffa198", "56d364", "e3b341", "79c0ff", "d2a8ff", "56d4dd", "f0f6fc"]


def rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colour)
    return red, green, blue


# The theme's own background is that of the page: whatever says "the usual colours" gets these.
COLOURS = {
    "light": ("#ffffff", "#1f2328", DEFAULT_TERMINAL_THEME),
    "dark": (
        "#0d1117",
        "#d1d7e0",
        TerminalTheme(rgb("0d1117"), rgb("d1d7e0"), [*map(rgb, _DARK)], [*map(rgb, _BRIGHT)]),
    ),
}
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as name, sync_playwright() as playwright:
        seen = watch_demo(Path(name))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme in SCHEMES:
            page = new_page(browser, scheme)
            page.goto((Path(name) / "chargehand-demo" / "page.html").as_uri())
            page.screenshot(path=IMAGES / f"demo-page-{scheme}.png", full_page=True)
            # Another page: the policy of the first one lets no other styles in.
            page = new_page(browser, scheme)
            page.set_content(terminal_page(seen, scheme))
            page.locator("pre").screenshot(path=IMAGES / f"demo-terminal-{scheme}.png")
        show_server(Path(name), new_page(browser, "light"))
        browser.close()


def new_page(browser: Browser, scheme: Scheme) -> Page:
    return browser.new_page(viewport={"width": 1120, "height": 860}, color_scheme=scheme)


def show_server(folder: Path, page: Page) -> None:
    """The list of runs with a plan to approve, and a task of the demo's run beside the rest."""
    environment = os.environ | {"CHARGEHAND_HOME": str(folder / "home"), "CHARGEHAND_MODEL": f"scripted:{SCRIPT}"}
    command = [str(Path(sys.executable).with_name("chargehand")), "serve", "--port", "0"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            opened = next(line for line in server.stderr if line.startswith("Open ")).removeprefix("Open ").strip()
            page.goto(opened)
            runs = f"{opened.partition('?')[0]}api/v1/runs"
            body = {"request": demo.REQUEST, "plan": page.request.get(f"{runs}/last").json()["plan"], "approve": True}
            page.request.post(runs, data=body, headers={"origin": opened.partition("/?")[0]})
            page.wait_for_selector(".inbox .question")
            page.wait_for_selector(".run >> nth=1")
            page.screenshot(path=IMAGES / "serve-runs.png", full_page=True)
            page.locator(".run").nth(1).click()
            page.wait_for_selector(".timeline a.row")
            page.set_viewport_size({"width": 1600, "height": 900})
            page.locator(".answer a.cite").first.click()
            page.locator(".call-part summary").first.click()
            page.screenshot(path=IMAGES / "serve-task.png")
        finally:
            server.terminate()


def watch_demo(folder: Path) -> str:
    """The screen of a terminal of 100 columns after the demo, with its colours, without what to do next."""
    tmux = ["tmux", "-L", f"pictures-{os.getpid()}"]
    demo = f"{Path(sys.executable).with_name('chargehand')} demo"
    command = f"{demo}; {' '.join(tmux)} wait-for -S done; sleep {PATIENCE_S}"
    given = ["-e", f"CHARGEHAND_HOME={folder / 'home'}", "-c", str(folder)]
    subprocess.run([*tmux, "new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), *given, command], check=True)
    try:
        subprocess.run([*tmux, "wait-for", "done"], check=True, timeout=PATIENCE_S)
        shown = subprocess.run([*tmux, "capture-pane", "-e", "-p"], check=True, capture_output=True, text=True).stdout
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    lines = shown.splitlines()
    last = next(number for number, line in enumerate(lines) if Text.from_ansi(line).plain.startswith("next "))
    return "\n".join(["$ chargehand demo", *lines[:last]])


def terminal_page(shown: str, scheme: Scheme) -> str:
    back, text, theme = COLOURS[scheme]
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(shown))
    style = f"background: {back}; color: {text}; font: 14px/1.35 'DejaVu Sans Mono', monospace; padding: 14px 18px"
    layout = f'<body style="margin: 0"><pre style="{style}; margin: 0; display: inline-block">{{code}}</pre></body>'
    return console.export_html(theme=theme, inline_styles=True, code_format=layout)


if __name__ == "__main__":
    main()
