"""The action and the hook that ship are well formed and call what there is."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path

import yaml

from chargehand.apps.review.from_git import read_hooked
from chargehand.cli.review import review
from tests.apps.review.world import commit, git, repository, write
from tests.project.test_project import closure

ROOT = Path(__file__).resolve().parents[3]
FLAGS = {flag for param in review.params for flag in param.opts} | {"-q"}


def test_the_action_calls_flags_that_exist_and_passes_values_as_variables() -> None:
    """Nothing of an input is written into the script itself."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"
    script = action["runs"]["steps"][-1]["run"]
    assert set(re.findall(r"(?<![\w-])--[a-z-]+", script)) <= FLAGS
    used = set(re.findall(r"\$(?:\{)?(REVIEW_\w+)", script))
    assert used == set(action["runs"]["steps"][-1]["env"])
    assert {name.upper().replace("-", "_") for name in action["inputs"]} == {
        name.removeprefix("REVIEW_") for name in used
    }


def test_the_hook_calls_flags_that_exist() -> None:
    """It reviews what is about to be committed and fails on what is critical."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    words = hook["entry"].split()
    assert words[0] == "chargehand"
    assert {word for word in words if word.startswith("-")} <= FLAGS
    assert hook["pass_filenames"] is False


def test_with_review_an_install_is_at_most_26_distributions() -> None:
    """A plain install, bandit and ruff."""
    names = closure("chargehand") | closure("bandit") | closure("ruff")
    assert len(names) <= 26, sorted(names)


def test_the_action_writes_its_log_where_it_is_not_reviewed(tmp_path: Path) -> None:
    """It comes into the tree when all is done, also when the gate trips, for later steps to read."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    stub = tmp_path / "bin" / "chargehand"
    stub.parent.mkdir()
    stub.write_text(
        '#!/bin/bash\nls >> "$SEEN"\nwhile [ $# -gt 0 ]; do case "$1" in\n'
        '-o) shift; case "$1" in /dev/*) ;; *) echo log > "$1";; esac;;\n--fail-on) exit 1;;\nesac; shift; done\n'
    )
    stub.chmod(0o755)
    tree = tmp_path / "tree"
    tree.mkdir()
    env = dict.fromkeys(action["runs"]["steps"][-1]["env"], "")
    env |= {"REVIEW_PATH": ".", "REVIEW_SARIF": "out/review.sarif", "REVIEW_FAIL_ON": "critical"}
    env |= {"PATH": f"{stub.parent}:{os.environ['PATH']}", "SEEN": str(tmp_path / "seen"), "TMPDIR": str(tmp_path)}
    os.umask(umask := os.umask(0))
    script = action["runs"]["steps"][-1]["run"]
    ended = subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=tree, env=env, check=False)
    assert ended.returncode == 1
    assert (tmp_path / "seen").read_text() == ""
    assert (tree / "out" / "review.sarif").read_text() == "log\n"
    assert stat.S_IMODE((tree / "out" / "review.sarif").stat().st_mode) == 0o666 & ~umask


def test_the_hook_reviews_what_is_staged() -> None:
    """Files that are not added are no part of the commit."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert "--staged" in hook["entry"].split()


def test_the_hook_reviews_what_pre_commit_runs_on(tmp_path: Path) -> None:
    """A range of commits as its tip has them, all files when nothing is staged, else what is staged."""
    root, keep = repository(tmp_path / "r", {"a.py": "a = 1\n", "b.py": "b = 1\n"}), tmp_path / "keep"
    write(root, {"b.py": "b = 1\nc = 2\n"})
    tip = commit(root, "more")
    run = {"PRE_COMMIT": "1"}
    assert list(read_hooked(root, keep, run).files) == ["a.py", "b.py"]
    assert read_hooked(root, keep, run).changed is None
    assert read_hooked(root, keep, {}).nothing == "Nothing to review: no change."
    span = {**run, "PRE_COMMIT_FROM_REF": "HEAD~1", "PRE_COMMIT_TO_REF": tip}
    change = read_hooked(root, keep, span)
    assert (change.changed, change.in_place) == ({"b.py": ((2, 2),)}, True)
    write(root, {"b.py": "other = 1\n"})
    commit(root, "another")
    change = read_hooked(root, keep, {**span, "PRE_COMMIT_FROM_REF": f"{tip}~1"})
    assert (change.changed, (change.root / "b.py").read_text()) == ({"b.py": ((2, 2),)}, "b = 1\nc = 2\n")
    write(root, {"a.py": "a = 2\n"})
    git(root, "add", "a.py")
    assert read_hooked(root, keep, run).changed == {"a.py": ((1, 1),)}
