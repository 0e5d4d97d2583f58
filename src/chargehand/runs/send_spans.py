"""A run's record -> its spans, sent to the OpenTelemetry collector that the environment names, in a thread.

A run never waits for it and never fails by it: what goes wrong is one line on stderr. It is imported only where
`OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from chargehand.record.home import Home
from chargehand.text.escaping import dump_json, show_controls
from chargehand.text.redaction import Redactor
from chargehand.trace import to_otlp

TIMEOUT_S = 10.0
_under_way: set[threading.Thread] = set()


def send_spans(home: Path, run: str, after: int, env: Mapping[str, str] | None = None) -> None:
    """Begin to send what began after event `after`; returns at once."""
    values = dict(os.environ if env is None else env)
    thread = threading.Thread(target=_send, args=(home, run, after, values), name="send spans", daemon=True)
    _under_way.add(thread)
    thread.start()


def wait_for_senders(seconds: float = TIMEOUT_S) -> None:
    """At the end of the process: so long at the most for all of them together."""
    until = time.monotonic() + seconds
    for thread in list(_under_way):
        thread.join(max(until - time.monotonic(), 0.0))


atexit.register(wait_for_senders)


def _send(home: Path, run: str, after: int, env: Mapping[str, str]) -> None:
    redactor = Redactor.from_env(env)
    try:
        source = Home(home)
        content = _is_true(env, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")
        spans = to_otlp(source.events(run), partial(source.messages, run), redactor, content=content, after=after)
        _post(address_in(env), dump_json(spans, ascii_only=True).encode(), headers_in(env), _timeout(env))
    except Exception as error:  # noqa: BLE001 -- whatever it is, the run is not to suffer from it
        said = show_controls(redactor.text(f"{error}"))
        print(
            f"The spans of {run} were not sent: {said}. Send them later: chargehand trace {run} --format otlp",
            file=sys.stderr,
        )
    finally:
        _under_way.discard(threading.current_thread())


def address_in(env: Mapping[str, str]) -> str:
    """Where traces go, by the variables of OpenTelemetry."""
    exact = env.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "").strip()
    address = exact or env.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip().rstrip("/") + "/v1/traces"
    if urlsplit(address).scheme not in ("http", "https"):
        raise ValueError("OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https address, such as http://localhost:4318")
    return address


def headers_in(env: Mapping[str, str]) -> dict[str, str]:
    """`name=value,name=value` with values as in a url."""
    written = env.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or env.get("OTEL_EXPORTER_OTLP_HEADERS", "")
    pairs = (each.partition("=") for each in written.split(",") if "=" in each)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


class _NoRedirects(HTTPRedirectHandler):
    """The headers may hold a key, which goes nowhere else."""

    def redirect_request(self, *_args: Any, **_named: Any) -> None:
        return None


def _post(address: str, body: bytes, headers: dict[str, str], timeout_s: float) -> None:
    request = Request(address, body, {**headers, "Content-Type": "application/json"}, method="POST")  # noqa: S310 -- checked above
    with build_opener(_NoRedirects).open(request, timeout=timeout_s) as answer:
        answer.read(1000)


def _timeout(env: Mapping[str, str]) -> float:
    written = env.get("OTEL_EXPORTER_OTLP_TIMEOUT", "")
    return min(int(written) / 1000, TIMEOUT_S) if written.isdecimal() and int(written) else TIMEOUT_S


def _is_true(env: Mapping[str, str], name: str) -> bool:
    return env.get(name, "").strip().lower() == "true"
