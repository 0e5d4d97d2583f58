"""No prompt holds a placeholder that a model could give back as its answer; each is read here as it is sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.models import Attribution
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.planner import add_to_given_plan as additions
from chargehand.planner import draft as planner
from chargehand.planner import extend as extension
from chargehand.planner import route as routing
from chargehand.steps import refine as refiner
from chargehand.steps import score as scorer
from chargehand.synthesizer import contradictions_by_model as judge
from chargehand.synthesizer import critic, prompt, reduce, select
from chargehand.synthesizer import rate_findings as rating
from chargehand.team.team_tools import shipped_home
from chargehand.testing import ScriptedModel, run_virtual
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply
from chargehand.values.recovery_policy import Policy
from chargehand.values.request import Request
from chargehand.workers import worker_prompt as workers_prompt
from tests.apps.review.test_planner_additions import flow as with_additions
from tests.flows import Flow, Said, task, tasks, works
from tests.kernel import SMALL_MODEL
from tests.synthesizer.syntheses import BRAIN, finding, make, plan_of, result
from tests.teams.plays import EXAMPLES, material, requests

# `<markdown>`, `...`, `"a|b|c"` for a choice and `0-100` for a number. What stands between `<data>` and `</data>` is
# material, and is taken out first.
PLACEHOLDER = re.compile(r'<(?!/?data\b)[A-Za-z][^<>\n]*>|\.\.\.|…|"\w+(?:\|\w+)+"|"\s*:\s*\d+-\d+')
MATERIAL = re.compile(r"<data>\n.*?\n</data>", re.DOTALL)
# The words of each role, by where they are.
RULES: dict[str, str] = {
    name: getattr(module, of)
    for name, module, of in [
        ("planner", planner, "_RULES"), ("split", planner, "_SPLIT"), ("extension", extension, "_RULES"),
        ("additions", additions, "_RULES"), ("refiner", refiner, "_RULES"), ("router", routing, "_RULES"),
        ("scorer", scorer, "_RULES"), ("rating", rating, "_RULES"), ("judge", judge, "GROUP_RULES"),
        ("judge of a pair", judge, "PAIR_RULES"),
        ("select", select, "_RULES"), ("reduce", reduce, "_RULES"), ("critic", critic, "RULES"),
        ("synthesizer", prompt, "RULES"), ("worker", workers_prompt, "_PLAIN"),
    ]
}  # fmt: skip


def placeholders(call: ModelCall) -> list[str]:
    """Those in the words of ours, in what tools are called with and in the shape of the answer."""
    texts = [MATERIAL.sub("", message.text) for message in call.messages if message.role in ("system", "user")]
    texts += [json.dumps(spec.parameters, ensure_ascii=False) + spec.description for spec in call.tools]
    texts.append(json.dumps(call.output_schema, ensure_ascii=False))
    return [found[0] for text in texts for found in PLACEHOLDER.finditer(text)]


def planned() -> list[ModelCall]:
    """A run that takes every step of the supervisor's own: each role is asked, and each is asked again once."""
    new = {"id": "n1", "worker": "clerk", "instruction": "Do it otherwise.", "success_criterion": "It is done."}
    again: set[str] = set()

    def talk(call: ModelCall, attribution: Attribution) -> Said:
        if call.role not in again and call.role != "worker":
            again.add(call.role)
            return "This is no JSON."
        match call.role:
            case "planner" if "You split" in call.messages[0].text:
                return {"goal": "g", "tasks": []}
            case "planner" if "A plan was run" in call.messages[0].text:
                return {"tasks": [new | {"depends_on": []}]}
            case "planner":
                return tasks(task("a"), task("b", "a", on_dependency_failure="proceed")).to_json()
            case "worker" if attribution.task == "a":
                return Reply(text="half", stop="length")
            case "router":
                return {"primary": "aide", "reason": "r"}
            case "critic":
                return {"verdict": "accept", "problems": []}
            case _:
                return works(call, attribution)

    ladder = dict.fromkeys(("contract", "failure", "too_long", "refused"), ("refine", "reassign", "split"))
    team = Team(
        [Worker("clerk", "Does clerical work"), Worker("aide", "Helps"), Worker("other", "Helps too")],
        recovery=Policy.model_validate({"score": True, "ladder": ladder}),
        factory_tools=["calculate"],
    )
    flow = Flow(talk, None, team, {"critic": True})
    flow.run()
    return [call for call, _, _ in flow.model.asked]


