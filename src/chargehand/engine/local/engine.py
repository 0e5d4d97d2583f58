"""The engine port on asyncio and a journal: effects run in this process, each committed before it returns.

How an effect goes through `perform`:

    committed under this key, same fingerprint?    -> the recorded result
    committed in the run this one repeats?         -> recorded here as reused, returned
    budget reserved -> slot taken -> *_called on disk -> handler (transport retries) -> slot freed
    -> result on disk -> returned

Of tools that may run twice, and of analyzers, *_called goes to disk with the result.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar, overload

from chargehand import __version__
from chargehand.engine.engine_session import DRAIN_S, EngineInputs, Opening, Prior, Spent
from chargehand.engine.local.activity import Activity
from chargehand.engine.local.admission import Admission
from chargehand.engine.local.clock import LocalClock
from chargehand.engine.local.effect_record import EffectRecord
from chargehand.engine.local.handlers import AnalysisHandler, Handlers, ModelHandler, ProgramHandler, ToolHandler
from chargehand.engine.local.orders import LocalOrders
from chargehand.engine.local.prompt_cache_order import PromptBeginnings
from chargehand.engine.local.questions import Inquiries
from chargehand.engine.local.quota_waits import ProviderWaits
from chargehand.engine.local.recorder import Recorder, Site
from chargehand.engine.local.resources import Resources
from chargehand.engine.local.run_record import LocalRecord
from chargehand.engine.local.sending import Sender
from chargehand.engine.local.shared_ledger import LocalBudget, SharedLedger
from chargehand.engine.local.slots import Slots
from chargehand.engine.port import Steps
from chargehand.events import (
    VERSION,
    AttemptStarted,
    Decided,
    Event,
    EventBody,
    PlanApproved,
    RunStarted,
    TaskEnded,
    Warned,
)
from chargehand.events.body import Data
from chargehand.record.replay import RECORDED_ONCE, Replay, mark_of
from chargehand.values.base import JSON
from chargehand.values.budget import Budget
from chargehand.values.effect import (
    Analysis,
    AnalysisResult,
    Effect,
    ModelCall,
    ModelResult,
    ProgramResult,
    ProgramRun,
    Question,
    Result,
    ToolCall,
    ToolResult,
)
from chargehand.values.key import Key
from chargehand.values.ledger import Ledger
from chargehand.values.outcome import Usage
from chargehand.values.step import Head, StepKind, StepRefs

T = TypeVar("T")


class LocalEngine:
    """One session of one run. Open it with `async with`: leaving writes what is left of the record."""

    def __init__(self, inputs: EngineInputs) -> None:
        self.run = inputs.run
        self.replay = inputs.replay or Replay(run=inputs.run)
        self._resumed = self.replay.seq > 0
        self._opening = inputs.opening
        if self._opening is not None:
            self._apply_opening(self._opening)
        # What calls of earlier sessions used.
        self._used_before = list(self.replay.usages())
        self._prior = inputs.prior
        self._resources = resources = Resources(
            inputs.models,
            inputs.tools,
            inputs.context,
            inputs.analyses,
            run=self.run,
            trace_header=inputs.trace_header,
        )
        self._slots = Slots(inputs.max_concurrent)
        self._activity = Activity(self._slots, stays=inputs.stays, mailbox=inputs.mailbox)
        self._slots.line_up(each["id"] for each in (self.replay.plan or {"tasks": ()})["tasks"])
        self.clock = LocalClock(self.replay, self._activity, inputs.wall_clock, inputs.chance, inputs.deadline_at)
        self._recorder = Recorder(
            self.run, inputs.journal, seq=self.replay.seq, clock=self.clock.wall, listeners=inputs.listeners
        )
        self.outcomes = inputs.outcomes
        self.record = LocalRecord(self.replay, self.outcomes)
        self.record.keep_urls(inputs.urls)
        self._steps: Steps | None = None
        shared = self._make_ledger(inputs, resources)
        self.budget = LocalBudget(shared, self.replay, self._recorder)
        limits = inputs.wait_s, inputs.deadline_s
        waits = ProviderWaits(self._activity, self.clock, self._recorder, self.replay, *limits)
        sender = Sender(self.run, self._slots, resources, self._recorder, self.record, self.clock.random, waits)
        beginnings = PromptBeginnings(resources)
        admission = Admission(shared, self._slots, sender, self._recorder, waits, beginnings, inputs.hedge_after_s)
        self._effects = EffectRecord(self._recorder, self.replay, self.record)
        self._models = ModelHandler(admission, self._recorder, self._effects, inputs.analyses)
        self._tools = ToolHandler(resources, self._slots, self._effects, self.record)
        self._handlers: Handlers = {
            ModelCall: self._models,
            ToolCall: self._tools,
            Analysis: AnalysisHandler(resources, self._slots, self._effects),
            ProgramRun: ProgramHandler(resources, self._slots, self._effects, self._recorder, self._charge),
        }
        self._inquiries = Inquiries(
            self.replay,
            inputs.prior,
            inputs.people,
            self._recorder,
            self._slots,
            self._activity,
            self.clock,
            inputs.read_answer,
        )
        self.orders = self._make_orders(inputs, resources, sender)
        # Task -> the attempt it is at, for effects whose key does not say.
        self._attempts: dict[str | None, int | None] = {}
        # What earlier sessions recorded and this one reaches again: it is recorded once.
        self._marks = Counter(self.replay.marks)

    def _apply_opening(self, opening: Opening) -> None:
        """What this session begins with, as if an earlier one had left it. It is put on the record as it opens."""
        if opening.reopen is not None:
            self.replay.reopen(opening.reopen, opening.restarts)
        if opening.fork is not None:
            for body, task, attempt in opening.fork.events:
                self.replay.apply(Event(self.run, 0, 0.0, task, attempt, body))

    def _make_ledger(self, inputs: EngineInputs, resources: Resources) -> SharedLedger:
        shared = SharedLedger(
            inputs.budget or Budget(), resources, self._recorder, inputs.writer, echoes=inputs.sets_aside_reading
        )
        if inputs.may_get_more:
            shared.end_short = partial(self._activity.park, "short")
        return shared

    def _make_orders(self, inputs: EngineInputs, resources: Resources, sender: Sender) -> LocalOrders:
        """Orders are judged by the request and the team as the first session recorded them."""
        request: Data = self.replay.start.get("request") or (self._opening.request if self._opening is not None else {})
        return LocalOrders(
            inputs.mailbox,
            self.replay,
            resources,
            sender,
            self._inquiries,
            self._recorder,
            self._slots,
            self._activity,
            self.clock,
            team=self.replay.start.get("team") or (self._opening.team if self._opening is not None else {}),
            budget=self.budget,
            deadline_s=request.get("deadline_s"),
            stays=inputs.stays,
        )

    # -- life --------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> LocalEngine:
        self._activity.open()
        self.clock.open()
        await self._recorder.__aenter__()
        self.orders.open()
        if self._resumed and self.replay.has_programs:
            await self._resources.sweep()
        if self._opening is not None:
            # Not committed yet: it goes to disk with the first call, and with a given plan, or not at all.
            self._record_opening(self._opening)
        return self

    async def __aexit__(self, *exc: object) -> None:
        try:
            await self._recorder.__aexit__(*exc)
        finally:
            self._activity.close()
            await self._resources.close()
            # These refer back to the engine: without this, all that a wide run made stays until the collector comes.
            self._steps = None
            self._handlers = {}

    def _record_opening(self, opening: Opening) -> None:
        session, restarts, fork = self.replay.sessions + 1, opening.restarts, opening.fork
        origin = {} if fork is None else {"forked_from": {"run": fork.run, "at": fork.at}, "copied": len(fork.events)}
        self.emit(
            RunStarted(
                version=VERSION,
                chargehand=__version__,
                epoch=session,
                resumed=self._resumed,
                request=opening.request,
                team=opening.team,
                settings=opening.settings,
                rerun_of=opening.rerun_of,
                **origin,
                **({} if opening.trace is None else {"trace": opening.trace}),
            )
        )
        for body, task, attempt in fork.events if fork is not None else ():
            self._recorder.emit(body, task, attempt)
        if opening.reopen is not None:
            self.emit(
                Decided(
                    key=f"@reopen/{session}",
                    decision="reopen",
                    value={"tasks": list(opening.reopen)} | ({"restarts": list(restarts)} if restarts else {}),
                    reason=(
                        "a person restarted tasks" if restarts else "resumed with more budget, time or --retry-failed"
                    ),
                )
            )
        self.budget.settle_left_behind()
        for message in opening.warnings:
            self.emit(Warned(message=message))

    def _charge(self, used: Usage) -> None:
        """Count what a program says that it used."""
        self._models.used.append(used)
        self.ledger.charge(used.input_tokens + used.output_tokens, used.usd)

    @property
    def ledger(self) -> Ledger:
        return self.budget.ledger

    @property
    def limit(self) -> Budget:
        return self.ledger.limit

    @property
    def spent(self) -> Spent:
        return Spent(
            tokens=self.ledger.spent_tokens,
            usd=self.ledger.spent_usd,
            lost=self.budget.lost,
            estimated=tuple(self.budget.estimated),
            used=Usage.total([*self._used_before, *self._models.used]),
            short=self.ledger.short,
            earlier=self.replay.earlier_usage(),
        )

    @property
    def paused(self) -> bool:
        return self.orders.paused

    @property
    def restarting(self) -> bool:
        return self.orders.restarting

    def unrecorded_still_s(self) -> float:
        return round(self._activity.unrecorded_still_seconds(), 3)

    async def until_parked(self, work: Coroutine[Any, Any, T]) -> T:
        return await self._activity.run_until_parked(work)

    async def read_orders(self) -> None:
        await self.orders.read()

    async def read_last_orders(self) -> None:
        await self.orders.read_last()

    def hold(self) -> None:
        self.orders.hold()

    async def drain(self, seconds: float = DRAIN_S) -> None:
        self._slots.draining = True
        try:
            async with asyncio.timeout(seconds):
                await self._slots.idle.wait()
                await self.commit()
        except TimeoutError:
            self.emit(Warned(message=f"Calls still in flight after {seconds:g} s were left; resume repeats them."))

    # -- the record --------------------------------------------------------------------------------------------------

    def emit(self, body: EventBody, *, task: str | None = None, attempt: int | None = None) -> None:
        if isinstance(body, AttemptStarted):
            self._slots.line_up((task,))
            self._attempts[task] = attempt
        elif isinstance(body, PlanApproved) and body.within is None:
            self._slots.line_up(each["id"] for each in body.plan["tasks"])
        if isinstance(body, RECORDED_ONCE) and self._marks[mark := mark_of(task, body)]:
            self._marks[mark] -= 1
            return
        self._recorder.emit(body, task, attempt)
        self.orders.note(body, task)

    async def commit(self) -> None:
        await self._recorder.commit()

    async def decide(self, key: str, decision: str, choose: Callable[[], JSON], reason: str = "") -> JSON:
        if key in self.replay.decisions:
            return self.replay.decisions[key]
        value = choose()
        at = Key.parse(key)
        self.emit(Decided(key=key, decision=decision, value=value, reason=reason), task=at.task, attempt=at.attempt)
        with self._activity:
            await self.commit()
        return value

    async def ask(self, key: str, question: Question) -> JSON:
        return await self._inquiries.ask(key, question)

    # -- steps -------------------------------------------------------------------------------------------------------

    def serve(self, steps: Steps) -> None:
        self._steps = steps

    async def step(self, key: str, kind: StepKind, refs: StepRefs) -> Head:
        assert self._steps is not None, "serve() comes before the first step"
        return await self._steps.run(key, kind, refs)

    def recall(self, key: str) -> None:
        assert self._steps is not None, "serve() comes before the first step"
        self._steps.recall(key)

    def end_task(self, head: Head) -> None:
        outcome = self.outcomes.end(head.task, head)
        self.emit(TaskEnded(outcome=outcome.to_json()), task=head.task, attempt=head.attempts)

    # -- effects -----------------------------------------------------------------------------------------------------

    @overload
    async def perform(
        self, key: str, effect: ModelCall, *, on_text: Callable[[str], None] | None = None
    ) -> ModelResult: ...
    @overload
    async def perform(self, key: str, effect: ToolCall) -> ToolResult: ...
    @overload
    async def perform(self, key: str, effect: Analysis) -> AnalysisResult: ...
    @overload
    async def perform(self, key: str, effect: ProgramRun) -> ProgramResult: ...

    async def perform(self, key: str, effect: Effect, *, on_text: Callable[[str], None] | None = None) -> Result:
        _, task, attempt = Key.parse(key)
        site = Site(key, task, self._attempts.get(task) if attempt is None else attempt)
        if (recorded := self.replay.committed.get(key)) is not None:
            # What a planner is asked about tasks that run again differs by nature.
            if recorded.fingerprint != effect.fingerprint and not (task is None and self.replay.reopened):
                # The description of prompts or tools has changed since. The result was paid for, so it is still used.
                whose = "the supervisor" if site.task is None else site.task
                message = f"A call of {whose} would be worded differently now; its recorded result is used."
                self.emit(Warned(message=message), task=site.task, attempt=site.attempt)
            return self._handlers[type(effect)].read(recorded.result)
        await self._slots.may_begin()
        if (gate := self.clock.gate_here()) is not None:
            await gate()
        with self._activity:
            if self._prior is not None and (reused := await self._reuse(self._prior, site, effect)) is not None:
                return reused
            return await self._handlers[type(effect)].perform(site, effect, on_text)

    async def _reuse(self, prior: Prior, site: Site, effect: Effect) -> Result | None:
        """The success under this key in the run that this one repeats, if it would have the same result now.

        A task that was reopened there may have succeeded at a later attempt, with the same call.
        """
        handler, committed = self._handlers[type(effect)], prior.replay.committed
        for key in (site.key, *_keys_of_later_attempts(site, prior.replay)):
            if (earlier := committed.get(key)) is not None and earlier.fingerprint == effect.fingerprint:
                result = handler.read(earlier.result)
                if result.ok and (renewed := await handler.renew(effect, result)) is not None:
                    return await self._effects.take_over(site, effect, renewed, prior.run)
        return None


def _keys_of_later_attempts(site: Site, earlier: Replay) -> list[str]:
    if site.task is None or site.attempt is None or not site.key.startswith(now := f"{site.task}/{site.attempt}/"):
        return []
    last = earlier.attempts.get(site.task, 0)
    return [f"{site.task}/{number}/{site.key.removeprefix(now)}" for number in range(site.attempt + 1, last + 1)]
