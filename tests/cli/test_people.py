"""People at the command line: a run that waits, `answer`, `show`, and questions on the terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from chargehand.record.home import Home
from chargehand.record.replay import replay
from tests.cli.terminal import Result, Shell, finished, lines_left, plan, planned, process, slow, task
from tests.pace import PATIENCE_S

SAYS_T1 = {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "Signed [a].", "confidence": 70}}}
WORKER = "---\nname: {name}\ndescription: Does it\n{more}---\nYou do it.\n"


def team(shell: Shell, toml: str = "", tools: str | None = None, **workers: str) -> Path:
    folder = shell.folder / "team"
    (folder / "workers").mkdir(parents=True)
    (folder / "team.toml").write_text(f'description = "x"\n{toml}')
    if tools is not None:
        (folder / "tools.py").write_text(tools)
        assert shell("trust", folder).code == 0
    for name, more in workers.items():
        (folder / "workers" / f"{name}.md").write_text(WORKER.format(name=name, more=more))
    return folder


def parked(shell: Shell, *args: object) -> Result:
    result = finished(process("run", "Say it", *args, home=shell.home))
    assert result.code == 4, result.err
    assert result.out == ""
    return result


def next_commands(shell: Shell) -> list[str]:
    """The commands that `show` offers at its end."""
    lines = shell("show", "last").out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("next "))
    return [line.removeprefix("next").strip() for line in lines[at:]]


# -- plans -----------------------------------------------------------------------------------------------------------


def test_a_plan_waits_for_approval_and_then_runs(shell: Shell) -> None:
    """Exit 4 with what is asked and the very commands to go on; another process answers, a third goes on."""
    result = parked(shell, "--approve", "--model", shell.script())
    (run,) = [info.run for info in Home(shell.home).runs()]
    for command in (f"chargehand answer {run} plan approve", f"chargehand resume {run}"):
        assert command in result.err
    assert "2 tasks, all in parallel" in result.err
    assert "8 calls" in result.err
    assert shell("runs", "--json").json["runs"][0]["status"] == "waiting"
    (asked,) = shell("show", "last", "--json").json["questions"]
    assert (asked["id"], asked["kind"], asked["schema"]) == ("plan", "plan", None)
    assert "t1" in asked["prompt"]
    assert next_commands(shell)[-2:] == [f"chargehand answer {run} plan approve", f"chargehand resume {run}"]
    answered = finished(process("answer", "last", "plan", "approve", home=shell.home))
    assert answered.code == 0
    assert f"chargehand resume {run}" in answered.err
    shown = shell("show", "last", "--json").json
    assert (shown["questions"], shown["status"]) == ([], "waiting")
    assert "All questions are answered" in shown["answer"]
    assert next_commands(shell)[-1] == f"chargehand resume {run}"
    assert "chargehand answer" not in shell("show", "last").out
    result = finished(process("resume", "last", home=shell.home))
    assert (result.code, result.out) == (0, "# Both\n\nAll is *well* [t1, t2].\n")


def test_the_commands_are_said_even_quietly_and_in_json(shell: Shell) -> None:
    """-q leaves the one line that matters; --json is one document with the status."""
    result = shell("run", "Say it", "-q", "--approve", "--model", shell.script())
    assert result.code == 4
    assert result.complaint.startswith("chargehand: ")
    [run] = [info.run for info in Home(shell.home).runs()]
    commands = [line for line in result.err.splitlines() if line.startswith("  ")]
    assert commands == [f"  chargehand answer {run} plan approve", f"  chargehand resume {run}"]
    result = shell("run", "Say it", "--json", "--approve", "--model", shell.script())
    assert (result.code, result.json["status"]) == (4, "waiting")
    assert [t["id"] for t in result.json["plan"]["tasks"]] == ["t1", "t2"]


def test_an_answer_can_continue_the_run_at_once(shell: Shell) -> None:
    """With the exit code and the answer of `resume`."""
    parked(shell, "--approve", "--model", shell.script())
    got = shell("answer", "last", "plan", "approve", "--resume")
    assert (got.code, got.out) == (0, shell("resume", "last").out)
    assert "The answer to plan is recorded" in got.err


def edit_with(shell: Shell, patch: pytest.MonkeyPatch, script: str) -> None:
    """A program in place of an editor: it changes the file it is given."""
    path = shell.write("edit.sh", f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    patch.setenv("VISUAL", str(path))
    patch.setenv("EDITOR", str(path))


def test_a_plan_is_edited_in_the_editor(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is saved there is what runs; closed without a change, nothing is recorded."""
    parked(shell, "--approve", "--model", shell.script())
    edit_with(shell, monkeypatch, "true")
    got = shell("answer", "last", "plan", "--edit")
    assert (got.code, "without a change" in got.complaint) == (2, True)
    assert shell("answer", "last", "plan").code == 2
    assert shell("answer", "last", "plan", "approve", "--edit").code == 2
    monkeypatch.setenv("VISUAL", "no-such-editor")
    got = shell("answer", "last", "plan", "--edit")
    assert (got.code, got.complaint.count("no-such-editor"), "Errno" in got.complaint) == (2, 1, False)
    monkeypatch.delenv("VISUAL")
    edit_with(shell, monkeypatch, """sed -i 's/"goal": "[^"]*"/"goal": "Another goal"/' "$1" """)
    assert shell("answer", "last", "plan", "--edit", "-o", "a.md").code == 2, "only a resume prints a report"
    file = shell.folder / "answer.md"
    assert shell("answer", "last", "plan", "--edit", "--resume", "-o", file).code == 0
    assert file.read_text().strip() == shell("resume", "last").out.strip()
    assert shell("show", "last", "--plan", "--json").json["goal"] == "Another goal"


