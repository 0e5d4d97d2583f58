"""Python statements after a jump, as hits."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from chargehand.apps.review.analyzers.examine import examine_trees
from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hit, Hits
from chargehand.apps.review.analyzers.source_files import SourceFile, blocks

Jump = ast.Return | ast.Raise | ast.Continue | ast.Break


def examine(order: AnalysisOrder) -> Hits:
    return examine_trees(order, _unreachable)


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
    """A `yield` after the return makes the function a generator."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(statement))
