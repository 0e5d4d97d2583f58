"""The action and the hook that ship are well formed and call what there is."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import yaml

from chargehand.cli.review import review
from tests.test_project import closure

ROOT = Path(__file__).resolve().parents[2]
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
    """It comes into the tree when all is done, also when the gate trips."""
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
    script = action["runs"]["steps"][-1]["run"]
    ended = subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=tree, env=env, check=False)
    assert ended.returncode == 1
    assert (tmp_path / "seen").read_text() == ""
    assert (tree / "out" / "review.sarif").read_text() == "log\n"


def test_the_hook_reviews_what_is_staged() -> None:
    """Files that are not added are no part of the commit."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert "--staged" in hook["entry"].split()
