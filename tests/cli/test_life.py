"""`resume`, `rerun`, `cancel`, `runs`, `show`, `trace`: the life of a run after its start."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from chargehand.record.home import Home
from tests.cli.terminal import EXAMPLE, Shell, finished, plan, planned, process, slow, task
from tests.cli.test_people import Screen
from tests.cli.test_run import ANSWER, REPORT, failing
from tests.pace import PATIENCE_S, Timed


def begun(shell: Shell, model: str, line: str = "t2 started") -> subprocess.Popen[str]:
    """A run in a process of its own, at the point where it has said `line`."""
    child = process("run", "Say it", "--model", model, home=shell.home)
    assert child.stderr is not None
    said = [child.stderr.readline()]
    while line not in said[-1]:
        assert said[-1], f"the run ended before: {''.join(said)}"
        said.append(child.stderr.readline())
    return child


def fast(shell: Shell) -> None:
    """The script answers at once from now on."""
    shell.script(planned(task("t1"), task("t2")))


def test_ctrl_c_once_finishes_what_is_in_flight_and_can_be_resumed(shell: Shell) -> None:
    """Exit code 130, nothing on stdout; `resume` does only the rest."""
    says = {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "All [t3].", "confidence": 70}}}
    model = shell.script(planned(task("t1"), task("t2"), task("t3", "t1", "t2")), says, slow(1.0))
    child = begun(shell, model)
    child.send_signal(signal.SIGINT)
    got = finished(child)
    assert (got.code, got.out) == (130, "")
    assert "Finishing the calls in flight" in got.err
    # What is left to do is not missing, and the command that does it is named once.
    for said in (got.err, shell("show", "last").out):
        assert "Interrupted with 2 of 3 tasks done." in said
        assert (said.count("chargehand resume"), "gap " in said) == (1, False)
    assert shell("show", "last", "--json").json["status"] == "interrupted"
    shell.script(planned(task("t1"), task("t2"), task("t3", "t1", "t2")), says)
    resumed = shell("resume", "last", "--json").json
    assert resumed["status"] == "complete"
    # What was in flight was kept: only t3 was done by the second session.
    assert [outcome["summary"] for outcome in resumed["outcomes"]] == ["late", "late", "Done."]


def test_ctrl_c_twice_stops_now(shell: Shell) -> None:
    """Exit code 130 before the 5 s that calls in flight are given have passed."""
    child = begun(shell, shell.script(planned(task("t1"), task("t2")), slow()))
    child.send_signal(signal.SIGINT)
    assert child.stderr is not None
    while "Finishing" not in child.stderr.readline():
        pass
    child.send_signal(signal.SIGINT)
    got = finished(child)
    assert got.code == 130
    record = shell("trace", "last", "--format", "jsonl").out
    assert "model_called" in record
    assert "were left; resume repeats them" not in record, "the calls in flight were given all of their time"
    fast(shell)
    assert shell("resume", "last").code == 0


def test_sigterm_is_exit_code_143_and_can_be_resumed(shell: Shell) -> None:
    """Like Ctrl-C once, with its own exit code."""
    child = begun(shell, shell.script(planned(task("t1"), task("t2")), slow(0.5)))
    child.send_signal(signal.SIGTERM)
    assert finished(child).code == 143
    fast(shell)
    assert shell("resume", "last").out == ANSWER


def test_cancel_stops_a_run_of_another_process_within_a_second(shell: Shell) -> None:
    """The run ends with exit code 1 and can be resumed."""
    child = begun(shell, shell.script(planned(task("t1"), task("t2")), slow()))
    with Timed() as took:
        assert shell("cancel", "last").code == 0
    assert took.within(1.5)
    got = finished(child)
    assert (got.code, got.out) == (1, "")
    assert shell("runs", "--json").json["runs"][0]["status"] == "cancelled"
    fast(shell)
    assert shell("resume", "last").out == ANSWER


def test_cancel_of_a_run_whose_process_died_puts_it_on_the_record(shell: Shell) -> None:
    """Nobody owns it: cancel itself records the end."""
    child = begun(shell, shell.script(planned(task("t1"), task("t2")), slow()))
    child.kill()
    finished(child)
    assert shell("show", "last", "--json").json["status"] == "interrupted"
    assert "is cancelled" in shell("cancel", "last").err
    assert shell("show", "last", "--json").json["status"] == "cancelled"
    assert "has ended already: cancelled" in shell("cancel", "last").err


def test_the_rows_of_a_resumed_run_add_up_to_its_total(shell: Shell) -> None:
    """Calls that were in flight when the process died, and the supervisor's own, have a row; so has `show --watch`."""
    child = begun(shell, shell.script(planned(task("t1"), task("t2")), slow()))
    child.kill()
    finished(child)
    fast(shell)
    report = shell("resume", "last", "--json").json
    shown = shell("show", "last").out
    total = report["usage"]["input_tokens"] + report["usage"]["output_tokens"]
    figures = [re.search(r"^(?:t\d|rest) .*?(\d[\d,]{2,})  ", line) for line in shown.splitlines()]
    rows = [int(found[1].replace(",", "")) for found in figures if found]
    assert len(rows) == 3
    assert sum(rows) == total
    assert f"{total:,} tokens" in shown


