"""What only a person can say: questions about plans, tool calls and escalations, and a person's words read as answers.

kind         what may be answered
plan         approve | reject [reason] | an edited plan as JSON
tool         approve | reject [reason]; where it is in doubt whether it happened: happened [result] | send | give up
escalation   any text: it is given to the worker
task         the result, as text or JSON | escalate: [reason]
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Literal, TypeAlias, assert_never

from pydantic_core import from_json

from chargehand.errors import InvalidAnswer
from chargehand.text.json_schema import violations
from chargehand.text.plan_json import parse, read
from chargehand.values.base import JSON, Value
from chargehand.values.effect import Question
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.outcome import Outcome
from chargehand.values.plan import FactoryLimits, Plan, Task, errors_in
from chargehand.values.request import Request

# Asks one question: (question, what was wrong with the last answer) -> the person's words. Raises Later.
Person: TypeAlias = Callable[[Question, str | None], Awaitable[str]]

# How much of a question one result may fill.
MOST_CHARACTERS = 8_000
# `approve but ...` is neither: the rest would be ignored.
_YES = lazy_regex(r"(approve|approved|yes|y)[.!]?", re.IGNORECASE)
_NO = lazy_regex(r"(?:reject|rejected|no|n)\b[\s:,.-]*(.*)", re.IGNORECASE | re.DOTALL)
# The sign and the point of a number belong to the result.
_HAPPENED = lazy_regex(r"happened\b(?:[\s:,]|[.-](?!\.?\d))*(.*)", re.IGNORECASE | re.DOTALL)
_SEND = lazy_regex(r"send(?: it)?[.!]?", re.IGNORECASE)
_GIVE_UP = lazy_regex(r"give[ _]up[.!]?", re.IGNORECASE)
_ESCALATE = lazy_regex(r"escalate\s*:(.*)", re.IGNORECASE | re.DOTALL)


class Later(Exception):
    """The person does not answer now: the question stays open."""


class PersonVerdict(Value):
    """Yes or no, and why not."""

    approved: bool
    reason: str = ""

    @property
    def words(self) -> str:
        """As it is put on the record."""
        return "approve" if self.approved else f"reject {self.reason}".strip()


class Doubt(Value):
    """What a person found out about an interrupted call: it happened, or it is to be made, or given up."""

    verdict: Literal["happened", "send", "give_up"]
    # What it returned, where it happened and that is known.
    result: str = ""


DOUBT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"verdict": {"enum": ["happened", "send", "give_up"]}, "result": {"type": "string"}},
    "required": ["verdict"],
    "additionalProperties": False,
}


# -- questions -------------------------------------------------------------------------------------------------------


def question_about(task: Task, outcome: Outcome) -> Question:
    """What to ask when a worker could not do its task; the answer is given to the worker that tries again."""
    why = outcome.escalation or outcome.error
    said = f"{outcome.worker} could not do task {task.id}"
    if outcome.escalation is not None:
        said += f" ({outcome.escalation.reason})"
    parts = [f"{said}: {why.message if why else outcome.summary}", describe_task(task)]
    if outcome.partial:
        parts.append(f"What it has so far\n{readable(outcome.output)}")
    return Question(id=task.id, kind="escalation", prompt="\n\n".join(parts))


def question_for_result(task: Task, outcome: Outcome, schema: dict[str, Any] | None) -> Question:
    """What to ask when no attempt is left: the answer is the task's result."""
    about = question_about(task, outcome)
    note = "No attempt is left: what you answer is the result of the task. To hand it back, answer `escalate: why`."
    prompt = f"{about.prompt}\n\n{note}"
    return Question(id=about.id, kind="task", prompt=prompt, answer_schema=schema)


def question_about_tool(task: Task, worker: str, tool: str, arguments: Mapping[str, JSON]) -> Question:
    """Whether a worker may make this very call."""
    call = f"{worker} wants to call {tool} for task {task.id}."
    prompt = f"{call}\n\nArguments\n{readable(dict(arguments))}\n\n{describe_task(task)}"
    return Question(id=f"{task.id}-{tool}", kind="tool", prompt=prompt)


def question_about_doubt(task: Task, worker: str, tool: str, arguments: Mapping[str, JSON]) -> Question:
    """Whether a call that must not be made twice was made before it was interrupted."""
    what = f"{worker} called {tool} for task {task.id}; it was broken off and may or may not have happened."
    ask = "Find out, then say whether it happened, is to be sent now because it did not, or is to be given up."
    prompt = f"{what} {ask}\n\nArguments\n{readable(dict(arguments))}\n\n{describe_task(task)}"
    return Question(id=f"{task.id}-{tool}", kind="tool", prompt=prompt, answer_schema=DOUBT_SCHEMA)


def question_about_plan(text: str) -> Question:
    return Question(id="plan", kind="plan", prompt=text)


def describe_task(task: Task) -> str:
    """The task as a person reads it."""
    parts = [f"Task {task.id}\n{task.instruction.strip()}"]
    if task.context not in (None, "", {}, []):
        parts.append(f"Context\n{readable(task.context)}")
    parts.append(f"Done when\n{task.success_criterion.strip()}")
    return "\n\n".join(parts)


def readable(data: JSON) -> str:
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, indent=2)
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]} [cut: {len(text) - MOST_CHARACTERS:,} characters left out]"


