"""A pytest plugin: runs the tests once for each mutant of their functions, and notes which test detects which."""

from __future__ import annotations

import importlib
import json
import os
import time
from pathlib import Path
from typing import Any

from .mutants import HANDFUL, MANY, in_place, make_mutants, time_limit

ORDER, RESULT = Path(os.environ["TESTGEN_MUTANTS"]), Path(os.environ["TESTGEN_RESULT"])
# For measuring: all mutants, or only those that were not used to choose calls.
MOST, UNLIKE = {"": (HANDFUL, 0), "all": (None, 0), "others": (None, MANY)}[os.environ.get("TESTGEN_MEASURE", "")]
TEST_S, ALL_S = 5.0, 60.0


def note(**fields: Any) -> None:
    with RESULT.open("a", encoding="utf-8") as file:
        file.write(json.dumps(fields) + "\n")


def pytest_runtestloop(session: Any) -> bool:
    """Each function's mutants are put in its place, one after the other; the order says which tests are of it."""
    ends_at = time.monotonic() + ALL_S
    by_name: dict[str, list[Any]] = {}
    for item in session.items:
        by_name.setdefault(item.nodeid.partition("::")[2].partition("[")[0].partition("::")[0], []).append(item)
    for target in json.loads(ORDER.read_text(encoding="utf-8")):
        module = importlib.import_module(target["module"])
        tests = {name: by_name[name] for name in target["tests"] if name in by_name and passes(by_name[name])}
        killers = dict.fromkeys(tests, 0)
        mutants = make_mutants(module, target["name"], target.get("line", 0), MOST, unlike=UNLIKE)
        killed = tried = 0
        for mutant in mutants:
            if time.monotonic() > ends_at:
                break
            with in_place(module, target["name"], mutant):
                told = [name for name, items in tests.items() if not passes(items)]
            tried += 1
            killed += bool(told)
            for name in told:
                killers[name] += 1
        note(target=f"{target['module']}.{target['name']}", mutants=tried, killed=killed, killers=killers)
    note(ended=True)
    return True


def passes(items: list[Any]) -> bool:
    """Whether all of them do, now."""
    from _pytest.runner import runtestprotocol

    for item in items:
        item._initrequest()  # as in a first run
        try:
            with time_limit(TEST_S):
                reports = runtestprotocol(item, log=False, nextitem=None)
        except BaseException:  # noqa: BLE001 -- what ends a test ends it, by whatever error
            return False
        if any(report.failed for report in reports):
            return False
    return True
