"""Event streams as a run would record them, made without running anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chargehand.events import Event
from chargehand.values.outcome import Outcome, done, escalated, failed, skipped
from chargehand.values.plan import Plan, Task
from tests.events import make_body

BEGAN = 1_760_000_000.0
MODEL = "anthropic:claude-sonnet-4-5"


@dataclass
class Recorder:
    """Puts events at given seconds; `events()` has them in order with their numbers."""

    run: str = "20260114-093000-k7qf"
    noted: list[tuple[float, str, str | None, int | None, dict[str, Any]]] = field(default_factory=list)

    def note(self, at: float, kind: str, task: str | None = None, attempt: int | None = None, **data: Any) -> None:
        self.noted.append((at, kind, task, attempt, data))

    def events(self) -> list[Event]:
        ordered = sorted(self.noted, key=lambda entry: entry[0])
        return [
            Event(self.run, seq, BEGAN + at, task, attempt, make_body(kind, **data))
            for seq, (at, kind, task, attempt, data) in enumerate(ordered, 1)
        ]

    def start(self, at: float, request: str, team: str = "general", *, epoch: int = 1) -> None:
        self.note(
            at, "run_started", version=1, chargehand="0.1.0", epoch=epoch, resumed=epoch > 1,
            request={"text": request}, team={"name": team, "workers": []}, settings={}, rerun_of=None,
        )  # fmt: skip

    def model(
        self,
        at: float,
        until: float,
        key: str,
        task: str | None = None,
        attempt: int | None = None,
        *,
        role: str = "worker",
        tokens: tuple[int, int] = (900, 240),
        usd: float | None = 0.0063,
        error: tuple[str, str] | None = None,
        text: str = "…",
    ) -> None:
        self.note(
            at, "model_called", task, attempt, key=key, fingerprint="f", role=role, model=MODEL, messages=[], send=1
        )
        result: dict[str, Any] = {"seconds": until - at}
        if error is None:
            usage = {"input_tokens": tokens[0], "output_tokens": tokens[1], "cached_tokens": tokens[0] // 3}
            result |= {"reply": {"text": text, "usage": usage, "model": MODEL}, "usd": usd}
        else:
            result["error"] = {"kind": error[0], "message": error[1]}
        self.note(until, "model_replied", task, attempt, key=key, fingerprint="f", result=result)

    def tool(self, at: float, until: float, key: str, task: str, attempt: int, tool: str, *, error: str = "") -> None:
        arguments = {"path": "figures/oslo.csv"}
        self.note(
            at,
            "tool_called",
            task,
            attempt,
            key=key,
            fingerprint="f",
            worker="w",
            tool=tool,
            arguments=arguments,
            send=1,
        )
        result: dict[str, Any] = {"error": {"kind": "tool", "message": error}} if error else {"text": "717,710"}
        self.note(until, "tool_returned", task, attempt, key=key, fingerprint="f", result=result)

    def attempt(
        self, at: float, until: float, task: Task, number: int = 1, error: tuple[str, str] | None = None
    ) -> None:
        self.note(at, "attempt_started", task.id, number, worker=task.worker, tier="medium", model=MODEL)
        fault = None if error is None else {"kind": error[0], "message": error[1]}
        self.note(until, "attempt_ended", task.id, number, status="failed" if error else "done", error=fault)

    def end(self, at: float, outcome: Outcome) -> None:
        self.note(at, "task_ended", outcome.task, outcome=outcome.to_json())


ANSWER = """\
**Oslo suits a small data team better** when hiring matters most; Bergen wins on rent [t2]. Oslo has 717,710 inhabitants
and about three times as many open positions for analysts [t1, t4].

| | Oslo | Bergen |
|---|---|---|
| Inhabitants | 717,710 | 291,940 |
| Office rent a month, 60 m² | 21,000 kr | 14,500 kr |
| Analysts looking for work | ~1,900 | ~450 |

What speaks for each:

