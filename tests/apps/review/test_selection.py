"""What is worth showing, by place, confidence and baseline."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chargehand.apps.review.change import Change
from chargehand.apps.review.github_format import github
from chargehand.apps.review.markdown_format import markdown
from chargehand.apps.review.selection import select
from chargehand.apps.review.source_lines import SourceLines, fingerprints
from chargehand.apps.review.text_format import headline, plain, text
from chargehand.text.redaction import Redactor
from chargehand.values.outcome import Finding
from tests.apps.review.world import write


def finding(line: int | None, confidence: int = 90, path: str | None = "a.py", **more: object) -> Finding:
    given: dict[str, object] = {"category": "likely-bug", "message": f"Something at {line}.", "severity": "warning"}
    return Finding.model_validate({**given, "line": line, "path": path, "confidence": confidence, **more})


def change(root: Path, changed: dict[str, tuple[tuple[int, int], ...]] | None) -> Change:
    if not (root / "a.py").exists():
        write(root, {"a.py": "".join(f"line_{n} = {n}\n" for n in range(1, 13))})
    return Change(root, root, {"a.py": 10, "b.py": 10}, changed)


def test_of_a_change_only_its_lines_are_shown(tmp_path: Path) -> None:
    """Other lines and other files are left out with the reason; what is about the whole change stays."""
    found = [finding(3), finding(9), finding(3, path="b.py"), finding(None, path=None)]
    selection = select(found, change(tmp_path, {"a.py": ((2, 4),)}), SourceLines(tmp_path), min_confidence=50)
    assert [(f.path, f.line) for f in selection.findings] == [(None, None), ("a.py", 3)]
    assert {each.why for each in selection.left_out} == {"not on a line that changed"}


def test_the_same_finding_is_shown_once(tmp_path: Path) -> None:
    """Two tools that say the same are one finding with both as sources."""
    found = [finding(3, sources=("t1", "x:1"), message="Bad."), finding(3, sources=("t2", "y:1"), message="Bad.")]
    selection = select(found, change(tmp_path, None), SourceLines(tmp_path), min_confidence=50)
    (only,) = selection.findings
    assert set(only.sources) == {"t1", "x:1", "t2", "y:1"}


def test_confidence_and_baseline_leave_out(tmp_path: Path) -> None:
    """Each with its reason."""
    write(tmp_path, {"a.py": "one\ntwo\nthree\n"})
    source = SourceLines(tmp_path)
    known = fingerprints([finding(1)], source)
    found = [finding(1), finding(2, 70), finding(3)]
    selection = select(found, change(tmp_path, None), source, min_confidence=80, baseline=known)
    assert [f.line for f in selection.findings] == [3]
    assert [each.why for each in selection.left_out] == ["in the baseline", "confidence 70 is below 80"]
    assert headline(selection, 1, hint=True) == (
        "1 finding in 1 file: 1 warning. Left out: 1 in the baseline, 1 of low confidence; --all shows them."
    )
    assert headline(selection, 1, hint=False).endswith("1 of low confidence.")
    both = select([finding(2), finding(3)], change(tmp_path, None), source, min_confidence=80)
    assert headline(both, 1, hint=True) == "2 findings in 1 file: 2 warnings."


def test_the_gate_counts_what_is_as_severe_or_more(tmp_path: Path) -> None:
    """info counts all, critical only the gravest."""
    found = [finding(1, severity="critical"), finding(2, severity="warning"), finding(3, severity="info")]
    selection = select(found, change(tmp_path, None), SourceLines(tmp_path), min_confidence=0)
    assert [selection.at_least(s) for s in ("critical", "warning", "info")] == [1, 2, 3]


def test_nothing_in_a_finding_can_command_a_terminal_or_a_page(tmp_path: Path) -> None:
    """Control characters, Markdown and workflow commands in paths, messages and code are shown as text."""
    name, words = "a\x1b[31m.py", "mes`sage` **bold** <b>\n::error::x \x1b]0;t\x07"
    write(tmp_path, {name: "code = '\x1b[2J'\n"})
    source = SourceLines(tmp_path)
    whole = Change(tmp_path, tmp_path, {name: 10})
    selection = select([finding(1, path=name, message=words)], whole, source, min_confidence=0)
    assert len(selection.shown) == 1
    shown = text(selection, source, "end", all=True, paint=plain, width=None)
    page = markdown(selection, source, "end", gaps=(), all=True, summary="As \x1b[31mit\x07 is.")
    for document in (shown, github(selection, ("\x1b",)), page):
        assert "\x1b" not in document
        assert "\x07" not in document
    assert not [line for line in github(selection, ()).splitlines()[1:] if line.startswith("::")]
    assert "<b>" not in page.replace("\\<b\\>", "")
    assert "**bold**" not in page


@pytest.mark.parametrize("name", ["back\\slash.py", "./a.py", ".\\a.py"])
def test_a_path_is_mended_only_where_no_file_has_it(tmp_path: Path, name: str) -> None:
    """A backslash may be part of a name, or a model's way to write a path."""
    own = name if name.startswith("b") else "a.py"
    write(tmp_path, {own: "one = 1\n"})
    selection = select(
        [finding(1, path=name)], Change(tmp_path, tmp_path, {own: 8}), SourceLines(tmp_path), min_confidence=0
    )
    assert [f.path for f in selection.findings] == [own]


