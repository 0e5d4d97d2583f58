"""`eval`: a suite of labelled cases becomes figures for one or several candidates, and a gate against a baseline."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chargehand.cli.shared_options import Command, screen

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from chargehand.cli.screen import Screen
    from chargehand.evaluation import BaselineVerdict, Candidate, Evaluation, Result, Suite

MOST_LISTED = 20
PARTIAL, FAILED, USAGE, INTERRUPTED = 3, 1, 2, 130
SCRIPTED = "scripted:"


@click.command(cls=Command)
@click.argument("suite", metavar="SUITE")
@click.option("--model", "models", multiple=True, metavar="MODEL", help="provider:name; several are compared.")
@click.option("--team", "teams", multiple=True, metavar="TEAM", help="Try these teams. [default: the team of SUITE]")
@click.option(
    "--judge",
    "scorer",
    metavar="MODEL",
    help="The scorer: the model that checks answers against rubrics. [default: each candidate's own model]",
)
@click.option("--repeat", type=click.IntRange(1, 100), default=1, show_default=True, help="How often to try each case.")
@click.option("--jobs", type=click.IntRange(1, 64), default=4, show_default=True, help="How many cases at once.")
@click.option("--baseline", metavar="FILE", help="The output of an earlier --json: exit 1 if anything got worse.")
@click.option(
    "--single/--no-single",
    default=None,
    help="Compare with one plain call of the same model on whole runs. [default: unless the model is scripted]",
)
@click.option(
    "--fail-under",
    type=click.FloatRange(0, 1),
    metavar="X",
    help="Exit 1 if a candidate passes less than this share of the cases, such as 0.9.",
)
@click.option("--fresh", is_flag=True, help="Measure everything again and drop earlier results.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a page with plots to FILE, or the JSON document if it ends in .json.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON document.")
def eval(
    suite: str,
    models: tuple[str, ...],
    teams: tuple[str, ...],
    scorer: str | None,
    repeat: int,
    jobs: int,
    baseline: str | None,
    single: bool | None,
    fail_under: float | None,
    fresh: bool,
    output: Path | None,
    as_json: bool,
) -> int:
    """Measure how well teams and models do on SUITE: a .jsonl file of cases, a team folder or a shipped team.

    Results are stored one by one: after a stop, the same command measures only what is missing. Exit code 0: everything
    was measured, whether or not it passed. 1: something got worse than --baseline, a candidate passed less than
    --fail-under, or no case could be tried. 3: some cases could not be tried.
    """
    import asyncio

    from chargehand.cli.screen import check_writable
    from chargehand.evaluation import (
        SuiteInfo,
        against,
        check_candidates,
        items,
        known_results,
        measure,
        store_of,
        summarise,
    )

    check_writable(output)
    out = screen()
    saved = _read_baseline(baseline) if baseline is not None else None
    read, candidates = _prepare(suite, models, teams, scorer, out)
    candidates += _plain_calls(read, candidates, single, repeat, out)
    asyncio.run(check_candidates(candidates))
    wanted = items(read, candidates, repeat)
    store = store_of(read, Path(candidates[0].settings.home))
    if fresh:
        store.drop({item.key for item in wanted})
    known = known_results(wanted, store)
    if kept := sum(item.key in known for item in wanted):
        out.say(f"{kept} of {len(wanted)} results are known from before; --fresh measures them again.")
    progress = _Progress(out, kept, len(wanted))
    try:
        results = asyncio.run(measure(wanted, store, progress.on_result, jobs))
    except KeyboardInterrupt:
        out.complain(
            f"Interrupted with {progress.done} of {len(wanted)} results: the same command continues from there."
        )
        return INTERRUPTED
    evaluation = summarise(
        SuiteInfo(name=read.name, hash=read.hash, cases=len(read.cases)),
        repeat,
        [(each.name, each.team.name, each.model) for each in candidates],
        results,
        plain=[each.name for each in candidates if each.is_plain],
    )
    verdict = None if saved is None else against(evaluation, saved)
    _deliver(evaluation, verdict, out, output, as_json=as_json)
    code = _exit_code(evaluation, verdict, out)
    return _held_to(evaluation, fail_under, out) or code if fail_under is not None and code in (0, PARTIAL) else code


def _prepare(
    suite: str, models: Sequence[str], teams: Sequence[str], scorer: str | None, out: Screen
) -> tuple[Suite, list[Candidate]]:
    """The suite, and every team with every model."""
    from chargehand.evaluation import files_of, read_suite

    path, team = _locate_suite(suite)
    found = [_candidate(ref, model, scorer) for ref in teams or [team] for model in models or [None]]
    for warning in dict.fromkeys(line for _, lines in found for line in lines):
        out.say(f"warning: {warning}")
    # A team or a model may be given twice, written differently.
    candidates = _name_candidates([*{(each.team_ref, each.model): each for each, _ in found}.values()])
    _report_equal(candidates, out)
    tried = {each.team_ref: each.team for each in candidates}
    folder = path if path.is_dir() else path.parent.parent if path.parent.name == "evals" else None
    return read_suite(suite, files_of(path), tried, folder), candidates


def _plain_calls(
    suite: Suite, candidates: Sequence[Candidate], single: bool | None, repeat: int, out: Screen
) -> list[Candidate]:
    """One plain call for each model, if wanted and if there are cases for it. The number of answers is said first."""
    from chargehand.evaluation import plain_calls, suits_plain_call
    from chargehand.trace.number_text import several

    wanted = [each for each in candidates if (not each.is_scripted if single is None else single)]
    cases = sum(map(suits_plain_call, suite.cases))
    if not wanted or not cases:
        if single:
            out.say("warning: no case for one plain call: it needs a whole run with `contains`, `lacks` or `rubric`.")
        return []
    found = plain_calls(wanted)
    answers = several(cases * repeat * len(found), "answer")
    out.say(
        f"For comparison, whole runs are also asked in one plain call each ({answers}); --no-single leaves that out."
    )
    return found


def _locate_suite(suite: str) -> tuple[Path, str | None]:
    """The path of the suite, and its team; None for the team in the settings."""
    from chargehand.errors import UsageError
    from chargehand.settings.toml_file import suggestion
    from chargehand.team import shipped_teams
    from chargehand.team.team_tools import shipped_home

    path = Path(os.path.expanduser(suite))  # the path of an unknown user stays as it is
    # Unlike the methods of Path, these return False for a name that is too long or has a zero byte.
    if os.path.isfile(path):
        owner = path.absolute().parent.parent
        owned = path.absolute().parent.name == "evals" and (owner / "team.toml").is_file()
        return path, str(owner) if owned else None
    # As with --team, a shipped team has priority over a folder with the same name.
    names = shipped_teams()
    if suite in names:
        return shipped_home() / suite, suite
    if os.path.isdir(path):
        return path, str(path)
    raise UsageError(
        f"There is no suite {suite!r}: name a .jsonl file, a team folder or a team.{suggestion(suite, names)}"
    )


def _candidate(team_ref: str | None, model: str | None, scorer: str | None) -> tuple[Candidate, list[str]]:
    from chargehand.cli.make_supervisor import make_supervisor
    from chargehand.evaluation import Candidate
    from chargehand.settings import OF_TEAM, found_from

    supervisor = make_supervisor(team_ref, {"model": model})
    if scorer is not None:
        scorer = f"{OF_TEAM}:{supervisor.script()}" if scorer == OF_TEAM else found_from(scorer, Path.cwd())
    team, ref = supervisor.team, supervisor.team_ref or ""
    return Candidate(team.name, team, ref, supervisor.team_settings(), scorer), [
        *supervisor.warnings,
        *(problem.message for problem in team.problems() if problem.code == "tool_not_offered"),
    ]


def _name_candidates(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Each candidate, named after what differs between them. The names are the same on every machine."""
    from dataclasses import replace

    teams = {each.team_ref: each.team.name for each in candidates}
    by_team, by_model = len(teams) > 1, len(candidates) > len(teams)
    if len(set(teams.values())) < len(teams):
        teams = _path_ends(teams)
    scripts = _path_ends({each.model for each in candidates if each.model and each.model.startswith(SCRIPTED)})
    named: list[Candidate] = []
    for each in candidates:
        model = each.model or "configured models"
        model = f"{SCRIPTED}{scripts[model]}" if model in scripts else model
        parts = [teams[each.team_ref]] if by_team or not by_model else []
        parts += [model] if by_model or not by_team else []
        named.append(replace(each, name=" · ".join(parts)))
    return named


