"""What is above the engine port does the same in the same order in every process, whatever the hash seed."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import chargehand
from chargehand.engine.run_parallel import run_parallel
from chargehand.testing import run_virtual

ROOT = Path(chargehand.__file__).parent
FOLDERS = ("dispatcher", "planner", "steps", "synthesizer", "workers")
# Order does not matter to what they make of their argument.
ORDER_FREE = frozenset(
    {"all", "any", "dict", "frozenset", "len", "max", "min", "set", "sorted", "sum", "union", "update"}
)
SETS = frozenset({"frozenset", "set"})
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def modules() -> list[Path]:
    return [ROOT / "flow.py", *(path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))]


def is_annotated_as_set(annotation: ast.expr | None) -> bool:
    base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return isinstance(base, ast.Name) and base.id in SETS


def sets_of(tree: ast.AST) -> frozenset[str]:
    """What is said or shown to be a set: names by function, and what is written as `self.name` by class."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name, annotation=annotation) if is_annotated_as_set(annotation):
                found.add(name)
            case ast.AnnAssign(target=ast.Name() | ast.Attribute() as target, annotation=annotation):
                if is_annotated_as_set(annotation):
                    found.add(ast.unparse(target))
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_set(value, frozenset()):
                found.add(name)
            case ast.ClassDef(body=body):
                found.update(
                    f"self.{name}"
                    for name in sets_of(
                        ast.Module(body=[n for n in body if isinstance(n, ast.AnnAssign)], type_ignores=[])
                    )
                )
            case _:
                pass
    return frozenset(found)


def scopes(tree: ast.Module) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """Each function, with the sets it knows; a nested one also as a part of the one around it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            own = {name for name in sets_of(node) if name.startswith("self.")}
            yield from ((each, sets_of(each) | own) for each in node.body if isinstance(each, FUNCTIONS))
        elif isinstance(node, FUNCTIONS):
            yield node, sets_of(node)


def is_set(node: ast.expr, known: frozenset[str]) -> bool:
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Name() | ast.Attribute():
            return ast.unparse(node) in known
        case ast.Call(func=ast.Name(id=name)):
            return name in SETS
        case ast.Call(func=ast.Subscript(value=ast.Name(id=name))):
            return name in SETS
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() | ast.Sub() | ast.BitXor(), right=right):
            return is_set(left, known) or is_set(right, known)
        case _:
            return False


def unordered(tree: ast.Module) -> list[int]:
    """Lines on which something is done in the order of a set, where the order can be seen."""
    return sorted({line for function, known in scopes(tree) for line in unordered_in(function, known)})


def unordered_in(tree: ast.AST, known: frozenset[str]) -> Iterator[int]:
    free = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")) in ORDER_FREE
        for argument in node.args
    }
    for node in ast.walk(tree):
        match node:
            case ast.For(iter=over) | ast.AsyncFor(iter=over) if is_set(over, known):
                yield node.lineno
            case ast.ListComp(generators=loops) | ast.GeneratorExp(generators=loops) | ast.DictComp(generators=loops):
                if id(node) not in free and any(is_set(loop.iter, known) for loop in loops):
                    yield node.lineno
            case ast.Call(func=ast.Name(id="list" | "tuple" | "enumerate" | "iter"), args=[over, *_]):
                if id(node) not in free and is_set(over, known):
                    yield node.lineno
            case ast.Call(func=ast.Attribute(attr="join"), args=[over]) if is_set(over, known):
                yield node.lineno
            case _:
                pass


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_is_done_in_the_order_of_a_set(path: Path) -> None:
    """The order of a set of texts differs between processes, and so would the records of equal runs."""
    assert unordered(ast.parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_task_group_is_used_that_cancels_in_the_order_of_a_set(path: Path) -> None:
    """What goes on at the same time is started and cancelled by `run_parallel`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [
        node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "TaskGroup"
    ] == []


def test_iteration_over_a_set_is_seen() -> None:
    """The check itself sees loops, comprehensions and joins, and lets through what does not show the order."""
    seen = "def f(a: set[str], b):\n  for x in a: b(x)\n  c = {1} | a\n  d = [x for x in c]\n  return ', '.join(a)\n"
    assert unordered(ast.parse(seen)) == [2, 4, 5]
    fine = "def f(a: set[str]):\n  return sorted(a), any(x for x in a), {x for x in a}, 'x' in a\n"
    assert unordered(ast.parse(fine)) == []


@pytest.mark.parametrize("failing", [True, False])
def test_work_side_by_side_is_cancelled_in_the_order_it_was_started(failing: bool) -> None:
    """When one fails, and when all of it is cut short."""
    ended: list[int] = []

    async def work(number: int) -> None:
        try:
            await asyncio.sleep(1 if failing and number == 60 else 10)
        except asyncio.CancelledError:
            ended.append(number)
            raise
        raise ValueError(number)

    async def main() -> None:
        with pytest.raises(ExceptionGroup if failing else TimeoutError):
            async with asyncio.timeout(5):
                await run_parallel(work(number) for number in range(200))

    run_virtual(main())
    assert ended == [number for number in range(200) if not (failing and number == 60)]


def test_work_cut_short_while_it_is_started_leaves_nothing_behind() -> None:
    """What was made and not begun is closed, not left for a warning that nobody awaited it."""
    begun: list[int] = []

    async def work(number: int) -> None:
        begun.append(number)
        if number == 3:
            raise ValueError(number)
        await asyncio.sleep(1)

    async def main() -> None:
        with pytest.raises(ExceptionGroup):
            await run_parallel(work(number) for number in range(1_000))

    run_virtual(main())
    assert len(begun) < 1_000
