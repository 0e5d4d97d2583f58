"""What a team folder says about routes, pools, teams within it and workers of a plan; what is wrong, and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chargehand.record.trusted_folders import TrustRegistry
from chargehand.team import RouteExample, RouteRule, Team, Worker, load, stored_tools
from chargehand.values.plan import Plan, errors_in
from tests.team.test_team import TOML, agent, problems_of, write

ROUTES = """[supervisor]
mode = "route"
default = "b"

[[routes]]
match = 'refund|invoice'
worker = "a"

[[routes]]
match = ["crash", "blue screen"]
worker = "b"
secondary = "a"
"""
ROUTED = {"request": "It smokes.", "primary": "b", "secondary": "a", "reason": "It is broken."}


def folder(path: Path, toml: str = "", **files: str) -> Path:
    """A team of two with more in it."""
    given = {
        name.replace("__", "/").replace("_md", ".md").replace("_json", ".json"): text for name, text in files.items()
    }
    return write(path, {"team.toml": TOML + toml, "workers/a.md": agent("a"), "workers/b.md": agent("b"), **given})


def test_routes_are_read_and_stored(tmp_path: Path) -> None:
    """Rules in order, the default, labelled requests; as JSON and back."""
    team = load(folder(tmp_path, ROUTES, examples__r_json=json.dumps([ROUTED])))
    assert (team.mode, team.default) == ("route", "b")
    assert team.routes == (
        RouteRule(match="refund|invoice", worker="a"),
        RouteRule(match=("crash", "blue screen"), worker="b", secondary="a"),
    )
    assert team.route_examples == (RouteExample.model_validate(ROUTED),)
    assert Team.from_json(json.loads(json.dumps(team.to_json())), {}) == team


@pytest.mark.parametrize(
    ("toml", "code", "at"),
    [
        ("[[routes]]\nmatch = 'x'\nworker = 'c'\n", "unknown_worker", "5:1"),
        ("[[routes]]\nmatch = 'x'\nworker = 'a'\nsecondary='a'\n", "duplicate_worker", "5:1"),
        ("[[routes]]\nmatch = '('\nworker = 'a'\n", "invalid_value", "4:1"),
        ("[[routes]]\nmatch = 'a{99999999999999999999}'\nworker = 'a'\n", "invalid_value", "4:1"),
        (f"[[routes]]\nmatch = '{'(' * 6000 + ')' * 6000}'\nworker = 'a'\n", "invalid_value", "4:1"),
        ("[[routes]]\nmatch = 'x(?!y)'\nworker = 'a'\n", "invalid_value", "4:1"),
        ("[[routes]]\nmatch = 'x'\nworker = 'a'\nunless = '('\n", "invalid_value", "6:1"),
        ("[[routes]]\nmatch = ['']\nworker = 'a'\n", "invalid_value", "4:1"),
        ("[[routes]]\nmatch = 'x'\n", "invalid_value", "3:1"),
        ("[[routes]]\nmatch='x'\nworker='a'\n[[routes]]\n  wen = 'x'\nmatch='x'\nworker='a'\n", "unknown_key", "7:3"),
        ("routes = 3\n", "invalid_value", "3:1"),
        ("[supervisor]\ndefault = 'aa'\n", "unknown_worker", "4:1"),
        ("[factory]\ntools = ['read_fil']\n", "unknown_tool", "4:1"),
        ("[factory]\ntools = 'read_file'\n", "invalid_value", "4:1"),
        ("[factory]\ntiers = ['huge']\n", "invalid_value", "4:1"),
        ("[factory]\ntiers = []\n", "invalid_value", "4:1"),
        ("[factory]\ntool = []\n", "unknown_key", "4:1"),
        ("[limits]\nmax_depth = 0\n", "invalid_value", "4:1"),
    ],
)  # fmt: skip
def test_what_is_wrong_has_line_and_column(tmp_path: Path, toml: str, code: str, at: str) -> None:
    """One problem each; the words are in golden/team_files.txt."""
    (problem,) = problems_of(folder(tmp_path, toml))
    assert (problem.code, problem.message.startswith(f"team.toml:{at}: ")) == (code, True)


@pytest.mark.parametrize(
    ("match", "unless", "request_text", "matches"),
    [
        # A backtracking engine would need 2**48 steps.
        ("(a+)+$", None, "a" * 48 + "!", False),
        ("(x+x+)+y", None, "x" * 20_000, False),
        ("refund$", None, "I want a REFUND\n", True),
        (("c++", "blue screen"), None, "My C++, again", True),
        (("c++", "blue screen"), None, "Blue screens", False),
        ("^how", r"\berror", "How do I pay?", True),
        ("^how", r"\berror", "How do I get rid of this error?", False),
        ("^how", ("lost",), "How is it lost?", False),
    ],
)
def test_a_rule_is_searched_in_linear_time(
    match: str | tuple[str, ...], unless: str | tuple[str, ...] | None, request_text: str, matches: bool
) -> None:
    """Case is ignored, words are whole, and what `unless` finds is not for the rule."""
    assert RouteRule(match=match, unless=unless, worker="a").matches(request_text) is matches


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"request": "r", "primary": "c"}, "examples/r.json:1:1: the primary 'c' is not a worker of this team."),
        ({"request": "r", "primary": "a", "secondary": "x"}, "examples/r.json:1:1: the secondary 'x' is not a worker"),
        ({"request": "", "primary": "a"}, "examples/r.json:1:1: a labelled route is"),
        ([ROUTED, {"primary": 3}], "examples/r.json:1:1: example 2: a labelled route is"),
    ],
)
def test_labelled_routes_are_checked(tmp_path: Path, data: Any, message: str) -> None:
    """They name workers of the team."""
    assert problems_of(folder(tmp_path, examples__r_json=json.dumps(data)))[0].message.startswith(message)


# --- pools ----------------------------------------------------------------------------------------------------------


def test_a_pool_is_named_by_its_members(tmp_path: Path) -> None:
    """A plan may name the pool; a worker's name is not a pool's."""
    team = load(folder(tmp_path, workers__c_md=agent("c", "pool: look\n"), workers__d_md=agent("d", "pool: look\n")))
    assert team.pools() == {"look": ("c", "d")}
    assert "look" in team.names
    assert team.worker("look").name == "c"
    (problem,) = problems_of(folder(tmp_path, workers__c_md=agent("c", "pool: a\n")))
    assert problem.message.startswith("workers/c.md:4:1: the pool 'a' has the name of a worker")


# --- teams within teams -----------------------------------------------------------------------------------------------


def nest(path: Path, *names: str, toml: str = "") -> Path:
    """Teams in a row, each with a delegate for the next; the last may name one of them again."""
    for name, after in zip(names, (*names[1:], ""), strict=True):
        more = {"workers/d.md": agent("d", f"kind: delegate\nteam: ../{after}\n")} if after else {}
        write(path / name, {"team.toml": TOML.replace("mine", name) + toml, "workers/a.md": agent("a"), **more})
    return path / names[0]


def test_a_delegate_names_a_team_by_folder_or_name(tmp_path: Path) -> None:
    """A folder is found from the team's own, a shipped team by its name."""
    team = load(nest(tmp_path, "top", "low"))
    low = team.worker("d").team
    assert low is not None
    assert low.name == "low"
    write(tmp_path / "top", {"workers/d.md": agent("d", "kind: delegate\nteam: general\n")})
    general = load(tmp_path / "top").worker("d").team
    assert general is not None
    assert general.name == "general"
    # A folder of that name comes first, as on the command line.
    write(tmp_path / "top/general", {"team.toml": TOML.replace("mine", "own"), "workers/a.md": agent("a")})
    own = load(tmp_path / "top").worker("d").team
    assert own is not None
    assert own.name == "own"


