"""What a server counts -> Prometheus text."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

# A method can be any word: unknown ones are counted together.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class Metrics:
    """Counted since the server started."""

    started: float = field(default_factory=time.time)
    # Method and status -> requests answered.
    requests: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    # Status -> runs of this server that reached it.
    ended: Counter[str] = field(default_factory=Counter[str])

    def count(self, method: str, status: int) -> None:
        self.requests[method if method in _METHODS else "other", status] += 1

    def render(self, gauges: Mapping[str, tuple[str, float]], runs: Mapping[str, int]) -> str:
        """`gauges` are name -> (help, value now); `runs` are the runs in the home by status."""
        lines: list[str] = []
        for name, (meaning, value) in gauges.items():
            lines += _family(name, meaning, "gauge", [("", value)])
        lines += _family("runs", "Runs in the home by status.", "gauge", _label_values("status", runs))
        lines += _family(
            "runs_ended_total", "Runs of this server that ended.", "counter", _label_values("status", self.ended)
        )
        requests = [(f'{{method="{method}",status="{status}"}}', n) for (method, status), n in self.requests.items()]
        lines += _family("http_requests_total", "Requests answered.", "counter", sorted(requests))
        lines += _family("start_time_seconds", "When the server started.", "gauge", [("", self.started)])
        return "\n".join(lines) + "\n"


def _label_values(label: str, values: Mapping[str, int]) -> list[tuple[str, float]]:
    return [(f'{{{label}="{name}"}}', value) for name, value in sorted(values.items())]


def _family(name: str, meaning: str, kind: str, values: Iterable[tuple[str, float]]) -> list[str]:
    whole = f"chargehand_{name}"
    head = [f"# HELP {whole} {meaning}", f"# TYPE {whole} {kind}"]
    return [*head, *(f"{whole}{labels} {value:.15g}" for labels, value in values)]
