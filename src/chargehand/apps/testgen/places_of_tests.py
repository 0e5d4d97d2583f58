"""A project and a folder for its tests become the names of the test files, and the other files they need.

Two test files with the same name cannot be collected together, and a test must find the code by itself.
"""

from __future__ import annotations

import ast
import configparser
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from chargehand.apps.testgen.names import imports
from chargehand.apps.testgen.project import Project, Skip, parse
from chargehand.values.base import Value

# The folder in the copy for tests that will be written outside the project.
ELSEWHERE = "chargehand_generated"
CONFTEST = "conftest.py"


# How much of a project's pytest settings applies to its new tests: all, all but the options it adds, or none of its
# settings, plugins and conftest files.
Under = Literal["all", "no-addopts", "none"]


class SuitePlace(Value):
    """Where a project's new tests go, and how they are run there. `folder` is relative to the project's root."""

    folder: str
    # Module -> name of its file, which no other test file has.
    names: dict[str, str]
    # A conftest.py for their folder, if they need one to find the code and there is none.
    conftest: str = ""
    # Names of test files elsewhere in the project.
    taken: tuple[str, ...] = ()
    # Folders that the tests import from and that are not on the path.
    needs: tuple[str, ...] = ()
    # The settings that work in the sandbox, and the message of pytest if not all work.
    under: Under = "all"
    refused: str = ""


def place_for(project: Project, folder: Path, modules: Sequence[str]) -> SuitePlace:
    """Names for the tests of these modules in that folder, and the other files they need."""
    at = os.path.relpath(folder.resolve(), project.root)
    inside = not at.startswith("..") and not os.path.isabs(at)
    at = Path(at).as_posix() if inside else ELSEWHERE
    taken = {Path(test).name for test in project.tests if Path(test).parent.as_posix() != at}
    elsewhere = tuple(sorted(taken))
    names: dict[str, str] = {}
    for module in modules:
        stem, number = f"test_{module.replace('.', '_')}", 1
        while (name := f"{stem}.py" if number == 1 else f"{stem}_{number}.py") in taken:
            number += 1
        names[module] = name
        taken.add(name)
    # The project's settings do not apply outside the project.
    on_path = _on_path(project.root) if inside else set[str]()
    roots = tuple(root for root in project.import_roots if root not in on_path)
    can_be_added = inside and not (folder / CONFTEST).exists() and not _import_conftest(project)
    return SuitePlace(
        folder=at,
        names=names,
        taken=elsewhere,
        conftest=_conftest(at, roots) if roots and can_be_added else "",
        needs=() if can_be_added else roots,
    )


def _conftest(folder: str, roots: Sequence[str]) -> str:
    up = 0 if folder == "." else len(Path(folder).parts)
    root = f"Path(__file__).resolve().parents[{up}]"
    lines = [f"sys.path.insert(0, str({' / '.join([root, *([repr(each)] if each else [])])}))" for each in roots]
    head = '"""Lets the tests beside it find the code without installing it."""'
    return "\n".join([head, "", "import sys", "from pathlib import Path", "", *lines, ""])


def _on_path(root: Path) -> set[str]:
    """Folders that the project's own settings of pytest put on the path."""
    found: Any = None
    try:
        if (root / "pytest.ini").is_file():
            found = _from_ini(root / "pytest.ini", "pytest")
        elif (root / "pyproject.toml").is_file() and (settings := _from_toml(root / "pyproject.toml")) is not None:
            found = settings.get("pythonpath")
        elif (root / "tox.ini").is_file():
            found = _from_ini(root / "tox.ini", "pytest")
        elif (root / "setup.cfg").is_file():
            found = _from_ini(root / "setup.cfg", "tool:pytest")
    except (OSError, ValueError, configparser.Error):
        return set()
    listed = found.split() if isinstance(found, str) else cast("list[Any]", found) if isinstance(found, list) else []
    return {"" if Path(str(each)) == Path() else Path(str(each)).as_posix() for each in listed}


def _from_ini(file: Path, section: str) -> str | None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(file.read_text(encoding="utf-8"))
    return parser.get(section, "pythonpath", fallback=None)


def _from_toml(file: Path) -> Mapping[str, Any] | None:
    data: Any = tomllib.loads(file.read_text(encoding="utf-8"))
    for part in ("tool", "pytest", "ini_options"):
        data = cast("dict[str, Any]", data).get(part) if isinstance(data, dict) else None
    return cast("dict[str, Any]", data) if isinstance(data, dict) else None


def _import_conftest(project: Project) -> bool:
    """Whether a test imports `conftest` by that name: a second one could be taken for it."""
    for path in project.tests:
        parsed = parse(project.root / path)
        if isinstance(parsed, Skip) or "conftest" not in parsed[0]:
            continue
        if any(name.partition(".")[0] == "conftest" for name in imports(cast("list[ast.AST]", [parsed[1]])).values()):
            return True
    return False
