"""One synthesis under way: its steps, and the answer that can be given wherever it is cut short."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from chargehand.engine.port import Engine
from chargehand.events import DraftDiscarded, Warned
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.synthesizer import plain_report as plain
from chargehand.synthesizer import prompt
from chargehand.synthesizer import unmentioned as mention
from chargehand.synthesizer.check_citations import provenance_of_listing
from chargehand.synthesizer.group_contradictions import Rulings, Same
from chargehand.synthesizer.merge_duplicates import near_findings
from chargehand.synthesizer.only_result import answer_with, is_as_asked, is_empty_form
from chargehand.synthesizer.reconcile import Reconciled
from chargehand.synthesizer.synthesis import OnDraft, Synthesis, SynthesisContext, Validate, upstream
from chargehand.synthesizer.word_stems import terms
from chargehand.values.outcome import Outcome, Usage
from chargehand.values.plan import Plan
from chargehand.values.report import INVALID_DATA, LISTS_RESULTS, Contradiction, Gap, LeftOut, Provenance
from chargehand.values.request import Request
from chargehand.values.status_words import NO_TIME_TO_WRITE

if TYPE_CHECKING:
    from chargehand.synthesizer.select import Pick
    from chargehand.synthesizer.streaming import Drafts
    from chargehand.synthesizer.writer import Draft, Writer


class Flow:
    """Made for one synthesis. `cut_short` can be called at any time and uses what is known so far.

    What only a model needs is loaded by the steps that ask one.
    """

    def __init__(
        self,
        request: Request,
        plan: Plan,
        outcomes: Mapping[str, Outcome],
        reconciled: Reconciled,
        engine: Engine,
        validate: Validate | None,
        filled: Collection[str],
        critic: SupervisorModel | None,
        before: Flow | None = None,
        mark: str = "",
    ) -> None:
        """`before` wrote a draft from fewer outcomes: what it used and had judged counts here too."""
        self._request = request
        self._plan = plan
        self.outcomes = outcomes
        self._engine = engine
        self._validate = validate
        self._critic = critic
        self._gaps = plain.gaps(plan, outcomes, filled)
        self._filled = filled
        self._standing = reconciled.outcomes
        self._merged = reconciled
        self._before = before
        self._mark = mark
        earlier = {} if before is None else before.rulings
        self.rulings: Rulings = {
            pair: ruling
            for pair, ruling in ({**dict.fromkeys(reconciled.proven), **earlier}).items()
            if pair.first.task in self._standing and pair.second.task in self._standing
        }
        # What the judge says is the same.
        self.same = Same() if before is None else before.same
        self.used: list[Usage] = [] if before is None else before.used
        self.drafts: Drafts | None = None if before is None else before.drafts
        self._notes: list[str] = []
        self._writer: Writer | None = None
        # Whether the judge has been asked and has not answered yet.
        self._is_judging = False
        # What is left to do when there is a draft.
        self._rest: Callable[[], Awaitable[Synthesis]] | None = None
        # An answer that only has to be reviewed.
        self._ready: Synthesis | None = None

    # -- steps -------------------------------------------------------------------------------------------------------

    async def rate(self, rater: SupervisorModel, examiner: SupervisorModel | None) -> None:
        from chargehand.synthesizer.code_excerpts import Exhibits
        from chargehand.synthesizer.rate_findings import rate

        found = self._merged.findings
        seen = Exhibits.of(self._plan)
        findings, notes = await rate(found, self._request, self._engine, rater, examiner, self.used, seen, self._mark)
        self._merged = replace(self._merged, findings=findings)
        self._notes += notes

    async def select(self, chooser: SupervisorModel) -> Pick | None:
        """The sink whose result is the answer. The choice also decides its contradictions with the other results."""
        from chargehand.synthesizer.select import pick

        picked = await pick(self.outcomes, self._context(chooser))
        if picked is None:
            return None
        if not self._as_asked(picked.outcome):
            self._notes.append(
                f"The selected result of {picked.outcome.task} does not have the form that was asked for."
            )
            return None
        if is_empty_form(picked.outcome):
            self._notes.append(f"The selected result of {picked.outcome.task} is a placeholder.")
            return None
        self.rulings |= picked.rulings(self.rulings)
        return picked

    async def judge(self, model: SupervisorModel, picked: Pick | None) -> None:
        """Find statements that contradict each other or say the same. Tasks of an earlier draft are compared already.

        Where a result was selected, only what it rests on matters.
        """
        from chargehand.synthesizer.contradictions_by_model import judge

        judged = () if self._before is None else self._before.outcomes
        chosen = None if picked is None else picked.outcome.task
        used = self.outcomes if chosen is None else {chosen, *upstream(self._plan, [chosen])}
        statements = [each for each in self._merged.statements if each.task in used]
        proven = [pair for pair in self._merged.proven if pair.first.task in used and pair.second.task in used]
        findings = near_findings(self._merged.findings, self._standing)
        context = self._context(model)
        self._is_judging = True
        self._notes += await judge(statements, proven, context, self.rulings, judged, self.same, findings)
        self._is_judging = False

    async def review_as_it_is(self, ready: Synthesis) -> Synthesis:
        """A result that is the answer as it is: what the critic says is noted, and nothing is corrected."""
        critic = self._critic
        if critic is None:
            return ready
        from chargehand.synthesizer.critic import critique, notes_for_reader

        self._ready = ready
        self._engine.budget.release()
        verdict = await critique(
            self._request, ready.answer, self._standing, self._engine, critic, 1, self.used, self._mark
        )
        return replace(ready, usage=Usage.total(self.used), notes=(*ready.notes, *notes_for_reader(verdict)))

    async def write(
        self, model: SupervisorModel, rounds: int, read: Iterable[str], on_draft: OnDraft | None, *, pause: bool = False
    ) -> Synthesis | tuple[Gap, ...]:
        """The model's answer, reviewed if there is a critic; an answer by code if the model gives none.

        With `pause` it stops at a first draft that states gaps of its own, and returns these gaps: `finish` continues
        with it.
        """
        from chargehand.synthesizer.quoted_results import gather
        from chargehand.synthesizer.streaming import Drafts
        from chargehand.synthesizer.writer import NoDraft, Writer

        context, known = self._context(model), self._reconcile()
        if self.drafts is None and on_draft is not None:
            self.drafts = Drafts(on_draft, lambda message: self._engine.emit(Warned(message=message)))
        parts, notes = await gather(known, context)
        self._notes += notes
        writer = self._writer = Writer(context, known, read, self._validate, self.drafts)
        judged = (*known.disagreements, *known.compatible)
        draft = await writer.write(prompt.ask(context.request, context.plan, parts, judged, model))
        if isinstance(draft, NoDraft):
            return self._instead(f"There is no synthesis ({draft.fault.first_line})")

        async def rest() -> Synthesis:
            final = await writer.correct(draft)
            if self._critic is not None:
                from chargehand.synthesizer.critic import review_draft

                final, notes = await review_draft(final, writer, self._standing, self._critic, rounds, context)
                self._notes.extend(notes)
            return self._of(final, known)

        if pause and (gaps := self._own_gaps(draft)):
            self._rest = rest
            return gaps
        return await rest()

    async def finish(self) -> Synthesis:
        """The draft that `write` stopped at, corrected and reviewed."""
        assert self._rest is not None, "nothing was written"
        return await self._rest()

    # -- answers -----------------------------------------------------------------------------------------------------

    def only_answer(self) -> Synthesis | None:
        """A one-task plan needs no synthesis, unless a typed answer is wanted and the outcome is not of that type."""
        outcome = self.outcomes[self._plan.tasks[0].id]
        if not self._as_asked(outcome):
            return None
        if is_empty_form(outcome):
            return self.by_code("The only result is a placeholder: the answer lists it.")
        ready = answer_with(outcome, self._request)
        return replace(ready, findings=self._merged.findings, usage=Usage.total(self.used), notes=tuple(self._notes))

    def select_result(self, picked: Pick) -> Synthesis:
        """The text of the result that was selected, why it was, and what it does not settle."""
        known, chosen = self._reconcile(), picked.outcome
        through = upstream(self._plan, [chosen.task])
        rests_on = [id for id, outcome in self.outcomes.items() if id in through and outcome.ok]
        parts = [plain.text_of(chosen).strip(), picked.text(rests_on)]
        if open_ := [each for each in known.disagreements if not each.resolved]:
            parts.append(mention.section(open_))
        answer = "\n\n".join(parts)
        listed = provenance_of_listing(answer, self.outcomes)
        own = len(plain.paragraphs(parts[0]))
        cites = {str(number): (chosen.task,) for number in range(1, own + 1)}
        cites |= {number: tasks for number, tasks in listed.citations.items() if int(number) > own}
        cited = {task for tasks in cites.values() for task in tasks}
        apart = [id for id, outcome in self._standing.items() if outcome.ok and id not in cited]
        why = f"The result of {chosen.task} was selected: {picked.choice.reason}"
        return Synthesis(
            answer=answer,
            findings=known.findings,
            contradictions=_contradictions(known),
            gaps=self._gaps,
            confidence=chosen.confidence,
            provenance=Provenance(citations=cites, left_out=tuple(LeftOut(task=id, reason=why) for id in apart)),
            data=chosen.output if self._request.answer_schema is not None else None,
            usage=Usage.total(self.used),
            notes=tuple(self._notes),
        )

    def cut_short(self) -> Synthesis:
        """The answer at the deadline: the draft that was to be corrected or reviewed, else the results."""
        if self._ready is not None:
            note = "The deadline left no time to review the answer."
            return replace(self._ready, usage=Usage.total(self.used), notes=(*self._ready.notes, note))
        draft = None if self._writer is None else self._writer.last
        if self._is_judging:
            self._notes.append("The deadline came before all statements were compared for contradictions.")
        if draft is None:
            if self._writer is not None:
                self._engine.emit(DraftDiscarded(reason="The deadline came before it was finished."))
            return self._instead(NO_TIME_TO_WRITE)
        self._notes.append("The deadline left no time to correct or review the answer: it is as it was first written.")
        return self._of(draft, self._reconcile())

    def _instead(self, why: str) -> Synthesis:
        """Without a draft: the one from before tasks were added, which uses nothing of theirs, else a listing."""
        draft = None if self._before is None else self._before.draft
        if draft is None or self._before is None:
            return self.by_code(f"{why}: {LISTS_RESULTS}")
        new = (id for id, outcome in self._standing.items() if outcome.ok and id not in self._before.outcomes)
        unused = {"unused": (*draft.provenance.unused, *new)}
        self._notes.append(f"{why}: the answer is the one that was written before tasks were added.")
        return self._of(replace(draft, provenance=draft.provenance.model_copy(update=unused)), self._reconcile())

    def by_code(self, note: str) -> Synthesis:
        """Everything that is known, listed."""
        known, gaps = self._reconcile(), self._gaps
        if (why := self._why_rejected()) is not None:
            rejected = f"The answer that was written was rejected: {why.removesuffix('.')}."
            gaps = (*gaps, Gap(reason=rejected, impact="The answer lists the results instead."))
        section = mention.section(known.disagreements) if known.disagreements else ""
        answer = plain.report(self._plan, self.outcomes, known.claims, known.findings, section, gaps)
        if self._request.answer_schema is not None:
            missing = Gap(reason="There is no answer in the form that was asked for.", impact="`data` is missing.")
            gaps = (*gaps, missing)
        review: tuple[str, ...] = ()
        if self._critic is not None:
            from chargehand.synthesizer.critic import NotReviewed, notes_for_reader, record_critique

            unseen = NotReviewed("it was made by code, and there is nothing in it to correct.")
            review = notes_for_reader(record_critique(unseen, self._engine))
        return Synthesis(
            answer=answer,
            findings=known.findings,
            contradictions=_contradictions(known),
            gaps=gaps,
            confidence=plain.confidence(self._standing),
            provenance=provenance_of_listing(answer, self.outcomes, (*known.claims, *known.findings)),
            usage=Usage.total(self.used),
            notes=(*self._notes, note, *review),
        )

    def _of(self, draft: Draft, known: Reconciled) -> Synthesis:
        provenance = draft.provenance
        if draft.silent:  # code has added to the answer what it cites itself
            listed = provenance_of_listing(draft.text, self.outcomes, (*known.claims, *known.findings))
            added = {
                "citations": {**listed.citations, **provenance.citations},
                "unused": tuple(task for task in provenance.unused if task in listed.unused),
            }
            provenance = provenance.model_copy(update=added)
        gaps = self._gaps
        if draft.invalid is not None:
            gaps = (*gaps, Gap(reason=draft.invalid, impact=INVALID_DATA))
        gaps = (*gaps, *self._own_gaps(draft))
        return Synthesis(
            answer=draft.text,
            findings=known.findings,
            contradictions=_contradictions(known, draft.contradictions),
            gaps=gaps,
            confidence=draft.confidence,
            provenance=provenance,
            data=draft.data,
            usage=Usage.total(self.used),
            notes=tuple(self._notes),
        )

    def _own_gaps(self, draft: Draft) -> tuple[Gap, ...]:
        """Gaps that only the model states. A gap of a task that code has already listed is the same gap."""
        listed = {*(gap.task for gap in self._gaps if gap.task is not None), *self._filled}
        return tuple(gap for gap in draft.gaps if gap.task not in listed)

    def _why_rejected(self) -> str | None:
        """Why a text was not taken for the answer, when none was."""
        only = self.outcomes[self._plan.tasks[0].id] if len(self._plan.tasks) == 1 else None
        if self._writer is None:
            return None if only is None or not is_empty_form(only) else f"the result of {only.task} is a placeholder"
        return self._writer.rejected if self._writer.last is None else None

    # -- for the one that is written after it --------------------------------------------------------------------------

    @property
    def draft(self) -> Draft | None:
        """The draft that counts."""
        return None if self._writer is None else self._writer.last

    # -- parts -------------------------------------------------------------------------------------------------------

    def _context(self, model: SupervisorModel) -> SynthesisContext:
        return SynthesisContext(self._request, self._plan, self._engine, model, self.used, self._mark)

    def _reconcile(self) -> Reconciled:
        return self._merged.with_rulings(self.rulings, self.same.statements, self.same.findings)

    def _as_asked(self, outcome: Outcome) -> bool:
        return is_as_asked(outcome, self._request, self._validate)


def _contradictions(known: Reconciled, stated: Iterable[Contradiction] = ()) -> tuple[Contradiction, ...]:
    """The contradictions that were found, with the judge's rulings, and those that only the model states.

    The model's statement about a judged pair is ignored, even if the judge found no contradiction.
    """
    judged = [(each.tasks, each.subject) for each in (*known.disagreements, *known.compatible)]
    return (
        *(each.contradiction() for each in known.disagreements),
        *(each for each in stated if not any(_same(each, tasks, subject) for tasks, subject in judged)),
    )


def _same(stated: Contradiction, tasks: tuple[str, ...], subject: str) -> bool:
    """Whether they have the same tasks, and subjects with most words in common."""
    sides = {_side(claim) for claim in stated.claims}
    words, others = frozenset(terms(stated.subject)), frozenset(terms(subject))
    return bool(sides) and sides <= set(tasks) and 2 * len(words & others) > min(len(words), len(others))


def _side(claim: str) -> str:
    """The task a claim begins with, however that is written: `t1: 5`, `[t1] 5`, `t1 says 5`."""
    return claim.lstrip(" [(").partition(" ")[0].rstrip("]):,.")
