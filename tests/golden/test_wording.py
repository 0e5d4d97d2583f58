"""Every message of a surface, rendered and compared with its golden file."""

from __future__ import annotations

import errno
import shlex
import sqlite3
from pathlib import Path
from typing import Any, cast, get_args

import pytest

from chargehand.errors import ErrorKind, InvalidTeam, UsageError
from chargehand.events.kinds import KINDS
from chargehand.models.provider_errors import Endpoint, cut, from_status, too_large, unreadable
from chargehand.planner.lost_details import losses
from chargehand.record.storage_errors import damage_error, storage_error
from chargehand.runs.check_arguments import FORK_MODEL, RULES
from chargehand.runs.report_from_record import estimate_notes
from chargehand.settings import load_settings
from chargehand.team import Example, Team, Worker, load
from chargehand.text.plan_json import read
from chargehand.tools import tool
from chargehand.trace import RunState
from chargehand.trace.event_words import describe_event
from chargehand.values.argument_rules import wrong_arguments
from chargehand.values.outcome import Usage
from chargehand.values.plan import FactoryLimits, Plan, ProblemCode, Task, WorkerSpec
from chargehand.values.request import Request
from tests.cli.terminal import Shell, plan
from tests.cli.terminal import task as cli_task
from tests.events import make_event
from tests.golden import check_wording

# -- plans -----------------------------------------------------------------------------------------------------------


def task(id: str = "a", **fields: Any) -> Task:
    said: dict[str, Any] = {"worker": "w", "instruction": "Count the boats in town.", "success_criterion": "A number."}
    return Task.model_validate({"id": id, **said, **fields})


def test_problems_of_plans() -> None:
    """What is wrong with a plan that can be read; each code occurs."""
    made_by_plan = [
        WorkerSpec(name="x", description="X", tools=("run_sql",), tier="large"),
        WorkerSpec(name="x", description="X"),
        WorkerSpec(name="not a name", description="X"),
        WorkerSpec(name="y"),
    ]
    factory = FactoryLimits(tools=("read_file",), tiers=("small",))
    plans: dict[str, tuple[list[Task], dict[str, Any]]] = {
        "empty": ([], {}),
        "too many tasks": ([task("a"), task("b"), task("c")], {"max_tasks": 2}),
        "over the budget": ([task(budget={"tokens": 9_000})], {"budget_tokens": 5_000}),
        "invalid id": ([task("1 a")], {}),
        "no id": ([task("")], {}),
        "an id twice": ([task("a"), task("a")], {}),
        "unknown worker": ([task(worker="x")], {}),
        "no instruction": ([task(instruction="")], {}),
        "instruction that points elsewhere": ([task(instruction="Do the same as above for Bergen.")], {}),
        "no criterion": ([task(success_criterion="")], {}),
        "depends on itself": ([task("a", depends_on=["a"])], {}),
        "depends on nothing": ([task("a", depends_on=["z"])], {}),
        "cycle": ([task("a", depends_on=["b"]), task("b", depends_on=["a"])], {}),
    }
    messages: dict[str, str] = {}
    codes: set[str] = set()
    for name, (tasks, limits) in plans.items():
        found = Plan(tasks=tuple(tasks)).problems(["w", "v"], **limits)
        codes |= {problem.code for problem in found}
        messages[name] = "\n".join(map(str, found))
    for name, allowed in (("workers where none may be made", None), ("workers that may not be made so", factory)):
        found = Plan(tasks=(task(),), workers=tuple(made_by_plan)).problems(["w"], factory=allowed)
        codes |= {problem.code for problem in found}
        messages[name] = "\n".join(map(str, found))
    copied = task(instruction="For each of the boats write its name, its owner and the year in which it was built.")
    example = Example.model_validate({"request": "Describe boats", "plan": Plan(tasks=(copied,)).to_json()})
    team = Team([Worker("w", "Counts")], examples=[example])
    for name, drafted in {
        "a lost figure": task(instruction="Name all of the ferries."),
        "a copied example": copied,
        "an unknown file": task(instruction="Name the 12 ferries in list.csv."),
    }.items():
        found = losses(Plan(tasks=(drafted,)), Request(text="name the 12 ferries"), team)
        codes |= {problem.code for problem in found}
        messages[name] = "\n".join(map(str, found))
    assert codes == {*get_args(ProblemCode)} - {"depth"}
    check_wording("plan_problems", messages)


