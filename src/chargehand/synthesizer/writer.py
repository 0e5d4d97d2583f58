"""The material and what is known of it -> a draft of the answer, sent back once with the problems that code finds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from chargehand.events import DraftDiscarded
from chargehand.synthesizer import prompt
from chargehand.synthesizer import unmentioned as mention
from chargehand.synthesizer.check_citations import Known, corrections, provenance_of, why_unfounded
from chargehand.synthesizer.cite_by_words import cite_by_words
from chargehand.synthesizer.group_contradictions import Disagreement
from chargehand.synthesizer.placeholder import is_placeholder, is_unfilled
from chargehand.synthesizer.read_draft import read_draft
from chargehand.synthesizer.reconcile import Reconciled
from chargehand.synthesizer.result_index import takes_long
from chargehand.synthesizer.stated_gaps import contradictions, gaps, left_out
from chargehand.synthesizer.streaming import Drafts
from chargehand.synthesizer.synthesis import SynthesisContext, Validate, keeps_open, upstream
from chargehand.synthesizer.typed_figures import SHOWN_ONLY, unsupported_figures
from chargehand.values.base import JSON
from chargehand.values.effect import usage_of
from chargehand.values.message import Message, system, user
from chargehand.values.outcome import Fault
from chargehand.values.report import Contradiction, Gap, Provenance


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
        """The answer with a section for the disagreements it does not mention."""
        return self.answer if not self.silent else f"{self.answer.rstrip()}\n\n{mention.section(self.silent)}"


@dataclass(frozen=True, slots=True)
class NoDraft:
    """Why there is none: the call failed, or what was written is not an answer."""

    fault: Fault


@dataclass(frozen=True, slots=True)
class _Written:
    """What came of one call: the draft, the reply itself, and what to send back if it can be corrected."""

    draft: Draft | NoDraft
    said: Message | None = None
    wrong: tuple[str, ...] = ()


class Writer:
    """One conversation with the synthesizer; its calls are numbered from first to last."""

    def __init__(
        self,
        context: SynthesisContext,
        reconciled: Reconciled,
        read: Iterable[str],
        validate: Validate | None,
        drafts: Drafts | None,
    ) -> None:
        self._context = context
        self._reconciled = reconciled
        self._known = Known.of(context.request, context.plan, read)
        self._validate = validate
        self._drafts = drafts
        self._typed = context.request.answer_schema is not None
        shortest = prompt.SMALL_RULES if context.model.is_small else prompt.RULES
        self._rules = prompt.TYPED_RULES if self._typed else shortest
        self._schema = prompt.schema(context.request.answer_schema)
        self._calls = 0
        self._asked: tuple[Message, ...] = ()
        # What is wrong with a first draft that is an answer.
        self._wrong_at_first: tuple[str, ...] = ()
        # The text of the draft that counts; until there is one, the reply that could not be read.
        self._said: Message | None = None
        self.last: Draft | None = None
        # Why the last reply was not taken for an answer.
        self.rejected: str | None = None

    async def write(self, text: str) -> Draft | NoDraft:
        """The first draft that answers the question in `text`; a reply that is not an answer is sent back once."""
        self._asked = (system(self._rules), user(text))
        first = await self._call(self._asked)
        if isinstance(first.draft, NoDraft):
            self._said = first.said
            return await self._write_again(first.wrong) if first.wrong else first.draft
        self._keep(first.draft, first.said)
        self._wrong_at_first = first.wrong
        return first.draft

    async def correct(self, draft: Draft) -> Draft:
        """The problems of a first draft are sent back once.

        The budget for the first draft is held back; a correction gets only what the budget can spare.
        """
        wrong, self._wrong_at_first = self._wrong_at_first, ()
        if wrong and await self._affordable(wrong):
            second = await self._write_again(wrong)
            return second if isinstance(second, Draft) else draft
        return draft

    async def revise(self, problems: Sequence[str]) -> Draft | NoDraft:
        """The draft, rewritten with the problems that a reader and code find; NoDraft if the rewrite is worse.

        A reader may have wanted a result left out: that is not worse.
        """
        mine = () if self.last is None else self._wrong(self.last)
        return await self._write_again(tuple(dict.fromkeys((*problems, *mine))), wanted=True)

    async def _write_again(self, problems: Sequence[str], *, wanted: bool = False) -> Draft | NoDraft:
        # Only the draft that counts is shown, so the conversation fits into the window.
        last = () if self._said is None else (self._said,)
        changes = prompt.again(problems)
        kept, made = self.last, await self._call((*self._asked, *last, user(changes)), changes)
        if isinstance(made.draft, NoDraft):
            return made.draft
        if kept is not None and self._rank(made.draft, wanted=wanted) > self._rank(kept, wanted=wanted):
            worse = f"it was worse than the one before: {'; '.join(made.wrong)}"
            self._context.engine.emit(DraftDiscarded(reason=worse))
            return NoDraft(Fault(kind="contract", message=worse))
        if kept is not None:
            self._context.engine.emit(DraftDiscarded(reason="; ".join(problems)))
        self._keep(made.draft, made.said)
        return made.draft

    def _keep(self, draft: Draft, said: Message | None) -> None:
        self.last, self._said = draft, said
        self._context.engine.budget.release()

    async def _call(self, messages: tuple[Message, ...], changes: str = "") -> _Written:
        """`changes` is what the model was asked to change in its last draft."""
        model, engine = self._context.model, self._context.engine
        call = model.make_call("synthesizer", messages, self._schema if self._typed else None)
        self._calls += 1
        on_text = None if self._drafts is None else self._drafts.begin()
        result = await engine.perform(f"@synthesis/{self._context.mark}{self._calls}", call, on_text=on_text)
        self._context.used.append(usage_of(result, call.model))
        if result.reply is None or result.reply.stop in ("refused", "length"):
            fault = result.error or Fault(kind="refused", message="the answer was refused or cut off")
            engine.emit(DraftDiscarded(reason=fault.message))
            return _Written(NoDraft(fault))
        said = result.reply.as_text()
        data, problems = read_draft(result.reply.text, self._schema, self._reconciled.outcomes, typed=self._typed)
        if data is None:
            return self._reject("; ".join(problems), said, tuple(problems))
        check = partial(self._check_draft, data)
        draft = await engine.clock.compute(check) if takes_long(self._reconciled.outcomes) else check()
        if (why := self._no_answer(draft, changes)) is not None:
            return self._reject(why, said, (why, *self._wrong(draft)))
        return _Written(draft, said, self._wrong(draft))

    def _reject(self, why: str, said: Message, wrong: tuple[str, ...]) -> _Written:
        self.rejected = why
        self._context.engine.emit(DraftDiscarded(reason=why))
        return _Written(NoDraft(Fault(kind="contract", message=why)), said, wrong)

    def _no_answer(self, draft: Draft, changes: str) -> str | None:
        """Why a draft of the right shape is not an answer; None when it is one."""
        if is_placeholder(draft.answer, self._reconciled.outcomes, f"{self._rules}\n{changes}"):
            return "The answer is a placeholder: write the answer itself."
        if is_unfilled(draft.data):
            return "`data` holds nothing but placeholders: fill it in from the results."
        return why_unfounded(draft.provenance, self._reconciled.outcomes)

    def _check_draft(self, data: dict[str, Any]) -> Draft:
        reconciled = self._reconciled
        outcomes, merged = reconciled.outcomes, (*reconciled.claims, *reconciled.findings)
        answer = cite_by_words(data["answer"], outcomes)
        provenance = provenance_of(answer, outcomes, known=self._known, merged=merged)
        in_data = unsupported_figures(data.get("data"), outcomes, f"{self._known.text}\n{answer}")
        # If a cited result depends on another result, that other result counts as used.
        unused = set(provenance.unused) - upstream(self._context.plan, provenance.cited)
        apart = [each for each in left_out(data.get("left_out") or [], outcomes) if each.task in unused]
        unused -= {each.task for each in apart}
        checked = {
            "problems": (*provenance.problems, *in_data),
            "unused": tuple(task for task in provenance.unused if task in unused),
            "left_out": tuple(apart),
        }
        return Draft(
            answer=answer,
            provenance=provenance.model_copy(update=checked),
            silent=mention.unmentioned_disagreements(answer, reconciled.disagreements, reconciled.outcomes),
            contradictions=contradictions(data.get("contradictions") or []),
            gaps=gaps(data.get("gaps") or [], outcomes),
            confidence=data.get("confidence"),
            data=data.get("data"),
            invalid=self._validate(data["data"]) if self._validate is not None else None,
        )

    def _wrong(self, draft: Draft) -> tuple[str, ...]:
        """The problems that are worth another call."""
        invalid = () if draft.invalid is None else (draft.invalid,)
        problems = tuple(each for each in draft.provenance.problems if not each.startswith(SHOWN_ONLY))
        wrong = corrections(draft.provenance.model_copy(update={"problems": problems}))
        return (*wrong, *mention.problems(draft.silent), *invalid)

    def _rank(self, draft: Draft, *, wanted: bool) -> tuple[int, ...]:
        """What is wrong with a draft, the gravest first; `wanted`: someone may have asked to leave a result out."""
        provenance = draft.provenance
        return (
            len(keeps_open(provenance)),
            draft.invalid is not None,
            len(draft.silent),
            0 if wanted else len(provenance.unused),
            len(provenance.problems),
        )

    async def _affordable(self, problems: Sequence[str]) -> bool:
        """To correct a draft takes at least what it took to write it."""
        engine, needed = self._context.engine, self._context.used[-1].tokens
        choose = partial(engine.budget.affordable, needed)
        # Existing records have this word: with another word a resumed run would decide it again.
        return bool(await engine.decide(f"@synthesis/{self._context.mark}mend", "mend", choose, "; ".join(problems)))
