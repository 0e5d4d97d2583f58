"""Python statements after a jump, as hits."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from chargehand.apps.review.analyzers import categories, child, suppression
from chargehand.apps.review.analyzers.hit import Hit, Hits
from chargehand.apps.review.analyzers.sources import SourceFile, SourceReader, blocks, is_python

if TYPE_CHECKING:
    from chargehand.apps.review.analyzers import AnalyzerResult, Lens, Scope
    from chargehand.apps.review.analyzers.child import Order

Jump = ast.Return | ast.Raise | ast.Continue | ast.Break


def version() -> str:
    return f"unreachable {categories.MAPPING}"


async def analyze(scope: Scope, lens: Lens) -> AnalyzerResult:
    return await child.analyze("unreachable", scope, lens)


def examine(order: Order) -> Hits:
    reader = SourceReader(order.root)
    hits: list[Hit] = []
    for source, tree in reader.parse_files(path for path in order.files if is_python(path, order.root)):
        hits += suppression.drop_silenced(_unreachable(source, tree), source.lines)
    return Hits(tuple(hits), unchecked=reader.unchecked_files())


def _unreachable(source: SourceFile, tree: ast.Module) -> Iterator[Hit]:
    bodies: list[list[ast.stmt]] = [tree.body]
    while bodies:
        body = bodies.pop()
        for statement in body:
            bodies.extend(blocks(statement))
        if len(body) > 1:
            for jump, after in pairwise(body):
                if isinstance(jump, Jump):
                    if not _makes_generator(after):
                        message = (
                            f"Nothing after the `{type(jump).__name__.lower()}` on line {jump.lineno} is ever run."
                        )
                        yield Hit("dead:unreachable", source.path, after.lineno, message, end_line=body[-1].end_lineno)
                    break


def _makes_generator(statement: ast.stmt) -> bool:
    """A `yield` after the return is there to make the function a generator."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(statement))