def test_problems_of_plans_that_cannot_be_read() -> None:
    """A field of the wrong type, or one that does not exist, is named by its place."""
    deep: list[object] = []
    for _ in range(300):
        deep = [deep]
    fields: dict[str, Any] = {
        "id": 3,
        "worker": [],
        "instruction": {},
        "success_criterion": 5,
        "depends_on": "b",
        "on_dependency_failure": "hope",
        "budget": {"tokens": "all"},
        "timeout_s": -1,
        "tier": "huge",
        "best_of": 0,
        "context": deep,
        "context that is not Unicode": "\ud800",
        "colour": "red",
        "depend_on": [],
    }
    messages = {
        name: "\n".join(map(str, read({"tasks": [task().to_json() | {name.split()[0]: value}]}).problems(["w"])))
        for name, value in fields.items()
    }
    for name, data in {
        "a number": 3,
        "no list of tasks": {"tasks": 3},
        "a task that is a text": {"tasks": ["do"]},
    }.items():
        messages[name] = "\n".join(map(str, read(data).problems(["w"])))
    check_wording("unreadable_plans", messages)


# -- teams -----------------------------------------------------------------------------------------------------------


@tool(name="population")
def population(city: str) -> int:
    """Inhabitants of a city."""
    return len(city)


@tool(name="population")
def other_population(city: str) -> int:
    """Another tool of that name."""
    return len(city)


@tool
def escalate(reason: str) -> str:
    """A tool with the name of a built-in one."""
    return reason


@tool
def of_a_class(team: Team) -> str:
    """A tool whose parameter no model can write."""
    return team.name


def of_no_words(city: str) -> int:
    return len(city)


def team_problems(*workers: Worker, **options: Any) -> str:
    try:
        return "\n".join(map(str, Team(list(workers), **options).problems()))
    except InvalidTeam as error:
        return "\n".join(map(str, error.problems))


def test_problems_of_teams() -> None:
    """Of teams made in Python, where no file can be named."""
    messages = {
        "no workers": team_problems(),
        "worker without a description": team_problems(Worker("a", "")),
        "invalid name": team_problems(Worker("not a name", "A")),
        "a name twice": team_problems(Worker("a", "A"), Worker("a", "A")),
        "unknown tool": team_problems(Worker("a", "A", tools=["calculat"])),
        "unknown shared tool": team_problems(Worker("a", "A"), shared_tools=["nothing"]),
        "a tool in two workers": team_problems(
            Worker("a", "A", tools=["read_file"]), Worker("b", "B", tools=["read_file"])
        ),
        "two tools of one name": team_problems(
            Worker("a", "A", tools=[population]),
            Worker("b", "B", tools=[other_population]),
            shared_tools=["population"],
        ),
        "a tool twice": team_problems(Worker("a", "A", tools=[population, population])),
        "a tool without a docstring": team_problems(Worker("a", "A", tools=[of_no_words])),
        "a tool with a built-in name": team_problems(Worker("a", "A", tools=[escalate])),
        "unknown fallback": team_problems(Worker("a", "A", fallback="nobody")),
        "fallbacks in a cycle": team_problems(Worker("a", "A", fallback="b"), Worker("b", "B", fallback="a")),
        "values out of range": team_problems(Worker("a", "A", max_steps=0, temperature=3, model="gpt")),
        "unknown effort": team_problems(Worker("a", "A", effort=cast("Any", "huge"))),
        "too many workers": team_problems(*(Worker(f"w{n}", "W") for n in range(8))),
        "a person with tools": team_problems(Worker("a", "A", kind="human", tools=["read_file"], model="ollama:x")),
        "a delegate without a team": team_problems(Worker("a", "A", kind="delegate")),
        "a check that does not exist": team_problems(Worker("a", "A", check="calculat")),
        "wrong arguments of a worker": team_problems(
            Worker(
                "a",
                "A",
                **dict[str, Any](
                    prompt=None,
                    tools="read_file",
                    model=3,
                    tier="huge",
                    max_steps="5",
                    output_schema=3,
                    temperature="hot",
                    kind="robot",
                    check=3,
                    team="general",
                    command="ls -l",
                    program="ls",
                ),
            )
        ),
        "a schema that cannot be used": team_problems(Worker("a", "A", output_schema={"type": "strng"})),
        "a tool whose parameter has no JSON form": team_problems(Worker("a", "A", tools=[of_a_class])),
        "wrong arguments of a team": team_problems(
            cast("Any", "a"),
            **dict[str, Any](
                name=3,
                mode="rout",
                ask="yes",
                max_depth=0,
                factory_tiers=["huge"],
                shared_tools="read_file",
                budget=5,
                limits={"max_task": 3},
                recovery={"evidence": "strct", "attempts": 9},
                synthesis={"mode": "mrge"},
                scrutiny={"critik": True},
                models={"planer": {}, "large": "gpt"},
                routes=[{"match": "x", "wrker": "a"}, 3],
                examples=[{"request": "x"}],
            ),
        ),
        "an analyzer without analyzers": team_problems(Worker("a", "A", kind="analyzer")),
    }
    check_wording("team_problems", messages)


