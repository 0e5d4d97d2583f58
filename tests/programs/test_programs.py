"""Programs as workers, with real processes: what they get, what they may do, what becomes of what they print."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from chargehand.events import Progressed
from chargehand.programs.work_folders import WorkFolders, sweep
from chargehand.record.home import Home
from tests.programs.helping import git, python, repository, run, worker

ECHO = (
    "import json, sys; d = json.load(sys.stdin); print(json.dumps({'summary': 'Read', 'output': d, 'confidence': 80}))"
)
ESCALATES = '{"escalate": {"reason": "out_of_scope", "message": "No"}}'
sealed = pytest.mark.skipif(
    not (shutil.which("bwrap") or shutil.which("unshare")), reason="this system makes no namespaces"
)


def test_a_program_reads_its_task_as_json_and_answers_in_json(tmp_path: Path) -> None:
    """The task, the names of the material and the results it depends on; the answer has the shape of any worker's."""
    (tmp_path / "notes.txt").write_text("n", encoding="utf-8")
    first, second = worker("one", command=python(ECHO), effect="read"), worker("two", command=python(ECHO))
    plan = {
        "goal": "Try",
        "tasks": [
            {"id": "t1", "worker": "one", "instruction": "Read it.", "success_criterion": "Read.", "context": {"n": 1}},
            {"id": "t2", "worker": "two", "instruction": "Go on.", "success_criterion": "Done.", "depends_on": ["t1"]},
        ],
    }
    report = run(tmp_path, first, second, plan=plan, material=[tmp_path / "notes.txt"])
    given = report.outcomes[0].output
    assert given["task"] == {
        "id": "t1",
        "instruction": "Read it.",
        "context": {"n": 1},
        "success_criterion": "Read.",
    }
    assert given["material"] == ["notes.txt"]
    assert report.outcomes[1].output["inputs"]["t1"]["output"]["task"]["id"] == "t1"
    assert (report.outcomes[0].summary, report.outcomes[0].confidence) == ("Read", 80)
    assert report.status == "complete"


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("print('plain words')", "done", None),
        ("import sys; sys.exit(3)", "failed", "tool"),
        ("pass", "failed", "criterion_not_met"),
        ("import sys; sys.stdout.buffer.write(bytes(range(256)))", "failed", "contract"),
        ("while True: print('x' * 100000)", "failed", "tool"),
        ("import time; time.sleep(600)", "failed", "timeout"),
        ("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)", "failed", "timeout"),
        (f"print({ESCALATES!r})", "escalated", None),
        ("import os\nfor n in range(20): os.fork()\nprint('x')", "failed", "timeout"),
    ],
)  # fmt: skip
def test_what_a_program_does_becomes_a_typed_outcome(tmp_path: Path, code: str, status: str, kind: str | None) -> None:
    """Whatever it does, it ends in time, with a status and a kind of error."""
    limit = 1.0 if kind == "timeout" else 30.0
    outcome = run(tmp_path, worker(command=python(code), timeout_s=limit)).outcomes[0]
    found = None if outcome.error is None else outcome.error.kind
    if "fork" in code:  # it may also run out of processes before it runs out of time
        assert found in ("timeout", "tool", "contract", None)
    else:
        assert (outcome.status, found) == (status, kind)


def test_a_program_that_never_reads_and_one_that_is_missing(tmp_path: Path) -> None:
    """A large task that nobody reads is not waited for; a program that is not there is named."""
    plan = {
        "goal": "Try",
        "tasks": [
            {"id": "t1", "worker": "deaf", "instruction": "Do.", "success_criterion": "Ok.", "context": "x" * 500_000},
            {"id": "t2", "worker": "gone", "instruction": "Do.", "success_criterion": "Done."},
        ],
    }  # fmt: skip
    deaf, gone = worker("deaf", command=python("print('ended')")), worker("gone", command=("no-such-program",))
    first, second = run(tmp_path, deaf, gone, plan=plan).outcomes
    assert first.output == "ended"
    assert second.error is not None
    assert "no-such-program" in second.error.message


