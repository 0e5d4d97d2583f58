"""The page in one file: its markup, its policy, its size, and that nothing in it is alive that should not be."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

import pytest

from chargehand.events import Event
from chargehand.text.redaction import Redactor
from chargehand.trace import to_html
from chargehand.trace.elements import inert_json
from chargehand.trace.pack_page import asset, page_modules
from tests.trace.hostile import HARMLESS, HOSTILE
from tests.trace.sample import many, plan, sample

KEPT = {"run", "kind", "status"}


class Page(HTMLParser):
    """What a browser would make of the page: elements, attributes, scripts, visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[str] = []
        self.text: list[str] = []
        self._in = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._in = tag

    def handle_endtag(self, tag: str) -> None:
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in == "script":
            self.scripts.append(data)
        elif self._in != "style":
            self.text.append(data)

    def attributes(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.elements if name in attributes]


def poisoned(value: Any, poison: str) -> Any:
    """Every text in a value with something hostile after it; ids and words of ours stay."""
    match value:
        case str():
            return value if value in {task.id for task in plan().tasks} else f"{value}{poison}"
        case dict():
            return {k: v if k in KEPT | {"strategy", "mode"} else poisoned(v, poison) for k, v in value.items()}
        case list():
            return [poisoned(each, poison) for each in value]
        case _:
            return value


def _visible(page: Page) -> str:
    return " ".join("".join(page.text).split())


def _state(html: str) -> Any:
    """What the page's own modules draw."""
    return json.loads(Page(html).scripts[0])["state"]


def test_what_matters_most_is_there_without_scripts() -> None:
    """Request, status, answer, gaps, and each task with its result are in the markup itself."""
    text = _visible(Page(to_html(sample(), Redactor())))
    for words in (
        "partial",
        "Oslo suits a small data team better",
        "The provider was overloaded.",
        "t3researcherfailed",
        "t3: The provider was overloaded.",
        "Inhabitants of Bergen · resolved291,940 (2024) [t2]289,330 (2023) [t1]",
    ):
        assert words in text, words


def test_the_modules_become_one_script() -> None:
    """No import or export is left, so that a file opens without a server, and no module is used before it is made."""
    html = to_html(sample(), Redactor())
    script = Page(html).scripts[1]
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)
    made = set[str]()
    for name, is_made in re.findall(r'modules\["([\w.]+)"\]( = )?', script):
        assert is_made or name in made, name
        made.add(name)
    assert {path.name for path in files("chargehand.trace.page").iterdir() if path.name.endswith(".js")} == made
    assert sum(len(asset(name)) for name in page_modules()) < 200_000


def test_the_page_asks_for_nothing_from_elsewhere() -> None:
    """No source, no link to a resource, no import; the policy forbids every request."""
    html = to_html(sample(), Redactor())
    page = Page(html)
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in page.elements}
    assert page.attributes("src") == page.attributes("style") == page.attributes("srcset") == []
    assert all(address.startswith("#task/") for address in page.attributes("href"))
    assert not re.search(r"@import|https?://", html.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", ""))
    assert "url(" not in html
    (policy,) = (a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


@pytest.mark.parametrize("poison", HOSTILE)
def test_hostile_text_is_inert(poison: str) -> None:
    """Text of models and tools makes no element, attribute, link or script, wherever it stands."""
    clean = Page(to_html([event.with_data(poisoned(event.data, HARMLESS)) for event in sample()], Redactor()))
    dirty_events = [event.with_data(poisoned(event.data, poison)) for event in sample()]
    html = to_html(dirty_events, Redactor())
    dirty = Page(html)
    assert {tag for tag, _ in dirty.elements} <= {tag for tag, _ in clean.elements}
    names = {name for _, attributes in clean.elements for name in attributes}
    assert {name for _, attributes in dirty.elements for name in attributes} <= names | {"rel"}
    assert all(re.match(r"#task/t\d+$|https://", address) for address in dirty.attributes("href"))
    assert len(dirty.scripts) == len(clean.scripts) == 2
    assert dirty.scripts[1] == clean.scripts[1]
    assert _state(html)["run"] == sample()[0].run
    assert "\u2028" not in dirty.scripts[0]


def test_json_in_a_script_element_cannot_end_it() -> None:
    """It is still the same JSON."""
    value = {"a": "</script><!--\u2028&"}
    assert json.loads(inert_json(value)) == value
    assert not set("<>&\u2028") & set(inert_json(value))


def test_secrets_do_not_reach_the_page() -> None:
    """Neither whole nor in part, in no place: answer, outputs, events, the data for scripts."""
    secret = "correct-horse-battery-staple-9"
    events = [event.with_data(poisoned(event.data, f" {secret}")) for event in sample()]
    html = to_html(events, Redactor([secret]))
    assert "[redacted]" in html
    assert "correct-horse" not in html
    assert "staple-9" not in html


def test_a_status_known_from_outside_is_shown() -> None:
    """A record that just stops is a run whose process died: the caller knows, the page says."""
    html = to_html(sample()[:20], Redactor(), status="interrupted")
    assert _state(html)["status"] == "interrupted"
    assert "There is no answer on the record." in html


def test_a_page_can_be_made_at_every_event() -> None:
    """However early the record stops, there is a page."""
    events = sample()
    for end in range(0, len(events) + 1, 3):
        assert "</html>" in to_html(events[:end], Redactor())


def test_size_does_not_grow_faster_than_the_run() -> None:
    """Per task the page does not grow with their number."""
    fifty, hundreds = (len(to_html(many(number), Redactor())) for number in (50, 500))
    assert hundreds < 10 * fifty


@pytest.mark.slow
def test_size_is_bounded_and_details_of_tasks_that_went_wrong_are_kept_first() -> None:
    """Of 1,500 tasks of 8 kB each the page brings what has room; failures keep their details."""
    events = many(1_500, "x" * 8_000)
    last = next(event for event in reversed(events) if event.kind == "task_ended")
    outcome = last.data["outcome"] | {"status": "failed", "error": {"kind": "timeout", "message": "Too slow."}}
    html = to_html([_with(event, outcome) if event == last else event for event in events], Redactor())
    assert len(html) < 40_000_000
    data = json.loads(Page(html).scripts[0])
    assert len(data["state"]["tasks"]) == 1_500
    assert len(data["details"]) < 1_500
    assert len(data["events"]) == 2_000
    assert data["details"][last.task]["outcome"]["status"] == "failed"


def _with(event: Event, outcome: dict[str, Any]) -> Event:
    return event.with_data({"outcome": outcome})
