"""An expression that builds a text -> its parts in order: the words in the code, and the values between them.

Runs in a child process too: nothing here imports more than the standard library.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from string import Formatter

# `%s`, `%(name)s`. A number or a percent sign cannot be text from outside.
_PERCENT = re.compile(r"%(?:\((\w+)\))?[-+ #0]*\d*(?:\.\d+)?([a-zA-Z%])")
_NUMBERS = "dioxXeEfFgGc%"


def parts_of(node: ast.expr) -> Iterator[str | ast.expr]:
    """Words as str, values as expressions; a value that can only be a number is left out."""
    match node:
        case ast.Constant(value=str(words)):
            yield words
        case ast.JoinedStr(values=values):
            for value in values:
                yield from parts_of(value.value if isinstance(value, ast.FormattedValue) else value)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from parts_of(left)
            yield from parts_of(right)
        case ast.BinOp(left=ast.Constant(value=str(template)), op=ast.Mod(), right=right):
            yield from _percent_parts(template, right)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(template)), attr="format")):
            yield from _format_parts(template, node)
        case _:
            yield node


def _percent_parts(template: str, right: ast.expr) -> Iterator[str | ast.expr]:
    values = list(right.elts) if isinstance(right, ast.Tuple) else [right]
    named = dict(_items(right)) if isinstance(right, ast.Dict) else {}
    at = 0
    for found in _PERCENT.finditer(template):
        yield template[at : found.start()]
        at = found.end()
        if found[2] == "%":
            yield "%"
            continue
        value = named.get(found[1]) if found[1] else values.pop(0) if values else None
        yield "0" if value is None or found[2] in _NUMBERS else value
    yield template[at:]


def _items(table: ast.Dict) -> Iterator[tuple[str, ast.expr]]:
    for key, value in zip(table.keys, table.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value, value


def _format_parts(template: str, call: ast.Call) -> Iterator[str | ast.expr]:
    named = {each.arg: each.value for each in call.keywords if each.arg}
    count = 0
    try:
        fields = list(Formatter().parse(template))
    except ValueError:
        yield template
        return
    for words, field, _, _ in fields:
        yield words
        if field is None:
            continue
        name = re.split(r"[.\[]", field, maxsplit=1)[0]
        number = int(name) if name.isdigit() else count if not name else None
        count += not name
        value = named.get(name) if number is None else call.args[number] if number < len(call.args) else None
        yield "0" if value is None else value