def _path_ends(paths: Collection[str]) -> dict[str, str]:
    """Each path with its end that tells it from the others: its last part, or more parts where the last are equal."""
    parts, count = {path: Path(path.removeprefix(SCRIPTED)).parts for path in paths}, 1
    while len({each[-count:] for each in parts.values()}) < len(set(parts.values())):
        count += 1
    return {path: str(Path(*each[-count:])) for path, each in parts.items()}


def _report_equal(candidates: Sequence[Candidate], out: Screen) -> None:
    """A line for each candidate that cannot differ from an earlier one."""
    known: dict[str, str] = {}
    for each in candidates:
        if (first := known.setdefault(each.fingerprint, each.name)) != each.name:
            out.say(f"warning: {each.name} is equal to {first}: each case is measured once, for both.")


def _read_baseline(path: str) -> Evaluation:
    from pydantic_core import ValidationError

    from chargehand.cli.read_inputs import read_json
    from chargehand.errors import UsageError
    from chargehand.evaluation import Evaluation

    try:
        return Evaluation.model_validate(read_json(path, "a baseline"))
    except ValidationError:
        raise UsageError(f"{path} is not a baseline: make one with `chargehand eval SUITE --json > FILE`.") from None


class _Progress:
    """A line on stderr for every result."""

    def __init__(self, out: Screen, done: int, total: int) -> None:
        self._out, self.done, self._total = out, done, total

    def on_result(self, result: Result) -> None:
        self.done += 1
        word = "error" if result.error else "passed" if result.passed else "FAILED"
        why = f": {result.error.kind}" if result.error else ""
        self._out.say(
            f"[{self.done}/{self._total}] {word}{why}  {result.case}  {result.candidate}  {result.seconds:.1f} s"
        )


