"""A path becomes a project: its root, its modules by import name, its test files.

Nothing is imported or run: files are read and parsed.
"""

from __future__ import annotations

import ast
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chargehand.errors import UsageError

_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_PASSED_OVER = frozenset(
    {"node_modules", "__pycache__", "build", "dist", "site-packages", "docs", "examples", "benchmarks"}
)
_TEST_FOLDERS = frozenset({"tests", "test", "testing"})
_NOT_MODULES = frozenset({"setup.py", "conftest.py", "__main__.py", "noxfile.py"})
# A module of the project with one of these names would hide the one that the test tools need.
_TAKEN = sys.stdlib_module_names | {"hypothesis", "pytest", "_pytest", "coverage", "black", "pluggy"}
_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Module:
    """One file of code. `path` is relative to the project's root, `import_root` the folder its name starts from."""

    name: str
    path: str
    import_root: str
    tree: ast.Module
    source: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Something that gets no tests, and why."""

    path: str
    name: str
    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Project:
    root: Path
    modules: tuple[Module, ...]
    tests: tuple[str, ...]
    # Modules to write tests for; the others are known because these may use them.
    wanted: frozenset[str]
    skipped: tuple[Skip, ...]

    @property
    def import_roots(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(module.import_root for module in self.modules))


def read_project(path: Path) -> Project:
    """The project of a file or folder; tests are written for code under it. Raises UsageError without code."""
    path = path.expanduser().absolute()
    if not path.exists():
        raise UsageError(
            f"There is no file or folder {path}: testgen takes a Python file or a folder with Python code."
        )
    if path.is_file() and path.suffix != ".py":
        raise UsageError(f"{path} is not a Python file: testgen takes one, or a folder with Python code.")
    path = path.resolve()
    root = _root(path)
    files = sorted(_files(root))
    tests = tuple(name for name in files if is_test(name))
    modules, skipped = _modules(
        root, [name for name in files if not is_test(name) and Path(name).name not in _NOT_MODULES]
    )
    wanted = frozenset(m.name for m in modules if (root / m.path).is_relative_to(path))
    if not wanted and not any((root / skip.path).is_relative_to(path) for skip in skipped):
        raise UsageError(f"There is no Python code to test under {path}: name a package, a module or a project.")
    ours = tuple(skip for skip in skipped if (root / skip.path).is_relative_to(path))
    return Project(root, tuple(modules), tests, wanted, ours)


def is_test(name: str) -> bool:
    """Whether a file holds tests, by its name and folder."""
    *folders, file = Path(name).parts
    return file.startswith("test_") or file.endswith("_test.py") or bool(_TEST_FOLDERS.intersection(folders))


def _root(path: Path) -> Path:
    """The nearest folder with a project file, else the folder above the package, else the folder itself."""
    folder = path if path.is_dir() else path.parent
    home = Path.home()
    for candidate in (folder, *folder.parents):
        if candidate == home or candidate == Path(candidate.anchor):
            break
        if any((candidate / mark).exists() for mark in _MARKS):
            return candidate
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    return folder


def _files(root: Path) -> Iterator[str]:
    """Python files of the project; links are not followed."""
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in _PASSED_OVER and not (here / name / "pyvenv.cfg").exists()
        )
        for name in names:
            file = here / name
            if name.endswith(".py") and not file.is_symlink() and file.is_file():
                yield file.relative_to(root).as_posix()


def _modules(root: Path, files: list[str]) -> tuple[list[Module], list[Skip]]:
    modules: dict[str, Module] = {}
    skipped: list[Skip] = []
    for path in files:
        import_root, name = _import_name(root, path)
        if why := _unusable(name, modules):
            skipped.append(Skip(path, name, 1, why))
            continue
        parsed = parse(root / path)
        if isinstance(parsed, Skip):
            skipped.append(Skip(path, name, parsed.line, parsed.why))
        else:
            source, tree = parsed
            modules[name] = Module(name, path, import_root, tree, source)
    return list(modules.values()), skipped


def _import_name(root: Path, path: str) -> tuple[str, str]:
    """The folder to import from and the dotted name: `src/` holds packages, a package begins at its first folder."""
    file = Path(path)
    if file.parts[0] == "src" and len(file.parts) > 1:
        start = Path("src")
    else:
        start = file.parent
        while start != Path() and (root / start / "__init__.py").is_file():
            start = start.parent
    parts = list(file.relative_to(start).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ("" if start == Path() else start.as_posix()), ".".join(parts)


def _unusable(name: str, known: dict[str, Module]) -> str | None:
    if not name or not all(part.isidentifier() for part in name.split(".")):
        return "its name cannot be imported"
    if name.partition(".")[0] in _TAKEN:
        return f"its name clashes with the module {name.partition('.')[0]!r} that Python or the test tools need"
    if name in known:
        return f"its name clashes with {known[name].path}: both are imported as {name}"
    return None


def parse(file: Path) -> tuple[str, ast.Module] | Skip:
    """Source and tree of a file, or the reason why it has none."""
    try:
        if file.stat().st_size > _LARGEST:
            return Skip("", "", 1, f"larger than {_LARGEST >> 20} MB")
        data = file.read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
        return data.decode("utf-8-sig"), tree
    except SyntaxError as error:
        return Skip("", "", error.lineno or 1, f"syntax error: {error.msg}")
    except (ValueError, RecursionError, MemoryError):
        return Skip("", "", 1, "not readable as Python in UTF-8")
    except OSError as error:
        return Skip("", "", 1, f"cannot be read: {error.strerror}")