def test_cancel_of_an_ended_run_says_so(shell: Shell) -> None:
    """Nothing changes and the exit code is 0."""
    shell("run", "Say it", "--model", shell.script())
    got = shell("cancel", "last")
    assert got.code == 0
    assert "has ended already: complete" in got.err


def test_a_second_resumer_is_told_who_has_the_run(shell: Shell) -> None:
    """Exit code 2 while another process runs it."""
    child = begun(shell, shell.script(planned(task("t1"), task("t2")), slow()))
    got = shell("resume", "last")
    assert got.code == 2
    assert str(child.pid) in got.complaint
    child.kill()
    finished(child)


def test_resuming_an_ended_run_prints_its_answer_with_its_exit_code(shell: Shell) -> None:
    """No call is made: the script is gone."""
    shell("run", "Say it", "--model", shell.script(failing("t2")))
    (shell.folder / "script.json").unlink()
    got = shell("resume", "last")
    assert (got.code, got.out) == (3, ANSWER)


def test_retry_failed_mends_a_partial_run(shell: Shell) -> None:
    """What failed is tried again, the rest is kept."""
    shell("run", "Say it", "--model", shell.script(failing("t2")))
    shell.script()
    got = shell("resume", "last", "--retry-failed", "--json")
    assert (got.code, got.json["status"]) == (0, "complete")


