"""Files as they come: broken, huge, in other encodings, with names nobody would choose."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from chargehand.apps.review.analyzers import ANALYZERS
from chargehand.apps.review.analyzers.source_files import UNDECODED, UNPARSED, UNREAD, SourceFile, SourceReader, is_test
from chargehand.engine.analyzer_port import AnalyzerResult, Scope
from chargehand.errors import AnalyzerFailed
from tests.apps.review.analyzers.running import all_analyzed, analyzed, places, write

UNSAFE = "def run(text):\n    return eval(text)\n"
ODD_NAMES = (
    "-rf.py",
    "--config=x.py",
    "with space.py",
    'it\'s "quoted".py',
    "new\nline.py",
    "@file.py",
    "ünï.py",
    "a;b$(c).py",
)
# Those that look at Python files.
PER_FILE = [
    name for name, each in ANALYZERS.items() if each.per_file and (each.accepts is None or each.accepts("", "a.py"))
]


@pytest.mark.parametrize("name", ["bandit", "ruff-security"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    """Leading dashes, spaces, quotes, newlines and signs of the shell are a file's name and nothing else."""
    analysis = analyzed(name, tmp_path, dict.fromkeys(ODD_NAMES, UNSAFE))
    assert sorted(places(analysis, "code-injection"), key=repr) == sorted(((odd, 2) for odd in ODD_NAMES), key=repr)
    assert analysis.unchecked == {}


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux only")
@pytest.mark.parametrize("name", ["bandit", "ruff-security"])
def test_a_name_that_is_no_utf8_comes_back_as_it_went_in(tmp_path: Path, name: str) -> None:
    """A path travels to the tool and back byte by byte."""
    odd = os.fsdecode(b"caf\xe9.py")
    (tmp_path / odd).write_text(UNSAFE)
    assert places(analyzed(name, tmp_path, (odd,)), "code-injection") == [(odd, 2)]


def test_a_syntax_error_is_one_finding_and_the_others_go_on(tmp_path: Path) -> None:
    """The broken file is a bug of its own; the file beside it is checked."""
    files = {"broken.py": "def f(:\n    pass\n", "fine.py": "def f():\n    return missing\n"}
    analysis = analyzed("ruff-bugs", tmp_path, files)
    assert [(f.path, f.category, f.severity) for f in analysis.findings] == [
        ("broken.py", "syntax-error", "critical"),
        ("fine.py", "undefined-name", "critical"),
    ]
    assert analysis.unchecked == {"broken.py": UNPARSED}
    style = analyzed("ruff-style", tmp_path, tuple(files))
    assert (style.findings, style.unchecked) == ((), {"broken.py": UNPARSED})


@pytest.mark.parametrize("name", ["bandit", "loops", "unreachable"])
def test_a_file_that_cannot_be_parsed_is_named(tmp_path: Path, name: str) -> None:
    """Analyzers that need a syntax tree say which files they left out, all in the same words."""
    analysis = analyzed(name, tmp_path, {"broken.py": "def f(:\n", "fine.py": "x = 1\n"})
    assert analysis.unchecked == {"broken.py": UNPARSED}


@pytest.mark.parametrize("name", ["bandit", "ruff-security", "ruff-bugs", "ruff-performance", "ruff-style"])
def test_a_file_that_cannot_be_decoded_is_named_by_every_tool(tmp_path: Path, name: str) -> None:
    """Also by those of ruff's lenses that have no rule about it, for which ruff alone would say nothing."""
    analysis = analyzed(name, tmp_path, {"bad.py": b"name = 'caf\xe9'\n", "fine.py": "x = 1\n"})
    assert analysis.unchecked == {"bad.py": UNDECODED}


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + UNSAFE.encode(),
        UNSAFE.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + UNSAFE.replace("\n", "\r\n").encode(),
    ],
    ids=["mark", "windows", "both"],
)
@pytest.mark.parametrize("name", ["bandit", "ruff-security"])
def test_byte_order_marks_and_windows_lines_do_not_move_a_finding(tmp_path: Path, name: str, content: bytes) -> None:
    """Line numbers are the same whatever ends the lines."""
    assert places(analyzed(name, tmp_path, {"a.py": content}), "code-injection") == [("a.py", 2)]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_suppression_holds_on_windows_lines(tmp_path: Path, ending: str) -> None:
    """`# nosec` at the end of a line is found before CR LF too."""
    content = "def run(text):\n    return eval(text)  # nosec B307\n".replace("\n", ending)
    for name in ("bandit", "ruff-security"):
        assert analyzed(name, tmp_path, {"a.py": content.encode()}).findings == ()


def test_text_that_is_no_utf8_is_read_byte_by_byte(tmp_path: Path) -> None:
    """A Latin-1 file keeps its lines; one without a declared encoding is no valid Python, which is said."""
    declared = "# coding: latin-1\nname = 'caf\u00e9'\n\n\ndef run(text):\n    return eval(text)\n".encode("latin-1")
    assert places(analyzed("bandit", tmp_path, {"a.py": declared})) == [("a.py", 6)]
    assert analyzed("ruff-bugs", tmp_path, ("a.py",)).unchecked == {"a.py": "Not in UTF-8, which ruff needs"}
    undeclared = analyzed("ruff-bugs", tmp_path, {"b.py": b"name = 'caf\xe9'\n"})
    assert [finding.category for finding in undeclared.findings] == ["syntax-error"]


@pytest.mark.slow
def test_a_file_of_50_mb_is_left_out_and_said(tmp_path: Path) -> None:
    """No analyzer reads it, and each says why."""
    with (tmp_path / "huge.py").open("wb") as file:
        file.truncate(50 * 1024 * 1024)
    left_out = AnalyzerResult(unchecked={"huge.py": "Over 2 MB"})
    assert all_analyzed(Scope(tmp_path, ("huge.py",)), PER_FILE) == dict.fromkeys(PER_FILE, left_out)


