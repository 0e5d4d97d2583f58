"""README and docs are executed: commands run, Python runs, links lead somewhere, tables say what the code says.

In every page: a `console` block is a session that needs no key, and each line of output shown must come, in the order
shown (figures and ids aside, `...` stands for anything); a `python` block runs against a provider on loopback; a block
below a line that is only a file name is that file; a command that ends with `&` runs beside the next ones. `sh` blocks
need a key or the network: only their commands and flags are checked.
"""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

import click
import pytest

import chargehand
from chargehand import Question, SentOrder, Supervisor, Team, Worker, events, testing, tool
from chargehand.apps.demo import TUTORIAL
from chargehand.cli import COMMANDS, cli
from chargehand.errors import ErrorKind
from chargehand.events.kinds import KINDS
from chargehand.models.scripted import Script, ScriptedModel
from chargehand.settings import load_settings
from chargehand.text.plan_json import parse
from chargehand.values.base import Value
from chargehand.values.budget import Budget
from chargehand.values.outcome import Claim, Contradiction, Finding, Gap, Outcome, Usage
from chargehand.values.plan import Plan, Problem, ProblemCode, Task, WorkerSpec, errors_in
from chargehand.values.report import Provenance, Report, Timing
from chargehand.values.request import Request
from chargehand.values.role import Role
from chargehand.values.status_words import EXIT_CODES
from scripts import architecture
from scripts.reference_events import events_reference
from tests.engine.temporal.fleet import free_port
from tests.loopback import Answer, Seen, answer_json, serving
from tests.pace import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/README.md")])
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
# About other programs' flags.
OTHER_FLAGS = {
    "docs/reference/python.md": {"--strict"},
    "docs/adr/0012-unified-diffs-are-read-by-our-own-reader.md": {"--numstat"},
    "CONTRIBUTING.md": {"--randomly-seed", "--exclude-editable"},
    "CHANGELOG.md": {"--from-ref"},
    "docs/explanation/review-quality.md": {"--commits", "--half", "--lines"},
    "docs/how-to/generate-tests.md": {"--cov-fail-under"},
    "docs/how-to/run-on-temporal.md": {"--db-filename", "--headless", "--retry", "--retry-connrefused"},
    "docs/how-to/serve.md": {"--home-dir", "--now", "--system"},
    "docs/how-to/use-from-other-programs.md": {"--allowed-tools"},
    "docs/how-to/review-code.md": {"--from-ref", "--to-ref", "--all-files", "--unidiff-zero"},
}
# Names of other programs' settings and functions, and of a reader's own code.
OTHER_WORDS = {
    "docs/how-to/coming-from.md": {
        *("async_execution", "manager_llm", "max_execution_time", "max_rpm", "thread_id", "run_streamed"),
        *("run_stream", "run_stream_events", "message_history", "requires_approval"),
        *("UsageLimitExceeded", "TestModel", "FunctionModel"),
    },
    "CONTRIBUTING.md": {path.stem for path in (ROOT / "tests").rglob("*.py")},
    "docs/how-to/serve.md": {"StateDirectory", "http_host"},
    "docs/reference/tools.md": {"north_sales"},
    "docs/explanation/test-generation-quality.md": {
        "add_path",
        "normalize_authority",
        "normalize_scheme",
        "split_authority",
    },
}


@dataclass(frozen=True)
class Block:
    """One fenced block; `file` is the name it is to be saved under, if the page says so."""

    language: str
    text: str
    line: int
    file: str | None


