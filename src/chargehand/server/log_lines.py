"""Requests and what happens to runs -> lines on stderr, as text or as JSON, without secrets."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any, Literal, TextIO, TypeAlias

from chargehand.text.escaping import dump_json, show_controls
from chargehand.text.redaction import Redactor

LogForm: TypeAlias = Literal["text", "json"]


class LogLines:
    """The log of one server: one line for each thing that happened, with its fields."""

    def __init__(self, form: LogForm, redactor: Redactor, out: TextIO | None = None) -> None:
        self._form = form
        self._redactor = redactor
        self._out = out or sys.stderr

    def write_request(self, method: str, path: str, status: int, ms: float) -> None:
        """A request. As text only one that changes something or is refused: a page makes dozens that read."""
        if self._form == "json" or method not in ("GET", "HEAD") or status not in (200, 304):
            self.write("request", method=method, path=path, status=status, ms=ms)

    def write(self, what: str, **fields: Any) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        given = {name: value for name, value in fields.items() if value is not None}
        if self._form == "json":
            line = dump_json(self._redactor.json({"at": at, "event": what, **given}))
        else:
            said = " ".join(f"{name}={value}" for name, value in given.items())
            line = show_controls(self._redactor.text(f"{at} {what} {said}".rstrip())).replace("\n", " ")
        print(line, file=self._out, flush=True)
