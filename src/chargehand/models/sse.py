"""Turns the bytes of a server-sent event stream into the data of its events, wherever the chunks were cut."""

from __future__ import annotations

import codecs


class Events:
    """Collects chunks; names, ids and comments are left out, as no wire format here needs them."""

    def __init__(self) -> None:
        # The pieces of a line that has not ended; joined once, when it does.
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._begun = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that this chunk completed."""
        self._line.append(chunk)
        if b"\n" not in chunk:
            return []
        lines = b"".join(self._line).split(b"\n")
        self._line = [lines.pop()]
        done: list[bytes] = []
        for line in lines:
            field = line.removesuffix(b"\r")
            if not self._begun:
                field, self._begun = field.removeprefix(codecs.BOM_UTF8), True
            if field.startswith(b"data:"):
                self._data.append(field[5:].removeprefix(b" "))
            elif not field and self._data:
                done.append(b"\n".join(self._data))
                self._data.clear()
        return done
