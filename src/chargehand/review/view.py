"""The report of a run and the selected findings -> the report a reader gets: what is shown, what was reused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from chargehand.outcome import Outcome
from chargehand.report import Report
from chargehand.review.change import Change
from chargehand.review.markdown import markdown
from chargehand.review.playbook import unread
from chargehand.review.selection import Judged, Selection
from chargehand.review.source import Source
from chargehand.trace.figures import several
from chargehand.value import JSON


def view(report: Report, selection: Selection, change: Change, source: Source, *, all: bool, written: bool) -> Report:
    """`findings` are those shown. `written`: the answer is a model's words, and is kept above them."""
    answer = markdown(
        selection,
        source,
        files=len(change.files),
        gaps=report.gaps,
        all=all,
        summary=report.answer if written else "",
    )
    data: dict[str, JSON] = {"fingerprints": [each.fingerprint for each in (*selection.shown, *_known(selection))]}
    if all:
        data["left_out"] = [each.finding.to_json() | {"why": each.why} for each in selection.left_out]
    # That no model wrote the answer is as it should be where none was named.
    told = report.notes if written else [note for note in report.notes if not note.startswith("No model ")]
    notes = [*change.notes, *notes_of(report.outcomes), *told]
    if written and (count := unread(change)):
        notes.append(f"{several(count, 'file')} more than models are given to read: only analyzers looked at them.")
    return report.model_copy(
        update={"answer": answer, "findings": selection.findings, "notes": tuple(notes), "data": data}
    )


def nothing(change: Change, why: str) -> Report:
    """The report of a review that had nothing to do: no run was made."""
    return Report(
        run="", request=f"Review {change.home.name}", status="complete", answer=f"{why}\n", notes=change.notes
    )


def notes_of(outcomes: Iterable[Outcome]) -> list[str]:
    """How much was known before, and what the analyzers could not look at."""
    looks = reused = 0
    notes: list[str] = []
    for outcome in outcomes:
        output = cast("dict[str, Any]", outcome.output) if isinstance(outcome.output, dict) else {}
        if "looks" in output:
            looks, reused = looks + int(output["looks"]), reused + int(output["reused"])
            notes += map(str, output["notes"])
    if reused:
        notes.insert(0, f"Reused what was known of the same content: {reused:,} of {several(looks, 'look')} at a file.")
    return list(dict.fromkeys(notes))


def _known(selection: Selection) -> list[Judged]:
    """What the baseline knew stays in it, so that one review can be the baseline of the next."""
    return [each for each in selection.left_out if each.why == "in the baseline"]
