"""The report of a run that ended without all results -> what may still give them, for the command line and the page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from chargehand.errors import lacked_limit
from chargehand.trace.number_text import round_up
from chargehand.trace.run_parts import Data, number_in, part_in, parts_in, text_in, tokens_in
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.status_words import NO_TIME_TO_WRITE


class WaysOn(NamedTuple):
    """What helps tasks that failed, or a plan that was not made."""

    # What `resume` adds to the limits that were reached, each a number that is probably enough: deadline, tokens, usd.
    limits: dict[str, float]
    # Whether another try may end otherwise.
    retry_failed: bool
    # The tasks that a person stopped: only a restart takes that back.
    stopped: tuple[str, ...]
    # Whether a person rejected the plan: a fork with another plan asks again.
    another_plan: bool
    # The tasks to which the plan gives too small a budget: a fork with another plan can give more.
    short_budget: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return self._asdict()


def ways_on(report: Data) -> WaysOn:
    """What may help a run that ended partial or failed; nothing helps any other."""
    if report.get("status") not in ("partial", "failed"):
        return WaysOn({}, retry_failed=False, stopped=(), another_plan=False)
    failed = [each for each in parts_in(report, "outcomes") if each.get("status") in ("failed", "escalated")]
    short = _short_budgets(report, failed)
    helped = [each for each in failed if text_in(each, "task") not in short]
    faults = [fault for each in (*helped, report) if (fault := part_in(each, "error"))]
    kinds = {text_in(each, "task"): _reason_to_retry(each) for each in failed}
    unplanned = [text_in(fault, "kind") for fault in faults if not report.get("plan")]
    reasons = [*kinds.values(), *(kind for kind in unplanned if kind != _NO_VALID_PLAN)]
    return WaysOn(
        _what_lacked(report, faults),
        retry_failed=any(reason not in _SAME_AGAIN for reason in reasons),
        stopped=tuple(task for task, kind in kinds.items() if kind == _STOPPED),
        # A plan that runs has an outcome for each task.
        another_plan=bool(parts_in(part_in(report, "plan"), "tasks")) and not report.get("outcomes"),
        short_budget=tuple(short),
    )


def _short_budgets(report: Data, failed: Sequence[Data]) -> dict[str, None]:
    """The tasks that failed because the plan gives them too small a budget, in order."""
    budgets = budgets_of(part_in(report, "plan"))
    faults = [(text_in(each, "task"), part_in(each, "error")) for each in failed]
    return {
        task: None
        for task, fault in faults
        if is_too_small(budgets.get(task), text_in(fault, "kind"), text_in(fault, "message"))
    }


def budgets_of(plan: Data) -> dict[str, Data]:
    """Task -> the budget that the plan gives it."""
    return {text_in(task, "id"): budget for task in parts_in(plan, "tasks") if (budget := part_in(task, "budget"))}


def is_too_small(budget: Data | None, kind: str, message: str) -> bool:
    """Whether a task failed so because of the budget that the plan gives it. Limits of the run do not change that."""
    if budget is None or kind != "budget" or not message.startswith("task "):
        return False
    return budget.get("usd" if lacked_limit(kind, message) == "usd" else "tokens") is not None


def _reason_to_retry(outcome: Data) -> str:
    """Why a task has no result: the kind of its error, or the reason of its escalation."""
    return text_in(part_in(outcome, "error"), "kind") or text_in(part_in(outcome, "escalation"), "reason")


def _what_lacked(report: Data, faults: Sequence[Data]) -> dict[str, float]:
    said = [(text_in(fault, "kind"), text_in(fault, "message")) for fault in faults]
    lacked = [(lacked_limit(kind, message), read_need(message)) for kind, message in said]
    dollars = [need for limit, need in lacked if limit == "usd" and need]
    counts = [need for limit, need in lacked if limit == "tokens" and need]
    outcomes = parts_in(report, "outcomes")
    done = [tokens_in(part_in(each, "usage")) for each in outcomes if each.get("status") == "done"]
    # Without a plan it is not known how many tasks there will be.
    tasks = sum(each.get("status") != "done" for each in outcomes) if report.get("plan") else FEW_TASKS
    found: dict[str, float] = {}
    unwritten = any(str(note).startswith(NO_TIME_TO_WRITE) for note in report.get("notes") or ())
    if unwritten or any(limit == "deadline" for limit, _ in lacked):
        took = number_in(part_in(report, "timing"), "wall_s") or 0.0
        found["deadline"] = round_up(max(2 * took, LEAST_TIME_S))
    if counts:
        found["tokens"] = round_up(3 * tasks * max(*counts, sum(done) / max(len(done), 1)))
    if dollars:
        found["usd"] = round_up(3 * tasks * max(dollars))
    return found


def read_need(message: str) -> float | None:
    """What a call that a budget denied would have needed."""
    return _read_number(_NEEDS.search(message))


def read_kept(message: str) -> float:
    """What of the budget was kept for the answer when a call was denied."""
    return _read_number(_KEPT.search(message)) or 0.0


def _read_number(found: re.Match[str] | None) -> float | None:
    return None if found is None else float(found[1].replace(",", ""))


_KEPT = lazy_regex(r"([\d,]{0,20}\d(?:\.\d+)?) kept for the answer")
_NEEDS = lazy_regex(r"needs about ([\d,]{0,20}\d(?:\.\d+)?)")
# How many tasks a plan is assumed to have that was not made, and the least time to add, in seconds.
FEW_TASKS = 5
LEAST_TIME_S = 60.0
# The kind of error of a task that a person stopped: only a person can restart it.
_STOPPED = "cancelled"
# Another try alone changes nothing: it would lack the same, be stopped, or have the same material and the same task.
_SAME_AGAIN = ("budget", "deadline", _STOPPED, "ambiguous_input", "out_of_scope")
# The kind of error of a run whose planner answered without a valid plan: the answers on the record stay the same.
_NO_VALID_PLAN = "contract"
