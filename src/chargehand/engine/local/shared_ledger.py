"""The ledger for calls that run at the same time: reserve, wait for others, settle; each step on the record."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from chargehand.engine.local.recorder import Recorder, Site
from chargehand.engine.local.resources import Resources
from chargehand.events import BudgetReserved, BudgetSettled, Decided
from chargehand.models.prices import Price
from chargehand.record.replay import Replay
from chargehand.record.spending import cost_of_lost_call
from chargehand.values.budget import Budget
from chargehand.values.effect import ModelCall
from chargehand.values.key import Key
from chargehand.values.ledger import Calibration, Deny, Grant, Ledger, Wait, Wish
from chargehand.values.outcome import Usage

# An estimate this much above what was set aside is worth setting aside again.
TOO_LITTLE = 1.05


class SharedLedger:
    """One per session. The ledger decides; this class only waits and records."""

    def __init__(
        self, budget: Budget, resources: Resources, recorder: Recorder, writer: str | None, *, echoes: bool = True
    ) -> None:
        # Whether what workers write is set aside twice: it is read by the synthesizer, on the same budget.
        self.echoes = echoes
        price = None if writer is None else resources.models.price(writer)
        self.ledger = Ledger(budget, writer=_per_token(price))
        # How many tasks have not ended: the rest of the budget is shared between them.
        self.unfinished = 1
        self._resources = resources
        self._recorder = recorder
        self._calibration = Calibration()
        # key -> the estimate before calibration, while the call is under way.
        self._raw: dict[str, int] = {}
        # Reservations of calls that were sent and then interrupted: no outcome says what they used.
        self.lost: list[Usage] = []
        # Tokens counted for each call that ended without reporting its usage.
        self.estimated: list[int] = []
        # Ends the session instead of denying a call: it may be given more. None where denials are final.
        self.end_short: Callable[[], None] | None = None
        # In order of arrival; only the first is woken, and wakes the next when it has its answer.
        self._waiters: deque[asyncio.Future[None]] = deque()

    async def reserve(self, site: Site, effect: ModelCall, sent_output: int | None) -> Grant | Deny:
        """Set aside what the call may cost; wait while others could free enough.

        `sent_output`: how many tokens of output an earlier session sent this very call with.
        """
        raw, wish = self._wish(site, effect)
        if sent_output is not None:
            # A repeat asks for exactly the recorded amount, so its bytes are the same: its share was decided then.
            wish = wish._replace(output_cap=sent_output, least=sent_output, share=1)
        waited = False
        try:
            while True:
                if waited and sent_output is None:
                    wish = wish._replace(share=self.unfinished)
                match self.ledger.reserve(wish):
                    case Wait():
                        await self._turn(front=waited)
                        waited = True
                    case Deny() if self.end_short is not None:
                        if self.ledger.open:
                            await self._turn(front=waited)  # calls under way are finished first
                            waited = True
                            continue
                        self.end_short()
                        await asyncio.get_running_loop().create_future()
                    case Deny() as denied:
                        key = f"{site.key}/budget"
                        decided = Decided(key=key, decision="budget_denial", value=True, reason=denied.reason)
                        self._recorder.emit_at(site, decided)
                        return denied
                    case Grant() as granted:
                        return self._record_grant(site, raw, granted)
        finally:
            if waited:
                self._wake_next()

    async def _turn(self, *, front: bool) -> None:
        """Wait until something was settled; a call that has waited before stays first."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if front:
            self._waiters.appendleft(turn)
        else:
            self._waiters.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self._waiters:
                self._waiters.remove(turn)
            else:
                self._wake_next()  # woken in the moment of cancellation: it was somebody's turn
            raise

    def _wake_next(self) -> None:
        while self._waiters:
            turn = self._waiters.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    def look_again(self) -> None:
        """There may be room for waiting calls: the first one checks, and wakes the next."""
        self._wake_next()

    def outgrown(self, site: Site, model: str) -> bool:
        """Whether the reservation of a call is now known to be too small, or no longer exists."""
        reservation = self.ledger.open[site.key]
        left = self.ledger.tokens_left(held=True)
        fresh = self._calibration.estimate(model, self._raw[site.key])
        return fresh > reservation.input_tokens * TOO_LITTLE or (left is not None and left < 0)

    def most(self, site: Site) -> int:
        """The highest estimate of the tokens of a call under way: a model may have reported too few before."""
        reservation = self.ledger.open[site.key]
        return max(reservation.input_tokens, self._raw[site.key]) + reservation.output_tokens

    def reserve_now(self, site: Site, effect: ModelCall) -> Grant | None:
        """Set aside what the call may cost if there is room for all of it at once; otherwise do not wait."""
        raw, wish = self._wish(site, effect)
        granted = self.ledger.reserve(wish)
        return self._record_grant(site, raw, granted) if isinstance(granted, Grant) else None

    def _record_grant(self, site: Site, raw: int, granted: Grant) -> Grant:
        self._raw[site.key] = raw
        reservation = granted.reservation
        reserved = BudgetReserved(key=site.key, tokens=reservation.tokens, usd=reservation.usd)
        self._recorder.emit_at(site, reserved)
        return granted

    def _wish(self, site: Site, effect: ModelCall) -> tuple[int, Wish]:
        """The estimate before calibration, and what to ask the ledger for."""
        raw = self._resources.estimate(effect)
        return raw, Wish(
            key=site.key,
            input_tokens=self._calibration.estimate(effect.model, raw),
            output_cap=effect.output_cap,
            usd_per_token=_per_token(self._resources.price(effect)),
            task=site.task,
            share=self.unfinished,
            echo=self.echoes and effect.role == "worker",
            held=effect.role == "synthesizer" and site.task is None,
        )

    def settle(
        self, site: Site, model: str, used: tuple[int, int] | None, usd: float | None, *, broken_off: bool = False
    ) -> None:
        """Close a reservation. `used` is input and output; None is unknown, and counts as all that was set aside.

        A call that was sent and interrupted has no result: what it may have used is recorded here.
        """
        reservation = self.ledger.open[site.key]
        lost = None
        if broken_off:
            lost = Usage(
                input_tokens=reservation.input_tokens,
                output_tokens=reservation.output_tokens,
                usd=cost_of_lost_call(reservation.usd),
                calls=1,
                models=(model,),
            )
            self.lost.append(lost)
        elif used is None:
            self.estimated.append(reservation.tokens)
        raw = self._raw.pop(site.key)
        if used is not None:
            self._calibration.learn(model, raw, used[0])
        tokens = None if used is None else sum(used)
        self.ledger.settle(site.key, tokens, usd, written=reservation.output_tokens if used is None else used[1])
        settled = BudgetSettled(
            key=site.key,
            tokens=reservation.tokens if tokens is None else tokens,
            usd=reservation.usd if usd is None and tokens is None else usd,
            estimated=tokens is None,
            lost=lost.to_json() if lost else None,
        )
        self._recorder.emit_at(site, settled)
        self._wake_next()


