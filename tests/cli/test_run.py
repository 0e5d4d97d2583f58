"""`run`: what goes to stdout, what to stderr, and how it ends."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from chargehand.cli.schemas import schema_of
from tests.cli.terminal import EXAMPLE, Shell, finished, plan, planned, process, task

ANSWER = "# Both\n\nAll is *well* [t1, t2].\n"
REPORT = {
    "run", "request", "status", "answer", "findings", "contradictions", "gaps", "confidence", "provenance", "outcomes",
    "usage", "timing", "strategy", "plan",
}  # fmt: skip


def failing(id: str) -> dict[str, Any]:
    return {"when": {"task": id}, "reply": {"error": {"status": 400, "message": "no"}}}


def test_stdout_is_the_answer_and_nothing_else(shell: Shell) -> None:
    """Progress and the footer go to stderr."""
    got = shell("run", "Say it", "--model", shell.script())
    assert (got.code, got.out) == (0, ANSWER)
    assert "t1 started by writer" in got.err
    assert "complete: 2 of 2 tasks done" in got.err
    assert "cost unknown" in got.err


def test_quiet_says_nothing_besides_the_answer(shell: Shell) -> None:
    """-q before or after the command leaves stderr empty."""
    model = shell.script()
    for args in (("-q", "run", "Say it"), ("run", "-q", "Say it")):
        got = shell(*args, "--model", model)
        assert (got.code, got.out, got.err) == (0, ANSWER, "")


def test_verbose_shows_every_event(shell: Shell) -> None:
    """What is not told in words is shown as it is."""
    assert "budget_reserved" in shell("run", "Say it", "-v", "--model", shell.script()).err


def test_json_is_one_report_document(shell: Shell) -> None:
    """It has the contract's keys and fits the published schema."""
    got = shell("run", "Say it", "--json", "--model", shell.script())
    assert got.json.keys() >= REPORT
    assert got.json.keys() - REPORT <= {"notes", "data", "error"}
    assert [outcome["task"] for outcome in got.json["outcomes"]] == ["t1", "t2"]
    assert got.json["usage"]["usd"] is None
    jsonschema.validate(got.json, schema_of("report"))


def test_a_failed_task_makes_the_run_partial_with_its_gap_named(shell: Shell) -> None:
    """Exit code 3; the footer says which task, why, and how to try again."""
    got = shell("run", "Say it", "--model", shell.script(failing("t2")))
    assert got.code == 3
    assert "partial: 1 of 2 tasks done" in got.err
    assert "t2: failed: no" in " ".join(got.err.split())
    assert "--retry-failed" in got.err


def test_the_footer_names_contradictions_and_unused_results(shell: Shell) -> None:
    """On stderr, with the verdict or that there is none."""
    found = {"subject": "Height", "claims": ["t1: 3 m", "t2: 4 m"], "resolved": False}
    says = {"answer": "It is high [t1].", "contradictions": [found]}
    got = shell("run", "x", "--model", shell.script({"when": {"role": "synthesizer"}, "reply": {"json": says}}))
    assert "contradiction  Height: t1: 3 m / t2: 4 m. Not resolved." in got.err
    assert "not used       t2" in got.err


def test_a_contradiction_that_is_none_is_only_on_the_record(shell: Shell) -> None:
    """Both hold, says the judge: nothing in the report, `show` or the footer, and a decision in the trace."""
    claims = {
        id: {"statement": f"The tower's height is {metres} m.", "confidence": 80}
        for id, metres in (("t1", 3), ("t2", 4))
    }
    model = shell.script(
        *(
            {"when": {"task": id}, "reply": {"json": {"summary": "Told.", "output": "x", "claims": [claim]}}}
            for id, claim in claims.items()
        ),
        {"when": {"role": "judge"}, "reply": {"json": {"verdict": "both", "reason": "Years.", "confidence": 90}}},
        {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "It is 3 m [t1] and was 4 m [t2] high."}}},
    )
    got = shell("run", "x", "--model", model)
    assert got.code == 0
    assert "contradiction  " not in got.err
    shown = shell("show", "last")
    assert "contradiction  " not in shown.out
    assert shell("show", "last", "--json").json["contradictions"] == []
    events = map(json.loads, shell("trace", "last", "--format", "jsonl", "-o", "-").out.splitlines())
    [decided] = [event for event in events if event.get("decision") == "compatible"]
    assert decided["value"]["claims"] == ["t1: The tower's height is 3 m.", "t2: The tower's height is 4 m."]
    assert decided["reason"] == "Years (confidence 90)"


@pytest.mark.parametrize("number", [1, 13])
def test_a_written_document_can_be_found(shell: Shell, number: int) -> None:
    """Its whole path under the answer and in `show`; of many, where they are."""
    calls = [{"name": "write_document", "arguments": {"name": f"d{n}.md", "text": "x"}} for n in range(number)]
    model = shell.script({"when": {"task": "t1"}, "times": 1, "reply": {"tool_calls": calls}})
    got = shell("run", "x", "--model", model)
    folder = shell.home / "runs" / shell("show", "last", "--json").json["run"] / "documents"
    assert len(list(folder.iterdir())) == number
    line = f"\ndocument       {folder / 'd0.md' if number == 1 else folder}\n"
    assert got.code == 0
    assert line in got.err
    assert line in shell("show", "last").out
    assert "document  " not in shell("run", "x", "--model", shell.script()).err


