"""What earlier sessions of a run left, with what this one has sent and read so far."""

from __future__ import annotations

from collections.abc import Iterable

from chargehand.record.replay import Replay
from chargehand.values.base import JSON
from chargehand.values.effect import ToolResult
from chargehand.values.key import Key, TaskPath
from chargehand.values.outcome import Outcome


class LocalRecord:
    """Questions about the folded journal; only the session's effects write to it."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        # Tasks and attempts of which something was sent, in this session or before.
        self._sent: set[tuple[str | None, int | None]] = set()
        for key in (*replay.committed, *replay.intents):
            at = Key.parse(key)
            self.mark_sent(at.task, at.attempt)
        # Texts with addresses that tools returned in this session.
        self._returned: list[str] = []

    def decided(self, key: str) -> JSON:
        return self._replay.decisions.get(key)

    def plan(self, within: str = "") -> dict[str, JSON] | None:
        return self._replay.approved_within.get(within) if within else self._replay.approved

    def ended(self, task: str) -> Outcome | None:
        return self._replay.ended.get(task)

    def attempted(self, task: str, attempt: int) -> Outcome | None:
        return self._replay.attempted.get(f"{task}/{attempt}")

    def began(self, task: str, attempt: int | None = None) -> float | None:
        return self._replay.begun.get(task if attempt is None else f"{task}/{attempt}")

    def attempts(self, task: str) -> int:
        return self._replay.reopened.get(task, 0)

    def has_sent(self, task: str, attempt: int) -> bool:
        return (task, attempt) in self._sent

    def tool_texts(self) -> Iterable[str]:
        for recorded in self._replay.committed.values():
            if "text" in recorded["result"] and _may_hold_address(recorded["result"]["text"]):
                yield recorded["result"]["text"]
        yield from self._returned

    def mark_sent(self, task: str | None, attempt: int | None) -> None:
        """Something of this attempt, and so of those it is nested in, was sent."""
        self._sent.add((task, attempt))
        if task is not None:
            self._sent.update(TaskPath.parse(task).around)

    def keep_text(self, result: ToolResult) -> None:
        """Keep what a tool returned in this session, if there may be an address in it."""
        if _may_hold_address(result.text):
            self._returned.append(result.text)


def _may_hold_address(text: str) -> bool:
    return "://" in text or "www." in text
