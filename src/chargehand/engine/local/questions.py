"""The questions of one run: each is asked once, of the person who is there or of another session's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from chargehand.engine.engine_session import Prior
from chargehand.engine.local.activity import Activity
from chargehand.engine.local.clock import LocalClock
from chargehand.engine.local.recorder import Recorder, Site
from chargehand.engine.local.slots import Slots, never
from chargehand.engine.people import Later
from chargehand.record.replay import Replay
from chargehand.values.base import JSON
from chargehand.values.effect import Question
from chargehand.values.event import QuestionAnswered, QuestionAsked
from chargehand.values.key import Key


class Questions:
    """By key, this session's and those before it. A key is asked once and answered once."""

    def __init__(self, replay: Replay) -> None:
        self._asked = {key: Question.model_validate(asked) for key, asked in replay.questions.items()}
        self.answers: dict[str, JSON] = dict(replay.answers)

    def __contains__(self, key: str) -> bool:
        return key in self._asked

    def __getitem__(self, key: str) -> Question:
        return self._asked[key]

    def add(self, key: str, question: Question) -> Question:
        """The question under an id no other of the run has; what was recorded keeps the id it has."""
        taken = {asked.id for asked in self._asked.values()}
        ids = (question.id if number == 1 else f"{question.id}-{number}" for number in count(1))
        free = next(id for id in ids if id not in taken)
        self._asked[key] = question.model_copy(update={"id": free})
        return self._asked[key]

    def borrow(self, key: str, question: Question, earlier: Replay) -> bool:
        """Whether the run this one repeats has a person's work on the very same question; it is not asked twice."""
        asked: dict[str, Any] = earlier.questions.get(key) or {}
        same = question.kind == "task" and asked.get("prompt") == question.prompt and key in earlier.answers
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
    ) -> None:
        self._questions = Questions(replay)
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
        if site.key not in answers and self._people is not None:
            await self._ask_person(site, self._people)
        if site.key in answers:
            return answers[site.key]
        with self._activity.wait_for_later():
            return await never()

    async def _record_question(self, site: Site, question: Question) -> None:
        """On the record before anybody is asked, with the answer where the run that this one repeats has it."""
        await self._slots.may_begin()
        key, questions, emit = site.key, self._questions, self._recorder.emit_at
        if self._prior is not None and questions.borrow(key, question, self._prior.replay):
            emit(site, QuestionAsked(key=key, question=questions[key].to_json()))
            emit(site, QuestionAnswered(key=key, answer=questions.answers[key], by=self._prior.run))
        elif key not in questions:
            emit(site, QuestionAsked(key=key, question=questions.add(key, question).to_json()))
        with self._activity:
            await self._recorder.commit()

    async def _ask_person(self, site: Site, people: Callable[[Question], Awaitable[JSON]]) -> None:
        """Ask the person who is there, after those who asked before; the person may leave it for later."""
        with self._activity.ask_inline():
            try:
                async with self._turn:
                    if site.key in self._questions.answers:
                        return  # two asked the same at the same time
                    answer = self._questions.answers[site.key] = await people(self._questions[site.key])
                    parked = round(self._activity.unrecorded_still_seconds(), 3)
                    answered = QuestionAnswered(key=site.key, answer=answer, by="person", parked_s=parked)
                    self._recorder.emit_at(site, answered)
                    with self._activity:
                        await self._recorder.commit()
            except Later:
                return
