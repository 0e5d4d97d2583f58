"""When a provider asks for a long pause, the call waits and holds nothing: no budget, slot or time limit.

A quota of hours is not a failure. While other work is under way, the call just waits. When nothing else can run, the
run as a whole waits: in this process if it stays here, otherwise the session ends and another one continues.

After the pause one call is sent; the others follow when it has been answered (`limits/concurrency_after_429.py`).
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from chargehand.engine.local.activity import Activity
from chargehand.engine.local.clock import LocalClock
from chargehand.engine.local.recorder import Recorder, Site
from chargehand.events import Decided
from chargehand.record.replay import Replay
from chargehand.trace.number_text import duration, moment
from chargehand.values.effect import ModelCall
from chargehand.values.key import TaskPath
from chargehand.values.outcome import Fault

# A pause of up to this length is not handled here: the task is tried again, or its fallback does it.
SHORT_PAUSE_S = 60.0


class ProviderOut(NamedTuple):
    """A call was refused, and is not to be sent before `until`, on the loop's clock."""

    provider: str
    until: float
    fault: Fault
    # The limit of output tokens it was sent with; None if it was not sent. It is sent again with the same bytes.
    sent_output: int | None = None
    ok: bool = False


class ProviderWaits:
    """One per session. It knows which pauses providers asked for in earlier sessions."""

    def __init__(
        self,
        activity: Activity,
        clock: LocalClock,
        recorder: Recorder,
        replay: Replay,
        wait_s: float,
        deadline_s: float | None,
    ) -> None:
        self._activity = activity
        self._clock = clock
        self._recorder = recorder
        self._wait_s = wait_s
        self._deadline_s = deadline_s
        # Provider -> until when it must not be called, in seconds since 1970.
        self._held = dict(replay.waits.held_providers)
        # Key -> how often the call has waited; and since when it waits, on the loop's clock.
        self._times: dict[str, int] = {}
        self._since: dict[str, float] = {}
        # Calls that wait now: their providers, and until when.
        self._waiting: dict[str, tuple[float, str]] = {}
        # How often the run as a whole has waited in this and in earlier sessions, and whether it waits now.
        self._number = replay.waits.of_run
        self._is_announced = False

    def held_until(self, provider: str) -> float | None:
        """Until when the provider must not be called, as it asked in an earlier session; on the loop's clock."""
        until = self._held.pop(provider, None)
        left = 0.0 if until is None else until - self._clock.wall()
        return asyncio.get_running_loop().time() + left if left > 0 else None

    async def wait(self, site: Site, effect: ModelCall, out: ProviderOut) -> Fault | None:
        """Return None once the provider may be called again, or at once the reason why the call does not wait."""
        if (fault := self._refuse(site, effect, out)) is not None:
            return fault
        loop = asyncio.get_running_loop()
        seconds = out.until - loop.time()
        number = self._times[site.key] = self._times.get(site.key, 0) + 1
        until = round(self._clock.wall() + seconds, 3)
        value, key = {"provider": out.provider, "until": until}, f"{site.key}/wait/{number}"
        self._recorder.emit_at(site, Decided(key=key, decision="wait", value=value, reason=out.fault.message))
        await self._recorder.commit()
        self._waiting[site.key] = until, out.provider
        try:
            with (
                self._clock.pause(() if site.task is None else TaskPath.parse(site.task).lineage),
                self._activity.wait_for_provider() as nothing_else_runs,
            ):
                await self._sleep(out.until, nothing_else_runs)
        finally:
            del self._waiting[site.key]
            self._note_end()
        return None

    async def _sleep(self, until: float, nothing_else_runs: asyncio.Event) -> None:
        """Wait until the pause is over. When nothing else can run meanwhile, that is announced."""
        try:
            async with asyncio.timeout_at(until):
                while True:
                    await nothing_else_runs.wait()
                    nothing_else_runs.clear()
                    await self._announce()
        except TimeoutError:
            return

    async def _announce(self) -> None:
        """Put on the record that the run as a whole waits, and until when."""
        if self._is_announced:
            return
        self._is_announced = True
        self._number += 1
        until, provider = min(self._waiting.values())
        value, reason = {"provider": provider, "until": until}, "nothing else can run"
        self._recorder.emit(Decided(key=f"@wait/{self._number}", decision="wait", value=value, reason=reason))
        await self._recorder.commit()

    def _note_end(self) -> None:
        if self._is_announced:
            self._is_announced = False
            over = Decided(key=f"@wait/{self._number}/over", decision="wait_over", value=None, reason="")
            self._recorder.emit(over)

    def _refuse(self, site: Site, effect: ModelCall, out: ProviderOut) -> Fault | None:
        """Why the call must not wait: another worker may do the task sooner, or the wait would be too long."""
        now = asyncio.get_running_loop().time()
        seconds = out.until - now
        if seconds <= SHORT_PAUSE_S or (effect.yields and site.attempt == 1):
            return out.fault
        waits_since = self._since.setdefault(site.key, now)
        if out.until - waits_since > self._wait_s:
            limit = f"and --wait allows {duration(self._wait_s)}" if self._wait_s else "and --wait is 0"
        elif self._deadline_s is not None and seconds >= self._deadline_s - self._clock.now():
            limit = "and the deadline is before that"
        else:
            return None
        until = moment(self._clock.wall() + seconds)
        message = f"{out.fault.message.rstrip('. ')}. {out.provider} is to be left alone until {until}, {limit}."
        return Fault(kind=out.fault.kind, message=message)
