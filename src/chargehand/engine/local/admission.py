"""What the run gives a model call: a reservation of budget, a slot, a hedge, and the settlement.

The budget is reserved before the call is sent and settled after it, whatever happens. A slow call may be hedged: a
second copy is sent, and the first good answer counts. `sending.py` sends what was admitted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

from chargehand.engine.local.prompt_cache_order import PromptBeginnings
from chargehand.engine.local.quota_waits import ProviderOut, ProviderWaits
from chargehand.engine.local.recorder import Recorder, Site
from chargehand.engine.local.sending import UNANSWERED, Begin, OnText, Sender
from chargehand.engine.local.shared_ledger import SharedLedger
from chargehand.engine.local.slots import Slots, Waited
from chargehand.events import Decided, ModelCalled, ModelReplied
from chargehand.limits import Permit, Refused
from chargehand.values.effect import ModelCall, ModelResult
from chargehand.values.ledger import Deny, Reservation
from chargehand.values.message import TokenCount
from chargehand.values.outcome import Fault

# How often a call gives back its reservation because it became too small while the call waited to be sent.
MOST_FRESH_RESERVATIONS = 3


class Admission:
    """One per session. Only its parts keep state between calls."""

    def __init__(
        self,
        ledger: SharedLedger,
        slots: Slots,
        sender: Sender,
        recorder: Recorder,
        waits: ProviderWaits,
        beginnings: PromptBeginnings,
        hedge_after_s: float | None = None,
    ) -> None:
        self._waits = waits
        self._beginnings = beginnings
        self._ledger = ledger
        self._slots = slots
        self._sender = sender
        self._recorder = recorder
        # A call without an answer for this long is sent a second time; None means never.
        self._hedge_after_s = hedge_after_s

    async def make(
        self, site: Site, effect: ModelCall, intent: ModelCalled | None, begin: Begin, on_text: OnText
    ) -> ModelResult:
        """The result, settled but not yet on the record. `intent`: what an earlier session recorded and sent."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        # Nothing is set aside and no slot is held meanwhile.
        first = await self._beginnings.wait(effect)
        waited = Waited(loop.time() - began, first=first)
        try:
            return await self._make_with_waits(site, effect, intent, waited, begin, on_text)
        finally:
            if first is not None:
                first.begin()

    async def _make_with_waits(
        self,
        site: Site,
        effect: ModelCall,
        intent: ModelCalled | None,
        waited: Waited,
        begin: Begin,
        on_text: OnText,
    ) -> ModelResult:
        """The result, after as many waits for an unavailable provider as necessary."""
        # The limit of output tokens it was sent with, and how often it was sent.
        output, times = (None, 0) if intent is None else (intent.max_output, intent.send)
        while True:
            result = await self._make(site, effect, output, times, waited, begin, on_text)
            if isinstance(result, ModelResult):
                return result
            if result.sent_output is not None:
                output, times = result.sent_output, times + 1
            began = asyncio.get_running_loop().time()
            if (fault := await self._waits.wait(site, effect, result)) is not None:
                return ModelResult(error=fault, sent=times > 0, waiting_s=waited.seconds)
            waited = Waited(waited.seconds + asyncio.get_running_loop().time() - began, first=waited.first)

    async def _make(
        self,
        site: Site,
        effect: ModelCall,
        sent_output: int | None,
        sent_before: int,
        waited: Waited,
        begin: Begin,
        on_text: OnText,
    ) -> ModelResult | ProviderOut:
        """The result, or the time until which its provider must not be called; then the reservation is given back."""
        admitted = await self._admit(site, effect, sent_output, waited)
        if isinstance(admitted, Deny):
            fault = Fault(kind="budget", message=admitted.reason)
            return ModelResult(error=fault, sent=False, waiting_s=waited.seconds)
        reservation, permit = admitted
        call = self._settle(site, effect, reservation, permit, sent_before, waited, begin, on_text)
        try:
            if self._hedge_after_s is None or on_text is not None:
                return await call
            return await self._hedge(site, effect, call, self._hedge_after_s)
        except asyncio.CancelledError:
            self._record_cut(site, effect, "".join(waited.pieces))
            raise

    async def _admit(
        self, site: Site, effect: ModelCall, sent_output: int | None, waited: Waited
    ) -> tuple[Reservation, Permit | Refused] | Deny:
        """Budget, slot and permit. A reservation made before a long wait is checked again after it.

        The number of checks is bounded, so every call is sent or denied in the end.
        """
        loop = asyncio.get_running_loop()
        for fresh in range(MOST_FRESH_RESERVATIONS + 1):
            began = loop.time()
            granted = await self._ledger.reserve(site, effect, sent_output)
            waited.seconds += loop.time() - began
            if isinstance(granted, Deny):
                return granted
            try:
                permit = await self._sender.acquire(site, effect, granted.reservation.tokens, waited)
            except BaseException:
                self._ledger.settle(site, effect.model, (0, 0), 0.0)
                raise
            last = sent_output is not None or fresh == MOST_FRESH_RESERVATIONS
            if isinstance(permit, Refused) or last or not self._ledger.outgrown(site, effect.model):
                return granted.reservation, permit
            permit.give_back("unsent", loop.time())
            self._slots.free()
            self._ledger.settle(site, effect.model, (0, 0), 0.0)
        raise AssertionError("the last reservation is taken")

    async def _hedge(
        self, site: Site, effect: ModelCall, call: Coroutine[Any, Any, ModelResult | ProviderOut], after_s: float
    ) -> ModelResult | ProviderOut:
        """The first good answer of the call or, when it is late and the budget has room, of its hedge."""
        calls = [asyncio.create_task(call, name=site.key)]
        try:
            await asyncio.wait(calls, timeout=after_s)
            beside = Site(f"{site.key}/hedge", site.task, site.attempt)
            if not calls[0].done() and (granted := self._ledger.reserve_now(beside, effect)) is not None:
                value, reason = {"after_s": after_s}, "no answer so far"
                self._recorder.emit_at(site, Decided(key=beside.key, decision="hedge", value=value, reason=reason))
                await self._recorder.commit()
                second = self._settle(beside, effect, granted.reservation, None, 0, Waited(), _begun_already, None)
                calls.append(asyncio.create_task(second, name=beside.key))
            while True:
                over, late = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
                good = [each for each in calls if each in over and each.result().ok]
                if good or not late:
                    return good[0].result() if good else calls[0].result()
                await asyncio.wait(late)
        finally:
            for each in calls:
                each.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    async def _settle(
        self,
        site: Site,
        effect: ModelCall,
        reservation: Reservation,
        permit: Permit | Refused | None,
        sent_before: int,
        waited: Waited,
        begin: Begin,
        on_text: OnText,
    ) -> ModelResult | ProviderOut:
        """The result with its reservation closed, whatever happens."""
        used: tuple[int, int] | None = None
        usd: float | None = None
        result: ModelResult | ProviderOut | None = None
        try:
            result = await self._sender.send(
                site, effect, reservation, permit, sent_before, waited, begin, on_text, partial(self._ledger.most, site)
            )
            if isinstance(result, ProviderOut):
                used, usd = (0, 0), 0.0  # the provider refused it: nothing was used
                return result._replace(sent_output=reservation.output_tokens if waited.sent else None)
            if result.reply is not None and result.reply.usage is not None:
                used = result.reply.usage.input_tokens, result.reply.usage.output_tokens
                usd = result.usd
            elif result.error is not None and result.error.kind not in UNANSWERED:
                used, usd = (0, 0), 0.0  # the provider refused it: nothing was used
            elif waited.sent:
                most = TokenCount(input_tokens=reservation.input_tokens, output_tokens=reservation.output_tokens)
                result = result.model_copy(update={"estimated": most})
            return result
        finally:
            if not waited.sent or (result is None and not waited.unanswered):
                used, usd = (0, 0), 0.0  # stopped in the queue, or after a refusal: nothing was used
            self._ledger.settle(site, effect.model, used, usd, broken_off=waited.unanswered and result is None)

    def _record_cut(self, site: Site, effect: ModelCall, text: str) -> None:
        """Put on the record what had arrived of an interrupted reply. It is never read as a result."""
        if text:
            message = f"The call was broken off after {len(text):,} characters of its reply."
            result = {"error": {"kind": "cancelled", "message": message}, "cut": True, "text": text}
            self._recorder.emit_at(site, ModelReplied(key=site.key, fingerprint=effect.fingerprint, result=result))


async def _begun_already(_max_output: int, _sent_before: int) -> None:
    """A hedge is on the record as the decision to make it."""
