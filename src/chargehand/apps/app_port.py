"""The port of an app, for commands that continue or show a run: it follows the run and makes the shown report."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias, TypedDict

from chargehand.engine.engine_session import Listener
from chargehand.engine.people import Person
from chargehand.runs.continue_runs import OnSession, OpenRecord
from chargehand.synthesizer import OnDraft
from chargehand.values.report import Report

# Takes a sentence for the user before the run begins.
Notify: TypeAlias = Callable[[str], None]
# Begins or continues a run; takes the callbacks of Watch.
StartRun: TypeAlias = Callable[..., Awaitable[Report]]


class Watch(TypedDict, total=False):
    """The callbacks that follow a run, and the function that opens its record, as in `Supervisor.run`."""

    record: OpenRecord | None
    person: Person | None
    on_event: Listener | None
    on_draft: OnDraft | None
    on_session: OnSession | None
    stay: bool


class HasReport(Protocol):
    """The result that an app made from a run."""

    @property
    def report(self) -> Report: ...

    @property
    def failed_gate(self) -> str | None:
        """A sentence why the exit code is 1 although the run ended; None if there is no reason."""
        ...


class App(Protocol):
    """An app with the options of one run."""

    async def follow(self, start: StartRun, **watch: Any) -> HasReport:
        """Carry out the run from `start`, with everything the app does during and after it."""
        ...

    def show(self, report: Report, *, brief: bool = False) -> Report:
        """A recorded report as the app shows it, without side effects. `brief`: findings are listed elsewhere."""
        ...
