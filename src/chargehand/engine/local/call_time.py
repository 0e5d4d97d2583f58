"""How long one model call may take: until the first event of its reply, between two events, and in all.

The limits are for the call with its retries: a connection that breaks before the first event does not start them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from chargehand.errors import ModelError
from chargehand.models.provider_settings import Silence
from chargehand.values.message import Reply

# However much arrives: a reply that has not ended by then is assumed to be endless.
LONGEST_S = 3600.0


class CallTime:
    """Begins when the call is first sent, and is notified of every event of its replies."""

    def __init__(self, model: str, silence: Silence, on_first: Callable[[], None] | None = None) -> None:
        # Called when a reply begins.
        self._on_first = on_first
        self._loop = asyncio.get_running_loop()
        self._model = model
        self._silence = silence
        self._ends = self._loop.time() + LONGEST_S
        self._first_by = self._loop.time() + silence.first_s
        # When the last event of the reply under way arrived.
        self._heard_at: float | None = None
        # What has arrived of the last reply.
        self.pieces: list[str] = []
        # The end of the time of the call under way, and the next look at the limits.
        self._timer: asyncio.Timeout
        self._watch: asyncio.TimerHandle

    def postpone(self, seconds: float) -> None:
        """Let the limits end later, by a time in which the call could not be sent."""
        self._ends += seconds
        self._first_by += seconds

    async def limit(
        self, send: Callable[[Callable[[str], None]], Awaitable[Reply]], on_text: Callable[[str], None] | None
    ) -> Reply:
        """The reply; ModelError `timeout` when the provider was silent for too long, or the call has had its time."""
        if self._heard_at is not None:
            # It was sent again after a reply had begun: the new one may take as long to begin.
            self._first_by = self._loop.time() + self._silence.first_s
        self._heard_at = None
        self.pieces.clear()
        now, timer = self._loop.time, asyncio.timeout(None)
        self._timer = timer

        # There are thousands of events: after the first, each only stores its time, which is read when a limit may be
        # over.
        def hear(text: str) -> None:
            first, self._heard_at = self._heard_at is None, now()
            if first:
                self._look()
                if self._on_first is not None:
                    self._on_first()
            if text:
                self.pieces.append(text)
                if on_text is not None:
                    on_text(text)

        self._watch = self._loop.call_at(self._due(), self._look)
        try:
            async with timer:
                return await send(hear)
        except TimeoutError:
            if not timer.expired():
                raise
            raise ModelError("timeout", self._message()) from None
        finally:
            self._watch.cancel()

    def _look(self) -> None:
        """End the call if a limit is over, otherwise look again when the next may be."""
        self._watch.cancel()
        if (due := self._due()) <= self._loop.time():
            self._timer.reschedule(due)
        else:
            self._watch = self._loop.call_at(due, self._look)

    def _due(self) -> float:
        """When the call times out unless something arrives before."""
        silent_until = self._first_by if self._heard_at is None else self._heard_at + self._silence.between_s
        return min(silent_until, self._ends)

    def _message(self) -> str:
        if self._loop.time() >= self._ends:
            return (
                f"{self._model} did not end its answer within {LONGEST_S:g} s, retries included; "
                "ask for less at once or use a faster model"
            )
        if self._heard_at is not None:
            stopped = f"{self._model} began its answer and then sent nothing for {self._silence.between_s:g} s"
            setting = "silence_s"
        else:
            stopped = f"{self._model} did not begin its answer within {self._silence.first_s:g} s, retries included"
            setting = "first_event_s"
        return (
            f"{stopped} (comments and white space do not count); "
            f"use a faster model, or raise {setting} of its provider in the configuration"
        )
