"""What earlier sessions of a run left, with what this one has sent and read so far."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from chargehand.engine.port import Outcomes
from chargehand.events import PlanApproved
from chargehand.record.replay import Replay
from chargehand.text.urls import normal_urls
from chargehand.values.base import JSON
from chargehand.values.key import Key, TaskPath
from chargehand.values.order import Restart
from chargehand.values.outcome import Outcome
from chargehand.values.step import Head


class _UnderWay(NamedTuple):
    """A call that has not returned, and how long it has been at the provider or in the tool."""

    task: str | None
    attempt: int | None
    # None while it waits to be sent again.
    since: float | None
    # The time before that.
    seconds: float = 0.0

    def until(self, now: float) -> float:
        return self.seconds + (0.0 if self.since is None else now - self.since)


class LocalRecord:
    """Questions about the folded journal; only the session's effects write to it."""

    def __init__(self, replay: Replay, outcomes: Outcomes) -> None:
        self._replay = replay
        self._outcomes = outcomes
        # Tasks and attempts of which something was sent, in this session or before.
        self._sent: set[tuple[str | None, int | None]] = set()
        for key in (*replay.committed, *replay.intents):
            at = Key.parse(key)
            self.mark_sent(at.task, at.attempt)
        # Each call of this session that has not returned, by key.
        self._under_way: dict[str, _UnderWay] = {}
        # Urls in what tools returned in earlier sessions, read when they are first asked for; and in this one.
        self._urls: dict[str, None] | None = None
        self._returned: dict[str, None] = {}

    def decision(self, key: str) -> JSON:
        return self._replay.decisions.get(key)

    def plan(self, within: str = "") -> PlanApproved | None:
        return self._replay.approved_within.get(within) if within else self._replay.approved

    def end_of(self, task: str) -> Head | None:
        return self._keep(task, self._replay.ended.get(task))

    def end_of_attempt(self, task: str, attempt: int) -> Head | None:
        ref = f"{task}/{attempt}"
        return self._keep(ref, self._replay.attempted.get(ref))

    def _keep(self, ref: str, outcome: Outcome | None) -> Head | None:
        return None if outcome is None else self._outcomes.keep(ref, outcome)

    def began(self, task: str, attempt: int | None = None) -> float | None:
        return self._replay.begun.get(task if attempt is None else f"{task}/{attempt}")

    def attempts(self, task: str) -> int:
        return self._replay.reopened.get(task, 0)

    def restart_of(self, task: str) -> Restart | None:
        return self._replay.restarted.get(task)

    def has_sent(self, task: str, attempt: int) -> bool:
        return (task, attempt) in self._sent

    def take_broken_off(self, task: str, attempt: int) -> float:
        longest: dict[str, float] = {}
        now = asyncio.get_running_loop().time()
        for key, call in list(self._under_way.items()):
            its = call.task
            if its is not None and (task, attempt) in ((its, call.attempt), *TaskPath.parse(its).around):
                # Calls of one task at the same time took as long as the longest of them.
                longest[its] = max(call.until(now), longest.get(its, 0.0))
                del self._under_way[key]
        return sum(longest.values())

    def urls(self) -> Collection[str]:
        if self._urls is None:
            self._urls = dict.fromkeys(self._recorded_urls())
        return self._urls.keys() | self._returned.keys()

    def _recorded_urls(self) -> Iterator[str]:
        for recorded in self._replay.committed.values():
            result = recorded.result
            if "urls" in result:
                yield from result["urls"]
            elif "text" in result:
                # The result was written before results listed their urls, or it has no urls.
                yield from normal_urls(result["text"])

    def mark_sent(self, task: str | None, attempt: int | None) -> None:
        """Note that something was sent for this attempt, and so for the attempts it is nested in."""
        self._sent.add((task, attempt))
        if task is not None:
            self._sent.update(TaskPath.parse(task).around)

    def begin_call(self, key: str, task: str | None, attempt: int | None) -> None:
        self.mark_sent(task, attempt)
        self._under_way[key] = _UnderWay(task, attempt, asyncio.get_running_loop().time())

    def halt_call(self, key: str) -> None:
        """Count no time for a call that waits to be sent again, until `continue_call`."""
        if (call := self._under_way.get(key)) is not None:
            now = asyncio.get_running_loop().time()
            self._under_way[key] = call._replace(since=None, seconds=call.until(now))

    def continue_call(self, key: str) -> None:
        if (call := self._under_way.get(key)) is not None:
            self._under_way[key] = call._replace(since=asyncio.get_running_loop().time())

    def end_call(self, key: str) -> None:
        self._under_way.pop(key, None)

    def keep_urls(self, urls: Iterable[str]) -> None:
        """Keep the urls in what a tool returned in this session."""
        self._returned.update(dict.fromkeys(urls))
