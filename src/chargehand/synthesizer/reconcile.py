"""Outcomes -> what is known before anything is written: merged claims and findings, and where workers disagree."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from chargehand.synthesizer.contradictions_by_code import proven_pairs
from chargehand.synthesizer.group_contradictions import Disagreement, Pair, Ruling, compatible, disagreements
from chargehand.synthesizer.merge_duplicates import join_findings, merge_claims, merge_findings
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

    def with_rulings(
        self,
        rulings: Mapping[Pair, Ruling | None],
        same: Sequence[Collection[str]] = (),
        same_findings: Sequence[Collection[Finding]] = (),
    ) -> Reconciled:
        """The same with the judge's rulings so far, and with the statements it calls the same merged."""
        found = replace(self, disagreements=disagreements(rulings), compatible=compatible(rulings))
        if same_findings:
            workers = {outcome.task: outcome.worker for outcome in _usable(self.outcomes)}
            found = replace(found, findings=join_findings(self.findings, same_findings, workers))
        if not same:
            return found
        apart = [
            (pair.first.text, pair.second.text)
            for pair, ruling in rulings.items()
            if ruling is None or not ruling.is_compatible
        ]
        return replace(found, claims=_merged_claims(_usable(self.outcomes), same, apart))


def reconcile(outcomes: Mapping[str, Outcome], tasks: Sequence[Task]) -> Reconciled:
    """What code alone finds: nothing is judged yet."""
    usable = _usable(outcomes)
    workers = {outcome.task: outcome.worker for outcome in usable}
    statements = read_statements(usable)
    return Reconciled(
        outcomes=outcomes,
        claims=_merged_claims(usable),
        findings=merge_findings([finding for outcome in usable for finding in outcome.findings], workers),
        statements=statements,
        proven=proven_pairs(statements, usable, {task.id: task.instruction for task in tasks}),
    )


def _usable(outcomes: Mapping[str, Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes.values() if outcome.ok or outcome.partial]


def _merged_claims(
    outcomes: Sequence[Outcome], same: Sequence[Collection[str]] = (), apart: Iterable[tuple[str, str]] = ()
) -> tuple[Claim, ...]:
    workers = {outcome.task: outcome.worker for outcome in outcomes}
    claims = [_in_words(claim) for outcome in outcomes for claim in outcome.claims]
    return merge_claims(claims, workers, same, apart)


def _in_words(claim: Claim) -> Claim:
    """The claim without Markdown."""
    words = one_line(claim.statement)
    return claim if words == claim.statement else claim.model_copy(update={"statement": words})
