"""Reads an agent file's front matter into fields with line numbers, and the body below it.

Lenient on purpose where YAML is strict: a value may hold colons, quotes and hashes, as agent files of other tools do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

Scalar: TypeAlias = str | int | float | bool | None
FieldValue: TypeAlias = Scalar | list[Scalar]

_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(.*)|)$")
_ITEM = re.compile(r"[ \t]*-(?:[ \t]+(.*)|)$")
_BLOCK = re.compile(r"([>|])([+-]?)[ \t]*$")
_NUMBER = re.compile(r"[+-]?(\d+|\d*\.\d+|\d+\.)([eE][+-]?\d+)?$")
# Longer digits are text: no count here is that long, and Python refuses to read thousands of digits.
_LONGEST_NUMBER = 40
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", "r": "\r", "0": "\0"}


class FrontMatterError(ValueError):
    """The front matter cannot be read; `line` says where."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class Field(NamedTuple):
    """The value of one key, and its line."""

    value: FieldValue
    line: int

    @property
    def text(self) -> str:
        """The value as it was written."""
        match self.value:
            case None:
                return ""
            case bool():
                return "true" if self.value else "false"
            case list():
                return ", ".join(str(item) for item in self.value)
            case _:
                return str(self.value)

    @property
    def items(self) -> list[str]:
        """The value as a list: a list as it is, a string split at commas outside of brackets."""
        if isinstance(self.value, list):
            return [str(item) for item in self.value if item is not None]
        return [part for part in _split(self.text) if part]


class FrontMatter(NamedTuple):
    fields: dict[str, Field]
    body: str


def parse(text: str) -> FrontMatter | None:
    """The fields and the body; None when the text does not open with front matter."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        return None
    end = next((n for n, line in enumerate(lines[1:], start=1) if line.rstrip() == "---"), None)
    if end is None:
        raise FrontMatterError("the front matter opened here has no closing '---' line", 1)
    return FrontMatter(dict(_fields(lines[:end])), "\n".join(lines[end + 1 :]).strip())


def _fields(lines: list[str]) -> Iterator[tuple[str, Field]]:
    seen: dict[str, int] = {}
    at = 1
    while at < len(lines):
        line, number = lines[at], at + 1
        at += 1
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _KEY.match(line)
        if found is None:
            raise FrontMatterError(f"expected 'key: value', found {line.strip()[:60]!r}", number)
        key, rest = found[1], (found[2] or "").strip()
        if key in seen:
            raise FrontMatterError(f"{key!r} is already set on line {seen[key]}", number)
        seen[key] = number
        more = at
        while more < len(lines) and not _KEY.match(lines[more]):
            more += 1
        yield key, Field(_value(rest, lines[at:more], number), number)
        at = more


def _value(rest: str, more: list[str], line: int) -> FieldValue:
    if block := _BLOCK.match(rest):
        return _block(block[1], block[2], more)
    below = [text for text in more if text.strip() and not text.lstrip().startswith("#")]
    if not rest and below and all(_ITEM.match(text) for text in below):
        return [_scalar((_ITEM.match(text) or [None, None])[1] or "", line) for text in below]
    # A value that continues below its key is one value, folded.
    whole = " ".join([rest, *(text.strip() for text in below)]).strip()
    if whole.startswith("["):
        if not whole.endswith("]"):
            raise FrontMatterError("the list opened with '[' is not closed with ']'", line)
        return [_scalar(part, line) for part in _split(whole[1:-1]) if part]
    return _scalar(whole, line)


def _block(style: str, chomp: str, lines: list[str]) -> str:
    indent = min((len(text) - len(text.lstrip()) for text in lines if text.strip()), default=0)
    cut = [text[indent:].rstrip() for text in lines]
    if style == "|":
        return "\n".join(cut).strip("\n") + ("" if chomp == "-" else "\n")
    paragraphs = re.split(r"\n{2,}", "\n".join(cut).strip("\n"))
    return "\n".join(" ".join(paragraph.split("\n")) for paragraph in paragraphs)


def _scalar(text: str, line: int) -> Scalar:
    text = text.strip()
    if text[:1] in ("'", '"') and len(text) > 1 and text[-1] == text[0]:
        return _unquote(text)
    if text[:1] == '"' and '"' not in text[1:]:
        raise FrontMatterError("the text opened with a quote is not closed", line)
    text = re.split(r"[ \t]#[ \t]", text, maxsplit=1)[0].rstrip()
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if len(text) <= _LONGEST_NUMBER and _NUMBER.match(text):
        return float(text) if re.search(r"[.eE]", text) else int(text)
    return text


def _unquote(text: str) -> str:
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), text[1:-1])


def _split(text: str) -> list[str]:
    """Parts between commas that are outside brackets and quotes."""
    parts: list[str] = []
    begun, depth, quote = 0, 0, ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth = max(depth - 1, 0)
        elif char == "," and not depth:
            parts.append(text[begun:at])
            begun = at + 1
    return [part.strip() for part in (*parts, text[begun:])]
