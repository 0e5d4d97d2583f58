"""A function becomes mutants: copies with one change that replace it for a while.

They show the value of a test: a test that detects no mutant says nothing about the function.
"""

from __future__ import annotations
import __future__

import ast
import copy
import inspect
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

# Calls are chosen by many mutants, each tried in milliseconds; whole tests are run on a handful of these.
HANDFUL, MANY = 12, 36
# The time limit of one call of a mutant: an inverted condition may make it endless.
LONGEST_CALL_S = 1.0
# The processor time of one call of the function itself. A call that takes longer ends the process.
LONGEST_TRIAL_S = 5
_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Change = Callable[[Any], ast.AST]


class CallTooLong(BaseException):
    """A call did not end; no `except Exception` of the code under test may catch it."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of a function, in words and as code."""

    line: int
    what: str
    code: CodeType


def make_mutants(module: ModuleType, name: str, line: int, most: int | None, *, unlike: int = 0) -> list[Mutant]:
    """A limited number, spread over the source of the function; none if it cannot be read or replaced.

    `unlike` leaves out the mutants that this limit would give: tests chosen by them are measured by others.
    """
    function = plain_function(module, name)
    found = definition(module, name, line)
    if function is None or found is None:
        return []
    sites = list(_sites(found[-1]))
    wanted = _spread(len(sites), most) - (_spread(len(sites), unlike) if unlike else set[int]())
    chosen = [site for number, site in enumerate(sites) if number in wanted]
    mutants: list[Mutant] = []
    for at, what, change in chosen:
        tree = _changed_tree(found, at, change)
        code = _code_of(tree, function.__code__)
        if code is not None and code != function.__code__:
            mutants.append(Mutant(getattr(at, "lineno", line), what, code))
    return mutants


