"""A repository that tries to run code through the tools that review it."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from chargehand.engine.analyzer_port import Scope
from tests.apps.review.analyzers.corpus_run import git
from tests.apps.review.analyzers.running import all_analyzed, places, write


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A repository full of traps, with this process standing in it, and the file that a sprung trap would write."""
    root, proof = tmp_path / "repo", tmp_path / "sprung"
    spring = f"open({str(proof)!r}, 'a').write(__file__)\n"
    script = tmp_path / "trap.sh"
    script.write_text(f'#!/bin/sh\necho "$@" >> {proof}\n')
    script.chmod(script.stat().st_mode | stat.S_IEXEC)
    modules = (
        "ruff.py",
        "bandit.py",
        "sitecustomize.py",
        "usercustomize.py",
        "conftest.py",
        "ast.py",
        "json.py",
        "yaml.py",
    )
    files = {
        **dict.fromkeys(modules, spring),
        "stevedore/__init__.py": spring,
        "chargehand/__init__.py": spring,
        "setup.py": spring,
        "pyproject.toml": '[tool.ruff]\nextend = "other.toml"\nexclude = ["*"]\n[tool.ruff.lint]\nignore = ["ALL"]\n'
        '[tool.bandit]\nskips = ["B307"]\nexclude_dirs = ["."]\n',
        "ruff.toml": 'exclude = ["*"]\n',
        ".ruff.toml": 'exclude = ["*"]\n',
        "setup.cfg": "[bandit]\nexclude: /\n",
        ".bandit": "[bandit]\nexclude: /\nskips: B307\n",
        "bandit.yaml": "skips: [B307]\n",
        "target.py": "import os\n\n\ndef run(text: str) -> object:\n    return eval(text)\n",
        ".gitattributes": "*.py diff=evil filter=evil\n*.py textconv=evil\n",
    }
    write(root, files)
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Fix everything\n\nNever do this again.")
    for key in (
        *(
            "core.fsmonitor",
            "core.pager",
            "core.editor",
            "core.sshCommand",
            "diff.external",
            "gpg.program",
            "pager.log",
        ),
        *(
            "diff.evil.command",
            "diff.evil.textconv",
            "filter.evil.clean",
            "filter.evil.smudge",
            "alias.log",
            "alias.blame",
        ),
        *("core.askPass", "credential.helper", "uploadpack.packObjectsHook"),
    ):
        git(root, "config", key, f"!{script}" if key.startswith("alias") else str(script))
    git(root, "config", "log.showSignature", "true")
    hook = root / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(script.read_text())
    hook.chmod(0o755)
    monkeypatch.chdir(root)
    monkeypatch.setenv("PYTHONPATH", str(root))
    monkeypatch.setenv("PYTHONSTARTUP", str(root / "setup.py"))
    monkeypatch.setenv("RUFF_CONFIG", str(root / "ruff.toml"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(script))
    (root / "target.py").write_text("import os\n\n\ndef run(text: str) -> object:\n    return eval(text or '')\n")
    return root, proof


def test_nothing_of_a_reviewed_repository_is_run_or_obeyed(trap: tuple[Path, Path]) -> None:
    """Modules, configuration, plugins, git settings and variables of the tree start no code and hide no finding."""
    root, proof = trap
    found = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    files = tuple(sorted(path for path in found if not path.startswith(".git/")))
    analyses = all_analyzed(Scope(root, files, {"target.py": ((5, 5),)}, base="HEAD"))
    assert not proof.exists(), proof.read_text()
    for name, line in {"bandit": 5, "ruff-security": 5, "ruff-bugs": 1, "history": 5}.items():
        assert ("target.py", line) in places(analyses[name])


@pytest.mark.parametrize("command", [["git", "diff", "HEAD"], [sys.executable, "-m", "ruff", "--version"]])
def test_the_traps_of_the_repository_do_spring(trap: tuple[Path, Path], command: list[str]) -> None:
    """The proof is written as soon as one thing of the repository is run: the test above can fail."""
    root, proof = trap
    subprocess.run(command, cwd=root, check=False, capture_output=True)
    assert proof.exists()
