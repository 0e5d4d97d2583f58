"""The front door: what is refused before anything is spent, and what a rerun takes for the same."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import signal
import traceback
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import pytest

import chargehand
from chargehand import Supervisor, Team, Worker, tool
from chargehand.errors import InvalidTeam, MissingKey, UsageError
from chargehand.events import Event
from chargehand.record.home import Home
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.runs.session import Session
from chargehand.settings import load_settings
from chargehand.testing import MemoryJournal, MemoryStore, ScriptedModel, run_virtual
from chargehand.tools import Tool
from chargehand.trace import fold
from chargehand.values.effect import ToolCall

PLAN = {
    "goal": "g",
    "tasks": [{"id": "a", "worker": "w", "instruction": "Do the one thing", "success_criterion": "It is done."}],
}


def test_a_tier_without_its_key_is_refused_before_a_run_is_made(tmp_path: Path) -> None:
    """Any tier may be asked for by a plan or reached by the ladder, so all of them are looked at first."""
    settings, _ = load_settings({"CHARGEHAND_HOME": str(tmp_path), "HOME": str(tmp_path)}, tmp_path, {})
    tiers = {"small": "openai:gpt-5-nano", "medium": "ollama:m", "large": "ollama:m"}
    door = Supervisor(Team([Worker("w", "Works")]), settings=settings.model_copy(update={"tiers": tiers}))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OPENAI_API_KEY", raising=False)
        with pytest.raises(MissingKey, match="OPENAI_API_KEY"):
            asyncio.run(door.run(plan=PLAN))
    assert Home(tmp_path).runs() == []


@pytest.mark.parametrize(
    ("team", "model", "said"),
    [
        ("genral", None, "'general'"),
        ("no/such/folder", None, "no/such/folder"),
        (None, "nope:x", "The model is 'nope:x', but there is no provider 'nope'. There are: "),
        (None, "gpt", "write 'provider:name'"),
        (Team([Worker("w", "Works", model="nope:x")]), None, "The model of the worker w is 'nope:x'"),
    ],
)
def test_a_wrong_team_or_model_is_refused_where_it_is_given(
    team: Team | str | None, model: str | None, said: str, tmp_path: Path
) -> None:
    """Not at the first run, which may be hours later; with settings of one's own, too."""
    settings, _ = load_settings({"CHARGEHAND_HOME": str(tmp_path), "HOME": str(tmp_path)}, tmp_path, {})
    for given in (None, settings):
        with pytest.raises(UsageError) as caught:
            Supervisor(team, model=model, home=tmp_path, settings=given)
        assert said in str(caught.value)


def test_errors_of_python_speak_of_its_arguments(tmp_path: Path) -> None:
    """No flag of the command line is in them."""
    door = Supervisor(Team([Worker("w", "Works")]), model=ScriptedModel([]), home=tmp_path)
    wrong: list[dict[str, Any]] = [
        {"request": ""},
        {"request": "x", "tokens": 0},
        {"request": "x", "material": ["nowhere"]},
        {"request": "x", "plan": PLAN, "single": True},
        {"request": "x", "plan": PLAN, "max_tasks": 1, "usd": 1},
        {"request": "x", "web": True},
        {"plan": {**PLAN, "tasks": PLAN["tasks"] * 2}, "max_tasks": 1},
    ]
    for options in wrong:
        with pytest.raises(UsageError) as caught:
            door.run_sync(**options)
        assert "--" not in str(caught.value)
    door.run_sync(plan=PLAN)
    for at in (None, "nowhere"):
        with pytest.raises(UsageError) as caught:
            asyncio.run(door.fork("last", at=at))
        assert "--" not in str(caught.value)


def test_a_tool_whose_file_changed_is_another_call(tmp_path: Path) -> None:
    """A rerun takes a tool's earlier result only while the code that gave it is the same."""
    file = tmp_path / "tools.py"
    file.write_text(
        'from chargehand import tool\n@tool(effect="read")\ndef rate() -> str:\n    "Rate."\n    return "one"\n'
    )
    before = _loaded(file)
    file.write_text(file.read_text().replace('"one"', '"two"'))
    after = _loaded(file)
    calls = [ToolCall(worker="w", tool="rate", arguments={}, effect="read", code=t.code) for t in (before, after)]
    assert calls[0].fingerprint != calls[1].fingerprint


