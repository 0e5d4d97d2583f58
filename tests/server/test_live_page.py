"""The live page in Chromium: start a run with approval, edit nothing, approve, watch it end, open a task."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from chargehand.testing import ScriptedModel
from chargehand.trace.markdown import to_html
from tests.pace import PATIENCE_S
from tests.server.serving import ANSWERS, PLAN, TOKEN, Client, make_supervisor, serving
from tests.trace.browser import browser, needs_chromium, open_window, serious_violations
from tests.trace.hostile import HOSTILE

__all__ = ["browser"]

pytestmark = [needs_chromium, pytest.mark.slow]


def test_a_run_is_started_approved_and_watched_in_the_page(client: Client, browser: Browser) -> None:
    """From the list of runs to the answer and to what a worker was asked, without a reload."""
    own = f"http://127.0.0.1:{client.port}/"
    window = open_window(browser, f"{own}?token={TOKEN}", own)
    page = window.page
    page.locator("summary:has-text('Start a run')").click()
    page.locator("textarea[name=request]").fill("Do both parts")
    page.get_by_label("Show me the plan before it runs").check()
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/runs/**")
    page.wait_for_selector(".question")
    assert "Approve the plan" in window.words(".question")
    events = client.get(f"/api/v1/runs/{page.url.rpartition('/')[2]}/events").body.decode()
    asked = json.loads(events.partition("\n")[0])["request"]
    assert (asked["approve"], asked["ask"]) == (True, False)
    page.locator("summary:has-text('Events')").click()
    page.get_by_label("Find events").fill("run_ended complete")
    page.get_by_role("button", name="Approve").click()
    page.wait_for_selector(".pill.r-complete")
    assert "All is done" in window.words(".answer")
    seq = client.get(f"/api/v1/runs/{page.url.rpartition('/')[2]}/state").json["seq"]
    page.wait_for_selector(f"[role=status]:has-text('1 of {seq} events')")
    assert page.locator(".question").count() == 0
    page.locator(".answer a.cite").first.click()
    page.wait_for_selector(".attempt-part")
    assert "Do the first part" in window.words(".drawer")
    page.locator(".call-part summary").first.click()
    asked = page.locator(".message:has(b:text-is('user')) pre").first.inner_text()
    assert "Do the first part" in asked
    assert not asked.startswith("{"), "a message is shown as its text"
    page.locator("a.brand").click()
    page.wait_for_selector(".run")
    assert "Do both parts" in window.words(".runs")
    assert window.problems == []


def test_a_run_with_a_rejected_plan_is_forked_with_an_edited_one(client: Client, browser: Browser) -> None:
    """The new run has the edited plan; the rejected one as it was is not sent."""
    run = client.start(request="Do both parts, but not so", approve=True)
    parked = client.wait(run)
    [question] = client.get(f"/api/v1/runs/{run}").json["questions"]
    client.post(f"/api/v1/runs/{run}/answers/{question['id']}", {"answer": "reject too long"})
    client.wait(run, parked["seq"])
    own = f"http://127.0.0.1:{client.port}/"
    window = open_window(browser, f"{own}runs/{run}?token={TOKEN}", own)
    page = window.page
    page.locator("summary:text-is('Fork')").click()
    page.get_by_role("button", name="Start the fork").click()
    page.wait_for_selector("[role=status]:has-text('Change the plan first')")
    text = page.get_by_label("Plan as JSON")
    text.fill(text.input_value().replace("Do the first part", "Do the first part well"))
    page.wait_for_selector(".plan-check:has-text('No problems.')")
    page.get_by_role("button", name="Start the fork").click()
    page.wait_for_url(lambda url: run not in url and "/runs/" in url)
    forked = page.url.rpartition("/")[2]
    parked = client.wait(forked)
    waiting = client.get(f"/api/v1/runs/{forked}").json
    assert waiting["plan"]["tasks"][0]["instruction"].startswith("Do the first part well")
    # It asks about the new plan, and other tests count the runs that need a person.
    client.post(f"/api/v1/runs/{forked}/answers/{waiting['questions'][0]['id']}", {"answer": "approve"})
    client.wait(forked, parked["seq"])
    assert window.problems == []


def test_questions_of_all_runs_are_answered_in_the_list(client: Client, browser: Browser) -> None:
    """What waits for a person is above the runs; once answered it is gone, and the run continues."""
    run = client.start(request="Do both parts, after a look", approve=True)
    client.wait(run)
    own = f"http://127.0.0.1:{client.port}/"
    window = open_window(browser, f"{own}?token={TOKEN}", own)
    page = window.page
    page.wait_for_selector(".inbox .question")
    assert "1 run needs you" in window.words(".inbox")
    assert "b w Do the other part" in window.words(".inbox .question")
    page.locator("summary:has-text('Start a run')").click()
    page.locator("summary:has-text('Edit the plan')").click()
    inside = "(each) => each.getBoundingClientRect().right <= each.parentElement.getBoundingClientRect().right"
    assert all(field.evaluate(inside) for field in page.locator(".fields label > *").all())
    assert serious_violations(page) == []
    line = page.locator(f".run[href$='{run}']")
    assert "Needs you" in line.inner_text()
    page.get_by_role("button", name="Approve").click()
    page.wait_for_selector(".inbox", state="hidden")
    page.wait_for_selector(f".run[href$='{run}'] .r-complete")
    line.locator("small:has-text('2 of 2 tasks')").wait_for()
    assert window.problems == []


@pytest.mark.parametrize(("number", "is_cut"), [(12, False), (40, True)])
def test_the_whole_plan_is_in_sight_in_the_list(tmp_path: Path, browser: Browser, number: int, is_cut: bool) -> None:
    """All tasks of a short plan, without scrolling; of a long one how many there are."""
    tasks = [PLAN["tasks"][0] | {"id": f"t{n}"} for n in range(number)]
    with serving(make_supervisor(tmp_path)) as client:
        client.wait(client.start(plan=PLAN | {"tasks": tasks}, approve=True))
        own = f"http://127.0.0.1:{client.port}/"
        window = open_window(browser, f"{own}?token={TOKEN}", own)
        table = window.page.locator(".inbox .scroll")
        table.wait_for()
        assert table.evaluate("(each) => each.scrollHeight > each.clientHeight + 1") == is_cut
        assert (f"{number} tasks: scroll" in window.words(".inbox .question")) == is_cut
        assert window.problems == []


def test_a_run_that_was_answered_and_not_continued_is_resumed_in_the_page(tmp_path: Path, browser: Browser) -> None:
    """A run of another process: list and page say that it is answered, and the page resumes it."""
    with ThreadPoolExecutor(1) as thread:
        made = thread.submit(make_supervisor(tmp_path).run_sync, "Do both parts", approve=True).result()
    with serving(make_supervisor(tmp_path)) as client:
        own = f"http://127.0.0.1:{client.port}/"
        window = open_window(browser, f"{own}?token={TOKEN}", own)
        page = window.page
        page.get_by_role("button", name="Approve").click()
        page.wait_for_selector(".run .pill:text-is('Answered: resume it')")
        page.wait_for_selector(".inbox", state="hidden")
        page.locator(f".run[href$='{made.run}']").click()
        page.wait_for_selector(".pill:text-is('Answered: resume it')")
        assert window.words(".sentence").startswith("All questions are answered, and the run is not continued yet")
        page.get_by_role("button", name="Resume").click()
        page.wait_for_selector(".pill.r-complete")
        assert window.problems == []


def test_orders_to_a_task_say_what_was_accepted_and_what_came_too_late(tmp_path: Path, browser: Browser) -> None:
    """Words and a new instruction have a field each: sent words leave theirs, a typed instruction stays."""
    part = {"json": {"summary": "s", "output": "the part is done", "claims": []}}
    replies: list[dict[str, Any]] = [
        ANSWERS[0],
        {"when": {"task": "a"}, "times": 1, "delay_ms": 6_000, "reply": part},
        {"when": {"task": "b"}, "times": 1, "delay_ms": 9_000, "reply": part},
        *ANSWERS[1:],
    ]
    with serving(make_supervisor(tmp_path, ScriptedModel(replies))) as client:
        run = client.start()
        own = f"http://127.0.0.1:{client.port}/"
        options: dict[str, Any] = {"extra_http_headers": {"authorization": f"Bearer {TOKEN}"}}
        window = open_window(browser, f"{own}runs/{run}#task/a", own, **options)
        page = window.page
        page.wait_for_selector(".drawer .badge.s-running")
        page.locator(".menu summary:has-text('Top up')").click()
        assert page.locator(".menu[open] label").all_inner_texts() == ["More tokens"]
        page.keyboard.press("Escape")
        words = page.get_by_label("Words to the worker")
        words.fill("Be short.")
        page.get_by_role("button", name="Tell the worker").click()
        page.wait_for_selector(".task-orders [role=status]:has-text('before its next model call')")
        assert words.input_value() == ""
        page.locator(".orders-part summary").click()
        instruction = page.get_by_label("A new instruction (optional)")
        instruction.fill("Do it well")
        page.wait_for_selector(".row[href$='/a'] .tail:has-text('running · ')")
        panel = page.locator(".drawer-head").inner_text().replace("\u00a0", " ")
        assert float(panel.partition(" s at work")[0].split()[-1]) >= 1.0

        page.wait_for_selector(".drawer .badge.s-done")
        page.wait_for_selector(".drawer li:has-text('“Be short.”: too late.')")
        assert instruction.input_value() == "Do it well"
        page.get_by_role("button", name="Restart").click()
        page.wait_for_selector(".task-orders [role=status]:has-text('Accepted: a runs again')")
        page.wait_for_selector(".sentence:has-text('When the calls in flight have ended, a runs again')")
        page.wait_for_selector(".pill.r-complete")
        report = client.get(f"/api/v1/runs/{run}").json
        assert report["outcomes"][0]["attempts"] == 2
        assert report["plan"]["tasks"][0]["instruction"] == "Do it well"
        assert window.problems == []


def test_a_run_is_forked_in_the_page(client: Client, browser: Browser, run: str) -> None:
    """From the head with the keyboard alone, and from a task; the new run names the one that it came from."""
    own = f"http://127.0.0.1:{client.port}/"
    window = open_window(browser, f"{own}runs/{run}", own, extra_http_headers={"authorization": f"Bearer {TOKEN}"})
    page = window.page
    page.locator(".menu summary:has-text('Fork')").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Start the fork").click()
    page.wait_for_selector(".sheet:has-text('Choose a task or a model')")
    page.keyboard.press("Escape")
    assert page.locator(".menu[open]").count() == 0
    page.keyboard.press("Enter")
    assert page.get_by_label("Again from task").locator("option").first.inner_text() == "every task"
    page.get_by_label("Again from task").focus()
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Start the fork").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(f".facts:has-text('forked from {run} at b')")
    page.wait_for_selector(".pill.r-complete")
    assert window.words(".row[href$='/a'] .tail") == "✓ reused"
    page.goto(f"{page.url}#task/a")
    page.locator(".orders-part summary").click()
    page.get_by_role("button", name="Fork from here").click()
    page.wait_for_selector(".facts:has-text('at a')")
    page.wait_for_selector(".pill.r-complete")
    assert window.problems == []


def test_a_run_that_ended_for_a_limit_is_topped_up_in_the_page(client: Client, browser: Browser) -> None:
    """The form has the number that the command line names; another try alone, which would change nothing, is absent."""
    run = client.start(request="Do both parts for little", tokens=300, plan=PLAN)
    client.wait(run)
    own = f"http://127.0.0.1:{client.port}/"
    window = open_window(browser, f"{own}runs/{run}", own, extra_http_headers={"authorization": f"Bearer {TOKEN}"})
    page = window.page
    page.wait_for_selector(".pill.r-failed")
    assert page.get_by_role("button", name="Try what failed again").count() == 0
    page.locator(".menu summary:has-text('Top up')").click()
    assert int(page.get_by_label("More tokens").input_value()) > 300
    page.get_by_role("button", name="Add").click()
    page.wait_for_selector(".pill.r-complete")
    assert window.problems == []


def test_the_page_of_a_run_that_is_not_there_says_so(client: Client, browser: Browser) -> None:
    """With the way back to those that are; the status is 404."""
    page = browser.new_page(extra_http_headers={"authorization": f"Bearer {TOKEN}"})
    page.set_default_timeout(PATIENCE_S * 1000)
    answer = page.goto(f"http://127.0.0.1:{client.port}/runs/20200101-000000-none")
    assert answer is not None
    assert answer.status == 404
    page.wait_for_selector(".alert:has-text('There is no run')")
    page.get_by_role("link", name="All runs").click()
    page.wait_for_selector(".runs .run")
    page.close()


DRAFT = """\
## What to do

