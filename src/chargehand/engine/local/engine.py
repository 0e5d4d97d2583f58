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
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import nullcontext
from typing import Any, TypeVar, overload

from chargehand.engine.engine_session import DRAIN_S, Listener, Prior
from chargehand.engine.local.activity import Activity
from chargehand.engine.local.clock import LocalClock
from chargehand.engine.local.effect_json import describe_effect, free, pack_result, unpack_result
from chargehand.engine.local.handlers import Handlers
from chargehand.engine.local.model_calls import Calls
from chargehand.engine.local.questions import Inquiries
from chargehand.engine.local.recorder import Recorder
from chargehand.engine.local.run_record import LocalRecord
from chargehand.engine.local.shared_ledger import LocalBudget, SharedLedger
from chargehand.engine.local.site import Site
from chargehand.engine.local.slots import Slots, Waited, never
from chargehand.errors import ChargehandError
from chargehand.record.journal import Journal
from chargehand.record.replay import TOLD_ONCE, Replay, telling
from chargehand.values.base import JSON
from chargehand.values.budget import Budget, Ledger
from chargehand.values.effect import (
    Analysis,
    AnalysisResult,
    Effect,
    ModelCall,
    ModelResult,
    Question,
    Result,
    ToolCall,
    ToolResult,
    usage_of,
)
from chargehand.values.event import EventKind
from chargehand.values.key import place
from chargehand.values.outcome import Fault, Usage

T = TypeVar("T")
R = TypeVar("R", ModelResult, ToolResult, AnalysisResult)


