"""A review -> its findings on stdout or in a file, and the footer of its run on stderr."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chargehand.cli.report_footer import answer_with_commands, print_footer
from chargehand.cli.screen import terminal_columns, write, write_file, write_painted
from chargehand.cli.shared_options import screen
from chargehand.values.status_words import FINISHED

if TYPE_CHECKING:
    from chargehand.apps.review.choices import Form
    from chargehand.apps.review.formats import Review
    from chargehand.apps.review.text_format import Paint
    from chargehand.cli.screen import Screen
    from chargehand.values.report import Report


def print_review(reviewed: Review, form: Form, code: int, output: Path | None) -> None:
    """Print a review, or why there is none. `code` is the exit code of its run."""
    from chargehand.apps.review import render_review

    out, report = screen(), reviewed.report
    gated = reviewed.fail_on is not None
    if reviewed.nothing is not None or report.status not in FINISHED:
        _print_without_review(reviewed, form, out, output, gated=gated)
        return
    _put(render_review(reviewed, form, out.redactor, _paint(output, out), _width(output)), out, output)
    if form == "github":
        _append_summary(render_review(reviewed, "md", out.redactor, _paint(output, out)), out)
    # The text already lists its gaps.
    on_screen = form == "text" and output is None
    print_footer(_without_gaps(reviewed) if on_screen else report, out)
    if code == 3 and gated and out.quiet:
        for gap in report.gaps:
            out.complain(f"{gap.reason} {gap.impact}".strip())


def _print_without_review(reviewed: Review, form: Form, out: Screen, output: Path | None, *, gated: bool) -> None:
    """Print why there was nothing to review, or why the review did not end; for programs, an empty document."""
    from chargehand.apps.review import render_review

    if reviewed.nothing is None:
        is_document = form == "json"
        out.complain(answer_with_commands(reviewed.report.to_json()))
    else:
        is_document = form != "text"
        # With a gate it is printed even with -q: an empty review differs from a review without findings.
        said = out.complain if gated else out.say
        said(" ".join((reviewed.nothing, *reviewed.change.gaps)))
    if is_document:
        _put(render_review(reviewed, form, out.redactor, _paint(output, out)), out, output)


def _without_gaps(review: Review) -> Report:
    """The report without the gaps and notes that the text of the review already has."""
    from chargehand.apps.review.review_report import unanalysed_notes

    printed = unanalysed_notes(review.unanalysed, models=review.models)
    notes = tuple(note for note in review.report.notes if note not in printed)
    return review.report.model_copy(update={"gaps": (), "notes": notes})


def _paint(output: Path | None, out: Screen) -> Paint:
    """Colours and links to files on a terminal, unless NO_COLOR is set."""
    from chargehand.apps.review.text_format import STYLES, plain

    if output is not None or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return plain

    def paint(words: str, style: str) -> str:
        painted = click.style(words, **STYLES[style])
        is_file = style == "path" and Path(words).is_file()
        return out.link(Path(words), sys.stdout, painted) if is_file else painted

    return paint


def _width(output: Path | None) -> int | None:
    """The width of the terminal; None for a file or another program, where lines are not wrapped."""
    return terminal_columns() if output is None and sys.stdout.isatty() else None


def _append_summary(text: str, out: Screen) -> None:
    """Append to the summary of a GitHub job, if this is one."""
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError as error:
            out.complain(f"The summary could not be written to {path}: {error.strerror}.")


def _put(text: str, out: Screen, output: Path | None) -> None:
    if output is None:
        (write_painted if sys.stdout.isatty() else write)(text)
        sys.stdout.flush()
    else:
        write_file(output, text)
        out.say_file("Review written to ", output, ".")
