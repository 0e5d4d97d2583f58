"""Facts about the project itself: its size, its licence, what it depends on and what its files may say."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]

# Put together from parts, so that this file does not match itself.
MACHINE_PATHS = [
    r"(?<![\w.~-])/" + r"root/",
    r"(?<![\w.~-])/" + r"home/\w+/",
    r"(?<![\w.~-])/" + r"Users/\w+/",
    r"(?<![\w.~-])/" + r"work/(?:main|shared)\b",
    r"\b[A-Z]:\\" + r"Users\\",
]
REGISTRY_HOSTS = [
    r"\bpypi" + r"\.org\b",
    r"\bpython" + r"hosted\.org\b",
    r"\bnpmjs" + r"\.(?:org|com)\b",
    r"--(?:extra-)?index" + r"-url\b",
]
FORBIDDEN = re.compile("|".join(MACHINE_PATHS + REGISTRY_HOSTS))


def project_files() -> list[Path]:
    """Every file git knows or would add."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def forbidden_lines(paths: list[Path]) -> Iterator[str]:
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if found := FORBIDDEN.search(line):
                yield f"{path.relative_to(ROOT)}:{number}: {found.group()}"


def closure(name: str) -> set[str]:
    """The distributions a plain install of `name` brings, itself included, for this interpreter and system."""
    seen: set[tuple[str, str]] = set()
    todo = [(canonicalize_name(name), "")]
    while todo:
        item = todo.pop()
        if item in seen:
            continue
        seen.add(item)
        distribution, extra = item
        for line in metadata.requires(distribution) or []:
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                todo += [(canonicalize_name(needed.name), wanted) for wanted in ("", *needed.extras)]
    return {distribution for distribution, _ in seen}


def pyproject() -> dict[str, dict[str, object]]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_a_plain_install_is_at_most_twenty_distributions() -> None:
    """`pip install chargehand` brings at most 20 distributions, itself included."""
    names = closure("chargehand")
    assert {"chargehand", "aiohttp", "pydantic", "click", "rich"} <= names
    assert len(names) <= 20, sorted(names)


def test_no_file_names_a_machine_or_a_registry() -> None:
    """No file holds an absolute path of a developer's machine or the host of a package registry."""
    assert list(forbidden_lines(project_files())) == []


@pytest.mark.parametrize(
    "line",
    [
        "see /" + "root/.cache",
        '"/' + 'home/ada/project"',
        "open(/" + "Users/ada/x)",
        "url = https://pypi" + ".org/simple",
        "https://files.python" + "hosted.org/x.whl",
        "registry.npmjs" + ".org",
    ],
)
def test_machine_paths_and_registries_are_recognised(line: str) -> None:
    """The patterns find what they are for."""
    assert FORBIDDEN.search(line)


def test_the_readme_is_under_150_lines() -> None:
    """The README fits in a few screens."""
    readme = ROOT / "README.md"
    if not readme.exists():
        pytest.skip("no README")
    assert len(readme.read_text(encoding="utf-8").splitlines()) < 150


def test_the_licence_is_apache_2() -> None:
    """The licence text and the metadata agree on Apache-2.0."""
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert re.search(r"Apache License\s+Version 2\.0, January 2004", text)
    assert "END OF TERMS AND CONDITIONS" in text
    assert pyproject()["project"]["license"] == "Apache-2.0"


def test_every_dependency_is_pinned_by_name_and_version_only() -> None:
    """constraints.txt pins every distribution of a plain install, with neither address nor hash."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line)] == []
    pinned = {canonicalize_name(line.split("==")[0]) for line in pins}
    assert closure("chargehand") - pinned == {"chargehand"}


def test_the_package_is_typed() -> None:
    """Type checkers read chargehand's annotations."""
    assert (ROOT / "src" / "chargehand" / "py.typed").is_file()


def test_the_pages_and_ci_name_the_targets_there_are() -> None:
    """No page names a target the Makefile lacks, the README says how to run and how to test, and CI is `make test`."""
    targets = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {
        page: set(re.findall(r"\bmake ([a-z]+)(?=\s+#|`|$)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE))
        for page in ("README.md", "CONTRIBUTING.md")
    }
    assert all(names <= targets for names in named.values()), named
    assert {"run", "test"} <= named["README.md"]
    assert {"check", "test", "soak", "coverage", "lint", "run"} <= named["CONTRIBUTING.md"]
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").endswith("\nexec make test\n")