def test_a_run_without_a_result_fails_with_an_empty_stdout(shell: Shell) -> None:
    """Exit code 1 and one complaint; with --json there is still one document."""
    model = shell.script({"when": {"role": "worker"}, "reply": {"error": {"status": 400, "message": "no"}}})
    got = shell("run", "Say it", "--model", model)
    assert (got.code, got.out) == (1, "")
    assert got.complaint
    assert shell("run", "Say it", "--model", model, "--json").json["status"] == "failed"


def test_a_plan_file_is_run_without_a_planner(shell: Shell) -> None:
    """REQUEST may be left out: the goal stands for it."""
    file = shell.write("plan.json", plan(task("a"), task("b", "a"), goal="Two steps"))
    model = shell.script({"when": {"role": "planner"}, "reply": {"error": {"status": 400}}})
    got = shell("run", "--plan", file, "--json", "--model", model)
    assert got.json["request"] == "Two steps"
    assert [outcome["status"] for outcome in got.json["outcomes"]] == ["done", "done"]


def test_a_plan_can_come_through_a_pipe(shell: Shell) -> None:
    """What `plan` prints, `run --plan -` takes."""
    model = shell.script()
    made = shell("plan", "Say it", "--model", model)
    got = shell("run", "--plan", "-", "--model", model, stdin=made.out.encode())
    assert (got.code, got.out) == (0, ANSWER)


def test_the_request_can_come_from_stdin(shell: Shell) -> None:
    """`-` as the request reads it."""
    got = shell("run", "-", "--json", "--model", shell.script(), stdin="Grüße\n".encode())
    assert got.json["request"] == "Grüße"


def test_material_can_come_from_stdin(shell: Shell) -> None:
    """`--with -` is a file called stdin.txt to the workers."""
    reads = {
        "when": {"task": "t1", "contains": "only in the file"},
        "reply": {"json": {"summary": "x", "output": "seen"}},
    }
    calls = {
        "when": {"task": "t1"},
        "reply": {"tool_calls": [{"name": "read_file", "arguments": {"path": "stdin.txt"}}]},
    }
    model = shell.script(planned(task("t1", worker="researcher")), reads, calls)
    got = shell("run", "Read it", "--with", "-", "--model", model, stdin=b"this is only in the file\n")
    assert (got.code, got.out) == (0, "seen\n")


def test_stdin_is_read_once(shell: Shell) -> None:
    """Two uses of it are refused, exit code 2."""
    got = shell("run", "-", "--with", "-", "--model", shell.script(), stdin=b"x")
    assert (got.code, "--with" in got.complaint) == (2, True)


def test_output_goes_to_a_file(shell: Shell) -> None:
    """With -o stdout stays empty."""
    got = shell("run", "Say it", "-o", "answer.md", "--model", shell.script())
    assert (got.code, got.out) == (0, "")
    assert Path("answer.md").read_text() == ANSWER


def test_an_output_that_cannot_be_written_is_refused_before_anything_is_spent(shell: Shell) -> None:
    """Exit code 2 and no run."""
    got = shell("run", "Say it", "-o", "no/such/folder/answer.md", "--model", shell.script())
    assert (got.code, "no/such/folder" in got.complaint) == (2, True)
    assert shell("runs", "--json").json == {"runs": []}


def test_a_schema_makes_stdout_data(shell: Shell) -> None:
    """The answer is JSON that fits it."""
    schema = shell.write("schema.json", {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    model = shell.script(
        {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "It is counted [t1, t2].", "data": {"n": 7}}}}
    )
    got = shell("run", "Count", "--schema", schema, "--model", model)
    assert (got.code, got.json) == (0, {"n": 7})


def test_without_data_that_fits_the_schema_stdout_is_empty(shell: Shell) -> None:
    """The gap is named and the run is partial."""
    schema = shell.write("schema.json", {"type": "object", "required": ["n"]})
    got = shell("run", "Count", "--schema", schema, "--model", shell.script())
    assert (got.code, got.out) == (3, "")
    assert "gap" in got.err


def test_a_follow_up_knows_the_answer_before(shell: Shell) -> None:
    """`--from last` gives the planner what was answered."""
    knows = {"when": {"role": "planner", "contains": "All is *well*"}, "reply": {"json": plan(task("t1"))}}
    model = shell.script(knows)
    shell("run", "Say it", "--model", model)
    assert len(shell("run", "And now?", "--from", "last", "--json", "--model", model).json["outcomes"]) == 1


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((), "request"),
        (("  ",), "request"),
        (("what", "is", "it"), "quotes. See"),
        (("x", "--tokens", "0"), "--tokens"),
        (("x", "--tokens", "many"), "'many'"),
        (("x", "--usd", "1"), "scripted"),
        (("x", "--with", "nothing-here"), "nothing-here"),
        (("x", "--team", "nobody"), "'nobody'"),
        (("x", "--from", "nothing"), "'nothing'"),
        (("x", "--plan", "nothing.json"), "nothing.json"),
        (("x", "--critics"), "--critics"),
        (("x", "--schema", "nothing.json"), "nothing.json"),
    ],
)
def test_a_wrong_argument_is_one_sentence_and_exit_code_2(shell: Shell, args: tuple[str, ...], named: str) -> None:
    """No traceback, nothing on stdout, no run. The words are in golden/command_line.txt."""
    got = shell("run", *args, "--model", shell.script())
    assert (got.code, got.out) == (2, "")
    assert named in got.complaint
    assert shell("runs", "--json").json == {"runs": []}


