"""A report -> what a calling model needs to know about a run: a short JSON document with the next step, and text."""

from __future__ import annotations

from typing import Any, NamedTuple

from chargehand.server.access import Caller
from chargehand.trace.number_text import moment, several, short
from chargehand.values.status_words import FINISHED

MOST_ITEMS = 100
LONGEST_SUMMARY = 300


class Told(NamedTuple):
    """An answer to a caller: the same as data and as text."""

    data: dict[str, Any]
    text: str


def summarize_run(whole: dict[str, Any], url: str | None, *, may_answer: bool) -> Told:
    """`whole` is the report with its questions; `may_answer` says whether the caller may answer escalations."""
    status: str = whole["status"]
    ended = status in FINISHED
    data: dict[str, Any] = {"run": whole["run"], "status": status}
    if ended:
        data |= {name: whole[name] for name in ("answer", "confidence")}
        data |= {"data": whole["data"]} if whole.get("data") is not None else {}
    for name in ("findings", "gaps", "contradictions"):
        if found := whole[name]:
            data[name] = found[:MOST_ITEMS]
            if len(found) > MOST_ITEMS:
                data[f"{name}_left_out"] = len(found) - MOST_ITEMS
    data["tasks"] = [_task(each) for each in whole["outcomes"][:MOST_ITEMS]]
    data["usage"] = whole["usage"]
    if whole["questions"]:
        data["questions"] = whole["questions"]
    if "waiting" in whole:
        data["waiting"] = whole["waiting"]
    if url is not None:
        data["page"] = f"{url}runs/{whole['run']}"
    data["next"] = _next_step(data, may_answer=may_answer)
    return Told(data, _as_text(data, whole))


def may_answer(caller: Caller, kind: str, *, approvals: bool) -> bool:
    """Whether a caller's model may answer a question: escalations always, approvals only with `approvals`."""
    return caller == "owner" and (approvals or kind == "escalation")


def _task(outcome: dict[str, Any]) -> dict[str, Any]:
    found = {name: outcome[name] for name in ("task", "worker", "status")}
    why = outcome.get("error") or outcome.get("escalation")
    summary = why["message"] if why else outcome["summary"]
    return found | {"summary": short(str(summary), LONGEST_SUMMARY)}


def _next_step(data: dict[str, Any], *, may_answer: bool) -> str | None:
    run, status = data["run"], data["status"]
    if status in FINISHED:
        return None
    if questions := data.get("questions"):
        return _answer_step(run, questions, data.get("page"), may_answer=may_answer)
    if "waiting" in data:
        until = moment(data["waiting"]["until"])
        return f"The provider takes no calls until {until}. Call wait_run with this run after that."
    if status in ("cancelled", "paused"):
        return f"A person continues it: chargehand resume {run}"
    return "Call wait_run with this run until its status is complete, partial or failed."


def _answer_step(run: str, questions: list[dict[str, Any]], page: str | None, *, may_answer: bool) -> str:
    own = [each["id"] for each in questions if each["kind"] == "escalation"] if may_answer else []
    others = [each["id"] for each in questions if each["id"] not in own]
    steps = [f"answer with answer_question: {', '.join(own)}"] if own else []
    if others:
        at = f"at {page}, or" if page else "in a terminal"
        commands = "; ".join(f"chargehand answer {run} {id} TEXT" for id in others[:5])
        steps.append(f"tell the user to answer {at} with: {commands}")
    steps.append("then call wait_run with this run")
    text = "; ".join(steps)
    return f"{text[0].upper()}{text[1:]}."


def _as_text(data: dict[str, Any], whole: dict[str, Any]) -> str:
    done = sum(each["status"] == "done" for each in data["tasks"])
    plan: dict[str, Any] = whole.get("plan") or {}
    planned = len(plan.get("tasks", ()))
    parts = [f"Run {data['run']}: {data['status']}, {done} of {several(planned or done, 'task')} done."]
    if "answer" in data:
        parts.append(str(data["answer"]))
    answer = str(data.get("answer", ""))  # that of a review lists gaps and findings itself
    parts += [
        f"Gap: {gap['reason']} {gap['impact'] or ''}".strip()
        for gap in data.get("gaps", ())
        if gap["reason"] not in answer
    ]
    for finding in data.get("findings", ()):
        where = f"{finding['path']}:{finding['line']}" if finding.get("path") else ""
        if (where or finding["message"]) not in answer:
            parts.append(f"{finding['severity']} {where} {finding['message']}".replace("  ", " "))
    parts += [f"Question {each['id']} ({each['kind']}): {each['prompt']}" for each in data.get("questions", ())]
    if data["next"]:
        parts.append(f"Next: {data['next']}")
    return "\n\n".join(parts)
