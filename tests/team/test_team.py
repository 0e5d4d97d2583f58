"""Teams made in Python and read from folders: all problems at once, with file and line."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from chargehand.errors import InvalidTeam
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.runs.roster import roster
from chargehand.settings import Limits, ModelSettings, RoleModel, Settings
from chargehand.team import Example, RouteExample, RouteRule, Scrutiny, Team, Worker, load, shipped_teams, stored_tools
from chargehand.testing import ScriptedModel
from chargehand.tools import BUILTIN, Tool, tool
from chargehand.values.budget import Budget
from chargehand.values.plan import Plan, Problem, SynthesisSpec, Task, errors_in
from chargehand.values.program import Program
from chargehand.values.recovery_policy import Condition, Policy, Rung
from chargehand.workers.agent import Agent


@tool(effect="read")
def population(city: str) -> int:
    """Inhabitants of a city."""
    return {"Oslo": 717_710}[city]


def area(city: str) -> float:
    """Area of a city in square kilometres."""
    return {"Oslo": 454.0}[city]


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def agent(name: str = "a", more: str = "", body: str = "You are it.") -> str:
    return f"---\nname: {name}\ndescription: Does {name}.\n{more}---\n{body}\n"


DEEP = '{"items":' * 100_000
TOML = 'name = "mine"\ndescription = "Mine."\n'


def problems_of(folder: Path, trust: TrustRegistry | None = None) -> list[Problem]:
    with pytest.raises(InvalidTeam) as caught:
        load(folder, trust)
    found = [problem for problem in caught.value.problems if isinstance(problem, Problem)]
    assert all(problem.message in str(caught.value) for problem in errors_in(found))
    return found


def codes_of(workers: list[Worker], **options: Any) -> list[str]:
    """What is wrong with a team made in Python; the words are in golden/team_problems.txt."""
    with pytest.raises(InvalidTeam) as caught:
        Team(workers, **options)
    return [problem.code for problem in caught.value.problems if isinstance(problem, Problem)]


# --- in Python ------------------------------------------------------------------------------------------------------


class City(BaseModel):
    name: str


class Opaque:
    """Nothing a model could write."""


@tool
def measure(thing: Opaque, action: Callable[[], int], size: int) -> int:
    """A tool with two parameters that have no JSON form."""
    return size if thing else action()


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": 3},
        {"prompt": None},
        {"tools": "read_file"},
        {"tools": area},
        {"tools": [3]},
        {"model": 3},
        {"model": ScriptedModel([])},
        {"tier": "huge"},
        {"max_steps": "5"},
        {"max_steps": True},
        {"temperature": "hot"},
        {"output_schema": 3},
        {"output_schema": {"type": "strng"}},
        {"kind": "robot"},
        {"check": 3},
        {"kind": "delegate", "team": "general"},
        {"kind": "command", "command": "ls -l"},
        {"web": "yes"},
    ],
    ids=lambda wrong: next(reversed(wrong)),
)
def test_a_wrong_argument_of_a_worker_is_one_problem_of_the_team(wrong: dict[str, Any]) -> None:
    """A worker is checked when its team is made, not in the run."""
    given: dict[str, Any] = {"name": "a", "description": "A", **wrong}
    with pytest.raises(InvalidTeam) as caught:
        Team([Worker(**given)])
    (problem,) = caught.value.problems
    assert isinstance(problem, Problem)
    assert problem.code == "invalid_value"
    assert f" {next(reversed(wrong))}" in problem.message


def test_each_element_that_is_not_a_tool_is_a_problem_with_its_place() -> None:
    """The list itself is right."""
    wrong: list[Any] = [area, 3, (n for n in ())]
    with pytest.raises(InvalidTeam) as caught:
        Team([Worker("a", "A", tools=wrong)])
    messages = [str(problem) for problem in caught.value.problems]
    assert [message.partition(" is ")[0].rpartition(" ")[2] for message in messages] == ["tools[1]", "tools[2]"]


def test_wrong_arguments_of_a_team_and_its_workers_are_reported_together() -> None:
    """With those of other workers, and with what is wrong otherwise."""
    wrong: dict[str, Any] = {"tier": "huge", "max_steps": "5"}
    workers: list[Any] = ["a", Worker("b", "B", **wrong), Worker("c", "C", fallback="nobody")]
    codes = codes_of(workers, mode="rout", budget={"token": 5})
    assert codes == [*["invalid_value"] * 2, "unknown_key", *["invalid_value"] * 2, "unknown_fallback"]


@pytest.mark.parametrize("workers", ["ab", None, Worker("a", "A"), ["a"]])
def test_workers_that_are_no_list_of_workers_are_refused(workers: Any) -> None:
    """Once: such a team is not also said to have none."""
    assert codes_of(workers) == ["invalid_value"]


def test_sections_of_a_team_may_be_dicts_as_in_the_file() -> None:
    """They become the values that the sections of team.toml become."""
    planner = {"temperature": 0.5}
    team = Team(
        [Worker("a", "A")],
        budget={"tokens": 5_000, "usd": 1},
        limits={"deadline": 60, "max_tasks": 3},
        recovery={"attempts": 2, "hedge_after": 5},
        models={"large": "ollama:m", "planner": planner},
        synthesis={"mode": "select"},
        scrutiny={"critic": True},
        routes=[{"match": "x", "worker": "a"}],
        route_examples=[{"request": "x", "primary": "a"}],
    )
    assert team == Team(
        [Worker("a", "A")],
        budget=Budget(tokens=5_000, usd=1),
        limits=Limits(deadline_s=60, max_tasks=3),
        recovery=Policy(attempts=2, hedge_after_s=5),
        models=ModelSettings(tiers={"large": "ollama:m"}, roles={"planner": RoleModel(temperature=0.5)}),
        synthesis=SynthesisSpec(mode="select"),
        scrutiny=Scrutiny(critic=True),
        routes=[RouteRule(match="x", worker="a")],
        route_examples=[RouteExample(request="x", primary="a")],
    )


@pytest.mark.parametrize(
    ("section", "code"),
    [
        ({"budget": {"token": 5}}, "unknown_key"),
        ({"budget": {"tokens": "5"}}, "invalid_value"),
        ({"budget": 5}, "invalid_value"),
        ({"limits": {"max_task": 5}}, "unknown_key"),
        ({"recovery": {"atempts": 5}}, "unknown_key"),
        ({"synthesis": {"mod": "merge"}}, "unknown_key"),
        ({"scrutiny": {"critik": True}}, "unknown_key"),
        ({"models": {"planer": {}}}, "unknown_key"),
        ({"routes": [{"match": "x", "worker": "a", "unles": "y"}]}, "unknown_key"),
        ({"routes": {"match": "x", "worker": "a"}}, "invalid_value"),
        ({"examples": [3]}, "invalid_value"),
    ],
    ids=str,
)
def test_a_wrong_section_of_a_team_is_refused_by_its_key(section: dict[str, Any], code: str) -> None:
    """An unknown key comes with the one that was probably meant."""
    with pytest.raises(InvalidTeam) as caught:
        Team([Worker("a", "A")], **section)
    (problem,) = caught.value.problems
    assert isinstance(problem, Problem)
    assert problem.code == code
    assert problem.message.startswith(next(iter(section)))
    assert ("Did you mean" in problem.message) == (code == "unknown_key")


ANALYZER = Worker("a", "Analyses", kind="analyzer", tools=["secrets"])
HUMAN = Worker("a", "Decides", kind="human")
SCRIPT = Worker("a", "Converts", kind="command", command=["convert"])
CODER = Worker("a", "Codes", kind="command", program=Program(command=("claude",), preset="claude"))
AGENT, OTHER = Worker("a", "Works"), Worker("b", "Works too")


@pytest.mark.parametrize(
    ("workers", "mode", "expected"),
    [
        ([AGENT, OTHER], "plan", (True, True)),
        ([AGENT], "plan", (False, True)),
        ([AGENT, OTHER], "route", (False, True)),
        ([CODER, OTHER], "plan", (True, True)),
        ([ANALYZER, OTHER], "plan", (False, False)),
        ([HUMAN, OTHER], "plan", (False, False)),
        ([SCRIPT, OTHER], "plan", (False, False)),
        ([Worker("a", "Leads", kind="delegate", team=Team([AGENT])), OTHER], "plan", (True, True)),
        ([Worker("a", "Leads", kind="delegate", team=Team([ANALYZER])), OTHER], "plan", (False, False)),
    ],
)
def test_one_agent_is_advised_only_where_it_could_do_the_work(
    workers: list[Worker], mode: Any, expected: tuple[bool, bool]
) -> None:
    """Where a model works, and for one task only if neither the size of the team nor its mode asks for one."""
    team = Team(workers, mode=mode)
    first = Task(id="t1", worker="a", instruction="Do it.", success_criterion="Done.")
    chain = Plan(goal="g", tasks=(first, first.model_copy(update={"id": "t2", "depends_on": ("t1",)})))
    one = Plan(goal="g", tasks=(first,))
    assert tuple(bool(team.advice(plan, parallel_inside=False)) for plan in (one, chain)) == expected


def test_a_pydantic_model_is_an_output_schema() -> None:
    """Its JSON schema is used."""
    team = Team([Worker("a", "A", output_schema=City)])
    assert team.worker("a").output_schema == City.model_json_schema()
    assert Team.from_json(json.loads(json.dumps(team.to_json())), {}) == team


def test_a_tool_with_a_parameter_without_json_form_is_refused_by_the_team() -> None:
    """One sentence with the function and all such parameters."""
    with pytest.raises(InvalidTeam) as caught:
        Team([Worker("a", "A", tools=[measure])])
    (problem,) = caught.value.problems
    assert isinstance(problem, Problem)
    assert problem.code == "invalid_tool"
    assert all(word in problem.message for word in ("measure", "'thing'", "Opaque", "'action'"))
    assert "'size'" not in problem.message
    assert "\n" not in problem.message


def test_a_worker_file_without_a_prompt_is_a_warning(tmp_path: Path) -> None:
    """The worker may work without it, but it was probably forgotten."""
    folder = write(tmp_path, {"team.toml": TOML, "workers/a.md": agent("a", body="")})
    (problem,) = load(folder).problems()
    assert (problem.code, problem.severity) == ("missing_prompt", "warning")
    assert problem.message.startswith("workers/a.md:1:1: ")


def test_a_team_is_made_as_the_readme_shows() -> None:
    """A worker takes tools, plain functions and the names of built-ins."""
    team = Team(workers=[Worker("r", "Looks up", tools=[population, area, "read_file"]), Worker("w", "Writes prose")])
    assert list(team.tools()) == ["population", "area", "read_file"]
    assert team.tools()["population"]("Oslo") == 717_710
    assert team.tools()["read_file"] is BUILTIN["read_file"]
    assert (team.worker("w").tools, team.worker("w").max_steps, team.names) == ((), 10, ("r", "w"))
    assert team.problems() == []


def test_every_problem_of_a_team_is_reported_at_once() -> None:
    """One InvalidTeam holds them all."""
    with pytest.raises(InvalidTeam) as caught:
        Team(
            [
                Worker("a", "A", tools=["read_file", "calculat"], fallback="b"),
                Worker("a", "", tools=["read_file"]),
                Worker("b", "B", fallback="a", temperature=3),
                Worker("not a name", "C", fallback="nobody", max_steps=0, model="gpt"),
            ],
            shared_tools=["nothing"],
        )
    codes = sorted(problem.code for problem in caught.value.problems if isinstance(problem, Problem))
    assert codes == sorted(
        [
            *("unknown_tool", "unknown_tool", "missing_description", "duplicate_worker", "shared_tool", "invalid_name"),
            *("fallback_cycle", "unknown_fallback", "invalid_value", "invalid_value", "invalid_value"),
        ]
    )
    assert codes_of([]) == ["no_workers"]


def test_a_tool_in_two_workers_needs_to_be_shared_on_purpose() -> None:
    """Reading tools are no exception."""
    workers = [Worker("a", "A", tools=["read_file"]), Worker("b", "B", tools=["read_file"])]
    assert codes_of(workers) == ["shared_tool"]
    assert Team(workers, shared_tools=["read_file"]).tools() == {"read_file": BUILTIN["read_file"]}


def test_two_tools_of_one_name_are_refused() -> None:
    """A call by name must not reach the wrong function, and `escalate` is every worker's own."""

    @tool(name="population")
    def other(city: str) -> int:
        """Another."""
        return len(city)

    @tool
    def escalate(reason: str) -> str:
        """Mine."""
        return reason

    two = [Worker("a", "A", tools=[population]), Worker("b", "B", tools=[other])]
    assert codes_of(two, shared_tools=["population"]) == ["duplicate_tool"]
    assert codes_of([Worker("a", "A", tools=[population, population])]) == ["duplicate_tool"]
    assert codes_of([Worker("a", "A", tools=[escalate])]) == ["duplicate_tool"]


