"""Turns the bytes of a server-sent event stream into the data of its events, wherever the chunks were cut."""

from __future__ import annotations

import codecs


class Events:
    """Collects chunks; names, ids and comments are left out, as no wire format here needs them."""

    def __init__(self) -> None:
        # The rest of the last chunk, starting with the line break before its last line; joined when a line ends.
        self._rest: list[bytes] = []
        # The data lines received so far of an event that has not ended.
        self._data: list[bytes] = []
        self._begun = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that this chunk completed."""
        self._rest.append(chunk)
        if b"\n" not in chunk:
            return []
        text = b"".join(self._rest)
        if not self._begun:
            text, self._begun = text.removeprefix(codecs.BOM_UTF8), True
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
        if not self._data and text.startswith(b"data: ") and text.endswith(b"\n\n"):
            # Complete events of one line each, as nearly all are: hundreds are found in one step.
            plain = text[6:-2].split(b"\n\ndata: ")
            if text.count(b"\n") == 2 * len(plain):
                self._rest = []
                return plain
        *blocks, rest = text.split(b"\n\n")
        done: list[bytes] = []
        for block in blocks:
            if not self._data and b"\n" not in block and block.startswith(b"data:"):
                done.append(block[5:].removeprefix(b" "))
                continue
            self._take_lines(block)
            if self._data:
                done.append(b"\n".join(self._data))
                self._data.clear()
        lines, newline, last = rest.rpartition(b"\n")
        self._take_lines(lines)
        self._rest = [newline + last] if newline or last else []
        return done

    def _take_lines(self, block: bytes) -> None:
        for line in block.split(b"\n"):
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
