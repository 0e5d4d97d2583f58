"""Bad input and a bad world, met by a real process: one sentence with the remedy, the right exit code, nothing lost."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import socket
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.loopback import Answer, Seen, Server, answer_json, error, events, serving, whole
from tests.pace import PATIENCE_S, Timed, slowness

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-bad-input-0123456789abcdef"
MODEL = ("--model", "openai:some-model")
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str
    took: Timed

    @property
    def complaint(self) -> str:
        """The one sentence about what went wrong."""
        assert "Traceback" not in self.err
        assert "An error in chargehand" not in self.err
        (line,) = [line for line in self.err.splitlines() if line.startswith("chargehand: ")]
        return line


@dataclass
class Desk:
    """A folder with a home, and a provider at `server`; commands run in processes of their own."""

    folder: Path
    server: Server

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def __call__(self, *args: object, limit: Callable[[], None] | None = None, **env: str | None) -> Done:
        given: dict[str, str | None] = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "src"),
            "HOME": str(self.folder),
            "CHARGEHAND_HOME": str(self.home),
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": f"{self.server.url}/v1",
            **env,
        }
        with Timed() as took:
            done = subprocess.run(
                [sys.executable, "-m", "chargehand", *map(str, args)],
                env={name: value for name, value in given.items() if value is not None},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                check=False,
                preexec_fn=limit,
            )
        return Done(done.returncode, done.stdout, done.stderr, took)

    def write(self, name: str, content: object) -> Path:
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def records(self) -> list[Path]:
        return list(self.home.glob("runs/*.sqlite"))


def task(id: str, *needs: str, worker: str = "writer") -> dict[str, Any]:
    return {
        "id": id,
        "worker": worker,
        "instruction": f"Write the part called {id} in one sentence.",
        "success_criterion": "One sentence.",
        "depends_on": list(needs),
    }


def plan(*tasks: dict[str, Any]) -> dict[str, Any]:
    return {"goal": "Say something", "tasks": list(tasks)}


def helpful(seen: Seen) -> Answer:
    """A provider that does its part."""
    match seen.role:
        case "planner":
            return answer_json(plan(task("t1"), task("t2")))
        case "judge":
            return answer_json({"contradictions": []})
        case "synthesizer":
            return answer_json({"answer": "Both are there [t1, t2].", "confidence": 70})
        case _:
            return answer_json({"summary": "Written.", "output": f"The part {seen.task}.", "confidence": 80})


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with serving(helpful) as server:
        yield Desk(tmp_path, server)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("run", ""), "The request is empty: say what is to be done"),
        (
            ("run", "--plan", "missing.json"),
            "Cannot read missing.json: No such file or directory. Name a",
        ),
        (("run", "--plan", "locked.json"), "Cannot read locked.json: Permission denied. Name a readable file"),
        (("run", "--plan", "broken.json"), "broken.json is not JSON: expected ident at line 3 column 12"),
        (("run", "--plan", "nobody.json"), "names the worker 'nobody'"),
        (("run", "x", "--model", "nosuch:model"), "nosuch"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(desk: Desk, args: tuple[str, ...], said: str) -> None:
    """Nothing is sent, nothing is recorded, nothing is on stdout."""
    desk.write("locked.json", plan(task("t1"))).chmod(0)
    desk.write("broken.json", '{"goal": "x",\n "tasks": [\n   {"id": t1}]}')
    desk.write("nobody.json", plan(task("t1", worker="nobody")))
    got = desk(*args, *(() if "--model" in args else MODEL), limit=unprivileged)
    assert (got.code, got.out) == (2, "")
    assert said in got.err
    assert got.complaint
    assert (desk.records(), desk.server.requests) == ([], [])


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("check", "nowhere"), "There is no file or folder nowhere"),
        (("run", "x", "--model", "nope:x"), "there is no provider 'nope'"),
        (("testgen", "nothing"), "no Python code to test"),
        (("teams", "new", "general"), "A shipped team is called general"),
        (("runs",), "is a file, not a folder"),
    ],
)
def test_an_oddity_is_one_sentence_that_names_it(desk: Desk, args: tuple[str, ...], said: str) -> None:
    """What is missing, unknown, empty or taken: exit code 2, and no advice that does not fit."""
    (desk.folder / "nothing").mkdir()
    desk.write("a-file", "")
    home = desk.folder / ("a-file" if args == ("runs",) else "home")
    got = desk(*args, CHARGEHAND_HOME=str(home), OPENAI_API_KEY=None)
    assert (got.code, got.out) == (2, "")
    assert said in got.complaint
    assert "OPENAI_API_KEY" not in got.err


def test_code_without_public_functions_is_said_to_have_none(desk: Desk) -> None:
    """Not that all 0 of them have tests."""
    desk.write("inner.py", "def _double(number): return 2 * number\n")
    got = desk("testgen", "inner.py")
    assert (got.code, "there is no public function" in got.out + got.err) == (0, True)


def test_an_evaluation_without_duckdb_names_the_extra(desk: Desk) -> None:
    """The worker whose tool needs it is named with the command that installs it, and failed cases say why."""
    code = "import sys; sys.modules['duckdb'] = None; from chargehand.cli import main; "
    args = ["eval", "competitive", "--model", "scripted"]
    env = {"PATH": os.environ["PATH"], "HOME": str(desk.folder), "CHARGEHAND_HOME": str(desk.home)}
    command = [sys.executable, "-c", f"{code}main({args!r})"]
    ended = subprocess.run(command, env=env, cwd=desk.folder, capture_output=True, text=True, check=False)
    assert "pip install 'chargehand[data]'" in ended.stderr
    assert "market-position failed" in ended.stdout
    assert "Traceback" not in ended.stderr


def test_ten_thousand_tasks_are_refused_quickly(desk: Desk) -> None:
    """The plan is too wide: said in a few lines, with both numbers."""
    path = desk.write("huge.json", plan(*(task(f"t{n}") for n in range(10_000))))
    got = desk("run", "--plan", path, *MODEL)
    assert got.code == 2
    assert "10,000 tasks" in got.err
    assert "1,000" in got.err
    assert len(got.err.splitlines()) < 60
    assert got.took.within(5)
    checked = desk("check", path, "--json")
    assert "fan_out" in {problem["code"] for problem in json.loads(checked.out)["problems"]}


def test_a_missing_key_names_the_variable(desk: Desk) -> None:
    """Exit code 2 before anything is recorded."""
    got = desk("run", "Say it", *MODEL, OPENAI_API_KEY=None)
    assert (got.code, got.out) == (2, "")
    assert "OPENAI_API_KEY" in got.complaint
    assert desk.records() == []


@pytest.mark.parametrize("given", [False, True])
def test_a_wrong_key_is_exit_code_2(desk: Desk, given: bool) -> None:
    """The provider says 401: asked once a call, not again, and the key is not shown."""
    desk.server.handler = lambda _: error(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key")
    more = ("--plan", desk.write("plan.json", plan(task("t1")))) if given else ("Say it",)
    got = desk("run", *more, *MODEL)
    assert (got.code, got.out) == (2, "")
    assert "OPENAI_API_KEY" in got.complaint
    assert KEY not in got.err
    assert len(desk.server.requests) == 1


@pytest.mark.parametrize("given", [False, True])
def test_an_unreachable_provider_is_exit_code_1(desk: Desk, given: bool) -> None:
    """Nobody listens there: tried again for some seconds, then the address and the remedy are named."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    more = ("--plan", desk.write("plan.json", plan(task("t1")))) if given else ("Say it",)
    # Long enough that a busy machine has tried it before the time is over.
    got = desk("run", *more, *MODEL, "--deadline", round(3 * slowness()), OPENAI_BASE_URL=url)
    assert (got.code, got.out) == (1, "")
    assert got.complaint
    assert url in got.err
    assert got.took.within(8)