def test_a_function_shared_by_two_workers_is_one_tool() -> None:
    """A plain function becomes an equal tool in each of them."""
    team = Team([Worker("a", "A", tools=[area]), Worker("b", "B", tools=[area])], shared_tools=["area"])
    assert list(team.tools()) == ["area"]


def test_a_shared_tool_may_be_given_as_itself() -> None:
    """It is known by its name, as in a file."""

    @tool
    def area(city: str) -> int:
        """Area of a city."""
        return len(city)

    team = Team([Worker("a", "A", tools=[area]), Worker("b", "B", tools=[area])], shared_tools=[area])
    assert (team.shared_tools, team.problems()) == (("area",), [])
    assert codes_of([Worker("a", "A")], shared_tools=[3]) == ["invalid_value"]


def test_a_tool_without_a_description_is_a_warning() -> None:
    """A model would have to guess what it does."""

    def area(city: str) -> int:
        return len(city)

    found = Team([Worker("a", "A", tools=[area])]).problems()
    assert [(each.code, each.severity) for each in found] == [("missing_description", "warning")]


def test_too_many_workers_or_tools_is_only_a_warning() -> None:
    """More than 7 workers suggest a sub-team, more than 10 tools a split; both still work."""

    def numbered(n: int) -> Tool:
        @tool(name=f"t{n}")
        def one(x: int) -> int:
            """One."""
            return x

        return one

    workers = [Worker(f"w{n}", "W") for n in range(7)]
    assert Team(workers).problems() == []
    team = Team([*workers, Worker("many", "M", tools=[numbered(n) for n in range(11)])])
    assert [problem.code for problem in team.problems()] == ["too_many_tools", "too_many_workers"]
    assert errors_in(team.problems()) == []


