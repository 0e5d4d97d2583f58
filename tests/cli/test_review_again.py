"""Reviews looked at again, and reviews of trees that would rather not be reviewed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.apps.review.world import commit, git, repository, write
from tests.cli.terminal import Shell
from tests.cli.test_review_models import reads
from tests.loopback import serving

BAD = "import sqlite3\n\n\ndef find(db, name):\n    return db.execute(\"select * from t where n = '%s'\" % name)\n"


def test_show_and_resume_show_the_review_as_it_was_shown(shell: Shell) -> None:
    """What was left out stays left out; what `rerun` finds is chosen the same way."""
    root = repository(shell.folder / "r", {"db.py": BAD})
    write(root, {"db.py": f"# more\n{BAD}", "new.py": BAD})
    first = shell("review", root, "--diff", "HEAD", "--format", "json").json
    assert {f["path"] for f in first["findings"]} == {"new.py"}
    for command in ("show", "resume", "rerun"):
        done = shell(command, first["run"], "--json")
        assert done.json["findings"] == first["findings"], command
        assert done.json["answer"] == first["answer"], command
    printed = shell("review", root, "--diff", "HEAD").out
    assert "db.py" not in printed
    assert (shell("resume", first["run"]).out, shell("rerun", first["run"]).out) == (printed, printed)
    write(root, {"new.py": "x = 1\n"})
    assert shell("show", first["run"], "--json").json["findings"] == first["findings"]


def test_a_secret_in_a_patch_that_does_not_apply_is_found(shell: Shell) -> None:
    """Its lines are all that is known, and enough for that; nothing is said of what the tree would have told."""
    write(shell.folder / "r", {"a.py": "other = 1\n"})
    key = "AKIA" + "Q3EGRIVYKZTB2NHX"
    patch = f'--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-one = 1\n+_key = "{key}"\n'
    done = shell("review", "r", "--patch", "-", "--format", "json", stdin=patch.encode())
    assert [f["category"] for f in done.json["findings"]] == ["hardcoded-secret"]
    assert any("bandit" in gap["impact"] for gap in done.json["gaps"])
    assert (done.json["status"], done.code) == ("partial", 3)
    assert shell("resume", done.json["run"], "--json").code == 3
    assert key not in done.out


def test_a_name_that_came_into_use_elsewhere_is_not_dead_any_more(shell: Shell) -> None:
    """What was known is looked at again when a file changes that is not among those reviewed."""
    root = repository(shell.folder / "r", {"app/a.py": "def _helper():\n    return 1\n", "use.py": "x = 1\n"})

    def dead() -> list[str]:
        report = shell("review", root / "app", "--format", "json", "--all").json
        every = [*report["findings"], *report["data"]["left_out"]]
        return [f["message"] for f in every if "_helper" in f["message"]]

    assert dead()
    write(root, {"use.py": "from app.a import _helper\n"})
    assert not dead()


def test_a_file_becomes_a_hot_spot_with_a_commit_elsewhere(shell: Shell) -> None:
    """What the history says is known only as long as no commit is made."""
    root = repository(shell.folder / "r", {"a.py": "x = 0\n"})
    for number in range(1, 14):
        write(root, {"a.py": f"x = {number}\n"})
        commit(root, f"change {number}")

    def hot() -> bool:
        report = shell("review", root, "--format", "json", "--all").json
        return any(f["category"] == "hot-spot" for f in report["data"]["left_out"])

    assert not hot()
    # The file is the same, its history is not.
    for content in ("x = 99\n", "x = 13\n"):
        write(root, {"a.py": content})
        commit(root, "back and forth")
    assert hot()


def test_one_missing_tool_is_one_gap_with_a_command_that_works(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many lenses use it."""
    from chargehand.apps.review import analyzers
    from chargehand.engine.analyzer_port import AnalyzerResult, Scope
    from chargehand.errors import AnalyzerFailed

    async def broken(_scope: Scope) -> AnalyzerResult:
        raise AnalyzerFailed("ruff is not installed: pip install 'chargehand[review]'")

    names = [name for name in analyzers.ANALYZERS if name.startswith("ruff")]
    registry = {**analyzers.ANALYZERS, **{name: replace(analyzers.ANALYZERS[name], run=broken) for name in names}}
    monkeypatch.setattr("chargehand.engine.local.analysis.find_analyzers", lambda: registry)
    write(shell.folder / "r", {"a.py": "x = 1\n"})
    done = shell("review", "r", "--format", "md")
    assert done.code == 3
    assert len(re.findall("ruff is not installed", done.out)) == 1
    assert r"chargehand\[review\]" in done.out
    assert "chargehand(review)" not in done.out + done.err + shell("review", "r").err
    assert all(f"{lens}-1" in done.out for lens in ("security", "bugs", "performance", "style"))


@pytest.mark.parametrize("name", ["chargehand.toml", "pyproject.toml"])
def test_a_model_named_by_the_reviewed_tree_is_no_consent(shell: Shell, name: str) -> None:
    """Until somebody trusts it: what is reviewed must not choose where it is sent."""
    with serving(reads) as server:
        shell.home.mkdir(exist_ok=True)
        provider = f'[providers.local]\nbase_url = "{server.url}/v1"\nwire = "openai"\n'
        (shell.home / "config.toml").write_text(provider, encoding="utf-8")
        prefix = "tool.chargehand." if name == "pyproject.toml" else ""
        write(shell.folder, {name: f'[{prefix}models]\nlarge = "local:m"\n', "pay.py": "x = 1\n"})
        done = shell("review", ".", "--format", "json")
        assert (done.json["usage"]["calls"], len(server.requests)) == (0, 0)
        assert "chargehand trust" in done.err
        assert shell("trust", ".").code == 0
        assert shell("review", ".", "--format", "json").json["usage"]["calls"] > 0


def test_a_line_that_a_fix_brought_and_a_change_takes_out_is_told(shell: Shell) -> None:
    """A change that only deletes has a history too."""
    code = "def f(x):\n    if x is None:\n        return 0\n    return 1 / x\n"
    root = repository(shell.folder / "r", {"a.py": "def f(x):\n    return 1 / x\n"})
    write(root, {"a.py": code})
    commit(root, "Fix the crash on None")
    write(root, {"a.py": "def f(x):\n    return 1 / x\n"})
    done = shell("review", root, "--diff", "HEAD", "--format", "json", "--min-confidence", "0", "--all")
    assert "fixed-before" in {each["category"] for each in done.json["data"]["left_out"]}


def test_what_is_staged_is_reviewed_before_the_first_commit(shell: Shell) -> None:
    """As a commit hook asks for it: a file that is not added fails nothing."""
    root = shell.folder / "r"
    write(root, {"fine.py": "x = 1\n"})
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "fine.py")
    write(root, {"db.py": BAD})
    assert shell("review", root, "--staged", "--fail-on", "critical").code == 0
    git(root, "add", "db.py")
    assert shell("review", root, "--staged", "--fail-on", "critical").code == 1
    assert shell("review", root, "--staged", "--diff", "HEAD").code == 2
