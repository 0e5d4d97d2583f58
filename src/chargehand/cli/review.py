"""`review`: a folder, a revision or a patch becomes a watched run of the review team and a list of findings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chargehand.cli.command import Command, screen

if TYPE_CHECKING:
    from chargehand.apps.review.change import Change
    from chargehand.apps.review.formats import Form, Review
    from chargehand.apps.review.stored_options import ReviewOptions
    from chargehand.apps.review.text_format import Paint
    from chargehand.cli.screen import Screen
    from chargehand.settings import Settings
    from chargehand.values.outcome import Severity
    from chargehand.values.plan import Plan
    from chargehand.values.report import Report

# A comment file larger than this is cut: it goes into the record whole.
MOST_COMMENTS = 500_000


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
    from chargehand.apps.review.formats import as_json, render_review
    from chargehand.apps.review.known_findings import read_baseline
    from chargehand.apps.review.stored_options import choice
    from chargehand.cli.make_supervisor import by_consent
    from chargehand.cli.report_footer import print_footer
    from chargehand.cli.screen import check_writable
    from chargehand.cli.watch_run import Stopped
    from chargehand.trace.number_text import several
    from chargehand.values.report import FINISHED

    output = None if output == Path("-") else output
    check_writable(output)
    settings, warnings = by_consent(model)
    change = _change(path, base, patch, Path(settings.home), staged=staged)
    known = read_baseline(baseline) if baseline else frozenset[str]()
    _check_tools()
    comments = _comments(pr_comments)
    out = screen()
    if (why := change.nothing) is not None:
        # With a gate it is said in any case: nobody is to take a review that was none for one that found nothing.
        said = out.say if fail_on is None else out.complain
        said(" ".join((why, *change.gaps)))
        return _put_nothing(change, why, form, out, output)
    try:
        kept = choice(change, min_confidence=min_confidence, baseline=known, all=show_all, written=settings.has_model)
        report, code = _run(change, kept, settings, warnings, comments, out)
    except Stopped as stopped:
        out.complain("Interrupted before the review began.")
        return stopped.exit_code
    if report.status not in FINISHED:
        if form == "json":
            _put(as_json(report, out.redactor), out, output)
        out.complain(report.answer)
        return code
    reviewed = _select_findings(report, change, kept, out)
    _put(render_review(reviewed, form, out.redactor, _paint(output), _width(output)), out, output)
    # The text says itself what it lacks.
    on_screen = form == "text" and output is None
    print_footer(_without_gaps(reviewed) if on_screen else reviewed.report, out)
    if code == 3 and fail_on is not None and out.quiet:
        for gap in reviewed.report.gaps:
            out.complain(f"{gap.reason} {gap.impact}".strip())
    if code in (0, 3) and fail_on is not None and (count := reviewed.selection.at_least(fail_on)):
        out.complain(f"{several(count, 'finding')} as severe as {fail_on}, or more.")
        return 1
    return code


def _check_tools() -> None:
    """Refuse to review without the tools that find most: a gate without them is none."""
    import asyncio

    from chargehand.apps.review.analyzers import packages
    from chargehand.errors import UsageError

    if broken := asyncio.run(packages.broken()):
        faults = " and ".join(f"{name} ({why.rstrip('.')})" for name, why in broken.items())
        raise UsageError(f"review cannot run {faults}. Install what it needs: {packages.INSTALL}")


def plan_review(paths: Sequence[str], model: str | None, out: Screen) -> Plan:
    """The plan of a review of a folder, for `chargehand plan --team review`, with what a planner adds to it."""
    import asyncio

    from chargehand.apps.review.change import read_tree
    from chargehand.apps.review.playbook import playbook, subject
    from chargehand.cli.make_supervisor import by_consent
    from chargehand.errors import PlanningFailed, UsageError
    from chargehand.runs.supervisor import Supervisor

    if len(paths) > 1:
        raise UsageError("A review is of one folder: give --with once.")
    settings, _ = by_consent(model)
    change = read_tree(Path(paths[0] if paths else "."))
    if (why := change.nothing) is not None:
        raise UsageError(why)
    plan = playbook(change, model=settings.has_model)
    if not settings.has_model:
        return plan
    try:
        door = Supervisor("review", settings=settings)
        return asyncio.run(door.plan(plan.goal, plan=plan, subject=subject(plan, change)))
    except PlanningFailed as error:
        out.say(f"warning: No tasks were added to the plan. {error}")
        return plan


def again(report: Report, out: Screen, *, later: bool = False, brief: bool = False) -> Report:
    """A run on record as `review` showed it; one that is no review, or has not ended, as it is.

    `later`: nothing was looked at now, and the files may have changed since. `brief`: the answer lists no findings.
    """
    from chargehand.values.report import FINISHED

    if report.plan is None or report.plan.team != "review" or report.status not in FINISHED:
        return report
    from chargehand.apps.review.stored_options import recall_review

    known = recall_review(report.plan)
    return report if known is None else _select_findings(report, *known, out, later=later, brief=brief).report


def _change(path: str, base: str | None, patch: str | None, home: Path, *, staged: bool) -> Change:
    import os

    from chargehand.apps.review.change import read_tree
    from chargehand.apps.review.from_git import read_diff
    from chargehand.apps.review.from_patch import read_patch
    from chargehand.apps.review.from_pre_commit import read_hooked
    from chargehand.cli.read_inputs import read_bytes
    from chargehand.errors import UsageError

    where = Path(path)
    flags = {"--diff": base is not None, "--patch": patch is not None, "--staged": staged}
    given = [name for name, is_given in flags.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} are {len(given)} changes: give one of them.")
    if staged:
        return read_hooked(where, home / "cache" / "staged", os.environ)
    if base is not None:
        return read_diff(where, base)
    if patch is not None:
        text = read_bytes(patch, "a patch").decode("utf-8", "surrogateescape")
        return read_patch(where, text, "the patch" if patch == "-" else patch, home / "cache" / "patches")
    return read_tree(where)


def _comments(path: str | None) -> str | None:
    from chargehand.cli.read_inputs import read_bytes

    return read_bytes(path, "comments").decode("utf-8", "replace")[:MOST_COMMENTS] if path else None


def _run(
    change: Change, kept: ReviewOptions, settings: Settings, warnings: list[str], comments: str | None, out: Screen
) -> tuple[Report, int]:
    from chargehand.apps.review.playbook import playbook, subject, unreviewed_gaps
    from chargehand.cli.watch_run import drive
    from chargehand.runs.supervisor import Supervisor

    door = Supervisor("review", settings=settings)
    door.warnings = warnings
    plan = playbook(change, model=settings.has_model, pr_comments=comments, kept=kept)
    about = subject(plan, change, comments) if settings.has_model else None
    return drive(partial(door.run, plan.goal, plan=plan, subject=about, gaps=unreviewed_gaps(change)), out)


def _select_findings(
    report: Report, change: Change, kept: ReviewOptions, out: Screen, *, later: bool = False, brief: bool = False
) -> Review:
    from chargehand.apps.review.formats import Review
    from chargehand.apps.review.languages import unanalysed
    from chargehand.apps.review.selection import select
    from chargehand.apps.review.source_lines import SourceLines
    from chargehand.apps.review.view import view

    source = SourceLines(change.root, out.redactor.text)
    least, known = kept.min_confidence, frozenset(kept.baseline)
    selection = select(report.findings, change, source, min_confidence=least, baseline=known, later=later)
    counts = unanalysed(change.files, change.root)
    shown = view(report, selection, change, source, counts, all=kept.all, written=kept.written, brief=brief)
    return Review(shown, selection, change, source, kept.all, counts, kept.written)


def _without_gaps(review: Review) -> Report:
    """The report less what the text of the review says of it."""
    from chargehand.apps.review.view import unanalysed_notes

    said = unanalysed_notes(review.unanalysed, models=review.models)
    notes = tuple(note for note in review.report.notes if note not in said)
    return review.report.model_copy(update={"gaps": (), "notes": notes})


def _put_nothing(change: Change, why: str, form: Form, out: Screen, output: Path | None) -> int:
    """Who asked for a document gets an empty one."""
    from chargehand.apps.review.formats import Review, render_review
    from chargehand.apps.review.selection import Selection
    from chargehand.apps.review.source_lines import SourceLines
    from chargehand.apps.review.view import nothing

    report = nothing(change, why)
    if form != "text":
        empty = Review(report, Selection((), ()), change, SourceLines(change.root))
        _put(render_review(empty, form, out.redactor, _paint(output)), out, output)
    return report.exit_code


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
