"""Lenses that need to know what changed: contracts, tests, extent."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def _untested(root: Path, test: str, *lines: int, test_changed: bool = False) -> list[tuple[int | None, int | None]]:
    write(root, {"shop.py": SOURCE, "tests/test_shop.py": test})
    changed = {"shop.py": tuple((line, line) for line in lines)}
    if test_changed:
        changed["tests/test_shop.py"] = ((1, 1),)
    analysis = analyzed("untested", root, ("shop.py",), changed=changed)
    return [(finding.line, finding.confidence) for finding in analysis.findings]


def test_changed_behaviour_that_no_test_mentions_is_reported(tmp_path: Path) -> None:
    """By the function's name, anywhere in the tests of the tree."""
    assert _untested(tmp_path, "def test_nothing(): pass\n", 3, 12) == [(3, 82), (12, 82)]


def test_a_test_that_mentions_it_but_did_not_change_is_a_remark(tmp_path: Path) -> None:
    """It may well cover the change; a test that changed with it does."""
    test = "from shop import price, Basket\nassert Basket().clear\n"
    assert _untested(tmp_path, test, 3, 12) == [(3, 50), (12, 50)]
    assert _untested(tmp_path, test, 3, 12, test_changed=True) == []


def test_what_is_no_behaviour_needs_no_test(tmp_path: Path) -> None:
    """Docstrings, comments, signatures of stubs and empty lines."""
    assert _untested(tmp_path, "def test_nothing(): pass\n", 2, 4, 11, 15) == []


def test_a_constructor_is_tested_through_its_class(tmp_path: Path) -> None:
    """Special and private names are hardly ever called by a test."""
    assert _untested(tmp_path, "from shop import Basket\n", 8) == [(8, 50)]


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
