"""`chargehand review` from the command line: what it finds, shows, leaves out, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.apps.review.world import commit, git, repository, write
from tests.cli.terminal import ROOT, Shell

BAD = """import sqlite3


def find(db: sqlite3.Connection, name: str):
    return db.execute("select * from person where name = '%s'" % name)
"""
FINE = '''"""Nothing to find here."""


def double(number: int) -> int:
    """Twice the number."""
    return 2 * number
'''
SCHEMA = json.loads((ROOT / "tests" / "apps" / "review" / "sarif-2.1.0.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What analyzers found in the files that many tests use."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def warm(shell: Shell, known: Path) -> None:
    """A test's home begins with what other tests have found, so that each file is analysed once."""
    shell.home.mkdir()
    (shell.home / "cache").symlink_to(known)


@pytest.fixture
def tree(shell: Shell) -> Path:
    """A folder without git: one file with a defect, one without."""
    root = shell.folder / "project"
    write(root, {"db.py": BAD, "fine.py": FINE})
    return root


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample project, on its branch."""
    root = tmp_path_factory.mktemp("examples") / "shop"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    with (ROOT / "examples" / "shop" / "history.fi").open("rb") as stream:
        subprocess.run(["git", "fast-import", "--quiet"], cwd=root, stdin=stream, check=True)
    git(root, "checkout", "-q", "-f", "search")
    return root


def places(report: dict[str, Any]) -> set[tuple[str, int, str]]:
    return {(f["path"], f["line"], f["category"]) for f in report["findings"]}


# -- what it finds -----------------------------------------------------------------------------------------------------


def test_a_tree_is_reviewed_without_model_key_or_settings(shell: Shell, tree: Path) -> None:
    """The finding is shown with its line, its severity as a word and what to do; findings alone are no failure."""
    done = shell("review", tree)
    assert done.code == 0
    assert "db.py\n" in done.out
    assert "critical" in done.out
    assert "sql-injection" in done.out
    assert "| " in done.out
    assert "select * from person" in done.out
    assert "fine.py" not in done.out
    assert "1 finding in 2 files: 1 critical." in done.out
    assert "\x1b" not in done.out


def test_the_sample_project_shows_every_planted_defect(shell: Shell, shop: Path) -> None:
    """What examples/shop/README.md says is found is found, each once, and what was there before is not blamed."""
    done = shell("review", shop, "--diff", "main", "--format", "json")
    assert done.code == 0
    found = places(done.json)
    assert {
        ("shop/search.py", 8, "hardcoded-secret"),
        ("shop/search.py", 13, "sql-injection"),
        ("shop/search.py", 25, "unsafe-deserialization"),
        ("shop/search.py", 31, "command-injection"),
        ("shop/search.py", 11, "mutable-default"),
        ("shop/search.py", 32, "swallowed-error"),
        ("shop/search.py", 16, "query-in-loop"),
        ("shop/report.py", 15, "undefined-name"),
        ("shop/orders.py", 21, "reintroduced"),
        ("shop/search.py", 13, "untested-change"),
        ("shop/report.py", 14, "untested-change"),
    } <= found
    assert not [place for place in found if place[0] == "shop/catalog.py"]
    assert [note for note in done.json["notes"] if "unused-import" in note and "todo" in note], "small, and counted"
    assert len(found) == len(done.json["findings"]), "no finding twice"
    assert done.json["status"] == "complete"
    assert done.json["contradictions"] == [], "counts of what different analyzers saw contradict nothing"


def test_only_the_change_is_blamed(shell: Shell) -> None:
    """The same defect before the change and on a changed line: one is shown, the other is left out and says why."""
    root = repository(shell.folder / "r", {"db.py": BAD})
    write(root, {"db.py": BAD + "\n\n" + BAD.replace("find", "seek").split("\n", 3)[3]})
    done = shell("review", root, "--diff", "HEAD", "--format", "json", "--all")
    (only,) = [f for f in done.json["findings"] if f["category"] == "sql-injection"]
    assert only["line"] == 9
    (left,) = [f for f in done.json["data"]["left_out"] if f["category"] == "sql-injection"]
    assert (left["line"], left["why"]) == (5, "not on a line that changed")


def test_windows_line_ends_and_renames_keep_old_problems_old(shell: Shell) -> None:
    """A moved file saved with CRLF has no new finding, a line written in it has."""
    root = repository(shell.folder / "r", {"db.py": BAD + "# padding\n" * 20})
    git(root, "mv", "db.py", "moved.py")
    text = (BAD + "# padding\n" * 20).replace("\n", "\r\n")
    write(root, {"moved.py": text})
    assert shell("review", root, "--diff", "HEAD", "--format", "json").json["findings"] == []
    write(root, {"moved.py": text + "import os\r\nos.system('rm ' + name)\r\n"})
    found = shell("review", root, "--diff", "HEAD", "--format", "json").json["findings"]
    assert {f["line"] for f in found} <= {26, 27}
    assert "undefined-name" in {f["category"] for f in found}


def test_a_patch_is_reviewed_from_stdin_before_it_is_applied(shell: Shell) -> None:
    """The tree stays as it is."""
    root = repository(shell.folder / "r", {"db.py": FINE})
    write(root, {"db.py": FINE + "\n\n" + BAD})
    patch = git(root, "diff")
    git(root, "checkout", "-q", ".")
    done = shell("review", root, "--patch", "-", "--format", "json", stdin=patch.encode())
    assert done.code == 0
    assert ("db.py", 13, "sql-injection") in places(done.json)
    assert (root / "db.py").read_text() == FINE


@pytest.mark.parametrize("name", ["-x.py", "sp ace.py", 'quo"te.py', "new\nline.py", "ünï/cödé.py"])
def test_files_of_any_name_are_reviewed(shell: Shell, name: str) -> None:
    """Names with dashes, spaces, quotes, newlines and other alphabets."""
    write(shell.folder / "project", {name: BAD})
    report = shell("review", "project", "--format", "json").json
    assert (name, 5, "sql-injection") in places(report)
    assert report["status"] == "complete"


def test_odd_content_does_not_stop_the_rest(shell: Shell, tree: Path) -> None:
    """Syntax errors, other encodings, a byte order mark, an empty file and 50 MB: the others are reviewed."""
    write(
        tree,
        {
            "broken.py": "def f(:\n",
            "latin.py": "name = 'Größe'\n".encode("latin-1"),
            "bom.py": b"\xef\xbb\xbf" + BAD.encode(),
            "empty.py": "",
            "crlf.py": BAD.replace("\n", "\r\n"),
        },
    )
    with (tree / "big.py").open("wb") as file:
        file.truncate(50_000_000)
    (tree / "loop").symlink_to(tree)
    report = shell("review", tree, "--format", "json").json
    found = places(report)
    assert {("db.py", 5, "sql-injection"), ("bom.py", 5, "sql-injection"), ("crlf.py", 5, "sql-injection")} <= found
    assert "syntax-error" in {category for path, _, category in found if path == "broken.py"}
    assert any("over 1 MB" in note for note in report["notes"])


# -- what is shown -----------------------------------------------------------------------------------------------------


def test_low_confidence_is_left_out_and_all_shows_why(shell: Shell) -> None:
    """The threshold is the user's; `--all` shows the rest."""
    write(shell.folder / "project", {"a.py": "def f():\n    # TODO: later\n    return 1\n"})
    assert "No findings in 1 file." in shell("review", "project").out
    assert "left out: confidence" in shell("review", "project", "--all").out
    assert "todo" in shell("review", "project", "--min-confidence", "0").out


