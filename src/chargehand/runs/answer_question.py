"""A person's words about a run -> one event on its record, or why they cannot be taken.

If no process owns the run, the command records them itself; otherwise the owner gets them as an order and records them.
"""

from __future__ import annotations

import time

from chargehand.engine.people import answered_already, read_words
from chargehand.errors import NoOpenQuestion
from chargehand.events import Event, QuestionAnswered
from chargehand.record.journal import Journal
from chargehand.record.replay import Replay, replay
from chargehand.runs.report_from_record import open_questions
from chargehand.values.base import JSON
from chargehand.values.effect import Question
from chargehand.values.key import Key
from chargehand.values.plan import FactoryLimits
from chargehand.values.request import Request
from chargehand.values.status_words import FINISHED


async def record_answer(run: str, journal: Journal, question: str, words: str) -> tuple[Question, ...]:
    """Take the answer to the question with that id; return the open questions. An unusable answer changes nothing."""
    state = replay(journal.events())
    key, answer = check_answer(run, state, question, words, is_owned=False)
    if key in state.answers:
        return open_questions(state)
    _, task, attempt = Key.parse(key)
    answered = QuestionAnswered(key=key, answer=answer, by="command")
    event = Event(run, state.seq + 1, time.time(), task, attempt, answered)
    await journal.append([event], {})
    state.apply(event)
    return open_questions(state)


def check_answer(run: str, state: Replay, question: str, words: str, *, is_owned: bool) -> tuple[str, JSON]:
    """The key of the question and the answer; NoOpenQuestion or InvalidAnswer says why it cannot be taken.

    The recorded answer may be given again. `is_owned`: a process runs the run, so nobody has to resume it.
    """
    key = _key_of(run, question, state, is_owned=is_owned)
    request = Request.model_validate(state.start["request"])
    team = state.start["team"]
    workers = [name for worker in team["workers"] for name in (worker["name"], worker.get("pool")) if name]
    factory = FactoryLimits.model_validate(team["factory"]) if team.get("factory") else None
    answer = read_words(Question.model_validate(state.questions[key]), words, request, workers, factory)
    if (recorded := state.answers.get(key, answer)) != answer:
        raise NoOpenQuestion(answered_already(question, recorded))
    return key, answer


def _key_of(run: str, question: str, state: Replay, *, is_owned: bool) -> str:
    """The key of an open question; NoOpenQuestion says why none has that id, and which questions are open."""
    if state.status in FINISHED:
        message = f"{run} has ended ({state.status}): nothing is asked any more."
        raise NoOpenQuestion(message, command=f"See: chargehand show {run}")
    ids = {asked["id"]: key for key, asked in state.questions.items()}
    still = ", ".join(asked.id for asked in open_questions(state))
    if question not in ids:
        listed = f"Open: {still}." if still else "Nothing is open." if is_owned else "Nothing is open: resume it."
        ways = f"Follow it with: chargehand show {run} --watch" if is_owned else f"With: chargehand resume {run}"
        raise NoOpenQuestion(f"{run} asks no question {question!r}. {listed}", command="" if still else ways)
    return ids[question]
