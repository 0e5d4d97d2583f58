"""The self-contained page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from chargehand.text.redaction import Redactor
from chargehand.trace import fold, to_html
from chargehand.trace.elements import inert_json
from chargehand.values.event import Event
from tests.trace.sample import Recorder, many, plan, sample

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "[click](data:text/html,<script>alert(1)</script>)",
    '"><svg onload=alert(1)>',
    "' autofocus onfocus='alert(1)",
    "\u2028alert(1)\u2029",
    "<!--<script>",
    "]]></style><style>*{display:none}</style>",
    "![i](https://tracker.invalid/p.png)",
    "$policy ${data}",
]
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


def _poisoned(value: Any, poison: str) -> Any:
    """Every text in a value with something hostile after it; ids and words of ours stay."""
    match value:
        case str():
            return value if value in {task.id for task in plan().tasks} else f"{value}{poison}"
        case dict():
            return {k: v if k in KEPT | {"strategy", "mode"} else _poisoned(v, poison) for k, v in value.items()}
        case list():
            return [_poisoned(each, poison) for each in value]
        case _:
            return value


def _visible(page: Page) -> str:
    return " ".join("".join(page.text).split())


def test_the_page_says_everything_without_scripts() -> None:
    """Status, figures, answer, gaps, plan, timeline, tasks and events are in the markup itself."""
    page = Page(to_html(sample(), Redactor()))
    text = _visible(page)
    for words in ("Partial", "5 of 8", "15.2 s", "18,620", "$0.1053", "Oslo suits a small data team better",
                  "Travel times are missing.", "Inhabitants of Bergen", "Find travel times from both cities",
                  "Each figure has a source and a year.", "transport_retry", "run_ended", "1.2 s · escalated",
                  "2 attempts", "ambiguous_input: Rent is per month"):  # fmt: skip
        assert words in text, words
    assert [a["class"] for tag, a in page.elements if tag == "svg"] == ["graph", "timeline"]


def test_every_status_is_a_word_beside_its_colour() -> None:
    """Nobody has to tell red from green: each task's status is written in list, graph and timeline."""
    text = _visible(Page(to_html(sample(), Redactor())))
    for word in ("✕ failed", "▲ escalated", "– skipped", "✓ done"):
        assert text.count(word) >= 2


