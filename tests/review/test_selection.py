"""What is worth showing, by place, confidence and baseline."""

from __future__ import annotations

from pathlib import Path

from chargehand.outcome import Finding
from chargehand.review import Change, Source, select
from chargehand.review.github import github
from chargehand.review.markdown import markdown
from chargehand.review.source import fingerprints
from chargehand.review.text import headline, plain, text
from tests.review.world import write


def finding(line: int | None, confidence: int = 90, path: str | None = "a.py", **more: object) -> Finding:
    given: dict[str, object] = {"category": "likely-bug", "message": f"Something at {line}.", "severity": "warning"}
    return Finding.model_validate({**given, "line": line, "path": path, "confidence": confidence, **more})


def change(root: Path, changed: dict[str, tuple[tuple[int, int], ...]] | None) -> Change:
    return Change(root, root, {"a.py": 10}, changed)


def test_of_a_change_only_its_lines_are_shown(tmp_path: Path) -> None:
    """Other lines and other files are left out with the reason; what is about the whole change stays."""
    found = [finding(3), finding(9), finding(3, path="b.py"), finding(None, path=None)]
    selection = select(found, change(tmp_path, {"a.py": ((2, 4),)}), Source(tmp_path), min_confidence=50)
    assert [(f.path, f.line) for f in selection.findings] == [(None, None), ("a.py", 3)]
    assert {each.why for each in selection.left_out} == {"not on a line that changed"}


def test_the_same_finding_is_shown_once(tmp_path: Path) -> None:
    """Two tools that say the same are one finding with both as sources."""
    found = [finding(3, sources=("t1", "x:1"), message="Bad."), finding(3, sources=("t2", "y:1"), message="Bad.")]
    selection = select(found, change(tmp_path, None), Source(tmp_path), min_confidence=50)
    (only,) = selection.findings
    assert set(only.sources) == {"t1", "x:1", "t2", "y:1"}


def test_confidence_and_baseline_leave_out(tmp_path: Path) -> None:
    """Each with its reason."""
    write(tmp_path, {"a.py": "one\ntwo\nthree\n"})
    source = Source(tmp_path)
    known = fingerprints([finding(1)], source)
    found = [finding(1), finding(2, 70), finding(3)]
    selection = select(found, change(tmp_path, None), source, min_confidence=80, baseline=known)
    assert [f.line for f in selection.findings] == [3]
    assert [each.why for each in selection.left_out] == ["in the baseline", "confidence 70 is below 80"]
    assert headline(selection, 1) == (
        "1 finding in 1 file: 1 warning. Left out: 1 in the baseline, 1 of low confidence; --all shows them."
    )


def test_the_gate_counts_what_is_as_severe_or_more(tmp_path: Path) -> None:
    """info counts all, critical only the gravest."""
    found = [finding(1, severity="critical"), finding(2, severity="warning"), finding(3, severity="info")]
    selection = select(found, change(tmp_path, None), Source(tmp_path), min_confidence=0)
    assert [selection.at_least(s) for s in ("critical", "warning", "info")] == [1, 2, 3]


def test_nothing_in_a_finding_can_command_a_terminal_or_a_page(tmp_path: Path) -> None:
    """Control characters, Markdown and workflow commands in paths, messages and code are shown as text."""
    name, words = "a\x1b[31m.py", "mes`sage` **bold** <b>\n::error::x \x1b]0;t\x07"
    write(tmp_path, {name: "code = '\x1b[2J'\n"})
    source = Source(tmp_path)
    selection = select([finding(1, path=name, message=words)], change(tmp_path, None), source, min_confidence=0)
    shown = text(selection, source, "end", all=True, paint=plain)
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert not [line for line in github(selection, ()).splitlines()[1:] if line.startswith("::")]
    page = markdown(selection, source, files=1, gaps=(), all=True)
    assert "<b>" not in page.replace("\\<b\\>", "")
    assert "**bold**" not in page


def test_a_category_outside_of_the_vocabulary_becomes_the_lens_own(tmp_path: Path) -> None:
    """A model's own word is not shown as a category."""
    found = [finding(1, category="oops", sources=("security-reader-2",)), finding(2, category="", sources=("t9",))]
    selection = select(found, change(tmp_path, None), Source(tmp_path), min_confidence=0)
    assert [f.category for f in selection.findings] == ["security-issue", "likely-bug"]
