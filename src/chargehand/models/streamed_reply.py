"""The events of one streamed reply -> its text as it arrives, and the reply when it is complete.

Most events of a reply add a few characters of text and are the same to the byte otherwise. Once such an event was read
as JSON, the text of those like it is cut out of their bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from pydantic_core import from_json, to_json

from chargehand.values.message import Reply

# Read as JSON before events like them are looked for; twice as many each time that none is found.
_FIRST_READ = 2


class Listener(Protocol):
    """Collects one streamed reply of a wire format."""

    def hear(self, event: dict[str, Any]) -> str:
        """Take an event in; the text it added."""
        ...

    def text_adder(self, event: dict[str, Any]) -> Callable[[str], object] | None:
        """What takes in the text of an event that differs from this one in its text alone.

        None if this one did anything but add text that another one like it would do again.
        """
        ...

    def reply(self) -> Reply | None:
        """The reply, or None while it is not complete."""
        ...


class _Form(NamedTuple):
    """What is before and after the text in the bytes of an event, and what takes the text in."""

    before: bytes
    after: bytes
    add: Callable[[str], object]


class StreamedReply:
    """`read` gives the JSON of events, one for one, and `check` raises what one reports; both leave `hear`."""

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
        # How many events were taken in.
        self.heard = 0

    def hear(self, events: list[bytes]) -> str:
        """Take events in that arrived together; the text they added."""
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
        """The texts of the events from there on that have the form of an earlier one; none if they cannot be read."""
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
    """What is in the place of the text, in the events up to the first that has another form."""
    before, after, _ = form
    if not events[0].startswith(before):
        return []
    # All of them are cut at once: a loop over hundreds of events takes ten times as long.
    whole = b"\n".join(events)
    inner = whole[len(before) :].split(after + b"\n" + before)
    *_, last = inner
    if whole.count(b"\n") == len(events) - 1 and last.count(b"\n") == len(events) - len(inner):
        # No line break is left but in the last piece: each of the others is of one event.
        last, _, _ = last.partition(b"\n")
        inner[-1:] = [last.removesuffix(after)] if last.endswith(after) else []
        return inner
    return _cut_out_each(form, events)


def _cut_out_each(form: _Form, events: list[bytes]) -> list[bytes]:
    """The same where events of another form are between those of this one, or events have line breaks."""
    before, after, _ = form
    start, end, shortest = len(before), -len(after), len(before) + len(after)
    inner: list[bytes] = []
    for event in events:
        if not (event.startswith(before) and event.endswith(after)) or len(event) < shortest:
            break
        inner.append(event[start:end])
    return inner


def _find_form(event: bytes, text: str, add: Callable[[str], object]) -> _Form | None:
    """None if the text may be in more than one place, or is written in another way than we would."""
    try:
        quoted = to_json(text)
    except ValueError:  # half a surrogate pair: the rest may follow
        return None
    if b"\\" in event or event.count(quoted) != 1:
        return None
    start = event.index(quoted)
    return _Form(event[: start + 1], event[start + len(quoted) - 1 :], add)
