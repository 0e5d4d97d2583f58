"""A run's state -> JSON that the run page draws: the whole state, or only what changed after an event. Texts are
shortened for lists. The whole texts of a task are in its detail (`task_detail.py`).
"""

from __future__ import annotations

from itertools import pairwise
from math import inf
from typing import Any, cast

from chargehand.trace import markdown
from chargehand.trace.number_text import LEAST_SPEEDUP, short
from chargehand.trace.plan_graph import NODE_HEIGHT, NODE_WIDTH, layout
from chargehand.trace.run_parts import CallView, Data, TaskState, arrange_tasks
from chargehand.trace.run_state import RunState
from chargehand.trace.waits_for import WaitsFor, waits_for
from chargehand.trace.ways_on import ways_on
from chargehand.values.status_words import FINISHED

# The page shows no shorter wait.
LEAST_WAIT_S = 0.001
MOST_NODES = 1_500
MOST_FINDINGS = 500
LONGEST_ANSWER = 400_000
_SEVERITIES = {"critical": 0, "warning": 1, "info": 2}


def page_state(view: RunState, *, since: int = 0, is_over: bool | None = None) -> Data:
    """What the page shows: only the tasks that an event after `since` touched, and everything else in full.

    `is_over`: no process has the run any more, also if the record does not say so.
    """
    tasks = arrange_tasks(view.tasks.values())
    known = {task.id: task_link(task.id) for task in tasks}
    state: Data = {
        "run": view.run,
        "seq": view.seq,
        "status": view.status,
        "request": view.request[:20_000],
        "team": view.team,
        "strategy": view.strategy,
        "rerun_of": view.rerun_of,
        "forked_from": view.forked_from,
        "waiting": view.waiting,
        "waits_for": wait_of(view, view.status, view.waiting),
        "started": view.started,
        "ended": view.ended,
        "last_event": view.last_event,
        "elapsed_s": round(view.elapsed_seconds(), 3),
        "is_still": view.is_still,
        "sessions": [[each.started, each.ended, each.resumed] for each in view.sessions],
        "idle": view.idle,
        "budget": {**view.budget, "deadline_s": view.deadline_s},
        "usage": {
            "calls": view.usage.calls,
            "tools": view.tool_calls,
            "tokens": view.usage.tokens,
            "input_tokens": view.usage.input_tokens,
            "cached_tokens": view.usage.cached_tokens,
            "estimated_tokens": view.usage.estimated_tokens,
            "usd": view.usage.usd,
        },
        "counts": view.counts(is_over=is_over),
        # How many tasks the plan has, also if it was not approved.
        "planned": 0 if view.plan is None else len(view.plan.tasks),
        # Tasks that the record last saw at work -> their status now, which changes without an event of theirs.
        "begun": {task.id: view.status_of(task, is_over=is_over) for task in tasks if task.status == "running"},
        "orders": possible_orders(view.status),
        "restarts": [id for id in view.restarts if id in view.tasks and view.tasks[id].outcome is not None],
        "ways_on": ways_on(view.report or {}).to_json(),
        "questions": list(view.questions.values()),
        "notes": [short(str(note), 1000) for note in [*view.notes, *view.warnings][:100]],
        "supervisor": [_call(call) for call in view.calls],
        "report": _report(view, known),
        "tasks": [_task(task) for task in tasks if task.seq > since or not since],
    }
    is_asked = any(question.get("kind") == "plan" for question in view.questions.values())
    if view.plan is not None and (is_asked or state["ways_on"]["another_plan"]):
        state["plan"] = view.plan.to_json()
    if view.plan_seq > since or not since or view.ended is not None:
        state |= {"order": [task.id for task in tasks], "graph": _graph(view)}
    return state


def wait_of(view: RunState, status: str, waiting: Data | None) -> WaitsFor | None:
    """What the run waits for; `waiting` is the provider, if one is known."""
    # A run that parked without a question waits for a provider.
    return waits_for(status, asks=bool(view.questions), provider=bool(waiting) or not view.ended_asking)


def possible_orders(status: str) -> list[str]:
    """The orders that the page offers for a run with this status."""
    if status in FINISHED or status == "cancelled":
        return ["restart"]
    return [*(["pause"] if status == "running" else []), "stop", "restart", "tell"]


