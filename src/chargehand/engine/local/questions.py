"""The questions of one run: each is asked once, of the person in this session or in a later one.

An answer may also come as an order, from any process: the first that can be used counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from itertools import count
from typing import Any

from chargehand.engine.engine_session import Prior
from chargehand.engine.local.activity import Activity
from chargehand.engine.local.clock import LocalClock
from chargehand.engine.local.recorder import Recorder, Site
from chargehand.engine.local.slots import Slots
from chargehand.engine.people import Later, answered_already
from chargehand.errors import InvalidAnswer
from chargehand.events import QuestionAnswered, QuestionAsked
from chargehand.record.replay import Replay
from chargehand.record.task_list import ACCEPTED, Judgement
from chargehand.values.base import JSON
from chargehand.values.effect import Question
from chargehand.values.key import Key
from chargehand.values.order import Order


class Questions:
    """Questions by key, of this session and of earlier ones. A key is asked once and answered once."""

    def __init__(self, replay: Replay) -> None:
        self._asked = {key: Question.model_validate(asked) for key, asked in replay.questions.items()}
        self.answers: dict[str, JSON] = dict(replay.answers)

    def __contains__(self, key: str) -> bool:
        return key in self._asked

    def __getitem__(self, key: str) -> Question:
        return self._asked[key]

    def find(self, id: str) -> str | None:
        """The key of the question with this id."""
        return next((key for key, asked in self._asked.items() if asked.id == id), None)

    def open_ids(self) -> list[str]:
        return [asked.id for key, asked in self._asked.items() if key not in self.answers]

    def add(self, key: str, question: Question) -> Question:
        """The question with an id that is unique in the run; a recorded question keeps its id."""
        taken = {asked.id for asked in self._asked.values()}
        ids = (question.id if number == 1 else f"{question.id}-{number}" for number in count(1))
        free = next(id for id in ids if id not in taken)
        self._asked[key] = question.model_copy(update={"id": free})
        return self._asked[key]

    def close(self, task: str) -> None:
        """Remove the open questions of a task that has ended."""
        for key in [key for key in self._asked if key not in self.answers]:
            if (path := Key.parse(key).path) is not None and task in path.wholes:
                del self._asked[key]

    def borrow(self, key: str, question: Question, earlier: Replay) -> bool:
        """Whether the run that this one repeats has a person's work on the same question; it is not asked twice.

        An approval holds for one run.
        """
        asked: dict[str, Any] = earlier.questions.get(key) or {}
        is_work = question.kind in ("task", "escalation")
        same = is_work and asked.get("prompt") == question.prompt and key in earlier.answers
        if not same or key in self:
            return False
        self.add(key, question)
        self.answers[key] = earlier.answers[key]
        return True


class Inquiries:
    """Asks people, one question at a time; without a person questions stay open until another session."""

    def __init__(
        self,
        replay: Replay,
        prior: Prior | None,
        people: Callable[[Question], Awaitable[JSON]] | None,
        recorder: Recorder,
        slots: Slots,
        activity: Activity,
        clock: LocalClock,
        read_answer: Callable[[Question, str], JSON] | None = None,
    ) -> None:
        self._questions = Questions(replay)
        self._read_answer = read_answer
        # By key, set when an answer has come as an order.
        self._arrived: dict[str, asyncio.Event] = {}
        self._prior = prior
        self._people = people
        self._recorder = recorder
        self._slots = slots
        self._activity = activity
        self._clock = clock
        self._turn = asyncio.Lock()

    async def ask(self, key: str, question: Question) -> JSON:
        if key in self._questions.answers:
            return self._questions.answers[key]
        at = Key.parse(key)
        with self._clock.pause(() if at.path is None else at.path.lineage):
            return await self._wait_for_answer(Site(key, at.task, at.attempt), question)

    async def _wait_for_answer(self, site: Site, question: Question) -> JSON:
        answers = self._questions.answers
        await self._record_question(site, question)
        arrived = self._arrived.setdefault(site.key, asyncio.Event())
        if site.key not in answers and self._people is not None:
            await _unless(arrived, self._ask_person(site, self._people))
        if site.key in answers:
            return answers[site.key]
        with self._activity.wait_for_later():
            await arrived.wait()
        return answers[site.key]

    # -- answers that come as orders ---------------------------------------------------------------------------------

    def judge_answer(self, order: Order) -> Judgement:
        """The verdict on an answer: the first that can be used is accepted, and the same again."""
        key = self._questions.find(order.question or "")
        if key is None or self._read_answer is None:
            still = ", ".join(self._questions.open_ids()) or "none"
            return Judgement("refused", f"The run asks no question {order.question!r}. Open: {still}.")
        try:
            answer = self._read_answer(self._questions[key], order.text)
        except InvalidAnswer as error:
            return Judgement("refused", str(error))
        recorded = self._questions.answers.get(key, answer)
        return ACCEPTED if recorded == answer else Judgement("refused", answered_already(order.question, recorded))

    def close(self, task: str) -> None:
        """Take no answers to the open questions of a task that has ended."""
        self._questions.close(task)

    def record_answer(self, order: Order) -> None:
        """Put an accepted answer on the record, unless it is there already."""
        key = self._questions.find(order.question or "")
        assert key is not None
        assert self._read_answer is not None
        if key not in self._questions.answers:
            at = Key.parse(key)
            answer = self._questions.answers[key] = self._read_answer(self._questions[key], order.text)
            parked = round(self._activity.unrecorded_still_seconds(), 3)
            answered = QuestionAnswered(key=key, answer=answer, by="order", parked_s=parked)
            self._recorder.emit_at(Site(key, at.task, at.attempt), answered)

    def deliver(self, question: str) -> None:
        """Let the code that asked the question continue: its answer is on the record."""
        if (key := self._questions.find(question)) is not None and key in self._questions.answers:
            self._arrived.setdefault(key, asyncio.Event()).set()

    # -- asking ------------------------------------------------------------------------------------------------------

    async def _record_question(self, site: Site, question: Question) -> None:
        """Record the question before a person is asked, with the answer if the run that this one repeats has it."""
        await self._slots.may_begin()
        key, questions, emit = site.key, self._questions, self._recorder.emit_at
        if self._prior is not None and questions.borrow(key, question, self._prior.replay):
            emit(site, QuestionAsked(key=key, question=questions[key].to_json(), source=self._prior.run))
            emit(site, QuestionAnswered(key=key, answer=questions.answers[key], by=self._prior.run))
        elif key not in questions:
            emit(site, QuestionAsked(key=key, question=questions.add(key, question).to_json()))
        with self._activity:
            await self._recorder.commit()

    async def _ask_person(self, site: Site, people: Callable[[Question], Awaitable[JSON]]) -> None:
        """Ask the person in this session, after the earlier questions; the person may leave it for later."""
        with self._activity.ask_inline():
            try:
                async with self._turn:
                    if site.key in self._questions.answers:
                        return  # two asked the same at the same time
                    answer = await people(self._questions[site.key])
                    if site.key in self._questions.answers:
                        return  # answered from elsewhere in the same moment
                    self._questions.answers[site.key] = answer
                    parked = round(self._activity.unrecorded_still_seconds(), 3)
                    answered = QuestionAnswered(key=site.key, answer=answer, by="person", parked_s=parked)
                    self._recorder.emit_at(site, answered)
                    with self._activity:
                        await self._recorder.commit()
            except Later:
                return


async def _unless(arrived: asyncio.Event, asking: Coroutine[Any, Any, None]) -> None:
    """Ask until there is an answer, or one arrives from elsewhere."""
    asked, other = asyncio.ensure_future(asking), asyncio.ensure_future(arrived.wait())
    try:
        await asyncio.wait((asked, other), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in (asked, other):
            each.cancel()
        (failed, _) = await asyncio.gather(asked, other, return_exceptions=True)
    if isinstance(failed, Exception):
        raise failed