def blocks(page: Path) -> Iterator[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    start: int | None = None
    for number, line in enumerate(lines):
        if start is None and line.startswith("```"):
            start = number
        elif start is not None and line == "```":
            above = next((text for text in reversed(lines[:start]) if text.strip()), "")
            named = re.fullmatch(r"`([\w./-]+)`:", above)
            text = "\n".join(lines[start + 1 : number]) + "\n"
            yield Block(lines[start].removeprefix("```"), text, start + 1, named[1] if named else None)
            start = None


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def code(page: Path) -> str:
    """Everything typed: inline code, and the lines of blocks for a shell without their prompt."""
    typed = re.findall(r"`([^`\n]+)`", prose(page))
    for block in blocks(page):
        if block.language in ("sh", "console"):
            typed += [line.removeprefix("$ ") for line in block.text.replace("\\\n", " ").splitlines()]
    return "\n".join(typed)


# --- what is shown runs ---------------------------------------------------------------------------------------------


def provider(seen: Seen) -> Answer:
    """Plans one task for each worker, the last after the others; uses `population` once; answers in the shape asked."""
    match seen.role:
        case "planner":
            said_of_workers = str(seen.body["system"]).replace("\\n", "\n").partition("\nWorkers\n")[2]
            names = re.findall(r"^- ([\w.-]+): ", said_of_workers, re.MULTILINE)
            tasks = [
                {
                    "id": f"t{number}",
                    "worker": name,
                    "instruction": "Do your part of the job on Oslo.",
                    "success_criterion": "It is done.",
                    "depends_on": [f"t{n}" for n in range(1, number)] if number == len(names) else [],
                }
                for number, name in enumerate(names, 1)
            ]
            return answer_json({"goal": "Describe Oslo", "tasks": tasks})
        case "worker":
            tools = {tool["name"] for tool in seen.body.get("tools", [])}
            if "population" in tools and "tool_result" not in seen.raw.decode():
                return Answer(tools=(("population", {"city": "Oslo"}),))
            return answer_json({"summary": "Oslo has 717,710 inhabitants.", "output": 717_710, "confidence": 90})
        case _:
            said: dict[str, Any] = {"answer": "Oslo has 717,710 inhabitants [t1, t2].", "confidence": 90}
            if "inhabitants" in seen.text.partition("JSON schema")[2]:
                said["data"] = {"name": "Oslo", "inhabitants": 717_710}
            return answer_json(said)


@dataclass
class Workspace:
    """A folder as a reader has it after `make install` and `chargehand demo`, with a home of its own and no keys."""

    folder: Path
    base_url: str

    def __post_init__(self) -> None:
        for name in ("examples", "Makefile", "pyproject.toml", "constraints.txt", "README.md", "docs", "src"):
            (self.folder / name).symlink_to(ROOT / name)
        (self.folder / "chargehand-demo").mkdir()
        shutil.copy(TUTORIAL, self.folder / "chargehand-demo")
        (self.folder / ".venv").mkdir()
        (self.folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
        for stamp in (".created", ".installed"):
            (self.folder / ".venv" / stamp).touch()
        private = ("_API_KEY", "_BASE_URL", "CHARGEHAND_", "_PROXY", "_proxy", "COV_", "COVERAGE_", "MAKE", "PYTHON")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not any(part in name for part in private)},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "CHARGEHAND_HOME": str(self.folder / "home"),
            "PYTHONPATH": str(ROOT / "src"),
            "NO_COLOR": "1",
        }
        self.beside: list[subprocess.Popen[str]] = []

    def session(self, block: Block) -> None:
        """Run the commands of a console block one by one; exported variables stay for the next."""
        commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
        for text in commands:
            command, *shown = text.splitlines()
            while command.endswith("\\"):
                command = command[:-1] + shown.pop(0)
            if set_here := re.fullmatch(r"export (\w+)=(\S+)", command):
                self.environment[set_here[1]] = set_here[2]
                continue
            if command.endswith(" &"):
                self.start(command.removesuffix(" &"), shown)
                continue
            # Both streams in the order in which they reach a terminal.
            ended = self.run(["bash", "-c", f"exec 2>&1; {command}"], PYTHONUNBUFFERED="1")
            where = f"line {block.line}: {command}\n{ended.stdout}"
            assert ended.returncode == 0, where
            came = plain(ended.stdout)
            for line in shown:
                for part in map(plain, filter(None, map(str.strip, line.split("...")))):
                    assert part in came, f"not shown, or not after the line before it: {line}\n{where}"
                    came = came.partition(part)[2]

    def start(self, command: str, shown: list[str]) -> None:
        """Run a command beside the next ones, once it has printed what is shown; it ends with the page."""
        if "--dev" in command:  # on a port of its own: somebody may use the usual one
            (self.folder / "home").mkdir(mode=0o700)
            config = f'[temporal]\naddress = "127.0.0.1:{free_port()}"\n'
            (self.folder / "home" / "config.toml").write_text(config, encoding="utf-8")
        beside = subprocess.Popen(
            ["bash", "-c", f"exec {command} 2>&1"],
            cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.beside.append(beside)
        assert beside.stdout is not None
        for line in shown:
            parts = [plain(part) for part in filter(None, map(str.strip, line.split("...")))]
            came = iter(lambda: plain(beside.stdout.readline()), "")  # type: ignore[union-attr]
            assert any(all(part in said for part in parts) for said in came), f"{command}: {line} was not printed"

    def end(self) -> None:
        for beside in self.beside:
            beside.terminate()
            beside.communicate(timeout=PATIENCE_S)

    def python(self, block: Block) -> subprocess.CompletedProcess[str]:
        more = {"ANTHROPIC_API_KEY": "sk-ant-not-a-key", "ANTHROPIC_BASE_URL": self.base_url}
        ended = self.run([sys.executable, "-W", "error", "-c", block.text], **more)
        assert ended.returncode == 0, f"line {block.line}:\n{ended.stdout}\n{ended.stderr}"
        return ended

    def run(self, command: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **more}
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )


