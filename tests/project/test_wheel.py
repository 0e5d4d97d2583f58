"""The wheel, installed: everything a user has who never saw the checkout, from an empty folder with an empty home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from chargehand.team import shipped_teams
from tests.apps.testgen.rooms import means
from tests.counts import SOAK
from tests.pace import PATIENCE_S
from tests.project.test_docs import blocks

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "chargehand"
# The teams with commands of their own: they bring no script.
COMMANDS = ("review", "testgen")
TEAMS = [name for name in shipped_teams() if name not in COMMANDS]


@dataclass(frozen=True)
class Installed:
    """A virtual environment with the wheel, and the other environment's packages without its chargehand."""

    wheel: Path
    prefix: Path

    def run(self, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
        """The command in a folder, with an empty home and nothing of this process' environment."""
        home = folder.parent / f"{folder.name}-home"
        home.mkdir(exist_ok=True)
        env = {"PATH": f"{self.prefix / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin", "HOME": str(home), "NO_COLOR": "1"}
        return subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    def json(self, folder: Path, *command: str) -> Any:
        ended = self.run(folder, *command)
        assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
        return json.loads(ended.stdout)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Built from this checkout, without the network."""
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE_S)
    (wheel,) = folder.glob("*.whl")
    prefix = folder / "venv"
    venv.create(prefix, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(prefix / "bin" / "python")]
    install = [*pip, "install", "--quiet", "--no-deps", "--no-index", "--no-compile", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, timeout=PATIENCE_S)
    # Files in a folder that a .pth names are importable, but its own .pth files do not count: no editable install.
    (packages,) = (prefix / "lib").glob("python*/site-packages")
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    return Installed(wheel, prefix)


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def test_the_package_comes_from_where_it_was_installed(installed: Installed, empty: Path) -> None:
    """Not from the checkout: else nothing here would prove anything."""
    ended = installed.run(empty, "python", "-c", "import chargehand; print(chargehand.__file__)")
    assert Path(ended.stdout.strip()).is_relative_to(installed.prefix / "lib"), ended.stderr
    assert "site-packages" in ended.stdout


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(installed: Installed) -> None:
    """Team files, material and scripts included, byte by byte; no tests, no examples of the checkout, no links."""
    with zipfile.ZipFile(installed.wheel) as wheel:
        held = {item.filename: wheel.read(item) for item in wheel.infolist()}
        links = [item.filename for item in wheel.infolist() if item.external_attr >> 28 == 0o12]
    ours = {name: data for name, data in held.items() if ".dist-info/" not in name}
    files = [path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert ours == {path.relative_to(SOURCE.parent).as_posix(): path.read_bytes() for path in files}
    assert links == []
    assert "chargehand/py.typed" in ours
    for name in TEAMS:
        assert f"chargehand/teams/{name}/script.json" in ours
        assert any(path.startswith(f"chargehand/teams/{name}/examples/material/") for path in ours)


# Two of them in `make test`; the others run there from the checkout (tests/teams).
@pytest.mark.parametrize("name", TEAMS if SOAK else ["curriculum", "support"])
def test_a_shipped_team_is_tried_and_measured_as_teams_show_says(name: str, installed: Installed, empty: Path) -> None:
    """The printed commands work as they are: the sample to a complete answer, then every case of the evaluation."""
    shown = installed.json(empty, "chargehand", "teams", "show", name, "--json")
    assert Path(shown["material"]).is_relative_to(installed.prefix)
    run, evaluate = shown["try"]
    report = installed.json(empty, "sh", "-c", f"{run} --json")
    assert (report["status"], report["gaps"]) == ("complete", [])
    measured = installed.json(empty, "sh", "-c", f"{evaluate} --json --jobs 2")
    assert {result["error"] for result in measured["results"]} == {None}
    wrong = [result["case"] for result in measured["results"] if not result["passed"]]
    # Words alone route there, and words alone are wrong at times.
    assert [case for case in wrong if name != "support" or not case.startswith("route")] == []
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_a_team_with_a_command_of_its_own_says_which(name: str, installed: Installed, empty: Path) -> None:
    """It brings no script and no evaluation, which is said in one line with exit code 2."""
    assert installed.json(empty, "chargehand", "teams", "show", name, "--json")["try"] == [f"chargehand {name} --help"]
    for command in (["run", "Do it", "--team", name, "--model", "scripted"], ["eval", name, "--model", "scripted"]):
        ended = installed.run(empty, "chargehand", *command)
        assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr


def test_review_works_on_a_small_repository(installed: Installed, empty: Path) -> None:
    """The analyzers are found, and what is wrong with a change is."""
    git = ("git", "-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")
    shop = empty / "shop.py"
    shop.write_text("def total(prices):\n    return sum(prices)\n", encoding="utf-8")
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "Begin")):
        assert installed.run(empty, *git, *command).returncode == 0
    shop.write_text(shop.read_text() + "\n\ndef run(text):\n    return eval(text)\n", encoding="utf-8")
    report = installed.json(empty, "chargehand", "review", "--diff", "HEAD", "--format", "json")
    assert ("shop.py", 6) in [(finding["path"], finding["line"]) for finding in report["findings"]]
    assert {outcome["status"] for outcome in report["outcomes"]} == {"done"}


def test_testgen_works_on_a_small_package(installed: Installed, empty: Path) -> None:
    """The sandbox finds its programs and the test tools; the file is written."""
    means()
    (empty / "pyproject.toml").write_text("", encoding="utf-8")
    (empty / "mine.py").write_text("def double(n: int) -> int:\n    return n * 2\n", encoding="utf-8")
    ended = installed.run(empty, "chargehand", "testgen", ".", "--out", "out")
    assert ended.returncode == 0, ended.stderr
    assert "mine.double(1) == 2" in (empty / "out" / "test_mine.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("checker", [pytest.param("mypy", marks=pytest.mark.soak), "pyright"])
def test_a_users_script_passes_strict_type_checks(checker: str, installed: Installed, empty: Path) -> None:
    """Reports, tools, options and events are typed for those who only have the wheel, and a wrong name is an error."""
    (empty / "typed_user.py").write_bytes((Path(__file__).parent / "typed_user.py").read_bytes())
    guides = ("use-from-python", "test-your-team", "coming-from", "people")
    for page in ("reference/python", *(f"how-to/{guide}" for guide in guides)):
        shown = [block.text for block in blocks(ROOT / "docs" / f"{page}.md") if block.language == "python"]
        # A block of imports alone uses none of its names.
        for number, text in enumerate(each for each in shown if "\n" in each.strip()):
            (empty / f"{Path(page).name.replace('-', '_')}_{number}.py").write_text(text, encoding="utf-8")
    python = str(installed.prefix / "bin" / "python")
    if checker == "mypy":
        pytest.importorskip("mypy")
        command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--python-executable", python]
    else:
        strict = {"typeCheckingMode": "strict", "enableTypeIgnoreComments": True}
        settings = {**strict, "reportUnnecessaryTypeIgnoreComment": True, "include": ["*.py"]}
        (empty / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
        command = [sys.executable, "-m", "basedpyright", "--pythonpath", python]
    ended = installed.run(empty, *command, *([each.name for each in empty.glob("*.py")] if checker == "mypy" else []))
    assert ended.returncode == 0, ended.stdout + ended.stderr
