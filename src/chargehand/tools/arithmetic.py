"""The numbers, operators, constants and functions a calculation may use.

Numbers are whole or fractions, so sums, products and quotients are exact and cents are right. Roots, logarithms and
other powers are computed to 50 digits, angles as floats to 15.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation, Overflow
from fractions import Fraction
from functools import partial
from typing import TypeAlias

Number: TypeAlias = int | Fraction

# About 4,200 digits: less than Python's limit for converting to text, and cheap to multiply.
MAX_BITS = 14_000
WORKING = Context(prec=50, Emax=9999, Emin=-9999, traps=[InvalidOperation, Overflow])
# A root or logarithm that should be a whole number differs from it only after this many digits.
SETTLED = Context(prec=40, Emax=9999, Emin=-9999)
SHORT = 30
FLOAT_DIGITS = 15
SHOWN = Context(prec=28)


def number_text(value: Number) -> str:
    """Whole numbers in full, others with 28 digits, without an exponent unless they are very large or very small."""
    if isinstance(value, int):
        return str(value)
    decimal = SHOWN.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(SHOWN)
    return f"{decimal:f}" if -20 <= decimal.adjusted() < SHOWN.prec else str(decimal)


def limit_precision(value: Number) -> Number:
    """The value, rounded where an exact fraction would be too long; OverflowError when it is too large."""
    if int(value).bit_length() > MAX_BITS:
        raise OverflowError
    return value if value.denominator.bit_length() <= MAX_BITS else Fraction(_decimal(value))


def literal(written: str) -> Fraction:
    """A number with a point or an exponent, exactly as written: a float would round it."""
    # The size is checked first: the fraction of 1e999999999 would take all memory.
    digits = written.replace("_", "")
    return Fraction(digits) if WORKING.create_decimal(digits) else Fraction(0)


def _decimal(value: Number) -> Decimal:
    return WORKING.divide(Decimal(value.numerator), Decimal(value.denominator))


def _settle_digits(value: Decimal) -> Fraction:
    """The value without its last digits if that makes it short, else the value with all digits."""
    near = value.normalize(SETTLED)
    return Fraction(near if len(near.as_tuple().digits) <= SHORT else value)


def _power(base: Number, exponent: Number) -> Number:
    # Checked before computing: the result has at most this many bits.
    bits = (max(base.numerator.bit_length(), base.denominator.bit_length()) - 1) * abs(exponent)
    if exponent.denominator == 1 and bits <= MAX_BITS:
        return base ** int(exponent) if exponent > 0 else Fraction(base) ** int(exponent)
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0:
        raise OverflowError
    return _settle_digits(WORKING.power(_decimal(base), _decimal(exponent)))


OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: Fraction(a) / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: _power,
}
CONSTANTS: dict[str, Number] = {
    "pi": Fraction("3.1415926535897932384626433832795028841971693993751"),
    "e": Fraction("2.7182818284590452353602874713526624977572470936999"),
    "tau": Fraction("6.2831853071795864769252867665590057683943387987502"),
}


def _float(fn: Callable[..., float]) -> Callable[..., Number]:
    """A function that is computed with floats."""
    return lambda *values: Fraction(f"{fn(*map(float, values)):.{FLOAT_DIGITS}g}")


def _abs(value: Number) -> Number:
    return abs(value)


def _floor(value: Number) -> Number:
    return math.floor(value)


def _ceil(value: Number) -> Number:
    return math.ceil(value)


def _round(value: Number, digits: Number = 0) -> Number:
    """Halves are rounded away from zero, as on an invoice."""
    if digits.denominator != 1 or abs(digits) > 300:
        raise ValueError("round takes a whole number of digits from -300 to 300")
    scale = Fraction(10) ** int(digits)
    rounded = math.floor(abs(value) * scale + Fraction(1, 2)) / scale * (-1 if value < 0 else 1)
    return int(rounded) if rounded.denominator == 1 and (digits <= 0 or isinstance(value, int)) else rounded


def _sqrt(value: Number) -> Number:
    return _settle_digits(WORKING.sqrt(_decimal(value)))


def _cbrt(value: Number) -> Number:
    root = _power(abs(value), Fraction(1, 3))
    return -root if value < 0 else root


def _exp(value: Number) -> Number:
    return _settle_digits(WORKING.exp(_decimal(value)))


def _log(value: Number, base: Number = CONSTANTS["e"]) -> Number:
    if value <= 0 or base <= 0:
        raise ValueError("only positive numbers have a logarithm")
    above, below = (Fraction(WORKING.ln(_decimal(each))) for each in (value, base))
    return _settle_digits(_decimal(above / below))


def _factorial(value: Number) -> int:
    if value.denominator != 1 or not 0 <= value <= 1000:
        raise ValueError("factorial takes a whole number from 0 to 1000")
    return math.factorial(int(value))


def _gcd(one: Number, other: Number) -> int:
    if one.denominator != 1 or other.denominator != 1:
        raise ValueError("gcd takes whole numbers")
    return math.gcd(int(one), int(other))


def _mean(*values: Number) -> Number:
    return Fraction(sum(values)) / len(values)


def _median(*values: Number) -> Number:
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(ordered) % 2 else _mean(*ordered[middle - 1 : middle + 1])


# Each function with the numbers of arguments it takes; no numbers means one or more.
FUNCTIONS: dict[str, tuple[Callable[..., Number], *tuple[int, ...]]] = {
    "abs": (_abs, 1),
    "round": (_round, 1, 2),
    "floor": (_floor, 1),
    "ceil": (_ceil, 1),
    "sqrt": (_sqrt, 1),
    "cbrt": (_cbrt, 1),
    "exp": (_exp, 1),
    "ln": (_log, 1),
    "log": (_log, 1, 2),
    "log2": (partial(_log, base=2), 1),
    "log10": (partial(_log, base=10), 1),
    "sin": (_float(math.sin), 1),
    "cos": (_float(math.cos), 1),
    "tan": (_float(math.tan), 1),
    "asin": (_float(math.asin), 1),
    "acos": (_float(math.acos), 1),
    "atan": (_float(math.atan), 1),
    "atan2": (_float(math.atan2), 2),
    "degrees": (_float(math.degrees), 1),
    "radians": (_float(math.radians), 1),
    "hypot": (lambda *sides: _sqrt(sum(side * side for side in sides)), 2, 3),
    "factorial": (_factorial, 1),
    "gcd": (_gcd, 2),
    "min": (lambda *values: min(values),),
    "max": (lambda *values: max(values),),
    "sum": (lambda *values: sum(values),),
    "mean": (_mean,),
    "median": (_median,),
}
