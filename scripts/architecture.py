"""The package's source -> a table of its size and shape in docs/explanation/architecture.md.

    python -m scripts.architecture            print the table
    python -m scripts.architecture --write    put it into the page

Most figures come from the syntax trees and the import graph. The three paths are measured: a scripted run, one model
call of it, and a review of a small file, each in a process with a profiler that counts the modules of chargehand that
are passed and the deepest stack of their frames.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "chargehand"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
BEGIN, END = "<!-- table: scripts/architecture.py -->", "<!-- end of table -->"
# The same figures of the source before its modules were put into folders by noun (ADR 6).
BEFORE = {
    "modules": "327",
    "lines": "44,300",
    "import layers": "43",
    "loose modules at the root": "43",
    "modules in import cycles, lazy imports included": "8",
    "longest chain of imports": "34",
    "functions and methods": "2,784",
    "of these named by a bare participle": "355",
    "of these over 60 lines": "7",
    "public names at the top of modules": "1,043",
    "exported by the package": "9",
    "public class names used twice": "23",
    "module names used in several folders": "25",
    "largest module": "engines.local, 576 lines",
    "largest class": "engines.local.LocalEngine, 480 lines",
    "path of one `run`": "164 modules, 31 frames deep",
    "path of one model call": "32 modules, 15 frames deep",
    "path of one `review`": "190 modules, 19 frames deep",
}
# Irregular participles; regular ones end in -ed.
IRREGULAR = frozenset({
    "begun", "bound", "broken", "brought", "built", "caught", "chosen", "dealt", "drawn", "driven", "fallen", "felt",
    "forgotten", "found", "given", "gone", "grown", "heard", "held", "hidden", "kept", "known", "laid", "led", "left",
    "lent", "lost", "made", "meant", "met", "paid", "said", "seen", "sent", "shown", "sought", "spent", "spoken",
    "stood", "taken", "taught", "told", "thought", "thrown", "understood", "written",
})  # fmt: skip
# Words that only end like one, and constructors of outcomes, which are named by their status.
NOT_PARTICIPLES = frozenset({"need", "feed", "seed", "speed", "embed", "proceed", "failed", "escalated", "skipped"})
Function = ast.FunctionDef | ast.AsyncFunctionDef


def static_figures() -> dict[str, str]:
    """Size and shape, from the text of the modules."""
    paths = _module_paths()
    texts = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    lines = {name: len(text.splitlines()) for name, text in texts.items()}
    functions = [node for tree in trees.values() for node in _functions(tree)]
    classes = {
        f"{name}.{node.name}": _length(node)
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    public = [node for tree in trees.values() for node in tree.body if _is_public(node)]
    class_names = Counter(node.name for node in public if isinstance(node, ast.ClassDef))
    bases = Counter(path.stem for path in paths.values() if path.stem != "__init__")
    cyclic, longest = _import_shape()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {
        "modules": f"{len(paths)}",
        "lines": f"{sum(lines.values()):,}",
        "import layers": f"{len(project['tool']['importlinter']['contracts'][0]['layers'])}",
        "loose modules at the root": f"{len({path.stem for path in SOURCE.glob('*.py')} - {'__init__', '__main__'})}",
        "modules in import cycles, lazy imports included": f"{cyclic}",
        "longest chain of imports": f"{longest}",
        "functions and methods": f"{len(functions):,}",
        "of these named by a bare participle": f"{sum(_is_bare_participle(each.name) for each in functions)}",
        "of these over 60 lines": f"{sum(_length(each) > 60 for each in functions)}",
        "public names at the top of modules": f"{len(public):,}",
        "exported by the package": f"{len(_exports(trees['']))}",
        "public class names used twice": f"{sum(count > 1 for count in class_names.values())}",
        "module names used in several folders": f"{sum(count > 1 for count in bases.values())}",
        "largest module": _largest(lines),
        "largest class": _largest(classes),
    }


def measured_paths() -> dict[str, str]:
    """How many modules three ways through the code pass, and how deep."""
    script = ROOT / "src" / "chargehand" / "apps" / "demo" / "tutorial.json"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sample.py").write_text("def f(x=[]):\n    return eval(x)\n", encoding="utf-8")
        run = _profile_command(folder, ["run", "Describe Oslo", "--model", f"scripted:{script}", "-q"])
        review = _profile_command(folder, ["review", "sample.py", "-q"])
    return {
        "path of one `run`": f"{run['modules']} modules, {run['deepest']} frames deep",
        "path of one model call": f"{run['call_modules']} modules, {run['call_deepest']} frames deep",
        "path of one `review`": f"{review['modules']} modules, {review['deepest']} frames deep",
    }


def table(now: dict[str, str]) -> str:
    """The table of the page, with its markers."""
    rows = (f"| {name} | {BEFORE.get(name, '')} | {value} |" for name, value in now.items())
    return "\n".join([BEGIN, "| | before | now |", "|---|---|---|", *rows, END])


def _module_paths() -> dict[str, Path]:
    """Names within the package -> files. Teams are data."""
    files = {path.relative_to(SOURCE).with_suffix("").parts: path for path in sorted(SOURCE.rglob("*.py"))}
    return {
        ".".join(part for part in parts if part != "__init__"): path
        for parts, path in files.items()
        if parts[0] != "teams"
    }


def _functions(tree: ast.Module) -> Iterator[Function]:
    """Functions and methods that are called as such: properties read as nouns."""
    for node in ast.walk(tree):
        if isinstance(node, Function) and not any("property" in ast.unparse(each) for each in node.decorator_list):
            yield node


def _is_public(node: ast.stmt) -> bool:
    return isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_")


def _is_bare_participle(name: str) -> bool:
    word = name.strip("_")
    if "_" in word or word in NOT_PARTICIPLES:
        return False
    return word in IRREGULAR or (word.endswith("ed") and len(word) > 4)


def _length(node: Function | ast.ClassDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _largest(lengths: dict[str, int]) -> str:
    name = max(lengths, key=lambda each: lengths[each])
    return f"{name}, {lengths[name]} lines"


def _exports(tree: ast.Module) -> Sequence[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return []


def _import_shape() -> tuple[int, int]:
    """How many modules are in import cycles, and the most modules on one path of imports, a cycle counted whole."""
    graph = grimp.build_graph("chargehand")
    # The package itself loads its names at first use: no path goes through it.
    for imported in graph.find_modules_directly_imported_by("chargehand"):
        graph.remove_import(importer="chargehand", imported=imported)
    for importer in graph.find_modules_that_directly_import("chargehand"):
        graph.remove_import(importer=importer, imported="chargehand")
    above = {name: graph.find_downstream_modules(name) for name in graph.modules}
    cycle = {name: frozenset({name, *(each for each in above[name] if name in above[each])}) for name in above}
    imports: dict[frozenset[str], set[frozenset[str]]] = {each: set() for each in cycle.values()}
    for name in above:
        direct = {cycle[each] for each in graph.find_modules_directly_imported_by(name)}
        imports[cycle[name]] |= direct - {cycle[name]}
    chain: dict[frozenset[str], int] = {}
    for each in TopologicalSorter(imports).static_order():
        chain[each] = len(each) + max((chain[other] for other in imports[each]), default=0)
    return sum(len(each) for each in imports if len(each) > 1), max(chain.values())


PROFILE = """
import json, os, sys, threading
HERE = os.path.join("src", "chargehand") + os.sep
seen, call_seen, deepest, call_deepest, places = set(), set(), 0, 0, {}
def place(code):
    known = places.get(code)
    if known is None:
        _, found, module = code.co_filename.rpartition(HERE)
        known = places[code] = module if found and code.co_name != "<module>" and "teams" not in module else ""
    return known
