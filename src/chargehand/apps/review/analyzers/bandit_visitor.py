"""A Python file -> bandit's issues in it, without bandit's work for nodes that none of its tests looks at.

Runs in a child process: importing bandit is slow.
"""

from __future__ import annotations

import ast
import io
import logging
import tokenize
from collections.abc import Iterable
from typing import Any, cast

from bandit.core import config, manager, metrics, node_visitor, test_set, tester

from chargehand.apps.review.analyzers.syntax_nodes import fields_with_nodes

LOWEST = "LOW"


class FileTests:
    """bandit's tests, without those that are left out."""

    def __init__(self, left_out: Iterable[str]) -> None:
        logging.disable(logging.CRITICAL)
        self._tests: Any = test_set.BanditTestSet(config.BanditConfig(), {"exclude": set(left_out)})

    def run(self, name: str, data: bytes) -> list[Any]:
        """The issues of a file. Raises what the parser and bandit raise."""
        visitor: Any = _Visitor(name, data, self._tests)
        visitor.process(data)
        return [issue for issue in visitor.tester.results if issue.filter(LOWEST, LOWEST)]


class _Visitor(node_visitor.BanditNodeVisitor):
    """Goes through the tree as bandit does, and calls bandit for the nodes that have a test."""

    def __init__(self, name: str, data: bytes, tests: Any) -> None:
        counts: Any = metrics.Metrics()
        counts.begin(name)
        silenced = _silenced_lines(data)
        super().__init__(name, io.BytesIO(data), None, tests, False, silenced, counts)
        self.tester: Any = _Tester(tests, False, silenced, counts)
        own = (method.removeprefix("visit_") for method in dir(self) if method.startswith("visit_"))
        self._tested = frozenset((*own, *tests.tests))

    def generic_visit(self, node: ast.AST) -> None:
        bandit: Any = self  # its methods have no types
        for child, after in _children(node):
            child._bandit_parent, child._bandit_sibling = node, after
            is_tested = type(child).__name__ in self._tested
            if is_tested:
                bandit.pre_visit(child)
                bandit.visit(child)
            self.generic_visit(child)
            if is_tested:
                bandit.post_visit(child)

    def update_scores(self, scores: object) -> None:
        """Nothing: the scores of files are not used."""


class _Tester(tester.BanditTester):
    def _get_nosecs_from_contexts(self, context: object, test_result: object = None) -> Any:
        bandit: Any = super()
        return bandit._get_nosecs_from_contexts(context, test_result) if self.nosec_lines else None


def _children(node: ast.AST) -> list[tuple[Any, object]]:
    """The nodes of a node, each with what follows it in a list."""
    found: list[tuple[Any, object]] = []
    for name in fields_with_nodes(type(node)):
        value = getattr(node, name, None)
        if isinstance(value, list):
            items = cast("list[object]", value)
            pairs = zip(items, (*items[1:], None), strict=False)
            found += [(item, after) for item, after in pairs if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append((value, None))
    return found


def _silenced_lines(data: bytes) -> dict[int, Any]:
    """Line -> the tests that its comment silences, for lines with `nosec`."""
    bandit: Any = manager
    found: dict[int, Any] = {}
    if b"nosec" not in data:
        return found
    try:
        for token in tokenize.tokenize(io.BytesIO(data).readline):
            if token.type == tokenize.COMMENT:
                found[token.start[0]] = bandit._parse_nosec_comment(token.string)
    except tokenize.TokenError:
        pass  # the parser reports it
    return found