- *Oslo*: talent pool, direct flights, two universities with data programmes [t1]
- *Bergen*: rent, lower turnover, a compact centre [t2]

Travel times could not be compared, because the timetable was not reachable; see the gaps.
"""


def plan() -> Plan:
    def task(id: str, worker: str, instruction: str, *depends_on: str) -> Task:
        criterion = "Each figure has a source and a year."
        return Task(id=id, worker=worker, instruction=instruction, success_criterion=criterion, depends_on=depends_on)

    return Plan(
        goal="Compare Oslo and Bergen as a place for a small data team",
        tasks=(
            task("t1", "researcher", "Collect population, universities and hiring figures for Oslo."),
            task("t2", "researcher", "Collect population, rent and hiring figures for Bergen."),
            task("t3", "researcher", "Find travel times from both cities to Copenhagen and London."),
            task("t4", "analyst", "Compare the hiring figures of both cities for data roles.", "t1", "t2"),
            task("t5", "analyst", "Compare office rent for six people in both centres.", "t1", "t2"),
            task("t6", "analyst", "Rank both cities by travel time, weighting London double.", "t3"),
            task(
                "t7",
                "writer",
                "Write a half-page comparison from the analyses, naming every figure's source.",
                "t4",
                "t5",
            ),
            task("t8", "reviewer", "Check the comparison against the figures and list what does not hold.", "t7", "t1"),
        ),
    )


def sample() -> list[Event]:
    """Eight tasks: t4 is done at its second attempt, t3 fails, t6 is skipped because of it, t8 escalates."""
    record, made = Recorder(), plan()
    by_id = {task.id: task for task in made.tasks}
    record.start(0.0, "Compare Oslo and Bergen as a place for a small data team of six people.")
    record.model(0.05, 2.1, "@plan/1", role="planner", tokens=(1_400, 820), usd=0.0165)
    record.note(2.11, "plan_drafted", plan=made.to_json(), round=1, problems=[], renamed={}, source="model")
    record.note(2.12, "plan_approved", plan=made.to_json(), strategy=made.strategy, notes=[])
    for id in ("t1", "t2", "t3"):
        record.note(2.13, "task_ready", id, worker="researcher")
    _worker(record, by_id["t1"], 2.14, (0.1, 1.3), (1.35, 1.5), (1.55, 2.9))
    _worker(record, by_id["t2"], 2.14, (0.1, 1.0), (1.1, 1.2), (1.25, 2.2))
    record.note(2.15, "attempt_started", "t3", 1, worker="researcher", tier="medium", model=MODEL)
    record.model(2.2, 3.2, "t3/1/model/1", "t3", 1)
    record.tool(3.25, 4.25, "t3/1/tool/1", "t3", 1, "read_file", error="timetable.csv is not among the material")
    record.model(4.3, 5.6, "t3/1/model/2", "t3", 1, error=("overloaded", "529 from the provider, 5 times"))
    record.note(4.6, "decision", "t3", 1, key="t3/1/model/2/retry/1", decision="transport_retry",
                value={"after_s": 0.4}, reason="overloaded: 529 from the provider")  # fmt: skip
    why = ("overloaded", "The provider was overloaded (529) five times in a row; try again later or use another model.")
    record.note(5.6, "attempt_ended", "t3", 1, status="failed", error={"kind": why[0], "message": why[1]})
    record.end(5.6, failed("t3", "researcher", "overloaded", why[1]))
    record.end(5.61, skipped("t6", "analyst", ["t3"]))
    record.note(5.05, "task_ready", "t4", worker="analyst")
    record.note(5.05, "task_ready", "t5", worker="analyst")
    contract = ("contract", "The answer is not the JSON object the schema asks for: `ratio` is missing.")
    record.attempt(5.1, 6.6, by_id["t4"], 1, contract)
    record.model(5.15, 6.55, "t4/1/model/1", "t4", 1)
    record.note(6.6, "decision", "t4", 1, key="t4/1/recovery", decision="recovery", value={"retry": "refined"},
                reason="contract: worth another attempt with the error named")  # fmt: skip
    record.attempt(7.2, 8.9, by_id["t4"], 2)
    record.model(7.25, 8.85, "t4/2/model/1", "t4", 2)
    record.end(8.9, _done(by_id["t4"], {"ratio": 3.1, "open_positions": {"Oslo": 930, "Bergen": 300}}))
    _worker(record, by_id["t5"], 5.9, (0.05, 1.6))
    record.note(8.91, "task_ready", "t7", worker="writer")
    _worker(record, by_id["t7"], 8.95, (0.05, 2.4))
    record.note(11.4, "task_ready", "t8", worker="reviewer")
    record.attempt(11.45, 12.8, by_id["t8"])
    record.model(11.5, 12.75, "t8/1/model/1", "t8", 1)
    record.end(
        12.8, escalated("t8", "reviewer", "ambiguous_input", "Rent is per month in one source and per year in another.")
    )
    record.note(12.9, "synthesis_started", mode="merge", outcomes=8)
    record.model(12.95, 15.2, "@synthesis/1", role="synthesizer", tokens=(4_100, 900), usd=0.0258)
    record.note(15.25, "run_ended", status="partial", report=_report(made))
    return record.events()


def _done(task: Task, output: Any) -> Outcome:
    return done(task.id, task.worker, summary=f"Done: {task.instruction}", output=output, confidence=86)


def _worker(record: Recorder, task: Task, at: float, *calls: tuple[float, float]) -> None:
    """A task done in one attempt; every second call is a tool's."""
    for number, (began, ended) in enumerate(calls):
        if number % 2:
            record.tool(at + began, at + ended, f"{task.id}/1/tool/{number}", task.id, 1, "search_files")
        else:
            record.model(at + began, at + ended, f"{task.id}/1/model/{number}", task.id, 1)
    until = at + calls[-1][1] + 0.02
    record.attempt(at, until, task)
    record.end(until, _done(task, f"The {task.worker}'s figures, each with a source and a year."))