@pytest.mark.parametrize("width", [60, 80, 100])
def test_lines_fit_the_terminal(tmp_path: Path, width: int) -> None:
    """Messages and advice go on below where they begin, code is cut and says so, and no word is."""
    write(tmp_path, {"a.py": f"    value = {'call_of_it(' * 20}\n"})
    source, words = SourceLines(tmp_path), "It goes wrong in a way that takes a long sentence to describe " * 2
    found = [finding(1, message=words, suggestion=words), finding(1, message="Short.", category="todo")]
    selection = select(found, Change(tmp_path, tmp_path, {"a.py": 10}), source, min_confidence=0)
    shown = text(selection, source, headline(selection, 1, hint=False), all=True, paint=plain, width=width)
    assert max(map(len, shown.splitlines())) <= width
    assert [len(line) for line in shown.splitlines() if line.endswith("…")] == [width, width]
    assert " ".join(shown.split()).count("takes a long sentence") == 4
    assert "Short.  (todo, confidence 90)" in shown
    assert max(map(len, text(selection, source, "", all=True, paint=plain, width=None).splitlines())) > 120


def test_a_category_outside_of_the_vocabulary_becomes_the_lens_own(tmp_path: Path) -> None:
    """A model's own word is not shown as a category."""
    found = [finding(1, category="oops", sources=("security-reader-2",)), finding(2, category="", sources=("t9",))]
    selection = select(found, change(tmp_path, None), SourceLines(tmp_path), min_confidence=0)
    assert [f.category for f in selection.findings] == ["security-issue", "likely-bug"]


def test_a_finding_about_another_file_or_a_line_that_is_not_there_is_only_counted(tmp_path: Path) -> None:
    """Models make places up: what they name outside of the review is neither read nor shown, also with --all."""
    write(tmp_path, {"outside.py": "PRIVATE = 1\n", "r/a.py": "one = 1\n"})
    root = tmp_path / "r"
    places = [("/etc/passwd", 1), ("../outside.py", 1), ("a.py", 99), ("a.py", 0), ("b.py", 1), ("./a.py", 1)]
    found = [finding(line, path=path) for path, line in places]
    whole = Change(root, root, {"a.py": 8})
    selection = select(found, whole, SourceLines(root), min_confidence=0)
    assert [(f.path, f.line) for f in selection.findings] == [("a.py", 1)]
    assert selection.left_out == ()
    assert selection.notes == ("5 findings left out: a file or a line is named that is not part of the review.",)


CALL = """import subprocess

subprocess.run(
    command,
    shell=True,
)
if check(
    one,
    two,
):
    later()
"""


def test_a_defect_of_several_lines_is_written_by_whoever_wrote_one_of_them(tmp_path: Path) -> None:
    """But the head of a block is not: what stands in the block is another statement."""
    write(tmp_path, {"a.py": CALL})
    found = [finding(3, end_line=6), finding(7, end_line=11, category="weak-hash")]
    for line, shown in ((5, [3]), (9, [7]), (11, [])):
        selection = select(found, change(tmp_path, {"a.py": ((line, line),)}), SourceLines(tmp_path), min_confidence=0)
        assert [f.line for f in selection.findings] == shown


