"""Outcomes -> what is known before anything is written: merged claims and findings, and where workers disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from chargehand.synthesizer.contradictions_by_code import proven_pairs
from chargehand.synthesizer.group_contradictions import Disagreement, Pair, Ruling, compatible, disagreements
from chargehand.synthesizer.merge_duplicates import merge_claims, merge_findings
from chargehand.synthesizer.statements import Statement, read_statements
from chargehand.synthesizer.strip_markdown import one_line
from chargehand.values.outcome import Claim, Finding, Outcome
from chargehand.values.plan import Task


@dataclass(frozen=True, slots=True)
class Reconciled:
    """`statements` are what a judge compares, `proven` the pairs of them that code alone has found to differ."""

    outcomes: Mapping[str, Outcome]
    claims: tuple[Claim, ...]
    findings: tuple[Finding, ...]
    statements: tuple[Statement, ...]
    proven: tuple[Pair, ...]
    disagreements: tuple[Disagreement, ...] = ()
    compatible: tuple[Disagreement, ...] = ()

    def with_rulings(self, rulings: Mapping[Pair, Ruling | None]) -> Reconciled:
        """The same with what has been decided on pairs so far."""
        return replace(self, disagreements=disagreements(rulings), compatible=compatible(rulings))


def reconcile(outcomes: Mapping[str, Outcome], tasks: Sequence[Task]) -> Reconciled:
    """By code alone: nothing is judged yet."""
    usable = [outcome for outcome in outcomes.values() if outcome.ok or outcome.partial]
    workers = {outcome.task: outcome.worker for outcome in usable}
    statements = read_statements(usable)
    return Reconciled(
        outcomes=outcomes,
        claims=merge_claims([_in_words(claim) for outcome in usable for claim in outcome.claims], workers),
        findings=merge_findings([finding for outcome in usable for finding in outcome.findings], workers),
        statements=statements,
        proven=proven_pairs(statements, usable, {task.id: task.instruction for task in tasks}),
    )


def _in_words(claim: Claim) -> Claim:
    """The claim without Markdown."""
    words = one_line(claim.statement)
    return claim if words == claim.statement else claim.model_copy(update={"statement": words})
