"""The record of a run -> its report, page or export for commands and the server, in the words of its app."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from chargehand.record.stored_report import read_stored_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from chargehand.events import Event
    from chargehand.record.run_source import RunSource
    from chargehand.text.redaction import Redactor
    from chargehand.values.effect import Question

TraceForm = Literal["json", "jsonl", "html", "otlp"]


def read_report(
    source: RunSource, run: str, take: Callable[[Event], None] | None = None
) -> tuple[dict[str, Any], Sequence[Question]]:
    """The report as JSON, final or so far, and the open questions. `take` gets each event of the record."""
    if (stored := read_stored_report(source, run, take)) is not None:
        return stored, ()
    from chargehand.apps.registry import find_app
    from chargehand.runs.report_from_record import open_questions, report_so_far

    state = source.state(run)
    report = report_so_far(source, state)
    if (app := find_app(state)) is not None:
        report = app.show(report)
    return report.to_json(), open_questions(state)


def waiting_json(source: RunSource, run: str, status: str) -> dict[str, Any]:
    """The provider that a waiting run waits for, and until when; empty for any other run."""
    if status != "waiting":
        return {}
    from chargehand.runs.report_from_record import waiting_for

    found = waiting_for(source.state(run), status)
    return {} if found is None else {"waiting": found}


def questions_json(questions: Sequence[Question]) -> list[dict[str, Any]]:
    """Open questions as `show --json` lists them."""
    return [{"id": q.id, "kind": q.kind, "prompt": q.prompt, "schema": q.answer_schema} for q in questions]


def export_run(
    source: RunSource, run: str, form: TraceForm, redactor: Redactor, *, content: bool = False
) -> Iterator[str]:
    """The record in parts, without secrets: one JSON document, one event a line, a page, or spans.

    `content`: spans with the texts of the run.
    """
    from chargehand.text.escaping import dump_json
    from chargehand.trace import to_html, to_json, to_jsonl, to_otlp

    match form:
        case "html":
            known = {info.run: info for info in source.runs(None)}.get(run)
            status = None if known is None else known.status
            shown = parts_shown_by_app(source, run)
            messages = partial(source.messages, run)
            is_over = True if source.owner(run) is None else None
            events = source.events(run)
            yield to_html(events, redactor, messages=messages, status=status, is_over=is_over, shown=shown)
        case "jsonl":
            yield from to_jsonl(source.events(run), redactor)
        case "otlp":
            spans = to_otlp(source.events(run), partial(source.messages, run), redactor, content=content)
            yield dump_json(spans, ascii_only=True) + "\n"
        case "json":
            whole = to_json(source.events(run), partial(source.messages, run), redactor)
            if not whole["events"]:
                status = "interrupted" if source.owner(run) is None else "running"
                whole = whole | {"run": run, "summary": whole["summary"] | {"status": status}}
            yield dump_json(whole, indent=2, ascii_only=True) + "\n"


def parts_shown_by_app(source: RunSource, run: str) -> dict[str, Any] | None:
    """The parts that the app of the run shows: its selected findings, and its own words for gaps."""
    from chargehand.apps.registry import find_app
    from chargehand.runs.report_from_record import report_so_far

    if _names_no_app(source, run):
        return None
    state = source.state(run)
    app = find_app(state)
    if app is None:
        return None
    report = report_so_far(source, state)
    shown = app.show(report, brief=True)
    if shown is report:
        return None
    whole = shown.to_json()
    return {name: whole[name] for name in ("answer", "findings", "gaps", "notes")}


def _names_no_app(source: RunSource, run: str) -> bool:
    """Whether the first event already shows that no app started the run, so that the record need not be read."""
    first = next(source.events(run), None)
    request: dict[str, Any] = {} if first is None else first.data.get("request") or {}
    return request.get("app", "") is None
