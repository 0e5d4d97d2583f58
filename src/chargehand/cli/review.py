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
    from chargehand.values.outcome import Severity


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
    from chargehand.apps.review import run
    from chargehand.apps.review.run_review import check_one_change
    from chargehand.cli.print_review import print_review
    from chargehand.cli.read_inputs import STDIN, read_bytes
    from chargehand.cli.screen import check_writable
    from chargehand.cli.watch_run import Stopped, drive, gate

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
    if preview and reviewed.nothing is not None:
        out.answer(reviewed.nothing)
        return code
    print_review(reviewed, form, code, output)
    return gate(reviewed, code, out)
