"""Expressions that are compiled at first use."""

from __future__ import annotations

import re

import pytest

from chargehand.synthesizer import figures
from chargehand.text import redaction
from chargehand.values.lazy_regex import lazy_regex


def test_a_lazy_expression_does_what_the_compiled_one_does() -> None:
    """Its methods and attributes are those of the compiled expression, at each use."""
    lazy, compiled = lazy_regex(r"(?P<word>b+)", re.IGNORECASE), re.compile(r"(?P<word>b+)", re.IGNORECASE)
    assert [found["word"] for found in lazy.finditer("aBbab")] == ["Bb", "b"]
    assert lazy.sub("-", "aBbab") == lazy.sub("-", "aBbab") == compiled.sub("-", "aBbab")
    assert (lazy.groupindex, lazy.pattern, lazy.flags) == (compiled.groupindex, compiled.pattern, compiled.flags)


def test_a_mistake_in_an_expression_is_found_at_first_use() -> None:
    """As `re.compile` reports it."""
    with pytest.raises(re.error):
        lazy_regex("(").search("")


@pytest.mark.parametrize("module", [figures, redaction])
def test_every_lazy_expression_can_be_compiled(module: object) -> None:
    """A mistake does not wait for the text that meets it."""
    kind = type(lazy_regex(""))
    held = [*vars(module).values(), *(pattern.expression for pattern in redaction.PATTERNS)]
    expressions = [value for value in held if isinstance(value, kind)]
    assert expressions
    assert all(expression.groups >= 0 for expression in expressions)
