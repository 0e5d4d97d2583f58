"""The packed page in Chromium: what a reader sees, keys, addresses, hostile text, accessibility, size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from chargehand.text.redaction import Redactor
from chargehand.trace import to_html
from chargehand.values.outcome import failed
from chargehand.values.plan import Plan, Task
from tests.counts import SOAK
from tests.pace import Timed
from tests.trace.browser import Window, browser, needs_chromium, open_file, serious_violations
from tests.trace.hostile import HARMLESS, HOSTILE
from tests.trace.sample import MODEL, Recorder, many, plan, sample
from tests.trace.test_packed_page import poisoned

__all__ = ["browser"]

pytestmark = [needs_chromium, pytest.mark.slow]
# What a first paint may take here, on a busy machine too.
PAINT_S = 20.0


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Path:
    return tmp_path / "run.html"


def test_the_page_shows_the_run(browser: Browser, file: Path) -> None:
    """Status in a sentence, figures, answer, gaps, contradictions, and each task's status as a word."""
    window = open_file(browser, file, to_html(sample(), Redactor()))
    text = window.words()
    for words in (
        "Partial",
        "5 of 8 tasks done, 1 failed, 1 escalated, 1 skipped",
        "18,620",
        "$0.1053",
        "78 of 100",
        "Travel times are missing.",
        "Oslo suits a small data team better",
        "Inhabitants of Bergen",
        "✕ failed",
        "▲ escalated",
        "⊘ skipped",
        "planner",
        "synthesizer",
    ):
        assert words in text, words
    assert window.problems == []


def test_a_task_an_attempt_and_an_event_have_an_address(browser: Browser, file: Path) -> None:
    """Opened by its address, a task shows its attempts with their errors; the way back closes it."""
    html = to_html(sample(), Redactor())
    window = open_file(browser, file, html, "#task/t4@2")
    drawer = window.words(".drawer")
    for words in (
        "Each figure has a source and a year.",
        "Attempt 1 · analyst · failed",
        "`ratio` is missing",
        "Attempt 2 · analyst · done",
        "recovery: contract",
    ):
        assert words in drawer, words
    assert window.page.locator("[data-attempt='2']").get_attribute("open") is not None
    window.page.keyboard.press("Escape")
    assert window.page.locator(".drawer").is_hidden()
    again = open_file(browser, file, html, "#event/3")
    again.page.wait_for_selector(".event-data:not([hidden])")
    assert '"seq": 3' in again.words(".event-data")
    assert window.problems == again.problems == []


def test_the_keyboard_is_enough(browser: Browser, file: Path) -> None:
    """j and k walk the tasks, Enter opens one, / finds, g draws the graph, ? lists the keys."""
    window = open_file(browser, file, to_html(sample(), Redactor()))
    keys = window.page.keyboard
    keys.press("j")
    keys.press("j")
    keys.press("Enter")
    window.page.wait_for_selector(".drawer:not([hidden]) h2")
    assert window.words(".drawer h2") == "t2"
    keys.press("Escape")
    keys.press("g")
    assert window.page.locator("svg.graph a.node").count() == 8
    keys.press("g")
    keys.press("/")
    keys.type("rent")
    window.page.wait_for_function("document.querySelectorAll('.timeline a.row').length < 8")
    keys.press("Escape")
    window.page.locator("h1").click()
    keys.press("?")
    assert "next, previous task" in window.words("dialog")
    assert window.problems == []


@pytest.mark.parametrize("first", range(0, len(HOSTILE), 25))
def test_hostile_text_does_nothing(browser: Browser, file: Path, first: int) -> None:
    """In every field of every event: no dialog, no request, no element that text could have made."""
    clean = _elements(open_hostile(browser, file, HARMLESS))
    texts = HOSTILE[first : first + 25]
    # One by one in a soak, else five after each other.
    for poison in texts if SOAK else ("\n\n".join(texts[at : at + 5]) for at in range(0, len(texts), 5)):
        window = open_hostile(browser, file, poison)
        made = {each: number for each, number in _elements(window).items() if each not in clean}
        assert made == {}, poison
        assert window.page.locator("script").count() == 2, poison
        assert window.problems == [], poison
        window.page.close()


