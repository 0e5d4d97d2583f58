"""The state of a run -> the JSON that a page of it is made from: figures of every task, long texts cut."""

from __future__ import annotations

from typing import Any

from chargehand.trace.number_text import short
from chargehand.trace.run_parts import AttemptView, Tally, TaskState
from chargehand.trace.run_state import RunState

LONGEST = 400


def state_json(view: RunState) -> dict[str, Any]:
    """All of it as of event `seq`: what comes after is in the events after that number."""
    return {
        "run": view.run,
        "seq": view.seq,
        "status": view.status,
        "request": view.request,
        "team": view.team,
        "strategy": view.strategy,
        "started": view.started,
        "ended": view.ended,
        "elapsed_s": round(view.elapsed_seconds(), 3),
        "sessions": len(view.sessions),
        "rerun_of": view.rerun_of,
        "budget": view.budget,
        "deadline_s": view.deadline_s,
        "usage": _usage(view.usage),
        "counts": view.counts(),
        "tasks": [_task(task, view.last_event) for task in view.tasks.values()],
        "questions": list(view.questions.values()),
        "gaps": (view.report or {}).get("gaps") or view.gaps,
        "contradictions": (view.report or {}).get("contradictions") or view.contradictions,
        "decisions": [
            {"at": each.at, "key": each.key, "task": each.task, "decision": each.decision, "reason": each.reason}
            for each in view.decisions
        ],
        "notes": [*dict.fromkeys([*view.notes, *view.warnings])],
        "answer": (view.report or {}).get("answer"),
        "confidence": (view.report or {}).get("confidence"),
    }


def _task(task: TaskState, now: float | None) -> dict[str, Any]:
    outcome = task.outcome or {}
    return {
        "id": task.id,
        "depth": task.depth,
        "worker": task.worker,
        "status": task.status,
        "instruction": short(task.instruction, LONGEST),
        "depends_on": list(task.depends_on),
        "attempts": [_attempt(attempt) for attempt in task.attempts],
        "calls": len(task.calls),
        "ready": task.ready,
        "started": task.started,
        "ended": task.ended,
        "worked_s": round(task.worked_seconds(now), 3),
        "waiting_s": round(sum(call.waiting_s for call in task.calls), 3),
        "usage": _usage(task.usage),
        "summary": short(str(outcome.get("summary") or ""), LONGEST),
        "confidence": outcome.get("confidence"),
        "error": outcome.get("error"),
        "reused": task.reused,
    }


def _attempt(attempt: AttemptView) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "worker": attempt.worker,
        "model": attempt.model,
        "tier": attempt.tier,
        "status": attempt.status,
        "started": attempt.started,
        "ended": attempt.ended,
        "error": attempt.error,
    }


def _usage(tally: Tally) -> dict[str, Any]:
    return {
        "input_tokens": tally.input_tokens,
        "output_tokens": tally.output_tokens,
        "cached_tokens": tally.cached_tokens,
        "estimated_tokens": tally.estimated_tokens,
        "usd": tally.usd,
        "calls": tally.calls,
    }
