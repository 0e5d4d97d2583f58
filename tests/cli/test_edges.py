"""Odd terminals, odd arguments, odd words of providers: the command line keeps its exit codes and its manners."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from chargehand.cli.report_footer import commands
from chargehand.record.home import Home
from chargehand.values.order import new_order
from chargehand.values.outcome import failed
from tests.cli.terminal import COMMAND, ROOT, Shell, finished, plan, planned, process, task
from tests.cli.test_run import ANSWER, failing
from tests.pace import PATIENCE_S


def said(answer: str, **more: Any) -> dict[str, Any]:
    return {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": answer, **more}}}


# --- terminals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", ["1", "2", "10", "15", "16"])
def test_a_narrow_terminal_does_not_change_how_a_run_ends(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    """Lines are too long rather than the footer an error."""
    monkeypatch.setenv("COLUMNS", columns)
    got = shell("run", "Say it", "--model", shell.script(failing("t2")))
    assert (got.code, got.out) == (3, ANSWER)
    assert "--retry-failed" in got.err
    assert shell("show", "last").code == shell("runs").code == 0


def test_an_argument_that_is_not_utf8_is_refused_in_a_sentence(shell: Shell) -> None:
    """Exit code 2, and no run."""
    environment = {**os.environ, "CHARGEHAND_HOME": str(shell.home), "PYTHONPATH": str(ROOT / "src"), "PYTHONUTF8": "1"}
    command = [*map(os.fsencode, COMMAND), b"run", b"caf\xe9", b"--model", os.fsencode(shell.script())]
    got = subprocess.run(command, env=environment, capture_output=True, timeout=PATIENCE_S, check=False)
    assert got.returncode == 2
    assert got.stderr.decode().startswith("chargehand: The argument 'caf\\udce9' is not UTF-8 text")
    assert not shell.home.exists()


@pytest.mark.parametrize("args", [("trace", "last", "--content"), ("show", "last", "--plan", "--watch")])
def test_an_option_that_would_do_nothing_is_refused(shell: Shell, args: tuple[str, ...]) -> None:
    """Before anything is read."""
    got = shell(*args)
    assert (got.code, args[-1] in got.complaint) == (2, True)


@pytest.mark.parametrize("form", ["json", "jsonl", "html"])
def test_a_trace_goes_to_a_stdout_of_any_encoding(shell: Shell, form: str) -> None:
    """JSON lines and pages are UTF-8 whatever the terminal speaks."""
    shell("run", "Grüße an Łódź", "--model", shell.script())
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    child = process("trace", "last", "--format", form, "-o", "-", home=shell.home, env=ascii_only, encoding="utf-8")
    got = finished(child)
    assert (got.code, got.err) == (0, "")
    assert "Łódź" in (json.dumps(json.loads(got.out), ensure_ascii=False) if form == "json" else got.out)


def test_no_escape_of_a_provider_reaches_the_terminal(shell: Shell) -> None:
    """Neither in an error that ends the command, nor in the lines and the footer of a run."""
    evil = "no\x1b]0;owned\x07 \x1b[31mred\x9b"
    model = shell.script({"when": {"role": "planner"}, "reply": {"error": {"status": 400, "message": evil}}})
    for command in ("plan", "run"):
        got = shell(command, "x", "--model", model)
        assert got.code == 1
        assert "owned" in got.complaint
        assert not {"\x1b", "\x07", "\x9b"} & set(got.err + got.out)


# --- what is delivered ----------------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"token": {"type": "string"}, "key": {"type": "string"}}}
DATA = {"token": "the unit of a text", "api_key": "see page 4 of the manual"}
PROSE = "Write `token = abc123def456` into the file, and password: hunter2hunter2 [t1, t2]."


def test_an_answer_is_delivered_as_it_is(shell: Shell, tmp_path: Path) -> None:
    """No field by its name and no assignment is cut out of what was asked for; `show` stays careful."""
    model = shell.script(said(PROSE, data=DATA))
    schema = shell.write("schema.json", SCHEMA)
    assert shell("run", "x", "--model", shell.script(said(PROSE), name="prose.json")).out == f"{PROSE}\n"
    assert shell("run", "x", "--model", model, "--schema", schema).json == DATA
    whole = shell("run", "x", "--model", model, "--schema", schema, "--json").json
    assert (whole["answer"], whole["data"]) == (PROSE, DATA)
    assert shell("resume", "last").json == DATA
    assert shell("resume", "last", "--json").json["answer"] == PROSE
    shell("rerun", "last", "-o", "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == DATA
    shown = shell("show", "last").out + json.dumps(shell("show", "last", "--json").json)
    assert "abc123def456" not in shown


def test_a_known_secret_is_delivered_to_nobody(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of secret variables and keys by their form are taken out of answers, data and reports."""
    monkeypatch.setenv("DEPLOY_TOKEN", "zanzibar-quill-4711")
    key = "sk-ant-" + "api03-" + "aB3" * 10
    pem = "-----BEGIN PRIVATE KEY-----\n" + "QUJDREVG" * 8 + "\n-----END PRIVATE KEY-----"
    prose = f"It is zanzibar-quill-4711, {key} and {pem} [t1, t2]."
    model = shell.script(said(prose, data={"zanzibar-quill-4711": [key]}))
    schema = shell.write("schema.json", {"type": "object"})
    plain = shell.script(said(prose), name="plain.json")
    for args in (("--schema", schema), ("--schema", schema, "--json"), (), ("--json",), ("-o", "answer.md")):
        got = shell("run", "x", "--model", model if schema in args else plain, *args)
        out = got.out or Path("answer.md").read_text()
        assert "[redacted" in out
        assert not [secret for secret in ("zanzibar", key, "QUJDREVG") if secret in out + got.err]


