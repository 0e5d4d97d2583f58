"""What a review could not look at passes no gate: files nobody could parse, names git quotes, tools, languages."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from chargehand.apps.review.analyzers import linters, reused_child
from tests.apps.review.world import repository, write
from tests.cli.terminal import ROOT, Shell

BAD = "def run(text):\n    return eval(text)\n"
# Something that is neither critical nor small.
KEPT = '''def keep(number, kept=[]):
    """All numbers so far."""
    kept.append(number)
    return kept


'''
PYTHON_2 = 'import os\n\nprint "hello"\n\n\ndef double(number):\n    return 2 * number\n'
UNREADABLE = {
    "python 2": PYTHON_2.encode(),
    "syntax error": PYTHON_2.replace('print "hello"', "def broken(:").encode(),
    "bad byte": PYTHON_2.replace('print "hello"', "# caf\xe9").encode("latin-1"),
    "another encoding": ("# coding: latin-1\n" + PYTHON_2.replace('print "hello"', "# caf\xe9")).encode("latin-1"),
    "utf-16": PYTHON_2.replace('print "hello"', "").encode("utf-16"),
}


def gaps(report: dict[str, Any]) -> str:
    return "\n".join(f"{gap['reason']} {gap['impact']}" for gap in report["gaps"])


# -- files that cannot be parsed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_file_that_no_tool_can_parse_is_a_named_gap_though_the_change_is_elsewhere(shell: Shell, kind: str) -> None:
    """Exit 3 under a gate, the file by name, and the same again when all that is known comes from the cache."""
    data = UNREADABLE[kind]
    line = "    return 2 * number" if kind != "utf-16" else "    return 2 * number".encode("utf-16-le")
    old, new = (line.encode(), b"    return 3 * number") if isinstance(line, str) else (line, line.replace(b"2", b"3"))
    assert old in data
    root = repository(shell.folder / "r", {"old.py": data, "fine.py": "x = 1\n"})
    write(root, {"old.py": data.replace(old, new), "fine.py": "x = 2\n"})
    for _ in range(2):
        done = shell("review", root, "--diff", "HEAD", "--fail-on", "critical", "--format", "json")
        assert done.code == 3
        said = gaps(done.json)
        assert "old.py" in said
        assert "fine.py" not in said
        assert "ruff-bugs" in said
        assert done.json["data"]["unchecked"].keys() == {"old.py"}
    assert "old.py" in shell("-q", "review", root, "--diff", "HEAD").out, "also where only the document is read"


def test_a_syntax_error_that_the_change_wrote_trips_the_gate_and_is_a_gap_too(shell: Shell) -> None:
    """What stands in the rest of the file nobody knows."""
    root = repository(shell.folder / "r", {"a.py": "x = 1\n"})
    write(root, {"a.py": "x = 1\ndef f(:\n"})
    assert shell("review", root, "--diff", "HEAD", "--fail-on", "critical").code == 1
    done = shell("review", root, "--diff", "HEAD", "--format", "json")
    assert done.code == 3
    assert [f["category"] for f in done.json["findings"]] == ["syntax-error"]
    assert len(done.json["gaps"]) == 1, "one cause, however many analyzers it stopped"
    assert "bandit" in gaps(done.json)


def test_a_file_whose_name_is_no_text_is_a_gap_that_names_it(shell: Shell) -> None:
    """It cannot be put on a record; renaming it helps."""
    root = repository(shell.folder / "r", {"a.py": "x = 1\n"})
    (root / os.fsdecode(b"caf\xe9.py")).write_text(BAD)
    done = shell("review", root, "--diff", "HEAD", "--fail-on", "critical", "--format", "json")
    assert done.code == 3
    assert r"caf\xe9.py" in gaps(done.json)


# -- tools -------------------------------------------------------------------------------------------------------------


def bare_python(folder: Path, *packages: str) -> Path:
    """An interpreter without packages, but for links to those named."""
    base = Path(os.path.realpath(sys.executable))
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    site.mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(base)
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    import importlib.util

    for name in packages:
        found = importlib.util.find_spec(name)
        assert found is not None
        assert found.origin is not None
        package = Path(found.origin).parent
        for each in (package, *package.parent.glob(f"{name}-*.dist-info")):
            (site / each.name).symlink_to(each)
    return folder / "bin" / "python"


@pytest.mark.parametrize(
    ("there", "lacks"),
    [
        ((), ("ruff", "bandit")),
        (("ruff",), ("ruff", "bandit")),
        (("bandit",), ("ruff", "bandit")),
        (("bandit", "stevedore", "yaml", "rich"), ("ruff",)),
    ],
    ids=["neither", "ruff without its program", "bandit without what it needs", "bandit alone"],
)
def test_without_its_tools_a_review_refuses_and_says_what_to_install(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, there: tuple[str, ...], lacks: tuple[str, ...]
) -> None:
    """Exit 2 in one line, whatever is to be reviewed, and no run on the record."""
    write(shell.folder / "r", {"a.py": BAD})
    reused_child.end()
    monkeypatch.setattr(sys, "executable", str(bare_python(shell.folder / "bare", *there)))
    try:
        done = shell("review", "r", "--fail-on", "critical")
    finally:
        reused_child.end()
    assert done.code == 2
    assert done.out == ""
    assert len(done.err.splitlines()) == 1
    assert "pip install 'chargehand[review]'" in done.complaint
    assert [tool for tool in ("ruff", "bandit") if f"{tool} (" in done.complaint] == list(lacks)
    assert not (shell.home / "runs").exists()


# -- languages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "md", "json", "sarif", "github"])
def test_languages_that_nothing_analysed_are_said_in_every_format(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Each with its number of files, and prose and data as one number; that alone is no gap."""
    monkeypatch.setattr(linters, "find_program", lambda *_: None)
    files = {"a.js": "var a = 1;\n", "lib/b.mjs": "let b;\n", "c.ts": "let c;\n", "run": "#!/bin/sh\ntrue\n"}
    write(shell.folder / "r", {**files, "x.zig": "const x = 1;\n", "README.md": "# R\n", "d.json": "{}\n", "p.py": ""})
    done = shell("-q", "review", "r", "--fail-on", "info", "--format", form)
    assert done.code == 0
    for words in ("2 JavaScript files", "1 TypeScript file", "1 Shell file", "1 .zig file", "2 files of prose or data"):
        assert words in done.out, words
    if form == "json":
        assert done.json["data"]["unanalysed"] == {"JavaScript": 2, "TypeScript": 1, "Shell": 1, ".zig": 1, "": 2}
        said = {each["task"]: each["summary"] for each in done.json["outcomes"]}
        assert "bandit" in said["security-1"]
        assert done.json["gaps"] == []
    if form == "sarif":
        schema = json.loads((ROOT / "tests" / "apps" / "review" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator(schema).validate(done.json)
        assert done.json["runs"][0]["invocations"][0]["executionSuccessful"] is True


def test_bandit_is_not_said_to_have_looked_at_a_language_it_does_not_know(shell: Shell) -> None:
    """The summary of a task names who looked at a file of it, and nobody else."""
    write(shell.folder / "r", {"a.js": "eval(x)\n"})
    report = shell("review", "r", "--format", "json").json
    said = {each["task"]: each["summary"] for each in report["outcomes"]}
    assert said["security-1"] == "No findings in 1 file by secrets."
    assert "bandit" not in json.dumps(report["outcomes"])
    assert "1 file (1 not analysed)" in shell("review", "r").out


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_page_of_a_review_begins_with_its_findings(shell: Shell) -> None:
    """As the review chose them, most severe first, with their confidence; then what it lacks, then how it went."""
    root = repository(shell.folder / "r", {"b.py": "import sys\n"})
    write(
        root,
        {"a.py": KEPT + BAD, "b.py": "import sys\nx = 1\n", "old.py": 'x = 1\nprint "x"\n', "c.js": ""},
    )
    shown = shell("review", root, "--diff", "HEAD", "--format", "json")
    assert shown.code == 3
    page = Path(shell("trace", "last", "--format", "html").out.strip()).read_text(encoding="utf-8")
    main = page[page.index("<section") : page.index("</main>")]
    assert main.startswith('<section class=""><h2>Findings</h2>')
    assert '"findings_first": true' in page
    parts = ["a.py:8", "<h2>Answer</h2>", "Not looked at by bandit", "1 JavaScript file", "<h2>Tasks</h2>"]
    places = [main.index(part) for part in parts]
    assert places == sorted(places)
    findings = main[: main.index("</section>")]
    assert findings.count("<li>") == findings.count("<small>confidence ") == len(shown.json["findings"]) > 1
    assert findings.index(">critical<") < findings.index(">warning<")
    assert "b.py" not in findings, "the unused import was there before"
    assert main.count("a.py:8") == 1, "and the answer does not list them once more"


def test_the_page_of_a_review_without_findings_says_so_first(shell: Shell) -> None:
    """There is no empty list in its place."""
    write(shell.folder / "r", {"a.py": "x = 1\n"})
    assert shell("review", "r").code == 0
    page = Path(shell("trace", "last", "--format", "html").out.strip()).read_text(encoding="utf-8")
    assert "Findings</h2>" not in page
    assert page.index("No findings in 1 file.") < page.index("<h2>Tasks</h2>")