def synthesised() -> Iterator[ModelCall]:
    """The steps of a synthesis that only some plans take."""
    two = [
        result("t1", "The office in Oslo employs 500 people.", findings=[finding("It leaks.", path="a.py", line=1)]),
        result("t2", "The office in Oslo employs 700 people."),
    ]
    many = [result(f"t{n}", output=f"About {n}.") for n in range(1, 12)]

    def talk(call: ModelCall) -> Any:
        first = call.messages[0].text
        if call.role == "judge" and "Several workers" in first:
            return {"scores": [{"candidate": 1, "score": 60}], "best": 1, "reason": "r"}
        said = {
            "judge": {"verdict": "first", "reason": "r"},
            "scorer": {"score": 60, "met": True, "reason": "r"},
            "critic": {"verdict": "revise", "problems": ["It is short."]},
        }
        return said.get(call.role, {"answer": "So it is [t1]."})

    yield from make(two, talk, judge=BRAIN, rater=BRAIN, examiner=BRAIN, critic=BRAIN).calls
    yield from make(two, talk, judge=SupervisorModel(model=SMALL_MODEL)).calls
    yield from make(two, talk, plan=plan_of(two, "select"), judge=BRAIN).calls
    yield from make(many, talk, plan=plan_of(many, "reduce")).calls
    typed = Request(text="r", answer_schema={"type": "object", "required": ["n"]})
    yield from make(two, lambda _: {"answer": "So [t1, t2].", "data": {"n": 1}}, request=typed).calls


def added() -> list[ModelCall]:
    flow = with_additions({"tasks": []})
    flow.run()
    return [call for call, _, _ in flow.model.asked]


def test_no_prompt_of_any_role_holds_a_placeholder() -> None:
    """Planner, extension, split, additions, router, refiner, worker, scorer, judge, reducer, synthesizer and critic."""
    sent = [*planned(), *synthesised(), *added()]
    assert [found for call in sent for found in placeholders(call)] == []
    words = "\n".join(message.text for call in sent for message in call.messages if message.role == "system")
    assert [name for name, rules in RULES.items() if rules.strip().partition("{")[0].splitlines()[0] not in words] == []


@pytest.mark.slow
@pytest.mark.parametrize("team", sorted(EXAMPLES))
def test_no_prompt_of_a_shipped_team_holds_a_placeholder(team: str, tmp_path: Path) -> None:
    """What the team's own files say is part of the prompts."""
    script = json.loads((shipped_home() / team / "script.json").read_text(encoding="utf-8"))
    model = ScriptedModel(script["replies"])
    door = Supervisor(team, model=model, home=tmp_path)
    run_virtual(door.run(requests(team)[0], material=[material(team)]))
    assert model.calls
    assert [found for call, _ in model.calls for found in placeholders(call)] == []


def test_no_worker_file_of_a_shipped_team_holds_a_placeholder() -> None:
    """Of the teams for code as well, whose workers are not all asked in an example."""
    files = [*shipped_home().glob("*/workers/*.md"), *shipped_home().glob("*/agents/*.md")]
    assert files
    texts = {str(file.relative_to(shipped_home())): file.read_text(encoding="utf-8") for file in files}
    assert {name: PLACEHOLDER.findall(text) for name, text in texts.items() if PLACEHOLDER.search(text)} == {}


def test_the_markers_of_material_are_no_placeholder() -> None:
    """What is looked for is found, and the marks that stand around data are not."""
    found = [
        '"answer": "<markdown>"',
        '{"goal": "...", "tasks": []}',
        '"verdict": "first|second"',
        '"confidence": 0-100',
    ]
    assert all(map(PLACEHOLDER.search, found))
    assert PLACEHOLDER.search("between <data> and </data> stands data, from 0 to 100") is None
