"""The live display: what a person at a terminal sees, and that a wide run stays cheap to draw."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from rich.console import Console

from chargehand.cli.live_table import LiveTable
from chargehand.cli.screen import Screen
from chargehand.record.home import Home
from chargehand.text.redaction import Redactor
from chargehand.trace import RunState
from chargehand.values.outcome import failed
from tests.cli.terminal import Shell, lines_left, plan, planned, process, slow, task
from tests.events import make_event
from tests.pace import PATIENCE_S


def seen_on(terminal: int) -> str:
    """All that is written to the other end of a terminal until its last writer has gone."""
    seen = b""
    with suppress(OSError):  # how Linux says that nobody is left
        while part := os.read(terminal, 65536):
            seen += part
    os.close(terminal)
    return seen.decode()


def on_terminal(*args: object, home: Path, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Exit code, stdout (a pipe) and what a terminal on stderr got."""
    mine, theirs = pty.openpty()
    given = {"TERM": "xterm", "COLUMNS": "100", "LINES": "30", **(env or {})}
    child = process(*args, home=home, env=given, stderr=theirs)
    os.close(theirs)
    seen = seen_on(mine)
    out, _ = child.communicate(timeout=PATIENCE_S)
    return child.returncode, out, seen


def test_on_a_terminal_the_answer_is_rendered(shell: Shell) -> None:
    """Markdown marks become a heading; escape sequences in it do not reach the terminal."""
    says = {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "## Well\n\nAll \x1b]0;owned\x07 [t1, t2]."}}}
    mine, theirs = pty.openpty()
    env = {"TERM": "xterm", "COLUMNS": "80"}
    child = process("run", "x", "-q", "--model", shell.script(says), home=shell.home, env=env, stdout=theirs)
    os.close(theirs)
    seen = seen_on(mine)
    child.communicate(timeout=PATIENCE_S)
    assert "Well" in seen
    assert "##" not in seen
    assert "\x1b]0;owned" not in seen


def printed_on_terminal(*args: object, home: Path) -> list[str]:
    """The lines that a terminal of 80 columns gets on stdout."""
    mine, theirs = pty.openpty()
    child = process(*args, home=home, env={"TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"}, stdout=theirs)
    os.close(theirs)
    seen = seen_on(mine)
    child.communicate(timeout=PATIENCE_S)
    return [line.rstrip("\r") for line in seen.split("\n")]


def test_a_plan_to_approve_is_broken_between_words(shell: Shell) -> None:
    """`show` fits the question to the terminal, as the prompt does."""
    long = plan(task("t1", instruction="Compare the prices of all the offers that there are, " * 4))
    shell("run", "x", "--approve", "-q", "--model", shell.script(planned(*long["tasks"])))
    lines = printed_on_terminal("show", "last", home=shell.home)
    assert any(line.startswith("    t1  writer  Compare the prices") for line in lines)
    assert [line for line in lines if len(line) > 80] == []


def test_a_record_on_a_terminal_ends_with_the_way_to_a_page(shell: Shell) -> None:
    """On stderr, and only there: a program gets the document alone."""
    shell("run", "x", "-q", "--model", shell.script())
    run = Home(shell.home).find("last")
    mine, theirs = pty.openpty()
    child = process("trace", "last", home=shell.home, stdout=theirs)
    os.close(theirs)
    assert run in seen_on(mine)
    _, said = child.communicate(timeout=PATIENCE_S)
    assert said == f"To read it as a page: chargehand trace {run} --format html\n"
    assert shell("trace", "last").err == ""


def test_the_code_of_a_problem_does_not_lengthen_the_command_before_it(shell: Shell) -> None:
    """A command to copy is one line, and what follows it is not broken by the terminal."""
    folder = shell.folder / ("a-rather-long-name-of-a-team-" * 2)
    shell("teams", "new", folder)
    shell("trust", folder, "--remove")
    lines = printed_on_terminal("check", folder, home=shell.home)
    assert f"  chargehand trust {folder}" in lines
    assert "  [untrusted_code]" in lines


def test_on_a_terminal_a_table_of_tasks_is_drawn_and_stdout_stays_pure(shell: Shell) -> None:
    """Tasks with their status, then the footer."""
    model = shell.script(planned(task("t1"), task("t2")), slow(0.3))
    code, out, seen = on_terminal("run", "Say it", "--model", model, home=shell.home)
    assert (code, out) == (0, "# Both\n\nAll is *well* [t1, t2].\n")
    assert "\x1b[" in seen
    assert "running" in seen
    assert "t2" in seen
    assert "2 of 2 tasks done" in seen


