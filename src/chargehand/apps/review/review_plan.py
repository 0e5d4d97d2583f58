"""A change -> the plan of its review: every lens on every group of files, with a model also a reader for each lens.

No model makes this plan. It is validated and run like any other; with a model, a planner may add tasks to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from chargehand.apps.review.analyzers import ANALYZERS, LENSES
from chargehand.apps.review.analyzers.history import COPIED
from chargehand.apps.review.analyzers.lens import Lens
from chargehand.apps.review.analyzers.linters import TRUSTED
from chargehand.apps.review.analyzers.source_files import is_python
from chargehand.apps.review.change import Change
from chargehand.apps.review.groups import group_files, name_group
from chargehand.apps.review.model_readers import READERS
from chargehand.apps.review.reading_plan import ReadingPlan, plan_readings
from chargehand.trace.number_text import several
from chargehand.values.base import JSON
from chargehand.values.plan import Plan, SynthesisSpec, Task
from chargehand.values.report import Gap
from chargehand.values.request import Subject
from chargehand.workers.analyzer import name_files

# Bytes of source for one analyzer task: about 60,000 lines, which its tools read in a second or two.
LARGEST_GROUP = 2_000_000
# bandit is ten times slower: its work is shared between the cores, in as few groups as possible.
SMALLER_GROUPS: dict[Lens, int] = {"security": 800_000}
# For fewer than about 2,000 lines it is not worth starting the tools twice.
LEAST_SPLIT = 80_000
# Characters of comments on earlier changes that a planner gets.
MOST_NOTES = 8_000

_LOOKS: dict[Lens, str] = {
    "security": "Look for injection, unsafe calls, weak cryptography and secrets",
    "bugs": "Look for code that fails or does not do what it says",
    "performance": "Look for needless work: queries and calls in loops, costly constructions, complexity",
    "style": "Look for what makes the code hard to maintain: names, needless code, dead code",
    "history": "Look into the history: lines that were fixed before, hot spots, reverted changes",
    "comments": "Look at the comments near the change: open work, contracts the code no longer keeps",
    "tests": "Look for changed behaviour that no test covers",
    "shape": "Look at the shape of the change: its size, its mix, leftovers such as conflict markers",
}


def make_review_plan(
    change: Change,
    *,
    model: bool,
    pr_comments: str | None = None,
    readings: ReadingPlan | None = None,
    trusted: bool = False,
) -> Plan:
    """The plan. `model`: with readers too; `readings` are their tasks if already planned.

    `trusted`: linters that run code of the project may check it.
    """
    if model and readings is None:
        readings = plan_readings(change, pr_comments=pr_comments)
    what = "the change" if change.changed is not None else "the code"
    tasks = [*_analyses(change, pr_comments, trusted=trusted), *(readings.tasks if readings else ())]
    goal = f"Review {what} in {change.home.name}: {several(len(change.files), 'file')}"
    instruction = (
        "List what is worth correcting, most severe first, each with its file and line. Findings are facts to report, "
        "not to add to: do not invent any. Say plainly which lens could not be applied."
    )
    return Plan(goal=goal, tasks=tuple(tasks), synthesis=SynthesisSpec(instruction=instruction), team="review")


def subject(plan: Plan, change: Change, pr_comments: str | None = None) -> Subject:
    """The input for a planner that may add tasks: the files of the readers, without their lines."""
    contexts = [task.context for task in plan.tasks if task.worker in READERS]
    files: dict[str, JSON] = {}
    for path in dict.fromkeys(path for context in contexts for path in context["code"]):
        files[path] = {"bytes": change.files[path]}
        if (ranges := _ranges(change, path)) is not None:
            files[path]["changed_lines"] = sum(last - first + 1 for first, last in ranges)
    return Subject(files=files, notes=(pr_comments or "")[:MOST_NOTES])


def unable(change: Change) -> tuple[str, ...]:
    """Sentences about what could not be checked because a patch shows less than a tree."""
    notes: list[str] = []
    if not change.in_place:
        names = ", ".join(name for name, each in ANALYZERS.items() if each.whole_tree)
        where = (
            "The change is not in the files of the tree (the patch is not applied, or they differ from what is staged)"
        )
        notes.append(f"{where}: {names} and history did not look.")
    if change.fragments:
        some = several(len(change.fragments), "file")
        notes.append(f"Of {some}, not here as the patch was made for, only its own lines are known and checked.")
    return tuple(notes)


def unreviewed_gaps(change: Change) -> tuple[Gap, ...]:
    """The parts of the change that could not be reviewed properly."""
    found = [Gap(reason=reason) for reason in change.gaps]
    code = [name for name in sorted(change.fragments) if is_python(name, change.root)]
    if code:
        names = ", ".join(name for name, each in ANALYZERS.items() if "python" in (each.languages or ()))
        reason = f"The patch was not made for {name_files(code)} as here."
        found.append(Gap(reason=reason, impact=f"Not looked at by {names}."))
    return tuple(found)


def _analyses(change: Change, pr_comments: str | None, *, trusted: bool) -> Iterable[Task]:
    for lens, names in LENSES.items():
        if lens == "tests" and change.changed is None:
            continue  # it is about behaviour that changed
        number = 0
        for chosen, files in _shares(names, change):
            for own, group in _shared_work(lens, chosen, files):
                number += 1
                options: dict[str, JSON] = {"pr_comments": pr_comments} if lens == "history" and pr_comments else {}
                if lens == "history" and not change.in_place:
                    options[COPIED] = True
                if trusted and lens == "bugs":
                    options[TRUSTED] = True
                context: dict[str, JSON] = {"root": str(change.root), "files": list(group), "base": change.base}
                context |= {"changed": _of(change.changed, group), "options": options}
                if own != names:
                    context["analyzers"] = list(own)
                yield Task(
                    id=f"{lens}-{number}",
                    worker=lens,
                    instruction=f"{_LOOKS[lens]} in {name_group(group)}.",
                    context=context,
                    success_criterion="Every file was looked at, or it is said why not.",
                )


def _shared_work(
    lens: Lens, names: tuple[str, ...], files: Mapping[str, int]
) -> Iterable[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Which analyzers get which files: those that need all files get them together, the others get one group each."""
    groups = _groups(lens, files)
    apart = tuple(name for name in names if ANALYZERS[name].per_file)
    if len(groups) == 1 or not apart:
        yield names, tuple(files)
        return
    yield from ((apart, group) for group in groups)
    if together := tuple(name for name in names if name not in apart):
        yield together, tuple(files)