class LocalBudget:
    """The run's budget over all its sessions, as the supervisor distributes it."""

    def __init__(self, shared: SharedLedger, replay: Replay, recorder: Recorder) -> None:
        self._shared = shared
        self._replay = replay
        self._recorder = recorder
        # Tasks not ended, of the run and of each nested team.
        self._expected: dict[str, int] = {}
        shared.ledger.charge(replay.spending.tokens, replay.spending.usd)
        shared.ledger.to_read = replay.written if shared.echoes else 0
        shared.ledger.short = replay.spending.short
        # In flight at the crash: counted in full, and settled on the record by this session.
        self._left_behind = replay.in_flight()
        for each in self._left_behind:
            shared.ledger.charge(each.tokens, each.usd)
            shared.lost.append(each.usage)

    @property
    def ledger(self) -> Ledger:
        return self._shared.ledger

    @property
    def lost(self) -> Usage:
        """The reservations of calls that were interrupted, in this session or before."""
        return Usage.total([*self._replay.spending.lost, *self._shared.lost])

    @property
    def estimated(self) -> list[int]:
        """Tokens counted for each call, in this session or before, that did not say what it used."""
        return [*self._replay.spending.estimated, *self._shared.estimated]

    def settle_left_behind(self) -> None:
        """Put on the record what is counted for the calls that were in flight when an earlier session died."""
        for each in (*self._replay.spending.written_off.values(), *self._left_behind):
            at = Key.parse(each.key)
            self._recorder.emit(each.settled, at.task, at.attempt)

    def hold(self, tokens: int) -> None:
        self.ledger.to_write = tokens

    def release(self) -> None:
        self.ledger.release()

    def allot(self, task: str, budget: Budget) -> None:
        self.ledger.allot(task, budget, *self._replay.spending.spent_by(task))

    def top_up(self, tokens: int, usd: float) -> Budget:
        """Let the run use more from now on, and return the new limit. Calls that wait for room check again."""
        limit = self.ledger.top_up(tokens, usd)
        self._shared.look_again()
        return limit

    def affordable(self, tokens: int = 0) -> bool:
        return self.ledger.affordable(tokens)

    def expect(self, tasks: int, within: str = "") -> None:
        self._expected[within] = tasks
        self._shared.unfinished = max(sum(self._expected.values()), 1)


def _per_token(price: Price | None) -> tuple[float, float] | None:
    """US dollars for a token of input and for a token of output."""
    return None if price is None else (price.input / 1e6, price.output / 1e6)
