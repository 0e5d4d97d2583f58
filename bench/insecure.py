"""Insecure samples nobody here wrote -> how many of them a review flags, beside bandit and ruff's S rules.

    python -m bench.insecure FOLDER [--half even|odd] [--clean FOLDER...] [--missed] [--false]

FOLDER holds Python files in which `# ruleid:` stands above each line that is insecure and `# ok:` above each that is
not, as in the repository semgrep/semgrep-rules. `--half` takes every second file, so that rules can be improved on one
half and measured on the other. `--clean` counts the security findings on packages that are taken for clean. Nothing of
the samples is kept.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

MARK = re.compile(r"^\s*#\s*(ruleid|ok)\s*:")
SECURITY = re.compile(r"/security/|/crypto|/jwt|/audit/|/deserialization/")
Place = tuple[str, int, int]


class Sample(NamedTuple):
    """A marked line up to the end of its statement, and the lines that it gets its values from or gives them to."""

    path: str
    first: int
    last: int
    also: tuple[tuple[int, int], ...]
    insecure: bool


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.insecure", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=("even", "odd"))
    parser.add_argument("--clean", nargs="*", type=Path, default=[])
    parser.add_argument("--missed", action="store_true", help="print what the review does not flag")
    parser.add_argument("--false", action="store_true", dest="wrong", help="print what it flags though it is marked ok")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "code")
        samples = copy_samples(arguments.folder, root, arguments.half)
        # Elsewhere: installed packages are vendored code where they are.
        packages = [Path(folder, "clean", each.name) for each in arguments.clean]
        for each, copy in zip(arguments.clean, packages, strict=True):
            shutil.copytree(each, copy, ignore=shutil.ignore_patterns("__pycache__"))
        tools = {"chargehand": review, "bandit": bandit, "ruff S": ruff}
        found = {name: list(tool(root)) for name, tool in tools.items()}
        bad, good = ([each for each in samples if each.insecure is kind] for kind in (True, False))
        print(f"| tool | of {len(bad)} insecure flagged | of {len(good)} marked ok flagged | on clean packages |")
        print("|---|---|---|---|")
        for name, tool in tools.items():
            clean = sum(len(list(tool(each))) for each in packages) if packages else "-"
            print(f"| {name} | {len(hit(bad, found[name]))} | {len(hit(good, found[name]))} | {clean} |", flush=True)
        if arguments.missed:
            flagged = hit(bad, found["chargehand"])
            print_samples(root, [each for each in bad if each not in flagged])
        if arguments.wrong:
            print_samples(root, hit(good, found["chargehand"]))


def copy_samples(folder: Path, root: Path, half: str | None) -> list[Sample]:
    """The marked lines of the files that Python can parse, copied without their marks: a tool may not see them."""
    samples: list[Sample] = []
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        side = "even" if sha256(name.encode()).digest()[0] % 2 == 0 else "odd"
        text = path.read_text(encoding="utf-8", errors="replace")
        # In `*.fixed.py` the marks are above what was corrected.
        if (
            (half and side != half)
            or name.endswith(".fixed.py")
            or not SECURITY.search(f"/{name}")
            or "ruleid" not in text
        ):
            continue
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        # A neutral name: in a file called test_*.py less is reported.
        own = f"{sha256(name.encode()).hexdigest()[:10]}.py"
        samples += marked(own, text, tree)
        (root / own).parent.mkdir(parents=True, exist_ok=True)
        plain = "\n".join("#" if MARK.match(line) else line for line in text.split("\n"))
        (root / own).write_text(plain, encoding="utf-8")
    return samples


def marked(path: str, text: str, tree: ast.Module) -> Iterator[Sample]:
    statements = {node.lineno: node for node in reversed(list(ast.walk(tree))) if isinstance(node, ast.stmt)}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not (mark := MARK.match(line)):
            continue
        at = number + 1
        while at <= len(lines) and (not lines[at - 1].strip() or lines[at - 1].lstrip().startswith("#")):
            at += 1
        node = statements.get(at)
        around = [each for each in functions if each.lineno < at <= (each.end_lineno or 0)]
        also = tuple(related(node, around[-1])) if node is not None and around and mark[1] == "ruleid" else ()
        yield Sample(path, at, max(end_of(node), at), also, mark[1] == "ruleid")


def related(node: ast.stmt, function: ast.AST) -> Iterator[tuple[int, int]]:
    """Where the same defect may be reported as well.

    The statements before it that make its values, and for one that only reads a request, those after it that use them.
    """
    used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
    made = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    reads = isinstance(node, ast.Assign) and "request" in ast.unparse(node.value)
    for each in ast.walk(function):
        if not isinstance(each, ast.stmt) or each is function:
            continue
        names = {name.id: name.ctx for name in ast.walk(each) if isinstance(name, ast.Name)}
        makes = isinstance(each, ast.Assign) and any(isinstance(names.get(name), ast.Store) for name in used)
        if (each.lineno < node.lineno and makes) or (each.lineno > node.lineno and reads and made & names.keys()):
            yield each.lineno, end_of(each)


def end_of(node: ast.stmt | None) -> int:
    """The last line of a statement; of one that holds others, of its head."""
    if node is None:
        return 0
    inner = [each.lineno for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
    return max(min(inner) - 1 if inner else node.end_lineno or node.lineno, node.lineno)


def hit(samples: Iterable[Sample], places: Iterable[Place]) -> list[Sample]:
    by_path: dict[str, list[tuple[int, int]]] = {}
    for path, first, last in places:
        by_path.setdefault(path, []).append((first, last))
    return [
        each
        for each in samples
        if any(
            first <= end and start <= last
            for first, last in by_path.get(each.path, ())
            for start, end in ((each.first, each.last), *each.also)
        )
    ]


def review(root: Path) -> Iterator[Place]:
    """Findings of security at the default confidence."""
    from chargehand.apps.review.analyzers.categories import CATEGORIES

    names = list(CATEGORIES)
    security = set(names[: names.index("assert-misuse")])
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "chargehand", "-q", "review", str(root), "--format", "json", "--all"]
        report = ask(command, os.environ | {"CHARGEHAND_HOME": home})
        # Of many alike in a file the review shows the first and counts the others.
        counted = [each for each in report["data"]["left_out"] if each["why"].startswith("like ")]
        for each in (*report["findings"], *counted):
            if each["category"] in security:
                yield each["path"], each["line"], each.get("end_line") or each["line"]


def bandit(root: Path) -> Iterator[Place]:
    for each in ask([sys.executable, "-m", "bandit", "-q", "-r", str(root), "-f", "json"])["results"]:
        path = os.path.relpath(each["filename"], root)
        yield path, each["line_number"], max(each["line_range"])


def ruff(root: Path) -> Iterator[Place]:
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--exit-zero", "--select", "S"]
    for each in ask([*command, "--output-format", "json", str(root)]):
        yield os.path.relpath(each["filename"], root), each["location"]["row"], each["end_location"]["row"]


def ask(command: list[str], env: dict[str, str] | None = None) -> Any:
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def print_samples(root: Path, samples: Iterable[Sample]) -> None:
    for each in samples:
        lines = (root / each.path).read_text(encoding="utf-8").split("\n")
        print(f"\n{each.path}:{each.first}")
        print("\n".join(f"    {line}" for line in lines[max(each.first - 4, 0) : each.last]))


if __name__ == "__main__":
    main()