def test_the_json_is_the_report(shell: Shell, tree: Path) -> None:
    """One document of the contract's shape; with a run that can be shown and traced."""
    report = shell("review", tree, "--format", "json").json
    assert {"run", "request", "status", "answer", "findings", "outcomes", "plan", "timing", "usage"} <= report.keys()
    assert report["answer"].startswith("# Review")
    assert shell("show", report["run"], "--json").json["status"] == "complete"
    assert "security-1" in shell("trace", report["run"], "--format", "json").out


def test_markdown_lists_findings_by_severity(shell: Shell, tree: Path) -> None:
    """Headings by severity, places as code."""
    done = shell("review", tree, "--format", "md")
    assert "## Critical\n\n- **`db.py:5`**" in done.out


def test_github_annotations_are_escaped(shell: Shell) -> None:
    """File names and messages cannot forge another command."""
    write(shell.folder / "project", {"a,b:c\n::error::\t\x1b.py": BAD})
    done = shell("review", "project", "--format", "github")
    (line,) = done.out.splitlines()
    assert line.startswith(
        "::error file=a%2Cb%3Ac%0A%3A%3Aerror%3A%3A\\t\\x1b.py,line=5,endLine=5,title=critical%3A sql-injection::"
    )


def test_a_job_of_github_gets_its_summary(shell: Shell, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Annotations go to the log, and the same review as Markdown below what the job's summary has already."""
    summary = shell.folder / "summary.md"
    summary.write_text("Before.\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    done = shell("review", tree, "--format", "github")
    assert done.out.startswith("::")
    assert summary.read_text(encoding="utf-8").startswith("Before.\n# Review\n")


def test_sarif_is_valid_and_its_fingerprints_outlive_a_shift_of_lines(shell: Shell, shop: Path) -> None:
    """The log satisfies the schema of SARIF 2.1.0 (OASIS', as an npm package carries it); shifts keep fingerprints."""
    log = shell("review", shop, "--diff", "main", "--format", "sarif", "--all").json
    jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker()).validate(log)
    results = log["runs"][0]["results"]
    assert len(results) > 10
    assert any(result.get("suppressions") for result in results)
    root = shell.folder / "project"
    write(root, {"db.py": BAD + "\n\n" + BAD})
    before = fingerprints(shell("review", root, "--format", "sarif").json)
    write(root, {"db.py": '"""Something above."""\n\n\n' + BAD + "\n\n" + BAD})
    after = fingerprints(shell("review", root, "--format", "sarif").json)
    assert len(set(before)) == len(before) == 2
    assert before == after


def fingerprints(log: dict[str, Any]) -> list[str]:
    return [
        result["partialFingerprints"]["chargehand/v1"]
        for result in log["runs"][0]["results"]
        if result["ruleId"] == "sql-injection"
    ]


@pytest.mark.parametrize("form", ["json", "sarif"])
def test_a_saved_review_is_the_baseline_of_the_next(shell: Shell, tree: Path, form: str) -> None:
    """What it holds is not shown again, wherever it has moved to; what is new is."""
    assert shell("review", tree, "--format", form, "-o", "base").code == 0
    assert shell("review", tree, "--baseline", "base", "--fail-on", "info").code == 0
    write(tree, {"db.py": "# above\n" + BAD, "new.py": BAD})
    done = shell("review", tree, "--baseline", "base", "--format", "json", "--all")
    assert {f["path"] for f in done.json["findings"] if f["category"] == "sql-injection"} == {"new.py"}
    assert "in the baseline" in {f["why"] for f in done.json["data"]["left_out"]}


def test_the_gate_trips_on_a_finding_as_severe_as_it_says(shell: Shell, tree: Path) -> None:
    """Exit 1 with one sentence; without the finding exit 0."""
    done = shell("review", tree, "--fail-on", "critical")
    assert done.code == 1
    assert "1 finding of severity critical." in done.complaint
    assert "sql-injection" in done.out
    (tree / "db.py").unlink()
    assert shell("review", tree, "--fail-on", "info").code == 0


def test_a_secret_that_is_found_is_not_printed(shell: Shell) -> None:
    """The place is, in every format."""
    secret = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"
    write(shell.folder / "project", {"a.py": f'API_TOKEN = "{secret}"\n'})
    for form in ("text", "md", "json", "sarif", "github"):
        done = shell("review", "project", "--format", form)
        assert secret not in done.out + done.err, form
        assert "hardcoded-secret" in done.out


def test_the_report_says_how_many_reported_findings_are_different(shell: Shell, tree: Path) -> None:
    """The lines about the tasks count each rule's match, the end counts problems."""
    report = shell("review", tree, "--format", "json", "--all").json
    reported = sum(len(outcome["findings"]) for outcome in report["outcomes"])
    different = len(report["findings"]) + len(report["data"]["left_out"])
    assert reported > different
    assert any(f"{reported} findings, which are {different} problem" in note for note in report["notes"])


def test_with_all_no_note_says_that_something_is_not_listed(shell: Shell) -> None:
    """Without it, the note names the place of security, and the line about what is left out the option."""
    root = repository(shell.folder / "r", {"b.py": FINE})
    write(root, {"a.py": "import os\n\n\ndef f():\n    os.system('ls %s' % os.environ['A'])\n"})
    shown = shell("review", root, "--diff", "HEAD")
    assert "command-injection in a.py:5" in " ".join(shown.err.split())
    assert "; --all shows it." in shown.out
    every = shell("review", root, "--diff", "HEAD", "--all")
    assert ("--all" in every.out, "not listed" in every.err) == (False, False)


# -- reusing -----------------------------------------------------------------------------------------------------------


def test_a_second_review_looks_only_at_what_changed(shell: Shell, tree: Path) -> None:
    """Nothing changed: all is reused. One file changed: the other files' analyses are. The report says how much."""
    (shell.home / "cache").unlink()
    first = shell("review", tree, "--format", "json").json
    second = shell("review", tree, "--format", "json").json
    assert places(first) == places(second)
    assert calls(shell, first["run"])
    assert not calls(shell, second["run"])
    assert any("earlier review" in note for note in second["notes"])
    table = shell("show", second["run"]).out.splitlines()
    for outcome in second["outcomes"]:
        assert any(line.startswith(f"{outcome['task']} ") and " reused " in line for line in table)
    write(tree, {"fine.py": FINE + "\n\n" + BAD})
    third = shell("review", tree, "--format", "json").json
    assert ("fine.py", 13, "sql-injection") in places(third)
    looked = {path for files in calls(shell, third["run"]).values() for path in files}
    assert looked
    reused = sum(outcome["output"]["reused"] for outcome in third["outcomes"])
    assert 0 < reused < sum(outcome["output"]["looks"] for outcome in third["outcomes"])


def calls(shell: Shell, run: str) -> dict[str, list[str]]:
    """Analyzer -> files it was started on."""
    events = [json.loads(line) for line in shell("trace", run, "--format", "jsonl").out.splitlines()]
    return {event["tool"]: event["arguments"]["files"] for event in events if event["kind"] == "tool_called"}


def test_rerun_reviews_the_files_as_they_are_now(shell: Shell, tree: Path) -> None:
    """What has not changed is reused, what has is looked at again; a key in the environment changes nothing."""
    shell("review", tree)
    again = shell("rerun", "last", "--json")
    assert again.code == 0
    assert all(o["output"]["reused"] == o["output"]["looks"] for o in again.json["outcomes"])
    assert not calls(shell, again.json["run"])
    write(tree, {"fine.py": BAD})
    changed = shell("rerun", "last", "--json")
    assert ("fine.py", 5, "sql-injection") in places(changed.json)


# -- what can go wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nowhere"], "nowhere"),
        ([".", "--diff", "main"], "git"),
        ([".", "--patch", "missing.diff"], "missing.diff"),
        ([".", "--diff", "a", "--patch", "b"], "--patch"),
        ([".", "--baseline", "missing.json"], "missing.json"),
        ([".", "--min-confidence", "101"], "--min-confidence"),
        ([".", "--model", "nonsense"], "nonsense"),
        ([".", "-o", "no/such/folder/x"], "no/such/folder"),
    ],
)
def test_wrong_arguments_are_one_sentence(shell: Shell, args: list[str], said: str) -> None:
    """Exit 2, nothing on the record."""
    done = shell("review", *args)
    assert done.code == 2
    assert said in done.complaint
    assert not (shell.home / "runs").exists()