def plain(text: str) -> str:
    """Without what differs from run to run: ids, times, counts of tokens, and how lines are broken."""
    text = re.sub(r"\d{8}-\d{6}-\w{4}", "RUN", text)
    text = re.sub(r"\d[\d,.]* (ms|s|tokens|calls|times)\b", r"N \1", text)
    text = re.sub(r"\(N m?s", "(N s", text)
    return " ".join(text.split())


def executable(page: Path) -> bool:
    return any(block.language in ("console", "python") for block in blocks(page))


@pytest.mark.parametrize("name", [name for name, page in zip(NAMES, PAGES, strict=True) if executable(page)])
def test_what_a_page_shows_is_what_happens(name: str, tmp_path: Path) -> None:
    """Every session of a page gives the output shown, and every Python example runs, in the order of the page."""
    with serving(provider) as server:
        space = Workspace(tmp_path, server.url)
        try:
            for block in blocks(ROOT / name):
                if block.file is not None:
                    (tmp_path / block.file).parent.mkdir(parents=True, exist_ok=True)
                    (tmp_path / block.file).write_text(block.text, encoding="utf-8")
                elif block.language == "console":
                    space.session(block)
                elif block.language == "python":
                    space.python(block)
        finally:
            space.end()


# Pages whose examples the script of use-from-python.md answers; in the last two the researcher has a tool.
ON_SCRIPT = ["use-from-python.md", "../reference/python.md", "write-tools.md", "coming-from.md"]


