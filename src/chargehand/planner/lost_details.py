"""A drafted plan and its request -> what the plan lost of the request, took from an example or made up.

Workers never see the request. A figure or a name that is in no task is lost, a file that was not given cannot be read,
and words of an example are about something else. Code looks for these; whether the plan is good is not judged here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from chargehand.team import Team
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.plan import Plan, Problem, Task
from chargehand.values.request import Request

# So many words in a row are copied, not met by chance.
COPIED_WORDS = 8
# A request with more names than this is a text to work on: no plan repeats them all.
MOST_NAMES = 12
MOST_FIGURES = 20

_FIGURE = lazy_regex(r"\d+(?:[.,:]\d+)*")
# A word with a capital letter that does not begin a sentence.
_NAME = lazy_regex(r"(?<![.!?:\n\"'(\u201c]\s)(?<!^)\b[^\W\d_a-z][\w'-]*[^\W\d_]\b")
_FILE = lazy_regex(
    r"(?<![\w/@.])(?:[\w-]+/)*[\w-]+\.(?:md|txt|csv|tsv|json|jsonl|xml|html?|pdf|docx?|xlsx?|py|log|toml|ya?ml)\b"
)
_WORD = lazy_regex(r"\w+")


def losses(plan: Plan, request: Request, team: Team) -> list[Problem]:
    """What is wrong with the plan beside the request, as problems to send back."""
    whole = " ".join(map(_text, plan.tasks))
    found: list[Problem] = []
    if lost := _lost(whole, request.text):
        listing = ", ".join(lost)
        message = f"No task has these words of the request, and workers do not see the request: {listing}."
        found.append(Problem(code="dropped_detail", message=message))
    foreign, own = set[str](), set(_runs(request.text))
    for example in team.examples:
        words = (run for task in example.plan.tasks for run in _runs(_text(task)))
        (own if _is_alike(example.request, request.text) else foreign).update(words)
    given = {material.name for material in request.material}
    for task in plan.tasks:
        if any(run in foreign and run not in own for run in _runs(_text(task))):
            message = f"{task.id} is about an example and not about this request."
            found.append(Problem(code="copied_example", task=task.id, message=message))
        unknown = sorted(name for name in set(_FILE.findall(task.instruction)) if not _is_given(name, given, request))
        if unknown:
            there = ", ".join(sorted(given)) or "no files at all"
            message = f"{task.id} names {', '.join(unknown)}, which nobody gave: there is {there}."
            found.append(Problem(code="unknown_file", task=task.id, message=message))
    return found


def with_lost_details(plan: Plan, request: Request) -> Plan:
    """The plan with the request's own words in the tasks that begin it, where some of them are in no task."""
    if not _lost(" ".join(map(_text, plan.tasks)), request.text):
        return plan
    tasks = [task if task.depends_on else _with_request(task, request.text) for task in plan.tasks]
    return plan.model_copy(update={"tasks": tuple(tasks)})


def _with_request(task: Task, request: str) -> Task:
    context = {"the request this task is a part of": request}
    if task.context not in (None, "", {}, []):
        context["context"] = task.context
    return task.model_copy(update={"context": context})


def _lost(whole: str, request: str) -> list[str]:
    """Figures and names of the request that are in no task."""
    there = {_digits(figure) for figure in _FIGURE.findall(whole)}
    figures = list(dict.fromkeys(_FIGURE.findall(request)))
    lost = [figure for figure in figures[:MOST_FIGURES] if _digits(figure) not in there]
    names = list(dict.fromkeys(_NAME.findall(request)))
    if len(names) <= MOST_NAMES:
        lower = whole.casefold()
        lost += [name for name in names if name.casefold() not in lower]
    return lost


def _digits(figure: str) -> str:
    """1,200 and 1200 are one figure; 4.5 and 45 are two."""
    return re.sub(r"[.,](?=\d{3}(?:\D|$))", "", figure)


def _is_given(name: str, given: set[str], request: Request) -> bool:
    return (
        name in request.text
        or any(name == each or name.startswith(f"{each}/") or name.endswith(f"/{each}") for each in given)
        or any("." not in each for each in given)
    )


def _is_alike(one: str, other: str) -> bool:
    """Whether most words of one request are in the other: a plan for it may be the example's."""
    words = set(_WORD.findall(one.casefold()))
    return len(words & set(_WORD.findall(other.casefold()))) > len(words) / 2


def _text(task: Task) -> str:
    context = task.context if isinstance(task.context, str) else json.dumps(task.context, ensure_ascii=False)
    return f"{task.instruction} {context} {task.success_criterion}"


def _runs(text: str) -> Iterable[str]:
    words = _WORD.findall(text.casefold())
    return (" ".join(words[at : at + COPIED_WORDS]) for at in range(len(words) - COPIED_WORDS + 1))