def test_a_malformed_patch_or_baseline_is_one_sentence(shell: Shell) -> None:
    """With the line where it breaks, or what to give instead."""
    done = shell("review", ".", "--patch", "-", stdin=b"--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n")
    assert done.code == 2
    assert "line 3" in done.complaint
    for content in ("{}", "not json", "[]", '{"data": {"fingerprints": 3}}'):
        base = shell.write("base.json", content)
        assert "base.json" in shell("review", ".", "--baseline", base).complaint


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github", "md"])
def test_nothing_to_review_is_said_and_is_no_failure(shell: Shell, form: str) -> None:
    """Exit 0, an empty document for programs, no run on the record."""
    write(shell.folder / "project", {"poetry.lock": "x\n"})
    done = shell("review", "project", "--format", form)
    assert done.code == 0
    assert "Nothing to review: only lock files are there." in done.err
    if form == "json":
        assert done.json["findings"] == []
    if form == "sarif":
        jsonschema.Draft202012Validator(SCHEMA).validate(done.json)
    assert not (shell.home / "runs").exists()
    assert shell("review", "project", "--patch", "-", stdin=b"").code == 0
    assert shell("-q", "review", "project").err == ""
    assert "only lock files" in shell("-q", "review", "project", "--fail-on", "critical").complaint


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd"])
def test_a_patch_that_is_refused_says_so_and_passes_no_gate(shell: Shell, name: str) -> None:
    """Also with -q: exit 3, as nothing of it was reviewed."""
    patch = f"--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+x\n"
    done = shell("-q", "review", ".", "--patch", "-", "--fail-on", "critical", stdin=patch.encode())
    assert done.code == 3
    assert "1 file of the patch outside of the tree: not reviewed" in done.complaint