def profile(frame, event, arg):
    global deepest, call_deepest
    module = place(frame.f_code) if event == "call" else ""
    if not module:
        return
    seen.add(module)
    depth, call_depth = 0, None
    while frame is not None:
        if place(frame.f_code):
            depth += 1
            if frame.f_code.co_qualname == "LocalEngine.perform":
                call_depth = depth
        frame = frame.f_back
    deepest = max(deepest, depth)
    if call_depth is not None:
        call_seen.add(module)
        call_deepest = max(call_deepest, call_depth)
from chargehand.cli import main
threading.setprofile(profile)
sys.setprofile(profile)
try:
    main(sys.argv[2:])
except SystemExit:
    pass
finally:
    sys.setprofile(None)
    figures = {"modules": len(seen), "deepest": deepest, "call_modules": len(call_seen), "call_deepest": call_deepest}
    with open(sys.argv[1], "w") as file:
        json.dump(figures, file)
"""


def _profile_command(folder: str, arguments: Sequence[str]) -> dict[str, int]:
    out = Path(folder) / "figures.json"
    environment = {**os.environ, "CHARGEHAND_HOME": f"{folder}/home", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", PROFILE, str(out), *arguments]
    # A review that finds something ends with another code than 0.
    subprocess.run(
        command, cwd=folder, env=environment, check=False, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )
    return json.loads(out.read_text(encoding="utf-8"))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--write", action="store_true", help="put the table into the page")
    made = table({**static_figures(), **measured_paths()})
    if not options.parse_args().write:
        print(made)
        return
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: made, page, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main()
