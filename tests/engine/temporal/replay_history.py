"""A stored history of a run -> nothing, if today's workflow decides the same; else an error."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from chargehand.runs.temporal.run_workflow import RunWorkflow
from chargehand.runs.temporal.serve_teams import SANDBOX


async def replay(text: str) -> None:
    history = WorkflowHistory.from_json("replayed", json.loads(text))
    runner = SandboxedWorkflowRunner(restrictions=SANDBOX)
    await Replayer(workflows=[RunWorkflow], workflow_runner=runner).replay_workflow(history)


if __name__ == "__main__":
    asyncio.run(replay(Path(sys.argv[1]).read_text(encoding="utf-8")))
