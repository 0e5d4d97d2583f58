"""Functions tried in the sandbox become tests, or suspected bugs with the input that shows them, or a reason."""

from __future__ import annotations

import ast
import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chargehand.apps.testgen import ghostwrite
from chargehand.apps.testgen import sandbox_command as walls
from chargehand.apps.testgen import verify as verify_file
from chargehand.apps.testgen.assemble import assemble, without
from chargehand.apps.testgen.in_sandbox.argument_values import PLAIN
from chargehand.apps.testgen.sandbox import CommandResult, Room, room
from chargehand.apps.testgen.verify import Verified, verify
from tests.apps.testgen.rooms import means, project, written


def made(folder: Path, code: str, name: str) -> tuple[str, str, list[str]]:
    root = project(folder, {"pyproject.toml": "", "unit.py": code})
    found = written(root, f"unit.{name}")
    return found.source, found.why, [finding.message for finding in found.findings]


def test_examples_state_what_was_given(tmp_path: Path) -> None:
    """Results, expected exceptions and rounding are written as assertions."""
    code = (
        "def half(n: int) -> float:\n"
        '    """>>> half(9)\n    4.5\n    """\n'
        "    if n < 0:\n        raise ValueError('negative')\n"
        "    return n / 2\n"
    )
    source, why, bugs = made(tmp_path, code, "half")
    assert "assert unit.half(9) == pytest.approx(4.5)" in source
    assert "with pytest.raises(ValueError):\n        unit.half(-1)" in source
    assert "def test_half_as_its_docstring_shows():" in source
    assert "def test_half_rejects_minus_1():" in source
    assert "given(" not in source, "what raises nothing is no fact about the result"
    assert (why, bugs) == ("", [])


def test_types_of_the_module_itself_are_made_and_compared(tmp_path: Path) -> None:
    """Enums, dataclasses, containers and options get values; methods get an object."""
    code = (
        "import enum\nfrom dataclasses import dataclass\n"
        "class Size(enum.Enum):\n    SMALL = 1\n    LARGE = 2\n"
        "@dataclass\nclass Box:\n    size: Size\n    tags: list[str] | None = None\n"
        "    def grown(self, more: dict[str, int]) -> 'Box':\n        return Box(Size.LARGE, sorted(more))\n"
    )
    source, _, bugs = made(tmp_path, code, "Box.grown")
    assert "unit.Box(unit.Size.SMALL).grown({'abc': 1" in source
    assert "== unit.Box(size=unit.Size.LARGE, tags=['', 'Hello, World', 'abc'])" in source
    assert source.startswith("import unit\n")
    assert bugs == []


ORDERS = """
import itertools, json, sys
words = json.loads(sys.argv[1])
print(json.dumps([next(iter({one, other})) == one for one, other in itertools.combinations(words, 2)]))
"""


@pytest.mark.parametrize("seeds", [ghostwrite.SEEDS, verify_file.SEEDS])
def test_the_order_of_a_set_shows_under_the_seeds(seeds: tuple[str, ...]) -> None:
    """Of any two strings that functions are given, each is the first of a set under one of them; "" is always first."""
    assert not set(ghostwrite.SEEDS) & set(verify_file.SEEDS)
    plain = [ast.literal_eval(text) for text in PLAIN[str]]
    for words in (plain, *([*plain, f"a{mark}b{mark}"] for mark in (",", ";", "|"))):
        command = [sys.executable, "-c", ORDERS, json.dumps([word for word in words if word])]
        ran = [subprocess.run(command, env={"PYTHONHASHSEED": seed}, capture_output=True, check=True) for seed in seeds]
        orders = [json.loads(each.stdout) for each in ran]
        assert all({*order} == {True, False} for order in zip(*orders, strict=True))


DIFFERS = """
def order(words: list[str]) -> list[str]:
    return list(set(words))

def joined(words: set[str]) -> str:
    return ",".join(words)

def dice():
    return id(object()) % 1000003
"""


