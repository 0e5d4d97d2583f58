"""An arithmetic expression becomes a number: parsed, then computed node by node, never evaluated as code."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeAlias

from chargehand.errors import ToolError
from chargehand.tools.definition import tool

Number: TypeAlias = int | float

MAX_LENGTH = 1000
MAX_DEPTH = 60
# About 4,200 digits: under what Python turns into text, and cheap to multiply.
MAX_BITS = 14_000
HINTS = {"^": " Use ** for powers.", "'": " Text cannot be calculated.", '"': " Text cannot be calculated."}

# Checked before parsing, so that no other syntax reaches the parser.
TOKEN = re.compile(
    r"\s+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?(?![\w.])|[A-Za-z]\w*|\*\*|//|[-+*/%(),\[\]]", re.ASCII
)


# A coroutine, though it awaits nothing: bounded as it is, it costs less than the thread a plain function would get.
@tool(effect="read")
async def calculate(expression: str) -> str:
    """Calculate with numbers, exactly for integers.

    Knows + - * / // % **, parentheses, pi, e, tau and abs, round, floor, ceil, sqrt, cbrt, exp, ln, log (natural, or
    log(x, base)), log2, log10, sin, cos, tan, asin, acos, atan, atan2, degrees, radians, hypot, factorial, gcd, min,
    max, sum, mean, median.

    Args:
        expression: like (3 + 4) * 2 ** 10 or mean([1, 2, 6])
    """
    return evaluate(expression)


def evaluate(expression: str) -> str:
    """The value of an expression as text; ToolError says what is wrong with it."""
    tree = _parse(expression)
    try:
        result = _number(tree, 0)
        return str(result)
    except ZeroDivisionError:
        raise ToolError(f"Division by zero in {expression!r}.") from None
    except OverflowError:
        raise ToolError(f"A number in {expression!r} is too large.") from None
    except (ValueError, TypeError) as error:
        raise ToolError(f"{expression!r} cannot be calculated: {error}.") from None


def _parse(expression: str) -> ast.expr:
    if len(expression) > MAX_LENGTH:
        raise ToolError(f"The expression has {len(expression)} characters; at most {MAX_LENGTH} are calculated.")
    at = 0
    while at < len(expression):
        token = TOKEN.match(expression, at)
        if token is None:
            hint = HINTS.get(expression[at], "")
            raise ToolError(f"{expression[at]!r} at character {at + 1} of {expression!r} is not understood.{hint}")
        at = token.end()
    try:
        return ast.parse(" ".join(expression.split()), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        why = error.msg if isinstance(error, SyntaxError) else "it is nested too deeply"
        raise ToolError(f"{expression!r} is not an arithmetic expression: {why}.") from None


def _number(node: ast.expr, depth: int) -> Number:
    if depth > MAX_DEPTH:
        raise ToolError("The expression is nested too deeply; calculate it in steps.")
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _bounded(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand, depth + 1)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _number(operand, depth + 1)
        case ast.BinOp():
            return _chain(node, depth + 1)
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return _bounded(FUNCTIONS[name](_arguments(args, depth + 1)))
        case _:
            _unknown(node)


def _chain(node: ast.expr, depth: int) -> Number:
    """A chain like 1 + 2 + 3 is deep on its left: it is walked, however long it is."""
    links: list[ast.BinOp] = []
    while isinstance(node, ast.BinOp):
        links.append(node)
        node = node.left
    value = _number(node, depth)
    for link in reversed(links):
        value = _bounded(OPERATORS[type(link.op)](value, _number(link.right, depth)))
    return value


def _arguments(nodes: Sequence[ast.expr], depth: int) -> list[Number]:
    """The arguments of a function; one list may stand for them all."""
    if len(nodes) == 1 and isinstance(nodes[0], ast.List | ast.Tuple):
        nodes = nodes[0].elts
    return [_number(node, depth) for node in nodes]


def _unknown(node: ast.expr) -> NoReturn:
    match node:
        case ast.Name(id=name):
            raise ToolError(f"{name!r} is not known; constants are {', '.join(CONSTANTS)}.")
        case ast.Call(func=ast.Name(id=name)):
            raise ToolError(f"Function {name!r} is not known; there are {', '.join(FUNCTIONS)}.")
        case ast.Tuple() | ast.List():
            raise ToolError("A list is not a number; write numbers without thousands separators.")
        case _:
            raise ToolError("Only numbers, operators and the known functions can be calculated.")


def _bounded(value: Number) -> Number:
    if isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            raise OverflowError
    elif not math.isfinite(value):
        raise OverflowError
    return value


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0:
        # Known before it is computed: the result has at most this many bits.
        if abs(base) > 1 and (base.bit_length() - 1) * exponent > MAX_BITS:
            raise OverflowError
        return base**exponent
    result: object = base**exponent
    if isinstance(result, complex):
        raise ValueError(f"{base} has no real power {exponent}")
    assert isinstance(result, int | float)
    return result


OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
CONSTANTS: dict[str, Number] = {"pi": math.pi, "e": math.e, "tau": math.tau}


def _of(fn: Callable[..., Number], *counts: int) -> Callable[[list[Number]], Number]:
    """A function of so many numbers."""

    def checked(values: list[Number]) -> Number:
        if len(values) not in counts:
            raise ValueError(
                f"{fn.__name__.strip('_')} takes {' or '.join(map(str, counts))} numbers, not {len(values)}"
            )
        return fn(*values)

    return checked


def _of_some(fn: Callable[[list[Number]], Number]) -> Callable[[list[Number]], Number]:
    """A function of one number or more."""

    def checked(values: list[Number]) -> Number:
        if not values:
            raise ValueError(f"{fn.__name__.strip('_')} needs at least one number")
        return fn(values)

    return checked


def _abs(value: Number) -> Number:
    return abs(value)


def _round(value: Number, digits: Number = 0) -> Number:
    if not isinstance(digits, int) or abs(digits) > 300:
        raise ValueError("round takes a whole number of digits from -300 to 300")
    return round(value, digits) if digits else round(value)


def _factorial(value: Number) -> int:
    if not isinstance(value, int) or not 0 <= value <= 1000:
        raise ValueError("factorial takes a whole number from 0 to 1000")
    return math.factorial(value)


def _mean(values: list[Number]) -> Number:
    return sum(values) / len(values)


def _median(values: list[Number]) -> Number:
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


FUNCTIONS: dict[str, Callable[[list[Number]], Number]] = {
    "abs": _of(_abs, 1),
    "round": _of(_round, 1, 2),
    "floor": _of(math.floor, 1),
    "ceil": _of(math.ceil, 1),
    "sqrt": _of(math.sqrt, 1),
    "cbrt": _of(math.cbrt, 1),
    "exp": _of(math.exp, 1),
    "ln": _of(math.log, 1),
    "log": _of(math.log, 1, 2),
    "log2": _of(math.log2, 1),
    "log10": _of(math.log10, 1),
    "sin": _of(math.sin, 1),
    "cos": _of(math.cos, 1),
    "tan": _of(math.tan, 1),
    "asin": _of(math.asin, 1),
    "acos": _of(math.acos, 1),
    "atan": _of(math.atan, 1),
    "atan2": _of(math.atan2, 2),
    "degrees": _of(math.degrees, 1),
    "radians": _of(math.radians, 1),
    "hypot": _of(math.hypot, 2, 3),
    "factorial": _of(_factorial, 1),
    "gcd": _of(math.gcd, 2),
    "min": _of_some(min),
    "max": _of_some(max),
    "sum": _of_some(sum),
    "mean": _of_some(_mean),
    "median": _of_some(_median),
}
