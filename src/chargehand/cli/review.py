"""`review`: a folder, a revision or a patch becomes a watched run of the review team and a list of findings."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chargehand.apps.review.choices import FORMS, MIN_CONFIDENCE, SEVERITIES
from chargehand.cli.shared_options import Command, screen

if TYPE_CHECKING:
    from chargehand.apps.review.choices import Form
    from chargehand.apps.review.formats import Review
    from chargehand.apps.review.text_format import Paint
    from chargehand.cli.screen import Screen
    from chargehand.values.outcome import Severity
    from chargehand.values.report import Report


@click.command(cls=Command)
@click.argument("path", required=False, default=".", metavar="[PATH]")
@click.option("--diff", "base", metavar="BASE", help="Review what changed since the merge base with BASE.")
@click.option("--patch", metavar="FILE", help="Review a unified diff for the files under PATH; `-` reads stdin.")
@click.option(
    "--staged", is_flag=True, help="Review what the next commit will change; under pre-commit, what the hook runs on."
)
@click.option(
    "--min-confidence",
    type=click.IntRange(0, 100),
    default=MIN_CONFIDENCE,
    show_default=True,
    metavar="N",
    help="Show findings with at least this confidence.",
)
@click.option("--all", "show_all", is_flag=True, help="Also show what is left out, and why.")
@click.option("--baseline", metavar="FILE", help="Leave out what an earlier review found, saved as json or sarif.")
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    metavar="SEVERITY",
    help=f"Exit with 1 if a shown finding has this severity or a higher one: {', '.join(SEVERITIES)}.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    default="text",
    show_default=True,
    help="How findings are printed; json is the whole report.",
)
@click.option(
    "--pr-comments", metavar="FILE", help="Comments on earlier changes, for the history lens and the readers."
)
@click.option("--model", metavar="MODEL", help="provider:name of a model that also reads the code.")
@click.option("--preview", is_flag=True, help="Say what the models would cost, and stop: nothing is reviewed.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to FILE instead of stdout; `-` is stdout.",
)
def review(
    path: str,
    base: str | None,
    patch: str | None,
    staged: bool,
    min_confidence: int,
    show_all: bool,
    baseline: str | None,
    fail_on: Severity | None,
    form: Form,
    pr_comments: str | None,
    model: str | None,
    preview: bool,
    output: Path | None,
) -> int:
    """Review code: the files under PATH, what changed since BASE, what is staged, or a patch.

    Works without a model and without a key. Analyzers look at security, bugs, performance, style, history, comments,
    tests and the shape of the change. They read the code and never run it. With --model, CHARGEHAND_MODEL or a model in
    a settings file, models also read the code. A key alone sends nothing out.
    """
    from chargehand.apps.review.analyzers import reused_child

    reused_child.begin()  # loads the tools of the analyzers while this process loads its own modules
    from chargehand.apps.review import render_review, run
    from chargehand.apps.review.run_review import check_one_change
    from chargehand.cli.read_inputs import STDIN, read_bytes
    from chargehand.cli.report_footer import print_footer
    from chargehand.cli.screen import check_writable
    from chargehand.cli.watch_run import Stopped, drive, gate
    from chargehand.values.status_words import FINISHED

    output = None if output == Path("-") else output
    check_writable(output)
    check_one_change(diff=base, patch=patch, staged=staged, dashes="--")
    start = partial(
        run,
        path,
        diff=base,
        patch=read_bytes(patch, "a patch").decode("utf-8", "surrogateescape") if patch is not None else None,
        patch_name="the patch" if patch in (None, STDIN) else patch,
        staged=staged,
        min_confidence=min_confidence,
        all=show_all,
        fail_on=fail_on,
        baseline=baseline or None,
        pr_comments=read_bytes(pr_comments, "comments").decode("utf-8", "replace") if pr_comments else None,
        model=model,
        preview=preview,
        notify=lambda line: screen().say(line),
    )
    out = screen()
    try:
        reviewed, code = drive(start, out)
    except Stopped as stopped:
        out.complain("Interrupted before the review began.")
        return stopped.exit_code
    report = reviewed.report
    if preview and reviewed.nothing is not None:
        out.answer(reviewed.nothing)
        return code
    if reviewed.nothing is not None or report.status not in FINISHED:
        _print_without_review(reviewed, form, out, output, gated=fail_on is not None)
        return code
    _put(render_review(reviewed, form, out.redactor, _paint(output, out), _width(output)), out, output)
    if form == "github":
        _append_summary(render_review(reviewed, "md", out.redactor, _paint(output, out)), out)
    # The text already lists its gaps.
    on_screen = form == "text" and output is None
    print_footer(_without_gaps(reviewed) if on_screen else report, out)
    if code == 3 and fail_on is not None and out.quiet:
        for gap in report.gaps:
            out.complain(f"{gap.reason} {gap.impact}".strip())
    return gate(reviewed, code, out)


def _print_without_review(reviewed: Review, form: Form, out: Screen, output: Path | None, *, gated: bool) -> None:
    """Print why there was nothing to review, or why the review did not end; for programs, an empty document."""
    from chargehand.apps.review import render_review

    if reviewed.nothing is None:
        is_document = form == "json"
        out.complain(reviewed.report.answer)
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
    import os
    import sys

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
    import sys

    from chargehand.cli.screen import terminal_columns

    return terminal_columns() if output is None and sys.stdout.isatty() else None


def _append_summary(text: str, out: Screen) -> None:
    """Append to the summary of a GitHub job, if this is one."""
    import os

    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError as error:
            out.complain(f"The summary could not be written to {path}: {error.strerror}.")


def _put(text: str, out: Screen, output: Path | None) -> None:
    import sys

    from chargehand.cli.screen import write, write_file, write_painted

    if output is None:
        (write_painted if sys.stdout.isatty() else write)(text)
        sys.stdout.flush()
    else:
        write_file(output, text)
        out.say_file("Review written to ", output, ".")