def test_results_that_differ_are_not_characterised(tmp_path: Path) -> None:
    """What depends on the hash seed or on chance is no fact to test."""
    for name in ("order", "joined"):
        source, _, _ = made(tmp_path, DIFFERS, name)
        assert f"unit.{name}" in source
        assert "'Hello, World'" not in source
    assert made(tmp_path, DIFFERS, "dice")[1] == "its results differ from run to run, or with the day or the place"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def f(xs: list[int]) -> float:\n    return sum(xs) / len(xs)\n", "f(xs=[]) raises ZeroDivisionError"),
        ('def f(n: int) -> int:\n    """>>> f(2)\n    5\n    """\n    return n * 2\n', "says f(2) gives 5; it gives 4"),
        ("def f(n: int) -> int:\n    while True: pass\n", "did not end in time"),
        ("def f(n: int) -> int:\n    return f(n + 1)\n", "raises RecursionError"),
        ("def f(n: int) -> None:\n    import faulthandler\n    faulthandler._sigsegv()\n", "ended Python itself"),
    ],
)
def test_what_goes_wrong_is_a_suspected_bug_with_its_input(
    tmp_path: Path, code: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Crashes, broken promises and calls without end are named with the call that shows them."""
    monkeypatch.setattr("chargehand.apps.testgen.ghostwrite.EXAMPLES_S", 2)
    _, _, bugs = made(tmp_path, code, "f")
    assert message in " ".join(bugs)


DISPUTED = '''
def average(xs: list[float]) -> float:
    """The middle.

    >>> average([1.0, 3.0])
    2.0
    >>> average([2.0, 4.0])
    3.5
    >>> average([5.0, 7.0])
    6.0
    """
    return sum(xs) / len(xs)
'''


def test_a_call_that_the_docstring_contradicts_is_a_suspected_bug_and_not_a_test(tmp_path: Path) -> None:
    """Nor are the calls after it, which were not compared. What the docstring shows before it is a test."""
    source, _, bugs = made(tmp_path, DISPUTED, "average")
    shown = source.partition("def test_average_as_its_docstring_shows():\n")[2].partition("\n\n")[0]
    assert shown.strip() == "assert unit.average([1.0, 3.0]) == 2.0"
    assert "2.0, 4.0" not in source
    assert "5.0, 7.0" not in source
    assert any("average([2.0, 4.0]) gives 3.5" in bug for bug in bugs)


def test_calls_after_an_example_that_only_a_reader_can_run_are_named_by_their_results(tmp_path: Path) -> None:
    """They were not compared with the docstring."""
    code = 'def f(n: int) -> int:\n    """>>> f(load())\n    4\n    >>> f(9)\n    19\n    """\n    return n * 2\n'
    source, _, bugs = made(tmp_path, code, "f")
    assert "docstring_shows" not in source
    assert not bugs


ENDLESS = """
def f(n{type}):
    while True:
        try:
            n += 1
        except BaseException:
            n = 0
"""


@pytest.mark.parametrize(("type", "is_bug"), [(": int", True), ("", False)])
def test_a_call_that_does_not_end_is_ended_and_repeated_once(
    tmp_path: Path, type: str, is_bug: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its command is given. It is not a bug if the type of its argument is not known."""
    ends: list[list[str | None]] = []
    run = Room.run

    async def recorded(self: Room, *args: Any, **more: Any) -> list[CommandResult]:
        ended = await run(self, *args, **more)
        ends.append([each.stopped for each in ended])
        return ended

    monkeypatch.setattr(Room, "run", recorded)
    found = written(project(tmp_path, {"pyproject.toml": "", "unit.py": ENDLESS.format(type=type)}), "unit.f")
    assert "did not end within" in found.why
    assert ends == ([["call"], ["call"]] if is_bug else [[None] * 4])
    assert len(found.findings) == is_bug
    shown = [str(each.suggestion) for each in found.findings]
    assert all("\nReproduce: python -c 'import unit as _m; print(_m.f(" in each for each in shown)


@pytest.mark.parametrize(("want", "is_bug"), [("Point(x='a')", False), ("Point(x='b')", True), ("Line(x=a)", True)])
def test_quotes_in_the_text_of_an_object_are_no_bug(tmp_path: Path, want: str, is_bug: bool) -> None:
    """A docstring that shows an object with quotes where its text has none agrees with it."""
    code = "class Point:\n    def __repr__(self) -> str:\n        return 'Point(x=a)'\n"
    code += f'def f() -> Point:\n    """>>> f()\n    {want}\n    """\n    return Point()\n'
    _, _, bugs = made(tmp_path, code, "f")
    assert any("docstring says" in bug for bug in bugs) is is_bug


def test_a_pair_that_does_not_undo_is_a_suspected_bug(tmp_path: Path) -> None:
    """encode and decode belong together by their names."""
    code = "def encode(x: str) -> str:\n    return x.upper()\ndef decode(x: str) -> str:\n    return x.lower()\n"
    _, _, bugs = made(tmp_path, code, "encode")
    assert "does not come back the same" in bugs[0]


def test_input_that_cannot_be_made_is_no_bug(tmp_path: Path) -> None:
    """What the making of an argument raises is not blamed on the function that takes it."""
    code = "class Even:\n    def __init__(self, n: int) -> None:\n        self.n = n if n % 2 == 0 else 1 // 0\n"
    code += "def f(e: Even) -> int:\n    return e.n\n"
    _, _, bugs = made(tmp_path, code, "f")
    assert [bug for bug in bugs if bug.startswith("f(e=")] == []


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import not_installed_anywhere\ndef f(n: int) -> int:\n    return n\n", "import failed: ModuleNotFoundError"),
        ("import sys\nsys.exit(1)\ndef f(n: int) -> int:\n    return n\n", "import failed: SystemExit"),
        ("def f(n):\n    return n.of_nothing\n", "no inputs could be made: no type to make 'n' from"),
        ("def f() -> None:\n    print(1)\n", "it returns nothing to compare"),
        ("def f():\n    return {}[0]\n", "every call that was tried raised an error: KeyError: 0"),
    ],
)
def test_without_tests_there_is_a_reason(tmp_path: Path, code: str, why: str) -> None:
    """What cannot be imported or called, or gives nothing, says so."""
    assert why in made(tmp_path, code, "f")[1]


