"""The answer and what it rests on: findings, contradictions, gaps, confidence, provenance, cost and timing."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from chargehand.errors import IncompleteRun
from chargehand.values.base import JSON, Field, Value, shorten
from chargehand.values.outcome import Confidence, Contradiction, Fault, Finding, Gap, Outcome, Usage
from chargehand.values.plan import Plan, Strategy
from chargehand.values.status_words import EXIT_CODES, FINISHED, RunStatus

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    # What `unwrap` returns: data of the requested type, or else the text of the answer.
    T = DefaultTypeVar("T", default=Any)
else:
    T = TypeVar("T")
D = TypeVar("D")

# The words of the gap when the data does not have the requested type or schema.
INVALID_DATA = "The data on the record is as the model gave it."
# In the `__dict__` of a report of a run that was asked for typed data. Not a field, and never on the record.
_TYPED = "_typed"
# Tasks that a note names.
_MOST_NAMED = 10


def evidence_notes(outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    """Sentences about the checked sources of the results; none when there is nothing to report."""
    done = [(outcome.task, outcome.evidence) for outcome in outcomes if outcome.ok and outcome.evidence is not None]
    notes: list[str] = []
    if false := {task: each.removed for task, each in done if each.removed}:
        count = sum(false.values())
        what = "1 source was" if count == 1 else f"{count:,} sources were"
        notes.append(
            f"{what} removed in {_name_tasks(false)}: workers named what they were not given and had not read. "
            "The record has them."
        )
    if own := {task: each.own_knowledge for task, each in done if each.own_knowledge}:
        count = sum(own.values())
        what = "1 statement comes" if count == 1 else f"{count:,} statements come"
        notes.append(f"{what} from the model's own knowledge, without material or tools, in {_name_tasks(own)}.")
    return tuple(notes)


def _name_tasks(tasks: Collection[str]) -> str:
    more = len(tasks) - _MOST_NAMED
    return ", ".join(list(tasks)[:_MOST_NAMED]) + (f" and {more:,} more tasks" if more > 0 else "")


class LeftOut(Value):
    """A done task whose result the answer does not use, and why."""

    task: str
    reason: str


class Provenance(Value):
    """Which tasks each paragraph of the answer cites, what is wrong with that, and which results it does not use.

    A done task is cited, used through one that is, in `left_out` with the reason, or in `unused`.
    """

    citations: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    problems: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def cited(self) -> frozenset[str]:
        return frozenset(task for tasks in self.citations.values() for task in tasks)

    @property
    def accounts_for_all(self) -> bool:
        """Whether the answer cites its sources, and every result is used or left out for a reason."""
        return bool(self.citations) and not self.unused


class Timing(Value):
    """How long a run took, and how long the same calls take one after the other."""

    wall_s: float = 0.0
    sequential_s: float = 0.0
    critical_path_s: float = 0.0
    speedup: float = 1.0
    waiting_s: float = 0.0

    @staticmethod
    def compare(wall_s: float, usage: Usage, outcomes: Iterable[Outcome], plan: Plan | None) -> Timing:
        """Measured wall time, compared with the calls that `usage` counts: one after the other, and their longest
        chain.
        """
        seconds = {outcome.task: outcome.usage.seconds for outcome in outcomes}
        around = usage.seconds - sum(seconds.values())
        chain = sum(seconds.values()) if plan is None else plan.critical_path(seconds)[0]
        return Timing(
            wall_s=wall_s,
            sequential_s=usage.seconds,
            # The seconds of parallel calls of a judge or a best_of are summed. The path is limited to the time of the
            # run.
            critical_path_s=min(around + chain, wall_s),
            speedup=usage.seconds / wall_s if wall_s > 0 else 1.0,
            waiting_s=usage.waiting_s,
        )


# How the note ends of a report whose answer no model wrote.
LISTS_RESULTS = "the answer lists the results."


class Report(Value, Generic[T]):
    """The answer of a run, how it ended and what it rests on.

    `Report[City]` is the report of a run that was asked for a City: its `data` is one, or None.
    """

    run: str
    request: str
    status: RunStatus
    answer: str
    findings: tuple[Finding, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    gaps: tuple[Gap, ...] = ()
    confidence: Confidence | None = None
    provenance: Provenance = Field(default_factory=Provenance)
    outcomes: tuple[Outcome, ...] = ()
    usage: Usage = Field(default_factory=Usage)
    timing: Timing = Field(default_factory=Timing)
    strategy: Strategy = "single"
    plan: Plan | None = None
    # Sentences worth reading along with the answer: a pure chain, an oversized team, an estimated usage.
    notes: tuple[str, ...] = ()
    # Why the run as a whole failed.
    error: Fault | None = None
    # No worker could be reached: the answer is the team's `when_nothing`.
    when_nothing: bool = False
    # The answer as data, when the request gave a type or a schema for it.
    data: T | None = None

    @property
    def has_answer(self) -> bool:
        """Whether there is anything a reader would take for the answer."""
        done = any(outcome.ok or outcome.partial for outcome in self.outcomes)
        return self.when_nothing or (self.status in FINISHED and done)

    @property
    def lists_results(self) -> bool:
        """Whether the answer is a list that code made of the results."""
        return any(note.endswith(LISTS_RESULTS) for note in self.notes)

    @property
    def exit_code(self) -> int:
        """2 for a wrong key, as for a missing one: the caller has to correct it."""
        return 2 if self.error is not None and self.error.kind == "auth" else EXIT_CODES[self.status]

    def unwrap(self, *, partial: bool = False) -> T:
        """The data, if a type or a schema was given for it, else the answer; IncompleteRun unless the run is complete.

        With `partial` the answer of a partial run is accepted, gaps and all.
        """
        accepted = ("complete", "partial") if partial else ("complete",)
        if self.status not in accepted or not self.has_answer:
            raise IncompleteRun(self._why_incomplete(), self, self.exit_code or 1)
        if self.data is not None:
            return self.data
        if self.__dict__.get(_TYPED):
            why = f"Run {self.run} has no data of the type that was asked for. {self._reasons()}"
            raise IncompleteRun(why, self, self.exit_code or 1)
        return cast("T", self.answer)

    def with_data(self, data: D | None) -> Report[D]:
        """The report of a run that was asked for data of one type: this data, or None where there is none."""
        return cast("Report[D]", self.model_copy(update={"data": data, _TYPED: True}))

    def _why_incomplete(self) -> str:
        match self.status:
            case "waiting":
                todo = "Answer what supervisor.questions(run) lists, then await supervisor.resume(run)."
            case "partial":
                todo = f"{self._reasons()} To accept it as it is, write unwrap(partial=True)."
            case "complete" | "failed":
                todo = (
                    f"{self.error.kind}: {self.error.message}"
                    if self.error is not None
                    else self._reasons() or self.answer
                )
            case _:
                todo = "Continue it with await supervisor.resume(run)."
        return f"Run {self.run} is {self.status}. {todo}"

    def _reasons(self) -> str:
        reasons = [*(self._describe_gap(gap) for gap in self.gaps), *self._faults_of_citations()]
        more = f" And {len(reasons) - 3:,} more in report.gaps and report.provenance." if len(reasons) > 3 else ""
        return " ".join(f"{reason.rstrip('.')}." for reason in reasons[:3]) + more

    def _describe_gap(self, gap: Gap) -> str:
        """The reason with the task, and the kind of its error where it failed."""
        if gap.task is None:
            return gap.reason
        kinds = (each.error.kind for each in self.outcomes if each.task == gap.task and each.error is not None)
        if (kind := next(kinds, None)) is None:
            return f"{gap.task}: {gap.reason}"
        return f"{gap.task} ({kind}): {gap.reason.removeprefix('failed: ')}"  # only a failed task has a kind

    def _faults_of_citations(self) -> list[str]:
        unused = self.provenance.unused
        return [*self.provenance.problems, *([f"The answer does not use {_name_tasks(unused)}."] if unused else ())]

    def _figures(self) -> str:
        done = sum(outcome.ok for outcome in self.outcomes)
        total = len(self.outcomes if self.plan is None else self.plan.tasks)
        tasks = f"{done:,} of {total:,} task{'' if total == 1 else 's'} done" if total else "no plan"
        return f"{self.status}, {tasks}, {self.usage.tokens:,} tokens"

    def __repr__(self) -> str:
        return f"<Report {self.run}: {self._figures()}; {shorten(self.answer)!r}>"

    def _repr_markdown_(self) -> str:
        """For notebooks: the answer, then how the run ended and what is missing."""
        lines = [f"*{self._figures()}*"]
        lines += [f"- gap: {self._describe_gap(gap)}" for gap in self.gaps]
        lines += [f"- citation: {each}" for each in self._faults_of_citations()]
        lines += [f"- contradiction: {each.subject}" for each in self.contradictions if not each.resolved]
        return "\n".join([self.answer.rstrip(), "", "---", "", lines[0], "", *lines[1:]]).rstrip() + "\n"

    def to_json(self) -> dict[str, JSON]:
        data = self.model_dump(mode="json", exclude={"outcomes", "plan"})
        data["outcomes"] = [outcome.to_json() for outcome in self.outcomes]
        data["plan"] = self.plan.to_json() if self.plan else None
        for name in ("data", "error"):
            if data[name] is None:
                del data[name]
        if not self.when_nothing:
            del data["when_nothing"]
        return data
