"""Outcomes -> a readable report, gaps and confidence, by code alone: used when no model writes the answer.

    # goal    ## task (worker): each result, quoted, sinks first    ## Findings by severity and file    ## Claims
    ## Where workers disagree    ## Missing

Equal outcomes give equal bytes. Texts of workers are in quotations or on one line, so none of them can look like a part
of the report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby

from chargehand.values.outcome import Claim, Finding, Outcome, Severity
from chargehand.values.plan import Plan
from chargehand.values.report import Gap

MOST_CHARACTERS_PER_TASK = 4_000
# How many findings and claims are written out; all of them are in the outcomes and the report.
MOST_LISTED = 200
_LONGEST_LINE = 500
# Long enough that headings of tasks with similar instructions differ.
_LONGEST_HEADING = 200
_ORDER: tuple[Severity, ...] = ("critical", "warning", "info")


def paragraphs(text: str) -> list[str]:
    return [part for part in re.split(r"\n\s*\n", text.strip()) if part.strip()]


def text_of(outcome: Outcome) -> str:
    """An outcome as an answer: its output if that is text, else its summary and the output; data as a block of JSON."""
    if isinstance(outcome.output, str) and outcome.output.strip():
        return outcome.output
    if outcome.output in (None, "", {}, []):
        return outcome.summary
    if isinstance(outcome.output, int | float):
        return f"{outcome.summary}\n\n{json.dumps(outcome.output)}"
    return f"{outcome.summary}\n\n```json\n{json.dumps(outcome.output, indent=2, ensure_ascii=False)}\n```"


def inline(text: str, most: int = _LONGEST_LINE) -> str:
    """A text of others as part of our own line: on one line, cut, and without citations."""
    flat = " ".join(text[: most * 4].split()).replace("[", "(").replace("]", ")")
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def report(
    plan: Plan,
    outcomes: Mapping[str, Outcome],
    claims: Sequence[Claim],
    findings: Sequence[Finding],
    disagreements: str,
    missing: Sequence[Gap],
) -> str:
    """The whole of it. `disagreements` is their section, written elsewhere; empty when there are none."""
    sinks = set(plan.sinks())
    parts = [f"# {inline(plan.goal)}"] if plan.goal.strip() else []
    for task in sorted(plan.tasks, key=lambda task: task.id not in sinks):
        outcome = outcomes[task.id]
        if outcome.ok or outcome.partial:
            whose = f"{task.id} ({outcome.worker})" if outcome.worker else task.id
            head = inline(task.instruction.strip().split("\n", 1)[0], _LONGEST_HEADING)
            # A routed request is the goal and the instruction of its tasks.
            about = f": {head}" if head and head != inline(plan.goal, _LONGEST_HEADING) else ""
            parts.append(f"## {whose}{about}{'' if outcome.ok else ' (partial)'}\n\n{_quotation(outcome)}")
    parts.extend(_findings(findings, outcomes))
    if claims:
        parts.append(
            "\n".join(["## Claims", "", *_limit_list([_claim(claim, outcomes) for claim in claims], "claims")])
        )
    if disagreements:
        parts.append(disagreements)
    if missing:
        parts.append("\n".join(["## Missing", "", *map(_missing, missing)]))
    # Lone surrogates could be neither recorded nor printed.
    return "\n\n".join(parts).encode("utf-8", "replace").decode()


def _missing(gap: Gap) -> str:
    reason = inline(gap.reason)
    end = "" if not gap.impact or reason.endswith((".", "?", "!", "…")) else "."
    return f"- {reason}{end} {inline(gap.impact)}{f' [{gap.task}]' if gap.task else ''}"


def _quotation(outcome: Outcome) -> str:
    """The text in a quotation, which ends whatever is left open in it."""
    text = text_of(outcome).strip()
    if len(text) > MOST_CHARACTERS_PER_TASK:
        more = len(text) - MOST_CHARACTERS_PER_TASK
        text = f"{text[:MOST_CHARACTERS_PER_TASK]} … ({more:,} characters more in the record)"
    lines = [line.rstrip() for line in re.split(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", text)]
    # After a fence or a row of a table the citation needs a line of its own.
    if re.match(r"\s*(?:`{3}|~{3}|\|)", lines[-1]):
        lines.append("")
        lines.append(f"[{outcome.task}]")
    else:
        lines[-1] = f"{lines[-1]} [{outcome.task}]".lstrip()
    return "\n".join(f"> {line}".rstrip() for line in lines)


def _findings(findings: Sequence[Finding], outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    """One part for each severity and file, the gravest first, in the order of lines."""
    if not findings:
        return
    ordered = sorted(findings, key=lambda f: (_ORDER.index(f.severity), f.path or "", f.line or 0))
    yield "## Findings"
    for severity, of_severity in groupby(ordered[:MOST_LISTED], key=lambda f: f.severity):
        yield f"### {severity.capitalize()}"
        for path, of_file in groupby(of_severity, key=lambda f: f.path or ""):
            head = f"#### {inline(path, 200)}" if path else "#### No file"
            yield "\n".join([head, "", *(_finding(finding, outcomes) for finding in of_file)])
    if len(findings) > MOST_LISTED:
        yield f"{len(findings) - MOST_LISTED:,} more findings are in the report."


def _finding(finding: Finding, outcomes: Mapping[str, Outcome]) -> str:
    last = f"-{finding.end_line}" if finding.end_line and finding.end_line != finding.line else ""
    where = f"Line {finding.line}{last}: " if finding.line else ""
    what = inline(finding.message)
    if finding.suggestion:
        what += f" Suggestion: {inline(finding.suggestion)}"
    return f"- {where}{what}{_about(finding, outcomes, inline(finding.category, 60))}"


def _claim(claim: Claim, outcomes: Mapping[str, Outcome]) -> str:
    return f"- {inline(claim.statement)}{_about(claim, outcomes)}"


def _about(item: Claim | Finding, outcomes: Mapping[str, Outcome], category: str = "") -> str:
    """The kind, the confidence, the sources and the tasks."""
    sure = "" if item.confidence is None else f"confidence {item.confidence}"
    elsewhere = [inline(source, 200) for source in item.sources if source not in outcomes]
    known = "; ".join(filter(None, [category, sure, ", ".join(elsewhere)]))
    tasks = ", ".join(source for source in item.sources if source in outcomes)
    return (f" ({known})" if known else "") + (f" [{tasks}]" if tasks else "")


def _limit_list(lines: Sequence[str], what: str) -> list[str]:
    if len(lines) <= MOST_LISTED:
        return list(lines)
    return [*lines[:MOST_LISTED], f"- {len(lines) - MOST_LISTED:,} more {what} are in the outcomes."]


def nothing_done(plan: Plan, outcomes: Mapping[str, Outcome]) -> str:
    """Why there is no answer: if all tasks share one reason, in the same sentence; else a line for each reason."""
    tasks: dict[str, list[str]] = {}
    for id, outcome in outcomes.items():
        if outcome.status != "skipped":
            tasks.setdefault(_reason(outcome), []).append(id)
    if len(tasks) == 1:
        return f"No task was done, so there is no answer: {next(iter(tasks))}"
    lines = [f"- {', '.join(ids)}: {reason}" for reason, ids in tasks.items()]
    return f"No task was done, so there is no answer to: {plan.goal}\n\n" + "\n".join(lines[:20])


def gaps(plan: Plan, outcomes: Mapping[str, Outcome], filled: Collection[str] = ()) -> tuple[Gap, ...]:
    """One gap for every task that is neither done nor filled by another, with the tasks that it blocked."""
    dependents = plan.dependents()
    found: list[Gap] = []
    for task in plan.tasks:
        outcome = outcomes[task.id]
        if outcome.ok or task.id in filled:
            continue
        held_up = [id for id in dependents.get(task.id, ()) if outcomes[id].status == "skipped"]
        went_on = [id for id in dependents.get(task.id, ()) if outcomes[id].ok]
        impact = [f"Its criterion is not met: {task.success_criterion.strip().rstrip('.')}."]
        if held_up:
            impact.append(f"Skipped because of it: {', '.join(held_up)}.")
        if outcome.partial:
            users = f", by {', '.join(went_on)}" if went_on else ""
            impact.append(f"Only its partial result was used{users}.")
        elif went_on:
            impact.append(f"Done without it: {', '.join(went_on)}.")
        found.append(Gap(task=task.id, reason=f"{outcome.status}: {_reason(outcome)}", impact=" ".join(impact)))
    return tuple(found)


def _reason(outcome: Outcome) -> str:
    """Why a task has no result: the first line. An error may quote a whole request below it; `show` has all of it."""
    return outcome.summary.strip().partition("\n")[0]


def confidence(outcomes: Mapping[str, Outcome]) -> int | None:
    """The mean confidence of the done tasks, scaled by the share of done tasks; None when none states a confidence."""
    stated = [o.confidence for o in outcomes.values() if o.ok and o.confidence is not None]
    if not stated:
        return None
    done = sum(o.ok for o in outcomes.values())
    return round(sum(stated) / len(stated) * done / len(outcomes))