def _spread(count: int, most: int | None) -> set[int]:
    return {*range(count)} if most is None or count <= most else {at * count // most for at in range(most)}


def definition(module: ModuleType, name: str, line: int) -> list[ast.AST] | None:
    """The class of a method, if it is one, and the function's own definition."""
    try:
        body = ast.parse(inspect.getsource(module)).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    path: list[ast.AST] = []
    for part in name.split("."):
        same = [node for node in body if isinstance(node, _DEFINITIONS) and node.name == part]
        if not same:
            return None
        chosen = next((node for node in same if node.lineno == line), same[-1])
        path.append(chosen)
        body = chosen.body
    return path


def plain_function(module: ModuleType, name: str) -> FunctionType | None:
    """The function behind decorators, by the name it was written under."""
    found: Any = module
    for part in name.split("."):
        try:
            found = inspect.getattr_static(found, part)
        except AttributeError:
            return None
    for _ in range(8):
        found = getattr(found, "__func__", found)
        if isinstance(found, FunctionType) and found.__qualname__ == name and found.__code__.co_qualname == name:
            return found
        cells = [cell.cell_contents for cell in getattr(found, "__closure__", None) or () if _is_set(cell)]
        inner = [each for each in cells if isinstance(each, FunctionType) and each.__code__.co_qualname == name]
        if (wrapped := getattr(found, "__wrapped__", None) or next(iter(inner), None)) is None:
            return None
        found = wrapped
    return None


@contextmanager
def in_place(module: ModuleType, name: str, mutant: Mutant) -> Generator[None]:
    """The mutant in the place of the function, wherever it was imported to."""
    function = plain_function(module, name)
    assert function is not None
    before = function.__code__
    _forget(module, name)
    function.__code__ = mutant.code
    try:
        yield
    finally:
        function.__code__ = before
        _forget(module, name)


@contextmanager
def time_limit(seconds: float) -> Generator[None]:
    def stop(_number: int, _frame: Any) -> None:
        raise CallTooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def processor_limit(seconds: float) -> Generator[None]:
    """End the process by SIGPROF when the block has used so much processor time: no code can catch or delay that."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def literals(module: ModuleType, name: str, line: int) -> tuple[list[str], list[int]]:
    """Strings and numbers that the code of the function compares or looks up: useful as inputs."""
    found = definition(module, name, line)
    if found is None:
        return [], []
    held = [node.value for node in ast.walk(_without_docstring(found[-1])) if isinstance(node, ast.Constant)]
    texts = [value for value in held if isinstance(value, str) and 0 < len(value) <= 16 and value.isprintable()]
    numbers = [value for value in held if type(value) is int and abs(value) < 1 << 40]
    return list(dict.fromkeys(texts))[:6], list(dict.fromkeys(numbers))[:6]


def _forget(module: ModuleType, name: str) -> None:
    """Clear the cache of the function."""
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if callable(clear := getattr(found, "cache_clear", None)):
        clear()


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _without_docstring(node: Any) -> ast.Module:
    body = node.body
    has_one = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return ast.Module(body[1:] if has_one else body, [])


def _sites(node: Any) -> Iterator[tuple[ast.AST, str, Change]]:
    """The places that can be changed in a function, each with its change."""
    for each in ast.walk(_without_docstring(node)):
        match each:
            case ast.Compare(ops=[op, *_]) if type(op) in _SWAPS:
                yield each, _swap_words(op), _swap_comparison
            case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) if type(op) in _SWAPS:
                yield each, _swap_words(op), _swap_operator
            case ast.UnaryOp(op=ast.Not()):
                yield each, "`not` left out", lambda node: node.operand
            case ast.If() | ast.IfExp():
                yield each, "condition turned round", _turn_round
            case ast.While():
                yield each, "loop left out", _leave_loop_out
            case ast.Constant(value=bool() | int() | str()):
                yield each, f"{each.value!r} changed", _change_constant
            case ast.Return(value=value) if value is not None and not _is_none(value):
                yield each, "returns None", lambda node: ast.copy_location(ast.Return(ast.Constant(None)), node)
            case ast.Raise() | ast.Expr(value=ast.Call()) | ast.Continue() | ast.Break():
                yield each, "statement left out", lambda node: ast.copy_location(ast.Pass(), node)
            case _:
                pass


def _swap_words(op: ast.AST) -> str:
    return f"{type(op).__name__} became {_SWAPS[type(op)].__name__}"


def _swap_comparison(node: ast.Compare) -> ast.AST:
    node.ops[0] = _SWAPS[type(node.ops[0])]()  # pyright: ignore[reportArgumentType, reportCallIssue]
    return node


def _swap_operator(node: Any) -> ast.AST:
    node.op = _SWAPS[type(node.op)]()
    return node


def _turn_round(node: Any) -> ast.AST:
    node.test = ast.UnaryOp(ast.Not(), node.test)
    return node


def _leave_loop_out(node: Any) -> ast.AST:
    node.test = ast.Constant(False)
    return node


def _change_constant(node: ast.Constant) -> ast.AST:
    value = node.value
    node.value = (not value) if isinstance(value, bool) else value + 1 if isinstance(value, int) else f"XX{value}"
    return node


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _changed_tree(path: list[ast.AST], at: ast.AST, change: Change) -> ast.Module:
    """The definition alone, in its class if it has one, with the change."""
    number = next(number for number, node in enumerate(ast.walk(path[-1])) if node is at)
    whole = copy.deepcopy(path[-1])
    site = next(node for count, node in enumerate(ast.walk(whole)) if count == number)

    class Changer(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return change(node) if node is site else super().generic_visit(node)

    made: Any = Changer().visit(whole)
    for owner in reversed(path[:-1]):
        assert isinstance(owner, ast.ClassDef)
        made = ast.ClassDef(owner.name, [], [], [made], [])
    return ast.fix_missing_locations(ast.Module([made], []))


def _code_of(tree: ast.Module, original: CodeType) -> CodeType | None:
    """The code of the function in the tree; None if it cannot replace the original."""
    try:
        waiting = [compile(tree, original.co_filename, "exec", original.co_flags & _FUTURE, dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError):
        return None
    for code in waiting:  # grows while it is walked
        if code.co_qualname == original.co_qualname and code.co_name == original.co_name:
            return code if code.co_freevars == original.co_freevars else None
        waiting += [each for each in code.co_consts if isinstance(each, CodeType)]
    return None