def test_problems_of_team_files(tmp_path: Path) -> None:
    """Each has file, line and column."""
    head = 'name = "mine"\ndescription = "Mine."\n'
    tomls = {
        "route to no worker": "[[routes]]\nmatch = 'x'\nworker = 'c'\n",
        "route with one worker twice": "[[routes]]\nmatch = 'x'\nworker = 'a'\nsecondary='a'\n",
        "route that is not an expression": "[[routes]]\nmatch = '('\nworker = 'a'\n",
        "route that cannot be searched in linear time": "[[routes]]\nmatch = 'x(?!y)'\nworker = 'a'\n",
        "exception that is not an expression": "[[routes]]\nmatch = 'x'\nworker = 'a'\nunless = '('\n",
        "route by an empty word": "[[routes]]\nmatch = ['']\nworker = 'a'\n",
        "route without a worker": "[[routes]]\nmatch = 'x'\n",
        "unknown field of a route": "[[routes]]\n wen = 'x'\nmatch = 'x'\nworker = 'a'\n",
        "routes that are a number": "routes = 3\n",
        "unknown default": "[supervisor]\ndefault = 'aa'\n",
        "unknown tool of the factory": "[factory]\ntools = ['read_fil']\n",
        "tools that are a text": "[factory]\ntools = 'read_file'\n",
        "unknown tier": "[factory]\ntiers = ['huge']\n",
        "no tier": "[factory]\ntiers = []\n",
        "unknown field of the factory": "[factory]\ntool = []\n",
        "no depth": "[limits]\nmax_depth = 0\n",
        "not TOML": "name = \n",
    }
    messages: dict[str, str] = {}
    for number, (name, toml) in enumerate(tomls.items()):
        folder = tmp_path / str(number)
        (folder / "workers").mkdir(parents=True)
        (folder / "team.toml").write_text(head + toml)
        (folder / "workers" / "a.md").write_text("---\nname: a\ndescription: Does a.\n---\nYou are it.\n")
        with pytest.raises(InvalidTeam) as caught:
            load(folder)
        messages[name] = "\n".join(map(str, caught.value.problems))
    check_wording("team_files", messages)


# -- arguments in Python ---------------------------------------------------------------------------------------------


def test_wrong_arguments_in_python() -> None:
    """A sentence for each argument: its value and what to give instead."""

    async def listen(event: object) -> None: ...

    def ask(question: object) -> str:
        return str(question)

    values: dict[str, Any] = {
        "team": [Worker("a", "A")],
        "model": Team,
        "settings": {},
        "request": None,
        "plan": "plan.json",
        "gaps": None,
        "material": None,
        "tokens": "100",
        "usd": float("nan"),
        "deadline": "60",
        "wait": -1,
        "schema": Team,
        "output_type": list[Team],
        "approve": "yes",
        "run": Plan(),
        "question": 3,
        "words": True,
        "person": ask,
        "on_event": listen,
        "on_draft": 3,
    }
    fork = wrong_arguments({"model": object()}, {"model": FORK_MODEL})
    check_wording("python_arguments", {**wrong_arguments(values, RULES), "model of a fork": fork["model"]})


# -- settings --------------------------------------------------------------------------------------------------------


