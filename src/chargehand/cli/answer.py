"""`answer`: words for one open question of a run are recorded; the other open questions are listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from chargehand.cli.command import Command, screen

if TYPE_CHECKING:
    from chargehand.values.effect import Question

# Of more open questions than this, the rest is only counted.
MOST = 20


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.argument("question")
@click.argument("text", metavar="TEXT|@FILE|-")
def answer(run_id: str, question: str, text: str) -> None:
    """Record the answer to QUESTION of RUN; `chargehand resume RUN` then continues the run.

    To a plan: `approve`, `reject [reason]`, or @FILE with an edited plan. To a tool call: `approve` or `reject
    [reason]`. To anything else: the answer itself. @FILE is the content of FILE, `-` is stdin. `chargehand show RUN`
    lists the questions.
    """
    import asyncio

    from chargehand.cli import read_inputs as inputs
    from chargehand.cli.make_supervisor import supervisor_of_records

    words = inputs.text_of_stdin("the answer") if text == inputs.STDIN else inputs.words_of(text)
    supervisor = supervisor_of_records()
    name = supervisor.source.find(run_id)
    left = asyncio.run(supervisor.answer(name, question, words))
    out = screen()
    out.say(f"The answer to {question} is recorded in {name}.")
    for line in describe_questions(name, left):
        out.say(line)
    out.say(f"Continue with: chargehand resume {name}")


def describe_questions(run: str, questions: Sequence[Question]) -> list[str]:
    """The open questions as lines, each with how to answer it."""
    if not questions:
        return []
    from chargehand.engine.people import choices, describe_question

    lines: list[str] = []
    for question in questions[:MOST]:
        lines += ["", f"question {question.id} ({question.kind})"]
        lines += [f"  {line}".rstrip() for line in describe_question(question).splitlines()]
        lines.append("  answer with")
        lines += [f"    chargehand answer {run} {question.id} {_quote_choice(choice)}" for choice in choices(question)]
    if len(questions) > MOST:
        lines += ["", f"and {len(questions) - MOST} more questions: chargehand show {run} --json"]
    return [*lines, ""]


def _quote_choice(choice: str) -> str:
    """A choice as it is typed in a shell, with its meaning as a comment."""
    words, bracket, meaning = choice.partition(" (")
    typed = f"'{words}'" if " " in words else words
    return f"{typed}   # {meaning.rstrip(')')}" if bracket else typed