@pytest.mark.parametrize("given", [False, True])
def test_a_reply_that_is_not_json_is_exit_code_1(desk: Desk, given: bool) -> None:
    """What was said is quoted, and that the address should be looked at."""
    desk.server.handler = lambda _: Answer(raw=b"hello, this is a printer")
    more = ("--plan", desk.write("plan.json", plan(task("t1")))) if given else ("Say it",)
    got = desk("run", *more, *MODEL)
    assert (got.code, got.out) == (1, "")
    assert "hello, this is a printer" in got.complaint
    assert "this address" in got.complaint
    # A task is tried at a higher tier, rewritten and tried again; a plan is asked for once.
    assert len(desk.server.requests) == (4 if given else 1)


def test_a_reply_of_ten_megabytes_is_an_answer(desk: Desk) -> None:
    """It reaches stdout whole, and can be read again from the record."""
    text = "0123456789" * 1_000_000
    said = {"summary": "Long.", "output": text, "confidence": 80}
    desk.server.handler = lambda _: answer_json(said, streams=False)
    got = desk("run", "--plan", desk.write("plan.json", plan(task("t1"))), *MODEL)
    assert (got.code, got.out.strip()) == (0, text)
    assert desk("resume", "last").out == got.out


def test_a_reply_beyond_all_bounds_is_one_sentence(desk: Desk) -> None:
    """40 MB are not read."""
    desk.server.handler = lambda _: Answer(text="x" * 40_000_000, streams=False)
    got = desk("run", "--plan", desk.write("plan.json", plan(task("t1"))), *MODEL)
    assert (got.code, got.out) == (1, "")
    assert "over 32 MB" in got.complaint


