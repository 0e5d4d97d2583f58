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
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from chargehand.engine.local.effect_json import describe_effect, free, may_hold_address, pack_result, unpack_result
from chargehand.engine.local.handlers import Handlers
from chargehand.engine.local.model_calls import Calls
from chargehand.engine.local.questions import Minded, Pauses, Questions, Standstill
from chargehand.engine.local.recorder import Listener, Recorder
from chargehand.engine.local.shared_ledger import SharedLedger, Site
from chargehand.engine.local.slots import Slots, Waited, never
from chargehand.engine.people import Later
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
from chargehand.values.key import above, lineage, place
from chargehand.values.outcome import Fault, Outcome, Usage

T = TypeVar("T")
R = TypeVar("R", ModelResult, ToolResult, AnalysisResult)

# How long calls in flight may go on to commit after the first Ctrl-C.
DRAIN_S = 5.0
_TURNS_BEFORE_PARKING = 50
# What effects that are not on the record wait for, in this task and those it starts.
_GATE: ContextVar[Callable[[], Awaitable[None]] | None] = ContextVar("gate", default=None)


class Parked(ChargehandError):
    """The run waits for a person and nothing else can go on."""

    exit_code = 4


@dataclass(frozen=True, slots=True)
class Prior:
    """The run a rerun repeats: its committed successes may be used again."""

    run: str
    replay: Replay


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
        self._run = run
        self._handlers = handlers
        self._replay = replay or Replay(run=run)
        self._prior = prior
        self._recorder = Recorder(run, journal, seq=self._replay.seq, clock=self._wall, listeners=listeners)
        self._slots = Slots(max_concurrent)
        self._chance = chance or random.Random()
        # `writer` is the model that writes the answer: what is held back for it is held in its money as well.
        self._purse = SharedLedger(budget or Budget(), handlers, self._recorder, writer)
        self._purse.ledger.charge(self._replay.spent_tokens, self._replay.spent_usd)
        self._purse.ledger.to_read = self._replay.written
        self._purse.ledger.short = self._replay.short
        # In flight at the crash: counted in full, and settled on the record by this session.
        self._left_behind = self._replay.in_flight()
        for each in self._left_behind:
            self._purse.ledger.charge(each.tokens, each.usd)
            self._purse.lost.append(each.usage)
        self._calls = Calls(run, self._purse, self._slots, handlers, self._recorder, self._chance, hedge_after_s)
        self._wall_clock = wall_clock
        # Set in __aenter__: the loop this session runs on, and its clock and the wall's when it began.
        self._loop: asyncio.AbstractEventLoop
        self._began = self._began_wall = 0.0
        # Task -> the attempt it is at, for effects whose key does not say.
        self._attempts: dict[str | None, int | None] = {}
        # Tasks and attempts of which something was sent, in this session or before.
        self._sent: set[tuple[str | None, int | None]] = set()
        for key in (*self._replay.committed, *self._replay.intents):
            self._mark_sent(*place(key))
        # Tasks not ended, of the run and of each nested team.
        self._expected: dict[str, int] = {}
        self._flights: dict[str, asyncio.Future[ToolResult]] = {}
        # What `once` tools begun in this session returned; None until they do, so that a broken-off one is in doubt.
        self._once: dict[str, ToolResult | None] = {}
        self._returned: list[str] = []
        self._unread: list[Usage] = []
        # What earlier sessions have told and this one comes to again on its way: it is told once.
        self._told = Counter(self._replay.told)
        # Effects, sleeps and commits under way. When none is and someone asked a person, the run parks.
        self._active = 0
        self._asking = 0
        # Asks a person now, one question at a time; without it questions stay open until another session.
        self._people = people
        self._turn = asyncio.Lock()
        self._questions = Questions(self._replay)
        # Questions a person is being asked now: the run does not park then, but its clock stands still with it.
        self._inline = 0
        self._standstill = Standstill()
        self._pauses = Pauses(self._replay.waits(), self.now)
        self._parked: asyncio.Future[None] | None = None

    # -- life --------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> LocalEngine:
        self._loop = asyncio.get_running_loop()
        self._began, self._began_wall = self._loop.time(), self._wall_clock()
        self._parked = self._loop.create_future()
        await self._recorder.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        try:
            await self._recorder.__aexit__(*exc)
        finally:
            if self._parked is not None:
                self._parked.cancel()

    @property
    def run(self) -> str:
        return self._run

    @property
    def replay(self) -> Replay:
        return self._replay

    @property
    def lost(self) -> Usage:
        """What was set aside for calls that were broken off, in this session or before."""
        return Usage.total([*self._replay.lost, *self._purse.lost])

    @property
    def estimated(self) -> list[int]:
        """Tokens counted for each call, in this session or before, that did not say what it used."""
        return [*self._replay.estimated, *self._purse.estimated]

    def settle_left_behind(self) -> None:
        """Put on the record what is counted for the calls that were in flight when a session before died."""
        for each in (*self._replay.written_off.values(), *self._left_behind):
            self._recorder.emit("budget_settled", *place(each.key), each.settled)

    @property
    def unread(self) -> Usage:
        """What calls of the supervisor used that were answered as its time was over: nobody here has counted it."""
        return Usage.total(self._unread)

    @property
    def ledger(self) -> Ledger:
        return self._purse.ledger

    def now(self, task: str | None = None) -> float:
        clock = self._loop.time()
        running = self._replay.owned_s + clock - self._began - self._standstill.seconds(clock)
        return running if task is None else running - self._pauses.seconds(task)

    def timeout(self, task: str, left: Callable[[], float | None]) -> Minded:
        return Minded(self._pauses, task, left)

    @contextmanager
    def gate(self, gate: Callable[[], Awaitable[None]]) -> Generator[None]:
        token = _GATE.set(gate)
        try:
            yield
        finally:
            _GATE.reset(token)

    async def sleep(self, seconds: float) -> None:
        with _Busy(self):
            await asyncio.sleep(seconds)

    def expect(self, tasks: int, within: str = "") -> None:
        self._expected[within] = tasks
        self._purse.unfinished = max(sum(self._expected.values()), 1)

    async def until_parked(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work; Parked is raised as soon as it only waits for people."""
        assert self._parked is not None
        task = asyncio.ensure_future(work)
        task.add_done_callback(lambda _: self._parked and self._parked.cancel())
        try:
            await self._parked
        except asyncio.CancelledError:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                raise
            return task.result()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise Parked

    async def drain(self, seconds: float = DRAIN_S) -> None:
        """Start nothing new, and give effects in flight some seconds to commit."""
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
        """Return once everything emitted so far is on disk."""
        await self._recorder.commit()

    def _wall(self) -> float:
        return self._began_wall + self._loop.time() - self._began

    async def decide(self, key: str, decision: str, choose: Callable[[], JSON], reason: str = "") -> JSON:
        if key in self._replay.decisions:
            return self._replay.decisions[key]
        value = choose()
        task, attempt = place(key)
        self.emit("decision", task=task, attempt=attempt, key=key, decision=decision, value=value, reason=reason)
        with _Busy(self):
            await self.commit()
        return value

    def approved_plan(self, within: str = "") -> dict[str, JSON] | None:
        return self._replay.approved_within.get(within) if within else self._replay.approved

    def recorded_decision(self, key: str) -> JSON:
        return self._replay.decisions.get(key)

    def ended_outcome(self, task: str) -> Outcome | None:
        return self._replay.ended.get(task)

    def attempted_outcome(self, task: str, attempt: int) -> Outcome | None:
        return self._replay.attempted.get(f"{task}/{attempt}")

    def began(self, task: str, attempt: int | None = None) -> float | None:
        return self._replay.begun.get(task if attempt is None else f"{task}/{attempt}")

    def has_sent(self, task: str, attempt: int) -> bool:
        return (task, attempt) in self._sent

    def hold(self, tokens: int) -> None:
        self._purse.ledger.to_write = tokens

    def release(self) -> None:
        self._purse.ledger.release()

    def allot(self, task: str, budget: Budget) -> None:
        self._purse.ledger.allot(task, budget, *self._replay.spent_by(task))

    def affordable(self, tokens: int = 0) -> bool:
        return self._purse.ledger.affordable(tokens)

    def chance(self) -> float:
        return self._chance.random()

    def attempts(self, task: str) -> int:
        return self._replay.reopened.get(task, 0)

    async def ask(self, key: str, question: Question) -> JSON:
        answers = self._questions.answers
        if key in answers:
            return answers[key]
        task, _ = place(key)
        with ExitStack() as pauses:
            for each in lineage(task) if task is not None else ():
                pauses.enter_context(self._pauses.pause(each))
            return await self._wait_for_answer(key, question)

    async def _wait_for_answer(self, key: str, question: Question) -> JSON:
        answers = self._questions.answers
        await self._put(key, question)
        if key not in answers and self._people is not None:
            await self._ask_now(key, self._people)
        if key in answers:
            return answers[key]
        self._asking += 1
        try:
            self._park_if_only_people_can_go_on()
            return await never()
        finally:
            self._asking -= 1

    async def _put(self, key: str, question: Question) -> None:
        """On the record before anybody is asked, with the answer where the run that this one repeats has it."""
        if self._slots.draining:
            await never()  # nothing new is begun; the session ends around us
        site = Site(key, *place(key))
        if self._prior is not None and self._questions.borrow(key, question, self._prior.replay):
            self._emit_at(site, "question_asked", question=self._questions[key].to_json())
            self._emit_at(site, "question_answered", answer=self._questions.answers[key], by=self._prior.run)
        elif key not in self._questions:
            self._emit_at(site, "question_asked", question=self._questions.add(key, question).to_json())
        with _Busy(self):
            await self.commit()

    async def _ask_now(self, key: str, people: Callable[[Question], Awaitable[JSON]]) -> None:
        """Ask the person who is there, after those who asked before; they may leave it for later."""
        self._inline += 1
        self._mind_the_clock()
        try:
            async with self._turn:
                if key in self._questions.answers:
                    return  # two asked the same at the same time
                answer = self._questions.answers[key] = await people(self._questions[key])
                parked = round(self._standstill.untold(self._loop.time()), 3)
                self._emit_at(Site(key, *place(key)), "question_answered", answer=answer, by="person", parked_s=parked)
                with _Busy(self):
                    await self.commit()
        except Later:
            return
        finally:
            self._inline -= 1
            self._mind_the_clock()
            self._park_if_only_people_can_go_on()

    def _mind_the_clock(self) -> None:
        self._standstill.update(self._inline > 0 and not self._active, self._loop.time())

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
        if (recorded := self._replay.committed.get(key)) is not None:
            if recorded["fingerprint"] != effect.fingerprint:
                # Prompts or tools are described differently by now. What was paid for stands all the same.
                message = f"{key} would be asked for differently today; its recorded result is used."
                self.emit("warning", task=site.task, attempt=site.attempt, message=message)
            return unpack_result(effect, recorded["result"])
        if (gate := _GATE.get()) is not None:
            await gate()
        if self._slots.draining:
            await never()  # nothing new is begun; the session ends around us
        with _Busy(self):
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
            self._note_addresses(result)
        self._emit_at(site, "reused", fingerprint=effect.fingerprint, result=pack_result(result), source=prior.run)
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

    def tool_texts(self) -> Iterable[str]:
        for recorded in self._replay.committed.values():
            if "text" in recorded["result"] and may_hold_address(recorded["result"]["text"]):
                yield recorded["result"]["text"]
        yield from self._returned

    def _note_addresses(self, result: ToolResult) -> None:
        if may_hold_address(result.text):
            self._returned.append(result.text)

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
        self._note_addresses(timed)
        return await self._finish(site, effect, timed)

    async def _analysis(self, site: Site, effect: Analysis) -> AnalysisResult:
        """What is known of the same content from earlier runs is taken; the rest is worth a core and a slot."""
        look = await self._handlers.look(effect)
        if isinstance(look, Fault):
            return await self._finish(site, effect, AnalysisResult(error=look))
        if not look.missing:
            result = look.result()
            if result.files:
                self._emit_at(
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
        self._mark_sent(site.task, site.attempt)
        for message in effect.messages if isinstance(effect, ModelCall) else ():
            self._recorder.store(message)
        self._emit_at(site, effect.started, fingerprint=effect.fingerprint, **describe_effect(effect), **clamps)

    def _mark_sent(self, task: str | None, attempt: int | None) -> None:
        self._sent.add((task, attempt))
        self._sent.update(above(task) if task is not None else ())

    async def _finish(self, site: Site, effect: Effect, result: R) -> R:
        """Put the result on disk. It is in the buffer before the first await, so cancellation cannot lose it."""
        self._emit_at(site, effect.ended, fingerprint=effect.fingerprint, result=pack_result(result))
        await self.commit()
        return result

    def _emit_at(self, site: Site, kind: EventKind, **data: Any) -> None:
        self._recorder.emit(kind, site.task, site.attempt, {"key": site.key, **data})

    def _intent(self, site: Site, effect: Effect) -> dict[str, Any] | None:
        """What an earlier session recorded before it sent this very effect and stopped."""
        intent = self._replay.intents.get(site.key)
        return intent if intent is not None and intent["fingerprint"] == effect.fingerprint else None

    def enter(self) -> None:
        self._active += 1
        if self._inline:
            self._mind_the_clock()

    def leave(self) -> None:
        self._active -= 1
        if not self._active:
            self._mind_the_clock()
            self._park_if_only_people_can_go_on()

    def _park_if_only_people_can_go_on(self) -> None:
        if self._asking and not self._active and not self._inline:
            self._park(_TURNS_BEFORE_PARKING)

    def _park(self, turns: int) -> None:
        # Some loop turns later: what just ended may have woken a task that starts something new.
        if self._active or self._inline or not self._asking or self._parked is None or self._parked.done():
            return
        if turns:
            self._loop.call_soon(self._park, turns - 1)
        else:
            self._parked.set_result(None)


class _Busy:
    """Counts something under way; a plain class because it is entered several times an effect."""

    __slots__ = ("_engine",)

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine

    def __enter__(self) -> None:
        self._engine.enter()

    def __exit__(self, *exc: object) -> None:
        self._engine.leave()


def _bug(effect: Effect, error: Exception) -> Fault:
    return Fault(kind="internal", message=f"{type(error).__name__} in the {effect.kind} handler: {error}")
