"""Lines of a Python file -> the call or statement they are part of: one defect may be reported at any of its lines."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache

from chargehand.apps.review.analyzers.source_files import SourceFile as Text
from chargehand.apps.review.analyzers.source_files import blocks, is_python
from chargehand.apps.review.analyzers.syntax_nodes import walk
from chargehand.apps.review.source_lines import SourceLines
from chargehand.values.outcome import Finding

Span = tuple[int, int]


class Extents:
    """Reads each needed file once."""

    def __init__(self, source: SourceLines) -> None:
        self._source = source
        self._known = cache(self._read)

    def of(self, finding: Finding) -> Span:
        """The lines of a finding, limited to its own statement, or to the head of a compound statement."""
        line = finding.line or 1
        last = max(line, finding.end_line or line)
        if last == line or finding.path is None:
            return line, line
        _, heads = self._known(finding.path)
        own = _smallest(heads, line)
        return line, last if own is None else min(last, own[1])

    def join_findings(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings with the same lines for one call: one tool names its first line, another an argument."""
        said = list(findings)
        groups: dict[tuple[str, str, str], list[int]] = {}
        for number, finding in enumerate(said):
            if finding.path is not None and finding.line is not None and _tools(finding):
                groups.setdefault((finding.path, finding.category, finding.severity), []).append(number)
        for group in groups.values():
            lines = {said[number].line for number in group}
            tools = {tool for number in group for tool in _tools(said[number])}
            if len(lines) > 1 and len(tools) > 1:
                self._join(said, group)
        return said

    def _join(self, said: list[Finding], group: list[int]) -> None:
        calls: dict[Span, list[int]] = {}
        for number in group:
            finding = said[number]
            if (span := self._call(finding)) is not None:
                calls.setdefault(span, []).append(number)
        for own in calls.values():
            tools = [_tools(said[number]) for number in own]
            # Two findings of one tool about a call are two problems.
            if len(own) == 2 and tools[0].isdisjoint(tools[1]):
                line = min(said[number].line or 1 for number in own)
                last = max(said[number].end_line or said[number].line or 1 for number in own)
                for number in own:
                    said[number] = said[number].model_copy(update={"line": line, "end_line": last})

    def _call(self, finding: Finding) -> Span | None:
        assert finding.path is not None
        calls, heads = self._known(finding.path)
        line = finding.line or 1
        return _smallest(calls, line) or _smallest(heads, line)

    def _read(self, path: str) -> tuple[list[Span], list[Span]]:
        """The lines of calls over several lines, and of statements without their blocks."""
        if not is_python(path, self._source.root) or (tree := Text(path, self._source.text(path)).tree) is None:
            return [], []
        calls: list[Span] = []
        heads: list[Span] = []
        for node in walk(tree):
            if isinstance(node, ast.stmt):
                inner = [block[0].lineno for block in blocks(node) if block]
                last = max(node.lineno, min(inner) - 1) if inner else node.end_lineno or node.lineno
                heads.append((node.lineno, last))
            elif isinstance(node, ast.Call) and node.end_lineno != node.lineno:
                calls.append((node.lineno, node.end_lineno or node.lineno))
        return calls, heads


def _smallest(spans: Iterable[Span], line: int) -> Span | None:
    around = [span for span in spans if span[0] <= line <= span[1]]
    return min(around, key=lambda span: span[1] - span[0], default=None)


def _tools(finding: Finding) -> frozenset[str]:
    """The tools among its sources, which are written `tool:rule`."""
    return frozenset(source.partition(":")[0] for source in finding.sources if ":" in source)
