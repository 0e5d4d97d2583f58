"""The port of an app, for commands that continue or show a run: it follows the run and makes the shown report."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias, TypedDict

from chargehand.engine.engine_session import Listener
from chargehand.engine.people import Person
from chargehand.runs.existing_runs import OnSession, OpenRecord
from chargehand.synthesizer import OnDraft
from chargehand.values.report import Report

# Gets, in a sentence, what to know before the run begins.
Notify: TypeAlias = Callable[[str], None]
# Begins a run or continues one; takes the callbacks of Watch.
StartRun: TypeAlias = Callable[..., Awaitable[Report]]


class Watch(TypedDict, total=False):
    """The callbacks that follow a run and what opens its record, as `Supervisor.run` takes them."""

    record: OpenRecord | None
    person: Person | None
    on_event: Listener | None
    on_draft: OnDraft | None
    on_session: OnSession | None
    stay: bool


class HasReport(Protocol):
    """What an app made of a run."""

    @property
    def report(self) -> Report: ...

    @property
    def failed_gate(self) -> str | None:
        """Why the exit code is 1 although the run ended, in a sentence; None where nothing asks for that."""
        ...


class App(Protocol):
    """An app with the options of one run."""

    async def follow(self, start: StartRun, **watch: Any) -> HasReport:
        """The run from `start`, with all that the app does during it and after it."""
        ...

    def show(self, report: Report, *, brief: bool = False) -> Report:
        """A report on record as the app shows it; nothing is done. `brief`: findings are listed beside the answer."""
        ...