REACHING = """
import argparse, io
system = vars(argparse)["_os"]

def kills():
    system.kill(-1, 9)

def reads():
    return io.open("/etc/shadow").read()

def asks() -> bool:
    try:
        return bool(io.open(".env"))
    except OSError as error:
        raise ValueError("no settings") from error

def lists() -> list[str]:
    return system.listdir("/")

def writes():
    getattr(argparse.FileType("w")("x"), "close")()

def ends():
    system._exit(0)

def loads() -> int:
    import later, zoneinfo
    return len(io.open(__file__).read()) + len(zoneinfo.ZoneInfo(later.ZONE).key)
"""


@pytest.mark.parametrize(
    ("name", "why", "bugs"),
    [
        ("kills", "it was seen to reach processes: os.kill", []),
        ("reads", "it was seen to reach the machine: /etc/shadow", []),
        ("asks", "it was seen to reach a file that is not there: .env", []),
        ("lists", "it was seen to reach the machine: /", []),
        ("writes", "it was seen to reach files: x", []),
        ("ends", "ends() ended Python itself (code 0).", ["ends() ended Python itself (code 0)."]),
        ("loads", "", []),
    ],
)
def test_what_a_function_reaches_by_any_name_is_seen(tmp_path: Path, name: str, why: str, bugs: list[str]) -> None:
    """No test of it is offered, and what the sandbox did not give it is no bug. Its own files are its own."""
    project(tmp_path, {"later.py": "ZONE = 'UTC'\n"})
    source, *rest = made(tmp_path, REACHING, name)
    assert rest == [why, bugs]
    assert bool(source) == (why == "")


def verified(folder: Path, source: str) -> Verified:
    chosen = means()

    async def inside() -> Verified:
        with room(folder, chosen) as sealed:
            return await verify(sealed, source, [""])

    return asyncio.run(inside())


def test_what_fails_in_any_of_three_runs_is_left_out(tmp_path: Path) -> None:
    """Tests that fail, that depend on the order or on the hash seed, or that warn, are not offered; the rest is."""
    source = (
        "import warnings\nimport pytest\nseen = []\n"
        "def test_good():\n    assert True\n"
        "def test_bad():\n    assert [1] == [2]\n"
        "def test_order_first():\n    seen.append(1)\n"
        "def test_order_second():\n    assert seen\n"
        "def test_hash():\n    assert hash('a') == 1\n"
        "def test_warns():\n    warnings.warn('old', DeprecationWarning)\n"
        "@pytest.mark.parametrize('n', [1, 2])\ndef test_many(n):\n    assert n\n"
    )
    found = verified(tmp_path, source)
    assert set(found.failures) == {"test_bad", "test_order_second", "test_hash", "test_warns"}
    assert "assert [1] == [2]" in found.failures["test_bad"]
    assert found.tests == 3
    assert "test_bad" not in found.source
    assert "seen = []" in found.source