def test_errors_in_settings(tmp_path: Path) -> None:
    """What is wrong in the project's file, in flags and in the environment, and where."""
    (tmp_path / "home").mkdir()
    (tmp_path / "tree" / ".git").mkdir(parents=True)

    def error(text: str, env: dict[str, str] | None = None, **flags: Any) -> str:
        (tmp_path / "tree" / "chargehand.toml").write_text(text)
        environment = {"CHARGEHAND_HOME": str(tmp_path / "home"), **(env or {})}
        with pytest.raises(UsageError) as caught:
            load_settings(environment, tmp_path / "tree", flags)
        return str(caught.value).replace(str(tmp_path), "…")

    messages = {
        "four unknown names": error(
            'modle = "ollama:x"\nmax_concurrent = "many"\n\n[budget]\ntoken = 5\n\n[models.planer]\ntier = "x"\n'
        ),
        "a value is missing": error("model = \n"),
        "a text is not closed": error('a = 1\nb = "open\n'),
        "a model without a provider": error('model = "gpt"\n'),
        "a limit of nothing": error("[budget]\ntokens = 0\n"),
        "a limit that is a truth value": error("[budget]\ntokens = true\n"),
        "a number where a table is wanted": error("budget = 5\n"),
        "temperature out of range": error("[models.judge]\ntemperature = 3\n"),
        "an option that is not one": error("[models.judge.options]\nmessages = []\n"),
        "a provider without an address": error('[providers.x]\nwire = "openai"\n'),
        "an address that is not http": error('[providers.x]\nbase_url = "ftp://x"\n'),
        "credentials in an address": error('[providers.x]\nbase_url = "https://u:secret@x/v1"\n'),
        "an unknown wire": error('[providers.x]\nbase_url = "https://x"\nwire = "grpc"\n'),
        "a name that is taken": error('[providers.scripted]\nbase_url = "https://x"\n'),
        "an option that chargehand sets": error("[models.planner]\noptions = { max_tokens = 5 }\n"),
        "--model without a provider": error("", model="gpt"),
        "--model of an unknown provider": error("", model="nobody:x"),
        "CHARGEHAND_MODEL without a name": error("", {"CHARGEHAND_MODEL": "ollama:"}),
        "--max-concurrent 0": error("", max_concurrent=0),
    }
    assert "secret" not in messages["credentials in an address"]
    check_wording("settings", messages)


# -- models ----------------------------------------------------------------------------------------------------------


def test_errors_of_models() -> None:
    """What a provider did, and what to do."""
    lab = Endpoint("lab", "http://lab.example/v1", {}, key="sk-secret", key_env="LAB_KEY")
    local = Endpoint("local", "http://127.0.0.1:1/v1", {})

    def said(status: int, message: str = "", endpoint: Endpoint = lab, **headers: str) -> str:
        body = f'{{"error": {{"message": "{message}"}}}}'.encode() if message else b""
        error = from_status(endpoint, status, headers, body)
        return f"{error.kind}{', transient' if error.transient else ''}: {error}"

    messages = {
        "301": said(301, Location="http://elsewhere.example/v1"),
        "400": said(400, "No such field."),
        "400 too long": said(400, "This exceeds the maximum context length."),
        "400 filtered": said(400, "content_filter: no."),
        "401": said(401, "Wrong key sk-secret."),
        "401 without a key": said(401, endpoint=local),
        "404": said(404, "No such model."),
        "408": said(408),
        "413": said(413),
        "429": said(429, "Slow down."),
        "429 quota": said(429, "insufficient_quota"),
        "503": said(503),
        "a page instead of JSON": str(unreadable(lab, b"<html>")),
        "nothing instead of JSON": str(unreadable(lab, b"")),
        "text instead of JSON": str(unreadable(lab, b"hello")),
        "a reply that is too large": str(too_large(lab, 64 * 2**20)),
        "a reply that ends early": str(cut(lab)),
    }
    assert {message.partition(":")[0].partition(",")[0] for message in list(messages.values())[:12]} <= {
        *get_args(ErrorKind)
    }
    assert "sk-secret" not in "".join(messages.values())
    check_wording("model_errors", messages)


# -- the record ------------------------------------------------------------------------------------------------------


