"""A pytest plugin: tests in the order asked for, and a JSON line for each as it starts and as it ends."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path
from typing import Any

SEED, RESULT = os.environ["TESTGEN_ORDER"], Path(os.environ["TESTGEN_RESULT"])


def note(**fields: Any) -> None:
    with RESULT.open("a", encoding="utf-8") as file:
        file.write(json.dumps(fields) + "\n")


def pytest_collection_modifyitems(items: list[Any]) -> None:
    if SEED == "reversed":
        items.reverse()
    elif SEED != "given":
        random.Random(SEED).shuffle(items)


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        note(broken=last_line(report), where=report.nodeid)


def pytest_runtest_logstart(nodeid: str, location: Any) -> None:
    note(started=title(nodeid))


def pytest_runtest_logreport(report: Any) -> None:
    if report.failed:
        note(failed=title(report.nodeid), why=last_line(report))
    elif report.when == "call":
        note(passed=title(report.nodeid), skipped=report.skipped)


def pytest_sessionfinish(exitstatus: int) -> None:
    note(ended=int(exitstatus))


def title(nodeid: str) -> str:
    """`test_x[1]` and `TestX::test_y` as the name of the definition in the file."""
    return nodeid.partition("::")[2].partition("[")[0].partition("::")[0]


def last_line(report: Any) -> str:
    """What pytest shows as the error: its lines that begin with E."""
    lines = [line[1:].strip() for line in str(report.longrepr).splitlines() if line.startswith("E ")]
    # Where a function happens to be in memory is not part of it.
    lines = [re.sub(r"<function (\S+) at 0x[0-9a-f]+>", r"\1", line) for line in lines]
    return " ".join(" ".join(lines).split())[:600] or " ".join(str(report.longrepr).split())[-600:]
