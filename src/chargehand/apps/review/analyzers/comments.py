"""Comments and docstrings that are not true or not finished, as hits: TODO notes, parameters that do not exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from chargehand.apps.review.analyzers.examine import examine_texts
from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hit, Hits
from chargehand.apps.review.analyzers.source_files import SourceFile

Function = ast.FunctionDef | ast.AsyncFunctionDef

TODO = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?P<text>.{0,120})")
MARK = re.compile(r"(?:^|\s)(?:#|//|/\*|\*|--|;|<!--)\s*(?:TODO|FIXME|XXX|HACK)\b")
PROSE = (".md", ".rst", ".txt", ".adoc", ".json", ".csv", ".lock", ".svg", ".html")
SPHINX = re.compile(r"^\s*:param(?:eter)?\s+(?:[\w\[\], .|]+\s+)?\\?\*{0,2}(\w+)\s*:", re.MULTILINE)
SECTION = re.compile(r"^(?P<indent>[ ]*)(?:Args|Arguments|Parameters)\s*:\s*$", re.MULTILINE)
ENTRY = re.compile(r"^[ ]*\\?\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:")
NUMPY = re.compile(r"^(?P<indent>[ ]*)Parameters[ ]*\n[ ]*-{4,}[ ]*$", re.MULTILINE)
NUMPY_ENTRY = re.compile(r"^[ ]*\\?\*{0,2}(\w+)\s*(?::.*)?$")

# Many projects use TODO to plan work; FIXME, XXX and HACK say that something is wrong.
PLAN = 55


def examine(order: AnalysisOrder) -> Hits:
    return examine_texts(order, order.files, lambda source: (*_todos(source), *_stale(source)))


def _todos(source: SourceFile) -> Iterator[Hit]:
    if source.path.endswith(PROSE) or not TODO.search(source.text):
        return
    lines = source.comments.items() if source.python else enumerate(source.lines, 1)
    for number, line in lines:
        if MARK.search(line) and (found := TODO.search(line)):
            text = found["text"].strip(" :-*/>")
            message = f"{found[1]} left in the code: {text or 'no reason given'}"
            yield Hit("comments:todo", source.path, number, message, confidence=PLAN if found[1] == "TODO" else None)


def _stale(source: SourceFile) -> Iterator[Hit]:
    if not source.python or not re.search(r":param|Args:|Arguments:|Parameters", source.text) or not source.tree:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, Function) and (doc := ast.get_docstring(node)):
            yield from _undocumentable(source, node, doc)


def _undocumentable(source: SourceFile, node: Function, doc: str) -> Iterator[Hit]:
    """Parameters a docstring describes and the signature does not have."""
    arguments = node.args
    # With **kwargs any name can be a parameter.
    if arguments.kwarg or any(isinstance(each, ast.Call | ast.Name | ast.Attribute) for each in node.decorator_list):
        return
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    real = {each.arg for each in (*every, arguments.vararg) if each}
    for name in dict.fromkeys(_documented_parameters(doc)):
        if name not in real:
            line = _line_of(source, node, name)
            yield Hit(
                "comments:docstring",
                source.path,
                line,
                f"The docstring of `{node.name}` describes `{name}`, which is not a parameter.",
            )


def _documented_parameters(doc: str) -> Iterator[str]:
    yield from SPHINX.findall(doc)
    for section, entry in ((SECTION, ENTRY), (NUMPY, NUMPY_ENTRY)):
        for start in section.finditer(doc):
            yield from _entries(doc[start.end() :], len(start["indent"]), entry, deeper=section is SECTION)


def _entries(text: str, indent: int, entry: re.Pattern[str], *, deeper: bool) -> Iterator[str]:
    """Names at the first level of a section, until it ends."""
    level: int | None = None
    for line in text.splitlines()[1:]:
        if not line.strip():
            if not deeper and level is not None:
                return
            continue
        depth = len(line) - len(line.lstrip())
        if depth < indent or (deeper and depth == indent):
            return
        level = depth if level is None else level
        if depth == level and (found := entry.match(line)):
            yield found[1]


def _line_of(source: SourceFile, node: Function, name: str) -> int:
    first = node.body[0]
    word = re.compile(rf"\b{re.escape(name)}\b")
    for number in range(first.lineno, (first.end_lineno or first.lineno) + 1):
        if word.search(source.lines[number - 1]):
            return number
    return first.lineno
