"""`await run(path)`: a folder, a revision or a patch becomes a run of the review team, and its findings a Review."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Unpack, cast

from chargehand.apps.app_port import Notify, StartRun, Watch
from chargehand.apps.consent import make_supervisor
from chargehand.apps.review.analyzers import run_analysis
from chargehand.apps.review.analyzers.versions import INSTALL, installation
from chargehand.apps.review.change import Change, read_tree
from chargehand.apps.review.choices import MIN_CONFIDENCE, SEVERITIES
from chargehand.apps.review.formats import Review
from chargehand.apps.review.from_git import read_diff, read_hooked
from chargehand.apps.review.from_patch import read_patch
from chargehand.apps.review.languages import count_unanalysed
from chargehand.apps.review.model_readers import READERS
from chargehand.apps.review.reading_plan import ReadingPlan, plan_readings
from chargehand.apps.review.review_plan import make_review_plan, subject, unreviewed_gaps
from chargehand.apps.review.review_report import nothing, view
from chargehand.apps.review.selection import Selection, select
from chargehand.apps.review.source_lines import SourceLines
from chargehand.apps.review.stored_options import ReviewOptions, stored_change
from chargehand.errors import AnalyzerFailed, PlanningFailed, RecordGone, UsageError
from chargehand.models import ModelClient
from chargehand.record.cache import Cache
from chargehand.runs.check_arguments import NOTIFY, RULES, WATCH, check_arguments
from chargehand.runs.supervisor import Supervisor
from chargehand.settings import Settings
from chargehand.text.redaction import Redactor
from chargehand.values.argument_rules import flag, number, one_of, optional, text
from chargehand.values.argument_rules import path as path_rule
from chargehand.values.base import JSON
from chargehand.values.outcome import Severity
from chargehand.values.plan import Plan
from chargehand.values.report import Report
from chargehand.values.request import AppRun
from chargehand.values.status_words import FINISHED

NAME = "review"
# Longer comments are cut, because they are recorded in full.
MOST_COMMENTS = 500_000

_RULES = {
    **{name: RULES[name] for name in ("model", "home", "settings")},
    "path": path_rule,
    "diff": optional(text),
    "patch": optional(text),
    "patch_name": text,
    "staged": flag,
    "min_confidence": number("a number from 0 to 100", least=0, most=100),
    "all": flag,
    "fail_on": optional(one_of(SEVERITIES)),
    "baseline": optional(path_rule),
    "pr_comments": optional(text),
    "preview": flag,
    "notify": NOTIFY,
    **WATCH,
}


async def run(
    path: str | Path = ".",
    *,
    diff: str | None = None,
    patch: str | None = None,
    patch_name: str = "the patch",
    staged: bool = False,
    min_confidence: int = MIN_CONFIDENCE,
    all: bool = False,
    fail_on: Severity | None = None,
    baseline: str | Path | None = None,
    pr_comments: str | None = None,
    model: str | ModelClient | None = None,
    home: str | Path | None = None,
    settings: Settings | None = None,
    preview: bool = False,
    notify: Notify | None = None,
    **watch: Unpack[Watch],
) -> Review:
    """Review the files under `path`, what changed since the revision `diff`, a unified diff, or what is `staged`.

    `patch` and `pr_comments` are texts, `baseline` is the file of an earlier review. A finding as severe as `fail_on`,
    or more, sets `Review.failed_gate`; `chargehand resume` then exits with 1. Without `model`, CHARGEHAND_MODEL or a
    model in a settings file, no model is used. `notify` gets what the models will cost, before they are asked; with
    `preview` that is all: `Review.nothing` has it. `watch` are the callbacks of `Supervisor.run`.
    """
    check_arguments({**locals(), **watch}, _RULES)
    check_one_change(diff=diff, patch=patch, staged=staged)
    door = make_supervisor(NAME, model, home, settings)
    has_model = door.settings.has_model
    # In a thread: it calls git and reads thousands of files.
    change = await asyncio.to_thread(
        _read_change, Path(path), diff, patch, patch_name, Path(door.settings.home), staged=staged
    )
    known = _known_findings(baseline)
    await _check_tools(Cache(_cache_of(door)))
    if (why := change.nothing) is not None:
        source = SourceLines(change.root)
        return Review(nothing(change, why), Selection((), ()), change, source, nothing=why, fail_on=fail_on)
    comments = pr_comments[:MOST_COMMENTS] if pr_comments else None
    readings = await asyncio.to_thread(_plan_readings, door, change, comments) if has_model else ReadingPlan()
    trusted = change.in_place and door.trust.is_trusted(change.home)
    make_plan = partial(make_review_plan, change, model=has_model, trusted=trusted)
    plan = await asyncio.to_thread(make_plan, pr_comments=comments, readings=readings)
    if preview or (notify is not None and has_model):
        from chargehand.apps.review.cost_preview import preview_cost

        said = preview_cost(plan, door, readings)
        if preview:
            return Review(nothing(change, said), Selection((), ()), change, SourceLines(change.root), nothing=said)
        if notify is not None:
            notify(said)
    options = ReviewOptions(
        min_confidence=min_confidence,
        baseline=tuple(sorted(known)),
        all=all,
        fail_on=fail_on,
        written=has_model,
        cache=str(_cache_of(door)) if readings.keys else "",
        reading_keys={task: dict(own) for task, own in readings.keys.items()},
        known=readings.known,
        unread=readings.unread,
        trusted=trusted,
        **stored_change(change),
    )
    start = partial(
        door.run,
        plan.goal,
        plan=plan,
        # If models read nothing new, a planner has nothing to add.
        subject=subject(plan, change, comments) if any(task.worker in READERS for task in plan.tasks) else None,
        gaps=unreviewed_gaps(change),
        app=AppRun(name=NAME, options=options.to_json()),
    )
    return await ReviewApp(options, change).follow(start, **watch)


def _known_findings(baseline: str | Path | None) -> frozenset[str]:
    if baseline is None:
        return frozenset()
    from chargehand.apps.review.known_findings import read_baseline

    return read_baseline(str(baseline))


def _plan_readings(door: Supervisor, change: Change, pr_comments: str | None) -> ReadingPlan:
    from chargehand.apps.review.earlier_readings import EarlierReadings

    prompts = {reader: door.team.worker(reader).prompt for reader in READERS}
    earlier = EarlierReadings(_cache_of(door), door.team_settings().models_key, prompts)
    return plan_readings(change, earlier=earlier, pr_comments=pr_comments)


def _cache_of(door: Supervisor) -> Path:
    return Path(door.settings.home) / "cache"


def check_one_change(*, diff: str | None, patch: str | None, staged: bool, dashes: str = "") -> None:
    """Raises UsageError if more than one change is given; `patch` may be a text or the name of a file."""
    changes = {"diff": diff is not None, "patch": patch is not None, "staged": staged}
    given = [f"{dashes}{name}" for name, is_given in changes.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} exclude each other: give one of them.")


async def plan_review(
    path: str | Path = ".", *, model: str | ModelClient | None = None, notify: Notify | None = None
) -> Plan:
    """The plan of a review of a folder, with the tasks that a planner adds; `notify` is called if it adds none."""
    door = make_supervisor(NAME, model)
    change = await asyncio.to_thread(read_tree, Path(path))
    if (why := change.nothing) is not None:
        raise UsageError(why)
    plan = await asyncio.to_thread(make_review_plan, change, model=door.settings.has_model)
    if not door.settings.has_model:
        return plan
    try:
        return await door.plan(plan.goal, plan=plan, subject=subject(plan, change))
    except PlanningFailed as error:
        if notify is not None:
            notify(f"No tasks were added to the plan. {error}")
        return plan


def recall(options: JSON) -> ReviewApp:
    """The app with the options in the record of a review."""
    return ReviewApp(ReviewOptions.model_validate(options))


@dataclass(frozen=True, slots=True)
class ReviewApp:
    """A review that began: its options, and the change if it is fully known."""

    options: ReviewOptions
    change: Change | None = None

    async def follow(self, start: StartRun, **watch: Any) -> Review:
        """The run with its selected findings. A run that has not ended has none yet."""
        try:
            report = await start(**watch)
        except RecordGone as error:
            if isinstance(error.report, Report):
                error.report = await asyncio.to_thread(self._review, cast("Report", error.report))
            raise
        return await asyncio.to_thread(self._review, report)

    def show(self, report: Report, *, brief: bool = False) -> Report:
        """The report as `review` showed it, although the files may have changed since."""
        return self._review(report, later=True, brief=brief).report

    def _review(self, report: Report, *, later: bool = False, brief: bool = False) -> Review:
        change, kept = self.change or self.options.change(), self.options
        source = SourceLines(change.root, Redactor.from_env(os.environ).text)
        if report.status not in FINISHED:
            return Review(report, Selection((), ()), change, source, fail_on=kept.fail_on)
        least, known = kept.min_confidence, frozenset(kept.baseline)
        if kept.reading_keys and not later:
            from chargehand.apps.review.earlier_readings import keep_readings

            keep_readings(Path(kept.cache), report.outcomes, kept.reading_keys)
        selection = select(
            report.findings,
            change,
            source,
            min_confidence=least,
            baseline=known,
            later=later,
            small=kept.fail_on == "info",
            all=kept.all,
        )
        counts = count_unanalysed(change.files, change.root, trusted=kept.trusted)
        shown = view(
            report,
            selection,
            change,
            source,
            counts,
            all=kept.all,
            written=kept.written,
            brief=brief,
            unread=kept.unread,
            known=kept.known,
        )
        return Review(shown, selection, change, source, kept.all, counts, kept.written, fail_on=kept.fail_on)


def _read_change(
    path: Path, base: str | None, patch: str | None, patch_name: str, home: Path, *, staged: bool
) -> Change:
    if staged:
        return read_hooked(path, home / "cache" / "staged", os.environ)
    if base is not None:
        return read_diff(path, base)
    if patch is not None:
        return read_patch(path, patch, patch_name, home / "cache" / "patches")
    return read_tree(path)


async def _check_tools(cache: Cache) -> None:
    """Refuse a review without the most important tools: each tool is tried once in the way it will run."""
    states = {tool: installation(tool) for tool in ("ruff", "bandit")}
    keys = {tool: f"works {state}" for tool, state in states.items() if state is not None}
    known = await asyncio.to_thread(cache.get, keys.values())
    untried = [tool for tool in states if keys.get(tool) not in known]
    if not untried:
        return
    from chargehand.apps.review.analyzers import ruff

    trials = {tool: ruff.try_out() if tool == "ruff" else run_analysis.try_out(tool) for tool in untried}
    faults: list[str] = []
    for tool, fault in zip(trials, await asyncio.gather(*trials.values(), return_exceptions=True), strict=True):
        if isinstance(fault, AnalyzerFailed):
            faults.append(f"{tool} ({str(fault).removesuffix(f': {INSTALL}').rstrip('.')})")
        elif fault is not None:
            raise fault
    if faults:
        raise UsageError(f"review cannot run {' and '.join(faults)}. Install what it needs: {INSTALL}")
    await asyncio.to_thread(cache.put, {keys[tool]: b"" for tool in untried if tool in keys})
