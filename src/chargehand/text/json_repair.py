"""Turns the text of a model into JSON data, or into a sentence that says why it is not JSON.

Only repairs with one possible reading are made: wrapping is removed and spelling corrected, but missing parts are
never invented. An answer that was cut off stays unreadable. Time is linear in the length of the text.
"""

from __future__ import annotations

import json
import math
import re
from typing import NamedTuple, cast

from chargehand.text.json_schema import MAX_DEPTH, too_deep, violations
from chargehand.text.optional_nulls import without_nulls
from chargehand.values.base import JSON
from chargehand.values.lazy_regex import lazy_regex

_TOO_DEEP = f"The JSON is nested more than {MAX_DEPTH} levels deep; make it flatter."

# Thinking that precedes the answer; some models leave the opening tag out.
_THINKING_ENDS = lazy_regex(r"</think(?:ing)?>", re.IGNORECASE)
_THINKING_STARTS = lazy_regex(r"<think(?:ing)?>", re.IGNORECASE)

# A bracket that begins JSON rather than prose ("{name}", "[see above]"), and the code fence just before it.
_START = lazy_regex(
    r"""(?P<fence>```[\w.+-]*+\s*+)?
        (?P<open> \{ (?=\s*+ (?:["'“”„‘’}/\#] | \Z))
                | \[ (?=\s*+ (?:["'“”„‘’/\#{\[\]\-0-9] | (?:true|false|null|True|False|None|NaN|Infinity)\b | \Z)) )""",
    re.VERBOSE,
)

# The tokens that matter between the brackets. Quantifiers are possessive, and each opening quote has a last alternative
# without an end: no part of the text is read twice. Groups are not possessive: Python 3.11 before 3.11.5 misses matches
# with possessive groups.
_TOKEN = lazy_regex(
    r"""(?P<plain> " [^"\\]*+ (?: \\. [^"\\]*+ )* " )
      | (?P<quoted> ' [^'\\]*+ (?: \\. [^'\\]*+ )* '
                  | [“”„] [^“”\\]*+ (?: \\. [^“”\\]*+ )* [“”]
                  | [‘’] [^‘’\\]*+ (?: \\. [^‘’\\]*+ )* ['‘’] )
      | (?P<comment> //[^\n]*+ | \#[^\n]*+ | /\* (?: [^*]++ | \*(?!/) )* \*/ )
      | (?P<endless> ["'“”„‘’] | /\* )
      | (?P<open> [{\[] )
      | (?P<close> [}\]] )
      | (?P<word> \b(?:True|False|None)\b )""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_CLOSER = {"{": "}", "[": "]"}

_ESCAPE = lazy_regex(r"""(?P<good>\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))|\\x(?P<hex>[0-9a-fA-F]{2})|\\'?|(?P<quote>")""")
_TRAILING_COMMA = lazy_regex(r'("[^"\\]*+(?:\\.[^"\\]*+)*")|,(?=\s*+[}\]])', re.DOTALL)
_LIKE_JSON = lazy_regex(r'[{\["]|-?(?:NaN|Infinity|[0-9.eE+-]++)$')
_SURROGATE = lazy_regex(r"\\u[dD][89a-fA-F]")


class _Region(NamedTuple):
    """A balanced part of the text, with its spelling corrected; it ends before `end`."""

    text: str
    end: int


class _Broken(NamedTuple):
    """A part without a proper end: the text after its start may be a fragment, so none of it can be trusted."""

    problem: str


def read_json(text: str) -> tuple[JSON | None, str | None]:
    """The JSON data in a text and no problem, or None and the problem."""
    # Lone surrogates cannot be recorded or sent.
    text = text.encode("utf-8", "replace").decode().removeprefix("\ufeff").strip()
    if not text:
        return None, "The answer is empty; answer with JSON."
    data, problem = _parse(text, strict=True)
    if problem is None or problem == _TOO_DEEP:
        return data, problem
    return _search(text, _after_thinking(text), problem)


def read_object(text: str, schema: dict[str, JSON] | None = None) -> tuple[dict[str, JSON] | None, list[str]]:
    """The JSON object in a text, if it satisfies the schema; else None and the message for the model."""
    data, problem = read_json(text)
    if problem is not None:
        return None, [problem]
    if not isinstance(data, dict):
        return None, violations(data, {"type": "object"})
    found = cast("dict[str, JSON]", data)
    if schema is not None and (wrong := violations(found, schema)):
        found = cast("dict[str, JSON]", without_nulls(found, schema))
        if violations(found, schema):
            return None, wrong
    return found, []