def file_size(most: int) -> Callable[[], None]:
    """As a full disk does it: writes beyond fail."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


@pytest.mark.parametrize("most", [0, 60_000, 150_000, 300_000])
def test_a_full_disk_stops_a_run_that_resumes_when_there_is_room(desk: Desk, most: int) -> None:
    """Exit code 2 and one sentence; what was committed is there and is not asked for again."""

    def long(seen: Seen) -> Answer:
        words = f"{seen.task} " * 10_000
        return answer_json({"summary": "Long.", "output": words}) if seen.role == "worker" else helpful(seen)

    desk.server.handler = long
    chain = [task("t1"), *(task(f"t{n}", f"t{n - 1}") for n in range(2, 9))]
    path = desk.write("plan.json", plan(*chain))
    got = desk("run", "--plan", path, *MODEL, limit=file_size(most))
    assert (got.code, got.out) == (2, "")
    assert "disk" in got.complaint
    committed = replied(desk)
    before = Counter(request.key for request in desk.server.requests)
    # One call at a time, and each is on disk before the next.
    assert len(before) - len(committed) in (0, 1)
    again = desk("resume", "last", "--json")
    if again.code == 2:
        # Not even the request had found room.
        assert not before
        assert "chargehand run" in again.complaint
        return
    assert {outcome["status"] for outcome in json.loads(again.out)["outcomes"]} == {"done"}
    after = Counter(request.key for request in desk.server.requests)
    assert {key for key, times in after.items() if times > 1} <= set(list(before)[len(committed) :])


def replied(desk: Desk) -> list[str]:
    """Keys of committed model calls of the only run."""
    found: list[str] = []
    for record in desk.records():
        with closing(sqlite3.connect(record)) as database:
            if database.execute("PRAGMA user_version").fetchone() != (0,):
                rows = database.execute("SELECT body FROM events WHERE kind = 'model_replied' AND body IS NOT NULL")
                found += [json.loads(body)["key"] for (body,) in rows]
    return found


def unprivileged() -> None:
    """Root obeys permissions too; for anybody else there is nothing to give up."""
    if os.geteuid() == 0:
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
            ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


@pytest.mark.parametrize(("file", "home"), [("file", "file/home"), ("runs", ".")])
def test_a_file_where_a_folder_should_be_is_exit_code_2(desk: Desk, file: str, home: str) -> None:
    """A home below a file, and a home whose folder of runs is a file: the path and CHARGEHAND_HOME are named."""
    desk.write(file, "")
    got = desk("run", "Say it", *MODEL, CHARGEHAND_HOME=str(desk.folder / home))
    assert (got.code, got.out) == (2, "")
    assert str(desk.folder / file) in got.complaint
    assert "CHARGEHAND_HOME" in got.complaint
    assert desk.server.requests == []


@pytest.mark.parametrize("folder", ["home", "home/runs"])
def test_a_home_that_cannot_be_written_to_is_exit_code_2(desk: Desk, folder: str) -> None:
    """Nothing is asked of the provider, and reading what is there still works."""
    assert desk("run", "Say it", *MODEL).code == 0
    asked = len(desk.server.requests)
    locked = [desk.home, desk.home / "runs"] if folder == "home" else [desk.folder / folder]
    for path in locked:
        path.chmod(0o500)
    got = desk("run", "Say it", *MODEL, limit=unprivileged)
    shown = desk("show", "last", limit=unprivileged)
    for path in locked:
        path.chmod(0o700)
    assert (got.code, got.out) == (2, "")
    assert "CHARGEHAND_HOME" in got.complaint
    assert len(desk.server.requests) == asked
    assert (shown.code, shown.err) == (0, "")
    assert "Both are there" in shown.out


def test_a_record_from_a_newer_version_asks_for_an_upgrade(desk: Desk) -> None:
    """Exit code 2 for whatever is done with it, and not a byte of it changes."""
    assert desk("run", "Say it", *MODEL).code == 0
    (record,) = desk.records()
    with closing(sqlite3.connect(record)) as database:
        database.execute("PRAGMA user_version = 99")
    before = record.read_bytes()
    for command in ("resume", "rerun"):
        got = desk(command, "last")
        assert (got.code, got.out) == (2, "")
        assert "Upgrade chargehand" in got.complaint
    assert record.read_bytes() == before


# -- a byte order mark, and half a surrogate pair ----------------------------------------------------------------------

BOM, HALF = "\ufeff", "\ud83d"


def with_halves(seen: Seen) -> Answer:
    """Half a character in the middle of every text, and once spelled as an escape within the JSON that the text is."""
    match seen.role:
        case "planner":
            made = plan(task("t1"), task("t2"))
            made["tasks"][0]["instruction"] += f" It is {HALF} hard."
            return Answer(text=json.dumps(made, ensure_ascii=seen.number % 2 == 0))
        case "judge":
            return answer_json({"contradictions": []})
        case "synthesizer":
            return Answer(
                text=json.dumps({"answer": f"Both {HALF} are there [t1, t2].", "confidence": 70}, ensure_ascii=False)
            )
        case _:
            said = {"summary": f"Written {HALF}.", "output": f"The {HALF} part {seen.task}.", "confidence": 80}
            return Answer(text=json.dumps(said, ensure_ascii=seen.task == "t1"))


def with_marks(seen: Seen) -> Answer:
    """A byte order mark before every answer."""
    said = helpful(seen)
    return Answer(text=BOM + said.text)


@pytest.mark.parametrize(
    ("model", "answers", "said"),
    [
        ("openai:some-model", with_marks, "Both are there [t1, t2]."),
        ("anthropic:some-model", with_marks, "Both are there [t1, t2]."),
        ("openai:some-model", with_halves, "Both \ufffd are there [t1, t2]."),
        ("anthropic:some-model", with_halves, "Both \ufffd are there [t1, t2]."),
    ],
)
def test_a_byte_order_mark_or_half_a_surrogate_pair_in_a_reply_failed_the_run(
    desk: Desk, model: str, answers: Callable[[Seen], Answer], said: str
) -> None:
    """The planner's, a worker's and the synthesizer's: read, recorded, printed, shown and exported."""
    desk.server.handler = answers
    env = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": desk.server.url}
    got = desk("run", "Say it", "--model", model, **env)
    assert (got.code, got.err.count("Traceback")) == (0, 0), got.err
    assert got.out.strip() == said
    assert len(desk.server.requests) == 5, "nothing was asked for again"
    assert json.loads(desk("show", "last", "--json").out)["answer"] == said
    for form in ("jsonl", "html"):
        assert desk("trace", "last", "--format", form, "-o", "-").code == 0