def test_a_team_that_includes_itself_is_a_problem_with_the_path(tmp_path: Path) -> None:
    """Found when it is loaded, however long the way round."""
    nest(tmp_path, "one", "two", "three")
    write(tmp_path / "three", {"workers/d.md": agent("d", "kind: delegate\nteam: ../one\n")})
    problems = problems_of(tmp_path / "one")
    assert problems[-1].code == "team_cycle"
    assert problems[-1].message == ("../two/../three/workers/d.md:5:1: teams form a cycle: one -> two -> three -> one.")
    write(tmp_path / "self", {"team.toml": TOML, "workers/d.md": agent("d", "kind: delegate\nteam: .\n")})
    (problem,) = problems_of(tmp_path / "self")
    assert (problem.code, problem.message) == ("team_cycle", "workers/d.md:5:1: teams form a cycle: self -> self.")


def test_teams_nest_three_deep_and_no_deeper(tmp_path: Path) -> None:
    """Unless the outermost team sets another limit, whatever those in it say."""
    assert load(nest(tmp_path / "a", "t0", "t1", "t2", "t3"))
    problem = problems_of(nest(tmp_path / "b", "t0", "t1", "t2", "t3", "t4"))[-1]
    assert problem.code == "depth"
    assert "t0 -> t1 -> t2 -> t3 -> t4" in problem.message
    problem = problems_of(nest(tmp_path / "c", "t0", "t1", "t2", toml="[limits]\nmax_depth = 1\n"))[-1]
    assert problem.code == "depth"
    write(tmp_path / "b" / "t0", {"team.toml": f"{TOML}[limits]\nmax_depth = 4\n"})
    team = load(tmp_path / "b" / "t0")
    assert Team.from_json(team.to_json(), {}) == team
    write(tmp_path / "b" / "t1", {"team.toml": f"{TOML}[limits]\nmax_depth = 9\n"})
    write(tmp_path / "b" / "t0", {"team.toml": f"{TOML}[limits]\nmax_depth = 2\n"})
    assert problems_of(tmp_path / "b" / "t0")[-1].code == "depth"


