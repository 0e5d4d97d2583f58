"""`review`: a folder, a revision or a patch becomes a watched run of the review team and a list of findings."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chargehand.cli.command import Command, screen

if TYPE_CHECKING:
    from chargehand.apps.review.formats import Form, Review
    from chargehand.apps.review.text_format import Paint
    from chargehand.cli.screen import Screen
    from chargehand.values.outcome import Severity
    from chargehand.values.report import Report


@click.command(cls=Command)
@click.argument("path", required=False, default=".", metavar="[PATH]")
@click.option(
    "--diff", "base", metavar="BASE", help="Review what changed since the merge base with BASE, as it is now."
)
@click.option("--patch", metavar="FILE", help="Review a unified diff for the files under PATH; `-` is stdin.")
@click.option(
    "--staged", is_flag=True, help="Review what the next commit will change; by pre-commit, what that runs on."
)
@click.option(
    "--min-confidence",
    type=click.IntRange(0, 100),
    default=80,
    show_default=True,
    metavar="N",
    help="Show findings of at least this confidence.",
)
@click.option("--all", "show_all", is_flag=True, help="Show what is left out too, and why.")
@click.option("--baseline", metavar="FILE", help="Leave out what an earlier review, saved as json or sarif, has found.")
@click.option(
    "--fail-on",
    type=click.Choice(["critical", "warning", "info"]),
    metavar="SEVERITY",
    help="Exit with 1 if a finding shown is as severe as this (critical, warning, info), or more.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "md", "json", "sarif", "github"]),
    default="text",
    show_default=True,
    help="How findings are printed; json is the whole report.",
)
@click.option("--pr-comments", metavar="FILE", help="Comments on earlier changes, for the history lens; any text.")
@click.option("--model", metavar="MODEL", help="provider:name of a model that reads the code as well.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to FILE, not to stdout; `-` is stdout.",
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
    output: Path | None,
) -> int:
    """Review code: the files under PATH, what changed since BASE, what is staged, or a patch.

    Works without a model and without a key: analyzers look for security, bugs, performance, style, history, comments,
    tests and the shape of the change. Code is read, never run. With --model, CHARGEHAND_MODEL or a model in a settings
    file, models read it as well; a key alone sends nothing out.
    """
    from chargehand.apps.review.analyzers import standby

    standby.begin()  # its tools load while ours do
    from chargehand.apps.review import render_review, run
    from chargehand.apps.review.app import check_one_change
    from chargehand.cli.read_inputs import STDIN, read_bytes
    from chargehand.cli.report_footer import print_footer
    from chargehand.cli.screen import check_writable
    from chargehand.cli.watch_run import Stopped, drive
    from chargehand.values.run_status import FINISHED

    output = None if output == Path("-") else output
    check_writable(output)
    check_one_change(diff=base, patch=patch, staged=staged)
    start = partial(
        run,
        path,
        diff=base,
        patch=read_bytes(patch, "a patch").decode("utf-8", "surrogateescape") if patch is not None else None,
        patch_name="the patch" if patch in (None, STDIN) else patch,
        staged=staged,
        min_confidence=min_confidence,
        all=show_all,
        baseline=baseline or None,
        pr_comments=read_bytes(pr_comments, "comments").decode("utf-8", "replace") if pr_comments else None,
        model=model,
    )
    out = screen()
    try:
        reviewed, code = drive(start, out)
    except Stopped as stopped:
        out.complain("Interrupted before the review began.")
        return stopped.exit_code
    report = reviewed.report
    if reviewed.nothing is not None:
        # With a gate it is said in any case: nobody is to take a review that was none for one that found nothing.
        said = out.say if fail_on is None else out.complain
        said(" ".join((reviewed.nothing, *reviewed.change.gaps)))
        # Who asked for a document gets an empty one.
        if form != "text":
            _put(render_review(reviewed, form, out.redactor, _paint(output)), out, output)
        return code
    if report.status not in FINISHED:
        if form == "json":
            _put(render_review(reviewed, form, out.redactor, _paint(output)), out, output)
        out.complain(report.answer)
        return code
    _put(render_review(reviewed, form, out.redactor, _paint(output), _width(output)), out, output)
    # The text says itself what it lacks.
    on_screen = form == "text" and output is None
    print_footer(_without_gaps(reviewed) if on_screen else report, out)
    return _gate(reviewed, fail_on, code, out)


def _gate(reviewed: Review, fail_on: Severity | None, code: int, out: Screen) -> int:
    """The exit code: that of the run, unless a finding shown is as severe as `fail_on`, or more."""
    from chargehand.trace.number_text import several

    if fail_on is None or code not in (0, 3):
        return code
    if code == 3 and out.quiet:
        for gap in reviewed.report.gaps:
            out.complain(f"{gap.reason} {gap.impact}".strip())
    if count := reviewed.selection.at_least(fail_on):
        out.complain(f"{several(count, 'finding')} as severe as {fail_on}, or more.")
        return 1
    return code


def _without_gaps(review: Review) -> Report:
    """The report less what the text of the review says of it."""
    from chargehand.apps.review.review_report import unanalysed_notes

    said = unanalysed_notes(review.unanalysed, models=review.models)
    notes = tuple(note for note in review.report.notes if note not in said)
    return review.report.model_copy(update={"gaps": (), "notes": notes})


def _paint(output: Path | None) -> Paint:
    """Colours on a terminal, unless NO_COLOR is set."""
    import os
    import sys

    from chargehand.apps.review.text_format import STYLES, plain

    if output is not None or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return plain
    return lambda words, style: click.style(words, **STYLES[style])


def _width(output: Path | None) -> int | None:
    """Of the terminal; a file and another program get lines as they are."""
    import shutil
    import sys

    return shutil.get_terminal_size().columns if output is None and sys.stdout.isatty() else None


def _put(text: str, out: Screen, output: Path | None) -> None:
    import sys

    from chargehand.cli.screen import write, write_file, write_painted

    if output is None:
        (write_painted if sys.stdout.isatty() else write)(text)
        sys.stdout.flush()
    else:
        write_file(output, text)
        out.say(f"Review written to {output}.")
