"""A corpus of changes: what a change brings in is found on its line, what was there before is not blamed on it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from chargehand.apps.review.from_git import read_diff
from chargehand.apps.review.review_plan import make_review_plan
from chargehand.apps.review.selection import Selection, select
from chargehand.apps.review.source_lines import SourceLines
from chargehand.runs.supervisor import Supervisor
from chargehand.settings import Settings
from chargehand.values.report import Report
from tests.apps.review.world import git, repository, write

OLD = "import hashlib\n\n\ndef name_of(text):\n    return hashlib.md5(text).hexdigest()\n"
SQL = "def find(db, who):\n    return db.execute(\"select * from t where n = '%s'\" % who)\n"
SAFE = 'def find(db, who):\n    return db.execute("select * from t where n = ?", (who,))\n'


@dataclass(frozen=True)
class Case:
    """One file before and after; `expected` is (line, category) of what the change brings in."""

    name: str
    before: str | None
    after: str
    expected: frozenset[tuple[int, str]] = frozenset()


CASES = (
    Case("new file", None, SQL, frozenset({(2, "sql-injection")})),
    Case("line added below an old problem", OLD, OLD + "\n\n" + SQL, frozenset({(9, "sql-injection")})),
    Case("nothing but an old problem nearby", OLD, OLD + "\n\ndef other():\n    return 1\n"),
    Case("old problem moved down", OLD, "# A comment.\n# Another.\n" + OLD),
    Case("old problem indented", SQL, "if True:\n    " + SQL.replace("\n    ", "\n        ")),
    Case("problem corrected", SQL, SAFE),
    Case("safe line made unsafe", SAFE, SQL, frozenset({(2, "sql-injection")})),
    Case("windows line ends", OLD, OLD.replace("\n", "\r\n")),
    Case(
        "windows line ends and a new problem", OLD, (OLD + SQL).replace("\n", "\r\n"), frozenset({(7, "sql-injection")})
    ),
    Case("comment changed beside an old problem", OLD + "# one\n", OLD + "# two\n"),
    Case("blank lines added", SQL, "\n\n" + SQL),
    Case("order of functions changed", SQL + "\n\n" + OLD, OLD + "\n\n" + SQL),
    Case(
        "undefined name on a changed line",
        "def f(a):\n    return a\n",
        "def f(a):\n    return b\n",
        frozenset({(2, "undefined-name")}),
    ),
    Case("suppressed on the line", None, SQL.replace("% who)", "% who)  # noqa: S608  # nosec")),
)
# What a change to behaviour without a test is called is not what this corpus is about.
OTHERS = {"untested-change", "todo", "mixed-line-endings", "contract-comment", "fixed-before"}


def file_of(case: Case) -> str:
    return f"{case.name.replace(' ', '_')}.py"


def own(case: Case, text: str) -> str:
    """The text with a table of the case's own, so that no line looks moved from one case to another."""
    return text.replace("from t ", f"from t{CASES.index(case)} ")


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory: pytest.TempPathFactory) -> Selection:
    """One review of all cases: each is a file of one change."""
    folder = tmp_path_factory.mktemp("diffs")
    root = repository(
        folder / "r", {file_of(case): own(case, case.before) for case in CASES if case.before is not None}
    )
    git(root, "checkout", "-q", "-b", "work")
    write(root, {file_of(case): own(case, case.after) for case in CASES})
    change = read_diff(root, "main")
    plan = make_review_plan(change, model=False)
    door = Supervisor("review", settings=Settings(home=str(folder / "home")))
    report: Report = asyncio.run(door.run(plan.goal, plan=plan))
    assert report.status == "complete"
    return select(report.findings, change, SourceLines(change.root), min_confidence=80)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_only_what_a_change_brings_in_is_blamed_on_it(reviewed: Selection, case: Case) -> None:
    """Exactly the labelled places, whatever else the file holds."""
    found = {(f.line, f.category) for f in reviewed.findings if f.path == file_of(case) and f.category not in OTHERS}
    assert found == case.expected


def test_old_problems_are_left_out_for_that_reason(reviewed: Selection) -> None:
    """They are known, and said to be old."""
    old = [each for each in reviewed.left_out if each.finding.category in ("weak-hash", "sql-injection")]
    assert old
    assert {each.why for each in old if each.finding.path == file_of(CASES[1])} == {"not on a line that changed"}
    assert Path(old[0].finding.path or "").suffix == ".py"