**Oslo** suits *six* people [a, b]; set `limit`
before that [nobody].

| City | Rent |
|---|---|
| Oslo [a] | 21,000 kr |

- one [b]
- two

1. first
2. second

> Wages are alike.

```
x = [a]
```
"""


def test_an_answer_that_is_being_written_looks_as_it_will_when_it_is_there(client: Client, browser: Browser) -> None:
    """The elements of the finished answer; however much of it is there, nothing in it is markup."""
    own = f"http://127.0.0.1:{client.port}/"
    window = open_window(browser, f"{own}?token={TOKEN}", own)

    def drawn(*texts: str) -> list[str]:
        return window.page.evaluate(
            """async (texts) => {
            const { draftProse } = await import(new URL("draft.js", document.querySelector("script[src]").src));
            return texts.map((text) => draftProse(text, new Map([["a", {}], ["b", {}]])).innerHTML);
        }""",
            texts,
        )

    (whole,) = drawn(DRAFT)
    assert re.sub(r"\n", "", whole) == re.sub(r"\n", "", to_html(DRAFT, {"a": "task/a", "b": "task/b"}))
    parts = drawn(*(DRAFT[:end] for end in range(len(DRAFT))))
    known = {"h3", *re.findall(r"<(\w+)", whole)}
    for html in (*parts, *drawn(*HOSTILE)):
        assert {*re.findall(r"<(\w+)", html)} <= known, html
    assert window.problems == []
    window.page.close()


def test_a_run_that_was_cancelled_is_resumed_in_the_page(tmp_path: Path, browser: Browser) -> None:
    """What it has done by then is kept."""
    slow = {"when": {"task": "b"}, "times": 1, "delay_ms": int(PATIENCE_S * 1000), "reply": {"text": "late"}}
    with serving(make_supervisor(tmp_path, ScriptedModel([slow, *ANSWERS]))) as client:
        run = client.start()
        with client.stream(f"/api/v1/runs/{run}/stream") as events:
            next(each for each in events if '"kind": "task_ended"' in each["data"])
        client.post(f"/api/v1/runs/{run}/cancel")
        own = f"http://127.0.0.1:{client.port}/"
        window = open_window(browser, f"{own}runs/{run}", own, extra_http_headers={"authorization": f"Bearer {TOKEN}"})
        window.page.wait_for_selector(".pill.r-cancelled")
        window.page.get_by_role("button", name="Resume").click()
        window.page.wait_for_selector(".pill.r-complete")
        assert window.problems == []


def test_tasks_that_failed_for_one_reason_are_one_gap(tmp_path: Path, browser: Browser) -> None:
    """Each of them is named in it."""
    refused = {"when": {"role": "worker"}, "reply": {"error": {"status": 401, "message": "The key is not valid."}}}
    with serving(make_supervisor(tmp_path, ScriptedModel([ANSWERS[0], refused]))) as client:
        run = client.start()
        assert client.wait(run)["status"] == "failed"
        own = f"http://127.0.0.1:{client.port}/"
        window = open_window(browser, f"{own}runs/{run}", own, extra_http_headers={"authorization": f"Bearer {TOKEN}"})
        assert window.words(".sentence") == "There is no answer; 0 of 2 tasks done, 2 failed."
        gaps = window.page.locator("section.alert li")
        assert gaps.count() == 1
        assert gaps.locator("a.cite").all_inner_texts() == ["a", "b"]
        assert window.problems == []


def test_a_page_connects_again_after_a_proxy_answered_for_the_server(
    client: Client, browser: Browser, run: str
) -> None:
    """A browser itself gives up after such an answer; the page says that it is not connected, and tries again."""
    own = f"http://127.0.0.1:{client.port}/"
    narrow: Any = {"viewport": {"width": 400, "height": 900}}
    page = browser.new_page(extra_http_headers={"authorization": f"Bearer {TOKEN}"}, **narrow)
    page.set_default_timeout(PATIENCE_S * 1000)
    page.route("**/stream?*", lambda route: route.fulfill(status=502, body="Bad gateway"), times=1)
    page.goto(f"{own}runs/{run}")
    page.wait_for_selector(".pill:has-text('Not connected')")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"
    page.wait_for_selector(".pill:has-text('Not connected')", state="detached")
    page.close()


def test_an_edited_plan_is_checked_and_compared_while_it_is_typed(client: Client, browser: Browser) -> None:
    """Problems and changes to the draft are shown before it is approved; what is approved is what runs."""
    run = client.start(request="Do both parts, edited", approve=True)
    client.wait(run)
    own = f"http://127.0.0.1:{client.port}/"
    window = open_window(browser, f"{own}runs/{run}", own, extra_http_headers={"authorization": f"Bearer {TOKEN}"})
    page = window.page
    page.locator("summary:has-text('Edit the plan')").click()
    text = page.get_by_label("Plan as JSON")
    drafted = text.input_value()
    text.fill(drafted.replace('"worker": "w"', '"worker": "nobody"', 1))
    page.wait_for_selector(".plan-check:has-text('nobody')")
    text.fill(drafted.replace("Do the other part", "Do the other half"))
    page.wait_for_selector(".plan-check:has-text('No problems')")
    assert window.words(".diff") == "b · instruction - Do the other part + Do the other half"
    page.get_by_role("button", name="Approve").click()
    page.wait_for_selector(".pill.r-complete")
    assert "Do the other half" in client.get(f"/api/v1/runs/{run}").json["plan"]["tasks"][1]["instruction"]
    assert window.problems == []


def test_hostile_requests_and_plans_do_nothing_in_the_list(tmp_path: Path, browser: Browser) -> None:
    """A hundred runs whose requests, plans and questions are hostile: no dialog, no request, no element of theirs."""
    with serving(make_supervisor(tmp_path)) as client:
        for poison in HOSTILE:
            task = {"id": "a", "worker": "w", "instruction": f"Do {poison}", "success_criterion": poison}
            plan = PLAN | {"goal": f"Goal {poison}", "tasks": [task]}
            run = client.start(request=poison, plan=plan, approve=True)
            client.wait(run)
        own = f"http://127.0.0.1:{client.port}/"
        window = open_window(browser, f"{own}?token={TOKEN}", own)
        page = window.page
        page.get_by_role("button", name="Older runs").click()
        page.wait_for_function("() => document.querySelectorAll('.run').length === 100")
        page.wait_for_function("() => document.querySelectorAll('.inbox .question').length === 8")
        made = "script, img, iframe, object, embed, video, audio, svg, math, style, link, meta, base, template, marquee"
        assert page.locator(f"main :is({made})").count() == 0
        assert page.locator("[onerror], [onload], [onfocus], [ontoggle], [srcdoc], [style*=url]").count() == 0
        links = page.evaluate("() => [...document.links].map((each) => each.href)")
        assert all(link.startswith(own) for link in links)

        # The run that is listed first needs nobody any more, so it moves behind all that do.
        assert client.post(f"/api/v1/runs/{run}/answers/plan", {"answer": "approve"}).status == 200
        page.wait_for_selector(f".run[href$='{run}'] .r-complete")
        listed = page.locator(".run").evaluate_all("(rows) => rows.map((each) => each.getAttribute('href'))")
        assert (len(listed), len(set(listed))) == (100, 100)
        assert listed[-1].endswith(run)
        assert window.problems == []


def test_the_whole_story_of_a_run_with_the_keyboard_alone(tmp_path: Path, browser: Browser) -> None:
    """Start, approve, tell, stop, restart, answer, pause, resume, fork: each by keys, each seen in the page."""
    part = {"json": {"summary": "s", "output": "the part is done", "claims": []}}
    asks = {"name": "escalate", "arguments": {"reason": "ambiguous_input", "message": "Which year?"}}
    tasks = [PLAN["tasks"][0], PLAN["tasks"][1] | {"depends_on": ["a"]}]
    replies: list[dict[str, Any]] = [
        {"when": {"role": "planner"}, "reply": {"json": PLAN | {"tasks": tasks}}},
        {"when": {"task": "a", "attempt": 1}, "delay_ms": int(PATIENCE_S * 1000), "reply": part},
        {"when": {"task": "a", "attempt": 2}, "reply": {"tool_calls": [asks]}},
        {"when": {"task": "b"}, "times": 1, "delay_ms": 6_000, "reply": part},
        {"when": {"role": "worker"}, "reply": part},
        *ANSWERS[2:],
    ]
    with serving(make_supervisor(tmp_path, ScriptedModel(replies))) as client:
        own = f"http://127.0.0.1:{client.port}/"
        window = open_window(browser, f"{own}?token={TOKEN}", own)
        page = window.page

        def press(selector: str, words: str = "") -> None:
            page.locator(selector).first.focus()
            if words:
                page.keyboard.type(words)
            else:
                page.keyboard.press("Enter")

        press("textarea[name=request]", "Do both parts")
        for label in ("Show me the plan before it runs", "Ask me when a worker cannot go on"):
            page.get_by_label(label).focus()
            page.keyboard.press("Space")
        press("button:text-is('Start')")
        page.wait_for_url("**/runs/**")
        press("button:text-is('Approve')")
        page.wait_for_selector(".row.s-running[href$='/a']")

        page.locator("body").press("j")
        page.keyboard.press("Enter")
        page.wait_for_selector(".drawer .badge.s-running")
        assert serious_violations(page) == []
        press(".drawer textarea", "Be short.")
        press(".drawer button:text-is('Tell the worker')")
        page.wait_for_selector(".task-orders [role=status]:not(:empty)")
        press(".drawer button:text-is('Stop')")
        page.wait_for_selector(".drawer .badge.s-failed")
        page.wait_for_selector(".pill.r-failed")
        press(".orders-part summary")
        press(".drawer button:text-is('Restart')")
        page.wait_for_selector(".question:has-text('Which year?')")
        assert page.locator(".prompt h3").all_inner_texts() == ["Task a", "Done when"]
        assert window.words(".row.asks[href$='/a'] .tail") == "◆ needs you"

        press(".question textarea", "2024")
        press(".question button:text-is('Answer')")
        page.wait_for_selector(".row.s-running[href$='/b']")
        press(".actions button:text-is('Pause')")
        page.wait_for_selector(".pill.r-paused")
        press(".actions button:text-is('Resume')")
        page.wait_for_selector(".pill.r-complete")
        assert "All is done" in window.words(".answer")

        first = page.url
        page.keyboard.press("Escape")
        page.goto(f"{first.partition('#')[0]}#task/b")
        press(".orders-part summary")
        press(".drawer button:text-is('Fork from here')")
        page.wait_for_selector(".facts:has-text('forked from')")
        page.wait_for_selector(".pill.r-complete")
        assert window.problems == []


def test_a_run_that_waits_for_a_provider_says_for_which_and_until_when(tmp_path: Path, browser: Browser) -> None:
    """It does not need a person, neither on its page nor in the list."""
    limited = {"when": {"role": "worker"}, "reply": {"error": {"status": 429, "retry_after": 7_200}}}
    with serving(make_supervisor(tmp_path, ScriptedModel([ANSWERS[0], limited]))) as client:
        run = client.start()
        assert client.wait(run)["status"] == "waiting"
        own = f"http://127.0.0.1:{client.port}/"
        options: dict[str, Any] = {"extra_http_headers": {"authorization": f"Bearer {TOKEN}"}}
        window = open_window(browser, f"{own}runs/{run}", own, **options)
        window.page.wait_for_selector(".pill:has-text('Waiting for a provider')")
        assert "Waits for scripted, whose limit is reached, until 2" in window.words(".sentence")
        listed = open_window(browser, own, own, **options)
        listed.page.wait_for_selector(".run .pill:has-text('Waiting for a provider')")
        assert listed.page.locator(".inbox").is_hidden()
        assert window.problems == listed.problems == []
