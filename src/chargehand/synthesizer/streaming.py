"""A synthesizer's reply in pieces, as it is written -> the growing text of the answer, for viewers.

Markdown is shown up to the heading of its notes. In JSON, the text of `answer` is shown if it is the first field. A
reply that is sent again after its stream was cut begins again in the middle of the text so far: where its opening
comes a second time, a new draft begins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from chargehand.synthesizer.read_draft import NOTES
from chargehand.synthesizer.synthesis import OnDraft

# The first characters of a reply are its opening; fewer characters may be repeated by chance.
_OPENING = 24
_JSON = re.compile(r'\s*(?:```(?:json)?\s*)?\{\s*"answer"\s*:\s*"')
_MAY_BE_JSON = re.compile(r"\s*(?:`{1,3}j?s?o?n?\s*)?(?:\{.*)?\Z", re.DOTALL)
# The text of a string so far, without an incomplete escape or half of a surrogate pair.
_STRING = re.compile(r'(?:[^"\\]|\\(?:["\\/bfnrt]|u[dD][89abAB]\w{2}(?:\\u\w{4}|(?=[^\\]))|u(?![dD][89abAB])\w{4}))*')


class AnswerText:
    """Takes a reply in piece by piece; `feed` returns what a piece adds to the answer and whether it is a new draft."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._opening = ""
        # What was not shown yet, and how the reply is written as soon as that is known.
        self._waiting = ""
        self._form: str | None = None
        # The last characters, in which the opening may come again.
        self._tail = ""

    def feed(self, piece: str) -> tuple[str, bool]:
        """The text to add, and whether a new draft began with it."""
        new = False
        if len(self._opening) == _OPENING:
            self._tail = (self._tail + piece)[-(len(piece) + _OPENING) :]
            if (at := self._tail.find(self._opening)) >= 0:
                piece, new = self._tail[at:], True
                self._begin()
        if len(self._opening) < _OPENING:
            rest = _OPENING - len(self._opening)
            self._opening, self._tail = self._opening + piece[:rest], piece[rest:]
        self._waiting += piece
        return self._take(), new

    def _take(self) -> str:
        if self._form is None:
            if found := _JSON.match(self._waiting):
                self._form, self._waiting = "json", self._waiting[found.end() :]
            elif not _MAY_BE_JSON.match(self._waiting):
                self._form, self._waiting = "text", self._waiting.lstrip()
            else:
                return ""
        return self._take_string() if self._form == "json" else self._take_text() if self._form == "text" else ""

    def _take_string(self) -> str:
        found = _STRING.match(self._waiting)
        assert found is not None
        self._waiting = self._waiting[found.end() :]
        if self._waiting.startswith('"'):
            self._form = "end"
        try:
            text = json.loads(f'"{found[0]}"', strict=False)
        except ValueError:
            return ""
        return str(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _take_text(self) -> str:
        """The text up to a heading of notes; a line that may become such a heading waits for its end."""
        if found := NOTES.search(self._waiting):
            if "\n" in self._waiting[found.end() :]:
                self._form = "end"
            shown, self._waiting = self._waiting[: found.start()], self._waiting[found.start() :]
            return shown
        at = self._waiting.rfind("\n") + 1
        end = at if self._waiting[at:].lstrip().startswith(("#", "*")) or not self._waiting[at:].strip() else None
        shown, self._waiting = self._waiting[:end], "" if end is None else self._waiting[end:]
        return shown


class Drafts:
    """Numbers the drafts of one synthesis and reports to a listener how they grow."""

    def __init__(self, listener: OnDraft, warn: Callable[[str], None]) -> None:
        self._listener: OnDraft | None = listener
        self._warn = warn
        self._number = 0
        self._shown = False
        self._answer = AnswerText()

    def begin(self) -> Callable[[str], None]:
        """A new draft; the function takes the reply's pieces."""
        self._number += 1
        self._shown = False
        self._answer = AnswerText()
        return self._hear

    def _hear(self, piece: str) -> None:
        text, new = self._answer.feed(piece)
        if new and self._shown:
            self._number += 1
        if not text or self._listener is None:
            return
        self._shown = True
        try:
            self._listener(self._number, text)
        except Exception as error:  # noqa: BLE001 -- recorded: a listener cannot break what it listens to
            self._listener = None
            self._warn(f"The answer is not shown while it is written: {type(error).__name__}: {error}")
