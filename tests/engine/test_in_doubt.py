"""A `once` tool in doubt after a crash: a person says what became of it, and that is what happens, once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from chargehand import Team, Worker, tool
from chargehand.engine.people import DOUBT_SCHEMA, choices, describe_question, doubt, read_words
from chargehand.errors import InvalidAnswer
from chargehand.models import Attribution
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.record.replay import replay
from chargehand.runs.answer_question import record_answer
from chargehand.runs.report_from_record import open_questions
from chargehand.values.effect import ModelCall, Question
from chargehand.values.message import Reply, ToolRequest
from chargehand.values.request import Request
from tests.flows import Flow, Said, task, tasks, works
from tests.kernel import result


def mailing(log: list[str]) -> Team:
    @tool
    def send(to: str, subject: str = "Hello") -> str:
        """Send a letter."""
        log.append(to)
        return f"sent to {to}, number {len(log)}"

    return Team([Worker("clerk", "Writes letters", tools=[send])])


def mails(call: ModelCall, attribution: Attribution) -> Said:
    """Sends a letter, then reports what it was told about it."""
    if call.role != "worker":
        return works(call, attribution)
    told_so_far = [message.text for message in call.messages if message.role == "tool"]
    if told_so_far:
        return result(told_so_far[-1])
    wish = ToolRequest(id="1", name="send", arguments={"to": "Ada"}, raw='{"to": "Ada"}')
    return Reply(tool_calls=(wish,), stop="tools")


def mailer(log: list[str], store: MemoryStore | None = None, *, ask: bool = True) -> Flow:
    return Flow(mails, tasks(task("a")), mailing(log), {"ask": ask}, store=store or MemoryStore())


def cut(store: MemoryStore, kind: str, number: int = 1) -> MemoryStore:
    """The record as it was right after the nth event of a kind."""
    seen = 0
    for index, (event, _) in enumerate(store.events):
        seen += event.kind == kind
        if seen == number:
            return MemoryStore(store.events[: index + 1], dict(store.blobs))
    raise AssertionError(f"fewer than {number} {kind}")


def crashed(log: list[str]) -> MemoryStore:
    """The record of a run that died while its letter was on the way."""
    flow = mailer(log)
    assert flow.run().status == "complete"
    return cut(flow.store, "tool_called")


def answer(store: MemoryStore, words: str) -> None:
    (asked,) = open_questions(replay(MemoryJournal.read(store).events()))
    asyncio.run(record_answer("run", MemoryJournal(store), asked.id, words))


def questions(flow: Flow) -> int:
    return sum(event.kind == "question_asked" for event in flow.events)


@pytest.mark.parametrize(
    ("words", "sent", "status", "output"),
    [
        ("happened: receipt 12", 1, "done", "receipt 12"),
        ("happened: -12.50", 1, "done", "-12.50"),
        ("happened - .5", 1, "done", ".5"),
        ("happened", 1, "done", "It has happened; what it returned is not known."),
        ("send", 2, "done", "sent to Ada, number 2"),
        ('{"verdict": "send"}', 2, "done", "sent to Ada, number 2"),
        ("give up", 1, "failed", None),
    ],
)
def test_a_person_says_what_became_of_it(words: str, sent: int, status: str, output: Any) -> None:
    """It happened and returned this; it did not, so it is sent; or the task is given up. Nobody is asked twice."""
    log: list[str] = []
    flow = mailer(log, crashed(log))
    assert flow.run(number=1).status == "waiting"
    assert log == ["Ada"]
    answer(flow.store, words)
    (outcome,) = flow.run(number=2).outcomes
    assert (outcome.status, outcome.output) == (status, output)
    assert len(log) == sent
    assert questions(flow) == 1
    assert outcome.error is None or outcome.error.kind == "in_doubt"


@pytest.mark.parametrize(("words", "sent"), [("happened receipt 12", 1), ("send it", 2), ("give up", 1)])
def test_a_second_crash_asks_no_second_question(words: str, sent: int) -> None:
    """Wherever the record is cut after the answer, the answer on it counts, and the letter that was sent is sent."""
    log: list[str] = []
    whole = mailer(log, crashed(log))
    whole.run(number=1)
    answer(whole.store, words)
    before = len(whole.store.events)
    expected = whole.run(number=2).outcomes[0]
    for kept in range(before, len(whole.store.events)):
        last = whole.store.events[kept - 1][0].kind
        if last == "tool_called":
            continue  # in flight once more: that is a doubt of its own, tested below
        again = list(log)
        flow = mailer(again, MemoryStore(whole.store.events[:kept], dict(whole.store.blobs)))
        (outcome,) = flow.run(number=3).outcomes
        assert (outcome.status, questions(flow)) == (expected.status, 1), f"cut after event {kept}"
        committed = sum(event.kind == "tool_returned" for event, _ in whole.store.events[:kept])
        assert len(again) - len(log) == (1 if words == "send it" and committed == 1 else 0)
    assert len(log) == sent


def test_what_was_sent_again_may_be_in_doubt_again() -> None:
    """Each sending is asked about once, under its own id; what was said about the first stays said."""
    log: list[str] = []
    flow = mailer(log, crashed(log))
    flow.run(number=1)
    answer(flow.store, "send")
    flow.run(number=2)
    flow = mailer(log, cut(flow.store, "tool_called", 2))
    assert flow.run(number=3).status == "waiting"
    assert len(log) == 2
    answer(flow.store, "happened receipt 2")
    (outcome,) = flow.run(number=4).outcomes
    assert outcome.output == "receipt 2"
    assert (len(log), questions(flow)) == (2, 2)


def test_with_nobody_to_ask_it_fails_and_is_not_sent() -> None:
    """Without --ask the task ends in doubt, with the remedy."""
    log: list[str] = []
    flow = mailer(log, crashed(log), ask=False)
    (outcome,) = flow.run(number=1).outcomes
    assert outcome.error is not None
    assert outcome.error.kind == "in_doubt"
    assert "rerun" in outcome.error.message
    assert (log, questions(flow)) == (["Ada"], 0)


def test_the_question_offers_its_three_answers() -> None:
    """In words or as data; anything else is refused with what may be said."""
    asked = Question(id="a-send", kind="tool", prompt="Was it sent?", answer_schema=DOUBT_SCHEMA)
    assert choices(asked) == ("happened [result]", "send (it did not happen)", "give up")
    assert describe_question(asked) == "Was it sent?"
    for words in ("approve", "yes", '{"verdict": "maybe"}', "send it to Bob", "giveup"):
        with pytest.raises(InvalidAnswer, match=r"happened \[result\]"):
            read_words(asked, words, Request(text="x"), [])
    said = read_words(asked, "Happened, on Monday.", Request(text="x"), [])
    assert said == {"verdict": "happened", "result": "on Monday."}
    assert doubt(said) == doubt("happened on Monday.")


# -- the key of a once call ------------------------------------------------------------------------------------------


def test_the_same_call_written_differently_is_the_same_call() -> None:
    """The order of arguments and a default spelt out change nothing: one letter, however often it is asked for."""
    log: list[str] = []
    ways: list[dict[str, Any]] = [
        {"to": "Ada"},
        {"to": "Ada", "subject": "Hello"},
        {"subject": "Hello", "to": "Ada"},
        {"subject": "Other", "to": "Ada"},
    ]

    def insists(call: ModelCall, attribution: Attribution) -> Said:
        done = sum(message.role == "tool" for message in call.messages)
        if done == len(ways):
            return result("done")
        wish = ToolRequest(id=str(done), name="send", arguments=ways[done], raw="{}")
        return Reply(tool_calls=(wish,), stop="tools")

    flow = Flow(insists, tasks(task("a")), mailing(log))
    assert flow.run().status == "complete"
    assert log == ["Ada", "Ada"], "one for each subject"
    keys = [event.data["key"] for event in flow.events if event.kind == "tool_called"]
    assert len(set(keys)) == len(keys) == 2
