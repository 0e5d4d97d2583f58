"""One session of a run on an engine, as its owner drives it: open, run until only people can continue, stop."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextvars import ContextVar
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, Self, TypeVar

from chargehand.engine.outcomes import KeptOutcomes
from chargehand.engine.port import Engine
from chargehand.errors import ChargehandError
from chargehand.events import Event
from chargehand.models.resolve import Models
from chargehand.record.journal import Journal
from chargehand.record.replay import Replay
from chargehand.tools import Tool, ToolContext
from chargehand.values.base import JSON
from chargehand.values.budget import Budget
from chargehand.values.default_limits import DEFAULT_CONCURRENCY, DEFAULT_WAIT_S
from chargehand.values.effect import Question
from chargehand.values.outcome import Usage
from chargehand.values.plain_class import plain_class

if TYPE_CHECKING:
    from chargehand.record.cache import Cache
    from chargehand.record.copied_events import Copied
    from chargehand.record.mailbox import Mailbox

T = TypeVar("T")

# How long calls in flight may take to commit after the first Ctrl-C.
DRAIN_S = 5.0

Listener = Callable[[Event], None]
# Why a session ends before the run does; with `restarting` the next one follows at once.
ParkedStatus = Literal["waiting", "paused", "restarting", "short"]


class Parked(ChargehandError):
    """The run waits for a person, is paused, lacks budget, or continues in another session, and can do nothing else."""

    exit_code = 4

    def __init__(self, status: ParkedStatus) -> None:
        super().__init__()
        self.status: ParkedStatus = status


class Prior(NamedTuple):
    """The run a rerun repeats: its committed successes may be used again."""

    run: str
    replay: Replay


class Fork(NamedTuple):
    """The run that another run was forked from, the task of the fork, and what the new run takes over."""

    run: str
    at: str | None
    events: tuple[Copied, ...]


# The `traceparent` header of the caller, in the asyncio task that answers a request and in the tasks it starts.
caller_header: ContextVar[str | None] = ContextVar("caller_header", default=None)


class Opening(NamedTuple):
    """What a session puts on the record when it opens: its run, what is tried again, and warnings."""

    request: JSON
    team: JSON
    settings: JSON
    rerun_of: str | None = None
    # Tasks to run again, and with them the supervisor's own failed calls; None leaves everything as it ended.
    reopen: tuple[str, ...] | None = None
    warnings: tuple[str, ...] = ()
    # The keys of the orders that `reopen` carries out.
    restarts: tuple[str, ...] = ()
    # What a run that begins takes over from the one it was forked from.
    fork: Fork | None = None
    # The trace that the run is part of, and the span of its caller.
    trace: JSON = None


class Spent(NamedTuple):
    """What a run has spent in all its sessions, calls without a known result included."""

    tokens: int
    usd: float
    # The most that interrupted calls may have used.
    lost: Usage
    # Tokens counted for each call that did not say what it used.
    estimated: tuple[int, ...]
    # What all calls with a result used, including calls whose result nothing read.
    used: Usage
    # By how many tokens calls exceeded their reservations.
    short: int
    # Task -> what its attempts used before it was reopened; "" for the supervisor's calls whose results are not used.
    earlier: Mapping[str, Usage] = MappingProxyType({})


@plain_class(frozen=True, kw_only=True)
class EngineInputs:
    """What a session is made from: the run, the place of its record, the resources for its effects, its limits."""

    run: str
    journal: Journal
    models: Models
    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    context: ToolContext = field(default_factory=ToolContext)
    # What analyzers found in earlier runs; None keeps nothing.
    analyses: Cache | None = None
    replay: Replay | None = None
    # None for a run that is never resumed: its beginning is not recorded.
    opening: Opening | None = None
    # When all work has to be over, in seconds since 1970.
    deadline_at: float | None = None
    # How long a call waits for a provider that asks for a pause, and the second of the run at which the wait must end.
    wait_s: float = DEFAULT_WAIT_S
    deadline_s: float | None = None
    prior: Prior | None = None
    budget: Budget | None = None
    max_concurrent: int = DEFAULT_CONCURRENCY
    hedge_after_s: float | None = None
    # The model that writes the answer: the part held back for the answer is also held in US dollars, at its price.
    writer: str | None = None
    listeners: tuple[Listener, ...] = ()
    # Asks a person now; without it questions stay open until another session.
    people: Callable[[Question], Awaitable[JSON]] | None = None
    # Reads a person's words as the answer to a question; InvalidAnswer says what is wrong with them.
    read_answer: Callable[[Question, str], JSON] | None = None
    # Where orders to the run arrive; without it there are none.
    mailbox: Mailbox | None = None
    # Whether a paused session waits here to be continued; else it ends.
    stays: bool = False
    # The key of a call -> the W3C trace context that it continues; None where the run is not part of a trace.
    trace_header: Callable[[str], str | None] | None = None
    wall_clock: Callable[[], float] = time.time
    chance: random.Random | None = None
    # Where outcomes are kept: in memory, unless steps of the run are carried out elsewhere too.
    outcomes: KeptOutcomes = field(default_factory=KeptOutcomes)
    # Urls in what tools of the run returned elsewhere.
    urls: tuple[str, ...] = ()
    # Whether a call that the budget denies ends the session as `short`: the caller may then give it more.
    may_get_more: bool = False
    # Whether the output of workers is reserved a second time, for the synthesizer that reads it on the same budget.
    sets_aside_reading: bool = True


class EngineSession(Engine, Protocol):
    """An engine that opens and closes. Open it with `async with`: leaving writes the rest of the record."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

    @property
    def replay(self) -> Replay:
        """What earlier sessions left, folded."""
        ...

    @property
    def limit(self) -> Budget:
        """What the run may use in all its sessions, with what was added to it."""
        ...

    @property
    def spent(self) -> Spent:
        """What the run has spent so far, in this session and before."""
        ...

    @property
    def paused(self) -> bool:
        """Whether a person has paused the run."""
        ...

    @property
    def restarting(self) -> bool:
        """Whether a person has restarted tasks: this session ends, and another one reopens them."""
        ...

    def unrecorded_still_s(self) -> float:
        """Seconds in which the run was paused, or waited only for people, and that no event says yet."""
        ...

    async def until_parked(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work; Parked is raised as soon as it only waits for people, or is paused."""
        ...

    async def read_orders(self) -> None:
        """Take the orders that have arrived. The verdict on each is on the record before it is acted on."""
        ...

    async def read_last_orders(self) -> None:
        """Take the orders that came before the end of the run: each gets its verdict."""
        ...

    def hold(self) -> None:
        """Begin nothing new. At the next `read_orders` with nothing in flight, Parked ends the work as `paused`."""
        ...

    async def drain(self, seconds: float = DRAIN_S) -> None:
        """Start nothing new, and give effects in flight some seconds to commit."""
        ...

    async def commit(self) -> None:
        """Return once everything emitted so far is on disk."""
        ...
