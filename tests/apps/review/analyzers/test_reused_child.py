"""Small scopes go to one child that stands by, and whoever fails there fails alone."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from chargehand.apps.review.analyzers import ANALYZERS, child, reused_child, run_analysis, tool_process
from chargehand.apps.review.analyzers.source_files import KEPT_TEXT, SourceFile
from chargehand.engine.analyzer_port import AnalyzerResult, Scope
from chargehand.errors import AnalyzerFailed
from chargehand.process import ProcessResult

CODE = (
    "import os\n\n\ndef f(db, keys):\n    # TODO: all at once\n    for key in keys:\n        db.execute('x', (key,))\n"
)
NAMES = ("loops", "comments", "leftovers", "unreachable")


@pytest.fixture
def scope(tmp_path: Path) -> Scope:
    (tmp_path / "a.py").write_text(CODE)
    return Scope(root=tmp_path, files=("a.py",))


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The analyzers that had a child of their own."""
    tools: list[str] = []
    real = tool_process.run

    async def run(command: Sequence[str], *, tool: str, **options: Any) -> ProcessResult:
        tools.append(tool)
        return await real(command, tool=tool, **options)

    monkeypatch.setattr(tool_process, "run", run)
    return tools


async def all_of(scope: Scope, names: Sequence[str] = NAMES) -> list[AnalyzerResult]:
    return await asyncio.gather(*(ANALYZERS[name].run(scope) for name in names))


def categories(found: Sequence[AnalyzerResult]) -> set[str]:
    return {finding.category for each in found for finding in each.findings}


@pytest.mark.usefixtures("anew")
def test_small_scopes_go_to_one_child(scope: Scope, alone: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the same for two loops; each analyzer gets the answer it would have got alone."""
    first = asyncio.run(all_of(scope))
    standing = reused_child.begin()
    assert asyncio.run(all_of(scope)) == first
    assert reused_child.begin() is standing
    assert alone == []
    monkeypatch.setattr(run_analysis, "FEW_BYTES", len(CODE) - 1)
    assert asyncio.run(all_of(scope)) == first
    assert sorted(alone) == sorted(NAMES)
    assert categories(first) >= {"query-in-loop", "todo"}


@pytest.mark.usefixtures("anew")
def test_when_the_child_dies_each_is_asked_alone(
    scope: Scope, alone: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash takes nobody's findings."""
    monkeypatch.setattr(child, "START", child.START.replace("obey(*", "sys.argv[2] == 'alone' or sys.exit(); obey(*"))
    assert categories(asyncio.run(all_of(scope))) >= {"query-in-loop", "todo"}
    assert sorted(alone) == sorted(NAMES)


@pytest.mark.usefixtures("anew")
def test_who_fails_in_the_child_says_why_alone_and_the_child_goes_on(scope: Scope, alone: list[str]) -> None:
    """The next order is answered by the same child."""

    async def both() -> AnalyzerResult:
        with pytest.raises(AnalyzerFailed, match="not installed"):
            await run_analysis.try_out("nothing")
        return await ANALYZERS["comments"].run(scope)

    standing = reused_child.begin()
    assert categories([asyncio.run(both())]) == {"todo"}
    assert reused_child.begin() is standing
    assert alone == ["nothing"]


@pytest.mark.usefixtures("anew")
def test_who_is_cancelled_leaves_the_others_what_they_find(scope: Scope) -> None:
    """The order under way is broken off with its child; those behind it go to a new one."""

    async def main() -> AnalyzerResult:
        first, second = (asyncio.create_task(ANALYZERS[name].run(scope)) for name in ("comments", "loops"))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert categories([asyncio.run(main())]) == {"query-in-loop"}


@pytest.mark.slow
@pytest.mark.usefixtures("anew")
def test_a_child_without_orders_ends_and_the_next_order_starts_another(
    scope: Scope, alone: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing stands by for ever."""
    soon = child.START.replace("obey;", "obey; import chargehand.apps.review.analyzers.child as c; c.IDLE_S = 0.01;")
    monkeypatch.setattr(child, "START", soon)
    standing = reused_child.begin()
    assert standing is not None
    while standing.alive:
        os.sched_yield()
    monkeypatch.undo()
    assert categories(asyncio.run(all_of(scope))) >= {"query-in-loop", "todo"}
    assert reused_child.begin() is not standing
    assert alone == []


@pytest.mark.usefixtures("anew")
def test_threads_that_begin_at_once_have_one_child() -> None:
    """Whoever comes first."""
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda _: reused_child.begin(), range(6)))
        assert len({id(each) for each in found}) == 1


def test_a_child_loads_no_event_loop() -> None:
    """Its modules read files: an event loop would take as long to load as bandit's own modules."""
    code = "import sys; sys.path.append(sys.argv[1]); from chargehand.apps.review.analyzers import child\n"
    code += "for module in child.MODULES: child._load(module)\nprint('bandit' in sys.modules, 'asyncio' in sys.modules)"
    command = [sys.executable, "-I", "-c", code, child.HOME]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "True False\n"


def test_the_same_small_file_is_parsed_once() -> None:
    """A small order goes to many analyzers. The tree of a large file is not kept."""
    assert SourceFile("a.py", CODE).tree is SourceFile("b.py", f"{CODE}").tree
    large = CODE + "x = 1\n" * KEPT_TEXT
    assert SourceFile("a.py", large).tree is not SourceFile("a.py", large).tree
