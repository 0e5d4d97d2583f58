"""Cases, results and candidates for tests of the evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from chargehand.evaluation import Check, Evaluation, Result, SuiteInfo, summarise
from chargehand.values.outcome import Usage
from chargehand.values.plan import Plan, Task


def task(id: str, worker: str, *depends_on: str) -> Task:
    return Task(
        id=id, worker=worker, instruction=f"Work out {id} in full.", success_criterion="Done.", depends_on=depends_on
    )


def graph(*tasks: Task) -> Plan:
    return Plan(goal="A goal", tasks=tasks)


def as_plan(*tasks: Task) -> dict[str, Any]:
    return graph(*tasks).to_json()


def lines(path: Path, *cases: dict[str, Any] | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(case if isinstance(case, str) else json.dumps(case) for case in cases)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def result(case: str, passed: bool = True, *, by: Any = "code", **fields: Any) -> Result:
    given: dict[str, Any] = {
        "kind": "worker",
        "file": "evals/w.jsonl",
        "line": 3,
        "candidate": "a",
        "repeat": 1,
        "passed": passed,
        "score": float(passed),
        "checks": (Check(name="exact", passed=passed, by=by, score=float(passed), said="it is 5"),),
        "usage": Usage(input_tokens=90, output_tokens=10),
    }
    return Result(case=case, **{**given, **fields})


def evaluated(*results: Result, repeat: int = 1) -> Evaluation:
    names = dict.fromkeys(each.candidate for each in results)
    info = SuiteInfo(name="suite", hash="0" * 16, cases=len({each.case for each in results}))
    return summarise(info, repeat, [(name, "team", f"scripted:{name}") for name in names], results)
