"""bandit's tests over files, as hits: through its Python interface, so no configuration or baseline is looked for.

`# nosec` in the code is respected, and so is ruff's `# noqa: S...` for the same test. Tests that only report an import
or an assertion are left out: they say nothing about its use. Tests that another lens has are left out too.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from chargehand.apps.review.analyzers import categories, suppression
from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hit, Hits
from chargehand.apps.review.analyzers.match_confidence import Shapes
from chargehand.apps.review.analyzers.minor_matches import is_minor
from chargehand.apps.review.analyzers.ruff import weight
from chargehand.apps.review.analyzers.source_files import SourceReader, is_python

SKIPPED = (
    *("B101", "B110", "B112", "B613"),
    *("B401", "B402", "B403", "B404", "B405", "B406", "B407", "B408", "B409", "B410", "B411", "B412", "B413", "B415"),
)

# Imported only at use: both imports are slow.
NEEDS = ("bandit.core.config", "bandit.core.manager")
# Taken off where bandit only suspects a problem, such as SQL text without a call that runs it.
UNSURE = 20


def examine(order: AnalysisOrder) -> Hits:
    """Runs in the child: one manager for all files."""
    logging.disable(logging.CRITICAL)
    from bandit.core import config, manager

    reader = SourceReader(order.root)
    names = {str(order.root / path): path for path in order.files if is_python(path, order.root) and reader.fits(path)}
    run: Any = manager.BanditManager(config.BanditConfig(), "file", quiet=True, profile={"exclude": set(SKIPPED)})
    run.files_list = list(names)
    run.run_tests()
    for name, reason in run.skipped:
        path = names.get(str(name), str(name))
        reader.note_unparsed(path) if "syntax" in reason else reader.count_unchecked("Made bandit fail", path)
    by_path: dict[str, list[Any]] = {}
    for issue in run.get_issue_list():
        by_path.setdefault(names[issue.fname], []).append(issue)
    hits: list[Hit] = []
    for path, issues in by_path.items():
        source = reader.read(path)
        lines, shapes = source.lines if source else [], Shapes(source)
        hits += suppression.drop_silenced((_hit(path, issue, lines, shapes) for issue in issues), lines)
    return Hits(tuple(hits), unchecked=reader.unchecked_files())


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
    minor = is_minor(code, path, text, shapes, number, last)
    hit = Hit(rule, path, number, issue.text, end_line=last, confidence=known, column=column, end_column=end_column)
    return replace(hit, minor=minor)
