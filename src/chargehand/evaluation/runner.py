"""Suite and candidates -> results: missing ones are measured, several at once, each stored when it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chargehand.errors import UsageError
from chargehand.evaluation.candidate import Candidate
from chargehand.evaluation.case import RunCase
from chargehand.evaluation.result import Result, Tried
from chargehand.evaluation.store import Store
from chargehand.evaluation.suite import Placed, Suite
from chargehand.evaluation.try_case import try_case
from chargehand.runs.session import check_models
from chargehand.values.outcome import Fault

AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Item:
    """One measurement: a case, a candidate, and the number of the repeat."""

    placed: Placed
    candidate: Candidate
    repeat: int
    key: str


OnResult = Callable[[Result], None]


def items(suite: Suite, candidates: Sequence[Candidate], repeat: int) -> list[Item]:
    """Everything to measure, all candidates of a case together; plain calls are tried only with whole runs."""
    prints = {candidate.name: candidate.fingerprint for candidate in candidates}
    return [
        Item(placed, candidate, number, f"{placed.digest[:16]}/{prints[candidate.name]}/{number}")
        for number in range(1, repeat + 1)
        for placed in suite.cases
        for candidate in candidates
        if not candidate.is_plain or suits_plain_call(placed)
    ]


def suits_plain_call(placed: Placed) -> bool:
    return isinstance(placed.case, RunCase) and placed.case.for_plain_call() is not None


def store_of(suite: Suite, home: Path) -> Store:
    """The store for the results of this suite. It stays the same when the suite grows: keys say what was measured."""
    return Store(home / "evals" / f"{suite.place}.jsonl")


def known_results(wanted: Sequence[Item], store: Store) -> dict[str, Result]:
    """Key -> stored result, without cases that could not be tried. Items with the same key share a result."""
    found = store.read()
    return {item.key: found[item.key] for item in wanted if _counts(found.get(item.key))}


def _counts(result: Result | None) -> bool:
    return result is not None and result.error is None


def _rename_result(result: Result, item: Item) -> Result:
    """A result as one of this item, since its case or candidate may have had another name when it was measured."""
    where = {"case": item.placed.id, "file": item.placed.file, "line": item.placed.line}
    return result.model_copy(update={**where, "candidate": item.candidate.name})


async def check_candidates(candidates: Sequence[Candidate]) -> None:
    """Raise UsageError unless every model can be called, before anything costs money."""
    for candidate in candidates:
        models = candidate.models()
        try:
            check_models(models, candidate.settings, candidate.team, candidate.settings.budget)
            models.check(candidate.scorer_model(models).model)
        finally:
            await models.close()


async def measure(
    wanted: Sequence[Item], store: Store, on_result: OnResult | None = None, at_once: int = AT_ONCE
) -> list[Result]:
    """A result for every item, in the same order. Nothing is measured that is stored, and no key twice."""
    results = known_results(wanted, store)
    by_key: dict[str, list[Item]] = {}
    for item in wanted:
        if item.key not in results:
            by_key.setdefault(item.key, []).append(item)
    missing = iter(by_key.values())

    async def work() -> None:
        for same in missing:  # all workers share it: each takes the next one
            result = await _result(same[0])
            store.append(result)
            results[result.key] = result
            if on_result is not None:
                for item in same:
                    on_result(_rename_result(result, item))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(work())
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    return [_rename_result(results[item.key], item) for item in wanted]


async def _result(item: Item) -> Result:
    try:
        tried = await try_case(item.placed, item.candidate)
    except UsageError as error:  # it concerns only this case: the others continue
        where = f"{item.placed.file}:{item.placed.line}"
        tried = Tried(error=Fault(kind="bad_request", message=f"{where}: {error}"))
    came: dict[str, Any] = {**dict(tried), "score": tried.mark, "passed": tried.passed}
    return Result(
        **came,
        key=item.key,
        case=item.placed.id,
        kind=item.placed.case.kind,
        file=item.placed.file,
        line=item.placed.line,
        candidate=item.candidate.name,
        repeat=item.repeat,
    )
