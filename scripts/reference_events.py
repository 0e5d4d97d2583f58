"""The closed set of events -> docs/reference/events.md."""

from __future__ import annotations

from chargehand.values.event import FIELDS, VERSION, EventKind

_HEAD = f"""# Events

Made from the code by `make docs`; do not edit.

The record of a run is a list of events, version {VERSION}. `chargehand trace RUN --format jsonl` prints one a line, and
`Supervisor.stream` yields them as they happen. Within a version fields are only added. Every event has

- `v`: the version, `run`: the run's id, `seq`: its number, from 1 without holes,
- `at`: seconds since 1970, `kind`: one of those below,
- `task` and `attempt`, where it belongs to a task.

`key` says where in the run an effect or decision stands: `t3/2/model/4` is task t3, attempt 2, fourth model call;
keys of the supervisor itself begin with `@`. `fingerprint` is a hash of what was asked. The JSON schema is
[schemas/event.json](schemas/event.json).

| kind | when | carries besides |
|---|---|---|
"""

_WHEN: dict[EventKind, str] = {
    "run_started": "a session of the run begins; once more for each resume, with a higher `epoch`",
    "plan_drafted": "there is a plan to check, made by the planner or given, or tasks a planner adds to one",
    "plan_rejected": "the draft has errors, which go back to the planner",
    "plan_approved": "the plan is going to be run",
    "task_ready": "all the task depends on is over",
    "attempt_started": "a worker begins with the task",
    "model_called": "a model call is about to be sent",
    "model_replied": "its reply, or why there is none, is known",
    "tool_called": "a tool is about to be run",
    "tool_returned": "its result is known",
    "tool_refused": "a worker asked for a tool it does not have, with unusable arguments, or a person said no",
    "decision": "a choice that depends on more than plan and outcomes: a retry, a timeout, a denied budget",
    "attempt_ended": "the worker is finished, one way or another",
    "task_ended": "the task has its one outcome",
    "question_asked": "a person is asked",
    "question_answered": "a person has answered",
    "synthesis_started": "the answer is being written",
    "draft_discarded": "a draft of the answer could not be used",
    "contradiction_found": "results disagree",
    "critique": "a reviewer has judged the draft, or could not",
    "gap_found": "the answer lacks something",
    "extension": "tasks were added to fill gaps; which of them fill which",
    "budget_reserved": "tokens and money are set aside for a call",
    "budget_settled": "the call's real usage replaces what was set aside",
    "breaker_changed": "a worker or provider was taken out or let in again",
    "reused": "a rerun took a result from the run it repeats",
    "warning": "something the user should know",
    "run_ended": "the session is over: the last event of a run, until it is resumed",
}


def events_reference() -> str:
    """docs/reference/events.md as it should be."""
    rows = (
        f"| `{kind}` | {_WHEN[kind]} | {', '.join(f'`{field}`' for field in fields)} |\n"
        for kind, fields in FIELDS.items()
    )
    return _HEAD + "".join(rows)
