"""Histories of runs that are kept: today's workflow decides in each as it did, and one that does not is noticed."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from temporalio.workflow import NondeterminismError

from chargehand.engine.temporal.step_order import StepOrder, StepResult
from chargehand.engine.temporal.workflow_engine import WorkflowEngine
from chargehand.engine.temporal.workflow_ledger import Allotment, WorkflowLedger
from chargehand.runs.temporal.run_workflow import RunWorkflow
from chargehand.values.step import Head
from tests.engine.temporal.replay_history import OtherOrder, replay
from tests.engine.temporal.store_histories import HISTORIES, RUNS

AGAIN = "If the change is meant, store them again: python -m tests.engine.temporal.store_histories"


def test_twenty_histories_are_decided_as_they_were_under_any_hash_seed() -> None:
    """Each step is started again with the same order, in processes that order their sets and dicts differently."""
    paths = sorted(map(str, HISTORIES.glob("*.json")))
    assert len(paths) == len(RUNS) >= 20
    command = [sys.executable, "-m", "tests.engine.temporal.replay_history", *paths]
    replays = [
        subprocess.Popen(command, env={**os.environ, "PYTHONHASHSEED": seed}, stderr=subprocess.PIPE, text=True)
        for seed in ("1", "2")
    ]
    for each in replays:
        _, said = each.communicate(timeout=120)
        assert each.returncode == 0, f"{said[-3_000:]}\n{AGAIN}"


def text_of(name: str) -> str:
    return (HISTORIES / f"{name}.json").read_text(encoding="utf-8")


def test_the_histories_hold_no_texts() -> None:
    """No word of a request, an instruction, a result or a reason is in one, whatever the encoding."""
    for path in HISTORIES.glob("*.json"):
        text = path.read_text(encoding="utf-8")
        payloads = [base64.b64decode(part).decode() for part in re.findall(r'"data":"([^"]*)"', text)]
        assert payloads
        for said in (text, *payloads):
            for words in ("The request", "Work out", "RESULT-", "All in all", "There is a result", "It is too much"):
                assert words not in said, path


def wait_first(monkeypatch: pytest.MonkeyPatch) -> None:
    carry_out = RunWorkflow.carry_out

    async def carry_out_later(self: RunWorkflow, order: StepOrder, worker: str) -> StepResult:
        await asyncio.sleep(1)
        return await carry_out(self, order, worker)

    monkeypatch.setattr(RunWorkflow, "carry_out", carry_out_later)


def reverse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that are ready are begun in the opposite order."""
    step = WorkflowEngine.step

    async def step_with_parts_reversed(self: WorkflowEngine, key: str, kind: Any, refs: Any) -> Head:
        head = await step(self, key, kind, refs)
        return head.model_copy(update={"parts": head.parts[::-1]}) if kind == "plan" else head

    monkeypatch.setattr(WorkflowEngine, "step", step_with_parts_reversed)


def allot_less(monkeypatch: pytest.MonkeyPatch) -> None:
    share = WorkflowLedger._share

    def smaller(self: WorkflowLedger, segment: str, *, whole: bool, again: bool) -> Allotment | None:
        found = share(self, segment, whole=whole, again=again)
        return found and replace(found, tokens=(found.tokens or 0) // 2)

    monkeypatch.setattr(WorkflowLedger, "_share", smaller)


@pytest.mark.parametrize(("change", "error"), [
    (wait_first, NondeterminismError), (reverse, NondeterminismError), (allot_less, OtherOrder),
])  # fmt: skip
def test_a_workflow_that_decides_otherwise_is_noticed(
    change: Callable[[pytest.MonkeyPatch], None], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer more, tasks in another order, another allotment: none of them replays a stored history."""
    asyncio.run(replay(text_of("a_budget")))
    change(monkeypatch)
    with pytest.raises(error):
        asyncio.run(replay(text_of("a_budget")))
