"""Lenses that need to know what changed: contracts, tests, extent."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from coverage import CoverageData

from tests.apps.review.analyzers.running import analyzed, places, write


def test_code_changed_beside_a_rule_in_a_comment_is_pointed_out(tmp_path: Path) -> None:
    """The rule is quoted; below the threshold, as only a reader can tell whether it still holds."""
    files = {"a.py": "# The list must stay sorted: callers bisect it.\nNAMES = ['a', 'b']\n\n\n\n\nother = 1\n"}
    analysis = analyzed("contracts", tmp_path, files, changed={"a.py": ((2, 2), (7, 7))})
    assert [(f.category, f.line, f.confidence) for f in analysis.findings] == [("contract-comment", 2, 70)]
    assert "must stay sorted" in analysis.findings[0].message


@pytest.mark.parametrize("changed", [((1, 2),), ((7, 7),)], ids=["comment-too", "far-away"])
def test_a_rule_that_changed_too_or_is_far_away_is_not(tmp_path: Path, changed: tuple[tuple[int, int], ...]) -> None:
    """Whoever changed the comment has read it."""
    files = {"a.py": "# The list must stay sorted: callers bisect it.\nNAMES = ['a', 'b']\n\n\n\n\nother = 1\n"}
    assert analyzed("contracts", tmp_path, files, changed={"a.py": changed}).findings == ()


def test_of_two_files_to_keep_in_step_one_alone_is_reported(tmp_path: Path) -> None:
    """Any language; the other file exists, from the root or beside, and is not part of the change."""
    files = {"web/a.js": "// Keep in sync with b.py\nconst x = [\n  1,\n];\n", "web/b.py": "x = [1]\n"}
    alone = analyzed("contracts", tmp_path, files, changed={"web/a.js": ((3, 3),)})
    assert places(alone, "out-of-sync") == [("web/a.js", 3)]
    both = analyzed("contracts", tmp_path, files, changed={"web/a.js": ((3, 3),), "web/b.py": ((1, 1),)})
    assert both.findings == ()


def test_a_partner_that_does_not_exist_or_is_outside_is_not_looked_for(tmp_path: Path) -> None:
    """A comment cannot make the review look outside the tree."""
    (tmp_path / "secret.py").write_text("x = 1\n")
    partners = ("../secret.py", "gone.py", str(tmp_path / "secret.py"))
    files = {"a.py": "".join(f"# keep in sync with {partner}\nx = 1\n\n" for partner in partners)}
    assert analyzed("contracts", tmp_path / "tree", files, changed={"a.py": ((1, 9),)}).findings == ()


SOURCE = '''def price(x):
    """Say it."""
    return x * 2


class Basket:
    def __init__(self):
        self.items = []

    def clear(self):
        # all of them
        self.items = []

    def later(self):
        raise NotImplementedError
'''


TESTS = {"shop/__init__.py": "", "shop/basket.py": "", "tests/test_basket.py": "import shop.basket\n"}


def _untested(root: Path, files: dict[str, str], *lines: int) -> list[tuple[str | None, int | None]]:
    """The findings on a change of these lines of shop/price.py, in a package of which a test imports another module."""
    changed = {"shop/price.py": tuple((line, line) for line in lines)}
    write(root, {"shop/price.py": SOURCE, **TESTS, **files})
    return [(f.message, f.line) for f in analyzed("untested", root, ("shop/price.py",), changed=changed).findings]


def test_a_module_that_no_test_imports_is_reported_once(tmp_path: Path) -> None:
    """Tests import its neighbour, so the package is one that is tested."""
    assert _untested(tmp_path, {}, 3, 12) == [
        ("No test imports this module, in which `price`, `Basket.clear` changed.", 3)
    ]


def test_of_many_changed_functions_the_others_are_counted(tmp_path: Path) -> None:
    """The first three are named."""
    code = "".join(f"def f{n}():\n    return {n}\n" for n in range(5))
    ((message, _),) = _untested(tmp_path, {"shop/price.py": code}, 2, 4, 6, 8, 10)
    assert message == "No test imports this module, in which `f0`, `f1`, `f2` and 2 more changed."


@pytest.mark.parametrize(
    "files",
    [
        {"tests/test_price.py": "from shop.price import Basket\n"},
        {"tests/test_price.py": "from shop import price\n"},
        {"tests/test_price.py": "from shop import (\n    basket,  # first\n    price,\n)\n"},
        {"tests/test_price.py": "import shop.price as p\n"},
        {"shop/basket.py": "from . import price\n"},
        {"shop/basket.py": "def later():\n    from .price import Basket\n"},
        {"shop/__init__.py": "from shop.price import Basket\n"},
        {"tests/test_price.py": "run(['python', '-m', 'shop.price'])\n"},
    ],
)
def test_a_module_that_a_test_reaches_is_not_reported(tmp_path: Path, files: dict[str, str]) -> None:
    """By an import of any form, through other modules, or by its name in the text of a test."""
    assert _untested(tmp_path, files, 3) == []


def test_scripts_beside_the_tests_are_no_gap(tmp_path: Path) -> None:
    """No test imports anything of their folder: nobody expects them to be tested."""
    write(tmp_path, {**TESTS, "docs/conf.py": SOURCE, "setup.py": SOURCE})
    changed = {"docs/conf.py": ((3, 3),), "setup.py": ((3, 3),)}
    assert analyzed("untested", tmp_path, tuple(changed), changed=changed).findings == ()


def test_modules_that_are_only_reached_through_others_make_no_folder_tested(tmp_path: Path) -> None:
    """Tests import none of the pages themselves: that no test reaches one of them is as it always was."""
    pages = {f"web/page{n}.py": "VALUE = 1\n" for n in range(3)}
    app = {"app.py": "import web.page0, web.page1, web.page2\n", "tests/test_app.py": "import app\n"}
    write(tmp_path, {**pages, **app, "web/price.py": SOURCE, "web/__init__.py": ""})
    changed = {"web/price.py": ((3, 3),)}
    assert analyzed("untested", tmp_path, tuple(changed), changed=changed).findings == ()


COVERAGE = {
    "coverage.xml": (
        "<coverage><class filename='shop/price.py'><lines><line number='3' hits='1'/><line number='8' hits='0'/>"
        "<line number='12' hits='0'/></lines></class></coverage>"
    ),
    "lcov.info": "SF:/ci/project/shop/price.py\nDA:3,4\nDA:8,0\nDA:12,0,abc\nend_of_record\n",
}


@pytest.mark.parametrize("name", COVERAGE)
def test_with_coverage_data_what_no_test_ran_is_reported(tmp_path: Path, name: str) -> None:
    """By function and line, also in a module that tests import, and nothing where the lines ran."""
    imported = {"tests/test_price.py": "import shop.price\n"}
    assert _untested(tmp_path, imported | {name: COVERAGE[name]}, 3, 12) == [
        (f"`Basket.clear` changed and no test ran its line 12, by {name}.", 12)
    ]
    assert _untested(tmp_path, {}, 3) == []


def test_the_own_file_of_coverage_is_read_unless_it_is_older_than_the_change(tmp_path: Path) -> None:
    """Lines of a file that was written after it may have moved."""
    write(tmp_path, {"shop/price.py": SOURCE, **TESTS, "tests/test_price.py": "import shop.price\n"})
    data = CoverageData(basename=str(tmp_path / ".coverage"))
    data.add_lines({str(tmp_path / "shop/price.py"): [1, 3, 6, 7, 8]})
    data.write()
    changed = {"shop/price.py": ((3, 3), (8, 8), (12, 12))}
    for seconds, lines, notes in ((10, [12], 0), (-10, [], 1)):
        at = time.time() + seconds
        os.utime(tmp_path / ".coverage", (at, at))
        analysis = analyzed("untested", tmp_path, ("shop/price.py",), changed=changed)
        assert ([f.line for f in analysis.findings], len(analysis.notes)) == (lines, notes)


@pytest.mark.parametrize("text", ["", "<coverage>", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "\0\1", "<line/>"])
def test_what_is_no_coverage_data_is_noted_and_not_used(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"shop/price.py": SOURCE, **TESTS, "coverage.xml": text})
    analysis = analyzed("untested", tmp_path, ("shop/price.py",), changed={"shop/price.py": ((3, 3),)})
    assert analysis.notes == ("coverage.xml could not be read as coverage data and was not used.",)
    assert len(analysis.findings) == 1


def test_what_is_no_behaviour_needs_no_test(tmp_path: Path) -> None:
    """Docstrings, comments, annotations, signatures, stubs and empty lines."""
    assert _untested(tmp_path, {}, 1, 2, 4, 7, 11, 15) == []


def test_a_tree_without_tests_is_noted_once(tmp_path: Path) -> None:
    """Not one finding per function."""
    analysis = analyzed("untested", tmp_path, {"shop.py": SOURCE}, changed={"shop.py": ((3, 3),)})
    assert analysis.findings == ()
    assert analysis.notes == ("The tree has no Python tests: changed behaviour was not compared with them.",)


def test_a_large_change_is_said_once_and_tests_do_not_count(tmp_path: Path) -> None:
    """Past 800 lines outside tests, at the largest file."""
    files = {"a.py": "", "b.go": "", "tests/test_a.py": ""}
    small = analyzed("extent", tmp_path, files, changed={"a.py": ((1, 800),), "tests/test_a.py": ((1, 5000),)})
    assert small.findings == ()
    large = analyzed("extent", tmp_path, files, changed={"a.py": ((1, 300),), "b.go": ((11, 700),)})
    assert [(f.category, f.path, f.line) for f in large.findings] == [("large-change", "b.go", 11)]
    assert "990 lines outside tests, 690 of them in b.go" in large.findings[0].message


@pytest.mark.parametrize("name", ["contracts", "untested", "extent"])
def test_a_whole_tree_is_no_change(tmp_path: Path, name: str) -> None:
    """Without changed lines these lenses have nothing to say."""
    assert analyzed(name, tmp_path, {"a.py": "# must stay\nx = 1\n"}).findings == ()


def test_a_note_to_keep_in_step_is_for_its_own_block(tmp_path: Path) -> None:
    """Not for what is indented less, and not for what has such a note of its own."""
    hooks = [f"  - name: one\n    # Keep in sync with {name}\n    rev: 1\n" for name in ("b.py", "c.py")]
    text = "".join(["hooks:\n", *hooks])
    files = {"a.yaml": text, "b.py": "x = 1\n", "c.py": "x = 1\n"}
    write(tmp_path, files)
    for line, said in ((4, "b.py"), (7, "c.py"), (5, None)):
        changed = {"a.yaml": ((line, line),)}
        found = analyzed("contracts", tmp_path, tuple(files), changed=changed).findings
        assert [each.message.partition("in step with ")[2][:4] for each in found] == ([said] if said else [])
