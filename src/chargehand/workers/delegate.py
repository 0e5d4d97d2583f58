"""A team as a worker: the task becomes its request, and its report with its gaps becomes the outcome.

The function that runs a team is passed in, so no module here imports upward.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from chargehand.engine.port import Engine
from chargehand.text.citation import Citations, without_code
from chargehand.values.budget import Budget
from chargehand.values.key import within
from chargehand.values.outcome import (
    IMPACT_OF_TEAM,
    Claim,
    Contradiction,
    Evidence,
    Finding,
    Gap,
    Outcome,
    done,
    escalated,
    failed,
)
from chargehand.values.plan import Task, Tier
from chargehand.values.report import Report
from chargehand.values.request import Request
from chargehand.workers import Assignment, RunTerms, TeamRun
from chargehand.workers.nested_engine import NestedEngine
from chargehand.workers.worker_answer import head
from chargehand.workers.worker_prompt import task_prompt

# Its team's time ends this much earlier than its own, so the results so far can be passed to the run.
MARGIN = 0.05
LONGEST_MARGIN_S = 0.25
# Separates the answer of a team from its gaps.
MISSING = " Missing: "
# How many gaps are named in an outcome; the others are only counted.
MOST_GAPS = 10


@dataclass(frozen=True)
class Delegate:
    """Holds no slot of its own: only what its team does takes one."""

    name: str
    team: str
    run: TeamRun
    # The text before every task.
    prompt: str = ""
    # What the team may use of the run's budget, however much more the task may.
    budget: Budget = field(default_factory=Budget)
    output_schema: dict[str, Any] | None = None
    # Lines its answers may end with.
    disclaimers: tuple[str, ...] = ()
    # The team's own limits; those of the run around it hold too.
    max_tasks: int | None = None
    deadline_s: float | None = None
    # There is no larger model to exchange it for.
    tier: Tier = "large"
    check: str | None = None
    # Running a whole team several times in parallel costs more than it gains.
    repeatable: bool = False
    # People in the team are asked by its own workers.
    waits_for_person: bool = False
    # The request of the outer run, and when the workers of that run stop, on its clock.
    above: Request = field(default_factory=lambda: Request(text=""))
    stop_at: float | None = None

    def model_for(self, tier: Tier | None) -> None:
        return None

    def with_model(self, model: str) -> Delegate:
        return self

    def bind(self, terms: RunTerms) -> Delegate:
        return replace(self, above=terms.request, stop_at=terms.stop_at)

    async def work(self, assignment: Assignment, engine: Engine) -> Outcome:
        task = assignment.task
        nested = await NestedEngine.open(engine, assignment, self.team)
        budget = self.budget.within(task.budget or Budget())
        if budget.tokens or budget.usd:
            engine.budget.allot(task.id, budget)
        words = (self.prompt.strip(), task_prompt(task, assignment.inputs))
        request = self.above.model_copy(
            update={
                "text": "\n\n".join(part for part in words if part),
                "asked": self._asked_text(task),
                "budget": budget.within(self.above.budget),
                "deadline_s": self._deadline(assignment, engine, nested),
                "max_tasks": min(self.above.max_tasks, self.max_tasks or self.above.max_tasks),
                "approve": False,
                "critic": False,
                "answer_schema": self.output_schema,
                "gaps": (),
                "notes": (),
                "subject": None,
                "earlier": None,
            }
        )
        try:
            report = await self.run(request, nested)
        finally:
            nested.close()
        return self._outcome(assignment, report).model_copy(update={"usage": report.usage})

    def _asked_text(self, task: Task) -> str:
        """The instruction; if it is the outer request passed on, the question in that request."""
        above = self.above
        return above.asked if above.asked is not None and above.text in task.instruction else task.instruction

    def _deadline(self, assignment: Assignment, engine: Engine, nested: NestedEngine) -> float | None:
        """When the team's time is over, on its own clock: when the time of its task, its attempt or the run is over."""
        task, left = assignment.task, list[float]()
        if self.stop_at is not None:
            left.append(self.stop_at - engine.clock.now())
        for seconds, since in (
            (task.timeout_s, engine.record.began(task.id, assignment.attempt)),
            (task.budget.seconds if task.budget else None, engine.record.began(task.id)),
        ):
            if seconds is not None:
                left.append(seconds - (0.0 if since is None else engine.clock.now(task.id) - since))
        ends = [] if self.deadline_s is None else [self.deadline_s]
        if left:
            ends.append(nested.clock.now() + min(left) - min(MARGIN * min(left), LONGEST_MARGIN_S))
        return max(min(ends), 0.001) if ends else None

    def _outcome(self, assignment: Assignment, report: Report) -> Outcome:
        task, scope = assignment.task.id, f"{assignment.task.id}/{assignment.attempt}"
        if report.status == "failed":
            return self._nothing(task, report)
        ids = {outcome.task for outcome in report.outcomes}
        text = drop_own_citations(report.answer, ids)
        lacking = report.gaps if report.status == "complete" else report.gaps or self._open(report)
        gaps = [head(gap.reason) for gap in lacking]
        more = [f"and {len(gaps) - MOST_GAPS} more"] if len(gaps) > MOST_GAPS else []
        missing = "; ".join([*gaps[:MOST_GAPS], *more]).rstrip(".")
        # An answer in words ends with its disclaimers; data has no room for them.
        short = head(text)
        lines = [line for line in self.disclaimers if self.output_schema and line in text and line not in short]
        outcome = done(
            task,
            self.name,
            summary=" ".join([short, *lines]) + (f"{MISSING}{missing}." if missing else ""),
            output=text if self.output_schema is None else report.data,
            claims=[_claim(claim, ids) for outcome in report.outcomes if outcome.ok for claim in outcome.claims],
            findings=[_finding(finding, ids) for finding in report.findings],
            confidence=_confidence(report),
        )
        # Partly done: gaps and contradictions are stated and stay in the run.
        handed_up = {
            "partial": bool(lacking),
            "gaps": tuple(_gap(gap, task, ids, scope) for gap in lacking),
            "contradictions": tuple(_contradiction(each, ids, scope) for each in report.contradictions),
            "evidence": Evidence.total(report.outcomes),
        }
        return outcome.model_copy(update=handed_up)

    def _open(self, report: Report) -> tuple[Gap, ...]:
        """Why a report without gaps is not complete."""
        problems = report.provenance.problems or ("it is not complete.",)
        return tuple(Gap(reason=f"In the answer of the team {self.team}: {problem}") for problem in problems)

    def _nothing(self, task: str, report: Report) -> Outcome:
        handed_back = [outcome.escalation for outcome in report.outcomes if outcome.escalation is not None]
        errors = [outcome.error for outcome in report.outcomes if outcome.error is not None]
        if handed_back and not errors:
            message = f"The team {self.team} handed it back: {handed_back[0].message}"
            return escalated(task, self.name, handed_back[0].reason, message)
        kind = report.error.kind if report.error else errors[0].kind if errors else "contract"
        why = "; ".join(dict.fromkeys(gap.reason for gap in report.gaps[:MOST_GAPS])) or report.answer
        return failed(task, self.name, kind, f"The team {self.team} came to nothing: {why}")


