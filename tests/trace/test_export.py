"""JSON and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from chargehand.events import Event
from chargehand.text.redaction import Redactor
from chargehand.trace import fold, to_json, to_jsonl
from chargehand.values.message import user
from tests.trace.sample import Recorder, sample

SECRET = "sk-ant-api03-Zq81LmPw7RtYx2Vb9NcKd4Hj6Gf5Ds3A"


def _nothing(hashes: Iterable[str]) -> dict[str, bytes]:
    return {}


def test_each_line_is_one_event() -> None:
    """A line is the event's JSON; all are there, in order, ended by a newline."""
    lines = list(to_jsonl(sample(), Redactor()))
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in lines)
    assert [json.loads(line) for line in lines] == [event.to_json() for event in sample()]


def test_lines_are_made_as_they_are_asked_for() -> None:
    """Memory stays flat however long the record is: one event is read for one line."""
    read: list[int] = []

    def events() -> Iterator[Event]:
        for event in sample():
            read.append(event.seq)
            yield event

    lines = to_jsonl(events(), Redactor())
    next(lines)
    assert read == [1]


def test_the_document_holds_events_messages_and_a_summary() -> None:
    """Messages are named by hash in the events and stand once in the document."""
    asked = user("How many people live in Oslo?")
    record = Recorder()
    record.start(0, "Ask")
    for number in (1, 2):
        key = f"t1/1/model/{number}"
        record.note(number, "model_called", "t1", 1, key=key, role="worker", model="m", messages=[asked.digest, "lost"])
    document = to_json(
        record.events(), lambda hashes: {h: asked.packed for h in hashes if h == asked.digest}, Redactor()
    )
    assert document["messages"] == {asked.digest: {"role": "user", "text": "How many people live in Oslo?"}}
    assert (document["version"], document["run"], len(document["events"])) == (1, record.run, 3)
    assert (document["summary"]["tasks"][0]["calls"], document["summary"]["tasks"][0]["tool_calls"]) == (2, 0)
    assert json.loads(json.dumps(document)) == document


def test_the_summary_says_how_the_run_went() -> None:
    """Figures for scripts that do not want to fold events themselves."""
    summary = to_json(sample(), _nothing, Redactor())["summary"]
    assert summary["counts"] == {"done": 5, "failed": 1, "escalated": 1, "skipped": 1}
    assert (summary["status"], summary["elapsed_s"], summary["tokens"]) == ("partial", 15.25, 18_620)
    assert [task["attempts"] for task in summary["tasks"]] == [1, 1, 1, 2, 1, 0, 1, 1]
    assert summary["tool_calls"] == sum(task["tool_calls"] for task in summary["tasks"]) > 0
    for task in fold(sample()).tasks.values():
        shown = next(each for each in summary["tasks"] if each["id"] == task.id)
        assert shown["calls"] + shown["tool_calls"] == len(task.calls)
        assert shown["calls"] == sum(call.kind == "model" for call in task.calls)


def test_secrets_do_not_leave() -> None:
    """Known values and what looks like a key are gone from every part of both formats."""
    told = user(f"The key is {SECRET}, the word is open-sesame-42.")
    record = Recorder()
    record.start(0, f"Use {SECRET} and open-sesame-42")
    record.note(1, "model_called", key="@plan/1", messages=[told.digest], model="m")
    record.note(2, "warning", message=f"{SECRET} open-sesame-42")
    redactor = Redactor(["open-sesame-42"])
    whole = json.dumps(to_json(record.events(), lambda hashes: dict.fromkeys(hashes, told.packed), redactor))
    whole += "".join(to_jsonl(record.events(), redactor))
    assert "redacted" in whole
    assert SECRET not in whole
    assert "open-sesame" not in whole