def test_a_byte_order_mark_before_a_body_is_not_part_of_it(desk: Desk) -> None:
    """Before a whole document, before a stream of events and before an event's data."""

    def answers(seen: Seen) -> Answer:
        said = helpful(seen)
        if not seen.body.get("stream"):
            return Answer(raw=b"\xef\xbb\xbf" + json.dumps(whole(seen, said)).encode())
        lines = [line.replace("data: {", "data: \ufeff{") for line in events(seen, said)]
        raw = "\ufeff" + "".join(f"{line}\n\n" for line in lines)
        return Answer(raw=raw.encode(), headers={"Content-Type": "text/event-stream"})

    desk.server.handler = answers
    got = desk("run", "Say it", *MODEL)
    assert got.code == 0, got.err
    assert got.out.strip() == "Both are there [t1, t2]."
    assert len(desk.server.requests) == 5


def test_a_tool_call_with_half_a_surrogate_pair_is_made(desk: Desk) -> None:
    """Its arguments are read as far as they are text."""
    asked: list[str] = []

    def answers(seen: Seen) -> Answer:
        if seen.role == "worker" and seen.task == "t1":
            asked.append(seen.text)
            if len(asked) == 1:
                return Answer(tools=(("calculate", {"expression": f"1 + 1 {HALF}"}),))
        return helpful(seen)

    desk.server.handler = answers
    desk.write("plan.json", plan(task("t1", worker="analyst"), task("t2")))
    got = desk("run", "--plan", "plan.json", *MODEL)
    assert got.code == 0, got.err
    assert len(desk.server.requests) == 5
    called = [json.loads(line) for line in desk("trace", "last", "--format", "jsonl", "-o", "-").out.splitlines()]
    [arguments] = [event["arguments"] for event in called if event["kind"] == "tool_called"]
    assert arguments == {"expression": "1 + 1 \ufffd"}
