"""An admitted model call -> its result: the provider's permit, the request, retries, and the usage that is believed.

A retry has the same bytes and key. No slot of the run is held between tries. Permits are
the provider's, shared by all runs of the process.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

from chargehand.engine.local.call_time import CallTime
from chargehand.engine.local.quota_waits import ProviderOut, ProviderWaits
from chargehand.engine.local.recorder import Recorder, Site
from chargehand.engine.local.resources import Resources
from chargehand.engine.local.retry_rule import TRANSPORT_RETRIES, backoff, may_retry
from chargehand.engine.local.run_record import LocalRecord
from chargehand.engine.local.slots import Slots, Waited
from chargehand.errors import ChargehandError, MissingKey, ModelError, UsageError
from chargehand.events import BreakerChanged, Decided, Warned
from chargehand.limits import BreakerChange, CallResult, Permit, ProviderLimits, Refused
from chargehand.models import Attribution
from chargehand.values.effect import ModelCall, ModelResult
from chargehand.values.ledger import Reservation
from chargehand.values.message import Reply
from chargehand.values.outcome import Fault

# Larger than the number of tasks: a refused call asks again after all calls that were refused less often.
BEHIND_ALL = 1_000_000
# How long a call waits for a provider that has never taken a request: a wrong address is reported soon.
PATIENCE_AT_FIRST_S = 3.0
# Usage of more than this many times the highest estimate of a call cannot be the usage of that call.
ABSURD = 2
# The kinds of errors after which it is not known whether the provider has used tokens. Others refuse the request.
UNANSWERED = ("timeout", "connection")

OnText = Callable[[str], None] | None
# Puts the call on the record, durably, before it is sent: (max_output, how often it was sent before).
Begin = Callable[[int, int], Awaitable[None]]


class Sender:
    """One per session; nothing is kept between calls but what its parts keep."""

    def __init__(
        self,
        run: str,
        slots: Slots,
        resources: Resources,
        recorder: Recorder,
        record: LocalRecord,
        chance: random.Random,
        waits: ProviderWaits,
    ) -> None:
        self._run = run
        self._slots = slots
        self._resources = resources
        self._recorder = recorder
        self._record = record
        self._chance = chance
        # model -> what its provider allows; a session lives on one loop, as these do.
        self._limits: dict[str, ProviderLimits] = {}
        self._waits = waits
        # Models whose usage was reported as not credible: one warning for each is enough.
        self._doubted: set[str] = set()
        # Task -> how many of its calls are at a provider and not answered.
        self.at_provider: Counter[str | None] = Counter()
        # Keys of calls that were refused and are not sent again yet.
        self.sent_later: set[str] = set()

    async def send(
        self,
        site: Site,
        effect: ModelCall,
        reservation: Reservation,
        first: Permit | Refused | None,
        sent_before: int,
        waited: Waited,
        begin: Begin,
        on_text: OnText,
        most: Callable[[], int],
    ) -> ModelResult | ProviderOut:
        """The result of the last try. `most` returns the highest estimate of the call's usage."""
        loop = asyncio.get_running_loop()
        same, header = self._idempotency_key(site, effect), self._resources.trace_header
        trace = None if header is None else header(site.key)
        attribution = Attribution(self._run, site.task, site.attempt, effect.role, same, trace)
        worked = 0.0
        # The patience is for the call as a whole: it runs from the first failure, however often it is sent.
        gives_up: float | None = None
        time: CallTime | None = None

        def send(hear: Callable[[str], None]) -> Awaitable[Reply]:
            return self._resources.model(effect, reservation.output_tokens, attribution, hear)

        for retry in range(TRANSPORT_RETRIES + 1):
            patience = None if gives_up is None else max(gives_up - loop.time(), 0.0)
            if (permit := first) is None:
                permit = await self.acquire(site, effect, reservation.tokens, waited, patience, retry)
            first = None
            if site.key in self.sent_later:
                self.sent_later.remove(site.key)
                if isinstance(permit, Permit):
                    self._note_sent(site, retry)
            if gives_up is not None and time is not None:
                # A pause is not the provider's time.
                gives_up += waited.paused
                time.postpone(waited.paused)
            waited.paused = 0.0
            if isinstance(permit, Refused):
                kind = "auth" if permit.until is None else "overloaded"
                fault = Fault(kind=kind, message=f"Not sent: {permit.reason}")
                if (until := permit.asked_until) is not None and until - loop.time() > effect.patience_s:
                    return self._out(effect, until, Fault(kind="rate_limited", message=f"{fault.message}."))
                return ModelResult(error=fault, sent=waited.sent, seconds=worked, waiting_s=waited.seconds)
            sent, before, lost, began = False, waited.sent, waited.unanswered, loop.time()
            try:
                if retry == 0:
                    await begin(reservation.output_tokens, sent_before)
                sent, began = True, loop.time()
                waited.sent = waited.unanswered = True
                if time is None:
                    on_first = None if waited.first is None else waited.first.begin
                    time = CallTime(effect.model, self._resources.silence(effect), on_first)
                    waited.pieces = time.pieces
                with self._at_provider(site.task):
                    said = await time.limit(send, on_text)
                worked += loop.time() - began
                reply, usd = self._count_reply(site, effect, reservation, said, most())
                counted = reply.usage.input_tokens + reply.usage.output_tokens if reply.usage else None
                self._record_changes(permit.give_back("ok", loop.time(), tokens_actual=counted))
                return ModelResult(reply=reply, usd=usd, seconds=worked, waiting_s=waited.seconds)
            except ModelError as error:
                worked += loop.time() - began
                waited.sent = before or not error.unsent
                waited.unanswered = lost or (not error.unsent and error.kind in UNANSWERED)
                result, pause = _for_limits(error), error.retry_after
                broke = error.kind == "connection" and not error.unsent
                changes = permit.give_back(result, loop.time(), retry_after=pause, reason=str(error), connected=broke)
                self._record_changes(changes)
                fault = Fault(kind=error.kind, message=str(error))
                if error.transient and pause is not None and pause > effect.patience_s:
                    return self._out(effect, loop.time() + pause, fault)
                if not may_retry(error, retry):
                    return ModelResult(error=fault, seconds=worked, waiting_s=waited.seconds)
                gives_up = loop.time() + effect.patience_s if gives_up is None else gives_up
                after = backoff(error, retry, self._chance, self._patience(effect))
                self._note_retry(site, retry + 1, after, str(error))
                self.sent_later.add(site.key)
                self._record.halt_call(site.key)
            except UsageError as error:  # a key that is not set, a provider that is not there: this task's failure
                kind = "auth" if isinstance(error, MissingKey) else "bad_request"
                fault, waited.sent, waited.unanswered = Fault(kind=kind, message=str(error)), before, lost
                return ModelResult(error=fault, seconds=worked, waiting_s=waited.seconds)
            except ChargehandError:
                raise  # the record itself failed, or the run is not ours any more
            except Exception as error:  # noqa: BLE001 -- recorded: a bug in a handler is one task's failure
                message = f"{type(error).__name__} in the model handler: {error}"
                return ModelResult(error=Fault(kind="internal", message=message), waiting_s=waited.seconds)
            finally:
                permit.give_back("cancelled" if sent else "unsent", loop.time())
                self._slots.free()
            began = loop.time()
            await asyncio.sleep(after)
            waited.seconds += loop.time() - began
        raise AssertionError("the last retry returns")

    @contextmanager
    def _at_provider(self, task: str | None) -> Generator[None]:
        self.at_provider[task] += 1
        try:
            yield
        finally:
            self.at_provider[task] -= 1

    def _out(self, effect: ModelCall, until: float, fault: Fault) -> ProviderOut:
        return ProviderOut(self._provider(effect).name, until, fault)

    def _provider(self, effect: ModelCall) -> ProviderLimits:
        limits = self._limits.get(effect.model)
        if limits is None:
            limits = self._limits[effect.model] = self._resources.limits(effect)
            if (until := self._waits.held_until(limits.name)) is not None:
                limits.leave_alone(until)
        return limits

    def _patience(self, effect: ModelCall) -> float:
        """How many seconds a call waits for its provider to recover."""
        exists = self._provider(effect).exists
        return effect.patience_s if exists else min(effect.patience_s, PATIENCE_AT_FIRST_S)

    async def acquire(
        self, site: Site, effect: ModelCall, tokens: int, waited: Waited, patience: float | None = None, retry: int = 0
    ) -> Permit | Refused:
        """A slot and the provider's permit, or neither. No slot is held while the call waits for the provider.

        Refused calls take turns, so a long refusal does not use up the retries of one call.
        """
        loop = asyncio.get_running_loop()
        limits = self._provider(effect)
        await self._slots.take(site.task, waited)
        permit = limits.try_acquire(self._run, tokens, loop.time())
        if isinstance(permit, Permit):
            return self._record_grant(permit)
        self._slots.free()
        if permit is None:
            began = loop.time()
            order = self._slots.order(site.task) + retry * BEHIND_ALL
            most = self._patience(effect) if patience is None else min(patience, self._patience(effect))
            permit = await limits.acquire(self._run, order, tokens, max_wait=most)
            waited.seconds += loop.time() - began
        if isinstance(permit, Refused):
            return permit
        try:
            await self._slots.take(site.task, waited)
        except BaseException:
            permit.give_back("unsent", loop.time())
            raise
        return self._record_grant(permit)

    def _count_reply(
        self, site: Site, effect: ModelCall, reservation: Reservation, reply: Reply, most: int
    ) -> tuple[Reply, float | None]:
        """The reply with a credible usage, and its price, if known."""
        problem = reply.usage_problem or usage_problem(reply, most, self._resources.window(effect))
        if problem and effect.model not in self._doubted:
            self._doubted.add(effect.model)
            message = (
                f"What {effect.model} says it used for {site.key} is not believed ({problem}). The call is counted at "
                f"the {reservation.tokens:,} tokens set aside for it; so are later ones of this model like it."
            )
            self._recorder.emit_at(site, Warned(message=message))
        if problem:
            return reply.model_copy(update={"usage": None, "usage_problem": problem}), None
        price = self._resources.price(effect)
        return reply, price.usd(reply.usage) if price and reply.usage else None

    def _record_grant(self, permit: Permit) -> Permit:
        if permit.change is not None:
            self._record_changes([permit.change])
        return permit

    def _record_changes(self, changes: list[BreakerChange]) -> None:
        for change in changes:
            self._recorder.emit(BreakerChanged(name=change.name, state=change.state, reason=change.reason))

    def _note_retry(self, site: Site, number: int, after: float, reason: str) -> None:
        key, value = f"{site.key}/retry/{number}", {"after_s": round(after, 3)}
        self._recorder.emit_at(site, Decided(key=key, decision="transport_retry", value=value, reason=reason))

    def _note_sent(self, site: Site, number: int) -> None:
        """Put on the record that the wait of a call that was refused is over: only its time at the provider counts."""
        key = f"{site.key}/retry/{number}/sent"
        self._record.continue_call(site.key)
        self._recorder.emit_at(site, Decided(key=key, decision="retry_sent", value=None, reason=""))

    def _idempotency_key(self, site: Site, effect: ModelCall) -> str:
        return hashlib.sha256(f"{self._run}\n{site.key}\n{effect.fingerprint}".encode()).hexdigest()[:40]