def test_resume_never_plans_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The approved plan is read from the record, whatever the planner would be told today."""
    replies = [
        {"when": {"role": "planner"}, "reply": {"json": PLAN}},
        {"when": {"role": "worker"}, "times": 3, "reply": {"error": {"status": 400}}},
        {"when": {"role": "worker"}, "reply": {"json": {"summary": "s", "output": "done at last"}}},
        {"when": {"role": "refiner"}, "reply": {"json": {"instruction": "Do the one thing, please"}}},
    ]
    model = ScriptedModel(replies)
    door = Supervisor(Team([Worker("w", "Works")]), model=model, home=tmp_path)
    assert door.run_sync("Do it").status == "failed"
    monkeypatch.setattr("chargehand.planner.draft._RULES", "Another prompt {advised} {workers} {examples}")
    report = asyncio.run(door.resume("last", retry_failed=True))
    assert (report.status, report.answer) == ("complete", "done at last")
    assert [who.task for call, who in model.calls if call.role == "worker"] == ["a"] * 4
    asked = [call for call, _ in model.calls if call.role == "planner"]
    assert sum("Another prompt" in call.messages[0].text for call in asked) == 0


def test_the_usage_of_a_task_counts_all_its_attempts(tmp_path: Path) -> None:
    """Those before a resume too, as `attempts` does; in the report, in the table of a live run, and in what is left."""
    empty = {"when": {"role": "worker", "task": "a"}, "times": 6, "reply": {"json": {"summary": "s", "output": None}}}
    replies = [
        empty | {"delay_ms": 1_000},
        {"when": {"role": "worker"}, "delay_ms": 1_000, "reply": {"json": {"summary": "s", "output": "at last"}}},
        {"when": {"role": "refiner"}, "reply": {"json": {"instruction": "Do the one thing, please"}}},
        {"when": {"role": "synthesizer"}, "delay_ms": 500, "reply": {"json": {"answer": "Both [a, b].", "gaps": []}}},
        {"when": {"role": "judge"}, "reply": {"json": {"verdict": "unclear", "reason": "r", "confidence": 50}}},
    ]
    two = {**PLAN, "tasks": [*PLAN["tasks"], {**PLAN["tasks"][0], "id": "b"}]}
    model = ScriptedModel(replies)
    door = Supervisor(Team([Worker("w", "Works")]), model=model, home=tmp_path)
    first, _ = run_virtual(door.run("Do it", plan=two))
    assert [(each.status, each.attempts) for each in first.outcomes] == [("failed", 3), ("done", 1)]
    report, _ = run_virtual(door.resume("last", retry_failed=True))
    task = report.outcomes[0]
    calls = [call for call, who in model.calls if who.task == "a"]
    assert (task.status, task.attempts, task.usage.calls) == ("done", 4, len(calls))
    assert task.usage.seconds == pytest.approx(7.0, abs=0.01)
    rest = report.usage.tokens - sum(each.usage.tokens for each in report.outcomes)
    own = [call for call, who in model.calls if who.task is None]
    assert report.usage.calls - sum(each.usage.calls for each in report.outcomes) == len(own)
    assert 0 < rest < report.usage.tokens / 2
    row = fold(Home(tmp_path).events(report.run)).tasks["a"]
    assert (row.tokens, row.usd, row.tries) == (task.usage.tokens, task.usage.usd, 4)
    assert row.worked_seconds() == pytest.approx(task.usage.seconds)


def _loaded(file: Path) -> Tool:
    spec = importlib.util.spec_from_file_location("tools_under_test", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tool: Tool = module.rate
    assert tool.code
    return tool


def test_the_answer_is_heard_while_it_is_written(tmp_path: Path) -> None:
    """By who asks for it; the report has the last draft."""
    heard: list[tuple[int, str]] = []
    rules = [
        {"when": {"role": "worker"}, "reply": {"json": {"summary": "s", "output": "x"}}},
        {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "Both of them agree [t1, t2]."}}},
    ]
    team = Team(workers=[Worker("ann", "Finds numbers")])
    task = {"worker": "ann", "instruction": "Find one number.", "success_criterion": "A number."}
    plan = {"goal": "g", "tasks": [{"id": "t1", **task}, {"id": "t2", **task}]}
    supervisor = Supervisor(team, model=ScriptedModel(rules), home=tmp_path)
    report = supervisor.run_sync(plan=plan, on_draft=lambda number, text: heard.append((number, text)))
    assert len(heard) > 1
    assert {number for number, _ in heard} == {1}
    assert "".join(text for _, text in heard) == report.answer


def test_a_missing_key_is_an_error_in_the_line_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The traceback has no frames of what was called below, and no other error is above it."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    door = Supervisor(Team([Worker("w", "Works")]), model="anthropic:claude-sonnet-5-5", home=tmp_path)
    with pytest.raises(MissingKey) as caught:
        door.run_sync("Do it")
    assert [frame.name for frame in traceback.extract_tb(caught.tb)][1:] == ["run_sync"]
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_team_and_supervisor_are_shown_in_a_line(tmp_path: Path) -> None:
    """As a notebook shows what a cell ends with."""
    team = Team([Worker("finder", "Finds"), Worker("writer", "Writes")], name="desk")
    assert repr(team) == "<Team 'desk': finder, writer>"
    door = Supervisor(team, model="ollama:llama3.1", home=tmp_path)
    assert repr(door) == f"<Supervisor with <Team 'desk': finder, writer>, ollama:llama3.1, runs in {tmp_path}>"


def test_an_unknown_option_is_an_error_of_the_method_that_was_called(tmp_path: Path) -> None:
    """And nothing is recorded."""
    door: Any = Supervisor(Team([Worker("w", "Works")]), model=ScriptedModel([]), home=tmp_path)

    async def stream() -> None:
        async for _ in door.stream("Do it", dealine=3):
            pass

    with pytest.raises(TypeError, match=r"Supervisor\.run_sync\(\) .* 'dealine'"):
        door.run_sync("Do it", dealine=3)
    with pytest.raises(TypeError, match=r"Supervisor\.stream\(\) .* 'dealine'"):
        asyncio.run(stream())
    assert Home(tmp_path).runs() == []


def test_run_sync_in_a_running_loop_says_to_await_run(tmp_path: Path) -> None:
    """A typed error that names the way out, and no coroutine that was never awaited."""
    door = Supervisor(Team([Worker("w", "Works")]), model=ScriptedModel([]), home=tmp_path)

    async def in_a_notebook() -> None:
        door.run_sync("Do it", plan=PLAN)

    with pytest.raises(UsageError, match=r"await supervisor\.run\(\.\.\.\)"):
        asyncio.run(in_a_notebook())
    assert Home(tmp_path).runs() == []


def test_scripted_with_a_team_made_in_python_is_refused(tmp_path: Path) -> None:
    """There is no folder a script could be in."""
    door = Supervisor(Team([Worker("w", "Works")]), model="scripted", home=tmp_path)
    with pytest.raises(UsageError, match="give a ScriptedModel"):
        door.run_sync("Do it", plan=PLAN)


def test_a_team_that_routes_plans_by_its_router(tmp_path: Path) -> None:
    """`plan` shows what `run` would do: one task, for the worker that the router chose."""
    script = ScriptedModel([{"when": {"role": "router"}, "reply": {"json": {"reason": "r", "primary": "b"}}}])
    team = Team([Worker("a", "Repairs"), Worker("b", "Explains")], mode="route")
    made = asyncio.run(Supervisor(team, model=script, home=tmp_path).plan("How do I print?"))
    assert [(task.worker, task.instruction) for task in made.tasks] == [("b", "How do I print?")]


def test_a_stream_that_is_closed_early_has_stopped_its_run(tmp_path: Path) -> None:
    """At the end of the block no call is made any more, and the run can be resumed."""
    rules = [{"when": {"role": "worker"}, "delay_ms": 3_600_000, "reply": {"json": {"summary": "s", "output": "o"}}}]
    door = Supervisor(Team([Worker("w", "Works")]), model=ScriptedModel(rules), home=tmp_path)

    async def leave() -> str:
        async with contextlib.aclosing(door.stream("x", plan=PLAN)) as events:
            async for event in events:
                if event.kind == "model_called":
                    break
        return door.report("last").status

    assert run_virtual(leave())[0] == "interrupted"


def test_a_stream_takes_no_function_for_events(tmp_path: Path) -> None:
    """The caller's mistake is a UsageError, as for every other argument, and nothing is recorded."""
    door = Supervisor(Team([Worker("w", "Works")]), model=ScriptedModel([]), home=tmp_path)
    stream: Any = door.stream

    async def begin() -> None:
        async for _ in stream("x", on_event=print):
            pass

    with pytest.raises(UsageError):
        asyncio.run(begin())
    assert Home(tmp_path).runs() == []