def test_rerun_makes_a_new_run_and_reuses_what_has_not_changed(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a script that could answer nothing, the answer is the same."""
    shell("run", "Say it", "--model", shell.script(), "-q")
    shell.write("script.json", {"replies": [failing("t1")]})
    monkeypatch.setenv("CHARGEHAND_MODEL", f"scripted:{shell.folder / 'script.json'}")
    got = shell("rerun", "last")
    assert (got.code, got.out) == (0, ANSWER)
    assert "t1 done (reused): Done." in got.err
    assert re.search(r"^t1 +writer +done +1 +reused +0 ", shell("show", "last").out, re.MULTILINE)
    assert "reused     the result of run " in shell("show", "last", "t1").out
    assert len(shell("runs", "--json").json["runs"]) == 2


def test_a_resumed_rerun_counts_the_calls_that_it_made(shell: Shell) -> None:
    """Reused ones are not among them, in the first session and in the next."""
    shell("run", "Say it", "--model", shell.script(failing("t2")), "-q")
    shell("rerun", "last", "-q")
    shell.script()
    got = shell("resume", "last", "--retry-failed", "--json").json
    events = [json.loads(line) for line in shell("trace", "last", "--format", "jsonl").out.splitlines()]
    assert any(event["kind"] == "reused" for event in events)
    assert got["usage"]["calls"] == sum(event["kind"] == "model_replied" for event in events)


def test_runs_are_listed_newest_first(shell: Shell) -> None:
    """In a table and as JSON."""
    model = shell.script()
    shell("run", "First", "--model", model)
    shell("run", "Second", "--model", model)
    listed = shell("runs", "--json").json["runs"]
    assert [info["request"] for info in listed] == ["Second", "First"]
    lines = shell("runs").out.splitlines()
    assert lines[0].split() == ["run", "status", "started", "team", "request"]
    assert lines[1].startswith(listed[0]["run"])


def test_prune_asks_before_it_removes(shell: Shell) -> None:
    """--dry-run removes nothing, without --yes and a terminal nothing is removed, with it the old ones go."""
    model = shell.script()
    for request in ("one", "two", "three"):
        shell("run", request, "--model", model)
    dry = shell("runs", "prune", "--keep", 1, "--dry-run")
    listed = [(info.run, info.status, info.request) for info in Home(shell.home).runs()][1:]
    assert [tuple(line.split()) for line in dry.out.splitlines()] == [("run", "status", "request"), *listed]
    refused = shell("runs", "prune", "--keep", 1)
    assert refused.code == 2
    assert "--yes" in refused.complaint
    assert len(Home(shell.home).runs()) == 3
    done = shell("runs", "prune", "--keep", 1, "--yes")
    assert (done.out, done.err) == (dry.out, "2 runs removed.\n")
    assert [info.request for info in Home(shell.home).runs()] == ["three"]
    assert shell("runs", "prune").code == 2


def test_prune_lists_the_runs_before_it_asks(shell: Shell) -> None:
    """On a terminal: a person who says no has seen which runs; one who says yes is told how many are gone."""
    run = shell("run", "one", "--model", shell.script(), "--json").json["run"]
    for answer, left in (("n", [run]), ("y", [])):
        terminal = Screen("runs", "prune", "--keep", 0, home=shell.home)
        terminal.until("[y/N]")
        terminal.type(f"{answer}\n")
        code, out = terminal.leave()
        assert (code, out.splitlines()[1].split()) == (0, [run, "complete", "one"])
        assert (b"1 run removed." in terminal.seen) == (not left)
        assert [info.run for info in Home(shell.home).runs()] == left


def test_show_is_exit_code_0_whatever_became_of_the_run(shell: Shell) -> None:
    """As text and as the report with its open questions."""
    shell("run", "Say it", "--model", shell.script(failing("t2")))
    text = shell("show", "last")
    assert text.code == 0
    assert "partial: 1 of 2 tasks done" in text.out
    assert "t2" in text.out
    data = shell("show", "last", "--json")
    assert data.code == 0
    assert data.json.keys() >= {*REPORT, "questions"}
    assert data.json["questions"] == []


@pytest.mark.parametrize("command", ["show", "resume", "rerun", "cancel", "trace"])
def test_an_unknown_run_is_exit_code_2(shell: Shell, command: str) -> None:
    """Whatever was to be done with it."""
    got = shell(command, "nothing")
    assert (got.code, got.out) == (2, "")
    assert "'nothing'" in got.complaint
    assert shell(command, "last").complaint != got.complaint


def test_trace_exports_the_record(shell: Shell) -> None:
    """One document, one event a line, or a page whose path is printed."""
    shell("run", "Say it", "--model", shell.script())
    events = [json.loads(line) for line in shell("trace", "last", "--format", "jsonl").out.splitlines()]
    assert [events[0]["kind"], events[-1]["kind"]] == ["run_started", "run_ended"]
    document = shell("trace", "last").json
    assert document["events"] == events
    page = Path(shell("trace", "last", "--format", "html").out.strip())
    assert page.parent == shell.folder
    assert page.read_text().startswith("<!doctype html>")
    assert shell("trace", "last", "--format", "html", "-o", "-").out == page.read_text()
    assert Path(shell("trace", "last", "-o", "own.html").out.strip()).read_text() == page.read_text()


def test_a_reader_that_leaves_is_no_error(shell: Shell) -> None:
    """`chargehand trace | head -1` says nothing on stderr."""
    shell("run", "Oslo or Bergen?", "--model", f"scripted:{EXAMPLE}")
    child = process("trace", "last", "--format", "jsonl", home=shell.home)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.readline()
    child.stdout.close()
    assert child.stderr.read() == ""
    child.stderr.close()
    child.wait(timeout=PATIENCE_S)


def test_a_given_plan_is_edited_and_run_again(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rerun --plan` takes the new plan for the same request."""
    shell("run", "Say it", "--model", shell.script())
    monkeypatch.setenv("CHARGEHAND_MODEL", shell.script())
    edited = shell.write("edited.json", plan(task("only")))
    got = shell("rerun", "last", "--plan", edited, "--json").json
    assert [outcome["task"] for outcome in got["outcomes"]] == ["only"]
    assert got["request"] == "Say it"
    other = shell.write("other.json", plan(task("only")) | {"goal": "Another goal"})
    assert ["has another goal" in shell("rerun", "last", "--plan", each).err for each in (edited, other)] == [
        False,
        True,
    ]


def test_fork_does_a_task_again_and_takes_over_the_rest(shell: Shell) -> None:
    """As a new run, with the model that is named for it; an unknown task is refused."""
    made = shell.write("plan.json", plan(task("t1"), task("t2", "t1")))
    first = shell("run", "--plan", made, "--model", shell.script(), "--json").json
    says = {"when": {"role": "worker"}, "reply": {"json": {"summary": "s", "output": "Other words."}}}
    other = shell.script(says, name="other.json")
    got = shell("fork", first["run"], "--at", "t2", "--model", other, "--json")
    outcomes = got.json["outcomes"]
    assert [each["output"] for each in outcomes] == ["Words.", "Other words."]
    assert outcomes[0]["usage"]["calls"] == 0
    assert outcomes[1]["usage"]["models"] == [other]
    assert got.json["run"] == shell("runs", "--json").json["runs"][0]["run"]
    assert shell("fork", "last", "--at", "t7").code == 2
    assert shell("fork", "last").code == 2


# -- show TASK, --plan, --watch --------------------------------------------------------------------------------------


def test_show_of_a_task_has_all_that_it_was_asked_and_did(shell: Shell) -> None:
    """Instruction, prompt, reply, retry and result; as JSON with every message."""
    broken = {"when": {"task": "t2"}, "times": 1, "reply": {"error": {"status": 400}}}
    shell("run", "Say it", "--model", shell.script(planned(task("t1"), task("t2", "t1")), broken))
    shown = shell("show", "last", "t2").out
    for part in ("task       t2, writer: done", "asked      ", "attempt 1 ", "error ", "attempt 2 ", "reply "):
        assert part in shown
    got = shell("show", "last", "t2", "--json").json
    assert (got["task"], got["status"], len(got["attempts"])) == ("t2", "done", 2)
    assert got["attempts"][1]["calls"][0]["messages"][0]["role"] == "system"


def test_show_of_a_task_that_the_run_does_not_have_names_those_it_has(shell: Shell) -> None:
    """Exit code 2."""
    shell("run", "Say it", "--model", shell.script(planned(task("first"), task("second"))))
    got = shell("show", "last", "fist")
    assert (got.code, "Did you mean first?" in got.complaint) == (2, True)
    assert "It has: first, second." in shell("show", "last", "xyz").complaint
    assert shell("show", "last", "first", "--plan").code == 2


def test_show_gives_the_plan_to_be_edited_and_run_again(shell: Shell) -> None:
    """As JSON it is what `rerun --plan` takes."""
    model = shell.script(planned(task("t1"), task("t2", "t1")))
    shell("run", "Say it", "--model", model)
    assert "Shape     2 tasks, one after another" in shell("show", "last", "--plan").out
    made = shell("show", "last", "--plan", "--json").json
    assert [each["id"] for each in made["tasks"]] == ["t1", "t2"]
    assert shell("rerun", "last", "--plan", shell.write("plan.json", made), "--model", model).code == 0


def test_show_follows_a_run_of_another_process_to_its_end(shell: Shell) -> None:
    """Its events as they come, then its result; of a run that has ended, the result at once."""
    child = begun(shell, shell.script(planned(task("t1"), task("t2")), slow(1.0)))
    got = shell("show", "last", "--watch")
    assert got.code == 0
    assert "t2 done" in got.err
    assert "status   complete" in got.out
    assert finished(child).code == 0
    assert "ended" not in shell("show", "last", "--watch").err


def test_runs_are_watched_on_a_terminal_only(shell: Shell) -> None:
    """A program is told what to call instead."""
    got = shell("runs", "--watch")
    assert (got.code, "needs a terminal" in got.complaint) == (2, True)


def test_the_times_in_the_table_add_up(shell: Shell) -> None:
    """To those of the calls one after the other: the row `rest` has the time of the planner and the synthesizer."""
    model = shell.script({**planned(task("t1"), task("t2")), "delay_ms": 1200})
    report = shell("run", "x", "--model", model, "--json").json
    rest = report["timing"]["sequential_s"] - sum(each["usage"]["seconds"] for each in report["outcomes"])
    [row] = [line for line in shell("show", "last").out.splitlines() if line.startswith("rest ")]
    assert round(rest, 3) >= 1.2
    assert f" {rest:.1f} s " in row