def test_no_color_is_honoured(shell: Shell) -> None:
    """The cursor may move, but nothing is coloured."""
    model = shell.script(planned(task("t1"), task("t2")))
    _, _, seen = on_terminal("run", "Say it", "--model", model, home=shell.home, env={"NO_COLOR": "1"})
    # Bold and dim are no colours; 30-37, 38, 90-97 are.
    assert not re.search(r"\x1b\[(?:\d+;)*(?:3[0-8]|9[0-7])(?:;\d+)*m", seen)


def test_what_a_model_says_cannot_steer_the_terminal(shell: Shell) -> None:
    """Escape sequences in results are shown as marks."""
    evil = {"when": {"role": "worker"}, "reply": {"json": {"summary": "\x1b]0;owned\x07 x", "output": "y"}}}
    _, _, seen = on_terminal(
        "run", "Say it", "--model", shell.script(planned(task("t1"), task("t2")), evil), home=shell.home
    )
    assert "\x1b]0;owned" not in seen
    assert "owned" in seen


def drawn(width: int, tasks: int, names: str = "t", tokens: int = 500) -> str:
    """What is shown of a run with so many tasks, five of them at work."""
    terminal = Console(width=width, height=24, file=io.StringIO())
    live = LiveTable(Screen(Redactor()), RunState(), terminal)
    made = plan(*(task(f"{names}{n}") for n in range(tasks)))
    start = {"request": {"text": "Say it", "budget": {"tokens": tokens}}, "team": {"name": "g"}}
    live.on_event(make_event("run_started", seq=1, at=1.0, **start))
    live.on_event(make_event("plan_approved", seq=2, at=1.0, plan=made, strategy="parallel"))
    for n in range(5):
        live.on_event(make_event("attempt_started", f"{names}{n}", 1, seq=3 + n, at=1.0, worker="writer"))
    with terminal.capture() as got:
        terminal.print(live.render(3.0))
    return got.get()


def test_a_wide_run_shows_counts_and_what_is_at_work() -> None:
    """500 tasks fit a small terminal."""
    text = drawn(80, 500)
    assert "495 waiting" in text
    assert "5 running" in text
    assert len(text.splitlines()) <= 24
    assert max(map(len, text.splitlines())) <= 80


def test_a_narrow_run_shows_all_tasks() -> None:
    """Waiting ones too."""
    text = drawn(120, 8)
    assert all(f"t{n} " in text for n in range(8))
    assert "0 of 8 tasks done" in text
    assert "of 500 tokens" in text


def test_at_60_columns_the_last_column_still_says_something() -> None:
    """Worker and tries are left out; no line is longer than the terminal."""
    lines = drawn(60, 4).splitlines()
    assert max(map(len, lines)) <= 60
    [row] = [line for line in lines if line.startswith(" t1 ")]
    assert ("writer" in row, "Write the text" in row) == (False, True)


@pytest.mark.parametrize("width", [80, 60])
def test_long_names_leave_room_for_what_a_task_does(width: int) -> None:
    """They are cut, and say so; the limits are left out of a line that would be cut."""
    text = drawn(width, 5, "a-task-with-a-rather-long-name-", tokens=10**30)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("a-task-") == text.count("Write the text") == 5
    assert "done · 0 tokens" in text
    assert "cost" not in text, "no reply has said what it costs"


def test_a_task_shows_the_tool_that_it_is_using_and_a_stopped_one_says_so() -> None:
    """With its arguments while it runs; after Ctrl-C what ran is stopped, not running. Nested tasks are a tree."""
    terminal = Console(width=100, height=24, file=io.StringIO())
    live = LiveTable(Screen(Redactor()), RunState(), terminal)

    def shown() -> str:
        with terminal.capture() as got:
            terminal.print(live.render(9.0))
        return got.get()

    start = {"request": {"text": "Say it"}, "team": {"name": "g"}}
    live.on_event(make_event("run_started", seq=1, at=1.0, **start))
    made = plan(task("t1"), task("t2"))
    live.on_event(make_event("plan_approved", seq=2, at=1.0, plan=made, strategy="parallel"))
    for seq, id in ((3, "t1"), (4, "t2"), (5, "t1/1/inner")):
        live.on_event(make_event("attempt_started", id, 1, seq=seq, at=1.0, worker="writer"))
    call = {"key": "t2/1/tool/1", "worker": "writer", "tool": "search_files", "arguments": {"query": "Oslo"}}
    live.on_event(make_event("tool_called", "t2", 1, seq=6, at=2.0, **call, effect="read", fingerprint="f", send=1))
    assert "search_files(Oslo)" in shown()
    names = [line.split()[0] for line in shown().splitlines()[3:]]
    assert names == ["t1", "└", "t2"]
    live.on_event(make_event("run_ended", seq=7, at=4.0, status="interrupted", report=None))
    assert (shown().count("stopped"), shown().count("running"), "3.0 s" in shown()) == (3, 0, True)


