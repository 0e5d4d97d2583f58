"""What a change takes away: checks, locks, safer arguments and tests, and not what it moves or writes again."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargehand.engine.analyzer_port import AnalyzerResult
from tests.apps.review.analyzers.running import analyzed, write
from tests.apps.review.world import repository
from tests.cli.terminal import Shell

OLD = """
def close(user, account):
    if not user.is_admin:
        raise PermissionError("admins only")
    account.closed = True
    account.save()
    notify(account)
    return account


def fetch(url):
    with lock:
        seen.add(url)
        total = len(seen)
    reply = client.get(url, timeout=5, verify=True)
    log(total)
    return reply.text
"""

GUARD = '    if not user.is_admin:\n        raise PermissionError("admins only")\n'


def _compared(folder: Path, new: str, old: str = OLD, path: str = "bank.py", **others: str) -> AnalyzerResult:
    root = repository(folder / "r", {path: old, **dict.fromkeys(others, "")})
    write(root, {path: new, **others})
    changed = dict.fromkeys((path, *others), ((1, 99),))
    return analyzed("removals", root, tuple(changed), changed=changed, base="HEAD")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            GUARD,
            "",
            "`close` no longer stops when `not user.is_admin`.",
        ),
        (
            "    with lock:\n        seen.add(url)\n        total = len(seen)\n",
            "    seen.add(url)\n    total = len(seen)\n",
            "What was done in `with lock` in `fetch` is done without it.",
        ),
        (", timeout=5", "", "`client.get` in `fetch` is called without `timeout=` now."),
        (", verify=True", "", "`client.get` in `fetch` is called without `verify=` now."),
    ],
)
def test_what_is_taken_out_of_a_function_that_stays_is_reported(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in OLD
    (finding,) = _compared(tmp_path, OLD.replace(old, new)).findings
    assert (finding.category, finding.message) == ("removed-check", says)


@pytest.mark.parametrize(
    "new",
    [
        OLD.replace("admins only", "only for admins"),
        OLD.replace("not user.is_admin", "not user.is_admin and not user.is_owner"),
        OLD.replace("def close(user, account):", "def close(user, account):\n    check(user)"),
        OLD.replace("timeout=5", "limits=LIMITS"),
        OLD.replace("url, timeout=5", "url, 5"),
        OLD[: OLD.index("def fetch")],
        OLD.replace(
            "    account.closed = True\n    account.save()\n    notify(account)\n", "    store.close(account)\n"
        ).replace(GUARD, ""),
    ],
    ids=[
        "other words",
        "another condition",
        "more",
        "another argument",
        "by place",
        "the whole function",
        "written again",
    ],
)
def test_what_is_changed_or_gone_as_a_whole_is_not(tmp_path: Path, new: str) -> None:
    assert _compared(tmp_path, new).findings == ()


def test_a_check_that_moved_to_another_file_is_not_taken_away(tmp_path: Path) -> None:
    moved = {"guards.py": f"def only_admins(user):\n{GUARD}"}
    assert _compared(tmp_path, OLD.replace(GUARD, "    only_admins(user)\n"), **moved).findings == ()


def test_tests_that_are_taken_out_are_a_remark_unless_others_come(tmp_path: Path) -> None:
    old = "def test_a():\n    assert f() == 1\n\n\ndef test_b():\n    assert f() == 2\n"
    (finding,) = _compared(tmp_path / "1", old[: old.index("def test_b")], old, "tests/test_f.py").findings
    assert (finding.confidence, "`test_b`" in finding.message) == (70, True)
    assert _compared(tmp_path / "2", old.replace("test_b", "test_c"), old, "tests/test_f.py").findings == ()


def test_a_removed_check_is_shown_though_no_line_was_written(shell: Shell) -> None:
    """The change only takes lines out: the finding is at the function they were in."""
    root = repository(shell.folder / "r", {"bank.py": OLD})
    write(root, {"bank.py": OLD.replace(GUARD, "")})
    done = shell("review", root, "--diff", "HEAD", "--format", "json")
    assert [(f["path"], f["line"], f["category"]) for f in done.json["findings"]] == [("bank.py", 2, "removed-check")]


@pytest.mark.parametrize("old", ["", "def f(:\n", "\0\1\2", "x = 1\n" * 3])
def test_an_old_version_of_any_kind_is_compared_or_left_alone(tmp_path: Path, old: str) -> None:
    assert _compared(tmp_path, OLD, old).findings == ()
