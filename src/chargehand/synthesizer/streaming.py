"""A synthesizer's reply in pieces, JSON as it is written -> the growing text of its "answer", for who watches.

A reply that is sent again after its stream was cut starts over in the middle of the text so far: where the JSON makes
no sense any more, a new draft is taken to begin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

# The number of the draft, from 1, and what it grew by. A higher number begins anew.
OnDraft: TypeAlias = Callable[[int, str], None]

_State = Literal["before", "key", "colon", "value", "string", "next", "other", "end"]
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_LOST = "\ufffd"


class AnswerText:
    """Takes a JSON object in piece by piece; `feed` returns what a piece adds to the answer and whether it is new."""

    def __init__(self) -> None:
        self._begin("before")

    def _begin(self, state: _State) -> None:
        self._state: _State = state
        # The string under way, as far as it matters: a key, or the piece of the answer not given out yet.
        self._text: list[str] = []
        self._key = ""
        # In a value that is not the answer: how deep, and whether inside a string.
        self._depth = 0
        self._inside = False
        # A backslash and what follows it, until it is whole; a high surrogate waits for its other half.
        self._escape: str | None = None
        self._high: int | None = None

    def feed(self, piece: str) -> tuple[str, bool]:
        """The text to add, and whether a new draft began with it."""
        anew = False
        given: list[str] = []
        for character in piece:
            if self._take(character):
                anew, given = True, []
            if self._state == "string" and self._text:
                given += self._text
                self._text.clear()
        return "".join(given), anew

    def _take(self, character: str) -> bool:
        """Whether the draft so far turned out to be cut off."""
        match self._state:
            case "before":
                if character == "{":
                    self._begin("next")
            case "next":
                if character == '"':
                    self._begin("key")
                elif character == "}":
                    self._state = "end"
                elif character not in " \t\r\n,":
                    return self._over(character)
            case "key":
                if self._string(character):
                    self._key, self._state = "".join(self._text), "colon"
                    self._text.clear()
            case "colon":
                if character == ":":
                    self._state = "value"
                elif not character.isspace():
                    return self._over(character)
            case "value":
                if character == '"' and self._key == "answer":
                    self._state = "string"
                elif not character.isspace():
                    self._state = "other"
                    self._skip(character)
            case "string":
                if self._string(character):
                    self._state = "next"
            case "other":
                self._skip(character)
            case "end":
                pass
        return False

    def _over(self, character: str) -> bool:
        """What was taken for the end of a string was the opening of the new draft's first key."""
        self._begin("next" if character == "{" else "key")
        if character != "{":
            self._string(character)
        return True

    def _skip(self, character: str) -> None:
        """A value that is not wanted: its end is a comma or a brace on the level of the answer."""
        if self._inside:
            if self._escape is not None:
                self._escape = None
            elif character == "\\":
                self._escape = character
            elif character == '"':
                self._inside = False
        elif character == '"':
            self._inside = True
        elif character in "{[":
            self._depth += 1
        elif character in "}]" and self._depth:
            self._depth -= 1
        elif character in ",}" and not self._depth:
            self._begin("next" if character == "," else "end")

    def _string(self, character: str) -> bool:
        """Whether the string ends here; else the character is part of it, or of an escape in it."""
        if self._escape is not None:
            self._escape += character
            self._unescape(self._escape)
        elif character == "\\":
            self._escape = character
        else:
            self._flush()
            if character == '"':
                return True
            self._text.append(character)
        return False

    def _unescape(self, escape: str) -> None:
        if escape[1] != "u":
            self._flush()
            self._text.append(_ESCAPES.get(escape[1], escape[1]))
        elif len(escape) < 6:
            return
        else:
            self._unit(escape[2:])
        self._escape = None

    def _unit(self, digits: str) -> None:
        """One UTF-16 unit: a character, or half of one."""
        try:
            unit = int(digits, 16)
        except ValueError:
            unit = 0xFFFD
        if 0xDC00 <= unit <= 0xDFFF and self._high is not None:
            whole = 0x10000 + ((self._high - 0xD800) << 10) + (unit - 0xDC00)
            self._high = None
            self._text.append(chr(whole))
            return
        self._flush()
        if 0xD800 <= unit <= 0xDBFF:
            self._high = unit
        else:
            self._text.append(_LOST if 0xDC00 <= unit <= 0xDFFF else chr(unit))

    def _flush(self) -> None:
        """A half without its other half stands for nothing."""
        if self._high is not None:
            self._text.append(_LOST)
            self._high = None


class Drafts:
    """Numbers the drafts of one synthesis and tells a listener how they grow."""

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
        text, anew = self._answer.feed(piece)
        if anew and self._shown:
            self._number += 1
        if not text or self._listener is None:
            return
        self._shown = True
        try:
            self._listener(self._number, text)
        except Exception as error:  # noqa: BLE001 -- recorded: who watches cannot break what is watched
            self._listener = None
            self._warn(f"The answer is not shown while it is written: {type(error).__name__}: {error}")