def describe_question(question: Question) -> str:
    """Everything a person has to know to answer."""
    if question.answer_schema is None or question.kind == "tool":
        return question.prompt.rstrip()
    return f"{question.prompt.rstrip()}\n\nThe answer is JSON of this shape\n{readable(question.answer_schema)}"


def choices(question: Question) -> tuple[str, ...]:
    """What may be answered to a question."""
    match question.kind:
        case "plan":
            return ("approve", "reject [reason]", "PLAN (an edited plan as JSON)")
        case "tool" if question.answer_schema is not None:
            return ("happened [result]", "send (it did not happen)", "give up")
        case "tool":
            return ("approve", "reject [reason]")
        case "escalation":
            return ("TEXT (for the worker)",)
        case "task":
            return ("TEXT (the result)", "escalate: [reason]")
        case _:
            assert_never(question.kind)


# -- answers ---------------------------------------------------------------------------------------------------------


def read_words(
    question: Question, words: str, request: Request, workers: Collection[str], factory: FactoryLimits | None = None
) -> JSON:
    """A person's words as the answer that is put on the record; InvalidAnswer says everything wrong with them."""
    text = words.strip()
    if not text:
        message = f"The answer is empty. Answer with: {' | '.join(choices(question))}."
        raise InvalidAnswer(message, command="@FILE gives the content of a file.")
    match question.kind:
        case "plan":
            return _verdict_or_plan(text, request, workers, factory)
        case "tool" if question.answer_schema is not None:
            if (found := doubt(_parse_answer(text))) is None:
                raise InvalidAnswer(f"{text[:60]!r} is not an answer to this: say {', '.join(choices(question))}.")
            return found.to_json()
        case "tool":
            if (said := verdict(text)) is None:
                raise InvalidAnswer(f"{text[:60]!r} is not an answer to this: say `approve` or `reject [reason]`.")
            return said.words
        case "task" if escalation(text) is not None:
            return text
        case "task" | "escalation":
            return _data(text, question.answer_schema)
        case _:
            assert_never(question.kind)


def answered_already(question: str | None, recorded: JSON) -> str:
    """Why an answer is refused when there is another one."""
    said = recorded if isinstance(recorded, str) else json.dumps(recorded, ensure_ascii=False)
    return f"The question {question!r} is answered already, and the first answer counts: {said[:MOST_CHARACTERS]}"


def verdict(answer: JSON) -> PersonVerdict | None:
    """The yes or no in an answer on the record; None when it is something else."""
    if not isinstance(answer, str):
        return None
    if _YES.fullmatch(answer.strip()):
        return PersonVerdict(approved=True)
    no = _NO.fullmatch(answer.strip())
    return None if no is None else PersonVerdict(approved=False, reason=no[1].strip())


def doubt(answer: JSON) -> Doubt | None:
    """What an answer says about a call in doubt, in words or as on the record; None when it is something else."""
    if not isinstance(answer, str):
        return None if violations(answer, DOUBT_SCHEMA) else Doubt.model_validate(answer)
    text = answer.strip()
    if (happened := _HAPPENED.fullmatch(text)) is not None:
        return Doubt(verdict="happened", result=happened[1].strip())
    if _SEND.fullmatch(text):
        return Doubt(verdict="send")
    return Doubt(verdict="give_up") if _GIVE_UP.fullmatch(text) else None


def edited_plan(answer: JSON, original: Plan) -> Plan:
    """The plan a person gave instead; what they left out is as it was."""
    plan = parse(answer)
    kept = {
        name: getattr(original, name) for name in ("goal", "synthesis", "team") if name not in plan.model_fields_set
    }
    return plan.model_copy(update=kept)


def escalation(answer: JSON) -> str | None:
    """Why a person hands a task back, if they do."""
    match = _ESCALATE.fullmatch(answer.strip()) if isinstance(answer, str) else None
    return None if match is None else match[1].strip()


def as_text(answer: JSON) -> str:
    """An answer as a worker gets it."""
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _verdict_or_plan(text: str, request: Request, workers: Collection[str], factory: FactoryLimits | None) -> JSON:
    if (said := verdict(text)) is not None:
        return said.words
    if not text.startswith("{"):
        raise InvalidAnswer(
            f"{text[:60]!r} is not an answer to a plan: "
            "say `approve`, `reject [reason]`, or give an edited plan as JSON."
        )
    try:
        data = from_json(text)
    except ValueError as error:
        raise InvalidAnswer(f"The edited plan was refused: it is not JSON: {error}.") from None
    problems = read(data).problems(
        workers, max_tasks=request.max_tasks, budget_tokens=request.budget.tokens, factory=factory
    )
    if wrong := errors_in(problems):
        lines = "".join(f"\n  {problem.message}" for problem in wrong[:50])
        raise InvalidAnswer(f"The edited plan was refused; correct this and answer again:{lines}", problems)
    return data


def _data(text: str, schema: dict[str, Any] | None) -> JSON:
    """JSON where it is meant, else the text."""
    if schema is None:
        return _parse_answer(text) if text[0] in "{[" else text
    forms = [_parse_answer(text), text]
    found = [violations(form, schema) for form in forms]
    for form, wrong in zip(forms, found, strict=True):
        if not wrong:
            return form
    # For JSON that does not fit, the message names what does not fit; the same for words where data is wanted.
    lines = "".join(f"\n  {problem}" for problem in found[0])
    raise InvalidAnswer(f"The answer does not have the shape that is asked for:{lines}", found[0])


def _parse_answer(text: str) -> JSON:
    try:
        return from_json(text)
    except ValueError:
        return text