def test_a_fallback_cycle_is_named_once_by_its_path() -> None:
    """Workers that lead into a cycle do not report it again."""
    with pytest.raises(InvalidTeam) as caught:
        Team([Worker("a", "A", fallback="b"), Worker("b", "B", fallback="c"), Worker("c", "C", fallback="b")])
    (problem,) = caught.value.problems
    assert isinstance(problem, Problem)
    assert (problem.code, "b -> c -> b" in problem.message) == ("fallback_cycle", True)


def test_a_stored_team_comes_back_equal() -> None:
    """Through JSON and back, with its own tools given again."""
    team = Team(
        [
            Worker("a", "A", prompt="P", tools=[population, "calculate"], model="ollama:x", tier="small", max_steps=3),
            Worker("b", "B", output_schema={"type": "object"}, fallback="a", temperature=0.5, effort="low"),
        ],
        name="n",
        description="d",
        budget=Budget(tokens=5),
        limits=Limits(max_concurrent=2),
        models=ModelSettings(tiers={"large": "ollama:y"}, roles={"judge": RoleModel(temperature=0)}),
        examples=[Example.model_validate({"request": "r", "plan": {"goal": "g"}})],
    )
    data = json.loads(json.dumps(team.to_json()))
    assert Team.from_json(data, {"population": population}) == team
    with pytest.raises(InvalidTeam, match="'population'"):
        Team.from_json(data, {})


