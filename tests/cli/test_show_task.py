"""`show RUN TASK` on a terminal."""

from __future__ import annotations

from chargehand.cli.show_task import describe_task
from chargehand.trace import TaskState, fold
from chargehand.trace.task_detail import task_details
from tests.events import make_event

LONG = "You are the researcher. You find out what the given material says about one question, so that others can"


def test_a_prompt_is_shown_without_the_line_breaks_of_its_file() -> None:
    """Where a line was broken because it is long it continues; lists, short lines and paragraphs stay."""
    prompt = f"{LONG}\nrely on it.\nDo that.\n\n- {LONG}\n  rely on it.\n- Short."
    call = {"kind": "model", "messages": [{"role": "system", "text": prompt}, {"role": "user", "text": prompt}]}
    attempt = {"number": 1, "status": "running", "calls": [call]}
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
    attempt = {"number": 1, "status": "failed", "calls": [call]}
    lines = list(describe_task("r", whole | {"attempts": [attempt], "decisions": [], "outcome": None}))
    assert [line.split()[-1] for line in lines if "tools.py" in line] == ["crew/tools.py:12"]


def test_a_reused_call_of_the_supervisor_names_its_role() -> None:
    """The rewritten instruction in it would pass for an answer of the worker."""
    reply = {"reply": {"text": "{}"}}
    events = [
        make_event("reused", "t1", 2, seq=1, at=1.0, key="t1/2/refine/1", result=reply, source="r0"),
        make_event("reused", "t1", 2, seq=2, at=1.0, key="t1/2/model/1", result=reply, source="r0"),
    ]
    [(_, detail)] = task_details([TaskState("t1")], events, lambda hashes: {}, lambda task: task.status)
    [attempt] = detail["attempts"]
    assert [call.get("role") for call in attempt["calls"]] == ["refiner", None]
    lines = list(describe_task("r", {"task": "t1", "worker": "w", "status": "running", **detail}))
    assert [line.split() for line in lines if line.startswith("role")] == [["role", "refiner"]]


def test_an_attempt_without_an_end_has_the_status_of_its_task() -> None:
    """Never `running` in a run that no process has; an earlier attempt, or one of a task that has ended, is stopped."""
    events = [
        make_event("run_started", seq=1, at=1.0, request={"text": "Say it"}, team={"name": "g"}),
        make_event("attempt_started", "t1", 1, seq=2, at=1.0, worker="writer"),
        make_event("attempt_started", "t1", 2, seq=3, at=2.0, worker="writer"),
    ]

    def statuses() -> list[str]:
        view = fold(events)
        found = task_details(view.tasks.values(), events, lambda hashes: {}, view.status_of)
        return [attempt["status"] for _, detail in found for attempt in detail["attempts"]]

    assert statuses() == ["stopped", "running"]
    asked = {"id": "t1", "kind": "escalation", "prompt": "Which?"}
    events.append(make_event("question_asked", "t1", 2, seq=4, at=2.0, key="t1/2/ask/1", question=asked))
    assert statuses() == ["stopped", "waiting"]
    events[-1] = make_event("run_ended", seq=4, at=3.0, status="interrupted", report=None)
    assert statuses() == ["stopped", "stopped"]
