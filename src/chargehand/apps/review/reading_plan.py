"""A change -> the tasks of the models that read it: first its intent, then a reader for each lens and group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from chargehand.apps.review.change import Change
from chargehand.apps.review.earlier_readings import EarlierReadings
from chargehand.apps.review.groups import group_files, name_group
from chargehand.apps.review.model_readers import GUIDELINES, INTENT, READERS, excerpt, is_code
from chargehand.apps.review.patch import Ranges
from chargehand.apps.review.reader_context import comments_on, context_beside, nearest_rules, removed_lines
from chargehand.values.base import JSON
from chargehand.values.plan import Task

# Characters of source for one task of a model: about 13,000 tokens, which leaves room in a window of 32,000.
LARGEST_READING = 40_000
# More groups than this are not read by models: the analyzers still see everything.
MOST_READINGS = 12
KNOWN = "earlier-readings"


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    tasks: tuple[Task, ...] = ()
    # Task -> path -> the key under which its findings about the file are stored.
    keys: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, dict[str, str]])
    # The number of files that models read in an earlier review, and of files that are too many for models.
    known: int = 0
    unread: int = 0


def plan_readings(
    change: Change, *, earlier: EarlierReadings | None = None, pr_comments: str | None = None
) -> ReadingPlan:
    """One task per reader and group of files; each sees its group and its lens, and nothing else.

    All groups of a reader come before the next reader, so that the provider then has each group in its prompt cache.
    """
    removed = removed_lines(change)
    codes = {path: excerpt(change.root, path, _seen_ranges(change, path)) for path in change.files if is_code(path)}
    codes = {path: code for path, code in codes.items() if code and path not in change.fragments}
    keys = {path: dict(_keys(change, path, code, removed, earlier)) for path, code in codes.items()} if earlier else {}
    said = earlier.recall(key for own in keys.values() for key in own.values()) if earlier else {}
    known = [path for path, own in keys.items() if own and all(key in said for key in own.values())]
    sizes = {path: len(code) + len(removed.get(path, "")) for path, code in codes.items() if path not in known}
    groups = group_files(sizes, LARGEST_READING)
    chosen, rest = groups[:MOST_READINGS], groups[MOST_READINGS:]
    tasks: list[Task] = []
    if known:
        found = [finding for path in known for key in keys[path].values() for finding in said[key]]
        tasks.append(_recall_task(change, {path: codes[path] for path in known}, removed, found))
    tasks += _readings(change, chosen, codes, removed, pr_comments)
    by_task: dict[str, dict[str, str]] = {}
    for number, group in enumerate(chosen, 1):
        for reader in READERS:
            own = {path: keys[path][reader] for path in group if reader in keys.get(path, {})}
            by_task |= {f"{reader}-{number}": own} if own else {}
    return ReadingPlan(tuple(tasks), by_task, len(known), sum(map(len, rest)))


def _readings(
    change: Change,
    groups: tuple[tuple[str, ...], ...],
    codes: Mapping[str, str],
    removed: Mapping[str, str],
    pr_comments: str | None,
) -> Iterator[Task]:
    contexts: list[dict[str, JSON]] = []
    for group in groups:
        changed = None if change.changed is None else {path: _pairs(_seen_ranges(change, path)) for path in group}
        taken = {path: removed[path] for path in group if path in removed}
        comments = comments_on(group, pr_comments)
        beside = {"removed": taken, **context_beside(change, group), "review_comments": comments}
        code = {path: codes[path] for path in group}
        contexts.append({"code": code, "changed": changed, **{name: part for name, part in beside.items() if part}})
    if change.changed is not None and contexts:
        # The same context as for the readers of the first group, so that the provider can cache it.
        yield Task(
            id=INTENT,
            worker=INTENT,
            instruction=f"Say what the change to {name_group(tuple(codes))} intends.",
            context=contexts[0],
            success_criterion="It is said what the change is for, what it changes, and what must stay as it was.",
        )
    for reader, (_, look) in READERS.items():
        for number, (group, context) in enumerate(zip(groups, contexts, strict=True), 1):
            rules = nearest_rules(change.home, group) if reader == GUIDELINES else {}
            if reader == GUIDELINES and not rules:
                continue
            yield Task(
                id=f"{reader}-{number}",
                worker=reader,
                instruction=f"{look} in {name_group(group)}. Each line of the code begins with its number.",
                context={**context, "rules": rules} if rules else context,
                success_criterion="Each finding names a file of the task, a line of it, and what goes wrong there.",
                depends_on=(INTENT,) if change.changed is not None else (),
                on_dependency_failure="proceed",
            )


def _recall_task(
    change: Change, codes: Mapping[str, str], removed: Mapping[str, str], found: list[dict[str, JSON]]
) -> Task:
    """A task with earlier findings about the same content. The code is included for the scorer."""
    changed = None if change.changed is None else {path: _pairs(_seen_ranges(change, path)) for path in codes}
    context: dict[str, JSON] = {
        "root": str(change.root),
        "files": list(codes),
        "changed": changed,
        "options": {"findings": found},
        "code": dict(codes),
        "removed": {path: removed[path] for path in codes if path in removed},
    }
    return Task(
        id=KNOWN,
        worker=KNOWN,
        instruction=f"Look up what readers said of {name_group(tuple(codes))} in an earlier review.",
        context=context,
        success_criterion="What was said of the same content is listed.",
    )


def _keys(
    change: Change, path: str, code: str, removed: Mapping[str, str], earlier: EarlierReadings
) -> Iterable[tuple[str, str]]:
    changed = None if change.changed is None else _pairs(_seen_ranges(change, path))
    rules = nearest_rules(change.home, [path])
    for reader in READERS:
        if reader == GUIDELINES and not rules:
            continue
        about: list[JSON] = [path, code, changed, removed.get(path, ""), rules if reader == GUIDELINES else None]
        yield reader, earlier.key(reader, about)


def _seen_ranges(change: Change, path: str) -> Ranges | None:
    """The written lines and the lines next to removed ones; None if whole files are read."""
    if change.changed is None:
        return None
    return tuple(sorted({*change.changed.get(path, ()), *change.beside_removed.get(path, ())}))


def _pairs(ranges: Ranges | None) -> list[list[int]]:
    return [list(each) for each in ranges or ()]
