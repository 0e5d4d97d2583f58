"""Files that are offered stand beside a project's own tests: they hide nothing, and find the code by themselves."""

from __future__ import annotations

import asyncio
import datetime
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chargehand.apps.testgen.generators import file
from chargehand.apps.testgen.measure import beside
from chargehand.apps.testgen.places_of_tests import SuitePlace, place_for
from chargehand.apps.testgen.project import read_project
from chargehand.apps.testgen.sandbox import room
from chargehand.apps.testgen.testgen_plan import make_testgen_plan, place_of, survey
from chargehand.apps.testgen.try_settings import try_settings
from chargehand.apps.testgen.writing import FileWriter, default_folder
from chargehand.engine.analyzer_port import AnalyzerResult, Scope
from chargehand.errors import UsageError
from chargehand.values.plan import Task
from tests.apps.testgen.rooms import means, project, reading
from tests.pace import PATIENCE_S

ADD = "def add(a: int, b: int) -> int:\n    return a + b\n"
ADDED = "import calc\ndef test_add_gives_what_it_gave():\n    assert calc.add(1, 2) == 3\n"


def filed(root: Path, inputs: dict[str, object], *, model: bool = False) -> tuple[AnalyzerResult, Task]:
    """What the verifier makes of these results."""
    found, chosen = survey(read_project(root)), means()

    async def tried() -> SuitePlace:
        with room(root, chosen) as sealed:
            return await try_settings(sealed, found.project.import_roots, place_of(found))

    plan = make_testgen_plan(found, chosen, model=model, place=asyncio.run(tried()))
    order = next(task for task in plan.tasks if task.worker == "verifier")
    context = order.context
    assert isinstance(context, dict)
    scope = Scope(root, ("calc.py",), options={**context["options"], "inputs": inputs})
    return asyncio.run(file(scope)), order


def test_no_file_gets_the_name_of_another_test_file(tmp_path: Path) -> None:
    """pytest cannot collect two files of one name; two modules whose names become one get two files."""
    root = reading(tmp_path, {"calc.py": ADD, "tests/test_calc.py": "", "a/b_c.py": ADD, "a_b/c.py": ADD}).root
    read = read_project(root)
    place = place_for(read, default_folder(root), ["calc", "a.b_c", "a_b.c"])
    assert place.names == {"calc": "test_calc_2.py", "a.b_c": "test_a_b_c.py", "a_b.c": "test_a_b_c_2.py"}
    writer = FileWriter(tmp_path / "out", ("test_x.py",))
    writer.write("test_x.py", "new")
    assert writer.written["test_x.py"].name == "test_x_2.py"


def test_a_file_that_breaks_the_suite_is_refused(tmp_path: Path) -> None:
    """The whole suite is collected with the new files at their places; what breaks it is named and not offered."""
    root = project(tmp_path, {"pyproject.toml": "", "calc.py": ADD, "tests/test_calc.py": "def test_mine(): pass\n"})
    read = read_project(root)
    place = place_for(read, default_folder(root), ["calc"])
    chosen = means()

    async def refused(name: str) -> dict[str, str]:
        with room(root, chosen) as sealed:
            return await beside(sealed, read.tests, {name: ADDED}, read.import_roots, place)

    assert "import file mismatch" in asyncio.run(refused("test_calc.py"))["test_calc.py"]
    assert asyncio.run(refused(place.names["calc"])) == {}


def test_a_plugin_the_sandbox_lacks_does_not_stop_the_verification(tmp_path: Path) -> None:
    """Options in the project's settings that nothing here understands are left aside."""
    settings = "[tool.pytest.ini_options]\naddopts = '--of-no-plugin'\n"
    made, _ = filed(project(tmp_path, {"pyproject.toml": settings, "calc.py": ADD}), {"t1": {"tests": ADDED}})
    assert made.output["tests"] == 1


STRICT = """
import pytest
@pytest.fixture(autouse=True)
def strict(request):
    assert 'forbidden' not in request.node.name
"""
DAY = """
from datetime import date
TODAY = getattr(date, 'to' + 'day')()
def add(a: int, b: int) -> int:
    return a + b
def year(n: int) -> int:
    return n + TODAY.year
"""
SEEN = """
import calc, datetime, time
STEP = calc.year(1) - calc.year(0)
def test_forbidden():
    assert calc.year(1) - calc.year(0) == STEP
def test_year():
    assert calc.year(0) == {year}
def test_zone():
    assert calc.year(0) and time.localtime(0).tm_hour == {hour}
def test_same():
    assert calc.year(0) and datetime.date.today() == datetime.date.fromtimestamp(time.time())
def test_kind():
    assert calc.year(0) and isinstance(datetime.datetime.now(), datetime.date)
def test_nothing_of_it():
    assert calc.add(1, 1) == 2
"""
THOUGHT_OUT = """
from calc import add
def test_sum_of_three():
    assert add(1, 2) == 3
def test_sum_is_five():
    assert add(2, 2) == 5
"""