class LocalEngine:
    """One session of one run. Open it with `async with`: leaving writes what is left of the record."""

    def __init__(
        self,
        run: str,
        journal: Journal,
        handlers: Handlers,
        *,
        replay: Replay | None = None,
        prior: Prior | None = None,
        budget: Budget | None = None,
        max_concurrent: int = 8,
        hedge_after_s: float | None = None,
        writer: str | None = None,
        listeners: tuple[Listener, ...] = (),
        people: Callable[[Question], Awaitable[JSON]] | None = None,
        wall_clock: Callable[[], float] = time.time,
        chance: random.Random | None = None,
    ) -> None:
        self.run = run
        self.replay = replay or Replay(run=run)
        self._handlers = handlers
        self._prior = prior
        self._activity = Activity()
        self._slots = Slots(max_concurrent)
        self.clock = LocalClock(self.replay, self._activity, wall_clock, chance)
        self._recorder = Recorder(run, journal, seq=self.replay.seq, clock=self.clock.wall, listeners=listeners)
        self.record = LocalRecord(self.replay)
        # `writer` is the model that writes the answer: what is held back for it is held in its money as well.
        shared = SharedLedger(budget or Budget(), handlers, self._recorder, writer)
        self.budget = LocalBudget(shared, self.replay, self._recorder)
        self._calls = Calls(run, shared, self._slots, handlers, self._recorder, self.clock.random, hedge_after_s)
        self._inquiries = Inquiries(self.replay, prior, people, self._recorder, self._slots, self._activity, self.clock)
        # Set in __aenter__: the loop this session runs on.
        self._loop: asyncio.AbstractEventLoop
        # Task -> the attempt it is at, for effects whose key does not say.
        self._attempts: dict[str | None, int | None] = {}
        self._flights: dict[str, asyncio.Future[ToolResult]] = {}
        # What `once` tools begun in this session returned; None until they do, so that a broken-off one is in doubt.
        self._once: dict[str, ToolResult | None] = {}
        self._unread: list[Usage] = []
        # What earlier sessions have told and this one comes to again on its way: it is told once.
        self._told = Counter(self.replay.told)

    # -- life --------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> LocalEngine:
        self._loop = asyncio.get_running_loop()
        self._activity.open()
        self.clock.open()
        await self._recorder.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        try:
            await self._recorder.__aexit__(*exc)
        finally:
            self._activity.close()

    @property
    def ledger(self) -> Ledger:
        return self.budget.ledger

    @property
    def lost(self) -> Usage:
        return self.budget.lost

    @property
    def estimated(self) -> list[int]:
        return self.budget.estimated

    @property
    def unread(self) -> Usage:
        return Usage.total(self._unread)

    def settle_left_behind(self) -> None:
        self.budget.settle_left_behind()

    async def until_parked(self, work: Coroutine[Any, Any, T]) -> T:
        return await self._activity.run_until_parked(work)

    async def drain(self, seconds: float = DRAIN_S) -> None:
        self._slots.draining = True
        try:
            async with asyncio.timeout(seconds):
                await self._slots.idle.wait()
                await self.commit()
        except TimeoutError:
            self.emit("warning", message=f"Calls still in flight after {seconds:g} s were left; resume repeats them.")

    # -- the record --------------------------------------------------------------------------------------------------

    def emit(self, kind: EventKind, *, task: str | None = None, attempt: int | None = None, **data: Any) -> None:
        if kind == "attempt_started":
            self._slots.order(task)
            self._attempts[task] = attempt
        if kind in TOLD_ONCE and self._told[mark := telling(kind, task, data)]:
            self._told[mark] -= 1
            return
        self._recorder.emit(kind, task, attempt, data)

    async def commit(self) -> None:
        await self._recorder.commit()

    async def decide(self, key: str, decision: str, choose: Callable[[], JSON], reason: str = "") -> JSON:
        if key in self.replay.decisions:
            return self.replay.decisions[key]
        value = choose()
        task, attempt = place(key)
        self.emit("decision", task=task, attempt=attempt, key=key, decision=decision, value=value, reason=reason)
        with self._activity:
            await self.commit()
        return value

    async def ask(self, key: str, question: Question) -> JSON:
        return await self._inquiries.ask(key, question)

    # -- effects -----------------------------------------------------------------------------------------------------

    @overload
    async def perform(
        self, key: str, effect: ModelCall, *, on_text: Callable[[str], None] | None = None
    ) -> ModelResult: ...
    @overload
    async def perform(self, key: str, effect: ToolCall) -> ToolResult: ...
    @overload
    async def perform(self, key: str, effect: Analysis) -> AnalysisResult: ...

    async def perform(
        self, key: str, effect: Effect, *, on_text: Callable[[str], None] | None = None
    ) -> ModelResult | ToolResult | AnalysisResult:
        task, attempt = place(key)
        site = Site(key, task, self._attempts.get(task) if attempt is None else attempt)
        if (recorded := self.replay.committed.get(key)) is not None:
            if recorded["fingerprint"] != effect.fingerprint:
                # Prompts or tools are described differently by now. What was paid for stands all the same.
                message = f"{key} would be asked for differently today; its recorded result is used."
                self.emit("warning", task=site.task, attempt=site.attempt, message=message)
            return unpack_result(effect, recorded["result"])
        if (gate := self.clock.gate_here()) is not None:
            await gate()
        if self._slots.draining:
            await never()  # nothing new is begun; the session ends around us
        with self._activity:
            if self._prior is not None and (reused := await self._reuse(self._prior, site, effect)) is not None:
                return reused
            if isinstance(effect, ModelCall):
                return await self._model(site, effect, on_text)
            if isinstance(effect, Analysis):
                return await self._analysis(site, effect)
            if effect.effect == "once":
                return await self._only_once(site, effect)
            return await self._tool(site, effect)

    async def _reuse(self, prior: Prior, site: Site, effect: Effect) -> Result | None:
        """The success the run that this one repeats has under this key, if it would come out the same now."""
        earlier = prior.replay.committed.get(site.key)
        if earlier is None or earlier["fingerprint"] != effect.fingerprint:
            return None
        result = unpack_result(effect, earlier["result"])
        if not result.ok:
            return None
        if isinstance(result, ToolResult) and not await asyncio.to_thread(self._handlers.still_valid, result):
            return None
        if isinstance(effect, Analysis) and isinstance(result, AnalysisResult):
            look = await self._handlers.look(effect)
            if isinstance(look, Fault) or not look.lasting or look.content != result.content:
                return None
            result = result.model_copy(update={"reused": result.files})
        result = free(result)
        if isinstance(result, ToolResult):
            self.record.keep_text(result)
        self._recorder.emit_at(
            site, "reused", fingerprint=effect.fingerprint, result=pack_result(result), source=prior.run
        )
        await self.commit()
        return result

    async def _model(self, site: Site, effect: ModelCall, on_text: Callable[[str], None] | None) -> ModelResult:
        async def begin(max_output: int, sent_before: int) -> None:
            self._begin(site, effect, max_output=max_output, send=sent_before + 1)
            await self.commit()  # on disk before it is sent, so that a repeat after a crash is the same to the byte

        result = await self._calls.make(site, effect, self._intent(site, effect), begin, on_text)
        try:
            return await self._finish(site, effect, result)
        except asyncio.CancelledError:
            if site.task is None:
                # Answered as the supervisor's time was over: it goes on the record, and the next session reads it.
                self._unread.append(usage_of(result, effect.model))
            raise

    async def _only_once(self, site: Site, effect: ToolCall) -> ToolResult:
        """A tool that must not run twice: asked for again it gives its result, broken off and in doubt an error."""
        if (flight := self._flights.get(site.key)) is not None:
            return await asyncio.shield(flight)
        if (returned := self._once.get(site.key)) is not None:
            return returned
        if site.key in self._once or self._intent(site, effect) is not None:
            message = (
                f"{effect.tool} was under way when it was broken off and may or may not have happened; "
                "check, then run the rest again with `chargehand rerun`."
            )
            return await self._finish(site, effect, ToolResult(error=Fault(kind="in_doubt", message=message)))
        flight = self._flights[site.key] = self._loop.create_future()
        try:
            result = await self._tool(site, effect)
        except BaseException:
            flight.cancel()
            raise
        else:
            flight.set_result(result)
            self._once[site.key] = result
            return result
        finally:
            del self._flights[site.key]

    async def _tool(self, site: Site, effect: ToolCall) -> ToolResult:
        waited = Waited()
        await self._slots.take(site.task, waited)
        began = self._loop.time()
        try:
            self._begin(site, effect, send=1 + (self._intent(site, effect) or {}).get("send", 0))
            if effect.effect == "once":
                await self.commit()  # any other may run again after a crash: it is on disk with its result
                self._once[site.key] = None
            began = self._loop.time()
            result = await self._handlers.tool(effect)
        except ChargehandError:
            raise  # the record itself failed, or the run is not ours any more
        except Exception as error:  # noqa: BLE001 -- recorded: a bug in a handler is one task's failure
            result = ToolResult(error=_bug(effect, error))
        finally:
            self._slots.free()
        timed = result.model_copy(update={"seconds": self._loop.time() - began, "waiting_s": waited.seconds})
        self.record.keep_text(timed)
        return await self._finish(site, effect, timed)

    async def _analysis(self, site: Site, effect: Analysis) -> AnalysisResult:
        """What is known of the same content from earlier runs is taken; the rest is worth a core and a slot."""
        look = await self._handlers.look(effect)
        if isinstance(look, Fault):
            return await self._finish(site, effect, AnalysisResult(error=look))
        if not look.missing:
            result = look.result()
            if result.files:
                self._recorder.emit_at(
                    site, "reused", fingerprint=effect.fingerprint, result=pack_result(result), source="cache"
                )
                await self.commit()
                return result
            return await self._finish(site, effect, result)
        waited, began = Waited(), self._loop.time()
        async with nullcontext() if look.small else self._handlers.cores:
            waited.seconds = self._loop.time() - began
            await self._slots.take(site.task, waited)
            began = self._loop.time()
            try:
                self._begin(site, effect, send=1 + (self._intent(site, effect) or {}).get("send", 0))
                result = await self._handlers.analyse(look)
            finally:
                self._slots.free()
        timed = result.model_copy(update={"seconds": self._loop.time() - began, "waiting_s": waited.seconds})
        return await self._finish(site, effect, timed)

    def _begin(self, site: Site, effect: Effect, **clamps: int) -> None:
        self.record.mark_sent(site.task, site.attempt)
        for message in effect.messages if isinstance(effect, ModelCall) else ():
            self._recorder.store(message)
        self._recorder.emit_at(
            site, effect.started, fingerprint=effect.fingerprint, **describe_effect(effect), **clamps
        )

    async def _finish(self, site: Site, effect: Effect, result: R) -> R:
        """Put the result on disk. It is in the buffer before the first await, so cancellation cannot lose it."""
        self._recorder.emit_at(site, effect.ended, fingerprint=effect.fingerprint, result=pack_result(result))
        await self.commit()
        return result

    def _intent(self, site: Site, effect: Effect) -> dict[str, Any] | None:
        """What an earlier session recorded before it sent this very effect and stopped."""
        intent = self.replay.intents.get(site.key)
        return intent if intent is not None and intent["fingerprint"] == effect.fingerprint else None


def _bug(effect: Effect, error: Exception) -> Fault:
    return Fault(kind="internal", message=f"{type(error).__name__} in the {effect.kind} handler: {error}")
