"""What the supervisor lends the steps of a dispatch: models that rewrite, split, score, select, route; and people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from chargehand.dispatcher import Rungs
from chargehand.steps.best_of import Selector
from chargehand.steps.criterion import Scorer
from chargehand.values.effect import Question
from chargehand.values.outcome import Outcome, Usage
from chargehand.values.plan import Plan, Task

# These add what they use to the list, call by call.
Refiner = Callable[[Task, Outcome, int, list[Usage]], Awaitable[Task]]
Splitter = Callable[[Task, Outcome, int, list[Usage]], Awaitable[Plan | None]]
# Which of several workers tries a task next.
Rerouter = Callable[[Task, Outcome, Sequence[str], int, list[Usage]], Awaitable[str]]
AskAbout = Callable[[Task, Outcome], Question]


@dataclass(frozen=True, slots=True)
class SupervisorHelp:
    """Without one of these its rung is passed over.

    Without `select` the surest of a `best_of` is taken, and without `reroute` the next worker in order.
    """

    refine: Refiner | None = None
    split: Splitter | None = None
    ask: AskAbout | None = None
    score: Scorer | None = None
    select: Selector | None = None
    reroute: Rerouter | None = None

    @property
    def rungs(self) -> Rungs:
        """What of it a dispatch has to know."""
        return Rungs(
            refine=self.refine is not None,
            split=self.split is not None,
            ask=self.ask is not None,
            reroute=self.reroute is not None,
        )