def _deliver(
    evaluation: Evaluation, verdict: BaselineVerdict | None, out: Screen, output: Path | None, *, as_json: bool
) -> None:
    from chargehand.cli.screen import write, write_file

    data: dict[str, Any] = out.redactor.json(evaluation.to_json())
    if verdict is not None:
        data["baseline"] = out.redactor.json(verdict.to_json())
    if output is not None:
        write_file(output, out.as_document(data) if output.suffix == ".json" else _page(data))
        out.say_file("Written to ", output, ".")
    if as_json:
        write(out.as_document(data))
    else:
        _table(evaluation, out)


def _page(data: dict[str, Any]) -> str:
    """The HTML page for a document without secrets."""
    from chargehand.evaluation import BaselineVerdict, Evaluation
    from chargehand.evaluation.evaluation_page import to_html

    evaluation = Evaluation.model_validate({name: value for name, value in data.items() if name != "baseline"})
    return to_html(evaluation, BaselineVerdict.model_validate(data["baseline"]) if "baseline" in data else None)


def _table(evaluation: Evaluation, out: Screen) -> None:
    from chargehand.evaluation.case import KINDS
    from chargehand.evaluation.plots import span

    kinds = [{each.kind: each for each in candidate.kinds} for candidate in evaluation.candidates]
    rows: list[tuple[str, ...]] = []
    for kind in KINDS:
        found = [of[kind].to_show if kind in of else {} for of in kinds]
        for name in dict.fromkeys(name for metrics in found for name in metrics):
            figures = [span(metrics[name].estimate) if name in metrics else "-" for metrics in found]
            rows.append((kind, name.replace("_", " "), *figures))
    out.table(("kind", "mean (95 % interval)", *(candidate.name for candidate in evaluation.candidates)), rows)
    for each in (each for each in evaluation.comparisons if each.clear):
        out.put(f"{each.second} against {each.first}: {each.kind} {each.metric} differs by {span(each.difference)}")
    wrong = [result for result in evaluation.results if not result.passed and result.error is None]
    for result in wrong[:MOST_LISTED]:
        why = "; ".join(f"{check.name}: {check.said}".rstrip(": ") for check in result.checks if not check.passed)
        which = f" (repeat {result.repeat})" if evaluation.repeat > 1 else ""
        out.put(f"{result.file}:{result.line}: {result.case} failed with {result.candidate}{which}: {why}")
    if len(wrong) > MOST_LISTED:
        out.put(f"and {len(wrong) - MOST_LISTED:,} more; -o FILE.html shows all.")
    for candidate in evaluation.candidates:
        out.put(f"{candidate.name}: {evaluation.verdict_of(candidate.name)}")


def _held_to(evaluation: Evaluation, least: float, out: Screen) -> int:
    """1 if a team passed less than this share of its cases. A case that could not be tried counts as not passed."""
    failed = 0
    for candidate in (each for each in evaluation.candidates if not each.is_plain):
        verdict = evaluation.verdict_of(candidate.name)
        if verdict.passed < least * verdict.results:
            failed = FAILED
            share = f"{verdict} ({verdict.passed / verdict.results:.2f})"
            out.complain(f"{candidate.name}: {share}, less than --fail-under {least:g}.")
    return failed


def _exit_code(evaluation: Evaluation, verdict: BaselineVerdict | None, out: Screen) -> int:
    from chargehand.trace.number_text import several, short

    errors = evaluation.errors
    for kind in dict.fromkeys(result.error.kind for result in errors if result.error):
        those = [result.error for result in errors if result.error and result.error.kind == kind]
        out.complain(
            f"{len(those)} of {len(evaluation.results)} could not be tried, {kind}: {short(those[0].message, 300)}"
        )
    if verdict is not None:
        for each in verdict.regressions:
            out.complain(f"regression: {each.candidate}: {each.message}")
        for each in verdict.unclear:
            out.complain(f"too few cases with a rubric to compare: {each.candidate}: {each.message}")
        for name in verdict.unknown:
            out.complain(f"{name} is not in the baseline: it was not compared.")
        if verdict.regressions:
            return FAILED
        if not verdict.compared:
            out.complain("Nothing was compared: the baseline has none of these cases.")
            return USAGE
        out.say(f"No regression in {several(verdict.compared, 'comparison')} of cases.")
    if any(result.error is not None and result.error.kind == "auth" for result in errors):
        return USAGE
    return (FAILED if len(errors) == len(evaluation.results) else PARTIAL) if errors else 0
