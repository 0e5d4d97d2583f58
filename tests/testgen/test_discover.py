"""Functions without tests are found by reading alone: from coverage data, else from the imports and calls of tests."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from chargehand.apps.testgen.discover import find_targets
from chargehand.apps.testgen.playbook import marks
from chargehand.apps.testgen.project import Project, read_project
from chargehand.apps.testgen.tested_functions import gather
from chargehand.errors import UsageError
from tests.testgen.rooms import project, reading

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


def _sqlite(path: Path, file: str) -> None:
    with closing(sqlite3.connect(path)) as data:
        data.execute("create table file (id integer, path text)")
        data.execute("create table line_bits (file_id integer, context_id integer, numbits blob)")
        data.execute("create table arc (file_id integer, context_id integer, fromno integer, tono integer)")
        data.execute("insert into file values (1, ?)", (f"/elsewhere/{file}",))
        data.execute("insert into line_bits values (1, 0, ?)", (bytes([0b11010]),))
        data.commit()


def _json(path: Path, file: str) -> None:
    path.write_text(json.dumps({"files": {file: {"executed_lines": [1, 3, 4]}}}))


def _xml(path: Path, file: str) -> None:
    lines = "".join(f'<line number="{n}" hits="{hits}"/>' for n, hits in ((1, 1), (2, 0), (3, 1), (4, 1)))
    sources = "<sources><source>/elsewhere/src</source></sources>"
    text = f'<coverage>{sources}<class filename="{Path(file).name}">{lines}</class></coverage>'
    path.write_text(text)


@pytest.mark.parametrize(("name", "write"), [(".coverage", _sqlite), ("coverage.json", _json), ("coverage.xml", _xml)])
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
def test_broken_coverage_data_is_passed_over(tmp_path: Path, name: str) -> None:
    """A file that cannot be read leaves the calls to decide."""
    found = reading(tmp_path, {"shop.py": "def one(): return 1\n", name: "{[<broken"})
    assert untested(found) == ["shop.one"]


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
