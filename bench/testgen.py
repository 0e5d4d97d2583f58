"""Packages nobody here wrote, without their tests -> how good the tests are that testgen writes for them.

    python -m bench.testgen [NAME==VERSION...] [--folder DIR]

The source of each package is taken from the index, its tests are removed, and `chargehand testgen` runs on it without
a model. Printed for each: whether all offered tests pass on a fresh copy, how many mutants they kill in the functions
that got tests, how many properties can only fail by an exception without saying so, and every suspected bug with its
reproduction, to be read and judged. The mutants that testgen chose its tests by are counted apart from all others.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

PACKAGES = ("semver==3.1.1", "python-slugify==9.1.3", "natsort==8.4.0", "jmespath==1.1.0", "packaging==26.3")
TESTS = ("tests", "test", "testing")


class Measured(NamedTuple):
    """One package: its figures, and what to read."""

    name: str
    functions: int
    tests: int
    passed: bool
    # For each function with tests, the share killed of the handful that its tests were run on, of those that testgen
    # did not try in any way, where there are such, and of all.
    handful: list[float]
    others: list[float]
    all: list[float]
    vacuous: list[str]
    bugs: list[dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.testgen", description=__doc__)
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    parser.add_argument("--folder", type=Path, help="where the sources are kept [default: a temporary folder]")
    arguments = parser.parse_args()
    heads = ("package", "functions", "tests", "pass on a fresh copy", "handful killed", "others", "all", "vacuous")
    print(f"| {' | '.join(heads)} |")
    print("|---|---|---|---|---|---|---|---|")
    found: list[Measured] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for package in arguments.packages:
            found.append(measure(package, folder))
            print(row(found[-1]), flush=True)
    for kind in ("handful", "others", "all"):
        shares = [share for each in found for share in getattr(each, kind)]
        print(f"{kind}: median {median(shares)} over {len(shares)} functions")
    for each in found:
        for bug in each.bugs:
            print(f"\n{each.name} {bug['path']}:{bug['line']} {bug['message']}\n  {bug['suggestion']}")


def row(each: Measured) -> str:
    passed = "yes" if each.passed else "NO"
    shares = f"{median(each.handful)} | {median(each.others)} (of {len(each.others)}) | {median(each.all)}"
    return f"| {each.name} | {each.functions} | {each.tests} | {passed} | {shares} | {len(each.vacuous)} |"


def median(shares: list[float]) -> str:
    return f"{statistics.median(shares):.0%}" if shares else "none"


def measure(package: str, folder: Path) -> Measured:
    name = package.partition("==")[0]
    project, fresh = (unpack(package, folder, kind) for kind in ("tried", "fresh"))
    report = generate(project, folder / "home")
    made = [each["output"] for each in report["outcomes"] if each["worker"] == "verifier" and each["output"]]
    written = project / "tests" / "generated"
    if written.is_dir():
        shutil.copytree(written, fresh / "tests" / "generated", dirs_exist_ok=True)
    passed = pytest(fresh, "tests/generated").returncode == 0 if written.is_dir() else True
    handful = {name: score for output in made for name, score in output["mutants"].items()}
    measured = [
        {name: score for output in made if output["source"] for name, score in try_mutants(fresh, output, which)}
        for which in ("others", "all")
    ]
    shares = [[told / tried for told, tried in scores.values() if tried] for scores in (handful, *measured)]
    vacuous = [each for output in made for each in vacuous_properties(output["source"])]
    tests = sum(output["tests"] for output in made)
    return Measured(name, len(handful), tests, passed, *shares, vacuous, report["findings"])


def unpack(package: str, folder: Path, kind: str) -> Path:
    """The source of the package without its tests."""
    name = package.partition("==")[0].replace("-", "_")
    if not (archives := list(folder.glob(f"{name}-*.tar.gz"))):
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--no-binary",
            ":all:",
            "-d",
            str(folder),
        ]
        subprocess.run([*command, package], check=True, capture_output=True)
        archives = list(folder.glob(f"{name}-*.tar.gz"))
    target = folder / kind / name
    shutil.rmtree(target, ignore_errors=True)
    with tarfile.open(archives[0]) as archive:
        archive.extractall(target, filter="data")
    (root,) = target.iterdir()
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_dir() and path.name in TESTS:
            shutil.rmtree(path)
        elif path.is_file() and (path.name.startswith("test_") or path.name in ("conftest.py", "tox.ini")):
            path.unlink()
    return root


def generate(project: Path, home: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "chargehand", "testgen", str(project), "--json", "-q"]
    env = os.environ | {"CHARGEHAND_HOME": str(home)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def pytest(fresh: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *arguments]
    return subprocess.run(command, cwd=fresh, env=os.environ | env, capture_output=True, text=True, check=False)


def try_mutants(fresh: Path, output: dict[str, Any], which: str) -> list[tuple[str, list[int]]]:
    """For each function with tests, how many mutants its file's tests kill: `all`, or `others` than testgen tried."""
    tree = ast.parse(output["source"])
    tests = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    order = [
        {"module": output["module"], "name": name.removeprefix(f"{output['module']}."), "tests": tests}
        for name in output["mutants"]
    ]
    with tempfile.TemporaryDirectory() as folder:
        wanted, result = Path(folder, "order.json"), Path(folder, "result.jsonl")
        wanted.write_text(json.dumps(order), encoding="utf-8")
        env = {"TESTGEN_MUTANTS": str(wanted), "TESTGEN_RESULT": str(result), "TESTGEN_MEASURE": which}
        plugin = ("-p", "chargehand.apps.testgen.in_sandbox.pytest_mutants")
        pytest(fresh, *plugin, f"tests/generated/{output['file']}", **env)
        notes = [json.loads(line) for line in result.read_text(encoding="utf-8").splitlines()]
    return [(note["target"], [note["killed"], note["mutants"]]) for note in notes if "mutants" in note]


def vacuous_properties(source: str) -> list[str]:
    """Tests with generated inputs that assert nothing and do not say that they are smoke tests."""
    found: list[str] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and any("given(" in ast.unparse(each) for each in node.decorator_list):
            asserts = any(isinstance(each, ast.Assert) for each in ast.walk(node))
            found += [] if asserts or node.name.startswith("test_smoke_") else [node.name]
    return found


if __name__ == "__main__":
    main()
