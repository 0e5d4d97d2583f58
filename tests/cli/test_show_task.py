"""`show RUN TASK` on a terminal."""

from __future__ import annotations

from chargehand.cli.show_task import describe_task
from chargehand.trace import TaskState
from chargehand.trace.task_detail import task_details
from tests.events import make_event

LONG = "You are the researcher. You find out what the given material says about one question, so that others can"


def test_a_prompt_is_shown_without_the_line_breaks_of_its_file() -> None:
    """Where a line was broken because it is long it continues; lists, short lines and paragraphs stay."""
    prompt = f"{LONG}\nrely on it.\nDo that.\n\n- {LONG}\n  rely on it.\n- Short."
    call = {"kind": "model", "messages": [{"role": "system", "text": prompt}, {"role": "user", "text": prompt}]}
    attempt = {"number": 1, "calls": [call]}
    whole = {"task": "t1", "worker": "w", "status": "running", "instruction": "", "success_criterion": ""}
    lines = [
        line.strip()
        for line in describe_task("r", whole | {"attempts": [attempt], "decisions": [], "orders": [], "outcome": None})
    ]
    at = lines.index(f"system     {LONG} rely on it.")
    assert lines[at + 1 : at + 5] == ["Do that.", "", f"- {LONG} rely on it.", "- Short."]
    assert lines[at + 5 :][:2] == [f"user       {LONG}", "rely on it."]


def test_an_exception_of_a_tool_is_shown_with_its_place() -> None:
    """The file and line of the code that has to be corrected."""
    error = {"kind": "tool", "message": "NameError: name 'rond' is not defined"}
    call = {"kind": "tool", "name": "total", "result": {"error": error, "place": "crew/tools.py:12"}}
    whole = {"task": "t1", "worker": "w", "status": "failed", "instruction": "", "success_criterion": "", "orders": []}
    attempt = {"number": 1, "calls": [call]}
    lines = list(describe_task("r", whole | {"attempts": [attempt], "decisions": [], "outcome": None}))
    assert [line.split()[-1] for line in lines if "tools.py" in line] == ["crew/tools.py:12"]


def test_a_reused_call_of_the_supervisor_names_its_role() -> None:
    """The rewritten instruction in it would pass for an answer of the worker."""
    reply = {"reply": {"text": "{}"}}
    events = [
        make_event("reused", "t1", 2, seq=1, at=1.0, key="t1/2/refine/1", result=reply, source="r0"),
        make_event("reused", "t1", 2, seq=2, at=1.0, key="t1/2/model/1", result=reply, source="r0"),
    ]
    [(_, detail)] = task_details([TaskState("t1")], events, lambda hashes: {})
    [attempt] = detail["attempts"]
    assert [call.get("role") for call in attempt["calls"]] == ["refiner", None]
    lines = list(describe_task("r", {"task": "t1", "worker": "w", "status": "running", **detail}))
    assert [line.split() for line in lines if line.startswith("role")] == [["role", "refiner"]]
