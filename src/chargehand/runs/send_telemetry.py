"""Events of runs as they happen -> spans and metrics, sent to an OpenTelemetry collector by one thread of the process.

A run never waits for it and never fails because of it: its loop puts events into a queue; the thread does the rest.
Spans are sent soon after they end. A collector that is down is tried again; if something could not be sent by the end
of a run's session, one line on stderr says so. It is imported only where telemetry is on.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from itertools import takewhile
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener
from uuid import uuid4

from chargehand.events import Event, RunEnded
from chargehand.record.home import Home
from chargehand.settings.settings import OtelSettings
from chargehand.text.escaping import dump_json, show_controls
from chargehand.text.redaction import Redactor
from chargehand.trace.otlp import RunSpans, document_of
from chargehand.trace.otlp_metrics import ProcessMetrics
from chargehand.trace.otlp_protobuf import to_protobuf

Data: TypeAlias = dict[str, Any]

TIMEOUT_S = 10.0
# Spans are sent this long after they ended, metrics this often, and both when a session ends.
FLUSH_S = 2.0
METRICS_S = 30.0
# Events are taken so often. To wake a waiting thread for each costs the loop more than the events themselves.
GATHER_S = 0.1
# Spans in one request, and how many wait for a collector that is down: older ones are dropped.
_BATCH = 512
_MOST_WAITING = 20_000
# The pause after a collector failed, doubled each time up to the last.
_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0


@dataclass(slots=True, eq=False)
class WatchedRun:
    """One session of a run. The loop writes `queue`, the thread everything else."""

    queue: SimpleQueue[tuple[WatchedRun, Event | None]]
    # Set when the thread should not wait for more events.
    hurry: threading.Event
    home: Path
    run: str
    # Whether spans are sent: a caller may have decided that its trace is not kept.
    sampled: bool = True
    spans: RunSpans | None = None
    # Whether it was reported that not all of it was sent.
    said: bool = False

    def on_event(self, event: Event) -> None:
        self.queue.put((self, event))

    def end(self) -> None:
        """The session is over, and all of it is on record."""
        self.queue.put((self, None))
        self.hurry.set()


@dataclass(slots=True, eq=False)
class Telemetry:
    """The collector of a process, and what waits to be sent. Only `watch` and `wait` are called outside its thread."""

    settings: OtelSettings
    env: Mapping[str, str]
    queue: SimpleQueue[tuple[WatchedRun, Event | None]] = field(
        default_factory=SimpleQueue[tuple[WatchedRun, Event | None]]
    )
    hurry: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    # Sessions that are not over, or not sent yet; `idle` is set while there is none.
    open: int = 0
    idle: threading.Event = field(default_factory=threading.Event)
    redactor: Redactor = field(init=False)
    metrics: ProcessMetrics = field(default_factory=lambda: ProcessMetrics(time.time()))
    waiting: deque[tuple[WatchedRun, Data]] = field(default_factory=deque[tuple[WatchedRun, Data]])
    flushed: float = 0.0
    measured: float = 0.0
    # No request before this time: the collector failed.
    not_before: float = 0.0
    pause_s: float = _PAUSE_S
    # Whether the collector does not support metrics; and whether it was reported that it refused some.
    no_metrics: bool = False
    said_of_metrics: bool = False
    # Metrics add up in a process, so those of two must not be taken for one series.
    instance: str = field(default_factory=lambda: str(uuid4()))

    def __post_init__(self) -> None:
        self.redactor = Redactor.from_env(self.env)

    def watch(self, home: Path, run: str, *, sampled: bool) -> WatchedRun:
        """Begin to send what a session of a run does."""
        with self.lock:
            if self.thread is None or not self.thread.is_alive():
                self.thread = threading.Thread(target=self._work, name="telemetry", daemon=True)
                self.thread.start()
            self.open += 1
            self.idle.clear()
        return WatchedRun(self.queue, self.hurry, home, run, sampled)

    def wait(self, seconds: float) -> None:
        """Wait until all ended sessions were sent or given up, at most for this long."""
        if self.open:
            self.idle.wait(seconds)

    # -- the thread --------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            try:
                watch, event = self.queue.get(timeout=FLUSH_S)
            except Empty:
                self._send_due()
                continue
            try:
                self._take(watch, event)
                if time.monotonic() - self.flushed >= FLUSH_S:
                    self._send_due()
            except Exception as error:  # noqa: BLE001 -- whatever it is, the run is not to suffer from it
                self._say(watch, error)
            finally:
                if event is None:
                    with self.lock:
                        self.open -= 1
                        if not self.open:
                            self.idle.set()
            if self.queue.empty():
                self.hurry.wait(GATHER_S)
                self.hurry.clear()

    def _take(self, watch: WatchedRun, event: Event | None) -> None:
        if event is None:
            self._end(watch)
            return
        self.metrics.apply(event)
        if not watch.sampled:
            return
        if watch.spans is None:
            watch.spans = self._spans_before(watch, event.seq)
        watch.spans.apply(event)
        self._keep_closed(watch, watch.spans)

    def _spans_before(self, watch: WatchedRun, seq: int) -> RunSpans:
        """The spans after the earlier sessions of a run. Those were sent, except for spans that a session left open."""
        source = Home(watch.home)
        spans = RunSpans(partial(source.messages, watch.run), self.redactor, content=self._content)
        if seq > 1:
            with closing(source.events(watch.run)) as events:  # pyright: ignore[reportArgumentType, reportUnknownVariableType]
                for event in takewhile(lambda each: each.seq < seq, events):  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType, reportUnknownMemberType, reportUnknownVariableType]
                    spans.apply(event)  # pyright: ignore[reportUnknownArgumentType]
                    if isinstance(event.body, RunEnded):  # pyright: ignore[reportUnknownMemberType]
                        spans.close_all()
            spans.take_closed()
        spans.take_begun()
        return spans

    def _keep_closed(self, watch: WatchedRun, spans: RunSpans) -> None:
        spans.take_begun()
        for span in spans.take_closed():
            self.waiting.append((watch, spans.write(span)))
        while len(self.waiting) > _MOST_WAITING:
            self._say(self.waiting.popleft()[0], ValueError("too many wait for the collector"))

    def _end(self, watch: WatchedRun) -> None:
        if watch.spans is not None:
            watch.spans.close_all()
            self._keep_closed(watch, watch.spans)
            watch.spans = None
        self.metrics.forget(watch.run)
        # With many runs in one process, no run waits for a collector that has just failed, except the last, which may
        # end the process.
        if self.open > 1 and time.monotonic() < self.not_before:
            return
        error = self._send_all(metrics=True)
        if error is not None:
            self.waiting = deque(each for each in self.waiting if each[0] is not watch)
            self._say(watch, error)

    def _send_due(self) -> None:
        self.flushed = now = time.monotonic()
        due = now - self.measured >= METRICS_S
        if now >= self.not_before and (self.waiting or (due and self.metrics.changed)):
            self._send_all(metrics=due)

    def _send_all(self, *, metrics: bool) -> Exception | None:
        """Send what waits. An error of the collector stops the sending, and the rest continues to wait."""
        try:
            if self._is_on("TRACES"):
                while self.waiting:
                    batch = [self.waiting[n] for n in range(min(_BATCH, len(self.waiting)))]
                    spans = [span for _, span in batch]
                    self._post("traces", document_of(spans, self.metrics.version, self.redactor, self._resource))
                    for _ in batch:
                        self.waiting.popleft()
            self.waiting.clear()
            if metrics and self.metrics.changed and self._is_on("METRICS"):
                self._send_metrics()
        except Exception as error:  # noqa: BLE001 -- recorded: said when the session ends
            self.not_before = time.monotonic() + self.pause_s
            self.pause_s = min(2 * self.pause_s, _LONGEST_PAUSE_S)
            self.flushed = time.monotonic()
            return error
        self.pause_s = _PAUSE_S
        self.flushed = time.monotonic()
        return None

    def _send_metrics(self) -> None:
        """Refused metrics are part of the next ones; a viewer that does not support metrics is not asked again."""
        self.measured = time.monotonic()
        try:
            resource = {"service.instance.id": self.instance} | self._resource
            self._post("metrics", self.metrics.write(time.time(), self.redactor, resource))
        except HTTPError as error:
            error.close()
            self.no_metrics = error.code in (404, 405, 415, 501)
            if error.code == HTTPStatus.BAD_REQUEST and not self.said_of_metrics:
                self.said_of_metrics = True
                said = show_controls(self.redactor.text(_reason(error)))
                print(f"The collector did not take the metrics: {said}.", file=sys.stderr)
        except OSError:
            return

    def _post(self, signal: str, document: Data) -> None:
        address = address_of(signal, self.settings, self.env)
        headers = headers_of(signal, self.settings, self.env)
        protocol = self.env.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL") or self.env.get(
            "OTEL_EXPORTER_OTLP_PROTOCOL", ""
        )
        if protocol.strip() == "http/json":
            body, media = dump_json(document, ascii_only=True).encode(), "application/json"
        else:
            body, media = to_protobuf(document), "application/x-protobuf"
        _post(address, body, {**headers, "Content-Type": media}, _timeout(self.env))

    def _is_on(self, signal: str) -> bool:
        """Whether this signal is sent: yes, unless it is switched off or only the other signal has an address."""
        if self.env.get(f"OTEL_{signal}_EXPORTER", "").strip().lower() == "none":
            return False
        if signal == "METRICS" and self.no_metrics:
            return False
        given = (self.env.get("OTEL_EXPORTER_OTLP_ENDPOINT"), self.env.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"))
        return any(each and each.strip() for each in (*given, self.settings.endpoint))

    @property
    def _content(self) -> bool:
        written = self.env.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").strip().lower()
        return self.settings.content if not written else written == "true"

    @property
    def _resource(self) -> Data:
        given = _pairs(self.env.get("OTEL_RESOURCE_ATTRIBUTES", ""))
        name = self.env.get("OTEL_SERVICE_NAME", "").strip()
        return given | ({"service.name": name} if name else {})

    def _say(self, watch: WatchedRun, error: Exception) -> None:
        if watch.said:
            return
        watch.said = True
        said = show_controls(self.redactor.text(_reason(error)))
        print(
            f"The spans of {watch.run} were not sent: {said}. "
            f"Send them later: chargehand trace {watch.run} --format otlp",
            file=sys.stderr,
        )


def _reason(error: Exception) -> str:
    """Why nothing was sent, without the form in which urllib wraps it."""
    cause = error.reason if isinstance(error, URLError) and not isinstance(error, HTTPError) else error
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause)


# -- one for a process -----------------------------------------------------------------------------------------------

_telemetry: dict[OtelSettings, Telemetry] = {}


def telemetry_to(settings: OtelSettings, env: Mapping[str, str]) -> Telemetry:
    """The telemetry of this process to the collector that is set."""
    found = _telemetry.get(settings)
    if found is None or found.env != dict(env):
        found = _telemetry[settings] = Telemetry(settings, dict(env))
    return found


def wait_for_senders(seconds: float = TIMEOUT_S) -> None:
    """At the end of the process: at most this long for all of them together."""
    until = time.monotonic() + seconds
    for each in _telemetry.values():
        each.wait(max(until - time.monotonic(), 0.0))


atexit.register(wait_for_senders)


# -- by the variables of OpenTelemetry, which win over `[otel]` --------------------------------------------------------


def address_of(signal: str, settings: OtelSettings, env: Mapping[str, str]) -> str:
    """Where `traces` or `metrics` go."""
    exact = env.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", "").strip()
    general = env.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip() or settings.endpoint or ""
    address = exact or general.rstrip("/") + f"/v1/{signal}"
    if urlsplit(address).scheme not in ("http", "https"):
        raise ValueError("OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https address, such as http://localhost:4318")
    return address


def headers_of(signal: str, settings: OtelSettings, env: Mapping[str, str]) -> dict[str, str]:
    """`name=value,name=value` with values as in a url."""
    named = env.get(settings.headers_env, "") if settings.headers_env else ""
    written = env.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_HEADERS") or env.get("OTEL_EXPORTER_OTLP_HEADERS") or named
    return _pairs(written)


def _pairs(written: str) -> dict[str, str]:
    pairs = (each.partition("=") for each in written.split(",") if "=" in each)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


class _NoRedirects(HTTPRedirectHandler):
    """The headers may hold a key, which must not be sent to another address."""

    def redirect_request(self, *_args: Any, **_named: Any) -> None:
        return None


def _post(address: str, body: bytes, headers: dict[str, str], timeout_s: float) -> None:
    request = Request(address, body, headers, method="POST")  # noqa: S310 -- checked above
    with build_opener(_NoRedirects).open(request, timeout=timeout_s) as answer:
        answer.read(1000)


def _timeout(env: Mapping[str, str]) -> float:
    written = env.get("OTEL_EXPORTER_OTLP_TIMEOUT", "")
    return min(int(written) / 1000, TIMEOUT_S) if written.isdecimal() and int(written) else TIMEOUT_S
