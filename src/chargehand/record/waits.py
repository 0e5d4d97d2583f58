"""Waits on a record -> how long each task has waited for people and providers, and what is waiting where the record
stops.

Times are the run's own seconds: those in which a process owned and ran it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from chargehand.events import Decided
from chargehand.values.key import Key, TaskPath
from chargehand.values.plain_class import plain_class


@plain_class(eq=True)
class Waits:
    """A fold over the questions and waiting calls of one run."""

    # Provider -> until when it asked for a pause, in seconds since 1970.
    held_providers: dict[str, float] = field(default_factory=dict[str, float])
    # Key -> until when a call waits, and for which provider, in the last session.
    calls: dict[str, tuple[float, str]] = field(default_factory=dict[str, tuple[float, str]])
    # How often the whole run waited for a provider while its process stayed, and whether it does so now.
    of_run: int = 0
    run_waits: bool = False
    # task -> seconds of its finished waits; and how many of its waits are open, and since when at least one has been.
    _over: dict[str, float] = field(default_factory=dict[str, float])
    _open: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])

    def begin(self, path: TaskPath | None, now: float) -> None:
        """A task, and the tasks that contain it, wait for one thing more."""
        for task in () if path is None else path.lineage:
            number, since = self._open.get(task, (0, now))
            self._open[task] = number + 1, since

    def end(self, path: TaskPath | None, now: float) -> None:
        """They wait for one thing less."""
        for task in () if path is None else path.lineage:
            if task not in self._open:
                continue
            number, since = self._open.pop(task)
            if number > 1:
                self._open[task] = number - 1, since
            else:
                self._over[task] = self._over.get(task, 0.0) + now - since

    def begin_call(self, decided: Decided, now: float) -> None:
        """A call waits for a provider; or, in a process that stays, the whole run waits."""
        until, provider = decided.value["until"], decided.value["provider"]
        if decided.key.startswith("@wait/"):
            self.of_run += 1
            self.run_waits = True
            return
        self.held_providers[provider] = until
        key = decided.key.rpartition("/wait/")[0]
        self.calls[key] = until, provider
        self.begin(Key.parse(key).path, now)

    def end_calls(self, now: float, *keys: str) -> None:
        """Calls were sent, or their tasks ended; without keys, the session ended."""
        for key in keys or tuple(self.calls):
            del self.calls[key]
            self.end(Key.parse(key).path, now)

    def end_calls_of(self, task: str | None, now: float) -> None:
        """A task was stopped, or its time was over."""
        over = [key for key in self.calls if Key.parse(key).task == task]
        if over:
            self.end_calls(now, *over)

    @property
    def for_provider(self) -> tuple[float, str] | None:
        """Until when the run waits, in seconds since 1970, and for which provider; None if no call waits."""
        return min(self.calls.values(), default=None)

    def seconds_of(self, task: str, now: float) -> float:
        since = self._open[task][1] if task in self._open else now
        return self._over.get(task, 0.0) + now - since

    def by_task(self, now: float) -> dict[str, float]:
        """Task -> seconds it has waited, open waits included."""
        return {task: self.seconds_of(task, now) for task in (*self._over, *self._open)}

    def set_over(self, waited: Mapping[str, float]) -> None:
        """Reset: nothing waits, and tasks have waited this long."""
        self._open.clear()
        self._over |= waited
