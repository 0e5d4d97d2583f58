"""A drafted plan and its request -> what the plan lost from the request, took from an example or invented.

Workers never see the request. A figure or a name that is in no task is lost, a file that was not given cannot be read,
and words of an example are about something else. Code looks for these; whether the plan is good is not judged here.

lost                                           what happens
a figure over 10, or most of the names         the draft is sent back once (`losses`), then as below
less: a small number, one name of several      code gives the request to the tasks that begin (`with_lost_details`)
a text pasted into the request                 the same: no plan repeats a text
anything, in a small model's plan              the same, always (`with_request`); one task has the request as it is
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from chargehand.planner.before_spending import has_short_material
from chargehand.team import Team
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.plan import Plan, Problem, Task
from chargehand.values.request import Request
from chargehand.workers.agent import READS_MATERIAL

# This many equal words in a row are copied, and not equal by chance.
COPIED_WORDS = 8
# A request with more than one of these is a text to work on: no plan repeats it.
MOST_NAMES = 12
MOST_FIGURES = 20
MOST_CHARACTERS = 2_000
# Numbers up to this one are often written as words.
SMALL_NUMBER = 10

_LIST_MARK = lazy_regex(r"(?m)^[ \t]*\d{1,3}[.)][ \t]")
_FIGURE = lazy_regex(r"(?<!\w)\d+(?:[.,:]\d+)*")
_DATE = lazy_regex(r"(?<![\w./-])(?:(\d{4})([-./])\d{1,2}\2\d{1,2}|\d{1,2}([-./])\d{1,2}\3(\d{4}))(?!\w)")
_THOUSANDS = lazy_regex(r"[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d{0,2}(?:\.\d{3})+")
_DECIMAL = lazy_regex(r"(\d+|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d{0,2}(?:\.\d{3})+)[.,](\d+)")
_WORD = lazy_regex(r"\w+")
_NAME_WORD = lazy_regex(r"\w[\w'’-]*")
# What ends a sentence or begins a line, a quotation or a heading: the capital letter after it is not a name's.
_BREAK = lazy_regex(r"[.!?:;…\n\"“„«(\[{*#]")
_PATH = lazy_regex(r"[\w./@-]+")
_FILE_ENDING = lazy_regex(r"\w\.(?:md|txt|csv|tsv|json|jsonl|xml|html?|pdf|docx?|xlsx?|py|log|toml|ya?ml)$")


class _Lost(NamedTuple):
    """Figures and names of a request that are in no task. `is_grave`: worth another planner call."""

    words: tuple[str, ...] = ()
    is_grave: bool = False


def losses(plan: Plan, request: Request, team: Team, *, with_details: bool = True) -> list[Problem]:
    """What is wrong with the plan when compared with the request, as problems to send back.

    `with_details`: lost figures and names too.
    """
    found: list[Problem] = []
    if with_details and not _is_text(request.text) and (lost := _find_lost(plan, request.text)).is_grave:
        listing = ", ".join(lost.words)
        message = f"No task has these words of the request, and workers do not see the request: {listing}."
        found.append(Problem(code="dropped_detail", message=message))
    foreign, own = set[str](), set(_runs(request.text)) if team.examples else set[str]()
    for example in team.examples:
        words = (run for task in example.plan.tasks for run in _runs(task.instruction))
        (own if _is_alike(example.request, request.text) else foreign).update(words)
    given = {material.name for material in request.material}
    for task in plan.tasks:
        if any(run in foreign and run not in own for run in _runs(task.instruction)):
            message = f"{task.id} is about an example and not about this request."
            found.append(Problem(code="copied_example", task=task.id, message=message))
        unknown = sorted(name for name in set(_files(task.instruction)) if not _is_given(name, given, request))
        if unknown:
            there = ", ".join(sorted(given)) or "no files at all"
            message = f"{task.id} names {', '.join(unknown)}, which is not among the material: there is {there}."
            found.append(Problem(code="unknown_file", task=task.id, message=message))
    return found


def with_lost_details(plan: Plan, request: Request) -> Plan:
    """The plan with the request's own words in the tasks that begin it, where some of them are in no task."""
    text = request.text
    lost = text not in _words_of(plan) if _is_text(text) else bool(_find_lost(plan, text).words)
    if not lost:
        return plan
    return _give_request(plan, text)


def with_request(plan: Plan, request: Request, team: Team) -> Plan:
    """A small model's plan with the request's own words in the tasks that begin it.

    Copies of a task are removed. A plan of one task gets the request as it is. A chain about material that fits into
    one prompt becomes such a plan: nothing in it runs in parallel, and with every step a small model loses some of the
    question.
    """
    plan = _without_copies(plan)
    tasks = plan.tasks
    if plan.strategy == "sequential" and has_short_material(request):
        tasks = (_worker_of_all(tasks, team),)
    if len(tasks) != 1:
        return _give_request(plan, request.text)
    alone = {"id": plan.tasks[0].id, "instruction": request.text, "depends_on": ()}
    return plan.model_copy(update={"tasks": (tasks[0].model_copy(update=alone),)})