def test_what_users_meet_is_shown_in_a_short_line(tmp_path: Path) -> None:
    """A console stays readable: the fields are attributes."""

    @tool(effect="read")
    def look_up(city: str) -> str:
        """Looks a city up."""
        return city * 1_000

    worker = Worker("w", "Works " * 100, prompt="Work. " * 1_000, tools=[look_up])
    rules = [{"when": {"role": "worker"}, "reply": {"json": {"summary": "s " * 1_000, "output": "o" * 1_000}}}]
    door = Supervisor(Team([worker]), model=ScriptedModel(rules), home=tmp_path)
    report = door.run_sync("x", plan=PLAN)
    shown = [worker, look_up, report, report.plan, report.outcomes[0], door.diff(report.run, report.run)]
    assert max(len(str(each)) for each in shown) < 150
    assert [str(each).split()[0] for each in shown] == [
        "<Worker", "<Tool", "<Report", "<Plan", "<Outcome", "<RunDiff"
    ]  # fmt: skip


def test_a_wrong_argument_is_an_error_of_the_supervisor() -> None:
    """The classes that it extends are not known to its users."""
    wrong: dict[str, Any] = {"modle": "ollama:m"}
    with pytest.raises(TypeError, match=r"^Supervisor\.__init__"):
        Supervisor(**wrong)