def test_an_edited_plan_that_is_refused_is_kept(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command in the message takes it, once it is corrected."""
    monkeypatch.setenv("TMPDIR", str(shell.folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    parked(shell, "--approve", "--model", shell.script())
    edit_with(shell, monkeypatch, """sed -i 's/"goal": "[^"]*"/"goal": "Another goal", "tsks": []/' "$1" """)
    refused = shell("answer", "last", "plan", "--edit", "--resume")
    assert refused.code == 2
    command = refused.err.rpartition(": chargehand ")[2].split()
    kept = Path(command[3].removeprefix("@"))
    assert (command[0], command[2], command[4:]) == ("answer", "plan", ["--resume"])
    assert kept.stat().st_mode & 0o77 == 0
    assert shell(*command).code == 2
    kept.write_text(kept.read_text().replace(', "tsks": []', ""))
    assert shell(*command).code == 0
    assert shell("show", "last", "--plan", "--json").json["goal"] == "Another goal"


def test_an_edited_plan_is_what_runs(shell: Shell) -> None:
    """The plan of `show --json` is edited in a file and given with @FILE; what the edit leaves out is not run."""
    parked(shell, "--approve", "--model", shell.script())
    made = shell("show", "last", "--json").json["plan"]
    made["tasks"] = [made["tasks"][1] | {"id": "only"}]
    assert shell("answer", "last", "plan", f"@{shell.write('edited.json', made)}").code == 0
    result = shell("resume", "last", "--json")
    assert result.code == 0
    assert [o["task"] for o in result.json["outcomes"]] == ["only"]
    assert result.json["plan"]["tasks"] == made["tasks"]


def test_an_edited_plan_that_is_invalid_is_refused_and_nothing_is_lost(shell: Shell) -> None:
    """Exit 2 with every problem; the question stays open and takes a better answer from stdin."""
    parked(shell, "--approve", "--model", shell.script())
    wrong = shell.write("wrong.json", plan(task("a", "b"), task("b", "a"), task("c", worker="nobody")))
    result = shell("answer", "last", "plan", f"@{wrong}")
    assert result.code == 2
    assert "a -> b -> a" in result.err
    assert "nobody" in result.err
    assert shell("answer", "last", "plan", "@missing.json").code == 2
    assert [q["id"] for q in shell("show", "last", "--json").json["questions"]] == ["plan"]
    good = json.dumps(plan(task("a"), task("b", "a"))).encode()
    assert shell("answer", "last", "plan", "-", stdin=good).code == 0
    assert [o["task"] for o in shell("resume", "last", "--json").json["outcomes"]] == ["a", "b"]


def test_a_rejected_plan_is_a_failed_run(shell: Shell) -> None:
    """Exit 1, the reason said; nothing was run."""
    parked(shell, "--approve", "--model", shell.script())
    assert shell("answer", "last", "plan", "reject too dear").code == 0
    result = shell("resume", "last")
    assert result.code == 1
    assert "too dear" in result.complaint
    report = shell("show", "last", "--json").json
    assert (report["status"], report["outcomes"]) == ("failed", [])
    assert "too dear" in report["gaps"][0]["reason"]
    assert (report["error"]["kind"], report["error"]["message"]) == ("cancelled", report["answer"])
    assert "chargehand resume" not in result.complaint, "there is no way to continue"
    events = list(Home(shell.home).events(report["run"]))
    assert shell("resume", "last", "--retry-failed", "--tokens", "1000").code == 1
    assert list(Home(shell.home).events(report["run"])) == events, "there is nothing to try again"
    run = report["run"]
    assert next_commands(shell)[1:] == [
        f"chargehand show {run} --plan --json > plan.json",
        f"chargehand fork {run} --plan plan.json",
    ]
    refused = shell("steer", run, "t1", "Be brief")
    assert (refused.code, "ended (failed)" in refused.complaint, "yet" in refused.complaint) == (2, True, False)
    file = shell.write("plan.json", report["plan"])
    assert shell("fork", run, "--plan", file).code == 4, "it asks again"


def test_before_its_plan_is_approved_a_run_has_no_tasks_to_steer_or_fork(shell: Shell) -> None:
    """Both say so: `show` lists the tasks of the drafted plan."""
    parked(shell, "--approve", "--model", shell.script())
    for refused in (shell("steer", "last", "t1", "Be brief"), shell("fork", "last", "--at", "t1")):
        assert (refused.code, "no plan that is approved" in refused.complaint) == (2, True)


def test_an_answer_nobody_asked_for_is_refused(shell: Shell) -> None:
    """No such question lists those there are; answered and ended say so. All of it is exit 2."""
    parked(shell, "--approve", "--model", shell.script())
    result = shell("answer", "last", "plam", "approve")
    assert (result.code, "plan." in result.complaint) == (2, True)
    assert shell("answer", "last", "plan", "perhaps").code == 2
    assert shell("answer", "last", "plan", "").code == 2
    assert shell("answer", "nosuchrun", "plan", "approve").code == 2
    assert shell("answer", "last", "plan", "approve").code == 0
    assert shell("answer", "last", "plan", "approve").code == 0, "the same again is fine"
    result = shell("answer", "last", "plan", "reject")
    answered = result.complaint
    assert result.code == 2
    assert shell("resume", "last").code == 0
    result = shell("answer", "last", "plan", "approve")
    assert (result.code, result.complaint != answered) == (2, True)


def test_what_a_run_under_way_does_not_ask_cannot_be_answered(shell: Shell) -> None:
    """Exit 2, and nothing is sent to its owner."""
    child = process("run", "Say it", "--model", shell.script(slow()), home=shell.home)
    home, until = Home(shell.home), time.monotonic() + PATIENCE_S
    while not any(home.owner(info.run) for info in home.runs()):
        assert time.monotonic() < until
    result = shell("answer", "last", "plan", "approve")
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert (result.code, "asks no question" in result.complaint) == (2, True)
    assert "chargehand resume" not in result.complaint, "its process continues it"
    assert not list(shell.home.glob("runs/*/orders/*"))


# -- people as workers, and tools ------------------------------------------------------------------------------------


def test_a_person_in_a_chain_answers_and_the_rest_goes_on(shell: Shell) -> None:
    """Two questions: one answered, the run parks for the other; what a person says reaches the next task."""
    folder = team(shell, boss="kind: human\n", clerk="")
    heard = {
        "when": {"role": "worker", "contains": "use the blue one"},
        "reply": {"json": {"summary": "Blue.", "output": "blue"}},
    }
    made = plan(task("a", worker="boss"), task("b", worker="boss"), task("c", "a", worker="clerk"))
    file = shell.write("plan.json", made)
    result = parked(shell, "--team", folder, "--plan", file, "--model", shell.script(heard, SAYS_T1))
    assert "question a (task)" in result.err
    assert "question b (task)" in result.err
    assert shell("answer", "last", "a", "use the blue one").code == 0
    result = finished(process("resume", "last", "--json", home=shell.home))
    assert result.code == 4
    assert {o["task"]: o["status"] for o in result.json["outcomes"]} == {"a": "done", "c": "done"}
    assert shell("answer", "last", "b", "escalate: not mine").code == 0
    report = finished(process("resume", "last", "--json", home=shell.home)).json
    outcomes = {o["task"]: o for o in report["outcomes"]}
    assert outcomes["c"]["output"] == "blue"
    # Handed back by the person, it went to the next worker.
    assert (outcomes["b"]["status"], outcomes["b"]["worker"]) == ("done", "clerk")
    assert outcomes["a"]["usage"]["calls"] == 0


def test_an_open_question_is_named_wherever_it_helps(shell: Shell) -> None:
    """To words for the person that it asks, and in the next commands of a run that was cancelled meanwhile."""
    folder = team(shell, boss="kind: human\n", clerk="")
    file = shell.write("plan.json", plan(task("a", worker="boss"), task("c", "a", worker="clerk")))
    parked(shell, "--team", folder, "--plan", file, "--model", shell.script(SAYS_T1))
    run = Home(shell.home).find("last")
    got = shell("steer", run, "a", "hurry")
    assert (got.code, f"chargehand answer {run} a TEXT" in got.complaint) == (2, True)
    assert shell("cancel", run).code == 0
    assert next_commands(shell)[1:] == [f"chargehand answer {run} a --edit", f"chargehand resume {run}"]
    assert shell("answer", run, "a", "the blue one").code == 0
    assert next_commands(shell)[1:] == [f"chargehand resume {run}"]


def test_answers_survive_a_kill(shell: Shell) -> None:
    """Answered, resumed and killed in the middle of the work after it: the next resume does not ask again."""
    folder = team(shell, boss="kind: human\n", clerk="")
    file = shell.write("plan.json", plan(task("a", worker="boss"), task("c", "a", worker="clerk")))
    parked(shell, "--team", folder, "--plan", file, "--model", shell.script(slow(20), SAYS_T1))
    assert shell("answer", "last", "a", "the blue one").code == 0
    child = process("resume", "last", home=shell.home)
    home = Home(shell.home)
    run, until = home.find("last"), time.monotonic() + PATIENCE_S
    while True:
        assert time.monotonic() < until
        with closing(home.read(run)) as reader:
            if replay(reader.events()).intents:
                break
    child.send_signal(signal.SIGKILL)
    child.communicate()
    shell.script(SAYS_T1)
    result = finished(process("resume", "last", "--json", home=shell.home))
    assert result.json["outcomes"][0]["output"] == "the blue one"
    with closing(home.read(run)) as reader:
        assert sum(event.kind == "question_asked" for event in reader.events()) == 1


def test_an_escalation_reaches_a_person_and_the_answer_the_worker(shell: Shell) -> None:
    """With --ask the run parks with what the worker asked; the next attempt knows the answer. Without, it does not."""
    unsure = {"reason": "ambiguous_input", "message": "Which Bergen?"}
    rules = [
        {"when": {"role": "worker", "contains": "the Norwegian one"}, "reply": {"json": {"summary": "x", "output": 7}}},
        {"when": {"role": "worker"}, "reply": {"tool_calls": [{"name": "escalate", "arguments": unsure}]}},
        {"when": {"role": "refiner"}, "reply": {"json": {"instruction": "Write about any Bergen you like."}}},
    ]
    file = shell.write("plan.json", plan(task("a")))
    args = ("--plan", file, "--model", shell.script(*rules))
    parked(shell, "--ask", *args)
    (asked,) = shell("show", "last", "--json").json["questions"]
    assert (asked["id"], asked["kind"]) == ("a", "escalation")
    assert "Which Bergen?" in asked["prompt"]
    assert shell("answer", "last", "a", "the Norwegian one").code == 0
    result = finished(process("resume", "last", "--json", home=shell.home))
    assert (result.code, result.json["outcomes"][0]["output"]) == (0, 7)
    assert shell("run", *args).code == 1


TOOLS = """
from pathlib import Path
from chargehand import tool

@tool(approve=True)
def pay(amount: int) -> str:
    "Pay an amount."
    with (Path(__file__).parent / "paid.txt").open("a") as file:
        file.write(f"{amount} ")
    return "paid"
"""
PAYS: list[dict[str, Any]] = [
    {
        "when": {"role": "worker", "contains": "rejected this call of pay: too much"},
        "reply": {"json": {"summary": "Not paid.", "output": "refused"}},
    },
    {"when": {"role": "worker", "contains": "Error:"}, "reply": {"json": {"summary": "Not paid.", "output": "none"}}},
    {
        "when": {"role": "worker"},
        "reply": {"tool_calls": [{"name": "pay", "arguments": {"amount": 7}}]},
        "times": 1,
    },
]


@pytest.mark.parametrize(("words", "output", "paid"), [("approve", "Words.", "7 "), ("reject too much", "refused", "")])
def test_a_tool_call_waits_for_approval(shell: Shell, words: str, output: str, paid: str) -> None:
    """With --ask the run parks before the call; approved it is made, rejected the worker is told."""
    folder = team(shell, tools=TOOLS, clerk="tools: pay\n")
    file = shell.write("plan.json", plan(task("a", worker="clerk")))
    parked(shell, "--ask", "--team", folder, "--plan", file, "--model", shell.script(*PAYS))
    assert not (folder / "paid.txt").exists()
    (asked,) = shell("show", "last", "--json").json["questions"]
    assert (asked["id"], asked["kind"]) == ("a-pay", "tool")
    assert '"amount": 7' in asked["prompt"]
    assert shell("answer", "last", "a-pay", words).code == 0
    # The scripted model of a new process begins anew: the call that asked for the tool is on the record.
    shell.script(*PAYS[:2])
    result = finished(process("resume", "last", "--json", home=shell.home))
    assert result.json["outcomes"][0]["output"] == output
    assert ((folder / "paid.txt").read_text() if paid else "") == paid
    assert (folder / "paid.txt").exists() == bool(paid)


def test_a_tool_call_that_needs_approval_is_refused_where_nobody_may_be_asked(shell: Shell) -> None:
    """Without --ask the run goes on without it and says what to do."""
    folder = team(shell, tools=TOOLS, clerk="tools: pay\n")
    file = shell.write("plan.json", plan(task("a", worker="clerk")))
    result = shell("run", "--team", folder, "--plan", file, "--model", shell.script(*PAYS))
    assert "start the run with `ask`" in result.err
    assert not (folder / "paid.txt").exists()
    notes = shell("show", "last", "--json").json["notes"]
    assert [note for note in notes if note.startswith("pay was not called")] != []
    again = shell("rerun", "last", "--json").json
    assert again["notes"] == notes


# -- on a terminal ---------------------------------------------------------------------------------------------------


class Screen:
    """A terminal with a run on it: read until something is there, then type."""

    def __init__(self, *args: object, home: Path, term: str = "xterm") -> None:
        self.mine, theirs = pty.openpty()
        env = {"TERM": term, "COLUMNS": "100", "LINES": "30"}
        # A session of its own whose terminal this is, as in a window.
        self.child = process(
            *args, home=home, env=env, stdin=theirs, stderr=theirs, start_new_session=True, preexec_fn=_takes(theirs)
        )
        os.close(theirs)
        self.seen = b""

    def until(self, words: str) -> None:
        """Read until the words come; what came before them is not looked at again."""
        at = len(self.seen)
        while words.encode() not in self.seen[at:]:
            assert self._more(), self.seen.decode()

    def type(self, words: str) -> None:
        os.write(self.mine, words.encode())

    def leave(self) -> tuple[int, str]:
        """The exit code and stdout, once the run has ended."""
        with suppress(OSError):  # how Linux says that nobody is left
            while self._more():
                pass
        os.close(self.mine)
        out, _ = self.child.communicate(timeout=PATIENCE_S)
        return self.child.returncode, out

    def _more(self) -> bytes:
        ready, _, _ = select.select([self.mine], [], [], PATIENCE_S)
        if not ready:
            self.child.kill()
            raise AssertionError(f"nothing more came after:\n{self.seen.decode()}")
        part = os.read(self.mine, 65536)
        self.seen += part
        return part


def _takes(terminal: int) -> Any:
    def take() -> None:
        import fcntl
        import termios

        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    return take


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_on_a_terminal_a_plan_is_approved_where_it_is_shown(shell: Shell, term: str) -> None:
    """A wrong answer is explained and asked again; the display is still while it asks and goes on after."""
    screen = Screen("run", "Say it", "--approve", "--model", shell.script(), home=shell.home, term=term)
    screen.until("plan> ")
    assert b"2 tasks, all in parallel" in screen.seen
    screen.type("approve, but cheaper\n")
    screen.until("plan> ")
    assert b"not an answer to a plan" in screen.seen
    screen.type("@nothing.json\n")
    screen.until("plan> ")
    assert b"Cannot read nothing.json" in screen.seen
    screen.type("approve\n")
    assert screen.leave() == (0, "# Both\n\nAll is *well* [t1, t2].\n")
    after = screen.seen[screen.seen.rindex(b"plan> ") :]
    assert b"complete" in after
    left = lines_left(screen.seen.decode())
    assert [line for line in left if line.startswith("plan> ")] == [
        "plan> approve, but cheaper",
        "plan> @nothing.json",
        "plan> approve",
    ]
    assert sum("waiting for a person" in line for line in left) == 0
    assert term == "dumb" or left.index("plan> approve") < left.index("  Say it")


def test_nothing_is_drawn_over_a_question(shell: Shell) -> None:
    """While a person is asked the rest goes on unseen; it is shown after the answer."""
    folder = team(shell, boss="kind: human\n", clerk="")
    file = shell.write("plan.json", plan(task("a", worker="boss"), task("c", worker="clerk")))
    args = ("--team", folder, "--plan", file, "--model", shell.script(slow(0.3), SAYS_T1))
    screen = Screen("run", *args, home=shell.home)
    screen.until("a> ")
    at = len(screen.seen)
    home = Home(shell.home)
    until = time.monotonic() + PATIENCE_S
    while True:
        assert time.monotonic() < until
        with closing(home.read(home.find("last"))) as reader:
            if "c" in replay(reader.events()).ended or any(e.kind == "model_replied" for e in reader.events()):
                break
    screen.type("first line\nsecond line\n")
    screen.leave()
    typed = screen.seen[at:]
    assert typed.startswith(b"first line\r\nsecond line\r\n")
    outcomes = {o["task"]: o for o in shell("show", "last", "--json").json["outcomes"]}
    assert outcomes["a"]["output"] == "first line\nsecond line"


def test_a_question_can_be_left_for_later(shell: Shell) -> None:
    """Ctrl-D: the run waits with exit 4, and `answer` takes it up."""
    screen = Screen("run", "Say it", "--approve", "--model", shell.script(), home=shell.home)
    screen.until("plan> ")
    screen.type("\x04")
    code, out = screen.leave()
    assert (code, out) == (4, "")
    assert shell("answer", "last", "plan", "approve").code == 0
    assert shell("resume", "last").code == 0


def test_ctrl_c_at_a_question_interrupts_the_run(shell: Shell) -> None:
    """Exit 130; resuming asks the same question again."""
    screen = Screen("run", "Say it", "--approve", "--model", shell.script(planned(task("t1"))), home=shell.home)
    screen.until("plan> ")
    screen.type("\x03")
    assert screen.leave()[0] == 130
    assert [q["id"] for q in shell("show", "last", "--json").json["questions"]] == ["plan"]
    assert shell("resume", "last").code == 4