def test_a_test_that_hangs_or_kills_its_run_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that was running when the run ended is blamed; the others are run again without it."""
    monkeypatch.setattr("chargehand.apps.testgen.verify.RUN_S", 3)
    source = "import os\ndef test_a():\n    assert True\ndef test_exit():\n    os._exit(0)\n"
    found = verified(tmp_path, source)
    assert list(found.failures) == ["test_exit"]
    assert found.tests == 1


def test_code_that_meddles_with_pytest_offers_nothing_false(tmp_path: Path) -> None:
    """A module that ends pytest early, as if all were well, gets no test into the offer."""
    root = project(tmp_path, {"meddler.py": "import os\ndef f():\n    os._exit(0)\n"})
    found = verified(root, "from meddler import f\ndef test_f():\n    f()\n")
    assert found.source == ""


def test_files_are_joined_without_clashes() -> None:
    """Imports are merged, two tests of one name are both kept, and a helper follows its test."""
    first = "import json\nfrom m import a\nSIZE = 1\ndef test_it():\n    assert a(SIZE)\n"
    second = "import json\nfrom m import b\nSIZE = 2\ndef test_it():\n    assert b(SIZE)\n"
    whole, owners = assemble("m", {"t1": first, "t2": second}, "A note.")
    assert whole.count("import json") == 1
    assert whole.count("import m\n") == 1
    assert "def test_it_2():\n    assert m.b(SIZE_2)" in whole
    assert owners == {"test_it": "t1", "test_it_2": "t2"}
    assert assemble("m", {"t1": "x = 1\n"}, "A note.") == ("", {})


def test_every_file_imports_the_module_and_not_its_names() -> None:
    """Whatever its writer did; a name that the file also uses for something of its own is left as it is."""
    made, _ = assemble("a.b", {"t1": "from a.b import f as g\ndef test_f():\n    assert g(1)\n"}, "A note.")
    assert "from a import b\n" in made
    assert "assert b.f(1)" in made
    kept, _ = assemble("a.b", {"t1": "from a.b import f\ndef test_f(f=f):\n    assert f(1)\n"}, "A note.")
    assert "from a.b import f\n" in kept


def test_leaving_tests_out_takes_their_imports_along() -> None:
    """What nothing uses any more is not imported; without a test left there is no file."""
    source = (
        "import json\nfrom m import a, b\n\n\ndef test_a():\n    assert a\n\n\ndef test_b():\n    assert json and b\n"
    )
    assert without(source, ["test_b"]) == "from m import a\n\n\ndef test_a():\n    assert a\n"
    assert without(source, ["test_a", "test_b"]) == ""


def test_names_for_type_checkers_and_incomplete_docstrings_do_no_harm(tmp_path: Path) -> None:
    """Annotations that only a type checker can resolve are resolved, and a docstring's missing imports are no bug."""
    code = (
        "from __future__ import annotations\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from collections.abc import Sequence\n"
        "def first(xs: Sequence[int]) -> int | None:\n"
        '    """>>> y = unknown(1)\n    >>> first(y)\n    1\n    """\n'
        "    return xs[0] if xs else None\n"
    )
    source, _, bugs = made(tmp_path, code, "first")
    assert "assert unit.first([1, 0, -1, 7]) == 1" in source
    assert bugs == []


TRICKY = """
from pathlib import Path

def sum(unit: int) -> list[list[float]]:
    return [[unit * 0.1]]

def given(x: int) -> str:
    return str(Path(__file__).parent)
"""


def test_names_and_results_that_trip_test_files_do_no_harm(tmp_path: Path) -> None:
    """Names of built-ins and tools, a parameter named as the module, nested fractions, the place itself: no bugs."""
    source, why, bugs = made(tmp_path, TRICKY, "sum")
    assert "assert unit.sum(1) == [[0.1]]" in source
    assert (why, bugs) == ("", [])
    assert made(tmp_path, TRICKY, "given") == ("", "its results cannot be written down", [])
    whole, _ = assemble("unit", {"t1": source}, "A note.")
    found = verified(tmp_path, whole)
    assert (found.failures, found.tests) == ({}, 1)


def test_a_project_may_have_modules_named_as_our_own(tmp_path: Path) -> None:
    """What runs inside leaves no module of its own behind."""
    root = project(tmp_path, {"pyproject.toml": "", "values.py": "def f(n: int) -> int:\n    return n\n"})
    assert "assert values.f(1) == 1" in written(root, "values.f").source


def test_what_tries_the_code_may_lie_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code is not blamed for hypothesis reading ours, in no folder that packages are imported from."""
    means()  # found with our own, as the trial of it is not moved
    elsewhere = Path(shutil.copytree(walls.INSIDE, tmp_path / "elsewhere")).resolve()
    monkeypatch.setattr(walls, "INSIDE", elsewhere)
    walls._visible.cache_clear()  # pyright: ignore[reportPrivateUsage]
    try:
        source, why, _ = made(tmp_path / "project", "def f(ns: list[int]) -> int:\n    return len(ns)\n", "f")
    finally:
        walls._visible.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert "def test_f_of_list_of_4_is_4" in source
    assert why == ""


def test_notes_can_be_recorded_whatever_the_code_says() -> None:
    """Half a character of an error's text is replaced; what is no note is dropped."""
    ended = CommandResult(0, None, "", "", '{"crash": "KeyError: \\ud800"}\n{"cut\n1\n', 0.1)
    assert ghostwrite.notes_of(ended) == [{"crash": "KeyError: ?"}]