def test_the_page_asks_for_nothing_from_elsewhere() -> None:
    """No source, no link to a resource, no import; the policy forbids every request."""
    html = to_html(sample(), Redactor())
    page = Page(html)
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in page.elements}
    assert page.attributes("src") == page.attributes("style") == page.attributes("srcset") == []
    assert all(address.startswith("#task-") for address in page.attributes("href"))
    assert not re.search(r"@import|https?://", html.replace("http-equiv", ""))
    assert re.findall(r"url\(([^)]*)\)", html) == ["#hatch"]
    (policy,) = (a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


@pytest.mark.parametrize("poison", HOSTILE)
def test_hostile_text_is_inert(poison: str) -> None:
    """Text of models and tools makes no element, attribute, link or script, wherever it stands."""
    clean = Page(to_html(sample(), Redactor()))
    dirty_events = [event.with_data(_poisoned(event.data, poison)) for event in sample()]
    html = to_html(dirty_events, Redactor())
    dirty = Page(html)
    assert {tag for tag, _ in dirty.elements} <= {tag for tag, _ in clean.elements}
    names = {name for _, attributes in clean.elements for name in attributes}
    assert {name for _, attributes in dirty.elements for name in attributes} <= names | {"rel"}
    assert all(re.match(r"#task-\d+$|https://", address) for address in dirty.attributes("href"))
    assert len(dirty.scripts) == len(clean.scripts) == 2
    assert dirty.scripts[1] == clean.scripts[1]
    assert json.loads(dirty.scripts[0])["run"] == sample()[0].run
    assert "\u2028" not in dirty.scripts[0]


def test_hostile_ids_make_no_anchor() -> None:
    """A task's id on the record is only text: anchors are numbers."""
    record = Recorder()
    record.note(0, "task_ready", '"><script>x</script>', worker="<b>w</b>")
    page = Page(to_html(record.events(), Redactor()))
    assert page.attributes("id") == ["hatch", "task-1", "tip", "data"]
    assert len(page.scripts) == 2
    assert "b" not in {tag for tag, attributes in page.elements if attributes}


def test_json_in_a_script_element_cannot_end_it() -> None:
    """It is still the same JSON."""
    value = {"a": "</script><!--\u2028&"}
    assert json.loads(inert_json(value)) == value
    assert not set("<>&\u2028") & set(inert_json(value))


def test_secrets_do_not_reach_the_page() -> None:
    """Neither whole nor in part, in no place: answer, outputs, events, the data for scripts."""
    secret = "correct-horse-battery-staple-9"
    events = [event.with_data(_poisoned(event.data, f" {secret}")) for event in sample()]
    html = to_html(events, Redactor([secret]))
    assert "[redacted]" in html
    assert "correct-horse" not in html
    assert "staple-9" not in html


def test_a_status_known_from_outside_is_shown() -> None:
    """A record that just stops is a run whose process died: the caller knows, the page says."""
    html = to_html(sample()[:20], Redactor(), status="interrupted")
    assert '<span class="pill r-interrupted">Interrupted</span>' in html
    assert "There is no answer on the record." in html


def test_a_page_can_be_made_at_every_event() -> None:
    """However early the record stops, there is a page."""
    events = sample()
    for end in range(0, len(events) + 1, 3):
        assert "</html>" in to_html(events[:end], Redactor())


def test_a_resumed_run_leaves_out_the_time_between() -> None:
    """Two sessions of seconds, days apart, make a timeline of seconds with a mark where it was resumed."""
    record = Recorder()
    record.start(0, "Ask")
    record.attempt(1, 2, plan().tasks[0])
    record.start(200_000, "Ask", epoch=2)
    record.attempt(200_001, 200_002, plan().tasks[1])
    text = _visible(Page(to_html(record.events(), Redactor())))
    assert "resumed" in text
    assert "4.0 s" in text
    assert fold(record.events()).elapsed_seconds() == 4.0


def test_open_questions_stand_first() -> None:
    """A run that waits for a person shows what it asks, and how to name the question."""
    record = Recorder()
    record.start(0, "Ask")
    record.note(1, "question_asked", key="@approve", question={"id": "q1", "kind": "plan", "prompt": "Run this plan?"})
    record.note(2, "run_ended", status="waiting")
    text = _visible(Page(to_html(record.events(), Redactor())))
    assert "Waiting for a person" in text
    assert text.index("Run this plan? q1") < text.index("Answer")


def test_findings_are_listed_with_their_places() -> None:
    """A review's findings, by severity, file and line."""
    record = Recorder()
    record.start(0, "Review")
    finding = {
        "severity": "critical",
        "path": "app.py",
        "line": 12,
        "message": "SQL from input",
        "suggestion": "Bind it.",
    }
    record.note(1, "run_ended", status="complete", report={"answer": "One finding.", "findings": [finding]})
    assert "critical app.py:12 SQL from input Bind it." in " ".join(Page(to_html(record.events(), Redactor())).text)


def test_size_grows_with_the_run_and_stays_readable() -> None:
    """Per task the page does not grow with their number; 2,000 tasks of 8 kB each stay far below 100 MB."""
    hundred, thousand = (len(to_html(many(number), Redactor())) for number in (100, 1000))
    assert thousand < 10 * hundred
    html = to_html(many(2_000, "x" * 8_000), Redactor())
    assert len(html) < 12_000_000
    assert "The page shows 400 of 2,000 tasks" in html
    assert "more characters in the record" in html
    assert "The page shows 2,000 of" in html


def test_tasks_that_went_wrong_are_never_left_off_the_timeline() -> None:
    """When there are too many rows, failures keep theirs."""
    events = many(600)
    last = next(event for event in reversed(events) if event.kind == "task_ended")
    outcome = last.data["outcome"] | {"status": "failed", "error": {"kind": "timeout", "message": "Too slow."}}
    html = to_html([_with(event, outcome) if event == last else event for event in events], Redactor())
    assert f'<a class="row" href="#task-{int(str(last.task)[1:]) + 1}"' in html


def _with(event: Event, outcome: dict[str, Any]) -> Event:
    return event.with_data({"outcome": outcome})