def _without_copies(plan: Plan) -> Plan:
    """Of tasks that ask the same worker the same with the same inputs, only the first; dependencies move to it."""
    first: dict[tuple[str, str, frozenset[str]], str] = {}
    same = {
        task.id: first.setdefault((task.worker, task.instruction, frozenset(task.depends_on)), task.id)
        for task in plan.tasks
    }
    tasks = [
        task.model_copy(update={"depends_on": tuple(dict.fromkeys(same.get(id, id) for id in task.depends_on))})
        for task in plan.tasks
        if same[task.id] == task.id
    ]
    return plan.model_copy(update={"tasks": tuple(tasks)})


def _worker_of_all(chain: Sequence[Task], team: Team) -> Task:
    """The task of a chain whose worker can read the material, else the last: its result is what was asked for."""
    readers = {worker.name for worker in team.workers if READS_MATERIAL in worker.tool_names}
    return next((task for task in chain if task.worker in readers), chain[-1])


def _give_request(plan: Plan, request: str) -> Plan:
    tasks = [task if task.depends_on else _with_request(task, request) for task in plan.tasks]
    return plan.model_copy(update={"tasks": tuple(tasks)})


def _with_request(task: Task, request: str) -> Task:
    context = {"the request this task is a part of": request}
    if task.context not in (None, "", {}, []):
        context["context"] = task.context
    return task.model_copy(update={"context": context})


def _is_text(request: str) -> bool:
    """Whether the request contains a text or a table to work on."""
    return (
        len(request) > MOST_CHARACTERS
        or len(set(_written_figures(request))) > MOST_FIGURES
        or len(set(_names(request))) > MOST_NAMES
    )


def _find_lost(plan: Plan, request: str) -> _Lost:
    whole = _words_of(plan)
    known, lower = {figure for _, figure in _written_figures(whole)}, whole.casefold()
    figures = {figure: written for written, figure in _written_figures(request) if figure not in known}
    names = list(dict.fromkeys(_names(request)))
    lost_names = [name for name in names if _stem(name) not in lower]
    is_grave = 2 * len(lost_names) > len(names) or not all(map(_is_small, figures))
    return _Lost((*figures.values(), *lost_names), is_grave)


def _is_small(figure: str) -> bool:
    return figure.isdigit() and int(figure[:4]) <= SMALL_NUMBER


def _written_figures(text: str) -> Iterator[tuple[str, str]]:
    """Figures as they are written, with the one form they are compared in.

    The numbers of a list are not figures. In a date only the year is a figure: the rest may become words.
    """
    text = _DATE.sub(lambda date: date[1] or date[4], _LIST_MARK.sub("", text))
    return ((written, _one_form(written)) for written in _FIGURE.findall(text))


def _one_form(figure: str) -> str:
    """1,200 and 1200 and 1.200,00 are one figure; 4.5 and 45 are two."""
    if _THOUSANDS.fullmatch(figure):
        return figure.replace(",", "").replace(".", "")
    if decimal := _DECIMAL.fullmatch(figure):
        whole = decimal[1].replace(",", "").replace(".", "").lstrip("0") or "0"
        return f"{whole}.{decimal[2]}".rstrip("0").rstrip(".")
    return figure.lstrip("0") or "0" if figure.isdigit() else figure


def _names(text: str) -> Iterator[str]:
    """Words that have a capital letter and do not only begin a sentence. None where every word has one."""
    found: list[str] = []
    end, before, has_lower = 0, "", False
    for match in _NAME_WORD.finditer(text):
        word = match[0]
        gap = text[end : match.start()]
        # The full stop after a title or an initial, as in "Dr. Okafor", does not end a sentence.
        abbreviated = gap == ". " and before[:1].isupper() and len(before) <= 3
        begins = not before or (_BREAK.search(gap) is not None and not abbreviated)
        end, before, has_lower = match.end(), word, has_lower or word[0].islower()
        word = word.replace("’", "'").removesuffix("'s").rstrip("'-")
        inside = any(map(str.isupper, word[1:]))
        if len(word) > 1 and (inside or (word[0].isupper() and not begins and word[1] != "'")):
            found.append(word)
    return iter(found if has_lower else ())


def _stem(name: str) -> str:
    """The name without an ending: `Kunden` is found in `Kunde`."""
    return name.casefold()[: max(4, len(name) - 2)]


def _files(text: str) -> Iterator[str]:
    for path in _PATH.findall(text):
        name = path.rstrip(".-")
        if _FILE_ENDING.search(name[-8:]) and name[0] not in "/@.":
            yield name


def _is_given(name: str, given: set[str], request: Request) -> bool:
    return (
        name in request.text
        or any(name == each or name.startswith(f"{each}/") or name.endswith(f"/{each}") for each in given)
        or any("." not in each for each in given)
    )


def _is_alike(one: str, other: str) -> bool:
    """Whether most words of one request are in the other: then its plan may equal the plan of the example."""
    words = set(_WORD.findall(one.casefold()))
    return len(words & set(_WORD.findall(other.casefold()))) > len(words) / 2


def _words_of(plan: Plan) -> str:
    return " ".join(map(_text, plan.tasks))


def _text(task: Task) -> str:
    context = task.context if isinstance(task.context, str) else json.dumps(task.context, ensure_ascii=False)
    return f"{task.instruction} {context} {task.success_criterion}"


def _runs(text: str) -> Iterable[str]:
    words = _WORD.findall(text.casefold())
    return (" ".join(words[at : at + COPIED_WORDS]) for at in range(len(words) - COPIED_WORDS + 1))