def _report(made: Plan) -> dict[str, Any]:
    return {
        "answer": ANSWER,
        "status": "partial",
        "confidence": 78,
        "gaps": [
            {"task": "t3", "reason": "The provider was overloaded.", "impact": "Travel times are missing."},
            {"task": "t8", "reason": "Rent is per month in one source, per year in another.", "impact": "Unchecked."},
        ],
        "contradictions": [
            {"subject": "Inhabitants of Bergen", "claims": ["291,940 (2024) [t2]", "289,330 (2023) [t1]"],
             "resolved": True, "reason": "Different years; the newer figure is used."},
        ],
        "findings": [],
        "notes": ["The usage of one call is estimated."],
        "timing": {"wall_s": 15.25, "sequential_s": 27.4, "critical_path_s": 14.2, "speedup": 1.8, "waiting_s": 0.9},
        "plan": made.to_json(),
    }  # fmt: skip


def many(tasks: int, output: str = "Done.") -> list[Event]:
    """A flat plan of so many tasks, all done, 50 at once."""
    record = Recorder()
    made = Plan(goal="Many", tasks=tuple(
        Task(id=f"t{n}", worker="researcher", instruction=f"Look up figure number {n}.", success_criterion="One.")
        for n in range(tasks)
    ))  # fmt: skip
    record.start(0.0, "Many figures")
    record.note(0.01, "plan_approved", plan=made.to_json(), strategy="parallel", notes=[])
    for n, task in enumerate(made.tasks):
        at = 0.1 + n // 50 * 0.5
        record.note(0.05, "task_ready", task.id, worker=task.worker)
        record.model(at + 0.01, at + 0.3, f"{task.id}/1/model/1", task.id, 1)
        record.attempt(at, at + 0.31, task)
        record.end(at + 0.31, done(task.id, task.worker, summary="Found.", output=output))
    record.note(0.5 + tasks // 50 * 0.5, "run_ended", status="complete", report={"answer": "All found."})
    return record.events()
