"""The parts that the endpoints of one server share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from chargehand.record.home import Home
from chargehand.record.run_source import RunSource
from chargehand.runs.supervisor import Supervisor
from chargehand.server.access import Access
from chargehand.server.event_feed import Feeds
from chargehand.server.log_lines import LogLines
from chargehand.server.metrics import Metrics
from chargehand.server.offered import Offered
from chargehand.server.reading import Reading
from chargehand.server.run_list import RunList
from chargehand.server.run_states import RunStates
from chargehand.text.redaction import Redactor


@dataclass
class Server:
    """What the endpoints of one server share."""

    supervisor: Supervisor
    access: Access
    redactor: Redactor
    log: LogLines
    offered: Offered
    reading: Reading = field(default_factory=Reading)
    metrics: Metrics = field(default_factory=Metrics)

    @property
    def home(self) -> Home:
        return self.supervisor.home

    @property
    def source(self) -> RunSource:
        return self.supervisor.source

    @cached_property
    def run_list(self) -> RunList:
        return RunList(self.home)

    @cached_property
    def states(self) -> RunStates:
        return RunStates(self.source, self.redactor)

    @cached_property
    def feeds(self) -> Feeds:
        return Feeds(self.source, self.redactor, self.reading)

    def close(self) -> None:
        self.feeds.close()
        self.reading.close()