def _shares(names: tuple[str, ...], change: Change) -> Iterable[tuple[tuple[str, ...], dict[str, int]]]:
    """Which analyzers of a lens check which files. A fragment gets only analyzers that do not need whole files."""
    # For a patch that is not applied there is no tree, only the files of the patch.
    able = tuple(name for name in names if change.in_place or not ANALYZERS[name].whole_tree)
    any_text = tuple(name for name in able if ANALYZERS[name].languages is None)
    whole = {path: size for path, size in change.files.items() if path not in change.fragments}
    if not any_text:
        looks = [accepts for name in able if (accepts := ANALYZERS[name].accepts) is not None]
        root = str(change.root)
        whole = {path: size for path, size in whole.items() if any(accepts(root, path) for accepts in looks)}
    parts = {path: size for path, size in change.files.items() if path in change.fragments}
    yield from ((chosen, files) for chosen, files in ((able, whole), (any_text, parts)) if chosen and files)


def _groups(lens: Lens, files: Mapping[str, int]) -> tuple[tuple[str, ...], ...]:
    if lens not in SMALLER_GROUPS:
        return group_files(files, LARGEST_GROUP)
    split = sum(files.values()) >= LEAST_SPLIT
    return group_files(files, SMALLER_GROUPS[lens], at_least=(os.cpu_count() or 1) if split else 1)


def _ranges(change: Change, path: str) -> tuple[tuple[int, int], ...] | None:
    return None if change.changed is None else change.changed.get(path, ())


def _of(changed: Mapping[str, tuple[tuple[int, int], ...]] | None, group: Iterable[str]) -> JSON:
    if changed is None:
        return None
    return {path: [list(each) for each in changed[path]] for path in group if path in changed}
