"""Functions without tests are found by reading alone: from coverage data, else from the imports and calls of tests."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from coverage import CoverageData

from chargehand.apps.testgen.discover import find_targets
from chargehand.apps.testgen.project import Project, read_project
from chargehand.apps.testgen.tested_functions import gather
from chargehand.apps.testgen.testgen_plan import marks
from chargehand.errors import UsageError
from tests.apps.testgen.rooms import project, reading

CODE = """
def one(): return 1
def two():
    return 2
class Shelf:
    def take(self): return 1
    def put(self): return 2
    @property
    def size(self): return 3
    def _inner(self): return 4
def _private(): return 5
def later(): ...
"""


def untested(found: Project) -> list[str]:
    return [target.full_name for target in find_targets(found, gather(found))[0]]


def test_public_functions_and_methods_are_targets(tmp_path: Path) -> None:
    """Private ones, properties and declarations without a body are not."""
    found = reading(tmp_path, {"shop.py": CODE})
    assert untested(found) == ["shop.one", "shop.two", "shop.Shelf.take", "shop.Shelf.put"]


@pytest.mark.parametrize(
    "test",
    [
        "from pkg.shop import one, Shelf\ndef test_it(): assert one() and Shelf().take()",
        "import pkg.shop as s\ndef test_it(): assert s.one() and s.Shelf().take()",
        "from pkg import shop\ndef test_it(): assert shop.one() and shop.Shelf().take()",
        "from pkg import one, Shelf\ndef test_it(): assert one() and Shelf().take()",
        "from pkg.shop import *\ndef test_it(): assert one() and Shelf().take()",
    ],
)
def test_what_a_test_file_calls_is_tested(tmp_path: Path, test: str) -> None:
    """However it is imported, through the package's own names too."""
    found = reading(
        tmp_path,
        {"pkg/__init__.py": "from .shop import one, Shelf\n", "pkg/shop.py": CODE, "tests/test_shop.py": test},
    )
    assert untested(found) == ["pkg.shop.two", "pkg.shop.Shelf.put"]


def test_importing_is_not_testing(tmp_path: Path) -> None:
    """A name that is only imported is not used."""
    found = reading(tmp_path, {"shop.py": "def one(): return 1\n", "test_shop.py": "from shop import one\n"})
    assert untested(found) == ["shop.one"]


def _data_file(path: Path, file: str) -> None:
    data = CoverageData(str(path))
    data.add_lines({f"/elsewhere/{file}": [1, 3, 4]})
    data.write()
    data.close(force=True)


def _branches(path: Path, file: str) -> None:
    data = CoverageData(str(path))
    data.add_arcs({f"/elsewhere/{file}": [(-1, 1), (1, 3), (3, -1), (-3, 4), (4, -3)]})
    data.write()
    data.close(force=True)


def _json(path: Path, file: str) -> None:
    path.write_text(json.dumps({"files": {file: {"executed_lines": [1, 3, 4]}}}))


def _xml(path: Path, file: str) -> None:
    lines = "".join(f'<line number="{n}" hits="{hits}"/>' for n, hits in ((1, 1), (2, 0), (3, 1), (4, 1)))
    sources = "<sources><source>/elsewhere/src</source></sources>"
    text = f'<coverage>{sources}<class filename="{Path(file).name}">{lines}</class></coverage>'
    path.write_text(text)


@pytest.mark.parametrize(
    ("name", "write"),
    [(".coverage", _data_file), (".coverage", _branches), ("coverage.json", _json), ("coverage.xml", _xml)],
)
def test_coverage_data_goes_before_calls(tmp_path: Path, name: str, write: object) -> None:
    """Lines that ran count, whatever the tests seem to call; the line of `def` itself does not."""
    code = "def one():\n    return 1\ndef two():\n    return 2\n"
    root = project(tmp_path, {"pyproject.toml": "", "src/shop.py": code, "test_x.py": "from shop import one\none()\n"})
    write(root / name, "src/shop.py")  # type: ignore[operator]
    found = read_project(root)
    assert gather(found).source == f"coverage data in {name}"
    assert untested(found) == ["shop.one"]


def test_coverage_data_older_than_the_code_does_not_count(tmp_path: Path) -> None:
    """Lines have moved since: the calls decide."""
    root = project(tmp_path, {"pyproject.toml": "", "shop.py": "def one():\n    return 1\n"})
    (root / "coverage.json").write_text(json.dumps({"files": {"shop.py": {"executed_lines": [2]}}}))
    os.utime(root / "coverage.json", (1, 1))
    assert untested(read_project(root)) == ["shop.one"]


@pytest.mark.parametrize("name", [".coverage", "coverage.json", "coverage.xml"])
@pytest.mark.parametrize("text", ["{[<broken", "[" * 100_000, ""])
def test_broken_coverage_data_is_passed_over(tmp_path: Path, name: str, text: str) -> None:
    """A file that cannot be read leaves the calls to decide, and is named."""
    found = reading(tmp_path, {"shop.py": "def one(): return 1\n", name: text})
    assert untested(found) == ["shop.one"]
    assert f"; {name} was not read (" in gather(found).source
    assert (tmp_path / name).read_text() == text


ENDLESS = "with recursive t(n) as (select 1 union all select n + 1 from t) select n as id, 'x' as path from t"


