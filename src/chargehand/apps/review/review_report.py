"""The report of a run and the selected findings -> the report a reader gets: what is shown, what was reused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from chargehand.apps.review.change import Change
from chargehand.apps.review.languages import unanalysed_sentences
from chargehand.apps.review.markdown_format import markdown
from chargehand.apps.review.review_plan import unable, unreviewed_gaps
from chargehand.apps.review.selection import Selection
from chargehand.apps.review.source_lines import SourceLines
from chargehand.apps.review.text_format import headline
from chargehand.trace.number_text import several
from chargehand.values.base import JSON
from chargehand.values.outcome import Outcome
from chargehand.values.report import Gap, Report
from chargehand.workers.analyzer import gaps_of as unchecked_gaps


def view(
    report: Report,
    selection: Selection,
    change: Change,
    source: SourceLines,
    unanalysed: Mapping[str, int],
    *,
    all: bool,
    written: bool,
    brief: bool = False,
    unread: int = 0,
    known: int = 0,
) -> Report:
    """`findings` are the shown ones. `written`: a model was to write the answer, which is kept above them if it did.

    `brief`: the answer is this text and the number of findings, for a page that lists findings and gaps itself.
    `unread` files are too many for models; models have read `known` files before.
    """
    missing = unchecked_of(report.outcomes)
    gaps = gaps_of(report, missing)
    answer = markdown(
        selection,
        source,
        headline(selection, len(change.files), len(gaps), sum(unanalysed.values()), hint=False),
        gaps=gaps,
        notes=unanalysed_sentences(unanalysed, models=written),
        all=all,
        summary=report.answer if written and not report.lists_results else "",
        brief=brief,
    )
    data: dict[str, JSON] = {
        "fingerprints": [each.fingerprint for each in (*selection.shown, *selection.known)],
        "reasons": {each.fingerprint: each.reasons.removeprefix(": ") for each in selection.shown},
        "unchecked": missing,
        "unanalysed": dict(unanalysed),
    }
    if all:
        data["left_out"] = [each.finding.to_json() | {"why": each.why} for each in selection.left_out]
    notes = (
        *unanalysed_notes(unanalysed, models=written),
        *change.notes,
        *selection.notes,
        *_count_different(report, selection),
        *unable(change),
        *_notes_of_report(report, written=written, unread=unread, known=known),
    )
    return report.model_copy(
        update={"answer": answer, "findings": selection.findings, "gaps": gaps, "notes": notes, "data": data}
    )


def _notes_of_report(report: Report, *, written: bool, unread: int, known: int) -> Iterator[str]:
    yield from notes_of(report.outcomes)
    # Without a model in the settings it is normal that no model wrote the answer.
    yield from (note for note in report.notes if written or not note.startswith("No model "))
    if known:
        yield f"Not read by models again, as an earlier review has it: {several(known, 'file')}."
    if unread:
        yield f"{several(unread, 'file')} more than models are given to read: only analyzers looked at them."


def _count_different(report: Report, selection: Selection) -> Iterator[str]:
    """Why a reader counts more findings in the lines about the tasks than in the review."""
    reported = sum(len(outcome.findings) for outcome in report.outcomes)
    different = len(selection.shown) + len(selection.left_out)
    if reported > different > 0:
        counted = f"The tasks reported {several(reported, 'finding')}, which are {several(different, 'problem')}"
        yield f"{counted}: what several rules find at one place is one problem."


def unanalysed_notes(counts: Mapping[str, int], *, models: bool) -> list[str]:
    return [f"Not analysed: {each}" for each in unanalysed_sentences(counts, models=models)]


def nothing(change: Change, why: str) -> Report:
    """The report of a review that had nothing to do: no run was made."""
    return Report(
        run="",
        request=f"Review {change.home.name}",
        status="partial" if change.gaps else "complete",
        answer=f"{why}\n",
        gaps=unreviewed_gaps(change),
        notes=change.notes,
    )


def gaps_of(report: Report, unchecked: Mapping[str, Mapping[str, str]]) -> tuple[Gap, ...]:
    """One gap for each cause, with the message of the error: a missing tool is missing in four lenses."""
    faults = {outcome.task: outcome.error.message for outcome in report.outcomes if outcome.error is not None}
    # The same files are in the tasks of several lenses.
    own = {(gap.task, gap.reason) for outcome in report.outcomes for gap in outcome.gaps}
    found: dict[str, list[Gap]] = {}
    for gap in report.gaps:
        if (gap.task, gap.reason) not in own:
            found.setdefault(faults.get(gap.task or "") or gap.reason, []).append(gap)
    merged = (gaps[0] if len(gaps) == 1 else _merge_gaps(cause, gaps) for cause, gaps in found.items())
    return (*merged, *unchecked_gaps(unchecked))


def unchecked_of(outcomes: Iterable[Outcome]) -> dict[str, dict[str, str]]:
    """Path -> analyzer -> why it could not check the file."""
    found: dict[str, dict[str, str]] = {}
    for outcome in outcomes:
        output = cast("dict[str, Any]", outcome.output) if isinstance(outcome.output, dict) else {}
        for path, reasons in cast("dict[str, dict[str, str]]", output.get("unchecked") or {}).items():
            found.setdefault(path, {}).update(reasons)
    return dict(sorted(found.items()))


def _merge_gaps(cause: str, gaps: Sequence[Gap]) -> Gap:
    tasks = ", ".join(gap.task or "" for gap in gaps)
    return Gap(reason=cause, impact=f"Not all was looked at by {tasks}.")


def notes_of(outcomes: Iterable[Outcome]) -> list[str]:
    """How much was known before, and what the analyzers could not check."""
    looks = reused = 0
    notes: list[str] = []
    for outcome in outcomes:
        output = cast("dict[str, Any]", outcome.output) if isinstance(outcome.output, dict) else {}
        if "looks" in output:
            looks, reused = looks + int(output["looks"]), reused + int(output["reused"])
            notes += map(str, output["notes"])
    if reused:
        why = "because the content is the same as in an earlier review"
        notes.insert(0, f"Not made again, {why}: {reused:,} of {several(looks, 'check')}.")
    return list(dict.fromkeys(notes))
