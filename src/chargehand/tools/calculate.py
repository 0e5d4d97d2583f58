"""An arithmetic expression becomes a number: parsed, then computed node by node, never evaluated as code."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from decimal import InvalidOperation, Overflow
from typing import NoReturn

from chargehand.errors import ToolError
from chargehand.tools.arithmetic import CONSTANTS, FUNCTIONS, OPERATORS, Number, limit_precision, literal, number_text
from chargehand.tools.definition import tool
from chargehand.values.lazy_regex import lazy_regex

MAX_LENGTH = 1000
MAX_DEPTH = 60
HINTS = {"^": " Use ** for powers.", "'": " Text cannot be calculated.", '"': " Text cannot be calculated."}

# Checked before parsing, so that no other syntax reaches the parser.
TOKEN = lazy_regex(
    r"\s+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?(?![\w.])|[A-Za-z]\w*|\*\*|//|[-+*/%(),\[\]]", re.ASCII
)
# A percent sign that cannot mean a remainder, because no number follows it.
PERCENT = lazy_regex(r"([\d._]*)\s*%\s*(?:$|[-+*/%),\]]|of\b)", re.ASCII)


# A coroutine, although it awaits nothing: the work is bounded and costs less than the thread for a plain function.
@tool(effect="read")
async def calculate(expression: str) -> str:
    """Calculate with numbers, exactly: 0.1 + 0.2 is 0.3, and round(1.005, 2) is 1.01 (halves are rounded up).

    Knows + - * / // ** and % (remainder; 15 percent is 15/100), parentheses, pi, e, tau and abs, round, floor, ceil,
    sqrt, cbrt, exp, ln, log (natural, or log(x, base)), log2, log10, sin, cos, tan, asin, acos, atan, atan2, degrees,
    radians, hypot, factorial, gcd, min, max, sum, mean, median.

    Args:
        expression: like (3 + 4) * 2 ** 10 or mean([1, 2, 6])
    """
    return evaluate(expression)


def evaluate(expression: str) -> str:
    """The value of an expression as text; ToolError says what is wrong with it."""
    text = _check_tokens(expression)
    try:
        return number_text(_number(_parse(text), text, 0))
    except ZeroDivisionError:
        raise ToolError(f"Division by zero in {expression!r}.", "wrong_arguments") from None
    except (OverflowError, Overflow):
        raise ToolError(f"A number in {expression!r} is too large.", "wrong_arguments") from None
    except InvalidOperation:
        raise ToolError(f"{expression!r} cannot be calculated: it has no real value.", "wrong_arguments") from None
    except (ValueError, TypeError) as error:
        raise ToolError(f"{expression!r} cannot be calculated: {error}.", "wrong_arguments") from None


def _check_tokens(expression: str) -> str:
    """The expression on one line; ToolError when it has an unknown token."""
    if len(expression) > MAX_LENGTH:
        raise ToolError(
            f"The expression has {len(expression)} characters; at most {MAX_LENGTH} are calculated.", "wrong_arguments"
        )
    at = 0
    while at < len(expression):
        token = TOKEN.match(expression, at)
        if token is None:
            hint = HINTS.get(expression[at], "")
            raise ToolError(
                f"{expression[at]!r} at character {at + 1} of {expression!r} is not understood.{hint}",
                "wrong_arguments",
            )
        at = token.end()
    if percent := PERCENT.search(expression):
        raise ToolError(
            f"% in {expression!r} is the remainder, between two numbers. For percent write {percent[1] or 15}/100; "
            "put parentheses around a divisor with a sign.",
            "wrong_arguments",
        )
    return " ".join(expression.split())


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        why = error.msg if isinstance(error, SyntaxError) else "it is nested too deeply"
        raise ToolError(f"{text!r} is not an arithmetic expression: {why}.", "wrong_arguments") from None


def _number(node: ast.expr, text: str, depth: int) -> Number:
    if depth > MAX_DEPTH:
        raise ToolError("The expression is nested too deeply; calculate it in steps.", "wrong_arguments")
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return limit_precision(value)
        case ast.Constant(value=float()):
            return limit_precision(literal(text[node.col_offset : node.end_col_offset]))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand, text, depth + 1)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _number(operand, text, depth + 1)
        case ast.BinOp():
            return _chain(node, text, depth + 1)
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return limit_precision(_call_function(name, _arguments(args, text, depth + 1)))
        case _:
            _unknown(node)


def _chain(node: ast.expr, text: str, depth: int) -> Number:
    """A chain like 1 + 2 + 3 is nested to the left. A loop walks it, so that its length is not limited."""
    links: list[ast.BinOp] = []
    while isinstance(node, ast.BinOp):
        links.append(node)
        node = node.left
    value = _number(node, text, depth)
    for link in reversed(links):
        value = limit_precision(OPERATORS[type(link.op)](value, _number(link.right, text, depth)))
    return value


def _arguments(nodes: Sequence[ast.expr], text: str, depth: int) -> list[Number]:
    """The arguments of a function; they may also be given as one list."""
    if len(nodes) == 1 and isinstance(nodes[0], ast.List | ast.Tuple):
        nodes = nodes[0].elts
    return [_number(node, text, depth) for node in nodes]


def _call_function(name: str, values: list[Number]) -> Number:
    fn, *counts = FUNCTIONS[name]
    if counts and len(values) not in counts:
        raise ValueError(f"{name} takes {' or '.join(map(str, counts))} numbers, not {len(values)}")
    if not values:
        raise ValueError(f"{name} needs at least one number")
    return fn(*values)


def _unknown(node: ast.expr) -> NoReturn:
    match node:
        case ast.Name(id=name):
            raise ToolError(f"{name!r} is not known; constants are {', '.join(CONSTANTS)}.", "wrong_arguments")
        case ast.Call(func=ast.Name(id=name)):
            raise ToolError(f"Function {name!r} is not known; there are {', '.join(FUNCTIONS)}.", "wrong_arguments")
        case ast.Tuple() | ast.List():
            raise ToolError("A list is not a number; write numbers without thousands separators.", "wrong_arguments")
        case _:
            raise ToolError("Only numbers, operators and the known functions can be calculated.", "wrong_arguments")