def _after_thinking(text: str) -> int:
    end = _THINKING_ENDS.search(text)
    if _THINKING_STARTS.match(text):
        return end.end() if end else len(text)
    # The tag may be part of the JSON.
    return end.end() if end and not text.startswith(("{", "[", "```")) else 0


def _search(text: str, start: int, problem: str) -> tuple[JSON | None, str | None]:
    """The best JSON from `start` on: an object in a fence, then any object, then a list; the first of equals."""
    best: tuple[tuple[bool, bool, bool], JSON] | None = None
    unreadable: str | None = None
    if start >= len(text):
        return None, "The answer is cut off in the thinking before it; answer with JSON."
    while found := _START.search(text, start):
        region = _region(text, found.start("open"))
        if isinstance(region, _Broken):
            return None, region.problem
        start = region.end
        data, reason = _parse(region.text, strict=False)
        if reason is not None:
            unreadable = unreadable or reason
            continue
        rank = (not data, not isinstance(data, dict), not found["fence"])
        if best is None or rank < best[0]:
            best = rank, data
        if not any(rank):
            break
    if best is not None:
        return best[1], None
    # The error of `json` for prose ("Expecting value") does not help a model.
    plain = problem if _LIKE_JSON.match(text) else "There is no JSON in the answer; answer with JSON only."
    return None, unreadable or plain


def _region(text: str, start: int) -> _Region | _Broken:
    """The balanced part that opens at `start`, with strings, words and comments corrected to JSON."""
    pieces: list[str] = []
    waiting: list[str] = []
    copied = start
    for token in _TOKEN.finditer(text, start):
        kind, spelled = token.lastgroup, token[0]
        if kind == "open":
            waiting.append(_CLOSER[spelled])
            if len(waiting) > MAX_DEPTH:
                return _Broken(_TOO_DEEP)
        elif kind == "close":
            wanted = waiting.pop()
            if spelled != wanted:
                return _Broken(_describe_mismatch(text, wanted, token.start()))
            if not waiting:
                pieces.append(text[copied : token.end()])
                return _Region(_TRAILING_COMMA.sub(r"\1", "".join(pieces)), token.end())
        elif kind == "endless":
            inside = "a comment" if spelled == "/*" else "a string"
            return _Broken(_cut_off(text, f"inside {inside} that starts at {_where(text, token.start())}"))
        else:
            pieces += text[copied : token.start()], _respell(kind, spelled)
            copied = token.end()
    return _Broken(_cut_off(text, f"{' '.join(reversed(waiting))} still missing"))


def _respell(kind: str | None, spelled: str) -> str:
    if kind == "word":
        return _WORDS[spelled]
    if kind == "comment":
        return " "
    # Control characters stay: the parser accepts them after the repair.
    return spelled if "\\" not in spelled and kind == "plain" else f'"{_ESCAPE.sub(_escape, spelled[1:-1])}"'


def _escape(found: re.Match[str]) -> str:
    if found["good"]:
        return found["good"]
    if found["hex"]:
        return f"\\u00{found['hex']}"
    if found["quote"]:
        return '\\"'
    return "'" if found[0] == "\\'" else r"\\"


def _parse(text: str, *, strict: bool) -> tuple[JSON | None, str | None]:
    """The text as JSON; without `strict`, strings may have line breaks. The last of equal keys wins."""
    try:
        data = (_STRICT if strict else _LENIENT).decode(text)
    except RecursionError:
        return None, _TOO_DEEP
    except json.JSONDecodeError as error:
        near = json.dumps(text[max(error.pos - 20, 0) : error.pos + 20], ensure_ascii=False)
        return None, f"The answer is not JSON: {error.msg}, near {near}."
    except ValueError as error:  # from the two hooks, or an int of more digits than Python reads
        return None, f"The answer is not JSON: {str(error).split(';')[0]}."
    # Data cannot be nested deeper than the number of its brackets: counting them is cheaper than walking the data.
    if text.count("[") + text.count("{") > MAX_DEPTH and too_deep(data):
        return None, _TOO_DEEP
    if _SURROGATE.search(text):
        data = json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))
    return data, None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:40]} is too large a number")
    return number


_STRICT = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)
_LENIENT = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite, strict=False)


def _cut_off(text: str, what: str) -> str:
    return f"The JSON is cut off at {_where(text, len(text))}, {what}; answer again, complete and shorter."


def _describe_mismatch(text: str, wanted: str, at: int) -> str:
    return f"The JSON is broken at {_where(text, at)}: expected {wanted} but got {text[at]}."


def _where(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1} column {at - text.rfind(chr(10), 0, at)}"
