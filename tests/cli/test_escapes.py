"""Control characters of models, tools, servers and files: never raw on a terminal, in a pipe, a file or a page."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from chargehand.cli import cli
from tests.cli.terminal import Shell, plan, process, task
from tests.cli.test_live import seen_on
from tests.cli.test_people import Screen as Asking
from tests.cli.test_review_models import shell_settings
from tests.loopback import Answer, Seen, serving
from tests.pace import PATIENCE_S

# What would colour, set the title, make a link, write the clipboard, do the same in C1, reorder, ring and move back.
EVIL = (
    "\x1b[38;5;213mred \x1b]0;owned\x07 \x1b]8;;http://evil.example/\x1b\\link\x1b]8;;\x1b\\ \x1b]52;c;b3duZWQ=\x07 "
    "\x9b38;5;213m \x9d0;owned\x9c \x85 \u202egpj.exe\u202c \u202a\u202b\u202d \u2066\u2067\u2068\u2069 \x08 \x0c "
    "\x7f \r."
)
NAME = "evil\x1b[38;5;213m\x1b]0;owned\x07\x9b31m\u202egpj\u2066\x7f.py"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# What chargehand itself writes to a terminal: colours, the cursor, the clearing of lines; never an OSC.
OWN = re.compile(r"\x1b\[(?!38;5;213)[0-9;?]*[A-Za-z]|\r")

WRITER = f"""---
name: writer
description: {json.dumps("Writes " + EVIL.replace(chr(13), ""))}
tools: read_file, list_files
---
You write. {EVIL}
"""
TEAM = f"description = {json.dumps('Answers ' + EVIL, ensure_ascii=True)}\n".replace("\x7f", "\\u007f")
CODE = f'''"""Sums. {EVIL.replace(chr(13), "").replace(chr(12), "")}"""
import subprocess


def total(number: int) -> int:
    """The sum. \u202e"""
    return number + 1


def run(command: str) -> object:
    return subprocess.call(command, shell=True)  # \u202e \x1b[38;5;213m
'''


def _result(**more: Any) -> dict[str, Any]:
    claim = {"statement": f"It is 4 {EVIL}", "confidence": 90, "sources": [f"http://x/{EVIL}", f"{NAME}:1"]}
    finding = {"severity": "warning", "category": f"c {EVIL}", "path": NAME, "line": 1, "message": f"Bad {EVIL}"}
    result = {"summary": f"Wrote {EVIL}", "output": {f"key {EVIL}": f"Words {EVIL}"}, "confidence": 80}
    return result | {"claims": [claim], "findings": [finding | {"suggestion": EVIL, "confidence": 90}]} | more


def _replies(material: str) -> list[dict[str, Any]]:
    """A hostile model: a plan, a tool call, a refused one, results, a failure, an answer with gaps."""
    first = task("t1", instruction=f"Write the text {EVIL} in one sentence.", context={"given": EVIL})
    made = plan(first, task("t2"), task("t3"), task("t4", "t3"), goal=f"Say {EVIL}")
    reads = [{"name": "list_files", "arguments": {"path": material}}, {"name": f"no_{EVIL}", "arguments": {EVIL: EVIL}}]
    words = f"Words {EVIL} and [a link](http://evil.example/{EVIL}) `{EVIL}` [t1, t2]."
    answer = {
        "answer": f"# All\n\n{words}\n\n```\n{EVIL}\n```\n",
        "contradictions": [{"subject": f"It {EVIL}", "claims": [f"[t1] 4 {EVIL}", f"[t2] 5 {EVIL}"]}],
        "gaps": [{"task": "t1", "reason": f"Nothing about {EVIL}", "impact": EVIL}],
        "data": {f"key {EVIL}": EVIL},
    }
    return [
        {"when": {"role": "planner"}, "reply": {"json": made}},
        {"when": {"role": "worker", "task": "t1"}, "reply": {"tool_calls": reads}, "times": 1},
        {"when": {"role": "worker", "task": "t3"}, "reply": {"error": {"status": 400, "message": f"No {EVIL}"}}},
        {"when": {"role": "worker"}, "reply": {"json": _result()}},
        {"when": {"role": "synthesizer"}, "reply": {"json": answer}},
        {"when": {"role": "router"}, "reply": {"json": {"primary": "writer", "reason": EVIL}}},
        {"when": {"role": "scorer"}, "reply": {"json": {"score": 10, "met": False, "reason": EVIL}}},
        {"when": {"role": "critic"}, "reply": {"json": {"verdict": "revise", "problems": [EVIL]}}},
        {"reply": {"json": {"verdict": "unclear", "reason": EVIL, "confidence": 10}}},
    ]


@dataclass(frozen=True)
class Stage:
    """A folder full of hostile files, and a home with hostile runs."""

    shell: Shell

    @property
    def folder(self) -> Path:
        return self.shell.folder

    @property
    def model(self) -> str:
        return f"scripted:{self.folder / 'evil.json'}"

    def lay_out(self) -> None:
        material, team = self.folder / "material", self.folder / "team"
        for folder in (material, team / "workers", team / "evals", self.folder / "code", self.folder / "out"):
            folder.mkdir(parents=True)
        (material / NAME).write_text(f"It is 4. {EVIL}\n", newline="")
        (team / "team.toml").write_text(TEAM)
        (team / "workers" / "writer.md").write_text(WRITER, newline="")
        (team / "workers" / "reader.md").write_text("---\nname: reader\ndescription: Reads\ntools: []\n---\nRead.\n")
        case = {"worker": "writer", "instruction": f"Write {EVIL}", "expect": {"contains": f"no {EVIL}"}}
        cases = [
            {"id": "golden", **case},
            {"id": f"two {EVIL}", **case},
            {"id": "r", "request": EVIL, "primary": "reader"},
        ]
        (team / "evals" / "all.jsonl").write_text("".join(json.dumps(each) + "\n" for each in cases))
        broken = self.folder / "broken"
        (broken / "workers").mkdir(parents=True)
        (broken / "team.toml").write_text(f'{TEAM}"unknown \\u001b]0;owned\\u0007 \\u009b \\u202e" = 1\n')
        (broken / "workers" / NAME).with_suffix(".md").write_text(
            f"---\nname: {EVIL}\nnope{EVIL}: 1\n---\nx\n", newline=""
        )
        (self.folder / "code" / NAME).write_text(CODE, newline="")
        self.shell.write("evil.json", {"replies": _replies("material")})
        asks = {"reason": "ambiguous_input", "message": f"Which {EVIL}?", "partial": EVIL}
        escalates = {"when": {"role": "worker"}, "reply": {"tool_calls": [{"name": "escalate", "arguments": asks}]}}
        self.shell.write("asks.json", {"replies": [escalates, *_replies("material")]})
        hostile = plan(task(f"a{EVIL}", f"b{EVIL}", worker=f"w{EVIL}"), goal=EVIL)
        self.shell.write("plan.json", hostile | {f"extra {EVIL}": 1})
        self.shell.write("schema.json", {"type": "object"})

    def ran(self) -> None:
        """The last run is one that waits for a person, the one before it ended."""
        self.shell("run", f"Say {EVIL}", "--team", "team", "--model", self.model, "--with", "material")
        waits = ("--ask", "--model", f"scripted:{self.folder / 'asks.json'}")
        assert self.shell("run", f"Ask {EVIL}", "--team", "team", *waits).code == 4

    @property
    def ended(self) -> str:
        listed: list[dict[str, Any]] = self.shell("runs", "--json").json["runs"]
        return next(str(each["run"]) for each in listed if each["status"] not in ("waiting", "running"))

    @property
    def question(self) -> str:
        return str(self.shell("show", "last", "--json").json["questions"][0]["id"])


Arguments = list[object]
RUN: Arguments = [f"Say {EVIL}", "--team", "team", "--with", "material"]

AFTER_A_RUN = (
    "runs",
    "runs prune",
    "show",
    "resume",
    "rerun",
    "fork",
    "diff",
    "cancel",
    "pause",
    "steer",
    "answer",
    "trace",
    "doctor",
    "trust",
)
# Every command -> the ways it is called here, as words after its name.
CALLS: dict[str, Callable[[Stage], Iterator[Arguments]]] = {}


def calls(name: str) -> Callable[[Callable[[Stage], Iterator[Arguments]]], None]:
    def register(given: Callable[[Stage], Iterator[Arguments]]) -> None:
        CALLS[name] = given

    return register


@calls("run")
def _(stage: Stage) -> Iterator[Arguments]:
    for more in (
        [],
        ["-v"],
        ["-q"],
        ["--json"],
        ["-o", "out/answer.md"],
        ["--json", "-o", "out/answer.json"],
        ["--critic"],
    ):
        yield [*RUN, "--model", stage.model, *more]
    yield [*RUN, "--model", stage.model, "--schema", "schema.json"]
    yield [*RUN, "--model", stage.model, "-o", f"out/{NAME}"]
    yield [*RUN, "--model", stage.model, "--approve"]
    yield [*RUN, "--model", f"scripted:{stage.folder / 'asks.json'}", "--ask", "-v"]
    yield [EVIL, "--team", "broken", "--model", stage.model]
    yield [EVIL, "--plan", "plan.json", "--team", "team", "--model", stage.model]
    yield [EVIL, "--with", EVIL, "--model", stage.model]
    yield [EVIL, "--model", f"scripted:{EVIL}"]
    yield [EVIL, f"--{EVIL}"]
    yield [EVIL, "--tokens", EVIL]


@calls("plan")
def _(stage: Stage) -> Iterator[Arguments]:
    for form in ("json", "mermaid", "text"):
        yield [*RUN, "--model", stage.model, "--format", form]
    yield ["--team", "review", "--with", "code", "--format", "text"]


@calls("check")
def _(_: Stage) -> Iterator[Arguments]:
    for what in ("plan.json", "broken", "team", EVIL, f"code/{NAME}"):
        yield [what]
        yield [what, "--json"]


@calls("review")
def _(_: Stage) -> Iterator[Arguments]:
    for form in ("text", "md", "json", "sarif", "github"):
        yield ["code", "--format", form, "--all"]
        yield ["code", "--format", form, "-o", f"out/review.{form}"]
    yield [EVIL]
    yield ["code", "--diff", EVIL]


@calls("testgen")
def _(stage: Stage) -> Iterator[Arguments]:
    (stage.folder / "small").mkdir()
    (stage.folder / "small" / NAME).write_text(CODE.replace("number + 1", "run(str(number))"), newline="")
    yield ["small", "--unsafe-run", "--out", f"out/{NAME}"]
    yield [EVIL, "--json"]


@calls("runs")
def _(_: Stage) -> Iterator[Arguments]:
    yield []
    yield ["--json"]


@calls("runs prune")
def _(_: Stage) -> Iterator[Arguments]:
    yield ["--keep", "0", "--dry-run"]
    yield ["--keep", EVIL]


@calls("show")
def _(stage: Stage) -> Iterator[Arguments]:
    for run in (stage.ended, "last", EVIL):
        yield [run]
        yield [run, "--json"]


@calls("resume")
def _(stage: Stage) -> Iterator[Arguments]:
    for more in ([], ["--json"], ["-o", "out/resumed.md"], ["--retry-failed"]):
        yield [stage.ended, *more]
    yield ["last"]


@calls("rerun")
def _(stage: Stage) -> Iterator[Arguments]:
    for more in ([], ["--json"], ["-o", "out/again.md"], ["--plan", "plan.json"]):
        yield [stage.ended, *more]


@calls("fork")
def _(stage: Stage) -> Iterator[Arguments]:
    yield [stage.ended]
    for more in (["--at", "t1"], ["--at", EVIL], ["--at", "t1", "--json"], ["--at", "t1", "-o", "out/fork.md"]):
        yield [stage.ended, *more]


@calls("diff")
def _(stage: Stage) -> Iterator[Arguments]:
    for other in (stage.ended, "last", EVIL):
        yield [stage.ended, other]
    yield [stage.ended, "last", "--json"]


@calls("cancel")
def _(stage: Stage) -> Iterator[Arguments]:
    yield [EVIL]
    yield [stage.ended]
    yield ["last"]


@calls("pause")
def _(stage: Stage) -> Iterator[Arguments]:
    yield [EVIL]
    yield [stage.ended]
    yield ["last"]


@calls("steer")
def _(stage: Stage) -> Iterator[Arguments]:
    yield [EVIL, EVIL, "--stop"]
    yield [stage.ended, EVIL, EVIL, "--stop"]
    yield ["last", EVIL, "--stop"]
    yield ["last", EVIL, EVIL]


@calls("answer")
def _(stage: Stage) -> Iterator[Arguments]:
    yield ["last", EVIL, EVIL]
    yield ["last", stage.question, f"@{EVIL}"]
    yield ["last", stage.question, EVIL]
    yield ["last", stage.question, EVIL, "--resume", "--json"]
    yield ["last", stage.question, EVIL, "--resume", "-o", "out/answer.md"]


@calls("trace")
def _(stage: Stage) -> Iterator[Arguments]:
    for form in ("json", "jsonl", "html", "otlp"):
        yield [stage.ended, "--format", form, "-o", "-"]
        yield ["last", "--format", form, "-o", f"out/{NAME}.{form}"]
    yield [EVIL]


@calls("eval")
def _(stage: Stage) -> Iterator[Arguments]:
    for more in ([], ["--json"], ["-o", "out/eval.html"], ["-o", "out/eval.json"], ["-v", "--fresh", "--repeat", "2"]):
        yield ["team", "--model", stage.model, *more]
    yield [EVIL]


@calls("models")
def _(stage: Stage) -> Iterator[Arguments]:
    (stage.folder / "chargehand.toml").write_text('"\\u001b]0;owned\\u0007\\u202e" = 1\n')
    yield []
    yield ["--json"]


@calls("teams")
def _(_: Stage) -> Iterator[Arguments]:
    yield []
    yield ["--json"]


@calls("teams show")
def _(_: Stage) -> Iterator[Arguments]:
    yield ["team"]
    yield ["team", "--json"]


@calls("teams new")
def _(_: Stage) -> Iterator[Arguments]:
    yield [EVIL.replace("/", "")]
    yield [f"{NAME}/fine"]


@calls("demo")
def _(stage: Stage) -> Iterator[Arguments]:
    (stage.folder / NAME).mkdir()
    (stage.folder / NAME / "mine.txt").write_text("not the demo's")
    yield [NAME]


@calls("doctor")
def _(stage: Stage) -> Iterator[Arguments]:
    (stage.folder / NAME).mkdir()
    assert stage.shell("trust", stage.folder / NAME).code == 0
    yield []
    yield ["--json"]


@calls("trust")
def _(stage: Stage) -> Iterator[Arguments]:
    (stage.folder / NAME).mkdir()
    yield [NAME]
    yield ["--list"]
    yield [NAME, "--remove"]
    yield [EVIL, "--remove"]


@calls("schema")
def _(_: Stage) -> Iterator[Arguments]:
    yield []
    yield ["plan"]
    yield [EVIL]


@calls("completion")
def _(_: Stage) -> Iterator[Arguments]:
    for shell in ("bash", "zsh", "fish", EVIL):
        yield [shell]


@calls("serve")
def _(_: Stage) -> Iterator[Arguments]:
    # Each is refused: a server that starts does not end. What one answers is tested in tests/server.
    yield ["--token-file", EVIL]
    yield ["--notify", f"'{EVIL}"]
    yield ["--cert", EVIL, "--key", EVIL, "--port", "0"]
    yield ["--host", EVIL, "--port", "0"]
    yield ["--log", EVIL]


@calls("mcp")
def _(_: Stage) -> Iterator[Arguments]:
    yield ["--print-config", EVIL]
    yield [f"--{EVIL}"]


@calls("mcp list")
def _(stage: Stage) -> Iterator[Arguments]:
    (stage.folder / "chargehand.toml").write_text(f"[mcp.evil]\ncommand = {json.dumps(EVIL)}\n".replace("\x7f", ""))
    yield []
    yield ["--json"]
    yield [EVIL]


@calls("mcp test")
def _(_: Stage) -> Iterator[Arguments]:
    yield [EVIL]


@calls("worker")
def _(_: Stage) -> Iterator[Arguments]:
    yield ["--team", EVIL]
    yield ["--team", "broken"]
    yield ["--only", EVIL, f"--{EVIL}"]


@pytest.fixture(name="stage")
def _stage(shell: Shell) -> Stage:
    stage = Stage(shell)
    stage.lay_out()
    return stage


def commands(group: click.Group, *above: str) -> Iterator[tuple[str, click.Command]]:
    """Every command there is, by its full name."""
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        found = group.get_command(ctx, name)
        assert found is not None
        yield " ".join((*above, name)), found
        if isinstance(found, click.Group):
            yield from commands(found, *above, name)


def assert_shown(where: object, text: str) -> None:
    raw = RAW.search(text)
    assert raw is None, f"{where}: {raw[0]!r} in {text[max(raw.start() - 80, 0) : raw.end() + 80]!r}"


@pytest.mark.parametrize("name", [name for name, _ in commands(cli)])
def test_no_command_lets_a_control_character_out(stage: Stage, name: str) -> None:
    """Neither on stdout, nor on stderr, nor in a file; what is JSON stays JSON, and no command is left out."""
    assert name in CALLS, f"Say in this file how `chargehand {name}` is called with hostile input."
    if name in AFTER_A_RUN:
        stage.ran()
    given: list[str] = []
    seen = ""
    for arguments in CALLS[name](stage):
        given += map(str, arguments)
        got = stage.shell(*name.split(), *arguments)
        where = (name, *arguments)
        assert "An error in chargehand itself" not in got.err, (where, got.err)
        assert_shown((*where, "stdout"), got.out)
        assert_shown((*where, "stderr"), got.err)
        if (got.out.startswith("{") and name != "trace") or ("--json" in arguments and "-o" not in arguments):
            assert json.loads(got.out or "{}") is not None
        seen += got.out + got.err
    for path in (stage.folder / "out").rglob("*"):
        if path.is_file():
            text = path.read_bytes().decode()
            assert_shown((name, path.name), text)
            if path.suffix in (".json", ".sarif"):
                assert json.loads(text)
    assert "owned" in seen, "Nothing hostile was there to be shown."
    command = dict(commands(cli))[name]
    for option in command.params:
        for form in option.type.choices if option.name == "form" and isinstance(option.type, click.Choice) else ():
            assert form in given, f"`{name} --format {form}` is not called here."
        if option.name in ("as_json", "output"):
            assert {"--json", "-o"} & {*option.opts} & {*given}, f"`{name} {option.opts[0]}` is not called here."


@pytest.mark.parametrize("name", [name for name, _ in commands(cli) if name not in ("testgen", "completion", "schema")])
def test_no_command_lets_a_control_character_reach_a_terminal(stage: Stage, name: str) -> None:
    """With both streams on a real terminal there is nothing but our own colours and moves of the cursor."""
    if name in AFTER_A_RUN:
        stage.ran()
    called = [
        given for given in CALLS[name](stage) if not {"--json", "-o", "json", "sarif", "jsonl"} & {*map(str, given)}
    ]
    for arguments in called[:2]:
        mine, theirs = pty.openpty()
        env = {"TERM": "xterm", "COLUMNS": "120", "LINES": "60"}
        streams = {"stdin": subprocess.DEVNULL, "stdout": theirs, "stderr": theirs}
        child = process(*name.split(), *arguments, home=stage.shell.home, env=env, **streams)
        os.close(theirs)
        seen = seen_on(mine)
        child.wait(timeout=PATIENCE_S)
        assert_shown((name, *arguments), OWN.sub("", seen))


def test_json_has_every_control_character_as_an_escape_and_loses_none(stage: Stage) -> None:
    """The answer in the report is what the model said, to the letter."""
    got = stage.shell(*["run", *RUN, "--model", stage.model, "--json"])
    assert_shown("stdout", got.out)
    assert f"Words {EVIL} and" in got.json["answer"]
    assert got.json["plan"]["goal"] == f"Say {EVIL}"
    assert "\\u202e" in got.out
    assert "\\u009b" in got.out
    assert "\\u007f" in got.out
    lines = stage.shell("trace", "last", "--format", "jsonl", "-o", "-").out.splitlines()
    said = [json.loads(line) for line in lines]
    assert any(event["kind"] == "run_ended" and EVIL in event["report"]["answer"] for event in said)


def test_text_shows_a_control_character_by_its_escape(stage: Stage) -> None:
    """A reader sees what was there: \\x1b, \\x9b, \\u202e; lines and tabs stay, marks of Hebrew and Arabic too."""
    says = {
        "when": {"role": "synthesizer"},
        "reply": {"json": {"answer": "A\tb\r\nc \x1b[1m\x9b\u202e\u200fd [t1, t2]."}},
    }
    got = stage.shell("run", "Say it", "--model", stage.shell.script(says))
    assert got.out == "A\tb\nc \\x1b[1m\\x9b\\u202e\u200fd [t1, t2].\n"


def test_an_error_of_a_server_is_shown_without_its_control_characters(stage: Stage) -> None:
    """Bodies and reasons of a real server."""

    def refuse(_: Seen) -> Answer:
        return Answer(status=400, raw=json.dumps({"error": {"message": f"No {EVIL}"}}).encode())

    with serving(refuse) as server:
        shell_settings(stage.shell, f"{server.url}/v1")
        for args in (["run", "Say it"], ["plan", "Say it"], ["run", "-v", "Say it"]):
            got = stage.shell(*args, "--model", "local:m")
            assert got.code == 1
            assert_shown(args, got.out)
            assert_shown(args, got.err)
            assert "owned" in got.err


def test_a_question_on_the_terminal_is_shown_without_its_control_characters(stage: Stage) -> None:
    """A person reads what a worker asks, and what was wrong with the answer."""
    asks = f"scripted:{stage.folder / 'asks.json'}"
    screen = Asking("run", *RUN, "--ask", "--approve", "--model", asks, home=stage.shell.home)
    screen.until("plan> ")
    screen.type("approve\n")
    screen.until("later)\r\nt")  # the prompt of any task: keys typed before it are flushed, Ctrl-C among them
    screen.type("\x03")
    screen.leave()
    # The terminal echoes the key for Ctrl-C itself, once.
    assert_shown("the terminal", OWN.sub("", screen.seen.decode()).replace("\x03", "", 1))