def test_a_task_that_asks_a_person_is_waiting_also_when_the_run_has_stopped_to_wait() -> None:
    """It is not stopped: it continues with the answer."""
    view = RunState()
    view.apply(make_event("run_started", seq=1, at=1.0, request={"text": "Say it"}, team={"name": "g"}))
    view.apply(make_event("plan_approved", seq=2, at=1.0, plan=plan(task("t1"), task("t2")), strategy="parallel"))
    for seq, id in ((3, "t1"), (4, "t2")):
        view.apply(make_event("attempt_started", id, 1, seq=seq, at=1.0, worker="writer"))
    asked = {"id": "t1", "kind": "escalation", "prompt": "Which?"}
    view.apply(make_event("question_asked", "t1", 1, seq=5, at=2.0, key="t1/1/ask/1", question=asked))
    assert [view.status_of(each) for each in view.tasks.values()] == ["waiting", "running"]
    view.apply(make_event("run_ended", seq=6, at=3.0, status="waiting", report=None))
    assert [view.status_of(each) for each in view.tasks.values()] == ["waiting", "waiting"]


def test_an_ended_run_has_the_time_of_its_report() -> None:
    """As the line below the answer, although the event that ends the run comes a moment later."""
    terminal = Console(width=100, height=24, file=io.StringIO())
    live = LiveTable(Screen(Redactor()), RunState(), terminal)
    live.on_event(make_event("run_started", seq=1, at=0.0, request={"text": "Say it"}, team={"name": "g"}))
    report = {"timing": {"wall_s": 3.94}}
    live.on_event(make_event("run_ended", seq=2, at=3.96, status="complete", report=report))
    with terminal.capture() as got:
        terminal.print(live.render(9.0))
    assert "complete · 3.9 s" in got.get()


def test_a_paused_run_says_so_and_its_time_stands_still_once_no_call_is_in_flight() -> None:
    """A task whose call is still in flight runs, another one waits; the command that continues the run is there."""
    terminal = Console(width=120, height=24, file=io.StringIO())
    live = LiveTable(Screen(Redactor()), RunState(), terminal)

    def shown(now: float) -> list[str]:
        with terminal.capture() as got:
            terminal.print(live.render(now))
        return got.get().splitlines()

    live.on_event(make_event("run_started", seq=1, at=0.0, request={"text": "Say it"}, team={"name": "g"}))
    made = plan(task("t1"), task("t2"))
    live.on_event(make_event("plan_approved", seq=2, at=0.0, plan=made, strategy="parallel"))
    for seq, id in ((3, "t1"), (4, "t2")):
        live.on_event(make_event("attempt_started", id, 1, seq=seq, at=1.0, worker="writer"))
    called = {"key": "t1/1/model/1", "model": "m", "role": "worker"}
    live.on_event(make_event("model_called", "t1", 1, seq=5, at=1.0, **called))
    live.on_event(make_event("control", seq=6, at=3.0, key="@control/1", order="pause", verdict="accepted"))
    lines = shown(5.0)
    assert "paused, 1 call in flight · 5.0 s" in lines[1]
    assert lines[2].endswith("chargehand resume r")
    assert [line.split()[2] for line in lines[4:]] == ["running", "waiting"]
    live.on_event(make_event("model_replied", "t1", 1, seq=7, at=6.0, key="t1/1/model/1", result={"reply": {}}))
    assert "paused · 6.0 s" in shown(500.0)[1]
    live.on_event(make_event("control", seq=8, at=506.0, order="continue", verdict="accepted", parked_s=500.0))
    assert "working · 7.0 s" in shown(507.0)[1]
    [row] = [line for line in shown(507.0) if line.startswith(" t1 ")]
    assert "··━━━━━━━━━━━━━━━━━━" in row.split()