def test_only_what_stays_so_everywhere_is_offered(tmp_path: Path) -> None:
    """What fails under the project's settings, on another day, in another zone or at all is left out.

    Of what the code was seen to do it is listed with its function; of what a model thought out it is a suspected bug.
    """
    root = project(tmp_path, {"pyproject.toml": "", "calc.py": DAY, "conftest.py": STRICT, "tests/test_own.py": ""})
    seen = SEEN.format(year=datetime.datetime.now(datetime.UTC).year, hour=time.localtime(0).tm_hour)
    inputs: dict[str, object] = {
        "t1": {"tests": ADDED},
        "t2": {"tests": seen},
        "m1": {"tests": THOUGHT_OUT},
        "x": "no object",
    }
    made, _ = filed(root, inputs, model=True)
    assert set(made.output["left_out"]) == {"test_forbidden", "test_year", "test_zone", "test_sum_is_five"}
    assert made.output["tests"] == 4
    assert "test_add_gives" in made.output["source"]
    assert "nothing_of_it" not in made.output["source"], "it tells no mutant of its function"
    assert "is_five" not in made.output["source"]
    assert "was left out, it does not stay so" in made.output["unusable"]["calc.year"]
    (bug,) = made.findings
    said = "test_sum_is_five failed and was left out: assert 4 == 5 + where 4 = add(2, 2) + where add = calc.add"
    assert bug.message == said
    assert made.output["mutants"] == {"calc.add": [2, 2], "calc.year": [2, 2]}
    assert (bug.path, bug.line) == ("calc.py", 4)


def test_what_is_no_python_is_listed_with_its_function(tmp_path: Path) -> None:
    """And is no bug of the code."""
    made, _ = filed(project(tmp_path, {"pyproject.toml": "", "calc.py": ADD}), {"t1": {"tests": "def ("}})
    assert "not Python" in made.output["unusable"]["calc.add"]
    assert made.findings == ()


def test_code_whose_names_look_like_tests_can_be_tested(tmp_path: Path) -> None:
    """What a test file imports is not collected as a test."""
    code = (
        "def test_link(url: str) -> str:\n    return url\nclass TestBench:\n    def __init__(self, n):\n        pass\n"
    )
    root = project(tmp_path, {"pyproject.toml": "", "calc.py": code})
    source = (
        "from calc import test_link, TestBench\ndef test_it():\n    assert test_link('a') == 'a' and TestBench(1)\n"
    )
    made, _ = filed(root, {"m1": {"tests": source}}, model=True)
    assert made.output["tests"] == 1
    assert made.output["left_out"] == {}


def test_verification_is_never_taken_from_the_cache(tmp_path: Path) -> None:
    """What is offered was just run; what was tried before counts for the very same files of the project alone."""
    root = project(tmp_path, {"pyproject.toml": "", "calc.py": ADD, "rates.json": "1"})

    def tasks() -> dict[str, dict[str, object]]:
        found = survey(read_project(root))
        return {task.worker: task.context for task in make_testgen_plan(found, "unshare", model=False).tasks}

    before = tasks()
    project(root, {"rates.json": "2"})
    after = tasks()
    assert before["ghostwriter"] != after["ghostwriter"]
    assert [before[each]["changed"] for each in ("verifier", "surveyor")] == [{}, {}]


def test_tests_of_a_src_layout_run_on_a_fresh_checkout(tmp_path: Path) -> None:
    """A conftest.py beside them finds the code; plain `pytest tests` passes without installing anything."""
    root = project(tmp_path / "p", {"pyproject.toml": "", "src/calc/__init__.py": ADD})
    place = place_for(read_project(root), default_folder(root), ["calc"])
    writer = FileWriter(default_folder(root), place.taken, place.conftest)
    writer.write(place.names["calc"], ADDED)
    assert writer.conftest == default_folder(root) / "conftest.py"
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize(
    ("files", "conftest", "needs"),
    [
        ({}, True, ()),
        ({"pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['src']\n"}, False, ()),
        ({"pytest.ini": "[pytest]\npythonpath = src\n"}, False, ()),
        ({"tests/generated/conftest.py": ""}, False, ("src",)),
        ({"tests/test_a.py": "from conftest import helper\n"}, False, ("src",)),
    ],
)
def test_a_conftest_is_written_only_where_it_helps(
    tmp_path: Path, files: dict[str, str], conftest: bool, needs: tuple[str, ...]
) -> None:
    """Not where the settings find the code, where there is one, or where another could be taken for it."""
    root = project(tmp_path, {"pyproject.toml": "", "src/calc.py": ADD, **files})
    place = place_for(read_project(root), default_folder(root), ["calc"])
    assert (bool(place.conftest), place.needs) == (conftest, needs)


def test_a_default_folder_that_leads_out_of_the_project_is_refused(tmp_path: Path) -> None:
    """A link in a project must not choose where files are written."""
    root = project(tmp_path / "p", {"tests/test_a.py": ""})
    (tmp_path / "out").mkdir()
    (root / "tests" / "generated").symlink_to(tmp_path / "out")
    with pytest.raises(UsageError, match="leads out of the project"):
        default_folder(root)


def test_tests_outside_of_the_project_say_what_they_need(tmp_path: Path) -> None:
    """The project's settings do not put the code on the path there, whatever they say."""
    settings = "[tool.pytest.ini_options]\npythonpath = ['src']\n"
    root = project(tmp_path / "p", {"pyproject.toml": settings, "src/calc.py": ADD})
    place = place_for(read_project(root), tmp_path / "out", ["calc"])
    assert (place.conftest, place.needs) == ("", ("src",))
