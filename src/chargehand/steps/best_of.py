"""One attempt made several times in parallel: the members of a `best_of` -> the best of their outcomes.

    t3/1/b1/model/1   done                 }
    t3/1/b2/model/1   done, the better one } t3/1/best: b2, with a line about each of the three
    t3/1/b3/model/1   criterion_not_met    }

The choice is on the record: a resumed run repeats only the chosen member, whose effects are all committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field

from chargehand.engine.port import Engine
from chargehand.events import Decided
from chargehand.steps.criterion import Scorer, failed_by_bug, is_workers_own, work_and_check
from chargehand.values.base import JSON
from chargehand.values.outcome import Outcome, Usage
from chargehand.values.plain_class import plain_class
from chargehand.values.plan import Task
from chargehand.workers import Assignment, WorkerPort

# The place of the best in a sequence of done outcomes of one attempt, which come under their members' names, and why.
# What it uses joins the list, call by call.
Selector = Callable[[Task, Sequence[Outcome], int, list[Usage]], Awaitable[tuple[int, str]]]


@plain_class()
class BestOf:
    """Made for one attempt. A member that breaks off is that member's failure."""

    number: int
    assignment: Assignment
    worker: WorkerPort
    engine: Engine
    score: Scorer | None
    select: Selector | None
    # Members that have ended, by number from 1.
    outcomes: dict[int, Outcome] = field(default_factory=dict[int, Outcome])

    async def work(self) -> Outcome:
        """The best outcome with the usage of all; when none is done, one with a partial result, else the first."""
        if (known := self.engine.record.decision(self._key)) is not None and known["chosen"] is not None:
            return await self._chosen_before(known)
        await self._all()
        good = self._good()
        if not good:
            return self._none_done()
        if len(good) == 1:
            return await self._choose(good[0], "the only one that is done")
        if self.select is None:
            return await self._choose(self._surest(good), "the surest of those that are done")
        named = [self.outcomes[number].model_copy(update={"task": f"b{number}"}) for number in good]
        index, why = await self.select(self.assignment.task, named, self.assignment.attempt, self.assignment.used)
        return await self._choose(good[index], f"selected from {', '.join(each.task for each in named)}: {why}")

    async def salvage(self) -> Outcome | None:
        """When the time is over: the best of those that had ended by then, if any is done."""
        good = self._good()
        return await self._choose(self._surest(good), "the surest when the time was over") if good else None

    async def _all(self) -> None:
        used = [list[Usage]() for _ in range(self.number)]
        members = (self._member(number, mine) for number, mine in enumerate(used, 1))
        try:
            # Not a task group: it stops its tasks in no fixed order, so their events would have no fixed order either.
            ended = await asyncio.gather(*members, return_exceptions=True)
        finally:
            for each in used:
                self.assignment.used.extend(each)
        for error in ended:
            if error is not None:
                raise error

    async def _member(self, number: int, used: list[Usage]) -> None:
        try:
            outcome = await work_and_check(self._assignment_of(number, used), self.worker, self.engine, self.score)
        except Exception as error:
            if not is_workers_own(error):
                raise
            outcome = failed_by_bug(self.assignment.task, error)
        self.outcomes[number] = outcome

    def _assignment_of(self, number: int, used: list[Usage]) -> Assignment:
        whole = self.assignment
        return Assignment(whole.task, whole.attempt, whole.inputs, used, within=f"b{number}", tasks=whole.tasks)

    async def _chosen_before(self, known: JSON) -> Outcome:
        outcome = await work_and_check(self._assignment_of(known["chosen"], []), self.worker, self.engine, self.score)
        return outcome.model_copy(update={"usage": Usage.model_validate(known["usage"])})

    async def _choose(self, number: int, reason: str) -> Outcome:
        usage = Usage.total(self.assignment.used)
        value = {"chosen": number, "members": self._member_lines(), "usage": usage.to_json()}
        await self.engine.decide(self._key, "best_of", lambda: value, f"b{number} is {reason}")
        return self.outcomes[number].model_copy(update={"usage": usage})

    def _none_done(self) -> Outcome:
        """Recorded for readers only: a resumed run makes the same choice from the calls, which are all committed."""
        with_something = (number for number in sorted(self.outcomes) if self.outcomes[number].partial)
        outcome = self.outcomes[next(with_something, 1)]
        task = self.assignment.task
        self.engine.emit(
            Decided(
                key=self._key,
                decision="best_of",
                value={"chosen": None, "members": self._member_lines()},
                reason="none of them is done",
            ),
            task=task.id,
            attempt=self.assignment.attempt,
        )
        return outcome.model_copy(update={"usage": Usage.total(self.assignment.used)})

    def _member_lines(self) -> list[JSON]:
        """A line about each member, those that were stopped included."""
        lines: list[JSON] = []
        for number in range(1, self.number + 1):
            outcome = self.outcomes.get(number)
            line: dict[str, JSON] = {"member": f"b{number}", "status": outcome.status if outcome else "stopped"}
            if outcome is not None:
                line |= {"summary": outcome.summary, "confidence": outcome.confidence}
            lines.append(line)
        return lines

    def _good(self) -> list[int]:
        return [number for number in sorted(self.outcomes) if self.outcomes[number].ok]

    def _surest(self, good: list[int]) -> int:
        """The highest confidence; unknown is below all, and the first of equals counts."""
        return max(good, key=lambda number: (_confidence(self.outcomes[number]), -number))

    @property
    def _key(self) -> str:
        return self.assignment.key("best")


def _confidence(outcome: Outcome) -> int:
    return -1 if outcome.confidence is None else outcome.confidence
