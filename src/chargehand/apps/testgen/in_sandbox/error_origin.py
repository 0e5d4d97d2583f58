"""An error of a call becomes a verdict: whether it was an accident, an operation that failed in the project's code.

An error from a `raise` statement is intended. So is an error from other code, which rejects its input.
"""

from __future__ import annotations

import dis
from pathlib import Path
from types import TracebackType

_RAISING = frozenset({"RAISE_VARARGS", "RERAISE"})
# Raised by Python itself, not by a statement, but about the input: invalid source text, a missing key.
_ABOUT_INPUT = (SyntaxError, TypeError, ValueError, LookupError, ImportError)


def is_accident(error: BaseException, project: Path, given: set[type]) -> bool:
    """`given` are the types of the arguments: a missing attribute of one of them says nothing.

    Only missing attributes of None count: any other object may come from an input that was not intended.
    """
    if not isinstance(error, Exception) or error.__traceback__ is None:
        return False
    if isinstance(error, _ABOUT_INPUT) and not isinstance(error, IndexError):
        return False
    if isinstance(error, AttributeError) and (error.obj is not None or type(None) in given):
        return False
    innermost = _innermost(error.__traceback__)
    code = innermost.tb_frame.f_code
    if not Path(code.co_filename).is_relative_to(project):
        return False
    return dis.opname[code.co_code[innermost.tb_lasti]] not in _RAISING


def _innermost(entry: TracebackType) -> TracebackType:
    while entry.tb_next is not None:
        entry = entry.tb_next
    return entry
