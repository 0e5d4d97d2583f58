"""The events of one streamed reply -> its text as it arrives, and the reply when it is complete.

Most events of a reply add a few characters of text and are otherwise identical, byte for byte. After one such event was
read as JSON, the text of similar events is cut out of their bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from pydantic_core import from_json, to_json

from chargehand.values.message import Reply

# The number of events read as JSON before the search for similar ones; it doubles each time that none is found.
_FIRST_READ = 2


class Listener(Protocol):
    """Collects one streamed reply of a wire format."""

    def hear(self, event: dict[str, Any]) -> str:
        """Process an event; returns the text it added."""
        ...

    def text_adder(self, event: dict[str, Any]) -> Callable[[str], object] | None:
        """The function that takes the text of an event that differs from this one only in its text.

        None if this event did anything other than add text that a similar event would do again.
        """
        ...

    def reply(self) -> Reply | None:
        """The reply, or None while it is not complete."""
        ...


class _Form(NamedTuple):
    """The bytes before and after the text of an event, and the function that takes the text."""

    before: bytes
    after: bytes
    add: Callable[[str], object]


class StreamedReply:
    """`read` parses events, one result for each; `check` raises the error in an event. `hear` raises errors of both."""

    def __init__(
        self,
        listener: Listener,
        read: Callable[[list[bytes]], list[dict[str, Any]]],
        check: Callable[[dict[str, Any]], None],
    ) -> None:
        self._listener = listener
        self._read = read
        self._check = check
        self._form: _Form | None = None
        self._read_next = _FIRST_READ
        # How many events were processed.
        self.heard = 0

    def hear(self, events: list[bytes]) -> str:
        """Process events that arrived together; returns the text they added."""
        texts: list[str] = []
        at = 0
        while at < len(events):
            alike = self._hear_alike(events, at)
            if alike:
                self._read_next = _FIRST_READ
            else:
                alike = self._hear_each(events[at : at + self._read_next])
                self._read_next *= 2
            texts += alike
            at += len(alike)
        return "".join(texts)

    def reply(self) -> Reply | None:
        return self._listener.reply()

    def _hear_each(self, events: list[bytes]) -> list[str]:
        texts: list[str] = []
        all_found = self._read(events)
        for found in all_found:
            self._check(found)
            texts.append(self._listener.hear(found))
            self.heard += 1
        for event, found, text in zip(reversed(events), reversed(all_found), reversed(texts), strict=True):
            if text and (add := self._listener.text_adder(found)) is not None:
                self._form = _find_form(event, text, add)
                if self._form is not None:
                    break
        return texts

    def _hear_alike(self, events: list[bytes], at: int) -> list[str]:
        """The texts of the events from `at` on that have the known form; none if they cannot be read."""
        if self._form is None:
            return []
        inner = _cut_out(self._form, events[at:] if at else events)
        try:
            texts: list[str] = from_json(b'["%b"]' % b'","'.join(inner)) if inner else []
            text = "".join(texts)
        except (ValueError, TypeError):
            return []
        if len(texts) != len(inner):
            return []
        self._form.add(text)
        self.heard += len(texts)
        return texts


def _cut_out(form: _Form, events: list[bytes]) -> list[bytes]:
    """The bytes of the text in each event, up to the first event of another form."""
    before, after, _ = form
    if not events[0].startswith(before):
        return []
    # All of them are cut at once: a loop over hundreds of events takes ten times as long.
    whole = b"\n".join(events)
    inner = whole[len(before) :].split(after + b"\n" + before)
    *_, last = inner
    if whole.count(b"\n") == len(events) - 1 and last.count(b"\n") == len(events) - len(inner):
        # Only the last piece has line breaks: each other piece belongs to one event.
        last, _, _ = last.partition(b"\n")
        inner[-1:] = [last.removesuffix(after)] if last.endswith(after) else []
        return inner
    return _cut_out_each(form, events)


def _cut_out_each(form: _Form, events: list[bytes]) -> list[bytes]:
    """The same when events of another form come in between, or when events have line breaks."""
    before, after, _ = form
    start, end, shortest = len(before), -len(after), len(before) + len(after)
    inner: list[bytes] = []
    for event in events:
        if not (event.startswith(before) and event.endswith(after)) or len(event) < shortest:
            break
        inner.append(event[start:end])
    return inner


def _find_form(event: bytes, text: str, add: Callable[[str], object]) -> _Form | None:
    """None if the text may be in more than one place, or is not encoded as `to_json` encodes it."""
    try:
        quoted = to_json(text)
    except ValueError:  # half a surrogate pair: the rest may follow
        return None
    if b"\\" in event or event.count(quoted) != 1:
        return None
    start = event.index(quoted)
    return _Form(event[: start + 1], event[start + len(quoted) - 1 :], add)