# --- commands that need only the home -------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", ["file", "model"])
def test_broken_settings_do_not_hide_the_records(shell: Shell, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """`runs`, `show`, `trace` and `cancel` work; `run` says what is wrong."""
    model = shell.script()
    shell("run", "Say it", "--model", model)
    if broken == "file":
        shell.write("chargehand.toml", "max_tasks = [")
    else:
        monkeypatch.setenv("CHARGEHAND_MODEL", "nonsense")
    for args in (("runs",), ("runs", "prune", "--keep", "1"), ("show", "last"), ("trace", "last"), ("cancel", "last")):
        assert shell(*args).code == 0, args
    assert shell("run", "Say it").code == 2


# --- small things ---------------------------------------------------------------------------------------------------


def test_material_from_stdin_is_for_its_owner_only(shell: Shell) -> None:
    """Like the record: mode 0600."""
    shell("run", "Read it", "--with", "-", "--model", shell.script(), stdin=b"private\n")
    (file,) = shell.home.glob("runs/*/stdin.txt")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == "private\n"


def test_output_to_a_dash_is_stdout(shell: Shell, tmp_path: Path) -> None:
    """For run, resume and rerun; no file of that name is made."""
    assert shell("run", "Say it", "-o", "-", "--model", shell.script()).out == ANSWER
    assert shell("resume", "last", "-o", "-").out == shell("rerun", "last", "-o", "-").out == ANSWER
    assert not (tmp_path / "-").exists()


def test_a_schema_from_stdin_counts_as_a_use_of_it(shell: Shell) -> None:
    """Alone it is read; beside another `-` it is refused."""
    model = shell.script(said("x [t1, t2]", data={"a": 1}))
    schema = json.dumps({"type": "object"}).encode()
    assert shell("run", "x", "--schema", "-", "--model", model, stdin=schema).json == {"a": 1}
    got = shell("run", "-", "--schema", "-", "--model", model, stdin=schema)
    assert (got.code, "REQUEST and --schema" in got.complaint) == (2, True)


def test_a_script_named_from_its_folder_is_found_by_a_resume_elsewhere(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The record holds its absolute path."""
    shell.script(failing("t2"))
    assert shell("run", "Say it", "--model", "scripted:script.json").code == 3
    shell.script()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert shell("resume", "last", "--retry-failed").code == 0
    assert shell("rerun", "last").code == 0


# --- what to do next ------------------------------------------------------------------------------------------------


def test_a_task_with_too_small_a_budget_in_the_plan_is_helped_by_another_plan(shell: Shell) -> None:
    """More for the run, or another try, is not advised and tries nothing."""
    path = shell.write("plan.json", plan(task("t1"), task("t2") | {"budget": {"tokens": 300}}))
    got = shell("run", "--plan", path, "--model", shell.script(), "--json")
    run = got.json["run"]
    assert (got.code, got.json["outcomes"][1]["error"]["kind"]) == (3, "budget")
    shown = shell("show", run)
    assert f"chargehand fork {run} --plan plan.json" in shown.out
    assert "chargehand resume" not in shown.out
    for more in (("--tokens", "50000"), ("--retry-failed",)):
        again = shell("resume", run, *more, "--json")
        assert (again.code, again.json["usage"]) == (3, got.json["usage"])
        assert "the plan gives t2 too small a budget" in again.err


def test_a_run_out_of_tokens_is_advised_to_get_more(shell: Shell) -> None:
    """Trying again with the same budget would not help."""
    model = shell.script(planned(*(task(f"t{n}") for n in range(9))))
    got = shell("run", "Say it", "--tokens", "6000", "--model", model)
    assert got.code in (1, 3)
    more = re.search(r"chargehand resume \S+ (--tokens (\d+))$", got.err, re.MULTILINE)
    assert more is not None
    assert "--retry-failed" not in got.err
    assert more[1] in shell("show", "last").out
    assert "budget of" not in shell("resume", "last", *more[1].split()).err, "the number is enough"


def test_an_order_that_waits_for_a_resume_is_shown_and_the_resume_offered(shell: Shell) -> None:
    """Instead of another try; the resume restarts the task, and the order is gone."""
    made = shell.write("plan.json", plan(task("a"), task("b")))
    fails = {"when": {"role": "worker", "task": "b"}, "reply": {"error": {"status": 400}}}
    shell("run", "Say it", "--plan", made, "--model", shell.script(fails))
    [run] = [each["run"] for each in shell("runs", "--json").json["runs"]]
    assert f"chargehand resume {run} --retry-failed" in shell("show", run).out
    assert shell("steer", run, "a", "--restart").code == 0
    shown = shell("show", run).out
    assert "order          the next resume restarts a\n" in shown
    assert shown.endswith(f" chargehand resume {run}\n")
    shell("resume", run)
    assert "restarts" not in shell("show", run).out


def test_every_order_that_waits_is_shown_with_the_run_and_with_its_task(shell: Shell) -> None:
    """None of them is done before the next resume."""
    shell("run", "Say it", "--approve", "--model", shell.script(planned(task("t1"), task("t2"))))
    shell("answer", "last", "plan", "approve")
    run = Home(shell.home).find("last")
    orders = Home(shell.home).orders(run)
    orders.send(new_order("stop", task="t1", text="not needed"))
    orders.send(new_order("tell", task="t2", text="Use euros."))
    orders.send(new_order("restart", task="t2", model="ollama:x"))
    orders.send(new_order("top_up", tokens=5_000, usd=1.5, deadline=60.0))
    shown = [
        line.removeprefix("order").strip() for line in shell("show", run).out.splitlines() if "next resume" in line
    ]
    assert shown == [
        "the next resume stops t1: not needed",
        'the next resume gives the worker of t2 the words "Use euros."',
        "the next resume restarts t2 with ollama:x",
        "the next resume adds 5,000 tokens, $1.50, 1 min 00 s",
    ]
    assert shell("show", run, "t1").out.count("the next resume stops t1") == 1
    assert "stops" not in shell("show", run, "t2").out


def test_for_a_task_that_a_person_stopped_a_restart_is_offered() -> None:
    """No retry reaches it. What failed by itself is offered another try beside it."""
    stopped = failed("t1", "writer", "cancelled", "A person stopped t1.").to_json()
    broken = failed("t2", "writer", "bad_request", "Rejected.").to_json()
    report = {"run": "r", "status": "partial", "error": None, "outcomes": [stopped]}
    assert commands(report)[2:] == ["chargehand steer r t1 --restart"]
    both = commands(report | {"outcomes": [stopped, broken]})[2:]
    assert both == ["chargehand resume r --retry-failed", "chargehand steer r t1 --restart"]


def test_an_answer_in_a_file_ends_with_what_is_missing(shell: Shell) -> None:
    """With -q nothing else says it. A complete answer is written as it is, and stdout has the answer alone."""
    got = shell("run", "Say it", "--model", shell.script(failing("t2")), "-q", "-o", "out.md")
    assert (got.code, got.out, got.err) == (3, "", "")
    written = (shell.folder / "out.md").read_text()
    assert written.startswith(f"{ANSWER}\n## What is missing\n\n- t2: failed: ")
    assert shell("resume", "last").out == ANSWER
    shell("run", "Say it", "--model", shell.script(), "-o", "out.md")
    assert (shell.folder / "out.md").read_text() == ANSWER


def test_a_run_without_a_plan_is_offered_another_try(shell: Shell) -> None:
    """A plain `resume` says that it tried nothing; so does that of a complete run."""
    down = {"when": {"role": "planner"}, "reply": {"error": {"status": 400, "message": "Not now."}}}
    got = shell("run", "Say it", "--model", shell.script(down))
    run = shell("show", "last", "--json").json["run"]
    offered = f"chargehand resume {run} --retry-failed"
    assert (got.code, offered in got.err, "Nothing was tried" in got.err) == (1, True, False)
    assert offered in shell("show", "last").out
    shell.script()
    got = shell("resume", "last")
    assert (got.code, f"Nothing was tried: {run} has already ended (failed)." in got.err) == (1, True)
    got = shell("resume", "last", "--retry-failed")
    assert (got.code, got.out, "Nothing was tried" in got.err) == (0, ANSWER, False)
    got = shell("resume", "last")
    assert (got.code, got.out, f"{run} has already ended (complete)." in got.err) == (0, ANSWER, True)
    assert shell("resume", "last", "-q").err == ""
    before = shell("show", "last", "--json").json["usage"]
    got = shell("resume", "last", "--retry-failed")
    assert (got.code, got.out, f"{run} has already ended (complete)." in got.err) == (0, ANSWER, True)
    assert shell("show", "last", "--json").json["usage"] == before


def test_a_planner_without_a_valid_plan_is_not_asked_again() -> None:
    """Its answers are on the record: another try would read the same ones."""
    report: dict[str, Any] = {"run": "r", "status": "failed", "outcomes": [], "plan": None}
    for kind, offered in (("contract", []), ("connection", ["chargehand resume r --retry-failed"])):
        assert commands(report | {"error": {"kind": kind, "message": "No."}})[2:] == offered


def test_a_run_out_of_time_is_advised_to_get_more(shell: Shell) -> None:
    """Beside the tasks that failed for another reason."""
    late = {"when": {"task": "t1"}, "delay_ms": 60_000, "reply": {"json": {"summary": "s", "output": "o"}}}
    file = shell.write("plan.json", plan(task("t1"), task("t2"), task("t3")))
    got = shell("run", "--plan", file, "--deadline", "1", "--model", shell.script(late, failing("t2")))
    assert got.code == 3
    assert "--deadline 60" in got.err
    assert "--retry-failed" in got.err


def test_temporal_that_is_not_installed_is_named_with_its_extra(shell: Shell) -> None:
    """Exit code 2: nothing is wrong with chargehand itself."""
    missing = "raise ModuleNotFoundError('No module named temporalio', name='temporalio')"
    (shell.folder / "hidden").mkdir()
    shell.write("hidden/temporalio.py", missing)
    env = {"PYTHONPATH": os.pathsep.join((str(shell.folder / "hidden"), str(ROOT / "src")))}
    child = process("run", "Say it", "--engine", "temporal", "--model", shell.script(), home=shell.home, env=env)
    got = finished(child)
    assert got.code == 2
    assert "temporalio, which is not installed: pip install 'chargehand[temporal]'" in got.err


def test_the_reason_of_a_retry_is_given_once(shell: Shell) -> None:
    """The next ones of the same call with the same reason say so; the call is counted once."""
    limit = {
        "when": {"task": "t1"},
        "times": 3,
        "reply": {"error": {"status": 429, "retry_after": 0, "message": "slowly"}},
    }
    got = shell("run", "Say it", "--model", shell.script(planned(task("t1")), limit))
    lines = [line.split(" s  ")[1] for line in got.err.splitlines() if "sent again" in line]
    assert [line.removeprefix("t1: the call is sent again ") for line in lines] == [
        "(1): slowly",
        "(2): the same error",
        "(3): the same error",
    ]
    assert "2 calls" in got.err


@pytest.mark.slow
def test_a_long_wait_for_a_provider_is_announced(shell: Shell) -> None:
    """The line says how long; a short one is not worth it."""
    for seconds, line in (
        (1.2, "t1: the call is sent again (1) in 1."),
        (0.1, "t1: the call is sent again (1): slowly"),
    ):
        limit = {"status": 429, "retry_after": seconds, "message": "slowly"}
        model = shell.script(planned(task("t1")), {"when": {"task": "t1"}, "times": 1, "reply": {"error": limit}})
        got = shell("run", "Say it", "--model", model)
        assert got.code == 0
        assert line in got.err
