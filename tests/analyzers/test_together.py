"""Small scopes share a child, and whoever fails there fails alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from chargehand.analyzers import ANALYZERS, Analysis, Scope, child, process, together

CODE = (
    "import os\n\n\ndef f(db, keys):\n    # TODO: all at once\n    for key in keys:\n        db.execute('x', (key,))\n"
)
NAMES = ("loops", "comments", "leftovers", "unreachable")


@pytest.fixture
def scope(tmp_path: Path) -> Scope:
    (tmp_path / "a.py").write_text(CODE)
    return Scope(root=tmp_path, files=("a.py",))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What each child was started for."""
    commands: list[str] = []
    real = process.run

    async def run(command: Sequence[str], **options: Any) -> process.Ended:
        commands.append(command[-1])
        return await real(command, **options)

    monkeypatch.setattr(process, "run", run)
    return commands


async def all_of(scope: Scope, names: Sequence[str] = NAMES) -> list[Analysis]:
    return await asyncio.gather(*(ANALYZERS[name].run(scope) for name in names))


def test_analyzers_asked_together_share_a_child(
    scope: Scope, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process; each gets the answer it would have got alone."""
    shared = asyncio.run(all_of(scope))
    assert started == [",".join(NAMES)]
    monkeypatch.setattr(child, "FEW", 0)
    assert asyncio.run(all_of(scope)) == shared
    assert sorted(started[1:]) == sorted(NAMES)
    assert {f.category for each in shared for f in each.findings} >= {"query-in-loop", "todo"}


def test_a_child_that_dies_is_asked_again_for_each_alone(
    scope: Scope, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash of one analyzer takes no other's findings."""
    monkeypatch.setattr(child, "START", child.START + "if ',' not in sys.argv[2] else os_does_not_exist")
    found = asyncio.run(all_of(scope))
    assert len(started) == 1 + len(NAMES)
    assert {f.category for each in found for f in each.findings} >= {"query-in-loop", "todo"}


def test_who_is_cancelled_while_going_for_others_leaves_them_to_themselves(scope: Scope, started: list[str]) -> None:
    """The others find what they find."""

    async def main() -> Analysis:
        first = asyncio.create_task(ANALYZERS["comments"].run(scope))
        second = asyncio.create_task(ANALYZERS["loops"].run(scope))
        while not started:  # noqa: ASYNC110 -- the start is seen from a list
            await asyncio.sleep(together.WAIT_S / 4)
        first.cancel()
        return await second

    assert [f.category for f in asyncio.run(main()).findings] == ["query-in-loop"]
    assert started == ["comments,loops", "loops"]