def test_errors_of_the_disk() -> None:
    """One sentence with what happened, where and what to do."""
    path = Path("home/runs/r.sqlite")

    def sqlite(name: str) -> str:
        error = sqlite3.OperationalError("what SQLite says")
        error.sqlite_errorname = name
        return storage_error(path, error).with_command

    names = ("FULL", "READONLY", "PERM", "CANTOPEN", "BUSY", "LOCKED", "IOERR_SHORT_READ", "IOERR", "NOMEM", "CORRUPT")
    messages = {f"SQLITE_{name}": sqlite(f"SQLITE_{name}") for name in names}
    for number, words in (
        (errno.ENOSPC, "No space left"),
        (errno.EROFS, "Read-only"),
        (errno.EACCES, "Permission denied"),
    ):
        messages[errno.errorcode[number]] = storage_error(path, OSError(number, words)).with_command
    messages["damaged"] = damage_error(path, "event 3 is missing").with_command
    check_wording("storage_errors", messages)


# -- what a run says while it runs and at its end ----------------------------------------------------------------------


def test_lines_of_progress() -> None:
    """One line for each kind of event that has one."""
    fields: dict[str, dict[str, Any]] = {
        "run_started": {"team": {"name": "general"}},
        "plan_rejected": {"problems": [{"message": "The plan has 4 tasks; at most 3 are allowed."}, {}]},
        "plan_approved": {"plan": {"tasks": [{"id": "t1"}]}, "strategy": "single"},
        "attempt_started": {"worker": "writer"},
        "model_called": {"send": 2},
        "tool_called": {"send": 3},
        "tool_refused": {"tool": "read_file", "reason": "There is no file x."},
        "progress": {"text": "Edit stats.py"},
        "task_ended": {"outcome": {"status": "done", "summary": "It is written."}},
        "decision": {
            "key": "t1/1/model/1/retry/2",
            "decision": "transport_retry",
            "value": {"after_s": 2.0},
            "reason": "lab is rate limiting (429)",
        },
        "question_asked": {"question": {"id": "t1"}},
        "control": {"order": "stop", "verdict": "accepted"},
        "synthesis_started": {"outcomes": 3},
        "draft_discarded": {"reason": "It cites a task that does not exist."},
        "contradiction_found": {"contradiction": {"subject": "the price", "resolved": False}},
        "critique": {"verdict": "accept"},
        "extension": {"tasks": [{"id": "x1.t1"}]},
        "breaker_changed": {
            "name": "provider:lab",
            "state": "open",
            "reason": "for 1 s after 5 errors in a row: lab is overloaded (503)",
        },
        "warning": {"message": "The folder is not trusted."},
        "run_ended": {"status": "complete"},
    }
    messages: dict[str, str] = {}
    view = RunState()
    for seq, kind in enumerate(KINDS, 1):
        event = make_event(kind, "t1", 1, seq=seq, at=float(seq), **fields.get(kind, {}))
        view.apply(event)
        if (line := describe_event(event, view)) is not None:
            messages[kind] = line
    assert messages.keys() == fields.keys()
    taken = make_event("question_asked", "t1", 1, question={"id": "t1"}, source="20260101-000000-abcd")
    messages["question_asked, answered in another run"] = str(describe_event(taken, RunState()))
    check_wording("progress", messages)


def test_notes_about_estimates() -> None:
    """What of the usage of a run is an estimate."""
    lost = Usage(input_tokens=900, output_tokens=100, calls=2)
    check_wording(
        "report_notes",
        {"calls cut off": "\n".join(estimate_notes(lost, ())), "both": "\n".join(estimate_notes(lost, (50,)))},
    )


# -- the command line ------------------------------------------------------------------------------------------------