def test_trouble_with_a_provider_is_shown_until_it_is_over() -> None:
    """Why the supervisor's call is sent again, and for how long a provider is left alone."""
    terminal = Console(width=100, height=24, file=io.StringIO())
    live = LiveTable(Screen(Redactor()), RunState(), terminal)

    def shown() -> str:
        with terminal.capture() as got:
            terminal.print(live.render(9.0))
        return got.get()

    live.on_event(make_event("run_started", seq=1, at=1.0, request={"text": "Say it"}, team={"name": "g"}))
    retry = {"key": "plan/model/1/retry/2", "decision": "transport_retry", "value": {"after_s": 4.0}}
    live.on_event(make_event("decision", seq=2, at=1.0, **retry, reason="lab does not answer"))
    out = {"name": "provider:lab", "reason": "for 2 s after 5 errors in a row: lab does not answer"}
    live.on_event(make_event("breaker_changed", seq=3, at=1.0, **out, state="open"))
    assert "the call is sent again (2) in 4.0 s: lab does not answer" in shown()
    assert "lab is left alone for 2 s after 5 errors in a row" in shown()
    live.on_event(make_event("breaker_changed", seq=4, at=2.0, **out, state="closed"))
    result = {"key": "plan/model/1", "result": {"reply": {"text": "{}"}}}
    live.on_event(make_event("model_replied", seq=5, at=2.0, **result))
    assert "lab" not in shown()


def test_an_order_that_came_too_late_is_shown_above_the_table() -> None:
    """Its sender may not have waited for the verdict."""
    terminal = Console(width=80, height=30, file=io.StringIO())
    live = LiveTable(Screen(Redactor()), RunState(), terminal)
    verdict = {"key": "@control/1", "order": "tell", "by": "b", "sent_at": 1.0, "verdict": "too_late"}
    with terminal.capture() as got:
        live.on_event(make_event("control", "t1", None, seq=1, at=1.0, reason="t1 has ended (done).", **verdict))
    assert "t1 has ended (done)." in got.get()


def test_an_error_that_quotes_a_request_takes_one_line() -> None:
    """In a warning, in what is said of a provider and in the row of a task; the table keeps its place."""
    file = io.StringIO()
    terminal = Console(width=100, height=24, file=file)
    live = LiveTable(Screen(Redactor()), RunState(), terminal)
    error = "No rule fits.\nThe request was:\nYou are one worker in a team."
    live.on_event(make_event("run_started", seq=1, at=1.0, request={"text": "Say it"}, team={"name": "g"}))
    live.on_event(make_event("plan_approved", seq=2, at=1.0, plan=plan(task("t1")), strategy="single"))
    live.on_event(make_event("warning", seq=3, at=1.0, message=error))
    live.on_event(make_event("breaker_changed", seq=4, at=1.0, name="provider:lab", reason=error, state="open"))
    outcome = failed("t1", "writer", "bad_request", error).to_json()
    live.on_event(make_event("task_ended", "t1", 1, seq=5, at=2.0, outcome=outcome))
    terminal.print(live.render(3.0))
    assert file.getvalue().count("No rule fits.") == 3
    assert "request was" not in file.getvalue()


def test_a_dumb_terminal_gets_lines(shell: Shell) -> None:
    """TERM=dumb is no place for a table."""
    _, _, seen = on_terminal("run", "Say it", "--model", shell.script(), home=shell.home, env={"TERM": "dumb"})
    assert "t1 started by writer" in seen


