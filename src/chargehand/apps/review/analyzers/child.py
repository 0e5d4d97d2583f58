"""Orders become hits in a child process: lines of JSON on stdin, each answered by a line on stdout.

`-I` keeps the reviewed tree, the working directory and PYTHON* variables out of what a child imports.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Literal

from chargehand.apps.review.analyzers.hit import AnalysisOrder

START = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from chargehand.apps.review.analyzers.child import obey; obey(*sys.argv[2:])"
)
# The folder of the package, because the child ignores PYTHONPATH.
HOME = str(Path(__file__).resolve().parents[4])
MISSING = 66
# The modules that run in a child; each has `examine(order)`. They are loaded in this order, the slowest last.
MODULES = (
    *("project_names", "dead_code", "contract_comments", "untested", "comments", "compare_versions", "leftovers"),
    *("loops", "mistakes", "request_flow", "secrets", "unreachable", "unsafe_calls", "bandit"),
)
# How long a child waits for the next order.
IDLE_S = 10.0
# How long it waits after an answer before it loads the next module: orders come one after the other.
NEXT_ORDER_S = 0.05
DEPTH = 5_000
MANY_OBJECTS = 100_000


def command(manner: Literal["alone", "standing"], *modules: str) -> list[str]:
    """Starts a child that loads these modules while it has no order."""
    return [sys.executable, "-I", "-c", START, HOME, manner, str(os.getpid()), *modules]


def obey(manner: str, parent: str, *modules: str) -> None:
    """Runs in the child: answers one order and ends, or one after the other until there are no more."""
    _die_with(int(parent))
    # What a tool prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.setrecursionlimit(DEPTH)
    # Syntax trees are many objects that are not garbage: looking for some less often saves a tenth of the time.
    gc.set_threshold(MANY_OBJECTS)
    if manner == "alone":
        try:
            answers.write(_answer_order(sys.stdin.buffer.read()))
        except ModuleNotFoundError as error:
            sys.stderr.write(f"{error}\n")
            sys.exit(MISSING)
    else:
        _answer_orders(answers, list(modules))
    answers.close()


def _answer_orders(answers: BinaryIO, unloaded: list[str]) -> None:
    """Answer one order after the other. While there is none, the next module is loaded."""
    waiting = [_full_name(module) for module in unloaded]
    pause = 0.0
    while True:
        is_asked = bool(select.select([0], [], [], pause if waiting else IDLE_S)[0])
        if waiting and not is_asked:
            with suppress(Exception):  # an order that needs the module reports the error
                waiting[:0] = getattr(import_module(waiting.pop(0)), "NEEDS", ())
            continue
        if not is_asked or not (line := sys.stdin.buffer.readline()):
            return
        try:
            answers.write(_answer_order(line) + b"\n")
        except Exception:  # noqa: BLE001 -- reported by the child that is asked this alone
            answers.write(b"\n")
        answers.flush()
        pause = NEXT_ORDER_S


def _answer_order(order: bytes) -> bytes:
    data = json.loads(order)
    return json.dumps(_load(data["module"]).examine(AnalysisOrder.from_json(data)).to_json()).encode("ascii")


def _load(module: str) -> Any:
    """The analyzer's module with all that it needs."""
    loaded = import_module(_full_name(module))
    for name in getattr(loaded, "NEEDS", ()):
        import_module(name)
    return loaded


def _full_name(module: str) -> str:
    return f"chargehand.apps.review.analyzers.{module}"


def _die_with(parent: int) -> None:
    """Ask Linux for a signal when the parent dies: a child must not outlive a killed review."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
