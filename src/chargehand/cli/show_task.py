"""`show RUN TASK`: the events of one task become what it was asked, what it did in each attempt, and its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from chargehand.cli.order_lines import restart_command
from chargehand.errors import UsageError
from chargehand.text.escaping import dump_json
from chargehand.trace import TaskState, fold
from chargehand.trace.number_text import duration
from chargehand.trace.task_detail import task_details
from chargehand.values.status_words import FINISHED

if TYPE_CHECKING:
    from chargehand.record.run_source import RunSource
    from chargehand.values.plan import Task

# Longer texts are cut here; --json has all of them.
LONGEST = 4_000
# A line of a prompt of this length is taken to be broken only because it is long.
LONG_LINE = 80
# Where the text beside a label begins.
COLUMN = 11


def read_task(source: RunSource, run: str, task: str) -> dict[str, Any]:
    """The task as JSON: instruction, criterion, attempts with their calls, decisions and the outcome."""
    events = list(source.events(run))
    view = fold(events)
    # Before a plan is approved, its tasks are only drafted.
    tasks = view.tasks or {each.id: _make_state(each) for each in (view.plan.tasks if view.plan else ())}
    if task not in tasks:
        from difflib import get_close_matches

        near = get_close_matches(task, tasks, n=1)
        if not tasks:
            hint = "It has no plan yet." if view.status not in FINISHED else f"It {view.status} before it had a plan."
        else:
            hint = f"Did you mean {near[0]}?" if near else f"It has: {', '.join(list(tasks)[:20])}."
        raise UsageError(f"Run {run} has no task {task!r}. {hint}")
    found = tasks[task]
    status_of = partial(view.status_of, is_over=True if source.owner(run) is None else None)
    [(_, detail)] = task_details([found], events, partial(source.messages, run), status_of)
    return {"task": task, "worker": found.worker, "status": status_of(found), **detail}


def _make_state(task: Task) -> TaskState:
    return TaskState(
        task.id,
        worker=task.worker,
        instruction=task.instruction,
        success_criterion=task.success_criterion,
        depends_on=task.depends_on,
    )


def describe_task(run: str, detail: dict[str, Any], pending: Sequence[str] = ()) -> Iterator[str]:
    """The same in lines for a person, with the orders about it that wait for the next resume."""
    yield f"task       {detail['task']}, {detail['worker']}: {detail['status']}"
    yield from _label_lines("asked", detail["instruction"])
    yield from _label_lines("done when", detail["success_criterion"])
    # Role and text of a prompt -> the attempts that used it. A prompt is shown only once.
    shown: dict[tuple[str, str], list[int]] = {}
    for attempt in detail["attempts"]:
        yield ""
        yield _describe_attempt(attempt)
        for call in attempt["calls"]:
            yield from _describe_call(call, attempt["number"], shown)
    if detail["decisions"]:
        yield ""
        for each in detail["decisions"]:
            yield from _label_lines("decided", _describe_decision(each))
    if orders := [*(_describe_order(run, detail["task"], each) for each in detail["orders"]), *pending]:
        yield ""
        for each in orders:
            yield from _label_lines("order", each)
    if (outcome := detail["outcome"]) is not None:
        yield ""
        yield from _describe_outcome(outcome)


def _describe_attempt(attempt: dict[str, Any]) -> str:
    model = f" with {attempt['model']}" if attempt.get("model") else ""
    took = f" after {duration(attempt['seconds'])}" if "seconds" in attempt else ""
    if attempt["calls"] and all(call.get("reused") for call in attempt["calls"]):
        took = ", reused"
    error = f": {attempt['error']['kind']}: {attempt['error']['message']}" if attempt.get("error") else ""
    return f"attempt {attempt['number']}  {attempt.get('worker', '')}{model}, {attempt['status']}{took}{error}"


def _describe_decision(decided: dict[str, Any]) -> str:
    value = cast("dict[str, Any]", decided["value"]) if isinstance(decided["value"], dict) else {}
    what = f" ({str(value['kind']).replace('_', ' ')})" if "kind" in value else ""
    return f"{decided['decision']}{what}: {value.get('instruction') or decided['reason']}"


def _describe_order(run: str, task: str, ordered: dict[str, Any]) -> str:
    words = f' "{ordered["text"]}"' if ordered["text"] else ""
    name = "words for the worker" if ordered["order"] == "tell" else ordered["order"]
    reason = f": {ordered['reason']}" if ordered["reason"] else ""
    again = f" {restart_command(run, task)}" if ordered["verdict"] == "too_late" else ""
    return f"{name}{words}, {ordered['verdict'].replace('_', ' ')}{reason}{again}"


def _describe_call(call: dict[str, Any], attempt: int, shown: dict[tuple[str, str], list[int]]) -> Iterator[str]:
    result: dict[str, Any] = call.get("result") or {}
    if (role := call.get("role", "worker")) != "worker":
        yield from _label_lines("role", role)
    if call.get("reused"):
        yield from _label_lines("reused", _source(call["source"]))
    elif call["kind"] == "tool":
        given: dict[str, Any] = call.get("arguments") or {}
        arguments = ", ".join(f"{name}={dump_json(value)}" for name, value in given.items())
        # The arguments of a refused call are in the reply that asked for it.
        yield from _label_lines("tool", call["name"] if "refused" in call else f"{call['name']}({arguments})")
        if "refused" in call:
            yield from _label_lines("refused", call["refused"])
    # Messages of the worker and of tools were already shown as replies and results.
    for message in (each for each in call.get("messages", []) if each["role"] in ("system", "user")):
        prompt = (message["role"], _text_of(message))
        attempts = shown.setdefault(prompt, [])
        if not attempts:
            yield from _label_lines(prompt[0], _unbroken(prompt[1]) if prompt[0] == "system" else prompt[1])
        elif attempt not in attempts:
            yield from _label_lines(prompt[0], f"as in attempt {attempts[0]}")
        attempts.append(attempt)
    yield from _label_lines("reply", _text_of(result.get("reply") or {}))
    yield from _label_lines("result", result.get("text") or "")
    if error := result.get("error"):
        yield from _label_lines("error", f"{error['kind']}: {error['message']}")
        yield from _label_lines("raised at", result.get("place") or "")


def _source(source: str) -> str:
    return "what was found in the same content before" if source == "cache" else f"the result of run {source}"


def _text_of(message: dict[str, Any]) -> str:
    """The words of a message, and the tools that it calls."""
    calls = [f"{each.get('name')}({dump_json(each.get('arguments'))})" for each in message.get("tool_calls") or ()]
    return "\n".join(part for part in (str(message.get("text") or ""), *calls) if part)


def _describe_outcome(outcome: dict[str, Any]) -> Iterator[str]:
    yield f"{outcome['status']:<10} {outcome['summary']}"
    if outcome.get("error"):
        yield from _label_lines("error", f"{outcome['error']['kind']}: {outcome['error']['message']}")
    for claim in outcome["claims"]:
        sources = f" [{', '.join(claim['sources'])}]" if claim["sources"] else ""
        yield from _label_lines("claim", f"{claim['statement']}{sources}")
    for finding in outcome["findings"]:
        where = f"{finding['path']}:{finding['line']}: " if finding["path"] else ""
        yield from _label_lines("finding", f"{where}{finding['severity']}: {finding['message']}")
    output = outcome["output"]
    if output is not None:
        yield from _label_lines("output", output if isinstance(output, str) else dump_json(output, indent=2))


def _unbroken(text: str) -> str:
    """The words of a prompt without the line breaks of the file that they are from, which no terminal has room for.

    A line continues a long one unless a list, a heading, a table or an empty line begins there.
    """
    lines: list[str] = []
    before = ""
    for line in text.splitlines():
        words = line.strip()
        if len(before) >= LONG_LINE and words[:1].isalpha():
            lines[-1] = f"{lines[-1]} {words}"
        else:
            lines.append(line)
        before = line
    return "\n".join(lines)


def _label_lines(label: str, text: str) -> Iterator[str]:
    """The lines of the text, the first with the label; nothing for an empty text."""
    text = text.strip()
    if not text:
        return
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}\n[cut: {len(text) - LONGEST:,} characters more with --json]"
    first, *more = text.splitlines()
    yield f"{label:<{COLUMN}}{first}"
    yield from (" " * COLUMN + line for line in more)