def test_inputs_are_made_of_types_wherever_they_are_written(tmp_path: Path) -> None:
    """Dates, paths, functions, types for type checkers only, and a stub beside the module."""
    code = (
        "from __future__ import annotations\nfrom typing import TYPE_CHECKING, Callable\n"
        "if TYPE_CHECKING:\n    import datetime as dt\n    from pathlib import Path\n"
        "def later(day: dt.date, by: dt.timedelta) -> dt.date:\n    return day + by\n"
        "def ending(path: Path) -> str:\n    return path.suffix\n"
        "def twice(f: Callable[[int], int], n: int) -> int:\n    return f(f(n)) + 1\n"
        "def half(n):\n    return n / 2\n"
    )
    project(tmp_path, {"unit.pyi": "def half(n: float) -> float: ...\n"})
    wanted = {
        "later": "unit.later(datetime.date(2024, 2, 29), datetime.timedelta(days=1, seconds=30)) == datetime.date(",
        "ending": "unit.ending(pathlib.Path('a/b.txt')) == '.txt'",
        "twice": "unit.twice((lambda x: x), 1) == 2",
        "half": "unit.half(1.5) == pytest.approx(0.75)",
    }
    for name, text in wanted.items():
        source, why, bugs = made(tmp_path, code, name)
        assert text in source, why
        assert bugs == []


def test_docstring_examples_with_fences_names_and_tracebacks_are_read(tmp_path: Path) -> None:
    """The fence is not part of a result, names are written out, and how an error is worded is not held to."""
    code = (
        "BIG = 10\ndef f(n: int) -> int:\n"
        '    """Double.\n\n    ```pycon\n    >>> x = 3\n    >>> f(x)\n    6\n    >>> f(BIG)\n    20\n    ```\n\n'
        "    >>> f(-1)\n    Traceback (most recent call last):\n      ...\n    ValueError: other words\n"
        '    """\n    if n < 0:\n        raise ValueError("negative")\n    return n * 2\n'
    )
    source, _, bugs = made(tmp_path, code, "f")
    assert "assert unit.f(3) == 6" in source
    assert "assert unit.f(unit.BIG) == 20" in source
    assert "with pytest.raises(ValueError):\n        unit.f(-1)" in source
    assert bugs == []


def test_what_cannot_be_told_from_a_mutant_is_not_offered(tmp_path: Path) -> None:
    """A function that only prints gives nothing to tell; of many calls that show the same, one is enough."""
    source, _, _ = made(tmp_path, "def f(n: int) -> int:\n    return n + 1\n", "f")
    assert source.count("assert") == 1
    code = "def g(n: int) -> None:\n    if n > 3:\n        len(str(n))\n"
    assert made(tmp_path, code, "g")[:2] == ("", "it returns nothing to compare")


def test_properties_assert_something_or_are_labelled(tmp_path: Path) -> None:
    """What is applied twice and gives the same is stated; a round trip that is hardly ever come to is not."""
    code = (
        "def clean(text: str) -> str:\n    return text.strip().lower()\n"
        "def encode(x: str) -> str:\n    if x != 'only this':\n        raise ValueError\n    return x\n"
        "def decode(x: str) -> str:\n    return x\n"
    )
    source, _, _ = made(tmp_path, code, "clean")
    assert "def test_clean_twice_is_the_same_as_once" in source
    assert "def test_smoke" not in source
    assert "given(" not in made(tmp_path, code, "encode")[0]


def test_a_suspected_bug_has_a_reproduction_that_reproduces(tmp_path: Path) -> None:
    """The command is run as it is; what only odd options, extremes or wrong types bring about is not listed."""
    code = (
        "def f(text: str, sep: str = ',') -> str:\n    return text[0] + text.split(sep)[0]\n"
        "def g(n: float) -> int:\n    return int(n)\n"
        "def h(x):\n    return x.upper()\n"
    )
    root = project(tmp_path, {"pyproject.toml": "", "unit.py": code})
    (bug,) = written(root, "unit.f").findings
    assert bug.message == "f(text='') raises IndexError: string index out of range"
    advice, _, command = bug.suggestion.partition("\nReproduce: ")
    assert advice
    ran = subprocess.run(
        command.replace("python", sys.executable, 1), shell=True, cwd=root, capture_output=True, text=True, check=False
    )
    assert "IndexError" in ran.stderr
    assert [written(root, f"unit.{name}").findings for name in "gh"] == [(), ()]
