"""`answer`: records the answer to one open question of a run and lists the other open questions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from chargehand.cli.shared_options import Command, output_options, screen

if TYPE_CHECKING:
    from pathlib import Path

    from chargehand.runs.supervisor import Supervisor


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.argument("question")
@click.argument("text", required=False, metavar="[TEXT|@FILE|-]")
@click.option("--edit", is_flag=True, help="Write the answer in $EDITOR; to a plan, edit the plan there.")
@click.option("--resume", "then_resume", is_flag=True, help="Then continue the run, as `chargehand resume RUN` does.")
@output_options
@click.pass_context
def answer(
    ctx: click.Context,
    run_id: str,
    question: str,
    text: str | None,
    edit: bool,
    then_resume: bool,
    output: Path | None,
    as_json: bool,
) -> int | None:
    """Record the answer to QUESTION of RUN; `chargehand resume RUN`, or --resume, then continues the run.

    A run that another process runs continues there. The first answer that can be used counts.

    To a plan: `approve`, `reject [reason]`, or @FILE with an edited plan. To a tool call: `approve` or `reject
    [reason]`. To anything else: the answer itself. @FILE is the content of FILE, `-` is stdin. `chargehand show RUN`
    lists the questions.
    """
    import asyncio

    from chargehand.cli import read_inputs as inputs
    from chargehand.cli.make_supervisor import supervisor_of_records
    from chargehand.cli.open_questions import describe_questions
    from chargehand.cli.screen import check_writable
    from chargehand.errors import InvalidAnswer, UsageError

    if (text is None) != edit:
        raise UsageError("Give the answer as TEXT, or write it in an editor with --edit: one of the two.")
    if (output is not None or as_json) and not then_resume:
        raise UsageError("-o and --json are for the report of the run: give them with --resume.")
    check_writable(output)
    supervisor = supervisor_of_records()
    name = supervisor.source.find(run_id)
    if text is None:
        words = _write_in_editor(supervisor, name, question)
    else:
        words = inputs.text_of_stdin("the answer") if text == inputs.STDIN else inputs.words_of(text)
    try:
        left = asyncio.run(supervisor.answer(name, question, words, by="command"))
    except InvalidAnswer as error:
        if not edit:
            raise
        again = f"chargehand answer {name} {question} @{_keep(words)}{' --resume' if then_resume else ''}"
        message = f"{error}\nWhat you wrote is kept. Correct it in the file, then: {again}"
        raise InvalidAnswer(message, error.problems) from None
    out = screen()
    out.say(f"The answer to {question} is recorded in {name}.")
    for line in describe_questions(name, left):
        out.say(line)
    # A run on Temporal continues there, and can be followed from anywhere.
    is_elsewhere = supervisor.source.owner(name) is not None
    if is_elsewhere and not (then_resume and not supervisor.home.has(name)):
        return None
    if then_resume:
        from chargehand.cli.resume import resume

        return ctx.invoke(resume, run_id=name, output=output, as_json=as_json)
    out.say(f"Continue with: chargehand resume {name}")
    return None


def _keep(words: str) -> str:
    """The words in a file that only this user can read."""
    import shlex
    import tempfile

    handle, name = tempfile.mkstemp(prefix="chargehand-answer-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(words)
    return shlex.quote(name)


def _write_in_editor(supervisor: Supervisor, run: str, id: str) -> str:
    """The saved answer: for a plan the edited plan, otherwise the lines that are not comments."""
    from chargehand.engine.people import describe_question
    from chargehand.errors import UsageError
    from chargehand.text.escaping import dump_json

    asked = next((each for each in supervisor.questions(run) if each.id == id), None)
    plan = supervisor.report(run).plan if asked is not None and asked.kind == "plan" else None
    if plan is not None:
        before = dump_json(plan.to_json(), indent=2) + "\n"
    else:
        lines = describe_question(asked).splitlines() if asked is not None else [f"question {id}"]
        before = "\n" + "".join(f"# {line}\n" for line in (*lines, "", "Lines that begin with # are left out."))
    try:
        after = click.edit(before, extension=".txt" if plan is None else ".json")
    except click.ClickException:
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "The editor"
        message = f"{editor} could not be started, or failed. Set EDITOR to another one, or give the answer as TEXT."
        raise UsageError(message) from None
    if after is None or after == before:
        raise UsageError("The editor was closed without a change: nothing is recorded.")
    return after if plan is not None else "\n".join(x for x in after.splitlines() if not x.startswith("#")).strip()