def test_tools_that_name_two_lines_of_one_call_say_the_same(tmp_path: Path) -> None:
    """One names where the call begins, the other the argument; what one tool says twice stays two."""
    write(tmp_path, {"a.py": CALL})
    same: dict[str, Any] = {"category": "command-injection", "message": "A shell runs a command built from data."}
    ruff = finding(3, sources=("t1", "ruff:S602"), **same)
    bandit = finding(5, sources=("t1", "bandit:B602"), end_line=6, **same)
    selection = select([ruff, bandit], change(tmp_path, None), SourceLines(tmp_path), min_confidence=0)
    (only,) = selection.findings
    assert (only.line, {"ruff:S602", "bandit:B602"} <= set(only.sources)) == (3, True)
    again = finding(5, sources=("t1", "ruff:S603"), end_line=5, **same)
    assert len(select([ruff, again], change(tmp_path, None), SourceLines(tmp_path), min_confidence=0).findings) == 2


def test_what_is_said_of_lines_that_were_taken_out_is_part_of_the_change(tmp_path: Path) -> None:
    """There is no changed line to stand on."""
    found = [finding(4, category="fixed-before"), finding(4, category="weak-hash")]
    selection = select(found, change(tmp_path, {"a.py": ()}), SourceLines(tmp_path), min_confidence=0)
    assert [f.category for f in selection.findings] == ["fixed-before"]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            "password = 'Tr0ub4dor&3xtra Words' or eval(y)",
            "password = '[redacted:assigned]' or eval(y)",
        ),
        ('password = "Tr0ub4dor\'s3xtra&More"', 'password = "[redacted:assigned]"'),
        ("password = 'Tr0ub4dor\\'s3xtra'", "password = '[redacted:assigned]'"),
        ("value = eval(text)", "value = eval(text)"),
    ],
)
def test_no_excerpt_holds_a_secret_whatever_it_is_about(tmp_path: Path, line: str, shown: str) -> None:
    """Another finding may stand on the same line; a value in quotes goes as a whole."""
    write(tmp_path, {"a.py": f"{line}\n"})
    assert SourceLines(tmp_path, Redactor().text).line_of(finding(1, category="code-injection")) == shown


def test_what_the_baseline_knew_stays_in_the_log(tmp_path: Path) -> None:
    """As suppressed, so that the log of one review can be the baseline of the next."""
    from chargehand.apps.review.sarif_format import sarif
    from chargehand.values.report import Report

    write(tmp_path, {"a.py": "one\ntwo\n"})
    source = SourceLines(tmp_path)
    known = fingerprints([finding(1)], source)
    selection = select([finding(1), finding(2, 10)], change(tmp_path, None), source, min_confidence=80, baseline=known)
    log = sarif(Report(run="r", request="x", status="complete", answer=""), selection, all=False)
    (result,) = log["runs"][0]["results"]
    assert result["partialFingerprints"] == {"chargehand/v1": known[0]}
    assert result["suppressions"][0]["justification"] == "in the baseline"


def test_of_many_alike_in_a_file_the_first_are_shown_and_the_rest_counted(tmp_path: Path) -> None:
    """Critical ones are all shown; what is only counted is saved, so that it is not new in the next review."""
    many = [finding(n) for n in range(1, 9)]
    grave = [finding(n, severity="critical", category="sql-injection") for n in range(1, 9)]
    selection = select([*many, *grave], change(tmp_path, None), SourceLines(tmp_path), min_confidence=80)
    assert sum(f.severity == "warning" for f in selection.findings) == 5
    assert sum(f.severity == "critical" for f in selection.findings) == 8
    assert {each.why for each in selection.left_out} == {"like 5 shown of the same file"}
    assert [each.finding.line for each in selection.known] == [6, 7, 8]
    assert selection.notes == ("a.py: 3 more of likely-bug.",)