def test_a_gate_does_not_pass_what_could_hardly_be_looked_at(shell: Shell) -> None:
    """A patch for another version of a file is a gap, said with -q too; with prefixes of any kind it is read whole."""
    root = repository(shell.folder / "r", {"db.py": FINE})
    write(root, {"db.py": BAD})
    patch = git(root, "-c", "diff.mnemonicPrefix=true", "diff").encode()
    assert b"+++ w/db.py" in patch
    git(root, "checkout", "-q", ".")
    gate = ("-q", "review", "r", "--patch", "-", "--fail-on", "critical")
    assert "sql-injection" in shell(*gate, stdin=patch).out
    write(root, {"db.py": "other = 1\n"})
    done = shell(*gate, stdin=patch)
    assert done.code == 3
    assert "The patch was not made for db.py as here. Not looked at by bandit," in done.complaint
    assert shell("runs", "--json").json["runs"][0]["status"] == "partial", "so it is on the record"


def test_an_analyzer_that_fails_is_a_gap_and_the_rest_goes_on(
    shell: Shell, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 3; what the others found is shown."""
    from dataclasses import replace

    from chargehand.apps.review import analyzers
    from chargehand.engine.analyzer_port import AnalyzerResult, Scope
    from chargehand.errors import AnalyzerFailed

    async def broken(_scope: Scope) -> AnalyzerResult:
        raise AnalyzerFailed("bandit is not installed: pip install 'chargehand[review]'.")

    registry = {**analyzers.ANALYZERS, "bandit": replace(analyzers.ANALYZERS["bandit"], run=broken)}
    monkeypatch.setattr("chargehand.engine.local.analysis.find_analyzers", lambda: registry)
    (shell.home / "cache").unlink()
    done = shell("review", tree, "--format", "json")
    assert done.code == 3
    assert done.json["status"] == "partial"
    (gap,) = done.json["gaps"]
    assert "bandit is not installed" in gap["reason"]
    assert ("db.py", 5, "sql-injection") in places(done.json)


# -- models ------------------------------------------------------------------------------------------------------------


def test_a_key_alone_sends_nothing_out(shell: Shell, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is asked, now or on rerun, however many keys there are."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-made-up")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    report = shell("review", tree, "--format", "json").json
    assert report["status"] == "complete"
    assert report["usage"]["calls"] == 0
    again = shell("rerun", report["run"], "--json").json
    assert (again["status"], again["usage"]["calls"]) == ("complete", 0)
    assert "reader" not in json.dumps(report["plan"])


def test_the_help_loads_no_review(tmp_path: Path) -> None:
    """`chargehand --help` pays for no command."""
    code = "import sys; from chargehand.cli import cli; cli(['--help'], standalone_mode=False); "
    code += "print([name for name in sys.modules if name.startswith('chargehand.apps')])"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    import sys

    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == "[]"
    assert "review" in said


def test_a_commit_hook_sees_the_repository_it_runs_in(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """git's own variables, set in hooks, do not lead elsewhere."""
    root = repository(shell.folder / "r", {"db.py": FINE})
    write(root, {"db.py": BAD})
    commit(root, "worse")
    monkeypatch.setenv("GIT_DIR", str(shell.folder / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", "nowhere")
    report = shell("review", root, "--diff", "HEAD~1", "--format", "json").json
    assert ("db.py", 5, "sql-injection") in places(report)
