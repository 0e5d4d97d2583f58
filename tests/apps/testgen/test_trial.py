"""A project's pytest settings are tried once: what of them works in the sandbox, and what is said of the rest."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from chargehand.apps.testgen.places_of_tests import SuitePlace
from chargehand.apps.testgen.project import read_project
from chargehand.apps.testgen.sandbox import room
from chargehand.apps.testgen.testgen_plan import place_of, survey
from chargehand.apps.testgen.try_settings import describe_settings, try_settings
from tests.apps.testgen.rooms import means, project

TABLE = "[tool.pytest.ini_options]\n"
GATE = "import pytest\n@pytest.hookimpl(trylast=True)\ndef pytest_sessionfinish(session):\n    session.exitstatus = 1\n"


def tried(folder: Path, files: dict[str, str]) -> SuitePlace:
    root = project(folder, {"pyproject.toml": "", "mine.py": "def f(n: int) -> int:\n    return n + 1\n", **files})
    found, chosen = survey(read_project(root)), means()

    async def inside() -> SuitePlace:
        with room(root, chosen) as sealed:
            return await try_settings(sealed, found.project.import_roots, place_of(found))

    return asyncio.run(inside())


def test_settings_that_work_are_kept(tmp_path: Path) -> None:
    """And nothing is said but what the tests import from, where the project's own conftest.py needs it installed."""
    settings = TABLE + "addopts = ['--strict-markers', '--import-mode=importlib']\nfilterwarnings = ['error']\n"
    place = tried(tmp_path, {"pyproject.toml": settings, "tests/conftest.py": "import mine\n", "tests/test_a.py": ""})
    assert (place.under, place.needs, describe_settings(place)) == ("all", ("",), "")


@pytest.mark.parametrize(
    ("files", "under", "said"),
    [
        pytest.param(
            {"pyproject.toml": TABLE + "addopts = '--of-no-plugin'\n"},
            "no-addopts",
            "arguments: --of-no-plugin",
            id="option",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            {"pyproject.toml": TABLE + "addopts = ['-p', 'nope']\n"},
            "no-addopts",
            "No module named 'nope'",
            id="plugin",
        ),
        pytest.param(
            {"pyproject.toml": TABLE + "addopts = '--strict-config'\nnope = 1\n"},
            "no-addopts",
            "option: nope",
            id="strict",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            {"pyproject.toml": TABLE + "filterwarnings = ['error']\nnope = 1\n"},
            "none",
            "option: nope",
            id="warning",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            {"pyproject.toml": TABLE + "addopts = ['-p', 'gate']\n", "gate.py": GATE},
            "no-addopts",
            "ended with code 1",
            id="gate",
        ),
        pytest.param({"tests/conftest.py": "import nope\n"}, "none", "No module named 'nope'", id="conftest"),
        pytest.param(
            {"pyproject.toml": TABLE + "minversion = '99'\n"},
            "none",
            "requires pytest-99",
            id="version",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_settings_that_do_not_work_are_left_aside_with_what_pytest_says(
    tmp_path: Path, files: dict[str, str], under: str, said: str
) -> None:
    """As few as possible: the options it adds, else all of them; a gate that fails a run of passed tests counts too."""
    if "gate.py" in files:
        files = {**files, "pyproject.toml": files["pyproject.toml"] + "pythonpath = ['.']\n"}
    place = tried(tmp_path, files)
    assert (place.under, said in place.refused) == (under, True), place.refused
    assert place.refused in describe_settings(place)