@pytest.mark.parametrize(
    ("comment", "is_shown"),
    [
        ("# chargehand: ignore", False),
        ("// chargehand: ignore[todo, likely-bug] -- known", False),
        ("# chargehand: ignore[todo]", True),
        ("# pylint: disable=likely-bug", False),
        ("# ignore", True),
    ],
)
def test_a_comment_in_any_language_silences_categories(tmp_path: Path, comment: str, is_shown: bool) -> None:
    write(tmp_path, {"a.py": f"x  {comment}\n"})
    selection = select([finding(1)], change(tmp_path, None), SourceLines(tmp_path), min_confidence=80)
    assert bool(selection.findings) is is_shown


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".pylintrc", "[VARIABLES]\nadditional-builtins=logger,\n    traits\n"),
        ("pyproject.toml", '[tool.ruff]\nbuiltins = ["logger", "traits"]\n'),
        (".flake8", "[flake8]\nbuiltins = logger,traits\n"),
    ],
)
def test_names_that_the_settings_of_a_project_declare_are_defined(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path, {name: text})
    found = [
        finding(n, category="undefined-name", message=f"Undefined name `{word}`")
        for n, word in enumerate(("logger", "traits", "lost"), 1)
    ]
    selection = select(found, change(tmp_path, None), SourceLines(tmp_path), min_confidence=80)
    assert [f.line for f in selection.findings] == [3]


@pytest.mark.parametrize(
    ("line", "columns", "marks"),
    [
        ("    return a == None", (17, 21), "^^^^"),
        ("\tx = 1", (2, 3), "^"),
        ("    x = {", (9, None), "^"),
        ("    x = 1", (None, None), "^^^^^"),
        ("x", (9, 12), "^"),
    ],
)
def test_carets_are_below_the_columns(
    tmp_path: Path, line: str, columns: tuple[int | None, int | None], marks: str
) -> None:
    """To the end of the line where the finding ends on another; all of it where no column is known."""
    write(tmp_path, {"a.py": f"{line}\n"})
    source = SourceLines(tmp_path)
    found = finding(1, column=columns[0], end_column=columns[1])
    selection = select([found], change(tmp_path, None), source, min_confidence=80)
    _, _, code, mark, *_ = text(selection, source, "", all=False, paint=plain, width=None).split("\n")
    assert mark.strip("| ") == marks
    if columns[0] is not None and columns[0] <= len(line):
        assert mark.index("^") - code.index("|") - 2 == len(line[: columns[0] - 1].expandtabs(4))


@pytest.mark.parametrize(
    ("path", "written", "confidence", "said"),
    [
        ("a.py", None, 90, "confidence 90: ruff S608, bandit B608)"),
        ("tests/test_a.py", None, 65, "confidence 65: ruff S608, bandit B608, -25 in test code)"),
        ("a.py", ((1, 1),), 60, "confidence 60: ruff S608, bandit B608, -30 off the change)"),
    ],
)
def test_a_line_says_what_the_confidence_rests_on(
    tmp_path: Path, path: str, written: tuple[tuple[int, int], ...] | None, confidence: int, said: str
) -> None:
    write(tmp_path, {path: "one\ntwo\n"})
    source = SourceLines(tmp_path)
    found = finding(2, path=path, category="sql-injection", sources=("ruff:S608", "bandit:B608"))
    reviewed = Change(tmp_path, tmp_path, {path: 8}, None if written is None else {path: written})
    selection = select([found], reviewed, source, min_confidence=0)
    (judged,) = (*selection.shown, *selection.left_out)
    assert judged.finding.confidence == confidence
    assert said in text(selection, source, "", all=True, paint=plain, width=None)


PATCHES = {
    # In the old line nothing looks like a secret; in the new line the value does.
    '-if password is "secret":\n+if password == "secret":\n': False,
    '-token =\\\n-  password = "horse-1234"\n+password = "horse-1234"\n': False,
    '-if password is "[redacted:assigned]":\n+if password == "[redacted:assigned]":\n': False,
    '-if name is "secret":\n+if name == "secret":\n': True,
}


@pytest.mark.parametrize("lines", PATCHES)
def test_a_patch_with_a_secret_in_it_is_not_suggested(tmp_path: Path, lines: str) -> None:
    """With a mark in the place of the secret it would change the program."""
    write(tmp_path, {"a.py": "one\n"})
    source = SourceLines(tmp_path, Redactor().text)
    patch = f"--- a/a.py\n+++ b/a.py\n@@ -1,1 +1,1 @@\n{lines}"
    selection = select([finding(1, patch=patch)], change(tmp_path, None), source, min_confidence=0)
    assert [each.patch for each in selection.findings] == [patch if PATCHES[lines] else None]
    shown = text(selection, source, "end", all=True, paint=plain, width=None)
    page = markdown(selection, source, "end", gaps=(), all=True)
    assert ("redacted" in shown, "redacted" in page) == (False, False)
    assert all((line in shown) is (line in page) is PATCHES[lines] for line in lines.splitlines())