def test_an_interrupted_table_ends_cleanly(shell: Shell) -> None:
    """The cursor is shown again after Ctrl-C."""
    mine, theirs = pty.openpty()
    model = shell.script(planned(task("t1"), task("t2")), slow())
    child: subprocess.Popen[str] = process(
        "run", "x", "--model", model, home=shell.home, env={"TERM": "xterm"}, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    while b"running" not in seen:
        seen += os.read(mine, 65536)
    child.send_signal(2)
    while b"Finishing" not in seen:
        seen += os.read(mine, 65536)
    child.send_signal(2)
    seen += seen_on(mine).encode()
    child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 130
    assert seen.rfind(b"\x1b[?25h") > seen.rfind(b"\x1b[?25l")


@pytest.mark.parametrize("width", [30, 45, 60, 80])
def test_the_line_of_totals_leaves_out_what_does_not_fit(width: int) -> None:
    """Whole parts, the last first: half a word says nothing."""
    terminal = Console(width=width, height=24, file=io.StringIO())
    live = LiveTable(Screen(Redactor()), RunState(), terminal)
    live.on_event(make_event("run_started", seq=1, at=0.0, request={"text": "Say it"}, team={"name": "g"}))
    made = plan(*(task(f"t{number}") for number in range(12)))
    live.on_event(make_event("plan_approved", seq=2, at=1.0, plan=made, strategy="parallel"))
    live.on_event(make_event("model_called", "t1", 1, seq=3, at=1.0, key="t1/1/model/1", role="worker", model="m"))
    replied = {"key": "t1/1/model/1", "result": {"reply": {"text": "Said."}}}
    live.on_event(make_event("model_replied", "t1", 1, seq=4, at=2.0, **replied))
    with terminal.capture() as capture:
        terminal.print(live.render(4_000.0))
    totals = capture.get().splitlines()[1]
    assert "…" not in totals
    assert totals.split(" · ")[0].strip() == "working"
    assert ("cost" in totals) == (width == 80)


def test_the_answer_is_shown_while_it_is_written() -> None:
    """Its last lines under the table, a new draft in place of the old one, no secret and no half of one."""
    out = io.StringIO()
    terminal = Console(file=out, width=60, height=30, force_terminal=True)
    screen = Screen(Redactor(["s3cr3t-0123456789"]))
    table = LiveTable(screen, RunState(), terminal)

    def shown() -> str:
        with terminal.capture() as capture:
            terminal.print(table.render(0.0))
        return capture.get()

    table.on_draft(1, "An early draft of it ")
    assert "An early draft of it" in shown()
    table.on_draft(2, "The answer is " + "long " * 200 + "and holds s3cr3t-01234")
    assert "early" not in shown()
    assert "s3cr3t" not in shown()
    assert 1 < sum("long" in line for line in shown().splitlines()) <= 8
    table.on_draft(2, "56789 \x1b]0;owned\x07 THE-END ")
    assert "s3cr3t" not in shown()
    assert "\x1b]0;owned" not in shown()
    assert "THE-END" in shown()


@pytest.mark.parametrize("args", [("run", "x", "--with", "nothing.md"), ("review", "nothing.py")])
def test_a_run_that_cannot_begin_leaves_only_the_complaint(shell: Shell, args: tuple[str, ...]) -> None:
    """The lines that said `starting` are erased."""
    code, _, seen = on_terminal(*args, home=shell.home, env={"CHARGEHAND_MODEL": shell.script()})
    left = lines_left(seen)
    assert code == 2
    assert left[0].startswith("chargehand: There is no file or folder nothing.")
    assert not any("starting" in line for line in left)


def test_a_run_of_another_process_is_not_drawn_before_resume_refuses_it(shell: Shell) -> None:
    """The complaint is all there is, with the time in words."""
    shell("run", "Say it", "--approve", "--model", shell.script(), "-q")
    home = Home(shell.home)
    run = home.find("last")
    with closing(home.open(run)):
        code, _, seen = on_terminal("resume", "last", home=shell.home)
    left = " ".join(lines_left(seen))
    assert code == 2
    said = rf"chargehand: Run {run} is being run by process \d+ .* UTC\. Wait .* try again\."
    assert re.fullmatch(rf"{said} `chargehand cancel {run}` cancels it\. *", left)


def test_watching_a_run_ends_with_one_table(shell: Shell) -> None:
    """The live one is erased, since `show` prints its own."""
    shell("run", "Say it", "--model", shell.script(), "-q")
    code, out, seen = on_terminal("show", "last", "--watch", home=shell.home)
    assert (code, lines_left(seen)) == (0, [])
    assert "t1    writer" in out


def test_before_a_run_begins_the_time_is_shown_and_no_empty_figures() -> None:
    """There are no tasks, calls and tokens yet."""
    terminal = Console(file=io.StringIO(), width=100, height=30)
    table = LiveTable(Screen(Redactor()), RunState(), terminal)
    with terminal.capture() as got:
        terminal.print(table.render(time.time() + 7))
    assert got.get().split("\n")[1].rstrip() == "  starting · 7.0 s"
