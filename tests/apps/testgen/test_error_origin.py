"""What a call raised is an accident only where an operation failed in the project's own code."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from chargehand.apps.testgen.in_sandbox.error_origin import is_accident

CODE = """
import configparser, re, sys

class Half:
    def whole(self):
        return self.rest

def mean(xs): return sum(xs) / len(xs)
def first(text): return text[0]
def year(text): return re.match(r"[0-9]+", text).group()
def forgot(n):
    if n > 5:
        found = n
    return found
def endless(n): return endless(n + 1)
def last(xs): return xs.pop()

def reject(n): raise IndexError(f"{n} is out of range")
def through_helper(n): return reject(n)
def group(n): raise ExceptionGroup("several", [ValueError("one")])
def leave(n): sys.exit(3)
def parse(text): return compile(text, "", "eval")
def of_others(text): return configparser.ConfigParser().get("a", text)
def again(n):
    try:
        return reject(n)
    except IndexError:
        raise
def lacks(n): return n.of_nothing
"""


@pytest.mark.parametrize(
    ("call", "accident"),
    [
        (("mean", []), True),
        (("first", ""), True),
        (("year", "abc"), True),
        (("forgot", 1), True),
        (("endless", 1), True),
        (("last", []), True),
        (("reject", 1), False),
        (("through_helper", 1), False),
        (("group", 1), False),
        (("leave", 1), False),
        (("parse", "1 +"), False),
        (("of_others", "b"), False),
        (("again", 1), False),
        (("lacks", 1), False),
    ],
)
def test_an_accident_is_an_operation_that_failed_in_own_code(
    tmp_path: Path, call: tuple[str, object], accident: bool
) -> None:
    """A raise statement, code of others, an exit and an attribute that the argument lacks are not accidents."""
    path = tmp_path / "unit.py"
    path.write_text(CODE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("unit", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    name, given = call
    with pytest.raises(BaseException) as raised:  # noqa: PT011 -- what it is, is the question
        getattr(module, name)(given)
    assert is_accident(raised.value, tmp_path, {type(given)}) is accident
    with pytest.raises(AttributeError) as caught:
        module.Half().whole()
    assert not is_accident(caught.value, tmp_path, {module.Half})