def open_hostile(browser: Browser, file: Path, poison: str) -> Window:
    """A run whose every text ends with something hostile, its task, calls and events unfolded."""
    events = [event.with_data(poisoned(event.data, poison)) for event in sample()]
    window = open_file(browser, file, to_html(events, Redactor()), "#task/t4")
    window.page.wait_for_selector(".attempt-part")
    window.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    window.page.wait_for_selector(".row.event")
    return window


def _elements(window: Window) -> dict[str, int]:
    """How often each element with each attribute is in the page."""
    return window.page.evaluate("""() => {
        const found = {};
        for (const each of document.querySelectorAll("*"))
            for (const name of ["", ...each.getAttributeNames()])
                found[`${each.localName} ${name}`] = (found[`${each.localName} ${name}`] ?? 0) + 1;
        return found;
    }""")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_axe_finds_nothing_serious(browser: Browser, file: Path, scheme: Any, width: int) -> None:
    """The page, with a task open and without."""
    for fragment in ("", "#task/t4"):
        options: dict[str, Any] = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
        window = open_file(browser, file, to_html(sample(), Redactor()), fragment, **options)
        assert serious_violations(window.page) == []
        assert window.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"


def test_a_long_fan_out_is_one_row_that_opens(browser: Browser, file: Path) -> None:
    """1,000 equal tasks are a group with counts; opened, only rows in sight are elements."""
    options: dict[str, Any] = {"viewport": {"width": 900, "height": 900}}
    with Timed() as timed:
        window = open_file(browser, file, to_html(many(1_000), Redactor()), **options)
    assert timed.within(PAINT_S)
    assert window.page.evaluate(
        "[...document.querySelectorAll('dd')].every((each) => each.scrollWidth <= each.clientWidth)"
    )
    assert "✓ 1,000 done" in window.words(".row.group")
    window.page.locator(".row.group").click()
    window.page.wait_for_selector(".timeline a.row")
    assert window.page.locator(".timeline a.row").count() < 200
    window.page.locator("summary:has-text('Events')").click()
    window.page.get_by_label("Find events").fill("attempt_ended")
    window.page.wait_for_selector("[role=status]:has-text(' of 2,000 events')")
    assert window.page.locator(".row.event b:not(:text-is('attempt_ended'))").count() == 0
    assert window.problems == []


def test_events_are_found_by_words_in_any_field(browser: Browser, file: Path) -> None:
    """How many there are is said, also when there is none; an address of another event shows all of them again."""
    window = open_file(browser, file, to_html(sample(), Redactor()))
    page = window.page
    page.locator("summary:has-text('Events')").click()
    page.wait_for_selector(".row.event")
    words = page.get_by_label("Find events")
    words.fill("T4 attempt_ended")
    page.wait_for_selector("[role=status]:has-text(' of ')")
    rows = [" ".join(row.inner_text().split()) for row in page.locator(".row.event").all()]
    assert [("attempt_ended" in row, "t4" in row) for row in rows] == [(True, True)] * 2
    assert window.words("section:has(.event) [role=status]") == f"2 of {len(sample())} events"
    words.fill("no such words")
    page.wait_for_selector("[role=status]:has-text('No event has these words.')")
    assert page.locator(".row.event").count() == 0
    page.evaluate("location.hash = 'event/3'")
    page.wait_for_selector(".event-data:not([hidden])")
    assert (words.input_value(), '"seq": 3' in window.words(".event-data")) == ("", True)
    assert window.problems == []


def test_a_resumed_run_leaves_out_the_time_between(browser: Browser, file: Path) -> None:
    """Two sessions of seconds, days apart, make a timeline of seconds with a mark where it was resumed."""
    record = Recorder()
    record.start(0, "Ask")
    record.attempt(1, 2, plan().tasks[0])
    record.start(200_000, "Ask", epoch=2)
    record.attempt(200_001, 200_002, plan().tasks[1])
    window = open_file(browser, file, to_html(record.events(), Redactor(), status="interrupted"))
    assert "resumed" in window.words(".axis")
    assert "4.0 s" in window.words(".figures")


def test_open_questions_come_first(browser: Browser, file: Path) -> None:
    """A run that waits for a person shows what it asks, and from a file how to answer it."""
    record = Recorder()
    record.start(0, "Ask")
    record.note(1, "question_asked", key="@approve", question={"id": "q1", "kind": "plan", "prompt": "Run this plan?"})
    record.note(2, "run_ended", status="waiting")
    text = open_file(browser, file, to_html(record.events(), Redactor())).words()
    assert text.index("Run this plan?") < text.index("Tasks done")
    assert "chargehand answer 20260114-093000-k7qf q1" in text