def test_teams_made_in_python_nest_no_deeper_either() -> None:
    """The same limit."""
    from chargehand.errors import InvalidTeam

    team = Team([Worker("a", "Works")], name="t0")
    for number in range(1, 4):
        team = Team([Worker("d", "Hands on", kind="delegate", team=team)], name=f"t{number}")
    with pytest.raises(InvalidTeam, match="nest 4 deep and at most 3 are allowed: t3 -> t2 -> t1 -> t0"):
        Team([Worker("d", "Hands on", kind="delegate", team=team)], name="top")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("kind: delegate\n", "workers/d.md:4:1: the worker 'd' is a delegate without a team"),
        ("kind: delegate\nteam: ../nowhere\n", "workers/d.md:5:1: There is no team '../nowhere'"),
        ("kind: delegate\nteam: genral\n",
         "workers/d.md:5:1: There is no team 'genral': name a folder or a shipped team. Did you mean 'general'?"),
        ("kind: delegate\nteam: general\ntools: read_file\n",
         "workers/d.md:6:1: the worker 'd' is a delegate: its team has its own 'tools'"),
    ],
)  # fmt: skip
def test_a_wrong_delegate_is_one_problem(tmp_path: Path, fields: str, message: str) -> None:
    """At its line."""
    (problem,) = problems_of(folder(tmp_path, workers__d_md=agent("d", fields)))
    assert problem.message.startswith(message)


def test_what_is_wrong_in_a_nested_team_is_told_with_the_way_to_it(tmp_path: Path) -> None:
    """Broken front matter three folders down is still file and line."""
    nest(tmp_path, "top", "mid", "low")
    write(tmp_path / "low", {"workers/a.md": "---\nname: a\nmodle: x\ndescription: d\n---\n"})
    assert any(
        problem.message.startswith("../mid/../low/workers/a.md:3:1: 'modle' is not a field")
        for problem in problems_of(tmp_path / "top")
    )


def test_two_teams_may_not_have_different_tools_of_one_name(tmp_path: Path) -> None:
    """A call by that name could reach the wrong one."""
    tools = (
        'from chargehand import tool\n@tool(effect="read")\ndef look(x: str) -> str:\n    "Looks."\n    return "{}"\n'
    )
    top = nest(tmp_path, "top", "low")
    for name in ("top", "low"):
        write(tmp_path / name, {"tools.py": tools.format(name), "workers/a.md": agent("a", "tools: look\n")})
    trust = TrustRegistry(str(tmp_path / "home"))
    trust.trust(tmp_path)
    assert [p.code for p in problems_of(top, trust)] == ["duplicate_tool"]
    write(tmp_path / "top", {"workers/a.md": agent("a")})  # it is there still, and nobody's
    stored = load(top, trust).to_json()
    again = Team.from_json(stored, stored_tools(stored, trust)[0])
    assert again.tools()["look"]("") == "low"


def test_an_empty_folder_is_no_team(tmp_path: Path) -> None:
    """And says so."""
    assert [problem.code for problem in problems_of(tmp_path)] == ["no_workers"]


# --- workers a plan defines -------------------------------------------------------------------------------------------


def spec(**fields: Any) -> dict[str, Any]:
    return {"name": "helper", "description": "Helps", "prompt": "Help.", "tools": ["calculate"], **fields}


def codes(team: Team, *specs: dict[str, Any]) -> list[tuple[str, str]]:
    one = {"id": "t1", "worker": "helper", "instruction": "Add these two numbers.", "success_criterion": "A sum."}
    plan = Plan.model_validate({"goal": "g", "tasks": [one], "workers": specs})
    found = errors_in(plan.problems(team.assignable, factory=team.factory))
    return [(problem.code, problem.message) for problem in found]


def test_a_plan_defines_workers_only_where_the_team_has_a_factory(tmp_path: Path) -> None:
    """From the tools and tiers it allows; anything else is forbidden_tool."""
    plain = load(folder(tmp_path / "plain"))
    assert [code for code, _ in codes(plain, spec())] == ["forbidden_tool"]
    team = load(folder(tmp_path / "making", "[factory]\ntools = ['calculate']\ntiers = ['small']\n"))
    assert codes(team, spec()) == []
    assert codes(team, spec(tier="small")) == []
    for wrong, word in (
        (spec(tools=["read_file"]), "'read_file'"),
        (spec(tools=["calculate", "web_search"]), "'web_search'"),
        (spec(tier="large"), "'large'"),
    ):
        ((code, message),) = codes(team, wrong)
        assert code == "forbidden_tool"
        assert word in message
    assert [code for code, _ in codes(team, spec(), spec())] == ["unknown_worker"]
    assert [code for code, _ in codes(team, spec(), spec(name="a"))] == ["unknown_worker"]
    assert Team.from_json(json.loads(json.dumps(team.to_json())), {}).factory == team.factory


def test_a_factory_of_an_untrusted_folder_has_no_network(tmp_path: Path) -> None:
    """Tools that reach out are left out with a warning, as they are from its workers."""
    team = load(folder(tmp_path, "[factory]\ntools = ['calculate', 'fetch_page']\n"))
    assert team.factory is not None
    assert team.factory.tools == ("calculate",)
    assert [problem.code for problem in team.problems()] == ["untrusted_tool"]
