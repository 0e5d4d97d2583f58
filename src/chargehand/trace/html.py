"""Events -> one self-contained page: answer, findings, gaps, plan, timeline, tasks, events; readable without scripts.

Secrets are redacted as events come in, so that nothing behind this entry can leak one; every text is escaped where it
is put into the page, and control characters are shown in all of it; the page's policy allows its own style and script
by their hashes and no request at all.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from string import Template
from typing import cast

from chargehand.text.escaping import show_controls
from chargehand.text.redaction import Redactor
from chargehand.trace import markdown, svg
from chargehand.trace.elements import (
    as_list,
    as_object,
    as_objects,
    compact,
    folded_section,
    inert_json,
    more,
    pretty,
    quiet,
    section,
    slug,
    table,
)
from chargehand.trace.export import summary
from chargehand.trace.number_text import LEAST_SPEEDUP, duration, moment, money, several, share, short
from chargehand.trace.run_parts import CallView, Data, TaskState, arrange_tasks
from chargehand.trace.run_state import RunState
from chargehand.values.event import Event

MOST_EVENTS = 2_000
MOST_CALLS = 40
MOST_FINDINGS = 500
LONGEST_ANSWER = 400_000
LONGEST_TEXT = 6_000
# Characters all details of all tasks may have together; past it each text is cut to its beginning.
ROOM = 4_000_000
_SEVERITIES = {"critical": 0, "warning": 1, "info": 2}
_WORDS = {
    "complete": "Complete",
    "partial": "Partial",
    "failed": "Failed",
    "running": "Running",
    "waiting": "Waiting for a person",
    "interrupted": "Interrupted",
    "cancelled": "Cancelled",
}


def to_html(
    events: Iterable[Event], redactor: Redactor, *, status: str | None = None, shown: Data | None = None
) -> str:
    """The page. `status` is what is known from outside the record: a run whose process died is `interrupted`.

    `shown` are the parts of the report that the command behind the run words in its own way, such as a review, whose
    findings are what it is for: then they come first.
    """
    view = RunState()
    lines: list[str] = []
    for event in events:
        task = None if event.task is None else redactor.text(event.task)
        clean = event._replace(task=task).with_data(cast(Data, redactor.json(event.data)))
        view.apply(clean)
        if len(lines) < MOST_EVENTS:
            lines.append(_event(clean, view.started or 0.0))
    if status is not None:
        view.status = status
    if shown is not None:
        view.report = {**(view.report or {}), **cast(Data, redactor.json(shown))}
    return show_controls(_Page(view, lines, findings_first=shown is not None).render())


@dataclass(slots=True)
class _Page:
    view: RunState
    events: list[str]
    findings_first: bool = False
    room: int = ROOM
    anchors: dict[str, str] = field(default_factory=dict[str, str])

    def render(self) -> str:
        # Numbered, because a task's id on the record is only text.
        self.anchors = {id: f"task-{number}" for number, id in enumerate(self.view.tasks, 1)}
        style, script = _asset("page.css"), _asset("page.js")
        return Template(_asset("page.html")).substitute(
            policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
            "base-uri 'none'; form-action 'none'",
            title=escape(short(self.view.request or self.view.run, 80)),
            style=style,
            script=script,
            header=self._header(),
            sections="\n".join(filter(None, (*self._main_parts(), *self._record_parts()))),
            data=inert_json(self._data()),
        )

    def _main_parts(self) -> tuple[str, ...]:
        """What readers look for first."""
        figures, answer, findings = self._figures(), self._answer(), self._findings()
        missing = (self._gaps(), self._contradictions())
        if self.findings_first:
            return (self._questions(), findings, answer, *missing, self._notes(), figures)
        return (figures, self._questions(), answer, *missing, findings, self._notes())

    def _record_parts(self) -> tuple[str, ...]:
        return (self._plan(), self._timeline(), self._tasks(), self._decisions(), self._events())

    # -- the top -----------------------------------------------------------------------------------------------------

    def _header(self) -> str:
        view = self.view
        facts = [f"run {view.run}"]
        facts += [f"team {view.team}"] if view.team else []
        facts += [f"{view.strategy} plan"] if view.strategy else []
        facts += [moment(view.started)] if view.started is not None else []
        facts += [several(len(view.sessions), "session")] if len(view.sessions) > 1 else []
        facts += [f"repeats run {view.rerun_of}"] if view.rerun_of else []
        whole = (
            '<details class="whole"><summary>The whole request</summary>'
            f"<p>{escape(view.request[:20_000])}</p></details>"
            if len(view.request) > 240
            else ""
        )
        return (
            f'<p class="eyebrow"><span class="brand">chargehand</span> '
            f'<span class="pill r-{slug(view.status)}">{escape(_WORDS.get(view.status, view.status))}</span></p>'
            f"<h1>{escape(short(view.request or 'A run without a request', 240))}</h1>{whole}"
            f'<p class="facts">{" <span>·</span> ".join(escape(fact) for fact in facts)}</p>'
        )

    def _figures(self) -> str:
        view, report = self.view, self.view.report or {}
        counts, usage = view.counts(), view.usage
        timing = cast(Data, report.get("timing") or {})
        other = ", ".join(f"{number} {status}" for status, number in counts.items() if status != "done")
        speedup = timing.get("speedup")
        is_faster = isinstance(speedup, int | float) and speedup >= LEAST_SPEEDUP
        faster = f"{speedup:.1f} × one after another" if is_faster else ""
        cached = (
            f"{share(usage.cached_tokens, usage.input_tokens)} of the input from cache" if usage.cached_tokens else ""
        )
        estimated = f"{usage.estimated_tokens:,} estimated" if usage.estimated_tokens else ""
        of_tokens = ", ".join(filter(None, (estimated, cached)))
        cards = [
            ("Tasks done", f"{counts.get('done', 0):,} of {len(view.tasks):,}", other),
            ("Time", duration(view.elapsed_seconds()), faster),
            ("Tokens", f"{usage.tokens:,}", of_tokens or f"{usage.input_tokens:,} in, {usage.output_tokens:,} out"),
            ("Cost", money(usage.usd), "a price is not known" if usage.usd is None else ""),
            ("Model calls", f"{usage.calls:,}", _tools(view)),
        ]
        if isinstance(confidence := report.get("confidence"), int):
            cards.append(("Confidence", f"{confidence} %", ""))
        listed = "".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(figure)}<small>{escape(beside)}</small></dd></div>"
            for name, figure, beside in cards
        )
        return f'<dl class="figures">{listed}</dl>'

    # -- what it says ------------------------------------------------------------------------------------------------

    def _questions(self) -> str:
        items = "".join(
            f"<li>{escape(short(str(q.get('prompt', '')), 2000))} <code>{escape(str(q.get('id', '')))}</code></li>"
            for q in self.view.questions.values()
        )
        return section("Open questions", f"<ul>{items}</ul>", "alert") if items else ""

    def _answer(self) -> str:
        answer = str((self.view.report or {}).get("answer") or "")
        if not answer.strip():
            return section("Answer", '<p class="quiet">There is no answer on the record.</p>')
        cut = f"<p class='quiet'>Cut after {LONGEST_ANSWER:,} characters.</p>" if len(answer) > LONGEST_ANSWER else ""
        body = markdown.to_html(answer[:LONGEST_ANSWER], self.anchors)
        return section("Answer", f'<div class="prose">{body}</div>{cut}')

    def _gaps(self) -> str:
        gaps = as_objects((self.view.report or {}).get("gaps")) or self.view.gaps
        items = "".join(
            f"<li>{self._link(gap.get('task'))}{escape(short(str(gap.get('reason', '')), 1000))}"
            f"{quiet(short(str(gap.get('impact') or ''), 1000))}</li>"
            for gap in gaps[:200]
        )
        return section("Gaps", f"<ul>{items}</ul>", "alert") if items else ""

    def _contradictions(self) -> str:
        found = as_objects((self.view.report or {}).get("contradictions")) or self.view.contradictions
        items = "".join(
            f"<li><strong>{escape(short(str(c.get('subject', '')), 400))}</strong> "
            f"{'resolved' if c.get('resolved') else 'open'}"
            f"{quiet('; '.join(short(str(claim), 400) for claim in as_list(c.get('claims'))[:6]))}"
            f"{quiet(short(str(c.get('reason') or ''), 600))}</li>"
            for c in found[:200]
        )
        return section("Contradictions", f"<ul>{items}</ul>") if items else ""

    def _findings(self) -> str:
        findings = as_objects((self.view.report or {}).get("findings"))
        # Most severe first, else as they come: of many, the page has the most severe.
        findings.sort(key=lambda f: _SEVERITIES.get(str(f.get("severity")), len(_SEVERITIES)))
        items = "".join(map(_finding, findings[:MOST_FINDINGS]))
        note = more(len(findings), MOST_FINDINGS, "findings")
        return section("Findings", f'<ol class="findings">{items}</ol>{note}') if items else ""

    def _notes(self) -> str:
        notes = [
            *dict.fromkeys([*self.view.notes, *as_list((self.view.report or {}).get("notes")), *self.view.warnings])
        ]
        items = "".join(f"<li>{escape(short(str(note), 1000))}</li>" for note in notes[:100])
        return section("Notes", f"<ul>{items}</ul>{more(len(notes), 100, 'notes')}") if items else ""

    def _link(self, task: object) -> str:
        if not isinstance(task, str):
            return ""
        anchor = self.anchors.get(task)
        return f'<a class="cite" href="#{anchor}">{escape(task)}</a> ' if anchor else f"{escape(task)}: "

    # -- what happened -----------------------------------------------------------------------------------------------

    def _plan(self) -> str:
        plan = self.view.plan
        if plan is None or not plan.tasks or not self.view.tasks:
            return ""
        if len(plan.tasks) > svg.MOST_NODES:
            words = (
                f"{len(plan.tasks):,} tasks in {several(plan.depth, 'level')}: too many to draw; all are listed below."
            )
            return section("Plan", f'<p class="quiet">{words}</p>')
        key = '<p class="legend"><span class="k-critical">critical path</span></p>' if len(plan.tasks) > 1 else ""
        return section(
            "Plan", f'<div class="scroll" tabindex="0">{svg.graph(plan, self.view, self.anchors)}</div>{key}'
        )

    def _timeline(self) -> str:
        if not self.view.tasks and not self.view.calls:
            return ""
        legend = (
            '<p class="legend"><span class="k-wait">waiting</span><span class="k-attempt">attempt</span>'
            '<span class="k-failed">attempt that failed</span><span class="k-model">model call</span>'
            '<span class="k-tool">tool call</span></p>'
        )
        note = more(len(self.view.tasks), svg.MOST_ROWS, "tasks, those that did not go well before others")
        drawing = svg.timeline(self.view, self.anchors)
        return section("Timeline", f'{legend}<div class="scroll tall" tabindex="0">{drawing}</div>{note}')

    def _tasks(self) -> str:
        if not self.view.tasks:
            return ""
        counts = "".join(
            f'<button type="button" data-status="{status}" aria-pressed="false">{status} {number}</button>'
            for status, number in self.view.counts().items()
        )
        tools = (
            '<div class="filter" hidden><input type="search" aria-label="Find tasks" placeholder="Find tasks">'
            f"{counts}</div>"
        )
        return section("Tasks", tools + "".join(self._task(task) for task in arrange_tasks(self.view.tasks.values())))

    def _task(self, task: TaskState) -> str:
        outcome = task.outcome or {}
        seconds = f"{duration(task.worked_seconds(self.view.last_event))}" if task.started is not None else ""
        tries = f"{len(task.attempts)} attempts" if len(task.attempts) > 1 else ""
        facts = [seconds, f"{task.tokens:,} tokens" if task.tokens else "", tries, "reused" if task.reused else ""]
        brief = short(str(outcome.get("summary") or task.instruction), 160)
        return (
            f'<details class="task in-{min(task.depth, 3)}" id="{self.anchors[task.id]}" data-status="{task.status}">'
            "<summary>"
            f'<span class="badge s-{task.status}">{svg.GLYPHS[task.status]} {task.status}</span>'
            f'<span class="who"><b>{escape(task.id)}</b> {escape(task.worker)}</span>'
            f'<span class="brief">{escape(brief)}</span>'
            f'<span class="nums">{escape(" · ".join(fact for fact in facts if fact))}</span></summary>'
            f'<div class="body">{self._task_words(task, outcome)}{self._attempts(task)}{self._calls(task.calls)}</div>'
            "</details>"
        )

    def _task_words(self, task: TaskState, outcome: Data) -> str:
        fault, escalation = as_object(outcome.get("error")), as_object(outcome.get("escalation"))
        output = outcome.get("output")
        confidence = outcome.get("confidence")
        rows = [
            ("Instruction", task.instruction),
            ("Done when", task.success_criterion),
            ("After", ", ".join(task.depends_on)),
            ("Error", f"{fault.get('kind')}: {fault.get('message')}" if fault else ""),
            ("Escalated", f"{escalation.get('reason')}: {escalation.get('message')}" if escalation else ""),
            ("Because of", ", ".join(str(id) for id in as_list(outcome.get("because")))),
            ("Summary", str(outcome.get("summary") or "") if not fault and not escalation else ""),
            ("Confidence", f"{confidence} %" if isinstance(confidence, int) else ""),
            ("Partial output" if outcome.get("partial") else "Output", pretty(output)),
        ]
        return (
            "<dl>"
            + "".join(f"<dt>{name}</dt><dd>{escape(self._cut(words))}</dd>" for name, words in rows if words)
            + "</dl>"
        )

    def _cut(self, text: str) -> str:
        most = LONGEST_TEXT if self.room > 0 else 200
        self.room -= min(len(text), most)
        return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters in the record)"

    def _attempts(self, task: TaskState) -> str:
        if len(task.attempts) < 2 and not any(attempt.error for attempt in task.attempts):
            return ""
        rows = "".join(
            f"<tr><td>{a.number}</td><td>{escape(a.status)}</td><td>{escape(a.worker)}</td>"
            f"<td>{escape(a.model or a.tier)}</td>"
            f"<td>{duration(a.ended - a.started) if a.ended is not None else ''}</td>"
            f"<td>{escape(self._cut(a.error or ''))}</td></tr>"
            for a in task.attempts
        )
        return table("Attempts", ("#", "Status", "Worker", "Model", "Time", "Error"), rows)

    def _calls(self, calls: list[CallView]) -> str:
        if not calls or self.room <= 0:
            return ""
        rows = "".join(_call_row(call) for call in calls[:MOST_CALLS])
        self.room -= len(rows)
        note = more(len(calls), MOST_CALLS, "calls")
        return table("Calls", ("Key", "What", "Time", "In", "Out", "Result"), rows) + note

    def _decisions(self) -> str:
        decisions = self.view.decisions
        started = self.view.started or 0.0
        rows = "".join(
            f"<tr><td>{d.at - started:.2f} s</td><td>{self._link(d.task)}</td><td>{escape(short(d.decision, 60))}</td>"
            f"<td>{escape(short(d.reason, 240))}</td><td><code>{escape(short(compact(d.value), 120))}</code></td></tr>"
            for d in decisions[:500]
        )
        if not rows:
            return ""
        listed = table("", ("At", "Task", "Decision", "Reason", "Value"), rows)
        return folded_section(f"Decisions ({len(decisions):,})", listed + more(len(decisions), 500, "decisions"))

    def _events(self) -> str:
        note = more(self.view.seq, MOST_EVENTS, "events; `chargehand trace RUN --format jsonl` has them all")
        tools = (
            '<div class="filter" hidden><input type="search" aria-label="Find events" placeholder="Find events"></div>'
        )
        listed = table("", ("#", "At", "Event", "Task", "Data"), "".join(self.events))
        return folded_section(f"Events ({self.view.seq:,})", f'{tools}<div class="events">{listed}</div>{note}')

    def _data(self) -> Data:
        """What scripts on the page, or on the reader's side, may want: the run in figures."""
        figures = summary(self.view)
        figures["run"], figures["request"] = self.view.run, short(self.view.request, 1000)
        del figures["warnings"], figures["questions"]
        for entry, task in zip(figures["tasks"], self.view.tasks.values(), strict=True):
            entry["says"] = short(str((task.outcome or {}).get("summary") or task.instruction), 200)
        return figures


