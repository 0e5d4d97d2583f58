"""The open questions of a run -> lines, each question with the command that answers it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chargehand.values.effect import Question

# The most questions to list; the rest is only counted.
MOST = 20


def describe_questions(run: str, questions: Sequence[Question]) -> list[str]:
    """The open questions as lines, each with how to answer it."""
    if not questions:
        return []
    from chargehand.engine.people import describe_question

    lines: list[str] = []
    for question in questions[:MOST]:
        kind = "" if question.kind == question.id else f" ({question.kind})"
        lines += ["", f"question {question.id}{kind}"]
        lines += [f"  {line}".rstrip() for line in describe_question(question).splitlines()]
        lines.append("  answer with")
        ways = map(_quote_choice, typed_choices(question))
        lines += [f"    chargehand answer {run} {question.id} {way}" for way in ways]
    if len(questions) > MOST:
        lines += ["", f"and {len(questions) - MOST} more questions: chargehand show {run} --json"]
    return [*lines, ""]


def typed_choices(question: Question) -> tuple[str, ...]:
    """What may be typed as the answer to a question, where `@FILE` stands for the content of a file."""
    from chargehand.engine.people import choices

    allowed = choices(question)
    match question.kind:
        case "plan":
            return tuple(choice.replace("PLAN", "@FILE") for choice in allowed)
        case "escalation" | "task":
            return (allowed[0], "@FILE", *allowed[1:])
        case "tool":
            return allowed


def _quote_choice(choice: str) -> str:
    """A choice as it is typed in a shell, with its meaning as a comment."""
    words, bracket, meaning = choice.partition(" (")
    typed = f"'{words}'" if " " in words else words
    return f"{typed}   # {meaning.rstrip(')')}" if bracket else typed
