"""Text of any language that should not have been committed, as hits: conflict markers, debuggers, focused tests,
characters that hide code, line endings that do not agree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from chargehand.apps.review.analyzers.examine import examine_texts
from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hit, Hits
from chargehand.apps.review.analyzers.language_names import language
from chargehand.apps.review.analyzers.source_files import SourceFile, is_test

BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
CONFLICT = re.compile(r"(?m)^(?:<{7} \S.*|>{7} \S.*)$")
SEPARATOR = re.compile(r"(?m)^={7}$")
JAVASCRIPT = (".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".vue", ".svelte")
PROSE = (".md", ".rst", ".txt", ".adoc")
# Not for Python: ruff has that rule.
DEBUGGERS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (JAVASCRIPT, re.compile(r"^\s*debugger\s*;?\s*(?://.*)?$")),
    ((".rb",), re.compile(r"^\s*(?:binding\.(?:pry|irb)|byebug)\b")),
    ((".php",), re.compile(r"^\s*(?:var_dump|dd)\(")),
    ((".rs",), re.compile(r"^\s*dbg!\(")),
)
FOCUS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (JAVASCRIPT, re.compile(r"^\s*(?:(?:it|test|describe|context|suite)\.only|fit|fdescribe)\s*\(")),
    ((".rb",), re.compile(r"^\s*(?:fit|fdescribe|fcontext)\b|,\s*:?focus(?::|\s*=>)\s*true")),
)


def examine(order: AnalysisOrder) -> Hits:
    def find(source: SourceFile) -> Iterator[Hit]:
        yield from _conflicts(source)
        yield from _find_hidden_characters(source, order.root)
        yield from _lines(source)
        yield from _endings(source, order.root)

    return examine_texts(order, order.files, find)


def _conflicts(source: SourceFile) -> Iterator[Hit]:
    """Only both kinds of marker together are a conflict: a line of `=` alone may underline a title."""
    if "<<<<<<< " not in source.text or ">>>>>>> " not in source.text or not SEPARATOR.search(source.text):
        return
    first = CONFLICT.search(source.text)
    if first and first[0].startswith("<"):
        line = source.text.count("\n", 0, first.start()) + 1
        yield Hit("leftovers:conflict", source.path, line, "A merge conflict was left in the file.")


def _find_hidden_characters(source: SourceFile, root: Path) -> Iterator[Hit]:
    """Not in prose, and not in the data of tests: nothing runs it, and such characters are there on purpose."""
    if source.text.isascii() or source.path.endswith(PROSE):
        return
    if is_test(source.path) and not language(source.path, root):
        return
    for found in BIDI.finditer(source.text):
        line = source.text.count("\n", 0, found.start()) + 1
        message = f"U+{ord(found[0]):04X} makes the line read in another order than it is run."
        yield Hit("leftovers:bidi", source.path, line, message)
        return


def _lines(source: SourceFile) -> Iterator[Hit]:
    for rule, table, message in (
        ("leftovers:debugger", DEBUGGERS, "A debugger call was left in."),
        ("leftovers:focus", FOCUS, "Only this test is run; all others are passed over."),
    ):
        for suffixes, expression in table:
            if source.path.lower().endswith(suffixes):
                numbers = (number for number, line in enumerate(source.lines, 1) if expression.search(line))
                yield from (Hit(rule, source.path, number, message) for number in numbers)


def _endings(source: SourceFile, root: Path) -> Iterator[Hit]:
    if is_test(source.path):
        return
    data = (root / source.path).read_bytes()
    pairs = data.count(b"\r\n")
    lines = data.count(b"\n")
    if 0 < pairs < lines:
        few_are_pairs = pairs * 2 <= lines
        line = next(
            number for number, each in enumerate(data.split(b"\n")[:-1], 1) if each.endswith(b"\r") == few_are_pairs
        )
        message = f"{pairs} of {lines} lines end with CR LF, the others with LF."
        yield Hit("leftovers:endings", source.path, line, message)
