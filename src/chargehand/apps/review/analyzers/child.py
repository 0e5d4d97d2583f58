"""A scope becomes hits in another process; a crash there harms nothing else.

The parent sends orders as lines of JSON on stdin; the child answers each with its hits as a line on stdout. A large
order has a child of its own, which dies with it; small ones go to the one that stands by. `-I` keeps the reviewed tree,
the working directory and PYTHON* variables out of what a child imports.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from chargehand.apps.review.analyzers.hit import Hits

if TYPE_CHECKING:
    from chargehand.apps.review.analyzers import AnalyzerResult, Lens, Ranges, Scope

START = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from chargehand.apps.review.analyzers.child import obey; obey(*sys.argv[2:])"
)
# Where the package is: the child may not look at PYTHONPATH.
HOME = str(Path(__file__).resolve().parents[4])
MISSING = 66
# The modules with an `examine` of their own.
MODULES = ("bandit", "comments", "contracts", "dead", "leftovers", "loops", "secrets", "unreachable", "untested")
# So little is looked at in less time than a child takes to start.
FEW_FILES = 20
FEW_BYTES = 500_000
# So quick that this goes for any number of files.
QUICK = ("dead",)
# How long a child stands by without an order.
IDLE_S = 10.0
DEPTH = 5_000


@dataclass(frozen=True, slots=True)
class Order:
    """A scope as the child sees it."""

    root: Path
    files: tuple[str, ...]
    changed: dict[str, Ranges] | None
    options: dict[str, Any]

    def changed_ranges(self, path: str) -> Ranges:
        """The changed ranges of a file; nothing when a whole tree is reviewed."""
        return () if self.changed is None else self.changed.get(path, ())


async def analyze(module: str, scope: Scope, lens: Lens) -> AnalyzerResult:
    """Run `examine(order)` of an analyzer's module in a child and make findings of its hits."""
    from chargehand.apps.review.analyzers import AnalyzerResult, categories

    if not scope.files:
        return AnalyzerResult()
    found = Hits.from_json(await _ask(module, scope, small=module in QUICK or _is_small(scope)))
    return AnalyzerResult(categories.findings(found.hits, lens), found.notes, unchecked=found.unchecked)


async def try_out(module: str) -> None:
    """Have a child load what a module needs. AnalyzerFailed when it cannot."""
    from chargehand.apps.review.analyzers import Scope

    await _ask(module, Scope(Path(os.sep), ()), small=True)


async def _ask(module: str, scope: Scope, *, small: bool) -> Any:
    """What a child answers: a small order goes to the one that stands by."""
    from chargehand.apps.review.analyzers import packages, standby, tool_process
    from chargehand.errors import AnalyzerFailed

    order = _encode_order(module, scope)
    answer = await standby.ask(order) if small else None
    if answer is None:
        ended = await tool_process.run(command("alone"), tool=module, stdin=order)
        if ended.code == MISSING:
            raise packages.missing(module)
        if ended.code != 0:
            how = f"was ended by signal {-ended.code}" if ended.code < 0 else f"ended with code {ended.code}"
            raise AnalyzerFailed(f"The analyzer {module} {how} and left no result: {ended.last_words}")
        answer = ended.stdout
    return json.loads(answer)


def command(manner: Literal["alone", "standing"], *modules: str) -> list[str]:
    """Starts a child that has these modules loaded before its first order."""
    return [sys.executable, "-I", "-c", START, HOME, manner, str(os.getpid()), *modules]


def _is_small(scope: Scope) -> bool:
    if len(scope.files) > FEW_FILES:
        return False
    try:
        return sum(os.stat(scope.root / path).st_size for path in scope.files) <= FEW_BYTES
    except (OSError, ValueError):
        return False


def _encode_order(module: str, scope: Scope) -> bytes:
    changed = None if scope.changed is None else {path: list(ranges) for path, ranges in scope.changed.items()}
    order = {"root": str(scope.root), "files": scope.files, "changed": changed, "options": dict(scope.options)}
    # ASCII: a file name that is no UTF-8 travels as lone surrogates.
    return json.dumps({**order, "module": module}).encode("ascii")


def obey(manner: str, parent: str, *modules: str) -> None:
    """The child's side: one order and the end, or one after the other until nobody has any."""
    _die_with(int(parent))
    # What a tool prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.setrecursionlimit(DEPTH)
    for module in modules:
        with suppress(Exception):  # said by the order that needs it
            _load(module)
    if manner == "alone":
        try:
            answers.write(_answer_order(sys.stdin.buffer.read()))
        except ModuleNotFoundError as error:
            sys.stderr.write(f"{error}\n")
            sys.exit(MISSING)
    while manner == "standing" and select.select([0], [], [], IDLE_S)[0] and (line := sys.stdin.buffer.readline()):
        try:
            answers.write(_answer_order(line) + b"\n")
        except Exception:  # noqa: BLE001 -- told by the child that is asked this alone
            answers.write(b"\n")
        answers.flush()
    answers.close()


def _answer_order(order: bytes) -> bytes:
    data = json.loads(order)
    scope = Order(Path(data["root"]), tuple(data["files"]), _ranges(data["changed"]), data["options"])
    return json.dumps(_load(data["module"]).examine(scope).to_json()).encode("ascii")


def _load(module: str) -> Any:
    """The analyzer's module with all that it needs."""
    loaded = import_module(f"chargehand.apps.review.analyzers.{module}")
    for name in getattr(loaded, "NEEDS", ()):
        import_module(name)
    return loaded


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
