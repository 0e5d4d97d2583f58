"""The material and what is known of it -> a draft of the answer, sent back once with what code finds wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from chargehand.answer import read_object
from chargehand.messages import Message, system, user
from chargehand.outcome import Fault
from chargehand.plan import Plan
from chargehand.report import Contradiction, Gap, Provenance
from chargehand.schema import violations
from chargehand.synthesizer import mention, prompt
from chargehand.synthesizer.citations import Known, corrections, keeps_open, provenance_of
from chargehand.synthesizer.disagreement import Disagreement
from chargehand.synthesizer.reconciled import Reconciled
from chargehand.synthesizer.streaming import Drafts, OnDraft
from chargehand.synthesizer.synthesis import Desk, Validate
from chargehand.value import JSON
from chargehand.workers.agent import usage_of
from chargehand.workers.answer import read_confidence


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer as the model gave it, and what code finds wrong with it."""

    answer: str
    provenance: Provenance
    silent: tuple[Disagreement, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    gaps: tuple[Gap, ...] = ()
    confidence: int | None = None
    data: JSON = None
    # Why `data` is not what was asked for.
    invalid: str | None = None

    @property
    def text(self) -> str:
        """The answer with the disagreements it passes over."""
        return self.answer if not self.silent else f"{self.answer.rstrip()}\n\n{mention.section(self.silent)}"


@dataclass(frozen=True, slots=True)
class NoDraft:
    """Why there is none."""

    fault: Fault


class Writer:
    """One conversation with the synthesizer; its calls are numbered through."""

    def __init__(
        self,
        desk: Desk,
        reconciled: Reconciled,
        read: Iterable[str],
        validate: Validate | None,
        on_draft: OnDraft | None,
    ) -> None:
        self._desk = desk
        self._reconciled = reconciled
        self._known = Known.of(desk.request, desk.plan, read)
        self._validate = validate
        self._drafts = None if on_draft is None else Drafts(on_draft, self._warn)
        self._schema = prompt.schema(desk.request.answer_schema)
        self._calls = 0
        self._asked: tuple[Message, ...] = ()
        self._said: Message | None = None
        # The draft to give if there is no time for another.
        self.last: Draft | None = None

    async def write(self, text: str) -> Draft | NoDraft:
        """The draft for what is asked in `text`; what is wrong with it goes back once, and then stands.

        Without a draft the money is there to be spent; to mend one, only what the budget can spare.
        """
        self._asked = (system(prompt.RULES), user(text))
        first, problems = await self._call(self._asked)
        if not problems or (isinstance(first, Draft) and not await self._affordable(problems)):
            return first
        second = await self.mend(problems)
        return first if isinstance(first, Draft) and not _no_worse(second, first) else second

    async def mend(self, problems: Sequence[str]) -> Draft | NoDraft:
        """The draft written anew, told what is wrong with the last one."""
        self._desk.engine.emit("draft_discarded", reason="; ".join(problems))
        # Only the last draft is shown: the conversation does not outgrow the window.
        last = () if self._said is None else (self._said,)
        draft, _ = await self._call((*self._asked, *last, user(prompt.again(problems))))
        return draft

    async def _call(self, messages: tuple[Message, ...]) -> tuple[Draft | NoDraft, tuple[str, ...]]:
        """What came of one call, and what to send back, if it can be mended."""
        brain, engine = self._desk.brain, self._desk.engine
        call = brain.asked("synthesizer", messages, self._schema)
        self._calls += 1
        on_text = None if self._drafts is None else self._drafts.begin()
        result = await engine.perform(f"@synthesis/{self._calls}", call, on_text=on_text)
        self._desk.used.append(usage_of(result, call.model))
        if result.reply is None or result.reply.stop in ("refused", "length"):
            fault = result.error or Fault(kind="refused", message="the answer was refused or cut off")
            engine.emit("draft_discarded", reason=fault.message)
            return NoDraft(fault), ()
        self._said = result.reply.as_message()
        data, problems = _read(result.reply.text, self._schema)
        if data is None:
            return NoDraft(Fault(kind="contract", message="; ".join(problems))), tuple(problems)
        self.last = draft = self._checked(data)
        return draft, self._wrong(draft)

    def _checked(self, data: dict[str, Any]) -> Draft:
        reconciled, answer = self._reconciled, data["answer"]
        merged = (*reconciled.claims, *reconciled.findings)
        return Draft(
            answer=answer,
            provenance=provenance_of(answer, reconciled.outcomes, known=self._known, merged=merged),
            silent=mention.passed_over(answer, reconciled.disagreements, reconciled.outcomes),
            contradictions=tuple(map(_contradiction, data.get("contradictions") or [])),
            gaps=tuple(map(_gap, data.get("gaps") or [])),
            confidence=data.get("confidence"),
            data=data.get("data"),
            invalid=self._validate(data["data"]) if self._validate is not None else None,
        )

    def _wrong(self, draft: Draft) -> tuple[str, ...]:
        """What is worth another call. A result that one which is cited depends on is used through it."""
        provenance = draft.provenance
        through = upstream(self._desk.plan, (task for tasks in provenance.citations.values() for task in tasks))
        left_out = tuple(task for task in provenance.unused if task not in through)
        invalid = () if draft.invalid is None else (draft.invalid,)
        mending = corrections(provenance.model_copy(update={"unused": left_out}))
        return (*mending, *mention.problems(draft.silent), *invalid)

    async def _affordable(self, problems: Sequence[str]) -> bool:
        engine = self._desk.engine
        return bool(await engine.decide("@synthesis/mend", "mend", engine.affordable, "; ".join(problems)))

    def _warn(self, message: str) -> None:
        self._desk.engine.emit("warning", message=message)


def upstream(plan: Plan, tasks: Iterable[str]) -> set[str]:
    """The tasks that these depend on, directly or not."""
    depends_on = {task.id: task.depends_on for task in plan.tasks}
    found: set[str] = set()
    waiting = [id for task in tasks for id in depends_on.get(task, ())]
    while waiting:
        if (id := waiting.pop()) not in found:
            found.add(id)
            waiting.extend(depends_on.get(id, ()))
    return found


def _no_worse(second: Draft | NoDraft, first: Draft) -> bool:
    """Whether the mended draft has no more of what keeps a run from being complete."""
    if isinstance(second, NoDraft):
        return False
    before, after = keeps_open(first.provenance), keeps_open(second.provenance)
    return (len(after), second.invalid is not None) <= (len(before), first.invalid is not None)


def _read(text: str, schema: dict[str, Any]) -> tuple[dict[str, Any] | None, list[str]]:
    """The synthesizer's answer, or None and what to tell it. An odd confidence is mended, a blank answer is none."""
    data, problems = read_object(text)
    if data is None:
        return None, problems
    data = {name: value for name, value in data.items() if name == "data" or value is not None}
    if "confidence" in data:
        data["confidence"] = read_confidence(data["confidence"], "confidence", [])
    if problems := violations(data, schema):
        return None, problems
    return (data, []) if data["answer"].strip() else (None, ["The answer is empty"])


def _gap(data: Any) -> Gap:
    if isinstance(data, str):
        return Gap(reason=data)
    try:
        return Gap.model_validate({name: data[name] for name in Gap.model_fields if data.get(name) is not None})
    except (ValidationError, AttributeError):
        return Gap(reason=str(data)[:500])


def _contradiction(data: Any) -> Contradiction:
    if isinstance(data, str):
        return Contradiction(subject=data)
    try:
        fields = {name: data[name] for name in Contradiction.model_fields if data.get(name) is not None}
        fields["claims"] = tuple(str(claim) for claim in fields.get("claims") or ())
        return Contradiction.model_validate(fields)
    except (ValidationError, AttributeError, TypeError):
        return Contradiction(subject=str(data)[:500])