@pytest.mark.parametrize("name", ON_SCRIPT)
def test_the_examples_run_without_a_key_on_the_script_shown_and_run_twice(name: str, tmp_path: Path) -> None:
    """In one folder, as a reader tries them: nothing of the first time is in the way."""
    how_to = ROOT / "docs" / "how-to"
    [script] = [block.text for block in blocks(how_to / "use-from-python.md") if block.file == "oslo.json"]
    [rule] = re.findall(
        r"^`(\{\"when\".*)`\.$", (how_to / "use-from-python.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    replies = json.loads(script)["replies"]
    if name in ON_SCRIPT[2:]:
        replies.insert(0, json.loads(rule))
    examples: list[str] = []
    space = Workspace(tmp_path, "http://127.0.0.1:9")
    for block in blocks(how_to / name):
        if block.file is not None:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            examples.append(block.text.replace("anthropic:claude-sonnet-5-5", "scripted:oslo.json"))
    (tmp_path / "oslo.json").write_text(json.dumps({"replies": replies}), encoding="utf-8")
    (tmp_path / "examples.json").write_text(json.dumps(examples * 2), encoding="utf-8")
    every = "import json\nfor text in json.load(open('examples.json')):\n    exec(text, {'__name__': '__main__'})\n"
    ended = space.run([sys.executable, "-c", every])
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"


def test_the_example_of_the_readme_uses_its_tool_and_prints_its_answer(tmp_path: Path) -> None:
    """The figure the tool returned reaches the model, and the answer is printed with gaps and usage."""
    [example] = [block for block in blocks(ROOT / "README.md") if block.language == "python"]
    with serving(provider) as server:
        printed = Workspace(tmp_path, server.url).python(example).stdout
        told = [seen for seen in server.requests if "tool_result" in seen.raw.decode()]
    assert printed.startswith("Oslo has 717,710 inhabitants [t1, t2]. () Usage(input_tokens=")
    assert [seen.task for seen in told] == ["t1"]
    assert "717710" in told[0].text
    assert {seen.body["model"] for seen in server.requests} == {"claude-sonnet-5-5"}


def test_every_public_name_is_in_an_example_of_the_reference() -> None:
    """The example runs, as all Python of the pages does; events have a page of their own."""
    pages = [ROOT / "docs" / "reference" / name for name in ("python.md", "events.md")]
    shown = "\n".join(block.text for page in pages for block in blocks(page) if block.language == "python")
    names = {*chargehand.__all__, *testing.__all__, *events.__all__}
    assert {name for name in names if not re.search(rf"\b{name}\b", shown)} == set()


def test_a_page_that_shows_what_does_not_come_is_found(tmp_path: Path) -> None:
    """The check of sessions can fail: on an exit code, on a line that is not there, on lines in another order."""
    space = Workspace(tmp_path, "http://127.0.0.1:9")
    space.session(Block("console", "$ echo one two\none ...\n", 1, None))
    for wrong in ("$ exit 3\n", "$ echo one\ntwo\n", "$ echo one; echo two\ntwo\none\n"):
        with pytest.raises(AssertionError, match="line 1"):
            space.session(Block("console", wrong, 1, None))


def test_data_in_the_docs_is_valid(tmp_path: Path) -> None:
    """JSON and TOML in the docs can be read; settings load, scripts and plans are what they are shown as."""
    for page in PAGES:
        for block in blocks(page):
            where = f"{page.name}:{block.line}"
            if block.language == "toml":
                tomllib.loads(block.text)
            if block.language == "toml" and block.text.startswith("# chargehand.toml"):
                (tmp_path / "config.toml").write_text(block.text, encoding="utf-8")
                settings, warnings = load_settings({"CHARGEHAND_HOME": str(tmp_path)}, tmp_path / "elsewhere", {})
                assert settings.providers, where
                assert not warnings, where
            if block.language == "json":
                _check_json(json.loads(block.text), page, where)


def _check_json(data: Any, page: Path, where: str) -> None:
    if "replies" in data:
        assert ScriptedModel(data["replies"]), where
    elif page.name == "plan.md" and "tasks" in data:
        assert not errors_in(parse(data).problems({"researcher", "analyst", "writer"})), where


# --- what is named exists -------------------------------------------------------------------------------------------


def options() -> dict[str, set[str]]:
    """Every command's flags, by its name; the program's own are under the empty name."""
    with click.Context(cli, info_name="chargehand", help_option_names=["-h", "--help"]) as top:
        found = {"": _flags(cli, top)}
        for name in COMMANDS:
            command = cli.get_command(top, name)
            assert command is not None
            found[name] = _flags(command, top)
            if isinstance(command, click.Group):
                for inner in command.commands.values():
                    found[name] |= _flags(inner, top)
    return found


def _flags(command: click.Command, parent: click.Context) -> set[str]:
    with click.Context(command, parent=parent, help_option_names=["-h", "--help"]) as ctx:
        return {flag for parameter in command.get_params(ctx) for flag in (*parameter.opts, *parameter.secondary_opts)}


def test_the_docs_name_no_command_or_flag_that_help_does_not_know() -> None:
    """`chargehand COMMAND --flag` in a page is a command there is, with a flag that it takes."""
    known = options()
    every = set().union(*known.values())
    wrong: list[str] = []
    for page, name in zip(PAGES, NAMES, strict=True):
        text = page.read_text(encoding="utf-8")
        flags = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - OTHER_FLAGS.get(name, set())
        wrong += [f"{name}: {flag}" for flag in sorted(flags - every)]
        for command, rest in re.findall(r"(?:^|&& |\| )chargehand ([a-z]+)\b([^|;&#\n]*)", code(page), re.MULTILINE):
            if command not in known:
                wrong.append(f"{name}: chargehand {command}")
                continue
            used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", re.sub(r'"[^"]*"', "", rest)))
            wrong += [f"{name}: chargehand {command} {flag}" for flag in sorted(used - known[command] - known[""])]
    assert wrong == []


PACKAGE = ROOT / "src" / "chargehand"
FOLDERS = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
# A file of a reader's team.
TEAM_FILES = {"tools.py"}
# Pages about the code itself: every other module and folder they name is one of ours.
ABOUT_CODE = [name for name in NAMES if re.match(r"CONTRIBUTING|docs/(explanation|adr)/", name)]


def inline_code(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", text)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_names_no_module_or_folder_that_does_not_exist(name: str) -> None:
    """A path in backticks that begins with a folder of the package leads to a file or folder there is."""
    missing: list[str] = []
    for line in prose(ROOT / name).splitlines():
        # `engine/`: `port.py`: the second path of a line may be relative to the first.
        bases = [ROOT, PACKAGE]
        for path in filter(re.compile(r"[\w.-]+(/[\w.-]+)*(\.py|/)").fullmatch, inline_code(line)):
            if name not in ABOUT_CODE and path.split("/")[0] not in FOLDERS:
                continue
            if path[0] != "." and path not in TEAM_FILES and not any((base / path).exists() for base in bases):
                missing.append(path)
            bases.append(PACKAGE / path)
    assert missing == []


@pytest.mark.parametrize("name", NAMES)
def test_a_page_names_no_python_object_that_does_not_exist(name: str) -> None:
    """`chargehand.x.y` in backticks can be imported, or is a group of entry points; so can x.y() in a diagram."""
    page = ROOT / name
    dotted = re.findall(r"`chargehand((?:\.[A-Za-z_]\w*)+)\b(?!\.(?:toml|json))", prose(page))
    diagrams = "".join(block.text for block in blocks(page) if block.language == "mermaid")
    dotted += [f".{called}" for called in re.findall(r"\b(\w+\.\w+)\(", diagrams)]
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("entry-points", {})
    names = {path for path in dotted if path != ".toml" and f"chargehand{path}" not in groups}
    missing = [path for path in sorted(names) if not _importable(path.split(".")[1:])]
    assert missing == []


def _importable(parts: list[str]) -> bool:
    found: Any = importlib.import_module("chargehand")
    where = "chargehand"
    for part in parts:
        where = f"{where}.{part}"
        try:
            found = importlib.import_module(where)
        except ImportError:
            found = getattr(found, part, None)
    return found is not None


@cache
def known_words() -> frozenset[str]:
    """Every word of the package's own files, and those of the examples and tools the pages speak of."""
    files = [
        *(path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".toml", ".json", ".md", ".js")),
        *(path for path in (ROOT / "examples").rglob("*") if path.suffix in (".py", ".toml", ".json", ".csv")),
        *(ROOT / name for name in ("pyproject.toml", "Makefile", "action.yml", ".pre-commit-hooks.yaml")),
    ]
    return frozenset(
        word for path in files if path.is_file() for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_page_names_no_field_event_or_class_that_does_not_exist(name: str) -> None:
    """`two_words` and `TwoWords` in backticks are words of the code, or of a block of the same page."""
    shown = {word for block in blocks(ROOT / name) for word in re.findall(r"\w+", block.text)}
    named = {
        word
        for typed in inline_code(prose(ROOT / name))
        for word in re.findall(r"[A-Za-z_]\w*", typed)
        if re.fullmatch(r"[a-z]+(?:_[a-z]+)+|(?:[A-Z][a-z]+){2,}", word)
    }
    assert sorted(named - known_words() - shown - OTHER_WORDS.get(name, set())) == []


def sections(page: Path) -> dict[str, str]:
    """The text under each heading, by the heading."""
    parts = re.split(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def first_column(text: str) -> list[str]:
    """What is in backticks in the first column of the tables of a text."""
    return [word for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for word in inline_code(row)]


VALUES: dict[str, type[Value]] = {
    value.__name__: value
    for value in (
        Plan, Task, WorkerSpec, Problem, Outcome, Claim, Finding, Gap, Contradiction, Provenance, Usage, Timing, Report,
        Request, Question, SentOrder,
    )
}  # fmt: skip


def _properties(value: type[Value]) -> set[str]:
    return {name for name, member in vars(value).items() if isinstance(member, property)}


def test_a_table_of_fields_names_the_fields_of_the_value() -> None:
    """In the reference a section called after a value lists each of its fields, and no other."""
    wrong: list[str] = []
    documented: set[str] = set()
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        for heading, text in sections(page).items():
            if (value := VALUES.get(heading)) is None or not (named := first_column(text)):
                continue
            documented.add(heading)
            fields = set(value.model_fields)
            wrong += [
                f"{page.name}: {heading} has no {word}" for word in named if word not in fields | _properties(value)
            ]
            wrong += [f"{page.name}: {heading}.{word} is missing" for word in sorted(fields - set(named))]
    assert wrong == []
    assert documented == {
        "Task",
        "Outcome",
        "Claim",
        "Finding",
        "Gap",
        "Contradiction",
        "Provenance",
        "Usage",
        "Timing",
        "Report",
        "Question",
        "SentOrder",
    }


@pytest.mark.parametrize(
    ("value", "name"), [(Task, "task"), (Outcome, "outcome"), (Report, "report"), (Budget, "budget")]
)
def test_a_page_names_no_field_of_a_value_that_it_does_not_have(value: type[Value], name: str) -> None:
    """`task.tier` and the like are fields or methods of the value."""
    wrong = [
        f"{page}: {name}.{field}"
        for page, path in zip(NAMES, PAGES, strict=True)
        for typed in inline_code(prose(path))
        for field in re.findall(rf"(?<![\w.]){name}\.(\w+)", typed)
        if field not in {"md", "py", "json", "toml", "html", *value.model_fields} and not hasattr(value, field)
    ]
    assert wrong == []


ROLES = set(get_args(Role))


def test_pages_that_list_the_roles_list_those_of_the_code() -> None:
    """The table of replies, the settings and the glossary know each role and no other."""
    scripted = sections(ROOT / "docs" / "reference" / "scripted-model.md")["Roles"]
    settings = sections(ROOT / "docs" / "reference" / "configuration.md")["Models"]
    [listed] = re.findall(r"^The roles are ([^.]+)\.", settings, re.MULTILINE)
    [row] = re.findall(
        r"^\| \*\*role\*\* \|.*$", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(first_column(scripted)) == ROLES
    assert set(inline_code(listed)) == ROLES
    assert set(inline_code(row)) == ROLES


def test_a_page_names_no_role_that_does_not_exist() -> None:
    """A role in a script, in a heading of settings or after the word role is one of the code."""
    wrong: list[str] = []
    for page, name in zip(PAGES, NAMES, strict=True):
        text = page.read_text(encoding="utf-8")
        named = re.findall(r'"role": ?"(\w+)"', text) + re.findall(r"\[models\.([a-z]+)\]", text)
        named += re.findall(r"\brole `(\w+)`|`(?:role=)(\w+)`", text)
        words = [word for found in named for word in ([found] if isinstance(found, str) else found) if word]
        wrong += [f"{name}: {word}" for word in words if word not in ROLES | {"user", "system", "assistant", "tool"}]
    assert wrong == []


SIGNATURES: dict[str, Any] = {
    "Supervisor": Supervisor.__init__,
    "Team": Team.__init__,
    "Worker": Worker.__init__,
    "tool": tool,
    **{
        name: getattr(Supervisor, name)
        for name in ("run", "run_sync", "stream", "plan", "resume", "rerun", "cancel", "report", "questions", "answer")
    },
}


def test_the_python_page_gives_every_parameter_of_every_call() -> None:
    """The signatures of docs/reference/python.md have the names of the code, all of them, in its order."""
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    shown: dict[str, list[str]] = {}
    for name, parameters in re.findall(r"`@?(?:await )?(\w+)(\([^`]*\))`", page):
        if name in SIGNATURES:
            shown[name] = _parameters(f"def {name}{parameters}: ...")
    real = {name: list(inspect.signature(call).parameters) for name, call in SIGNATURES.items()}
    assert shown == {name: [p for p in parameters if p not in ("self", "fn")] for name, parameters in real.items()}


def _parameters(definition: str) -> list[str]:
    [function] = ast.parse(definition).body
    assert isinstance(function, ast.FunctionDef)
    given = function.args
    return [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.kwarg) if a is not None]


def test_the_tables_of_folders_list_every_folder() -> None:
    """Architecture and CONTRIBUTING name each folder of the package, so that a reader finds it."""
    architecture = first_column(sections(ROOT / "docs" / "explanation" / "architecture.md")["Where things are"])
    contributing = sections(ROOT / "CONTRIBUTING.md")["Where to change what"]
    assert FOLDERS - {"teams"} - set(architecture) == set()
    assert [folder for folder in sorted(FOLDERS) if f"`{folder}/" not in contributing] == []


def test_links_lead_somewhere() -> None:
    """Every relative link names a file or folder that is there, and a heading that the page has."""
    broken: list[str] = []
    for page, name in zip(PAGES, NAMES, strict=True):
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
            path, _, heading = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            file = (page.parent / path).resolve() if path else page
            if not file.exists() or not file.is_relative_to(ROOT):
                broken.append(f"{name}: {target}")
            elif heading and heading not in anchors(file):
                broken.append(f"{name}: {target} (no such heading)")
    assert broken == []


def test_pictures_exist() -> None:
    """Every picture of a page is a file of the repository."""
    pictures = [
        (name, page.parent / target)
        for page, name in zip(PAGES, NAMES, strict=True)
        for target in re.findall(r'\b(?:src|srcset)="([^"]+)"', prose(page))
    ]
    assert pictures
    assert [name for name, file in pictures if not file.is_file()] == []


def test_the_description_of_the_package_has_no_relative_links() -> None:
    """A package index would show links that lead nowhere."""
    page = ROOT / tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["readme"]
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'\b(?:src|srcset|href)="([^"]+)"', text)
    assert [target for target in targets if not target.startswith("https://")] == []


def test_the_description_of_the_package_lists_every_extra() -> None:
    """But those for development."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(first_column((ROOT / "docs" / "package.md").read_text(encoding="utf-8"))) == extras.keys() - {"dev"}


def test_the_page_for_models_lists_every_page() -> None:
    """llms.txt, which `make docs` writes, names each page of docs/ but for the decisions, and no other."""
    listed = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): ", (ROOT / "llms.txt").read_text(encoding="utf-8"), re.MULTILINE)
    left_out = {name for name in NAMES if name.startswith("docs/adr/0")} | {"docs/package.md"}
    assert {name for name in NAMES if name.startswith("docs/")} - left_out <= set(listed) <= set(NAMES)


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_page_can_be_reached_from_the_readme() -> None:
    """No page of docs/ is an orphan."""
    seen: set[Path] = set()
    todo = [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen or page.suffix != ".md" or not page.is_file():
            continue
        seen.add(page)
        links = re.findall(r"\]\(([^)\s#]+)", prose(page))
        todo += [(page.parent / link).resolve() for link in links if ":" not in link]
    assert [name for name in NAMES if ROOT / name not in seen] == []


NONE_OF_THESE = (
    "modules in import cycles, lazy imports included",
    "of these named by a bare participle",
    "public class names used twice",
    "module names used in several folders",
)


def test_the_table_of_figures_has_every_row() -> None:
    """docs/explanation/architecture.md has a line for each figure `make figures` counts, before and now.

    Nothing is imported in a circle, no function is named by a bare participle, and no name is used twice.
    """
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    table = page[page.index(architecture.BEGIN) : page.index(architecture.END)]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[3:]]
    # Python before 3.11.8 cannot parse while it collects garbage whose end is reported with a traceback.
    gc.collect()
    counted = {**architecture.static_figures(), **architecture.measured_paths()}
    assert [name for name, _, _ in rows] == list(counted) == list(architecture.BEFORE)
    assert [counted[name] for name in NONE_OF_THESE] == ["0"] * len(NONE_OF_THESE)
    assert all(before and now for _, before, now in rows)


def test_the_table_of_events_is_current() -> None:
    """docs/reference/events.md is what `make docs` writes, with a line for each kind."""
    page = (ROOT / "docs" / "reference" / "events.md").read_text(encoding="utf-8")
    assert page == events_reference()
    assert all(f"\n## {kind}\n" in page for kind in KINDS)


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("plan.md", [*get_args(ProblemCode), *Task.model_fields]),
        ("exit-codes.md", [*get_args(ErrorKind), *EXIT_CODES]),
        ("scripted-model.md", [*Script.model_fields, "when", "reply", "delay_ms", "times", "usage", "contains"]),
    ],
)
def test_a_reference_page_names_all_there_is(page: str, words: list[str]) -> None:
    """Closed sets of words are listed whole."""
    text = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    assert [word for word in words if f"`{word}`" not in text] == []