def _asset(name: str) -> str:
    return files("chargehand.trace").joinpath(name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _call_row(call: CallView) -> str:
    result = "ok" if call.ok else "in flight" if call.ok is None else short(call.error or "failed", 240)
    notes = [result, "reused" if call.reused else "", f"sent {call.sends} times" if call.sends > 1 else ""]
    time = duration(call.ended - call.started) if call.ended is not None else ""
    figures = (f"{call.input_tokens:,}", f"{call.output_tokens:,}") if call.kind == "model" and call.ok else ("", "")
    return (
        f"<tr><td><code>{escape(short(call.key, 80))}</code></td><td>{escape(short(call.name, 80))}</td><td>{time}</td>"
        f"<td>{figures[0]}</td><td>{figures[1]}</td><td>{escape(' · '.join(n for n in notes if n))}</td></tr>"
    )


def _event(event: Event, started: float) -> str:
    return (
        f"<tr><td>{event.seq}</td><td>{max(event.at - started, 0):.3f} s</td><td>{escape(str(event.kind))}</td>"
        f"<td>{escape(event.task or '')}</td><td><code>{escape(short(compact(event.data), 240))}</code></td></tr>"
    )


def _tools(view: RunState) -> str:
    number = sum(call.kind == "tool" for call in view.by_key.values())
    return several(number, "tool call") if number else ""


def _finding(finding: Data) -> str:
    severity = str(finding.get("severity"))
    confidence = finding.get("confidence")
    suggestion = short(str(finding.get("suggestion") or ""), 1000)
    place = _place(finding)
    parts = [
        f"<code>{escape(place)}</code>" if place else "",
        f"<p>{escape(short(str(finding.get('message', '')), 1000))}</p>",
        f'<p class="quiet">{escape(suggestion)}</p>' if suggestion else "",
    ]
    sure = f"<small>confidence {confidence}</small>" if isinstance(confidence, int) else ""
    return f'<li><span class="sev v-{slug(severity)}">{escape(severity)}</span><div>{"".join(parts)}</div>{sure}</li>'


def _place(finding: Data) -> str:
    line = finding.get("line")
    return f"{finding.get('path') or ''}{f':{line}' if line else ''}"
