"""The engine port on asyncio and a journal: effects run in this process, each committed before it returns.

How an effect goes through `perform`:

    committed under this key, same fingerprint?    -> the recorded result
    committed in the run this one repeats?         -> recorded here as reused, returned
    budget reserved -> slot taken -> *_called on disk -> handler (transport retries) -> slot freed
    -> result on disk -> returned
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, overload

from chargehand.budget import SMALLEST_OUTPUT, Budget, Deny, Grant, Ledger, Wait
from chargehand.effect import Effect, ModelCall, ModelResult, Question, Result, ToolCall, ToolResult, place
from chargehand.engines.recorder import Listener, Recorder
from chargehand.errors import ChargehandError, ModelError
from chargehand.event import EventKind
from chargehand.handlers import Handlers
from chargehand.journal import Journal
from chargehand.journal.replay import Replay
from chargehand.limits import Gate
from chargehand.messages import TokenCount
from chargehand.models import Attribution
from chargehand.outcome import Fault, Outcome
from chargehand.value import JSON

T = TypeVar("T")
R = TypeVar("R", ModelResult, ToolResult)

TRANSPORT_RETRIES = 4
LONGEST_BACKOFF_S = 30.0
# How long calls in flight may go on to commit after the first Ctrl-C.
DRAIN_S = 5.0
_TURNS_BEFORE_PARKING = 50


class Parked(ChargehandError):
    """The run waits for a person and nothing else can go on."""

    exit_code = 4


@dataclass(frozen=True, slots=True)
class Prior:
    """The run a rerun repeats: its committed successes may be used again."""

    run: str
    replay: Replay


class _Site(NamedTuple):
    """Where an effect happens: its key, and the task and attempt in it."""

    key: str
    task: str | None
    attempt: int | None


@dataclass(slots=True)
class _Waited:
    """Seconds one effect was kept waiting, and whether it was sent at all."""

    seconds: float = 0.0
    sent: bool = False


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
        listeners: tuple[Listener, ...] = (),
        wall_clock: Callable[[], float] = time.time,
        chance: random.Random | None = None,
    ) -> None:
        self._run = run
        self._handlers = handlers
        self._replay = replay or Replay(run=run)
        self._prior = prior
        self._recorder = Recorder(run, journal, seq=self._replay.seq, clock=self._wall, listeners=listeners)
        self._gate = Gate(max_concurrent)
        self._chance = chance or random.Random()
        self._ledger = Ledger(budget or Budget())
        self._ledger.charge(self._replay.spent_tokens, self._replay.spent_usd)
        for tokens, usd in self._replay.in_flight():
            self._ledger.charge(tokens, usd)  # in flight at the crash: counted in full
        self._wall_clock = wall_clock
        # Set in __aenter__: the loop this session runs on, and its clock and the wall's when it began.
        self._loop: asyncio.AbstractEventLoop
        self._began = self._began_wall = 0.0
        self._flights: dict[str, asyncio.Future[ToolResult]] = {}
        # What `once` tools begun in this session returned; None until they do, so that a broken-off one is in doubt.
        self._once: dict[str, ToolResult | None] = {}
        self._budget_waiters: list[asyncio.Future[None]] = []
        self._orders: dict[str | None, int] = {None: -1}
        self._unfinished = 1
        # Effects, sleeps and commits under way. When none is and someone asked a person, the run parks.
        self._active = 0
        self._asking = 0
        self._parked: asyncio.Future[None] | None = None
        self._draining = False
        # Set while no slot is held: what a drain waits for.
        self._idle = asyncio.Event()
        self._idle.set()

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
    def ledger(self) -> Ledger:
        return self._ledger

    def now(self) -> float:
        return self._replay.owned_s + self._loop.time() - self._began

    async def sleep(self, seconds: float) -> None:
        with _Busy(self):
            await asyncio.sleep(seconds)

    def expect(self, tasks: int) -> None:
        """How many tasks are not ended: what is left of the budget is shared between them."""
        self._unfinished = max(tasks, 1)

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
        self._draining = True
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
                await self.commit()
        except TimeoutError:
            self.emit("warning", message=f"Calls still in flight after {seconds:g} s were left; resume repeats them.")

    # -- the record --------------------------------------------------------------------------------------------------

    def emit(self, kind: EventKind, *, task: str | None = None, attempt: int | None = None, **data: Any) -> None:
        if kind == "attempt_started":
            self._orders.setdefault(task, len(self._orders))
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

    def ended(self, task: str) -> Outcome | None:
        return self._replay.ended.get(task)

    def attempts(self, task: str) -> int:
        return self._replay.reopened.get(task, 0)

    async def ask(self, key: str, question: Question) -> JSON:
        if key in self._replay.answers:
            return self._replay.answers[key]
        if key not in self._replay.questions:
            task, attempt = place(key)
            self.emit("question_asked", task=task, attempt=attempt, key=key, question=question.to_json())
            with _Busy(self):
                await self.commit()
        self._asking += 1
        try:
            self._park_if_only_people_can_go_on()
            return await _never()
        finally:
            self._asking -= 1

    # -- effects -----------------------------------------------------------------------------------------------------

    @overload
    async def perform(
        self, key: str, effect: ModelCall, *, on_text: Callable[[str], None] | None = None
    ) -> ModelResult: ...
    @overload
    async def perform(self, key: str, effect: ToolCall) -> ToolResult: ...

    async def perform(
        self, key: str, effect: Effect, *, on_text: Callable[[str], None] | None = None
    ) -> ModelResult | ToolResult:
        site = _Site(key, *place(key))
        recorded = self._replay.committed.get(key)
        if recorded is not None and recorded["fingerprint"] == effect.fingerprint:
            return _result(effect, recorded["result"])
        if self._draining:
            await _never()  # nothing new is begun; the session ends around us
        with _Busy(self):
            if self._prior is not None and (reused := await self._reuse(self._prior, site, effect)) is not None:
                return reused
            if isinstance(effect, ModelCall):
                return await self._model(site, effect, on_text)
            if effect.effect == "once":
                return await self._only_once(site, effect)
            return await self._tool(site, effect)

    async def _reuse(self, prior: Prior, site: _Site, effect: Effect) -> Result | None:
        """The success the run that this one repeats has under this key, if it would come out the same now."""
        earlier = prior.replay.committed.get(site.key)
        if earlier is None or earlier["fingerprint"] != effect.fingerprint:
            return None
        result = _result(effect, earlier["result"])
        if not result.ok:
            return None
        if isinstance(result, ToolResult) and not await asyncio.to_thread(self._handlers.still_valid, result):
            return None
        result = _free(result)
        self._emit_at(site, "reused", fingerprint=effect.fingerprint, result=_packed(result), source=prior.run)
        await self.commit()
        return result

    async def _model(self, site: _Site, effect: ModelCall, on_text: Callable[[str], None] | None) -> ModelResult:
        waited = _Waited()
        intent = self._intent(site, effect)
        granted = await self._reserve(site, effect, intent, waited)
        if isinstance(granted, Deny):
            denied = ModelResult(error=Fault(kind="budget", message=granted.reason), waiting_s=waited.seconds)
            return await self._finish(site, effect, denied)
        max_output = granted.reservation.output_tokens
        tokens: int | None = None
        usd: float | None = None
        try:
            sends = 1 + (intent or {}).get("send", 0)
            result = await self._call(site, effect, max_output, sends, waited, on_text)
            if result.reply is not None and result.reply.usage is not None:
                tokens, usd = result.reply.usage.input_tokens + result.reply.usage.output_tokens, result.usd
            elif result.error is not None and result.error.kind not in ("timeout", "connection"):
                tokens, usd = 0, 0.0  # the provider refused it: nothing was used
        finally:
            if not waited.sent:
                tokens, usd = 0, 0.0  # stopped in the queue: nothing was used
            self._settle(site, tokens, usd)
        return await self._finish(site, effect, result)

    async def _call(
        self,
        site: _Site,
        effect: ModelCall,
        max_output: int,
        sends: int,
        waited: _Waited,
        on_text: Callable[[str], None] | None,
    ) -> ModelResult:
        """The call, and while that may help the same bytes again, with no slot held in between."""
        idempotency_key = _idempotency_key(self._run, site.key, effect)
        attribution = Attribution(self._run, site.task, site.attempt, effect.role, idempotency_key)
        worked = 0.0
        for retry in range(TRANSPORT_RETRIES + 1):
            await self._take_slot(site, waited)
            began = self._loop.time()
            try:
                if retry == 0:
                    await self._begin(site, effect, max_output=max_output, send=sends)
                    began = self._loop.time()
                waited.sent = True
                reply, usd = await self._handlers.model(effect, max_output, attribution, on_text)
                worked += self._loop.time() - began
                return ModelResult(reply=reply, usd=usd, seconds=worked, waiting_s=waited.seconds)
            except ModelError as error:
                worked += self._loop.time() - began
                if not error.transient or retry == TRANSPORT_RETRIES:
                    fault = Fault(kind=error.kind, message=str(error))
                    return ModelResult(error=fault, seconds=worked, waiting_s=waited.seconds)
                after = self._backoff(retry, error)
                self.emit(
                    "decision",
                    task=site.task,
                    attempt=site.attempt,
                    key=f"{site.key}/retry/{retry + 1}",
                    decision="transport_retry",
                    value={"after_s": round(after, 3)},
                    reason=str(error),
                )
            except ChargehandError:
                raise  # the record itself failed, or the run is not ours any more
            except Exception as error:  # noqa: BLE001 -- recorded: a bug in a handler is one task's failure
                return ModelResult(error=_bug(effect, error), seconds=worked, waiting_s=waited.seconds)
            finally:
                self._free_slot()
            began = self._loop.time()
            await asyncio.sleep(after)
            waited.seconds += self._loop.time() - began
        raise AssertionError("the last retry returns")

    def _backoff(self, retry: int, error: ModelError) -> float:
        """Full jitter below a doubling ceiling, or what the provider asked for and a little."""
        if error.retry_after is not None:
            return error.retry_after + self._chance.uniform(0, 0.1)
        return self._chance.uniform(0, min(LONGEST_BACKOFF_S, 0.5 * 2**retry))

    async def _only_once(self, site: _Site, effect: ToolCall) -> ToolResult:
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

    async def _tool(self, site: _Site, effect: ToolCall) -> ToolResult:
        waited = _Waited()
        await self._take_slot(site, waited)
        began = self._loop.time()
        try:
            await self._begin(site, effect, send=1 + (self._intent(site, effect) or {}).get("send", 0))
            began = self._loop.time()
            if effect.effect == "once":
                self._once[site.key] = None
            result = await self._handlers.tool(effect)
        except ChargehandError:
            raise  # the record itself failed, or the run is not ours any more
        except Exception as error:  # noqa: BLE001 -- recorded: a bug in a handler is one task's failure
            result = ToolResult(error=_bug(effect, error))
        finally:
            self._free_slot()
        timed = result.model_copy(update={"seconds": self._loop.time() - began, "waiting_s": waited.seconds})
        return await self._finish(site, effect, timed)

    async def _begin(self, site: _Site, effect: Effect, **clamps: int) -> None:
        """On disk before it happens, so that a repeat after a crash is the same to the byte."""
        self._emit_at(site, effect.started, fingerprint=effect.fingerprint, **self._describe(effect), **clamps)
        await self.commit()

    async def _finish(self, site: _Site, effect: Effect, result: R) -> R:
        """Put the result on disk. It is in the buffer before the first await, so cancellation cannot lose it."""
        self._emit_at(site, effect.ended, fingerprint=effect.fingerprint, result=_packed(result))
        await self.commit()
        return result

    def _emit_at(self, site: _Site, kind: EventKind, **data: Any) -> None:
        self.emit(kind, task=site.task, attempt=site.attempt, key=site.key, **data)

    def _intent(self, site: _Site, effect: Effect) -> dict[str, Any] | None:
        """What an earlier session recorded before it sent this very effect and stopped."""
        intent = self._replay.intents.get(site.key)
        return intent if intent is not None and intent["fingerprint"] == effect.fingerprint else None

    def _describe(self, effect: Effect) -> dict[str, Any]:
        if isinstance(effect, ToolCall):
            return {
                "worker": effect.worker,
                "tool": effect.tool,
                "arguments": effect.arguments,
                "effect": effect.effect,
            }
        for message in effect.messages:
            self._recorder.store(message)
        return {
            "role": effect.role,
            "worker": effect.worker,
            "model": effect.model,
            "messages": [message.digest for message in effect.messages],
            "tools": [tool.name for tool in effect.tools],
            "output_schema": effect.output_schema is not None,
            "options": effect.options,
        }

    # -- budget and slots --------------------------------------------------------------------------------------------

    async def _reserve(
        self, site: _Site, effect: ModelCall, intent: Mapping[str, Any] | None, waited: _Waited
    ) -> Grant | Deny:
        """Set aside what the call may cost; wait while others could free enough."""
        price = self._handlers.price(effect)
        per_token = None if price is None else (price.input / 1e6, price.output / 1e6)
        estimate = self._handlers.estimate(effect)
        # A repeat asks for just what was recorded, so that it is the same bytes: its share was decided then.
        cap = intent["max_output"] if intent is not None else effect.output_cap
        least = cap if intent is not None else SMALLEST_OUTPUT
        while True:
            share = 1 if intent is not None else self._unfinished
            match self._ledger.reserve(site.key, estimate, cap, per_token, share, least):
                case Wait():
                    began = self._loop.time()
                    turn: asyncio.Future[None] = self._loop.create_future()
                    self._budget_waiters.append(turn)
                    await turn
                    waited.seconds += self._loop.time() - began
                case Deny() as denied:
                    self.emit(
                        "decision",
                        task=site.task,
                        attempt=site.attempt,
                        key=f"{site.key}/budget",
                        decision="budget_denial",
                        value=True,
                        reason=denied.reason,
                    )
                    return denied
                case Grant() as granted:
                    reservation = granted.reservation
                    self._emit_at(site, "budget_reserved", tokens=reservation.tokens, usd=reservation.usd)
                    return granted

    def _settle(self, site: _Site, tokens: int | None, usd: float | None) -> None:
        reservation = self._ledger.open[site.key]
        self._ledger.settle(site.key, tokens, usd)
        self._emit_at(
            site,
            "budget_settled",
            tokens=reservation.tokens if tokens is None else tokens,
            usd=reservation.usd if usd is None and tokens is None else usd,
            estimated=tokens is None,
        )
        if self._budget_waiters:
            waiters, self._budget_waiters = self._budget_waiters, []
            for turn in waiters:
                if not turn.done():
                    turn.set_result(None)

    async def _take_slot(self, site: _Site, waited: _Waited) -> None:
        began = self._loop.time()
        await self._gate.acquire(self._orders.setdefault(site.task, len(self._orders)))
        self._idle.clear()
        waited.seconds += self._loop.time() - began
        if self._draining:
            self._free_slot()
            await _never()

    def _free_slot(self) -> None:
        self._gate.release()
        if not self._gate.held:
            self._idle.set()

    def enter(self) -> None:
        self._active += 1

    def leave(self) -> None:
        self._active -= 1
        if not self._active:
            self._park_if_only_people_can_go_on()

    def _park_if_only_people_can_go_on(self) -> None:
        if self._asking and not self._active:
            self._park(_TURNS_BEFORE_PARKING)

    def _park(self, turns: int) -> None:
        # Some loop turns later: what just ended may have woken a task that starts something new.
        if self._active or not self._asking or self._parked is None or self._parked.done():
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


async def _never() -> None:
    await asyncio.get_running_loop().create_future()


def _bug(effect: Effect, error: Exception) -> Fault:
    return Fault(kind="internal", message=f"{type(error).__name__} in the {effect.kind} handler: {error}")


def _packed(result: Result) -> dict[str, Any]:
    return result.model_dump(mode="json", exclude_defaults=True)


def _result(effect: Effect, data: dict[str, Any]) -> Result:
    return ModelResult.model_validate(data) if isinstance(effect, ModelCall) else ToolResult.model_validate(data)


def _free(result: Result) -> Result:
    """The result as this run has it: another run paid for it and waited for it."""
    if isinstance(result, ModelResult) and result.reply is not None:
        reply = result.reply.model_copy(update={"usage": TokenCount()})
        return result.model_copy(update={"reply": reply, "usd": 0.0, "seconds": 0.0, "waiting_s": 0.0})
    return result.model_copy(update={"seconds": 0.0, "waiting_s": 0.0})


def _idempotency_key(run: str, key: str, effect: Effect) -> str:
    return hashlib.sha256(f"{run}\n{key}\n{effect.fingerprint}".encode()).hexdigest()[:40]