# --- the shipped team -----------------------------------------------------------------------------------------------


def test_the_general_team_ships_whole() -> None:
    """Four workers with disjoint tools, two examples with valid plans, no warning."""
    team = load("general")
    assert {w.name: w.tool_names for w in team.workers} == {
        "researcher": ("read_file", "list_files", "search_files"),
        "analyst": ("calculate",),
        "writer": ("write_document",),
        "reviewer": (),
    }
    assert all(len(w.prompt) > 500 and w.description for w in team.workers)
    assert len(team.examples) == 2
    assert all(example.plan.problems(team.names) == [] for example in team.examples)
    assert team.problems() == []
    assert "general" in shipped_teams()


@pytest.mark.parametrize("name", shipped_teams())
def test_every_shipped_team_loads(name: str) -> None:
    """Its folder has no errors and its stored form comes back."""
    team = load(name)
    assert Team.from_json(team.to_json(), stored_tools(team.to_json(), None)[0]).names == team.names


def test_a_broken_shipped_team_takes_no_other_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is listed, and says what is wrong when it is loaded."""
    write(tmp_path, {"bad/team.toml": "name =", "good/team.toml": TOML, "good/workers/a.md": agent()})
    monkeypatch.setattr("chargehand.team.team_folder.shipped_home", lambda: tmp_path)
    assert shipped_teams() == ["bad", "good"]
    assert load("good").name == "mine"
    with pytest.raises(InvalidTeam, match="not valid TOML"):
        load("bad")


def test_an_unknown_team_is_named_with_a_suggestion(tmp_path: Path) -> None:
    """Neither a shipped name nor a folder."""
    with pytest.raises(InvalidTeam, match=r"no team 'genral'.*Did you mean 'general'"):
        load("genral")
    with pytest.raises(InvalidTeam, match="no team"):
        load(tmp_path / "general")


# --- folders --------------------------------------------------------------------------------------------------------


def test_a_team_folder_says_everything_it_may_say(tmp_path: Path) -> None:
    """Every key that this version knows arrives where it belongs."""
    folder = write(
        tmp_path,
        {
            "team.toml": TOML
            + 'shared_tools = ["read_file"]\n[supervisor]\nmode = "plan"\n[limits]\nmax_concurrent = 3\nmax_steps = 7\n'
            + "max_tasks = 50\ndeadline = 60\n[budget]\ntokens = 9000\nusd = 0.5\n"
            + '[synthesis]\nmode = "reduce"\ninstruction = "Short."\n'
            + '[models]\nsmall = "ollama:s"\n[models.planner]\nmodel = "ollama:p"\ntemperature = 0\n',
            "workers/a.md": agent(
                "a", "tools: read_file, calculate\nmodel: opus\nfallback: b\ntemperature: 0.3\neffort: high\n"
            ),
            "workers/b.md": agent(
                "b", 'tools: [read_file]\nmaxTurns: 2\ntier: small\noutput_schema: {"type": "object"}\n'
            ),
            "workers/c.md": agent("c", "model: ollama:own\noutput_schema: ../c.json\n"),
            "c.json": '{"type": "array"}',
            "examples/one.json": json.dumps(
                {
                    "request": "r",
                    "plan": {
                        "goal": "g",
                        "tasks": [{"id": "t", "worker": "a", "instruction": "Do x", "success_criterion": "x is done"}],
                    },
                }
            ),
        },
    )
    team = load(folder)
    a, b, c = team.workers
    assert (a.tool_names, a.tier, a.model, a.fallback, a.temperature, a.effort, a.max_steps) == (
        ("read_file", "calculate"), "large", None, "b", 0.3, "high", 7,
    )  # fmt: skip
    assert (b.max_steps, b.tier, b.output_schema, b.prompt) == (2, "small", {"type": "object"}, "You are it.")
    assert (c.model, c.output_schema, c.tools) == ("ollama:own", {"type": "array"}, ())
    assert (team.name, team.synthesis.mode, team.synthesis.instruction) == ("mine", "reduce", "Short.")
    assert team.limits == Limits(max_concurrent=3, max_tasks=50, deadline_s=60)
    assert team.budget == Budget(tokens=9000, usd=0.5)
    assert team.models == ModelSettings(
        tiers={"small": "ollama:s"}, roles={"planner": RoleModel(model="ollama:p", temperature=0)}
    )
    assert team.examples[0].request == "r"
    assert load(folder / "team.toml") == team


def test_a_workers_own_effort_wins_over_that_of_its_role() -> None:
    """It goes with every call of the worker; the wire formats translate it."""
    team = Team([Worker("a", "A", effort="high"), Worker("b", "B")])
    settings = Settings(home="", model="ollama:x", roles={"worker": RoleModel(effort="low")})
    agents = [each for each in roster(team, settings).values() if isinstance(each, Agent)]
    assert [agent.options for agent in agents] == [{"effort": "high"}, {"effort": "low"}]


def test_all_problems_of_a_folder_come_at_once_with_file_and_line(tmp_path: Path) -> None:
    """team.toml, workers and examples in one error."""
    folder = write(
        tmp_path,
        {
            "team.toml": TOML + 'sharedtools = []\nshared_tools = ["reed_file"]\n[limits]\nsteps = 3\n',
            "workers/a.md": agent("a", "tools: read_file\ncolour: red\nmodle: opus\n"),
            "workers/b.md": agent(
                "b", "tools: Read, read_file\nfallback: aa\nmaxTurns: many\ntier: huge\nmodel: gpt\n"
            ),
            "workers/c.md": "No front matter.\n",
            "workers/d.md": "---\nname: d\nnonsense\n",
            "workers/e.md": "---\nname: a\n---\n",
            "examples/x.json": '{"request": "r",\n "plan": }',
            "examples/y.json": '{"request": "r", "plan": {"goal": "g", "tasks": [{"id": "t", "worker": "zed"}]}}',
            "examples/z.json": "[]",
        },
    )
    messages = {problem.message for problem in problems_of(folder)}
    for start in (
        "team.toml:3:1: 'sharedtools' is not a setting. Did you mean 'shared_tools'?",
        "team.toml:4:1: the shared tool 'reed_file' does not exist. Did you mean 'read_file'?",
        "team.toml:6:1: 'limits.steps' is not a setting.",
        "workers/a.md:5:1: 'colour' is not a field of a worker.",
        "workers/a.md:6:1: 'modle' is not a field of a worker. Did you mean 'model'?",
        "workers/b.md:4:1: the worker 'b' has the tool 'Read', which does not exist. Did you mean 'read_file'?",
        "workers/b.md:4:1: the tool 'read_file' is held by 'a' and 'b'",
        "workers/b.md:5:1: the fallback 'aa' of 'b' is not a worker of this team.",
        "workers/b.md:6:1: 'maxTurns' is a whole number",
        "workers/b.md:7:1: 'huge' is not a tier.",
        "workers/b.md:8:1: 'gpt' is not a model",
        "workers/c.md:1:1: this has no front matter",
        "workers/d.md:1:1: the front matter opened here has no closing",
        "workers/e.md:2:1: there are two workers named 'a'",
        "workers/e.md:1:1: the worker 'a' has no description",
        "examples/x.json:2:10: not JSON",
        "examples/y.json:1:1: the plan is not valid",
        "examples/z.json:1:1: an example is",
    ):
        assert any(message.startswith(start) for message in messages), start


def test_a_team_writes_its_own_recovery(tmp_path: Path) -> None:
    """[recovery] is the policy: attempts, rungs by condition, scorer and hedges; it is stored with the run."""
    toml = '[recovery]\nattempts = 2\nscore = true\nhedge_after = 2.5\nevidence = "strict"\n'
    toml += '[recovery.ladder]\nfailure = ["refine", "ask"]\n'
    write(tmp_path, {"team.toml": TOML + toml, "workers/a.md": agent("a", "")})
    policy = load(tmp_path).recovery
    ladder: dict[Condition, tuple[Rung, ...]] = {"failure": ("refine", "ask")}
    assert policy == Policy(attempts=2, score=True, hedge_after_s=2.5, evidence="strict", ladder=ladder)
    assert Team.from_json(load(tmp_path).to_json(), {}).recovery == policy


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("attempts = 4", "team.toml:4:1: 'attempts'"),
        ("attempts = 0", "team.toml:4:1: 'attempts'"),
        ("attemps = 2", "team.toml:4:1: 'recovery.attemps' is not a setting. Did you mean 'attempts'?"),
        ("hedge_after = 0", "team.toml:4:1: 'hedge_after'"),
        ("ladder = {failure = ['pray']}", "team.toml:4:1: 'ladder.failure'"),
        ("ladder = {sadness = ['retry']}", "team.toml:4:1: 'ladder.sadness"),
        (
            "evidence = 'stict'",
            "team.toml:4:1: 'evidence' is one of 'strict', 'normal', 'off', not 'stict'. Did you mean 'strict'?",
        ),
        ("evidence = false", "team.toml:4:1: 'evidence' is text in quotes"),
    ],
)
def test_a_wrong_recovery_is_named_with_its_place(tmp_path: Path, toml: str, message: str) -> None:
    """A ladder with a rung or a condition that does not exist never runs."""
    write(tmp_path, {"team.toml": TOML + f"[recovery]\n{toml}\n", "workers/a.md": agent("a", "")})
    found = [problem.message for problem in problems_of(tmp_path)]
    assert [text for text in found if text.startswith(message)], found


@pytest.mark.parametrize(
    ("toml", "worker", "message"),
    [
        ("[people]\nask = 'yes'\n", "", "team.toml:4:1: 'ask' is true or false"),
        ("[people]\nasks = true\n", "", "team.toml:4:1: 'people.asks' is not a setting. Did you mean 'ask'?"),
        ("", "kind: humam\n", "workers/a.md:4:1: 'humam' is not a kind of worker. Did you mean 'human'?"),
        ("", "kind: human\ntools: read_file\n", "workers/a.md:5:1: the worker 'a' is a person, who has no 'tools'"),
        ("", "kind: human\ntier: small\n", "workers/a.md:5:1: the worker 'a' is a person, who has no 'tier'"),
        ("[supervisor]\nmode = 'vote'\n", "", "team.toml:4:1: 'mode' is 'plan' or 'route'"),
        (
            "[supervisor]\nmood = 'plan'\n",
            "",
            "team.toml:4:1: 'supervisor.mood' is not a setting. Did you mean 'mode'?",
        ),
        ("[synthesis]\nmode = 'blend'\n", "", "team.toml:4:1: 'mode': Input should be 'merge', 'select' or 'reduce'"),
        ("[synthesis]\nmodes = 'merge'\n", "", "team.toml:4:1: 'synthesis.modes' is not a setting."),
        ("shared_tools = 'read_file'\n", "", "team.toml:3:1: 'shared_tools' is a list"),
        ("", "kind: robot\n", "workers/a.md:4:1: 'robot' is not a kind"),
        ("", "team: general\n", "workers/a.md:4:1: 'team' is for a worker of the kind delegate"),
        ("", "output_schema: none.json\n", "workers/a.md:4:1: 'none.json' is neither a JSON schema nor a file"),
        ("", "output_schema: {oops}\n", "workers/a.md:4:1: the schema is not JSON"),
        ("", "output_schema: ../list.json\n", "workers/a.md:4:1: the schema cannot be used: a schema is a JSON object"),
        ("", "temperature: warm\n", "workers/a.md:4:1: 'temperature' is a number"),
        ("", "temperature: 1e999\n", "workers/a.md:4:1: the temperature inf is not between 0 and 2"),
        ("", "effort: huge\n", "workers/a.md:4:1: 'huge' is not an effort"),
        # What breaks parsers and file systems is a problem like any other.
        ("", f"maxTurns: {'9' * 5000}\n", "workers/a.md:4:1: 'maxTurns' is a whole number, not '999"),
        ("", f"maxTurns: {'9' * 20}\n", "workers/a.md:4:1: 'maxTurns' must be at most 1e+15"),
        ("", 'output_schema: "a\\0b.json"\n', "workers/a.md:4:1: 'a\\x00b.json' is neither a JSON schema nor a file"),
        ("", f"output_schema: {'x' * 5000}\n", "workers/a.md:4:1: 'xxx"),
        ("", f"output_schema: {DEEP}\n", "workers/a.md:4:1: the schema is not JSON: recursion limit exceeded"),
        ("", "kind: delegate\nteam: ~nosuchuser/x\n", "workers/a.md:5:1: There is no team '~nosuchuser/x'"),
        ("", f"kind: delegate\nteam: {'x' * 5000}\n", "workers/a.md:5:1: There is no team 'xxx"),
        ("x = " + "[" * 9000 + "]" * 9000, "", "team.toml:1:1: lists and tables are nested more than 100 levels deep"),
        ("[x" + ".x" * 200 + "]", "", "team.toml:1:1: lists and tables are nested more than 100 levels deep"),
        (f"[limits]\nmax_tasks = {'9' * 5000}\n", "", "team.toml:1:1: not valid TOML: Exceeds the limit"),
        (f"[budget]\nusd = 1{'0' * 400}\n", "", "team.toml:4:1: 'usd' must be at most 1e+15"),
        (f'zz = 1\ndisclaimer = """\n[{" " * 6000}\n"""\n', "", "team.toml:3:1: 'zz' is not a setting"),
        ("[budget]\nusd = inf\n", "", "team.toml:4:1: 'usd' must be at most 1e+15"),
        ("[limits]\ndeadline = inf\n", "", "team.toml:4:1: 'deadline' must be at most 1e+15"),
        ("[limits]\ndeadline = nan\n", "", "team.toml:4:1: 'deadline' is nan"),
        ("[recovery]\nhedge_after = inf\n", "", "team.toml:4:1: 'hedge_after' must be at most 1e+15"),
    ],
)
def test_a_wrong_value_is_one_problem_at_its_line(tmp_path: Path, toml: str, worker: str, message: str) -> None:
    """Each says what would be right."""
    write(tmp_path, {"team.toml": TOML + toml, "workers/a.md": agent("a", worker), "list.json": "[]"})
    (problem,) = problems_of(tmp_path)
    assert problem.message.startswith(message)


def test_files_that_are_no_text_are_problems(tmp_path: Path) -> None:
    """Odd encodings and a team without a description are named by file; examples of routes come later."""
    write(tmp_path, {"team.toml": 'name = "x"\n', "examples/r.json": '{"request": "r", "route": "a"}'})
    write(tmp_path, {"examples/deep.json": "[" * 200_000, "examples/long.json": f"[{'1' * 5000}]"})
    (tmp_path / "workers").mkdir()
    for name in ("workers/a.md", "examples/a.json"):
        (tmp_path / name).write_bytes(b"---\nname: \xff\n---\n")
    # A pipe nobody writes to would be waited for.
    os.mkfifo(tmp_path / "workers/pipe.md")
    os.mkfifo(tmp_path / "examples/pipe.json")
    with (tmp_path / "workers/vast.md").open("wb") as vast:
        vast.truncate(20_000_000)
    assert {problem.message.split(": ")[0]: problem.code for problem in problems_of(tmp_path)} == {
        "team.toml:1:1": "missing_description",
        "workers/a.md:2:1": "unreadable",
        "workers/pipe.md:1:1": "unreadable",
        "workers/vast.md:1:1": "unreadable",
        "examples/a.json:1:2": "invalid_example",
        "examples/deep.json:1:202": "invalid_example",
        "examples/long.json:1:4303": "invalid_example",
        "examples/pipe.json:1:1": "invalid_example",
        "examples/r.json:1:1": "invalid_example",
    }


def test_a_broken_team_file_still_lets_the_workers_be_checked(tmp_path: Path) -> None:
    """A TOML error and a worker's error come together."""
    write(tmp_path, {"team.toml": "name = \n", "workers/a.md": agent("a", "tier: huge\n")})
    assert [p.message.split(": ")[0] for p in problems_of(tmp_path)] == ["team.toml:1:8", "workers/a.md:4:1"]
    (tmp_path / "team.toml").write_bytes(b'name = "x"\n# caf\xe9\n')
    assert problems_of(tmp_path)[0].message.startswith("team.toml:2:1: ")
    (tmp_path / "workers/a.md").unlink()
    assert [problem.code for problem in problems_of(tmp_path)][1:] == ["no_workers"]


def test_warnings_are_told_beside_errors(tmp_path: Path) -> None:
    """All at once; what is said of a team that cannot be used names the errors only."""
    write(tmp_path, {"team.toml": TOML, "tools.py": "", "workers/a.md": agent("a", "tier: huge\n")})
    problems = problems_of(tmp_path)
    assert {problem.code: problem.severity for problem in problems} == {
        "untrusted_code": "warning",
        "invalid_value": "error",
    }
    with pytest.raises(InvalidTeam) as caught:
        load(tmp_path)
    assert "not trusted" not in str(caught.value)
    # By the folder that is to be repaired, whatever name its team.toml gives.
    assert f"The team {tmp_path.name!r} cannot be used" in str(caught.value)


def test_a_schema_outside_of_the_folder_is_refused(tmp_path: Path) -> None:
    """A team folder reads only its own files."""
    write(tmp_path, {"secret.json": "{}", "t/team.toml": TOML})
    write(tmp_path / "t", {"workers/a.md": agent("a", "output_schema: ../../secret.json\n")})
    assert "outside of the team's folder" in problems_of(tmp_path / "t")[0].message


def test_a_folder_with_workers_and_no_team_file_says_so(tmp_path: Path) -> None:
    """It is a half-made team, not a folder of agent files."""
    write(tmp_path, {"workers/a.md": agent()})
    assert "no team.toml" in problems_of(tmp_path)[0].message


# --- folders of agent files -----------------------------------------------------------------------------------------


def test_a_folder_of_claude_code_agents_is_a_team_unchanged(tmp_path: Path) -> None:
    """Tools and models are translated, sharing is allowed, and what is not offered is a warning."""
    write(
        tmp_path,
        {
            "reviewer.md": agent(
                "reviewer", "tools: Read, Grep, Bash(git diff:*), mcp__x__y\nmodel: haiku\ncolor: red\n"
            ),
            "fixer.md": agent("fixer", "model: inherit\nhooks:\n  PreToolUse:\n    - x\n"),
            "planner.md": agent(
                "planner", "tools:\n  - Glob\n  - Read\nmodel: claude-opus-4-5\npermissionMode: plan\neffort: xhigh\n"
            ),
            "sub/narrow.md": agent("narrow", "disallowedTools: Read\nmodel: sonnet\nmaxTurns: 4\n"),
            "newer.md": agent("newer", "model: opusplan\neffort: ultra\n"),
            "README.md": "# Not an agent\n",
            "post.md": "---\ntitle: Not an agent either\n---\nText\n",
        },
    )
    team = load(tmp_path)
    assert {w.name: (w.tier, w.tool_names) for w in team.workers} == {
        "fixer": (None, ("read_file", "list_files", "search_files")),
        "planner": ("large", ("list_files", "read_file")),
        "reviewer": ("small", ("read_file", "search_files")),
        "narrow": ("medium", ("list_files", "search_files")),
        "newer": (None, ("read_file", "list_files", "search_files")),
    }
    assert (team.name, team.worker("narrow").max_steps) == (tmp_path.name, 4)
    assert [team.worker(name).effort for name in ("planner", "newer")] == ["high", None]
    assert {p.message for p in team.problems()} == {
        "reviewer.md:4:1: not offered here: Bash, mcp__x__y.",
        "fixer.md:5:1: 'hooks' has no effect here.",
        "planner.md:8:1: 'permissionMode' has no effect here.",
        "newer.md:4:1: 'opusplan' is not known here, the default is used: "
        "write haiku, sonnet, opus, inherit or 'provider:name'.",
        "newer.md:5:1: 'ultra' is not known here, the model's default is used: write none, low, medium or high.",
    }
    assert all(p.severity == "warning" for p in team.problems())


def test_an_empty_folder_is_no_team(tmp_path: Path) -> None:
    """Neither is one without a single agent file; it says how to begin one."""
    (problem,) = problems_of(tmp_path)
    assert problem.code == "no_workers"
    assert problem.message.startswith("team.toml:1:1: the folder has neither a team.toml nor an agent file")
    assert "chargehand teams new" in problem.message
    write(tmp_path, {"README.md": "# Hello\n"})
    assert problems_of(tmp_path)[0].code == "no_workers"


# --- tool code and trust --------------------------------------------------------------------------------------------

CODE = """
from chargehand import tool
import pathlib
pathlib.Path(__file__).with_name("imported").touch()

@tool(effect="read")
def twice(n: int) -> int:
    "Twice the number."
    return 2 * n
"""


def coded(folder: Path, code: str = CODE) -> Path:
    return write(folder, {"team.toml": TOML, "workers/a.md": agent("a", "tools: twice, calculate\n"), "tools.py": code})


def test_tool_code_runs_only_with_trust(tmp_path: Path) -> None:
    """Without it nothing is imported, the worker does without the tool, and one line names the command."""
    folder, registry = coded(tmp_path / "team"), TrustRegistry(str(tmp_path / "home"))
    for trust in (None, registry):
        team = load(folder, trust)
        assert not (folder / "imported").exists()
        assert team.worker("a").tool_names == ("calculate",)
        (warning,) = team.problems()
        assert f"chargehand trust {folder}" in warning.message
        assert "left out: twice" in warning.message
        assert "\n" not in warning.message
    registry.trust(folder)
    team = load(folder, registry)
    assert (folder / "imported").exists()
    assert team.tools()["twice"](21) == 42
    assert team.problems() == []


def test_load_uses_the_trust_of_the_default_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a Supervisor of the folder does; a registry that is given counts instead."""
    monkeypatch.setenv("CHARGEHAND_HOME", str(tmp_path / "home"))
    folder = coded(tmp_path / "team")
    assert load(folder).worker("a").tool_names == ("calculate",)
    TrustRegistry(str(tmp_path / "home")).trust(folder)
    assert load(folder).worker("a").tool_names == ("twice", "calculate")
    assert load(folder, TrustRegistry(str(tmp_path / "other"))).worker("a").tool_names == ("calculate",)


def test_a_misspelled_tool_is_reported_before_the_folder_is_trusted(tmp_path: Path) -> None:
    """Unless the code that is not loaded names it: then it may be a tool of its own."""
    folder = coded(tmp_path / "team", CODE.replace("twice", "read_files"))
    write(folder, {"workers/a.md": agent("a", "tools: read_files, read_fil\n")})
    code, warning = load(folder).problems()
    assert (code.code, "left out: read_files, read_fil" in code.message) == ("untrusted_code", True)
    assert (warning.code, warning.severity) == ("unknown_tool", "warning")
    assert warning.message.startswith("workers/a.md:4:1: ")
    assert "'read_fil'" in warning.message
    assert warning.message.endswith("Did you mean 'read_file'?")


def test_a_link_to_code_elsewhere_brings_no_trust(tmp_path: Path) -> None:
    """The folder and the file it links to must both be trusted."""
    folder, registry = coded(tmp_path / "team"), TrustRegistry(str(tmp_path / "home"))
    (folder / "tools.py").rename(tmp_path / "elsewhere.py")
    (folder / "tools.py").symlink_to(tmp_path / "elsewhere.py")
    registry.trust(folder)
    assert load(folder, registry).worker("a").tool_names == ("calculate",)
    assert not (tmp_path / "imported").exists()


def test_resume_gets_the_tools_again_and_hears_of_a_change(tmp_path: Path) -> None:
    """The stored hash tells whether the code is the one the run started with."""
    folder, registry = coded(tmp_path / "team"), TrustRegistry(str(tmp_path / "home"))
    registry.trust(folder)
    team = load(folder, registry)
    stored = json.loads(json.dumps(team.to_json()))
    tools, warnings = stored_tools(stored, registry)
    assert warnings == []
    assert Team.from_json(stored, tools) == team
    (folder / "tools.py").write_text(CODE.replace("2 * n", "3 * n"))
    tools, (changed,) = stored_tools(stored, registry)
    assert "has changed since the run started" in changed
    assert tools["twice"](2) == 6
    registry.untrust(folder)
    assert stored_tools(stored, registry)[0] == {}
    (folder / "tools.py").unlink()
    assert "is gone" in stored_tools(stored, registry)[1][0]


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        ("x = (\n", 1, "SyntaxError"),
        ("\n\nraise ValueError('no')\n", 3, "ValueError: no"),
        ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3"),
        ("import nothing_x\n", 1, "nothing_x"),
    ],
)
def test_tool_code_that_does_not_import_is_a_problem_with_its_line(
    tmp_path: Path, code: str, line: int, words: str
) -> None:
    """The error in tools.py comes with the others, and leaves no half-made module."""
    folder, registry = coded(tmp_path / "team", code), TrustRegistry(str(tmp_path / "home"))
    registry.trust(folder)
    before = set(sys.modules)
    problem = next(p for p in problems_of(folder, registry) if p.code == "invalid_tools")
    assert problem.message.startswith(f"tools.py:{line}: ")
    assert words in problem.message
    assert not [name for name in set(sys.modules) - before if name.startswith("chargehand_team_tools")]


def test_an_untrusted_team_sets_sampling_options_and_no_others(tmp_path: Path) -> None:
    """The rest is left out with a warning that names the line; trust lets it in."""
    registry, folder = TrustRegistry(str(tmp_path / "home")), tmp_path / "team"
    options = "[models.worker.options]\nseed = 1\nstore = true\n"
    write(folder, {"team.toml": TOML + options, "workers/a.md": agent("a")})
    team = load(folder, registry)
    (warning,) = team.problems()
    assert team.models.roles["worker"].options == {"seed": 1}
    assert warning.severity == "warning"
    assert re.match(r"team\.toml:\d+:\d+: ignored, the option 'store' .*chargehand trust ", warning.message)
    registry.trust(folder)
    assert load(folder, registry).models.roles["worker"].options == {"seed": 1, "store": True}