def test_the_environment_is_a_list_and_secrets_stay_off_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only named variables arrive; the value of one that is named a key is on no record, wherever it is printed."""
    monkeypatch.setenv("OTHER_TOKEN", "other-secret-value")
    monkeypatch.setenv("MY_API_KEY", "very-secret-value")
    code = (
        "import os, sys; k = os.environ['MY_API_KEY']; print('Has', sorted(os.environ), k); print(k, file=sys.stderr)"
    )
    outcome = run(tmp_path, worker(command=python(code), env=("MY_API_KEY",))).outcomes[0]
    assert "'MY_API_KEY'" in outcome.output
    assert "OTHER_TOKEN" not in outcome.output
    kept = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file())
    assert b"very-secret-value" not in kept


@sealed
def test_a_program_sees_neither_homes_nor_the_network_and_writes_only_in_its_folder(tmp_path: Path) -> None:
    """Nothing outside changes, the home of runs and that of the user are not there, no interface but loopback is."""
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o777)
    project = tmp_path / "project"
    project.mkdir()
    code = f"""
import json, os, socket
tried = {{}}
for path in ({str(project / "home")!r}, {str(outside)!r}, {str(Path.home() / ".ssh")!r}, "/usr"):
    try:
        open(os.path.join(path, "x"), "w"); tried[path] = "written"
    except OSError:
        tried[path] = os.path.exists(path)