def test_no_task_of_a_halted_run_is_at_work(browser: Browser, file: Path) -> None:
    """The record last saw it running; the process died, and the page says that it is stopped, its call too."""
    record = Recorder()
    record.start(0, "Ask")
    record.note(1, "attempt_started", "t1", 1, worker="analyst", tier=None, model=MODEL)
    record.note(1, "model_called", "t1", 1, key="t1/1/model/1", role="worker", model=MODEL, send=1)
    record.note(4, "warning", message="Slow.")
    html = to_html(record.events(), Redactor(), status="interrupted", is_over=True)
    window = open_file(browser, file, html, "#task/t1")
    window.page.wait_for_selector(".attempt-part")
    assert window.words(".row.s-stopped .tail") == "■ stopped · 3.0 s"
    assert "1 stopped" in window.words(".figures")
    assert window.page.locator(".s-running.row").count() == 0
    assert "Attempt 1 · analyst · stopped" in window.words(".drawer")
    assert "broken off" in window.words(".drawer")
    assert window.page.locator(".doing").count() == 0


def test_what_was_decided_after_an_attempt_is_said_in_words(browser: Browser, file: Path) -> None:
    """A rewritten task is there in full, without a click; hostile words in it are words."""
    record = Recorder()
    record.start(0.0, "Compare")
    record.note(0.1, "plan_approved", plan=plan().to_json(), strategy="hybrid", notes=[])
    record.note(0.2, "task_ready", "t1", worker="researcher")
    record.attempt(0.3, 0.9, plan().tasks[0], 1, ("contract", "Empty."))
    refine, words = {"kind": "refine", "reason": "Empty."}, {"instruction": "Collect <b>three</b> figures for Oslo."}
    record.note(0.91, "decision", "t1", 1, key="t1/1/recovery", decision="recovery", value=refine, reason="Empty.")
    record.note(0.95, "decision", "t1", 1, key="t1/1/rewrite", decision="rewrite", value=words, reason="Empty.")
    window = open_file(browser, file, to_html(record.events(), Redactor(), status="interrupted"), "#task/t1")
    window.page.wait_for_selector(".attempt-part")
    said = window.page.locator(".decision > summary").all_inner_texts()
    assert said == ["Then: once more, with a rewritten instruction", "The task was rewritten"]
    assert "Collect <b>three</b> figures for Oslo." in window.words(".drawer")
    assert "some tasks in parallel" in window.words("main")
    assert window.problems == []


def test_a_very_long_answer_is_cut_off_until_all_of_it_is_asked_for(browser: Browser, file: Path) -> None:
    """So that gaps and tasks are in reach; a short one is whole at once."""
    record = Recorder()
    record.start(0, "Ask")
    answer = "\n\n".join(f"Paragraph {number} of the answer." for number in range(1_000))
    record.note(1, "run_ended", status="complete", report={"answer": answer})
    page = open_file(browser, file, to_html(record.events(), Redactor())).page
    box = page.locator(".answer")
    assert box.evaluate("(each) => each.offsetHeight") < 900
    page.get_by_role("button", name="Show the whole answer").click()
    assert box.evaluate("(each) => each.offsetHeight") > 9_000
    record.noted[-1][-1]["report"]["answer"] = "Short."
    page = open_file(browser, file, to_html(record.events(), Redactor())).page
    assert page.get_by_role("button", name="Show the whole answer").count() == 0


def test_findings_of_a_review_come_first(browser: Browser, file: Path) -> None:
    """By severity, with file and line, before the figures."""
    record = Recorder()
    record.start(0, "Review")
    findings = [
        {"severity": "info", "path": "b.py", "line": 1, "message": "Long line"},
        {"severity": "critical", "path": "app.py", "line": 12, "message": "SQL from input", "suggestion": "Bind it."},
    ]
    report = {"answer": "Two findings.", "findings": findings}
    record.note(1, "run_ended", status="complete", report=report)
    text = open_file(browser, file, to_html(record.events(), Redactor(), shown=report)).words()
    assert text.index("critical app.py:12 SQL from input Bind it.") < text.index("info b.py:1") < text.index("Tokens")