def test_without_a_model_the_remedy_is_named(shell: Shell) -> None:
    """A missing key is exit code 2."""
    got = shell("run", "x")
    assert got.code == 2
    assert "ANTHROPIC_API_KEY" in got.complaint


def test_an_unknown_command_is_met_with_the_nearest(shell: Shell) -> None:
    """Exit code 2."""
    got = shell("resum", "last")
    assert got.code == 2
    assert "Did you mean `chargehand resume`" in got.complaint


def test_a_home_that_cannot_be_made_is_one_sentence(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where the home should be: exit code 2, no traceback."""
    monkeypatch.setenv("CHARGEHAND_HOME", str(shell.write("file", "") / "home"))
    got = shell("run", "x", "--model", shell.script())
    assert got.code == 2
    assert "home" in got.complaint


def test_secrets_in_the_environment_never_reach_a_stream(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the answer, the report, progress, errors, `show` or `trace`, though workers wrote them."""
    secret = "zq7-Canary-4711-not-a-pattern"
    monkeypatch.setenv("ACME_API_KEY", secret)
    leaky = {"when": {"role": "worker"}, "reply": {"json": {"summary": f"It is {secret}.", "output": secret}}}
    says = {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": f"The key is {secret} [t1, t2]."}}}
    model = shell.script(leaky, says)
    streams = [shell("run", f"Say {secret}", "-v", "--model", model), shell("run", "x", "--json", "--model", model)]
    streams += [
        shell("show", "last"),
        shell("show", "last", "--json"),
        shell("runs"),
        shell("run", "x", "--team", secret),
    ]
    streams += [shell("trace", "last", "--format", form, "-o", "-") for form in ("json", "jsonl", "html")]
    for got in streams:
        assert secret not in got.out + got.err
    assert "[redacted]" in streams[0].out


def test_a_bug_is_one_line_without_v_and_a_traceback_with_it(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1; the line says where the record is."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("chargehand.runs.supervisor.Supervisor.run", broken)
    got = shell("run", "x", "--model", shell.script())
    assert got.code == 1
    assert "RuntimeError: boom" in got.complaint
    assert str(shell.home) in got.complaint
    assert "Traceback" in shell("run", "x", "-v", "--model", shell.script()).err


@pytest.mark.slow
def test_the_shipped_example_is_partial_with_its_calculations_made(shell: Shell) -> None:
    """A whole run: a real tool call, a call sent again, a failure survived."""
    got = finished(
        process("run", "Compare Oslo and Bergen", "--model", f"scripted:{EXAMPLE}", "--json", home=shell.home)
    )
    assert got.code == 3
    report = json.loads(got.out)
    assert [outcome["status"] for outcome in report["outcomes"]] == ["done", "done", "done", "failed", "done", "done"]
    assert report["provenance"]["problems"] == []
    assert [gap["task"] for gap in report["gaps"]] == ["t4"]
    assert report["timing"]["speedup"] > 1
    assert report["contradictions"] == [], "places are not compared"
    assert "t3: the call is sent again (1)" in got.err


def test_a_wrong_key_is_exit_code_2(shell: Shell) -> None:
    """The provider's 401, for `run` and for `plan`."""
    model = shell.script({"when": {"role": "planner"}, "reply": {"error": {"status": 401, "message": "wrong key"}}})
    for command in ("run", "plan"):
        got = shell(command, "x", "--model", model)
        assert (got.code, got.out) == (2, "")
        assert "wrong key" in got.complaint
        assert sum("wrong key" in line for line in got.err.splitlines() if line.startswith("chargehand:")) == 1


def test_a_record_of_a_newer_version_is_exit_code_2(shell: Shell) -> None:
    """It is neither read nor written."""
    shell("run", "Say it", "--model", shell.script())
    (record,) = shell.home.glob("runs/*.sqlite")
    with closing(sqlite3.connect(record)) as database:
        database.execute("PRAGMA user_version = 99")
    for command in ("show", "resume", "trace"):
        got = shell(command, "last")
        assert got.code == 2
        assert "newer chargehand" in got.complaint


@pytest.mark.parametrize("value", ["nan", "inf", "-1"])
def test_no_number_of_seconds_is_too_odd(shell: Shell, value: str) -> None:
    """A deadline that is none is refused or never comes; it is never an error in chargehand."""
    got = shell("run", "Say it", "--deadline", value, "--model", shell.script())
    assert got.code in (0, 2)
    assert "An error in chargehand" not in got.err