open("here", "w").write("x")
material = os.environ["CHARGEHAND_MATERIAL"]
tried["material"] = open(os.path.join(material, "project", "in.txt")).read()
tried["home in material"] = os.listdir(os.path.join(material, "project", "home"))
tried["interfaces"] = [name for _, name in socket.if_nameindex() if name != "lo"]
print(json.dumps({{"summary": "Tried", "output": tried}}))
"""
    (project / "in.txt").write_text("given", encoding="utf-8")
    program = worker(command=python(code), sandbox="required")
    outcome = run(project, program, material=[project]).outcomes[0]
    assert outcome.error is None
    tried = outcome.output
    assert tried[str(project / "home")] is False
    assert tried[str(outside)] is False
    assert tried["/usr"] is True
    assert tried["material"] == "given"
    assert tried["home in material"] == []
    assert tried["interfaces"] == []
    assert list(outside.iterdir()) == []


def test_a_checkout_is_of_its_own_without_hooks_and_its_changes_are_the_output(tmp_path: Path) -> None:
    """Commits, new and deleted and binary files are in one patch; the repository itself is as it was."""
    repo = repository(tmp_path / "repo", {"a.txt": "one\n", "b.txt": "gone\n"})
    before = git(repo, "for-each-ref"), git(repo, "worktree", "list"), sorted(os.listdir(repo / ".git"))
    steps = [
        "echo two >> a.txt && git add -A && git commit -qm second",
        "rm b.txt && printf '\\000\\001' > c.bin && mkdir -p d && echo new > d/e.txt",
        "git config core.fsmonitor 'touch /tmp/never' && git log --oneline | wc -l",
    ]
    program = worker(command=("sh", "-c", " && ".join(steps)), worktree=True, verify=("test", "-f", "d/e.txt"))
    report = run(tmp_path, program, material=[repo])
    outcome = report.outcomes[0]
    assert outcome.error is None
    assert outcome.summary == "2"
    (tmp_path / "patch").write_text(outcome.output, encoding="utf-8")
    git(repo, "apply", str(tmp_path / "patch"))
    assert (repo / "a.txt").read_text(encoding="utf-8") == "one\ntwo\n"
    assert not (repo / "b.txt").exists()
    assert (repo / "c.bin").read_bytes() == b"\0\1"
    assert not (repo / "HOOK").exists()
    assert before[:2] == (git(repo, "for-each-ref"), git(repo, "worktree", "list"))
    assert not (Path(tempfile.gettempdir()) / f"chargehand-programs-{os.getuid()}" / report.run).exists()


def test_what_does_not_verify_fails_and_each_attempt_has_a_new_checkout(tmp_path: Path) -> None:
    """The second attempt sees nothing of the first; the last changes are the partial result."""
    repo = repository(tmp_path / "repo")
    code = "import sys; open('n', 'a').write('x\\n'); print('progress', file=sys.stderr, flush=True); print('changed')"
    unverified = worker("one", command=python(code), worktree=True, verify=("grep", "-q", "y", "n"))
    fails = worker("two", command=python(f"{code}; sys.exit(1)"), worktree=True)
    seen: list[object] = []
    report = run(tmp_path, unverified, fails, material=[repo], on_event=lambda event: seen.append(event.body))
    kinds = [outcome.error.kind for outcome in report.outcomes if outcome.error is not None]
    assert kinds == ["criterion_not_met", "tool"]
    assert report.outcomes[1].attempts > 1
    assert all(outcome.partial and outcome.output.count("+x\n") == 1 for outcome in report.outcomes)
    assert any(isinstance(body, Progressed) and body.text == "progress" for body in seen)


def test_a_worktree_needs_a_repository(tmp_path: Path) -> None:
    """Without one in the material the task fails and says what to give."""
    outcome = run(tmp_path, worker(command=("true",), worktree=True)).outcomes[0]
    assert outcome.error is not None
    assert "--with" in outcome.error.message


def test_an_effect_that_is_once_is_never_repeated(tmp_path: Path) -> None:
    """However often its task is tried again, the program has run once."""
    log = tmp_path / "log"
    code = f"open({str(log)!r}, 'a').write('ran\\n'); raise SystemExit(1)"
    outcome = run(tmp_path, worker(command=python(code), sandbox="off")).outcomes[0]
    assert outcome.attempts > 1
    assert log.read_text(encoding="utf-8") == "ran\n"


def test_what_a_process_left_behind_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of a run whose process is gone is removed; that of a run at work is not."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "from chargehand.programs.work_folders import *; WorkFolders('dead').make(); import os; os._exit(0)"
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run(list(python(code)), check=True, env=env)
    living = WorkFolders("living")
    folder = living.make()
    top = tmp_path / f"chargehand-programs-{os.getuid()}"
    sweep(top)
    assert sorted(os.listdir(top)) == ["living"]
    (folder.work / "locked").mkdir(mode=0o000)
    living.close()
    assert os.listdir(top) == []


def test_a_program_is_recorded_like_a_tool(tmp_path: Path) -> None:
    """What was started, and with what, is on the record."""
    report = run(tmp_path, worker(command=python("print('x')")))
    events = [json.loads(line) for line in _trace(tmp_path, report.run).splitlines()]
    called = next(event for event in events if event["kind"] == "tool_called")
    assert called["effect"] == "once"
    assert called["arguments"]["command"] == list(python("print('x')"))


def _trace(tmp_path: Path, run_id: str) -> str:
    env = {**os.environ, "CHARGEHAND_HOME": str(tmp_path / "home")}
    command = [*python("from chargehand.cli import main; main()"), "trace", run_id, "--format", "jsonl"]
    return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout


def test_what_a_program_leaves_running_ends_with_it(tmp_path: Path) -> None:
    """Also a grandchild in a session of its own, which nobody waits for."""
    mark = f"left-{os.getpid()}-{tmp_path.name}"
    child = f"import time; time.sleep(600)  # {mark}"
    code = (
        "import os, subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True,"
        " stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "print('It is done.')"
    )
    outcome = run(tmp_path, worker(command=python(code), timeout_s=60)).outcomes[0]
    assert outcome.status == "done", outcome.error
    assert not [each for each in Path("/proc").glob("[0-9]*/cmdline") if mark in _read(each)]


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


@sealed
def test_a_program_cannot_order_its_own_run_about(tmp_path: Path) -> None:
    """It knows where the mailbox of the run is and what an order looks like, and still stops nothing."""
    order = {"order": "stop", "task": "t2", "by": "command", "sent_at": 0}
    code = (
        "import json, pathlib\n"
        f"runs = pathlib.Path({str(tmp_path / 'home' / 'runs')!r})\n"
        "for run in [each.stem for each in runs.glob('*.sqlite')] or ['unknown']:\n"
        "    try:\n"
        "        (runs / run / 'orders').mkdir(parents=True, exist_ok=True)\n"
        "        place = runs / run / 'orders' / '01ARZ3NDEKTSV4RRFFQ69G5FAV.json'\n"
        f"        place.write_text({json.dumps(order)!r})\n"
        "    except OSError:\n"
        "        pass\n"
        "print('It is done.')"
    )
    first = worker("first", command=python(code), effect="read")
    second = worker("second", command=python("import time; time.sleep(1.2); print('It is done too.')"), effect="read")
    task = {"instruction": "Do the thing.", "success_criterion": "It is done."}
    tasks = [{"id": "t1", "worker": "first", **task}, {"id": "t2", "worker": "second", "depends_on": ["t1"], **task}]
    report = run(tmp_path, first, second, plan={"goal": "Try", "tasks": tasks})
    assert [outcome.status for outcome in report.outcomes] == ["done", "done"]
    assert not [event for event in Home(tmp_path / "home").events(report.run) if event.kind == "control"]
    assert not [*(tmp_path / "home").rglob("01ARZ3NDEKTSV4RRFFQ69G5FAV.json")]
