"""Plans for servers that make grammars of schemas: whatever fits the schema is a graph without cycles."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json, to_json

from chargehand.models.provider_settings import Provider
from chargehand.models.resolve import Models
from chargehand.models.schema_modes import fit
from chargehand.planner.draft import PLAN_SCHEMA
from chargehand.planner.numbered_plan import MOST_TASKS, number_tasks
from chargehand.text.json_schema import violations
from chargehand.text.plan_json import read

NUMBERED = number_tasks(PLAN_SCHEMA)


def _plan(*needs: list[str], ids: list[str] | None = None) -> dict[str, Any]:
    names = ids or [f"t{number}" for number in range(1, len(needs) + 1)]
    common = {"worker": "w", "instruction": "Do the whole of it.", "success_criterion": "It is done."}
    return {
        "goal": "g",
        "tasks": [{"id": name, "depends_on": each, **common} for name, each in zip(names, needs, strict=True)],
    }


@pytest.mark.parametrize(
    ("plan", "fits"),
    [
        (_plan([]), True),
        (_plan([], ["t1"], ["t1", "t2"]), True),
        (_plan(*([] for _ in range(MOST_TASKS))), True),
        (_plan(), False),
        (_plan(*([] for _ in range(MOST_TASKS + 1))), False),
        (_plan(["t1"]), False),
        (_plan(["t2"], ["t1"]), False),
        (_plan([], ["t9"]), False),
        (_plan([], [], ids=["t1", "t1"]), False),
        (_plan([], [], ids=["t2", "t1"]), False),
    ],
)
def test_ids_are_in_order_and_dependencies_are_earlier(plan: dict[str, Any], fits: bool) -> None:
    """Also in the form in which it is sent."""
    sent = fit(to_json(NUMBERED), all_required=False)
    assert sent is not None
    assert (not violations(plan, NUMBERED), not violations(plan, from_json(sent))) == (fits, fits)


@given(st.lists(st.lists(st.sampled_from(["t1", "t2", "t3", "t4", "t5"]), max_size=3), min_size=1, max_size=5))
def test_what_fits_has_no_cycle(needs: list[list[str]]) -> None:
    """No plan that fits has a cycle, an unknown dependency or an id twice."""
    plan = _plan(*needs)
    if not violations(plan, NUMBERED):
        wrong = {"cycle", "self_dependency", "unknown_dependency", "duplicate_id", "invalid_id"}
        assert not wrong & {problem.code for problem in read(plan).problems(["w"])}


@pytest.mark.parametrize(
    ("name", "url", "grammar"),
    [
        ("ollama", "http://localhost:11434/v1", True),
        ("vllm", "https://gpu.example.com/v1", True),
        ("lab", "http://127.0.0.1:8000/v1", True),
        ("lab", "https://llm.example.com/v1", False),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", False),
    ],
)
def test_local_servers_make_grammars(name: str, url: str, grammar: bool) -> None:
    """By name, or by an address on this machine."""
    models = Models({name: Provider(name=name, base_url=url, wire="openai_chat")}, {})
    assert models.makes_grammar(f"{name}:m") is grammar
    assert not models.makes_grammar("scripted:file.json")