@pytest.mark.parametrize(
    "statements",
    [
        f"drop table file; create view file as {ENDLESS}",
        "drop table line_bits; create table line_bits (file_id, context_id, numbits as (zeroblob(1000000000)))",
        "update line_bits set numbits = zeroblob(2000000)",
        "drop table meta; create virtual table meta using fts5(key, value)",
        "drop table coverage_schema",
        "update coverage_schema set version = 99",
        "delete from file",
        "update line_bits set numbits = 'text'",
    ],
)
def test_a_hostile_coverage_file_costs_nothing(tmp_path: Path, statements: str) -> None:
    """SQL in its schema does not run, what it claims to have does not fill the memory, and it is not changed."""
    root = project(tmp_path, {"pyproject.toml": "", "shop.py": "def one(): return 1\n"})
    file = root / ".coverage"
    _data_file(file, "shop.py")
    with closing(sqlite3.connect(file)) as data:
        data.executescript(statements)
    before = file.read_bytes()
    found = read_project(root)
    assert untested(found) == ["shop.one"]
    assert file.read_bytes() == before
    assert gather(found).source.startswith("imports and calls in 0 test files")


def test_coverage_data_without_coverage_py_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls decide, and the report says what to install."""
    root = project(tmp_path, {"pyproject.toml": "", "shop.py": "def one(): return 1\n"})
    _data_file(root / ".coverage", "shop.py")
    monkeypatch.setitem(sys.modules, "coverage", None)
    assert "it needs coverage.py: pip install 'chargehand[testgen]'" in gather(read_project(root)).source


def test_names_follow_the_layout(tmp_path: Path) -> None:
    """src/, packages, plain modules and folders of scripts each get the name they are imported by."""
    code = "def f(): return 1\n"
    found = reading(
        tmp_path,
        {"src/pkg/__init__.py": "", "src/pkg/a.py": code, "flat/__init__.py": "", "flat/b.py": code, "bin/c.py": code},
    )
    assert {module.name: module.import_root for module in found.modules} == {
        "c": "bin", "flat": "", "flat.b": "", "pkg": "src", "pkg.a": "src",
    }  # fmt: skip


def test_what_cannot_be_tested_is_listed_with_why(tmp_path: Path) -> None:
    """Syntax errors, clashes of names and names Python itself needs leave the other files alone."""
    found = reading(
        tmp_path,
        {
            "good.py": "def f(): return 1\n",
            "broken.py": "def f(:\n",
            "random.py": "def f(): return 1\n",
            "bin/good.py": "def f(): return 1\n",
            "odd-name.py": "def f(): return 1\n",
            "nul.py": "x = '\0'\n",
        },
    )
    why = {skip.path: skip.why for skip in found.skipped}
    assert untested(found) == ["good.f"]
    assert "syntax error" in why["broken.py"]
    assert "'random'" in why["random.py"]
    assert "cannot be imported" in why["odd-name.py"]
    assert {"nul.py"} <= set(why)
    assert any("clashes with" in text and "both are imported as good" in text for text in why.values())


def test_a_conftest_is_not_counted_as_a_test_file(tmp_path: Path) -> None:
    """It is read, because fixtures call functions too."""
    files = {"shop.py": CODE, "tests/test_shop.py": "", "tests/conftest.py": "import shop\nshop.one()\n"}
    found = read_project(project(tmp_path, {"pyproject.toml": "", **files}))
    assert "shop.one" not in untested(found)
    assert gather(found).source == "imports and calls in 1 test file"


def test_files_that_are_not_utf8_are_listed(tmp_path: Path) -> None:
    """A file in another encoding without saying so is not read as code."""
    root = project(tmp_path, {"pyproject.toml": "", "good.py": "def f(): return 1\n"})
    (root / "latin.py").write_bytes(b"x = '\xe4'\n")
    assert [skip.path for skip in read_project(root).skipped] == ["latin.py"]


def test_only_what_is_under_the_path_is_wanted(tmp_path: Path) -> None:
    """Naming one file tests that file, with the project around it known."""
    code = "def f(): return 1\n"
    root = project(tmp_path, {"pyproject.toml": "", "pkg/__init__.py": "", "pkg/a.py": code, "pkg/b.py": code})
    found = read_project(root / "pkg" / "a.py")
    assert found.root == root.resolve()
    assert untested(found) == ["pkg.a.f"]


@pytest.mark.parametrize("given", ["nowhere", "empty", "notes.txt"])
def test_a_path_without_python_is_a_usage_error(tmp_path: Path, given: str) -> None:
    """One sentence, before anything is run."""
    project(tmp_path, {"empty/readme.md": "x", "notes.txt": "x"})
    with pytest.raises(UsageError):
        read_project(tmp_path / given)


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A loop of links and a link out of the project add nothing."""
    root = project(tmp_path / "project", {"pyproject.toml": "", "a.py": "def f(): return 1\n"})
    project(tmp_path / "other", {"b.py": "def g(): return 1\n"})
    (root / "loop").symlink_to(root)
    (root / "out.py").symlink_to(tmp_path / "other" / "b.py")
    assert [module.name for module in read_project(root).modules] == ["a"]


def test_marks_are_short_strings_that_can_be_written(tmp_path: Path) -> None:
    """Separators of the module's code; half a character is none."""
    (module,) = reading(
        tmp_path, {"mine.py": "GLUE, HALF, WORD, END = '; ', '\\ud800', 'abc', '||'\nSEP = ','\n"}
    ).modules
    assert marks(module) == (",", "||")