def drop_own_citations(answer: str, ids: set[str]) -> str:
    """The answer without citations of the team's own tasks: their ids mean nothing outside, or something else."""
    kept, at = list[str](), 0
    for citation in Citations(ids).find(without_code(answer)):
        if not citation.tasks or citation.address is not None:
            continue
        kept.append(answer[at : citation.start].rstrip(" "))
        at = citation.end
    return "".join([*kept, answer[at:]])


def _confidence(report: Report) -> int | None:
    """The confidence of the team, reduced by the share of its tasks without a result."""
    if report.confidence is None or not report.outcomes:
        return report.confidence
    return round(report.confidence * sum(outcome.ok for outcome in report.outcomes) / len(report.outcomes))


# The sources of the team's results are cited under the task it did.


def _claim(claim: Claim, ids: set[str]) -> Claim:
    return claim.model_copy(update={"sources": tuple(source for source in claim.sources if source not in ids)})


def _finding(finding: Finding, ids: set[str]) -> Finding:
    return finding.model_copy(update={"sources": tuple(source for source in finding.sources if source not in ids)})


# Tasks of the team are named by their paths, under which they are on the record.


def _gap(gap: Gap, task: str, ids: Collection[str], scope: str) -> Gap:
    reason = outside(head(gap.reason), ids, scope)
    if gap.task is not None and not reason.startswith(scope):
        reason = f"{within(scope, gap.task)}: {reason}"
    return Gap(task=task, reason=reason, impact=IMPACT_OF_TEAM)


def _contradiction(each: Contradiction, ids: Collection[str], scope: str) -> Contradiction:
    texts = {
        name: text and outside(text, ids, scope) for name, text in (("verdict", each.verdict), ("reason", each.reason))
    }
    return each.model_copy(update={"claims": tuple(outside(claim, ids, scope) for claim in each.claims), **texts})


def outside(text: str, ids: Collection[str], scope: str) -> str:
    """The text with ids of the team's tasks, where they stand for a task, as paths of the run."""
    names = "|".join(map(re.escape, sorted(ids, key=len, reverse=True)))
    return re.sub(rf"(?:^|(?<=; )|(?<=\[))(?:{names})(?=[:\]/]| says\b)", lambda found: within(scope, found[0]), text)