def usage_problem(reply: Reply, most: int, window: int | None) -> str:
    """Why the reported usage of a reply cannot be right; "" when it can be right or was not reported.

    `most` is the highest estimate of the call's usage; `window` is what the model is known to hold: if our
    estimate of the request is larger, the known size is wrong.
    """
    if (count := reply.usage) is None:
        return ""
    said = f"{_figure(count.input_tokens)} tokens of input and {_figure(count.output_tokens)} of output"
    if min(count.input_tokens, count.output_tokens, count.cached_tokens) < 0:
        return f"{said}: a number below 0"
    if count.input_tokens == 0:
        return f"{said}: no request is empty"
    if count.output_tokens == 0 and (reply.text or reply.tool_calls):
        return f"{said}: the reply is not empty"
    if count.cached_tokens > count.input_tokens:
        return f"{said}, {_figure(count.cached_tokens)} of it from a cache: more than all of the input"
    used = count.input_tokens + count.output_tokens
    if used > ABSURD * most:
        return f"{said}: over {ABSURD} times the {most:,} it was estimated to use at the most"
    if window is not None and used > max(window, most):
        return f"{said}: more than the {window:,} the model can hold"
    return ""


def _figure(number: int) -> str:
    return f"{number:,}" if abs(number) < 10**20 else "more than 20 digits of"


def _for_limits(error: ModelError) -> CallResult:
    match error.kind:
        case "rate_limited" | "overloaded" | "connection" | "timeout" | "auth":
            return error.kind
        case _:
            # A web page instead of a reply does not come from the provider: it was not reached.
            return "connection" if error.transient else "other"
