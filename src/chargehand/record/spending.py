"""Reservations and settlements on a record -> what a run has spent, and what its calls in flight may have used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

from chargehand.events import BudgetReserved, BudgetSettled, ModelCalled, ToolCalled
from chargehand.values.key import TaskPath
from chargehand.values.outcome import Usage
from chargehand.values.plain_class import plain_class

Called = ModelCalled | ToolCalled
_HEDGE = "/hedge"


def cost_of_lost_call(reserved: float | None) -> float | None:
    """Unknown, as is what it used; a call of a model that costs nothing has cost nothing."""
    return 0.0 if reserved == 0.0 else None


class InFlight(NamedTuple):
    """A call that was sent and not settled when its session died: it may have used all that was reserved for it."""

    key: str
    tokens: int
    usd: float | None
    usage: Usage

    @property
    def settled(self) -> BudgetSettled:
        """The settlement of the call, as the next session records it."""
        lost = self.usage.to_json()
        return BudgetSettled(key=self.key, tokens=self.tokens, usd=self.usd, estimated=True, lost=lost)


@plain_class(eq=True)
class RecordedSpending:
    """A fold over the events about money of one run."""

    tokens: int = 0
    usd: float = 0.0
    # By how many tokens settled calls exceeded their reservations, in total.
    short: int = 0
    # task -> its (tokens, usd), including those of its parts and of its team.
    by_task: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])
    # key -> (tokens, usd) that are reserved and not settled, and the keys of sent calls, both for the last session
    # only.
    reserved: dict[str, tuple[int, float | None]] = field(default_factory=dict[str, tuple[int, float | None]])
    sent: set[str] = field(default_factory=set[str])
    # By key, the calls in flight when a session died. They are counted but not settled on the record: a later session
    # settles them.
    written_off: dict[str, InFlight] = field(default_factory=dict[str, InFlight])
    # What was reserved for calls that were sent and cut off.
    lost: list[Usage] = field(default_factory=list[Usage])
    # Tokens counted for each call that ended without reporting its usage.
    estimated: list[int] = field(default_factory=list[int])

    def reserve(self, reserved: BudgetReserved) -> None:
        self.written_off.pop(reserved.key, None)
        self.reserved[reserved.key] = (reserved.tokens, reserved.usd)

    def settle(self, task: str | None, settled: BudgetSettled) -> None:
        if settled.key in self.written_off:
            del self.written_off[settled.key]  # counted when its session was found to have died
            return
        set_aside, _ = self.reserved.pop(settled.key, (settled.tokens, None))
        self.short += max(settled.tokens - set_aside, 0)
        self.tokens += settled.tokens
        self.usd += settled.usd or 0.0
        if settled.lost:
            self.lost.append(Usage.model_validate(settled.lost))
        elif settled.estimated:
            self.estimated.append(settled.tokens)
        for whole in () if task is None else TaskPath.parse(task).wholes:
            tokens, usd = self.by_task.get(whole, (0, 0.0))
            self.by_task[whole] = (tokens + settled.tokens, usd + (settled.usd or 0.0))

    def spent_by(self, task: str) -> tuple[int, float]:
        """Tokens and USD a task has used, the tasks it was split into and those of its team included."""
        return self.by_task.get(task, (0, 0.0))

    def in_flight(self, intents: Mapping[str, Called]) -> list[InFlight]:
        """Calls under way where the record stops. A call that waited for its slot was never sent and used nothing."""
        found: list[InFlight] = []
        for key, (tokens, usd) in self.reserved.items():
            # A hedge is a second copy of the same call.
            called = intents.get(key.removesuffix(_HEDGE))
            if key in self.sent:
                model, output = (called.model, called.max_output) if isinstance(called, ModelCalled) else ("", 0)
                output = min(output, tokens)
                usage = Usage(
                    input_tokens=tokens - output,
                    output_tokens=output,
                    usd=cost_of_lost_call(usd),
                    calls=1,
                    models=(model,) if model else (),
                )
                found.append(InFlight(key, tokens, usd, usage))
        return found

    def write_off(self, intents: Mapping[str, Called]) -> None:
        """Count the calls that the previous session left in flight as spent."""
        for each in self.in_flight(intents):
            self.tokens += each.tokens
            self.usd += each.usd or 0.0
            self.lost.append(each.usage)
            self.written_off[each.key] = each
        self.reserved.clear()
        self.sent.clear()
