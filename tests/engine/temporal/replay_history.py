"""Stored histories -> nothing, if today's workflow decides the same; else an error.

A replay itself compares which activities are started. The orders that they are given are compared here as well.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner
from temporalio.workflow import _Definition

from chargehand.engine.temporal.step_order import StepOrder, StepResult, pack
from chargehand.runs.temporal.run_workflow import RunWorkflow
from chargehand.runs.temporal.serve_teams import SANDBOX


class OtherOrder(Exception):
    """The workflow gives a step another order than the one in the history."""


def stored_orders(history: dict[str, Any]) -> list[dict[str, Any]]:
    """The orders of the steps, in the order in which they were started."""
    started = (event.get("activityTaskScheduledEventAttributes") for event in history["events"])
    inputs = (base64.b64decode(each["input"]["payloads"][0]["data"]) for each in started if each)
    return [json.loads(each) for each in inputs]


async def replay(text: str) -> None:
    stored, given = json.loads(text), list[dict[str, Any]]()
    carry_out = RunWorkflow.carry_out

    async def note_order(self: RunWorkflow, order: StepOrder, worker: str) -> StepResult:
        given.append(json.loads(json.dumps(pack(order))))
        return await carry_out(self, order, worker)

    RunWorkflow.carry_out = note_order
    # In production an exception ends the run; here the replayer would wait for an end that does not come.
    definition: Any = _Definition.must_from_class(RunWorkflow)
    ends_run = definition.failure_exception_types
    object.__setattr__(definition, "failure_exception_types", [])
    try:
        runner = SandboxedWorkflowRunner(restrictions=SANDBOX)
        history = WorkflowHistory.from_json("replayed", stored)
        await Replayer(workflows=[RunWorkflow], workflow_runner=runner).replay_workflow(history)
    finally:
        RunWorkflow.carry_out = carry_out
        object.__setattr__(definition, "failure_exception_types", ends_run)
    for before, now in zip(stored_orders(stored), given, strict=True):
        if before != now:
            changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
            raise OtherOrder(f"{now['key']}: {[(name, before.get(name), now.get(name)) for name in changed]}")


def main(paths: list[str]) -> None:
    for path in paths:
        try:
            asyncio.run(replay(Path(path).read_text(encoding="utf-8")))
        except Exception as error:
            error.add_note(f"in the replay of {path}")
            raise


if __name__ == "__main__":
    main(sys.argv[1:])
    # All is replayed. Threads of the SDK's core may abort the interpreter while it shuts down.
    sys.stdout.flush()
    os._exit(0)
