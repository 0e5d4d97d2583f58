"""The closed set of events -> docs/reference/events.md."""

from __future__ import annotations

from chargehand.values.event import FIELDS, VERSION, EventKind

_HEAD = f"""# Events

Made from the code by `make docs`; do not edit.

The record of a run is a list of events, version {VERSION}. `chargehand trace RUN --format jsonl` prints one a line, and
`Supervisor.stream` yields them as they happen. Within a version fields are only added. Every event has these fields:

- `v`: the version; `run`: the run's id; `seq`: its number, from 1 without holes
- `at`: seconds since 1970; `kind`: one of those below
- `task` and `attempt`, if it belongs to a task

`key` is the place of an effect or decision in the run: `t3/2/model/4` is task t3, attempt 2, fourth model call;
keys of the supervisor itself begin with `@`. `fingerprint` is a hash of what was asked. The JSON schema is
[schemas/event.json](schemas/event.json).

| kind | when | fields |
|---|---|---|
"""

_WHEN: dict[EventKind, str] = {
    "run_started": "a session of the run begins; again for each resume, with a higher `epoch`",
    "plan_drafted": "there is a plan to check, from the planner or from you, or tasks that a planner adds to one",
    "plan_rejected": "the draft has errors, which are sent back to the planner",
    "plan_approved": "the plan is about to run",
    "task_ready": "all tasks that the task depends on have ended",
    "attempt_started": "a worker begins the task",
    "model_called": "a model call is about to be sent",
    "model_replied": "the reply, or the reason why there is none, is known; with `result.cut` the call was broken off "
    "and `result.text` is what had arrived",
    "tool_called": "a tool is about to be run",
    "tool_returned": "the tool's result is known",
    "tool_refused": "a worker asked for a tool it does not have or with unusable arguments, or a person rejected it",
    "decision": "a choice that depends on more than plan and outcomes: a retry, a timeout, a denied budget",
    "attempt_ended": "the attempt has ended, with or without a result",
    "task_ended": "the task has its one outcome",
    "question_asked": "a person is asked",
    "question_answered": "a person has answered",
    "synthesis_started": "the answer is being written",
    "draft_discarded": "a draft of the answer could not be used",
    "contradiction_found": "results disagree",
    "critique": "a reviewer has judged the draft, or could not",
    "gap_found": "the answer lacks something",
    "extension": "tasks were added to fill gaps; `fills` says which task fills which gap",
    "budget_reserved": "tokens and money are reserved for a call",
    "budget_settled": "the call's real usage replaces the reservation",
    "breaker_changed": "a worker or provider stopped getting calls, or gets them again",
    "reused": "a rerun took a result from the run it repeats",
    "warning": "there is something that you should know",
    "run_ended": "the session is over: the last event of a run, until it is resumed",
}


def events_reference() -> str:
    """docs/reference/events.md as it should be."""
    rows = (
        f"| `{kind}` | {_WHEN[kind]} | {', '.join(f'`{field}`' for field in fields)} |\n"
        for kind, fields in FIELDS.items()
    )
    return _HEAD + "".join(rows)