def test_links_in_a_circle_and_out_of_the_tree_are_left_out(tmp_path: Path) -> None:
    """A link is followed within the tree only; a file that is gone is named."""
    root = tmp_path / "tree"
    write(root, {"fine.py": "x = 1\n"})
    (tmp_path / "outside.py").write_text(UNSAFE)
    (root / "circle.py").symlink_to("circle.py")
    (root / "out.py").symlink_to(tmp_path / "outside.py")
    scope = Scope(root, ("circle.py", "fine.py", "gone.py", "out.py"))
    outside = "Not a file inside of the tree"
    left_out = AnalyzerResult(unchecked={"circle.py": UNREAD, "gone.py": UNREAD, "out.py": outside})
    assert all_analyzed(scope, PER_FILE) == dict.fromkeys(PER_FILE, left_out)


def test_a_file_that_is_no_text_is_left_out(tmp_path: Path) -> None:
    """Bytes with NUL are not searched for secrets."""
    analysis = analyzed("secrets", tmp_path, {"image.bin": b"\0\1\2 password = 'pQ4-forest-Lamp_61'"})
    assert analysis.findings == ()
    assert analysis.unchecked == {"image.bin": "Not text"}


@pytest.mark.parametrize("name", ["bandit", "loops", "unreachable", "comments"])
def test_code_nested_without_end_harms_no_other_file(tmp_path: Path, name: str) -> None:
    """A file made to exhaust the parser costs its own findings at most."""
    files = {
        "deep.py": "x = " + "(" * 50_000 + ")" * 50_000 + "\n",
        "long.py": "x = " + "1 + " * 20_000 + "1\n",
        "fine.py": UNSAFE,
    }
    analysis = analyzed(name, tmp_path, files)
    assert {finding.path for finding in analysis.findings} <= {"fine.py"}


@pytest.mark.slow
def test_a_file_that_breaks_ruff_takes_no_other_with_it(tmp_path: Path) -> None:
    """It is named as a finding, so that it gets past no gate; a ruff that cannot read its only file has failed."""
    deep = "x = " + "not \\\n" * 60_000 + "1\n"
    files = {f"{name}.py": "def f():\n    return missing\n" for name in "abcde"} | {"deep.py": deep}
    analysis = analyzed("ruff-bugs", tmp_path, files)
    assert sorted(places(analysis, "undefined-name")) == [(f"{name}.py", 2) for name in "abcde"]
    assert [(f.path, f.severity) for f in analysis.findings if f.category == "syntax-error"] == [
        ("deep.py", "critical")
    ]
    assert analysis.unchecked == {"deep.py": "Made ruff fail"}
    with pytest.raises(AnalyzerFailed, match=r"^deep\.py: .* no result"):
        analyzed("ruff-bugs", tmp_path, ("deep.py",))


def test_no_files_are_no_findings(tmp_path: Path) -> None:
    """An empty scope is fine for every analyzer."""
    assert all(analysis.findings == () for analysis in all_analyzed(Scope(tmp_path, ())).values())


@pytest.mark.usefixtures("anew")
@pytest.mark.parametrize(("name", "tool"), [("bandit", "bandit"), ("ruff-bugs", "ruff")])
def test_a_missing_tool_is_said_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, tool: str
) -> None:
    """With an interpreter that has neither, the error names the extra."""
    bare = tmp_path / "bare"
    _bare_python(bare)
    monkeypatch.setattr(sys, "executable", str(bare / "bin/python"))
    with pytest.raises(AnalyzerFailed, match=rf"^{tool} is not installed: pip install 'chargehand\[review\]'$"):
        analyzed(name, tmp_path, {"a.py": "x = 1\n"})


def _bare_python(folder: Path) -> None:
    """A virtual environment without packages."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").symlink_to(os.path.realpath(sys.executable))
    home = Path(os.path.realpath(sys.executable)).parent
    (folder / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")


def test_what_counts_as_test_code() -> None:
    """By folder or by name, in several languages."""
    assert all(
        map(is_test, ["tests/a.py", "test_a.py", "a_test.go", "src/a.spec.ts", "conftest.py", "x/__tests__/a.js"])
    )
    assert not any(map(is_test, ["src/a.py", "latest.py", "contest/a.py", "attest.py", "protest_songs.py"]))


def test_the_reader_keeps_line_numbers(tmp_path: Path) -> None:
    """Form feeds and other separators that Python's splitlines knows end no line."""
    write(tmp_path, {"a.py": "x = 1\x0c\ny = '\u2028'\nz = 3\n"})
    assert SourceReader(tmp_path).read("a.py") == SourceFile("a.py", "x = 1\x0c\ny = '\u2028'\nz = 3\n")
    source = SourceReader(tmp_path).read("a.py")
    assert source is not None
    assert source.lines[2] == "z = 3"


def test_a_scope_needs_no_more_than_root_and_files(tmp_path: Path) -> None:
    """The rest has defaults: a whole tree, no base, no options."""
    assert Scope(tmp_path, ()) == Scope(tmp_path, (), None, None, {})


@pytest.mark.parametrize(
    ("path", "count"), [("a.json", 1), ("tests/a.json", 0), ("tests/data/names", 0), ("tests/test_a.py", 1)]
)
def test_characters_that_turn_text_around_are_wanted_in_the_data_of_tests(
    tmp_path: Path, path: str, count: int
) -> None:
    """Nothing runs it. In the code of a test they hide as much as elsewhere."""
    assert len(analyzed("leftovers", tmp_path, {path: 'x = "\u202e"\n'}).findings) == count