def task_link(id: str) -> str:
    """The fragment of the page's address that opens a task."""
    return f"task/{id}"


def _doing(call: CallView) -> str:
    return f"{call.role or call.kind} {call.name}" + (f": {call.says}" if call.says else "")


def _task(task: TaskState) -> Data:
    outcome = task.outcome or {}
    doing = next((call for call in reversed(task.calls) if call.ok is None), None)
    return {
        "id": task.id,
        "label": task.label,
        "depth": task.depth,
        "worker": task.worker,
        "status": task.status,
        "says": short(str(outcome.get("summary") or task.instruction), 200),
        "after": list(task.depends_on),
        "ready": task.ready,
        "started": task.started,
        "ended": task.ended,
        "seconds": round(task.worked_seconds(task.ended), 3),
        "tokens": task.tokens,
        "usd": task.usd,
        "reused": task.reused,
        "orders": task.orders,
        "doing": None if doing is None else _doing(doing),
        "attempts": [[each.number, each.started, each.ended, each.status, each.error] for each in task.attempts],
        "calls": [_call(call) for call in task.calls],
    }


def _call(call: CallView) -> list[Any]:
    """kind, name, started, ended, state, and its waits, each from when until when: to be sent, and to be sent again."""
    state = "bad" if call.ok is False else "open" if call.ok is None else "reused" if call.reused else "good"
    waits = [(since, call.ended if end == inf else end) for since, end in call.waits]
    before = call.waiting_s - sum(end - since for since, end in waits if end is not None)
    if before > LEAST_WAIT_S and not call.reused:
        waits.insert(0, (call.started - before, call.started))
    return [call.kind, call.role or call.name, call.started, call.ended, state, waits]


def _graph(view: RunState) -> Data | None:
    plan = view.plan
    if plan is None or not 1 < len(plan.tasks) <= MOST_NODES:
        return None
    placed = layout(plan)
    seconds = {id: task.worked_seconds(view.last_event) for id, task in view.tasks.items()}
    path = plan.critical_path(seconds)[1] if any(seconds.values()) else ()
    critical = set(pairwise(path))
    return {
        "width": placed.width,
        "height": placed.height,
        "node": [NODE_WIDTH, NODE_HEIGHT],
        "nodes": [[node.id, round(node.x, 1), round(node.y, 1)] for node in placed.nodes],
        "edges": [
            [[[round(x, 1), round(y, 1)] for x, y in edge.points], (edge.source, edge.target) in critical]
            for edge in placed.edges
        ],
        "critical": list(path),
    }


def _report(view: RunState, links: dict[str, str]) -> Data | None:
    report = view.report
    if report is None:
        return None if not (view.gaps or view.contradictions) else {
            "gaps": view.gaps[:200], "contradictions": view.contradictions[:200]
        }  # fmt: skip
    answer = str(report.get("answer") or "")
    listed = cast(list[Any], report.get("findings") or [])
    findings = [cast(Data, finding) for finding in listed if isinstance(finding, dict)]
    # Most severe first, otherwise in their order. If there are too many, the page has the most severe.
    findings.sort(key=lambda finding: _SEVERITIES.get(str(finding.get("severity")), len(_SEVERITIES)))
    speedup = cast(Data, report.get("timing") or {}).get("speedup")
    provenance = cast(Data, report.get("provenance") or {})
    gaps = cast(list[Any], report.get("gaps") or view.gaps)
    unused = cast(list[Any], provenance.get("unused") or [])
    return {
        "answer_html": markdown.to_html(answer[:LONGEST_ANSWER], links),
        "answer_cut": len(answer) > LONGEST_ANSWER,
        "confidence": report.get("confidence"),
        "gaps": gaps[:200],
        "gaps_number": len(gaps),
        "contradictions": cast(list[Any], report.get("contradictions") or view.contradictions)[:200],
        "problems": cast(list[Any], provenance.get("problems") or [])[:200],
        "unused": unused[:200],
        "unused_number": len(unused),
        "findings": findings[:MOST_FINDINGS],
        "findings_number": len(findings),
        "notes": cast(list[Any], report.get("notes") or [])[:100],
        "speedup": speedup if isinstance(speedup, int | float) and speedup >= LEAST_SPEEDUP else None,
    }