def test_small_things_of_a_change_are_counted_and_not_listed(tmp_path: Path) -> None:
    """Of whole files, for a gate of info and from a model they are listed; what is known once stays known."""
    write(tmp_path, {"a.py": "one = 1\ntwo = 2\nthree = 3\n"})
    small = [finding(line, category="unused-import", severity="info") for line in (1, 2)]
    warned = finding(3, category="inefficient-loop", severity="warning")
    source, ranges = SourceLines(tmp_path), {"a.py": ((1, 3),)}
    chosen = select([*small, warned], change(tmp_path, ranges), source, min_confidence=0)
    assert [each.category for each in chosen.findings] == ["inefficient-loop"]
    assert chosen.notes == ("Small, and not listed: 2 unused-import.",)
    assert [each.finding.category for each in chosen.known] == ["unused-import"] * 2
    assert len(select(small, change(tmp_path, ranges), source, min_confidence=0, small=True).shown) == 2
    assert len(select(small, change(tmp_path, None), source, min_confidence=0).shown) == 2
    read = [each.model_copy(update={"sources": ("maintenance-reader-1",)}) for each in small]
    assert len(select(read, change(tmp_path, ranges), source, min_confidence=0).shown) == 2


def test_security_of_a_change_is_named_with_its_place_and_not_called_small(tmp_path: Path) -> None:
    """The first places; what is not listed stays known. With `all` everything is listed, and no note says otherwise."""
    lines = range(1, 8)
    found = [finding(line, category="weak-hash", severity="info", path="b.py") for line in lines]
    found += [finding(line, category="unused-import", severity="info") for line in lines]
    found += [finding(line, severity="warning", path="c.py") for line in lines]
    for path in ("a.py", "b.py", "c.py"):
        write(tmp_path, {path: "".join(f"line_{n} = {n}\n" for n in lines)})
    changed = dict.fromkeys(("a.py", "b.py", "c.py"), ((1, 9),))
    reviewed = Change(tmp_path, tmp_path, dict.fromkeys(changed, 10), changed)
    chosen = select(found, reviewed, SourceLines(tmp_path), min_confidence=0)
    named = ", ".join(f"weak-hash in b.py:{line}" for line in range(1, 6))
    assert chosen.notes == (
        f"Security of severity info, not listed: {named} and 2 more.",
        "Small, and not listed: 7 unused-import.",
        "c.py: 2 more of likely-bug.",
    )
    assert Counter(each.why for each in chosen.left_out) == {
        "security of severity info": 7,
        "small": 7,
        "like 5 shown of the same file": 2,
    }
    assert len(chosen.known) == 16
    every = select(found, reviewed, SourceLines(tmp_path), min_confidence=0, all=True)
    assert (every.shown, every.left_out, every.notes) == (chosen.shown, chosen.left_out, ())


def test_a_reader_may_name_the_line_beside_what_was_taken_out(tmp_path: Path) -> None:
    """An analyzer may not: what it finds there was there before."""
    write(tmp_path, {"a.py": "one = 1\ntwo = 2\nthree = 3\n"})
    taken = replace(change(tmp_path, {"a.py": ()}), beside_removed={"a.py": ((2, 3),)})
    for source, lines in (("bug-reader-1", [2]), ("ruff:F821", list[int]())):
        found = [finding(line, sources=(source,)) for line in (1, 2)]
        assert [each.line for each in select(found, taken, SourceLines(tmp_path), min_confidence=0).findings] == lines


def test_a_name_that_several_files_use_and_none_defines_was_put_there(tmp_path: Path) -> None:
    """A loader does that. Two files, or a name of one letter, may be the same mistake."""
    write(tmp_path, {f"{name}.py": "x = 1\n" for name in "abc"})
    files = dict.fromkeys(("a.py", "b.py", "c.py"), 6)
    tree = Change(tmp_path, tmp_path, files, None)
    for name, paths, shown in (("traits", files, 0), ("traits", ["a.py", "b.py"], 2), ("e", files, 3)):
        said = {"category": "undefined-name", "message": f"Undefined name `{name}`"}
        found = [finding(1, path=path, **said) for path in paths]
        assert len(select(found, tree, SourceLines(tmp_path), min_confidence=0).shown) == shown
