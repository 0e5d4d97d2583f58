"""Calls with their results become tests, each named by what it shows. Calls that detect no mutant are left out."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from chargehand.apps.testgen.in_sandbox.argument_values import SUBJECT

Note = Mapping[str, Any]
MOST_SHOWN, MOST_CHOSEN = 6, 10
_LONGEST_NAME = 70


def choose_examples(stable: Sequence[Note], mutants: Sequence[Note]) -> list[Note]:
    """Calls in the docstring, then call by call the one that detects the most mutants not detected yet."""
    told_by: dict[str, set[int]] = {}
    for number, mutant in enumerate(mutants):
        for call in mutant["told_by"]:
            told_by.setdefault(_plain(call), set()).add(number)
    usable = [note for note in stable if told_by.get(_plain(note["call"]))]
    chosen = [note for note in usable if note.get("shown")][:MOST_SHOWN]
    told = {number for note in chosen for number in told_by[_plain(note["call"])]}
    rest = [note for note in usable if note not in chosen]
    while rest and len(chosen) < MOST_CHOSEN:
        best = max(rest, key=lambda note: len(told_by[_plain(note["call"])] - told))
        if not told_by[_plain(best["call"])] - told:
            break
        told |= told_by[_plain(best["call"])]
        chosen.append(best)
        rest.remove(best)
    return chosen


def write_examples(name: str, chosen: Sequence[Note]) -> str:
    """One test for what the docstring shows, and one for each other example; equal examples become one."""
    title = snake(name.replace(".", "_"))
    bodies: dict[str, list[str]] = {}
    for note in chosen:
        if note.get("shown"):
            test = f"test_{title}_as_its_docstring_shows"
        elif "raises" in note:
            test = f"test_{title}_rejects_{_inputs(note, name)}"
        else:
            test = _name_by_result(title, note, name)
        bodies.setdefault(test[:_LONGEST_NAME].rstrip("_"), []).append(_assertion(note))
    return "\n\n\n".join("\n".join([f"def {test}():", *lines]) for test, lines in bodies.items())


def snake(name: str) -> str:
    """`ParseError` as parse_error."""
    spaced = "".join(
        f"_{c.lower()}" if c.isupper() and at and name[at - 1].islower() else c for at, c in enumerate(name)
    )
    return spaced.lower().strip("_")


def _plain(call: str) -> str:
    """The call without the code that makes a list of its result."""
    found = re.fullmatch(r"list\(itertools\.islice\((.*), \d+\)\)", call, re.DOTALL)
    return found[1] if found else call


def _assertion(note: Note) -> str:
    if "raises" in note:
        return f"    with pytest.raises({note['raises']}):\n        {note['call']}"
    value = note["gives"]
    if value in ("None", "True", "False"):
        return f"    assert {note['call']} is {value}"
    return f"    assert {note['call']} == " + (f"pytest.approx({value})" if note.get("approximate") else value)


def _name_by_result(title: str, note: Note, name: str) -> str:
    """`test_ordinal_of_1_is_1st`; without the result if that would be long."""
    head = f"test_{title}_{_of(note, name)}"
    result = _words(ast.parse(note["gives"], mode="eval").body)
    return f"{head}_is_{result}" if len(head) + len(result) + 4 <= _LONGEST_NAME and len(result) <= 24 else head


def _of(note: Note, name: str) -> str:
    inputs = _inputs(note, name)
    return f"of_{inputs}" if inputs else "without_arguments"


def _inputs(note: Note, name: str) -> str:
    """The arguments in words, keyword arguments with their names; at most three."""
    node = ast.parse(_plain(note["call"]), mode="eval").body
    if not isinstance(node, ast.Call):
        return "an_example"
    words = [_words(each) for each in node.args]
    words += [f"{each.arg}_{_words(each.value)}" for each in node.keywords if each.arg]
    if "." in name and not words and isinstance(node.func, ast.Attribute):
        words = [_words(node.func.value)]
    more = len(words) - 3
    return "_and_".join(words[:3]) + (f"_and_{more}_more" if more > 0 else "")


def _words(node: ast.expr) -> str:
    """A value in words that can be part of a name."""
    match node:
        case ast.Constant(value=bool() | None):
            return str(node.value).lower()
        case ast.Constant(value=int() | float()):
            return str(node.value).replace(".", "_point_").replace("+", "").replace("-", "minus_")
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return f"minus_{_words(node.operand)}"
        case ast.Constant(value=str(text)):
            return _text_words(text)
        case ast.Constant(value=bytes(data)):
            return _text_words(data.decode("latin-1"))
        case ast.List(elts=held) | ast.Tuple(elts=held) | ast.Set(elts=held):
            kind = type(node).__name__.lower()
            return f"{kind}_of_{len(held)}" if held else f"empty_{kind}"
        case ast.Dict(keys=keys):
            return f"dict_of_{len(keys)}" if keys else "empty_dict"
        case ast.Lambda():
            return "a_function"
        case ast.Call(func=func):
            return snake(re.sub(r"\W+", "_", ast.unparse(func).replace(f"{SUBJECT}.", "").rpartition(".")[2]))
        case ast.Attribute(attr=attr):
            return snake(attr)
        case _:
            return "a_value"


def _text_words(text: str) -> str:
    plain = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_").lower()
    if not text:
        return "empty_text"
    if not plain:
        return "white_space" if text.isspace() else "punctuation"
    return plain if len(plain) <= 20 else "a_long_text"
