"""bandit's tests over files, as hits: through its Python interface, so no configuration or baseline is looked for.

`# nosec` in the code is respected, and so is ruff's `# noqa: S...` for the same test. Tests that only report an import
or an assertion are left out: they say nothing about its use. Tests that another lens has are left out too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chargehand.apps.review.analyzers import categories, suppression
from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hit, Hits
from chargehand.apps.review.analyzers.match_confidence import Shapes, weight
from chargehand.apps.review.analyzers.minor_matches import highest_severity
from chargehand.apps.review.analyzers.source_files import SourceReader, is_python

SKIPPED = (
    *("B101", "B110", "B112", "B613"),
    *("B401", "B402", "B403", "B404", "B405", "B406", "B407", "B408", "B409", "B410", "B411", "B412", "B413", "B415"),
)

# Imported only at use: importing bandit is slow. What bandit imports is named before it, so that another order does not
# wait for all of it.
NEEDS = ("importlib.metadata", "yaml", "rich.progress", "chargehand.apps.review.analyzers.bandit_visitor")
# Taken off where bandit only suspects a problem, such as SQL text without a call that runs it.
UNSURE = 20


def examine(order: AnalysisOrder) -> Hits:
    from chargehand.apps.review.analyzers.bandit_visitor import FileTests

    reader = SourceReader(order.root)
    tests = FileTests(SKIPPED)
    hits: list[Hit] = []
    for path in order.files:
        if not is_python(path, order.root) or not reader.fits(path):
            continue
        try:
            full = order.root / path
            issues = tests.run(str(full), full.read_bytes())
        except (OSError, SyntaxError):
            reader.note_unparsed(path)
        except Exception:  # noqa: BLE001 -- recorded: the file counts as not checked
            reader.count_unchecked("Made bandit fail", path)
        else:
            hits += _hits_of_file(path, issues, reader)
    return Hits(tuple(hits), unchecked=reader.unchecked_files())


def _hits_of_file(path: str, issues: list[Any], reader: SourceReader) -> list[Hit]:
    source = reader.read(path) if issues else None
    lines, shapes = source.lines if source else [], Shapes(source)
    return suppression.drop_silenced((_hit(path, issue, lines, shapes) for issue in issues), lines)


def _hit(path: str, issue: Any, lines: list[str], shapes: Shapes) -> Hit:
    rule, code = f"bandit:{issue.test_id}", f"S{issue.test_id[1:]}"
    number: int = issue.lineno
    last = max(number, *issue.linerange)
    text = "\n".join(lines[number - 1 : last])
    known = weight(code, issue.text, text, path)
    if known is None:
        known = shapes.worth(code, issue.text, number, last)
    if known is None and issue.confidence == "LOW":
        known = max(0, categories.rule_of(rule, "security").confidence - UNSURE)
    # bandit counts bytes from 0, and gives the end of a match only within one line.
    column = issue.col_offset + 1 if issue.col_offset >= 0 and lines and lines[number - 1].isascii() else None
    end_column = issue.end_col_offset + 1 if column and last == number and issue.end_col_offset > 0 else None
    at_most = highest_severity(code, path, text, shapes, number, last)
    hit = Hit(rule, path, number, issue.text, end_line=last, confidence=known, column=column, end_column=end_column)
    return replace(hit, at_most=at_most)