def test_the_public_names_are_completed() -> None:
    """They are loaded at first use, and are listed before that."""
    assert set(chargehand.__all__) <= set(dir(chargehand))


def test_trust_does_not_depend_on_where_runs_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is trusted in the home of the settings has its tools; without trust, the report has a note."""
    monkeypatch.setenv("CHARGEHAND_HOME", str(tmp_path / "home"))
    code = "from chargehand import tool\n@tool\ndef price(name: str) -> int:\n    'Its price.'\n    return 3\n"
    files = {
        "team.toml": 'name = "crew"\ndescription = "Prices things."\n',
        "workers/w.md": "---\nname: w\ndescription: Prices\ntools: price\n---\nYou price things.\n",
        "tools.py": code,
    }
    for name, text in files.items():
        (tmp_path / "crew" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "crew" / name).write_text(text)
    rules = [{"when": {"role": "worker"}, "reply": {"json": {"summary": "s", "output": "x"}}}]
    door = Supervisor(tmp_path / "crew", model=ScriptedModel(rules), home=tmp_path / "runs")
    remedy = f"chargehand trust {tmp_path / 'crew'}"
    assert sum(remedy in note for note in door.run_sync(plan=PLAN).notes) == 1
    TrustRegistry(str(tmp_path / "home")).trust(tmp_path / "crew")
    door = Supervisor(tmp_path / "crew", model=ScriptedModel(rules), home=tmp_path / "runs")
    assert door.team.worker("w").tool_names == ("price",)
    assert not any(remedy in note for note in asyncio.run(door.rerun("last")).notes)


def test_a_run_that_was_made_in_python_is_continued_with_the_same_model_and_team(tmp_path: Path) -> None:
    """Neither can be made again from the record, and the error says so."""

    @tool(effect="read")
    def look_up(city: str) -> str:
        """Looks a city up."""
        return city

    model = ScriptedModel([{"when": {"role": "worker"}, "reply": {"error": {"status": 400}}}])
    team = Team([Worker("w", "Works", tools=[look_up])])
    run = Supervisor(team, model=model, home=tmp_path).run_sync("x", plan=PLAN).run
    for wrong, error in (
        (Supervisor(team, home=tmp_path), UsageError),
        (Supervisor(model=model, home=tmp_path), InvalidTeam),
    ):
        with pytest.raises(error, match="made in Python"):
            asyncio.run(wrong.resume(run, retry_failed=True))


def test_a_resumed_run_says_which_given_model_or_team_it_does_not_use(tmp_path: Path) -> None:
    """It continues with those of its start; what the caller gave and the run had already needs no word."""
    scripts: dict[str, str] = {}
    for name, reply in (("bad", {"error": {"status": 400}}), ("good", {"json": {"summary": "s", "output": "x"}})):
        (tmp_path / f"{name}.json").write_text(json.dumps({"replies": [{"reply": reply}]}))
        scripts[name] = f"scripted:{tmp_path / name}.json"
    team, other = Team([Worker("w", "Works")]), Team([Worker("w", "Works hard")])
    run = Supervisor(team, model=scripts["bad"], home=tmp_path).run_sync("x", plan=PLAN).run

    def notes(given: Team | str | None, model: str | ScriptedModel | None) -> list[str]:
        door = Supervisor(given, model=model, home=tmp_path)
        report = asyncio.run(door.resume(run, retry_failed=True))
        assert report.status == "failed"
        return [note for note in report.notes if "not used" in note]

    assert notes(team, scripts["bad"]) == notes(None, None) == []
    assert ["fork(" in note for note in notes(team, scripts["good"])] == [True]
    assert ["fork(" in note for note in notes(team, ScriptedModel([]))] == [True]
    assert ["rerun(" in note for note in notes(other, None)] == [True]
    assert ["rerun(" in note for note in notes("general", scripts["bad"])] == [True]
    assert notes(None, None) == []


def test_a_run_may_be_recorded_in_a_journal_of_the_callers(tmp_path: Path) -> None:
    """Nothing of it is in the home. It has an id of its own, which the record has too."""
    store = MemoryStore()

    @contextlib.asynccontextmanager
    async def in_memory() -> AsyncGenerator[MemoryJournal]:
        yield MemoryJournal(store)

    model = ScriptedModel([{"reply": {"json": {"summary": "s", "output": "x"}}}])
    door = Supervisor(Team([Worker("w", "Works")]), model=model, home=tmp_path)
    report = door.run_sync(plan=PLAN, record=in_memory)
    assert report.unwrap() == "x"
    assert {event.run for event in MemoryJournal.read(store).events()} == {report.run}
    assert Home(tmp_path).runs() == []
    with pytest.raises(UsageError, match="stdin"):
        door.run_sync(plan=PLAN, record=in_memory, stdin="x")


def test_runs_are_listed_newest_first(tmp_path: Path) -> None:
    """As typed values, with how each ended."""
    model = ScriptedModel([{"reply": {"json": {"summary": "s", "output": "x"}}, "times": 1}])
    door = Supervisor(Team([Worker("w", "Works")], name="crew"), model=model, home=tmp_path)
    assert door.runs() == ()
    first, second = (door.run_sync(request, plan=PLAN).run for request in ("one", "two"))
    listed = [(each.run, each.status, each.request, each.team) for each in door.runs()]
    assert listed == [(second, "failed", "two", "crew"), (first, "complete", "one", "crew")]


def test_ctrl_c_in_run_sync_names_the_run_in_a_short_traceback(tmp_path: Path) -> None:
    """The run is interrupted and can be resumed; the caller's own function of the session is called as ever."""
    sessions: list[Session] = []

    def press(event: Event) -> None:
        if event.kind == "model_called":
            signal.raise_signal(signal.SIGINT)

    reply = {"reply": {"json": {"summary": "s", "output": "x"}}}
    slow, fast = ScriptedModel([{**reply, "delay_ms": 3_600_000}]), ScriptedModel([reply])
    door = Supervisor(Team([Worker("w", "Works")]), model=slow, home=tmp_path)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            door.run_sync(plan=PLAN, on_event=press, on_session=sessions.append)
    finally:
        signal.signal(signal.SIGINT, before)
    (run,) = (each.run for each in sessions)
    assert [run in note for note in caught.value.__notes__] == [True]
    shown = "".join(traceback.format_exception(caught.value))
    assert "CancelledError" not in shown
    assert len(traceback.extract_tb(caught.value.__traceback__)) == 2
    assert door.report(run).status == "interrupted"
    assert asyncio.run(Supervisor(door.team, model=fast, home=tmp_path).resume(run)).status == "complete"
    with pytest.raises(UsageError, match="on_session"):
        door.run_sync(plan=PLAN, on_session=cast("Any", "x"))
