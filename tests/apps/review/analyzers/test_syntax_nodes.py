"""The nodes of a syntax tree."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from chargehand.apps.review.analyzers import syntax_nodes

LEAVES = ast.expr_context | ast.operator | ast.boolop | ast.unaryop | ast.cmpop
FILES = sorted(Path(syntax_nodes.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_walk_gives_what_ast_gives_in_the_same_order(path: Path) -> None:
    """Only contexts and operators are missing."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert syntax_nodes.walk(tree) == [node for node in ast.walk(tree) if not isinstance(node, LEAVES)]


def test_walk_reads_every_kind_of_statement() -> None:
    """Patterns, handlers, keywords, annotations and defaults are nodes too."""
    code = """
@decorate(key=1)
async def f(a, /, b: int = 2, *c, d=None, **e) -> str:
    global g
    async with x as y, z: pass
    async for i in j: await k
    else: del l[1:2, ::3]
    try: raise A from B
    except (C, D) as err: ...
    finally: assert m, "n"
    match o:
        case {"p": [1, *q], **r} | S(t, u=-1): return f"{v!r:>{w}}"
        case None if (x1 := lambda y1=1: (yield)): pass
    return {**a, 'b': [c async for c in d if e < 1 <= 2]}
class H(I, metaclass=J): k: int
from .l import m as n
"""
    tree = ast.parse(code)
    assert syntax_nodes.walk(tree) == [node for node in ast.walk(tree) if not isinstance(node, LEAVES)]


def test_parents_are_those_of_ast() -> None:
    """In the order of a walk, without contexts and operators."""
    tree = ast.parse(Path(syntax_nodes.__file__).read_text(encoding="utf-8"))
    pairs = [(child, node) for node in ast.walk(tree) for child in ast.iter_child_nodes(node)]
    wanted = [(child, node) for child, node in pairs if not isinstance(child, LEAVES)]
    assert list(syntax_nodes.parents(tree).items()) == wanted