def test_complaints_of_commands(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence for each mistake in a command line, with the exit code."""
    shell.write("plan.json", plan(cli_task("a")))
    shell.write("wrong.json", "{")
    model = ("--model", shell.script())
    messages: dict[str, str] = {}

    def complain(*args: str, stdin: bytes = b"", model: tuple[str, ...] = model) -> None:
        got = shell(*args, *model, stdin=stdin)
        messages[shlex.join(("chargehand", *args))] = (
            f"{got.complaint.replace(str(shell.folder), '…')} (exit {got.code})"
        )

    complain("run")
    complain("run", "x", "--tokens", "0")
    complain("run", "x", "--tokens", "many")
    complain("run", "x", "--deadline", "2m")
    complain("run", "wrong.json")
    complain("resume", model=())
    complain("rerun", "last", "plan.json", model=())
    complain("run", "x", "--usd", "1")
    complain("run", "x", "--with", "nothing-here")
    complain("run", "x", "--team", "genral")
    complain("run", "x", "--from", "nothing")
    complain("run", "x", "--plan", "nothing.json")
    complain("run", "x", "--plan", "wrong.json")
    complain("run", "x", "--plan", ".")
    complain("run", "x", "--critics")
    complain("run", "x", "--token", "500")
    complain("run", "x", "--schema", "nothing.json")
    complain("run", "x", "-o", "no/such/folder/answer.md")
    complain("run", "-", "--with", "-", stdin=b"x")
    complain("run", "-", "--schema", "-", stdin=b"{}")
    complain("run", "x", model=())
    complain("run", "x", "--model", "nope:x", model=())
    complain("run", "x", "--single", "--web")
    complain("resum", "last", model=())
    complain("check", "nothing.json", model=())
    for command in ("show", "resume", "rerun", "cancel", "trace"):
        complain(command, "nothing", model=())
        complain(command, "last", model=())
    complain("answer", "nothing", "plan", "approve", model=())
    complain("review", "nowhere", model=())
    complain("review", ".", "--patch", "missing.diff", model=())
    complain("review", ".", "--diff", "a", "--patch", "b", model=())
    complain("review", ".", "--baseline", "missing.json", model=())
    complain("review", ".", "--baseline", "wrong.json", model=())
    complain("review", ".", "--min-confidence", "101", model=())
    complain("review", ".", "--model", "nonsense", model=())
    complain("review", ".", "--patch", "-", stdin=b"--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n", model=())
    assert shell("runs", "--json").json == {"runs": []}
    shell.write("home.txt", "a file")
    monkeypatch.setenv("CHARGEHAND_HOME", str(shell.folder / "home.txt"))
    for command in (("runs",), ("run", "y"), ("trust", "."), ("eval", "general")):
        complain(*command, model=())
        messages[f"with a file as home: {shlex.join(('chargehand', *command))}"] = messages.pop(
            shlex.join(("chargehand", *command))
        )
    check_wording("command_line", messages)


def test_complaints_about_answers(shell: Shell) -> None:
    """To a question that is not open, and in words that cannot be used."""
    run = shell("run", "x", "--approve", "--json", "--model", shell.script()).json["run"]
    messages: dict[str, str] = {}

    def complain(when: str, question: str, words: str) -> None:
        got = shell("answer", "last", question, words)
        messages[f"{when}: answer last {question} {words}"] = f"{got.complaint.replace(run, 'RUN')} (exit {got.code})"

    complain("waiting", "plam", "approve")
    complain("waiting", "plan", "perhaps")
    complain("waiting", "plan", "")
    shell("answer", "last", "plan", "approve")
    complain("answered", "plan", "reject")
    complain("answered", "plam", "approve")
    shell("resume", "last")
    complain("ended", "plan", "approve")
    check_wording("answers", messages)


def test_what_is_printed_about_orders(shell: Shell) -> None:
    """To a run that waits, and to one that has ended: the reason and the command to type next."""
    run = shell("run", "x", "--approve", "--json", "--model", shell.script()).json["run"]
    messages: dict[str, str] = {}

    def order(when: str, *args: str) -> None:
        got = shell(*args)
        messages[f"{when}: {shlex.join(args)}"] = f"{got.err.strip().replace(run, 'RUN')} (exit {got.code})"

    order("waiting", "steer", "last", "t1", "Use euros.")
    order("waiting", "pause", "last")
    shell("answer", "last", "plan", "approve", "--resume")
    order("ended", "pause", "last")
    order("ended", "steer", "last", "t9", "--stop")
    order("ended", "steer", "last", "t1", "--stop")
    order("ended", "steer", "last", "t1", "Use euros.")
    order("ended", "steer", "last", "t1", "--restart")
    check_wording("orders", messages)


def test_what_stands_in_for_an_answer(shell: Shell) -> None:
    """-q prints how far the run has come and the commands that continue it; the report itself names none."""
    messages: dict[str, str] = {}

    def show(when: str, *args: str) -> None:
        got = shell(*args)
        report = shell("show", "last", "--json").json
        messages[when] = got.err.strip().replace(report["run"], "RUN")
        messages[f"{when}: the report"] = report["answer"]

    model = ("--model", shell.script())
    show("a plan to approve", "run", "x", "-q", "--approve", *model)
    show("cancelled", "cancel", "last")
    show("resumed", "resume", "last", "-q")
    shell("answer", "last", "plan", "approve")
    messages["answered: the report"] = shell("show", "last", "--json").json["answer"]
    check_wording("unfinished", messages)
