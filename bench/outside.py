"""Git repositories nobody here wrote -> what a review says about their recent commits, to be read and judged.

    python -m bench.outside REPOSITORY... [--commits 30] [--lines 1] [--read 60] [-o FILE]

Each commit is checked out and reviewed against its parent, without a model, at the default confidence. With --lines,
commits in a row that change so many lines are reviewed as one change, as those of a release would be: of a quiet
history, a hundred thousand lines are needed for enough findings to read. Printed: findings for 1,000 changed lines, by
repository and category. `-o` writes a random choice of findings with the lines around them as a list to fill in
verdicts. Nothing of the repositories is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

SUFFIXES = (".py", ".pyi", ".js", ".ts", ".go", ".rs", ".sh", ".yml", ".yaml", ".toml", ".cfg", ".html", ".ipynb")
# Whatever else a review reads.
SETTINGS = (".ini", ".json", ".md", ".txt", "Dockerfile", ".flake8", "pylintrc")
# Larger commits are moves, reformatting or vendored code.
MOST_LINES = 2_000
AROUND = 6


class Read(NamedTuple):
    """One finding of one commit, with the code it is about."""

    repository: str
    commit: str
    finding: dict[str, Any]
    lines: str


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.outside", description=__doc__)
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--commits", type=int, default=30)
    parser.add_argument("--lines", type=int, default=1)
    parser.add_argument("--read", type=int, default=60)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    found: list[Read] = []
    print("| repository | changes | changed lines | findings | for 1,000 lines |")
    print("|---|---|---|---|---|")
    total = 0
    for repository in arguments.repositories:
        try:
            reads, commits, lines = review_history(repository, arguments.commits, arguments.lines)
        except subprocess.CalledProcessError as error:
            print(f"| {name_of(repository)} | cannot be cloned: {error.stderr[-80:]!r} | | | |", flush=True)
            continue
        found += reads
        total += lines
        print(f"| {name_of(repository)} | {commits} | {lines:,} | {per_thousand(len(reads), lines)} |", flush=True)
    print(f"| all | | {total:,} | {per_thousand(len(found), total)} |\n")
    for category, number in Counter(str(each.finding["category"]) for each in found).most_common():
        print(f"{number:5} {category}")
    if arguments.output:
        chosen = random.Random(1).sample(found, min(arguments.read, len(found)))
        arguments.output.write_text("\n".join(map(as_text, chosen)), encoding="utf-8")


def per_thousand(findings: int, lines: int) -> str:
    return f"{findings} | {1000 * findings / max(lines, 1):.2f}"


def review_history(repository: Path, number: int, lines_each: int) -> tuple[list[Read], int, int]:
    """The findings of the newest parts of a history, how many parts those are, and how many lines of code."""
    found: list[Read] = []
    parts = lines = 0
    with tempfile.TemporaryDirectory() as folder:
        tree, home = Path(folder, "tree"), Path(folder, "home")
        git(Path(folder), "clone", "-q", "-n", "--shared", str(repository.resolve()), str(tree))
        # Copies often lack large files, which nobody reviews: only text that may be code is checked out.
        git(tree, "sparse-checkout", "set", "--no-cone", *(f"*{suffix}" for suffix in (*SUFFIXES, *SETTINGS)))
        for tip, base, changed in history_parts(tree, lines_each):
            if parts == number:
                break
            try:
                git(tree, "checkout", "-q", "--force", tip)
            except subprocess.CalledProcessError:
                continue  # a partial clone lacks a file of it
            findings = review_part(tree, base, home)
            if findings is None:
                continue
            parts, lines = parts + 1, lines + changed
            found += [Read(name_of(repository), tip[:10], each, excerpt(tree, each)) for each in findings]
    return found, parts, lines


def history_parts(tree: Path, lines_each: int) -> Iterator[tuple[str, str, int]]:
    """Newest first: the last commit of a part, the commit before it, and how many lines of code it changes.

    A part is one commit, or as many in a row as change `lines_each` lines. It ends before a commit that is too large.
    """
    command = ["git", "log", "--first-parent", "-m", "--numstat", "-n", "3000", "--format=commit %H"]
    # A partial clone lacks files of older commits: what is known up to there counts.
    log = subprocess.run(command, cwd=tree, capture_output=True, check=False).stdout.decode("utf-8", "replace")
    tip, changed = "", 0
    for text in log.split("commit ")[1:]:
        commit, _, rest = text.partition("\n")
        rows = [row.split("\t") for row in rest.splitlines() if row.count("\t") == 2]
        code = sum(int(added) + int(removed) for added, removed, path in rows if is_code(added, path))
        all_text = sum(int(added) + int(removed) for added, removed, _ in rows if added != "-")
        if changed and (all_text > MOST_LINES or changed >= lines_each):
            yield tip, commit, changed
            tip, changed = "", 0
        if all_text <= MOST_LINES:
            tip, changed = tip or commit, changed + code
        else:
            tip, changed = "", 0


def is_code(added: str, path: str) -> bool:
    return added != "-" and path.endswith(SUFFIXES)


def review_part(tree: Path, base: str, home: Path) -> list[dict[str, Any]] | None:
    """None where git lacks a file of it."""
    command = [sys.executable, "-m", "chargehand", "review", str(tree), "--diff", base, "--format", "json", "-q"]
    env = os.environ | {"CHARGEHAND_HOME": str(home)}
    done = subprocess.run(command, cwd=tree.parent, env=env, capture_output=True, text=True, check=False)
    if done.returncode == 2 and "cannot be read" in done.stderr:
        return None
    try:
        return json.loads(done.stdout)["findings"]
    except (json.JSONDecodeError, KeyError):
        sys.exit(f"{tree}: {' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def excerpt(tree: Path, finding: dict[str, Any]) -> str:
    try:
        lines = (tree / finding["path"]).read_text(encoding="utf-8", errors="replace").split("\n")
    except (OSError, KeyError, TypeError):
        return ""
    at = finding.get("line") or 1
    first = max(at - 1 - AROUND, 0)
    return "\n".join(
        f"    {number:5} {line[:160]}" for number, line in enumerate(lines[first : at + AROUND], first + 1)
    )


def as_text(read: Read) -> str:
    finding = read.finding
    place = f"{finding.get('path')}:{finding.get('line')}"
    head = f"## {read.repository} {read.commit} {place} {finding.get('category')} {finding.get('confidence')}"
    return f"{head}\n{finding.get('message')}\nverdict:\n\n{read.lines}\n"


def name_of(repository: Path) -> str:
    path = repository.resolve()
    return (path.parent if path.name in ("repo", ".git") else path).name


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


if __name__ == "__main__":
    main()
