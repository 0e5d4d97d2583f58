"""Outcomes -> the parts of a report: reconciled by code and a judge, written by a model that must cite, or by code.

    outcomes -> statements, merged claims and findings, rated -> contradictions, judged -> selected, or written from all
    results or a tree of summaries -> what code finds wrong goes back once -> critic -> answer

Every contradiction that was found is in the synthesis, and one that is open is in the answer, whatever the model wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from chargehand.engine.deadline import in_time
from chargehand.engine.port import Engine
from chargehand.events import DraftDiscarded, SynthesisStarted
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.synthesizer import plain_report as plain
from chargehand.synthesizer.only_result import answer_with, is_as_asked, is_empty_form
from chargehand.synthesizer.synthesis import OnDraft, Synthesis, Validate
from chargehand.values.outcome import Outcome
from chargehand.values.plain_class import plain_class
from chargehand.values.plan import Plan
from chargehand.values.report import LISTS_RESULTS, Gap
from chargehand.values.request import Request

if TYPE_CHECKING:
    from chargehand.synthesizer.synthesis_flow import Flow

__all__ = ["Lacking", "OnDraft", "Synthesis", "Validate", "write_answer"]


@plain_class(frozen=True)
class Lacking:
    """A first draft that states gaps, which additional tasks might fill. It is neither corrected nor reviewed."""

    gaps: tuple[Gap, ...]
    flow: Flow
    _engine: Engine
    _mark: str

    @property
    def tokens_read(self) -> int:
        """The tokens of the results it was written from: writing it again takes as many."""
        return self.flow.used[-1].input_tokens

    async def finish(self, seconds: float | None) -> Synthesis:
        """The answer if no task was added."""
        made = await in_time(self._engine, f"@synthesis/{self._mark}rest", seconds, self.flow.finish)
        return self.flow.cut_short() if made is None else made


async def write_answer(
    request: Request,
    plan: Plan,
    outcomes: Mapping[str, Outcome],
    engine: Engine,
    model: SupervisorModel | None,
    seconds: float | None = None,
    validate: Validate | None = None,
    *,
    filled: Collection[str] = (),
    judge: SupervisorModel | None = None,
    critic: SupervisorModel | None = None,
    rounds: int = 1,
    rater: SupervisorModel | None = None,
    examiner: SupervisorModel | None = None,
    read: Iterable[str] = (),
    on_draft: OnDraft | None = None,
    pause: bool = False,
    before: Lacking | None = None,
    mark: str = "",
) -> Synthesis | Lacking:
    """One answer from all outcomes, failures included. Without a model, or when it fails, the text is made by code.

    `filled` are tasks that other tasks have replaced: they are not gaps. `rater` rates findings, and `examiner`
    looks again at those in doubt. A critic may have the answer corrected `rounds` times; a result that is the answer as
    it is gets a note only. `read` are the urls in what tools returned; `on_draft` gets the answer as it grows.

    With `pause` a first draft that states gaps comes back as it is. An answer that is written again, `before` being the
    draft it replaces, has a `mark` of its own for its keys, such as `x1/`.
    """
    if not any(outcome.ok or outcome.partial for outcome in outcomes.values()):
        return Synthesis(answer=plain.nothing_done(plan, outcomes), gaps=plain.gaps(plan, outcomes, filled))
    key = f"@synthesis/{mark}".rstrip("/")
    only = outcomes[plan.tasks[0].id] if len(plan.tasks) == 1 and critic is None and rater is None else None
    if only is not None and (ready := await _give_only(only, request, engine, key, seconds, validate)) is not None:
        return ready
    flow = await _begin_flow(request, plan, outcomes, engine, validate, filled, critic, before and before.flow, mark)
    if before is not None:
        engine.emit(DraftDiscarded(reason=f"Tasks were added for what it lacks: {before.gaps[0].reason}"))

    async def work() -> Synthesis | tuple[Gap, ...]:
        if rater is not None:
            await flow.rate(rater, examiner)
        if len(plan.tasks) == 1 and (only := flow.only_answer()) is not None:
            return await flow.review_as_it_is(only)
        if model is None:
            return flow.by_code(f"No model is configured: {LISTS_RESULTS}")
        engine.emit(SynthesisStarted(mode=plan.synthesis.mode, outcomes=len(outcomes)))
        picked = await flow.select(judge or model) if plan.synthesis.mode == "select" else None
        if judge is not None:
            await flow.judge(judge, picked)
        if picked is not None:
            return await flow.review_as_it_is(flow.select_result(picked))
        return await flow.write(model, rounds, read, on_draft, pause=pause)

    made = await in_time(engine, key, seconds, work)
    if isinstance(made, tuple):
        return Lacking(made, flow, engine, mark)
    return flow.cut_short() if made is None else made


async def _begin_flow(
    request: Request,
    plan: Plan,
    outcomes: Mapping[str, Outcome],
    engine: Engine,
    validate: Validate | None,
    filled: Collection[str],
    critic: SupervisorModel | None,
    before: Flow | None,
    mark: str,
) -> Flow:
    """What is needed to write an answer, with what the results say and where they disagree."""
    # Loaded here: a result that already is the answer does not need it.
    from chargehand.synthesizer.reconcile import reconcile
    from chargehand.synthesizer.result_index import takes_long
    from chargehand.synthesizer.synthesis_flow import Flow

    # Replaced tasks have no result: the writer and the reviewer see the tasks that replaced them.
    standing = {id: outcome for id, outcome in outcomes.items() if id not in filled}
    work_out = partial(reconcile, standing, plan.tasks)
    reconciled = await engine.clock.compute(work_out) if takes_long(standing) else work_out()
    return Flow(request, plan, outcomes, reconciled, engine, validate, filled, critic, before, mark)


async def _give_only(
    only: Outcome, request: Request, engine: Engine, key: str, seconds: float | None, validate: Validate | None
) -> Synthesis | None:
    """The only result as the answer, if it is what was asked for."""
    if only.findings or not is_as_asked(only, request, validate) or is_empty_form(only):
        return None

    async def give() -> Synthesis:
        return answer_with(only, request)

    return await in_time(engine, key, seconds, give)
