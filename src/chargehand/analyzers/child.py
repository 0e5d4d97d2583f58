"""A scope becomes hits in a process of its own, which dies with its analysis; a crash there harms nothing else.

The parent sends the scope as JSON on stdin; the child answers hits as JSON on stdout. `-I` keeps the reviewed tree, the
working directory and PYTHON* variables out of what the child imports.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chargehand.analyzers.hit import Hits

if TYPE_CHECKING:
    from chargehand.analyzers import Analysis, Lens, Ranges, Scope

START = "import sys; sys.path.append(sys.argv[1]); from chargehand.analyzers.child import obey; obey(sys.argv[2])"
# Where the package is: the child may not look at PYTHONPATH.
HOME = str(Path(__file__).resolve().parents[2])
MISSING = 66
# So few files are looked at in less time than a child takes to start: analyzers share one, but for the one that takes
# long to start itself.
FEW = 20
SLOW = "bandit"
DEPTH = 5_000


@dataclass(frozen=True, slots=True)
class Order:
    """A scope as the child sees it."""

    root: Path
    files: tuple[str, ...]
    changed: dict[str, Ranges] | None
    options: dict[str, Any]

    def touched(self, path: str) -> Ranges:
        """The changed ranges of a file; nothing when a whole tree is reviewed."""
        return () if self.changed is None else self.changed.get(path, ())


async def analyze(module: str, scope: Scope, lens: Lens) -> Analysis:
    """Run `examine(order)` of an analyzer's module in a child and make findings of its hits."""
    from chargehand.analyzers import Analysis, categories, packages, process, together
    from chargehand.errors import AnalyzerFailed

    if not scope.files:
        return Analysis()
    order = _written(scope)
    if len(scope.files) <= FEW and module != SLOW and (answer := await together.ask(module, order)) is not None:
        found = Hits.from_json(json.loads(answer))
        return Analysis(categories.findings(found.hits, lens), found.notes, unchecked=found.unchecked)
    ended = await process.run(command(module), tool=module, stdin=order)
    if ended.code == MISSING:
        raise packages.missing(module)
    try:
        found = Hits.from_json(json.loads(ended.stdout))
    except (ValueError, KeyError, TypeError):
        how = f"was ended by signal {-ended.code}" if ended.code < 0 else f"ended with code {ended.code}"
        raise AnalyzerFailed(f"The analyzer {module} {how} and left no result: {ended.last_words}") from None
    return Analysis(categories.findings(found.hits, lens), found.notes, unchecked=found.unchecked)


def command(modules: str) -> list[str]:
    """Starts a child for these modules, commas between them."""
    return [sys.executable, "-I", "-c", START, HOME, modules]


def _written(scope: Scope) -> bytes:
    changed = None if scope.changed is None else {path: list(ranges) for path, ranges in scope.changed.items()}
    order = {"root": str(scope.root), "files": scope.files, "changed": changed, "options": dict(scope.options)}
    # ASCII: a file name that is no UTF-8 travels as lone surrogates.
    return json.dumps({**order, "parent": os.getpid()}).encode("ascii")


def obey(modules: str) -> None:
    """The child's side: an order on each line for each of the modules, and as many answers."""
    orders = [json.loads(line) for line in sys.stdin.buffer.read().split(b"\n")]
    _die_with(orders[0]["parent"])
    # What a tool prints must not mix with the answer.
    answer = os.dup(1)
    os.dup2(2, 1)
    sys.setrecursionlimit(DEPTH)
    try:
        hits = [_examined(module, data) for module, data in zip(modules.split(","), orders, strict=True)]
    except ModuleNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(MISSING)
    with os.fdopen(answer, "wb") as out:
        out.write(b"\n".join(json.dumps(each.to_json()).encode("ascii") for each in hits))


def _examined(module: str, data: dict[str, Any]) -> Hits:
    order = Order(Path(data["root"]), tuple(data["files"]), _ranges(data["changed"]), data["options"])
    return import_module(f"chargehand.analyzers.{module}").examine(order)


def _ranges(changed: dict[str, list[list[int]]] | None) -> dict[str, Ranges] | None:
    if changed is None:
        return None
    return {path: tuple((first, last) for first, last in each) for path, each in changed.items()}


def _die_with(parent: int) -> None:
    """Ask Linux for a signal when the parent dies: a child must not outlive a killed review."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