def test_a_run_without_a_plan_says_once_why_there_is_no_answer(browser: Browser, file: Path) -> None:
    """No card is called an answer or a gap, and no tasks are counted."""
    record = Recorder()
    record.start(0, "Ask")
    why = "The planner's model failed."
    report = {"status": "failed", "answer": why, "gaps": [{"task": None, "reason": why, "impact": ""}]}
    record.note(1, "run_ended", status="failed", report=report)
    text = open_file(browser, file, to_html(record.events(), Redactor())).words()
    assert (text.count(why), "Why there is no answer" in text, "Gaps" in text, "Tasks done" in text) == (
        1, True, False, False,
    )  # fmt: skip


def test_time_in_which_a_run_only_waits_for_a_person_is_folded(browser: Browser, file: Path) -> None:
    """Ten minutes of waiting between two calls make a timeline of seconds, with a mark that says so."""
    record = Recorder()
    record.start(0, "Ask")
    record.attempt(1, 2, plan().tasks[0])
    record.note(3, "question_asked", key="@approve", question={"id": "q1", "kind": "plan", "prompt": "Run this plan?"})
    record.note(603, "question_answered", key="@approve", question="q1", answer="approve", parked_s=600.0)
    record.attempt(604, 606, plan().tasks[1])
    window = open_file(browser, file, to_html(record.events(), Redactor(), status="interrupted"))
    assert "10 min 00 s folded" in window.words(".axis")
    assert "6 s" in window.words(".axis")
    assert "6.0 s" in window.words(".figures")


def test_tasks_of_one_worker_at_one_level_are_one_row(browser: Browser, file: Path) -> None:
    """Whichever order the plan has them in; those that failed are shown, too."""
    tasks = tuple(
        Task(id=f"{kind}{n}", worker="clerk", instruction="Look it up.", success_criterion="One.", depends_on=after)
        for n in range(20)
        for kind, after in (("a", ()), ("b", (f"a{n}",)))
    )
    record = Recorder()
    record.start(0, "Many pairs")
    record.note(1, "plan_approved", plan=Plan(goal="g", tasks=tasks).to_json(), strategy="hybrid", notes=[])
    record.attempt(2, 3, tasks[0], error=("contract", "Not JSON."))
    record.end(3, failed("a0", "clerk", "contract", "Not JSON."))
    window = open_file(browser, file, to_html(record.events(), Redactor()))
    groups = [" ".join(each.inner_text().split()) for each in window.page.locator(".row.group").all()]
    assert groups == ["▸ 20 × clerk ✕ 1 ○ 19", "▸ 20 × clerk ○ 20 waiting"]
    assert window.page.locator(".row.group .tail").first.get_attribute("title") == "✕ 1 failed  ○ 19 waiting"
    assert window.page.locator(".timeline a.row").count() == 1


def test_a_cost_is_shown_from_the_first_reply_on(browser: Browser, file: Path) -> None:
    """Before it nobody knows whether the model has a price; a run that has ended without a call cost nothing."""
    record = Recorder()
    record.start(0, "Ask")
    record.note(1, "model_called", key="@plan/1", role="planner", model=MODEL, messages=[], send=1)
    assert "Cost" not in open_file(browser, file, to_html(record.events(), Redactor())).words(".figures")
    record.note(9, "run_ended", status="failed", report={})
    assert "Cost $0.00" in open_file(browser, file, to_html(record.events(), Redactor())).words(".figures")
    record.model(2, 3, "@plan/2", role="planner", usd=None)
    assert "Cost unknown" in open_file(browser, file, to_html(record.events(), Redactor())).words(".figures")


def test_a_plan_to_approve_is_a_table(browser: Browser, file: Path) -> None:
    """Each task with its worker and what it waits for; what the report of a parked run says is not an answer."""
    record = Recorder()
    record.start(0, "Ask")
    record.note(1, "plan_drafted", plan=plan().to_json(), round=1, problems=[], renamed={}, source="model")
    question = {"id": "plan", "kind": "plan", "prompt": "Goal\n\nRunning it: 8 tasks."}
    record.note(2, "question_asked", key="@approve", question=question)
    record.note(3, "run_ended", status="waiting", report={"answer": "Waiting with 0 of 8 tasks ended."})
    window = open_file(browser, file, to_html(record.events(), Redactor()))
    assert "t4 analyst Compare the hiring figures of both cities for data roles. t1, t2" in window.words(".question")
    assert "Running it: 8 tasks." in window.words(".question")
    assert "Waits for a person to approve a plan of 8 tasks." in window.words()
    assert window.page.locator(".answer").count() == 0
