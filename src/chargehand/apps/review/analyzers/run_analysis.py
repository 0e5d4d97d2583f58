"""An analyzer's module and a scope -> findings; most modules run in a child, where a crash harms nothing else.

A large order has its own child, which ends with it; small orders go to the reused child (ADR 5).
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chargehand.apps.review.analyzers import categories, child, reused_child, tool_process
from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hits
from chargehand.apps.review.analyzers.versions import missing
from chargehand.engine.analyzer_port import AnalyzerResult, Scope
from chargehand.errors import AnalyzerFailed

if TYPE_CHECKING:
    from chargehand.apps.review.analyzers.lens import Lens

# Orders up to this size take less time than the start of a child.
FEW_FILES = 20
FEW_BYTES = 500_000
# Modules that are as quick for any number of files.
QUICK = ("dead_code",)


async def run_analysis(module: str, scope: Scope, lens: Lens) -> AnalyzerResult:
    """Run an analyzer's module on a scope, and make findings from its hits."""
    if module in child.MODULES:
        found = Hits.from_json(await _ask(module, scope, small=module in QUICK or _is_small(scope)))
    else:
        loaded = import_module(f"chargehand.apps.review.analyzers.{module}")
        found: Hits = await loaded.analyze(scope, lens)
    return AnalyzerResult(categories.findings(found.hits, lens), found.notes, unchecked=found.unchecked)


async def try_out(module: str) -> None:
    """Let a child load what a module needs. Raises AnalyzerFailed if it cannot."""
    await _ask(module, Scope(Path(os.sep), ()), small=True)


async def ask_child(module: str, scope: Scope) -> Any:
    """The answer of a child about a scope, as JSON."""
    return await _ask(module, scope, small=_is_small(scope))


async def _ask(module: str, scope: Scope, *, small: bool) -> Any:
    """The answer of a child. A small order goes to the reused child."""
    # ASCII: a file name that is not UTF-8 is sent as lone surrogates.
    order = json.dumps({**AnalysisOrder.of(scope).to_json(), "module": module}).encode("ascii")
    answer = await reused_child.ask(order) if small else None
    if answer is None:
        ended = await tool_process.run(child.command("alone"), tool=module, stdin=order)
        if ended.code == child.MISSING:
            raise missing(module)
        if ended.code != 0:
            how = f"was ended by signal {-ended.code}" if ended.code < 0 else f"ended with code {ended.code}"
            raise AnalyzerFailed(f"The analyzer {module} {how} and left no result: {ended.last_words}")
        answer = ended.stdout
    return json.loads(answer)


def _is_small(scope: Scope) -> bool:
    if len(scope.files) > FEW_FILES:
        return False
    try:
        return sum(os.stat(scope.root / path).st_size for path in scope.files) <= FEW_BYTES
    except (OSError, ValueError):
        return False
