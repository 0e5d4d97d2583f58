"""A finished run becomes its answer in Markdown: what was written, suspected bugs, coverage, and what was left out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chargehand.apps.testgen.generators import source_of
from chargehand.trace.number_text import several
from chargehand.values.outcome import Finding, Outcome
from chargehand.values.report import Report

_MOST_LISTED = 100


def files_of(report: Report) -> dict[str, str]:
    """The files to offer, by name: those that were verified and that pytest can collect with the existing tests."""
    return dict(source for each in _made_files(report) if (source := source_of(each)) is not None)


def answer(report: Report, written: Mapping[str, Path], conftest: Path | None = None, *, brief: bool = False) -> str:
    """`written` says where each file was written, `conftest` where the file is that lets them find the code.

    `brief`: suspected bugs are listed outside the answer.
    """
    parts = [
        _written_part(report, written, conftest),
        "" if brief else _bugs(report.findings, _where(report)),
        _coverage(report.outcomes),
        _left_out(report.outcomes),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _made_files(report: Report) -> list[dict[str, Any]]:
    refused: dict[str, str] = _last(report.outcomes).get("coverage", {}).get("refused", {})
    made = [outcome.output for outcome in report.outcomes if outcome.worker == "verifier" and outcome.ok]
    return [each for each in made if source_of(each) and each["file"] not in refused]


def _written_part(report: Report, written: Mapping[str, Path], conftest: Path | None) -> str:
    made = _made_files(report)
    if not made:
        return "# No tests were written"
    lines = [
        f"- `{written[each['file']]}`: {several(each['tests'], 'test')} of `{each['module']}`{_worth(each)}"
        for each in made
    ]
    if conftest is not None:
        lines.append(f"- `{conftest}`: lets them find the code")
    count = sum(each["tests"] for each in made)
    head = f"# {several(count, 'test')} in {several(len(made), 'file')}, each run three times"
    settings = _last(report.outcomes).get("settings")
    parts = [head, "\n".join(lines), _how_to_run(report, written[made[0]["file"]].parent), settings]
    return "\n\n".join(part for part in parts if part)


def _how_to_run(report: Report, folder: Path) -> str:
    """A command for tests that do not find the code by themselves; empty if they do."""
    needs: list[str] = _last(report.outcomes).get("needs", [])
    project = _project(report)
    if not needs or project is None:
        return ""
    path = ":".join(_from_here(project[0] / each) for each in needs)
    command = f"PYTHONPATH={shlex.quote(path)} python -m pytest {shlex.quote(_from_here(folder))}"
    return f"They do not find the code by themselves. Install the project, or run them with:\n\n```sh\n{command}\n```"


def _worth(made: dict[str, Any]) -> str:
    """How many small changes of the code the tests of a module notice; a run of an older version did not try any."""
    scores: list[list[int]] = list(made.get("mutants", {}).values())
    told, tried = (sum(score[at] for score in scores) for at in (0, 1))
    verb = "notices" if made["tests"] == 1 else "notice"
    return f", which {verb} {told} of {several(tried, 'small change')} to the code" if tried else ""


def _where(report: Report) -> str:
    """The beginning of a command that runs in the project and finds its modules; empty if nothing is needed."""
    project = _project(report)
    if project is None:
        return ""
    root, paths = project
    roots = [path for path in paths if path not in ("", ".")]
    path = f"PYTHONPATH={shlex.quote(':'.join(roots))} " if roots else ""
    return path if root == Path.cwd() else f"cd {shlex.quote(_from_here(root))} && {path}"


def _project(report: Report) -> tuple[Path, list[str]] | None:
    """The root of the project, and the folders in it that modules are imported from; None for a run without a plan."""
    contexts = [task.context for task in report.plan.tasks if task.worker == "surveyor"] if report.plan else []
    return (Path(contexts[0]["root"]), contexts[0]["options"]["paths"]) if contexts else None


def _from_here(path: Path) -> str:
    """The path as seen from the current folder, if it is inside of it."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _bugs(findings: Sequence[Finding], where: str) -> str:
    if not findings:
        return ""
    ordered = sorted(findings, key=lambda each: (-(each.confidence or 0), each.path or "", each.line or 0))
    lines = [_bug(each, where) for each in ordered]
    return "## Suspected bugs\n\n" + _limit_list(lines)


def _bug(finding: Finding, where: str) -> str:
    """One line, and below it the command that reproduces it, if there is one, as a block that is not wrapped."""
    message = finding.message.rstrip(".")
    line = f"- `{finding.path}:{finding.line}`: {message} (confidence {finding.confidence})"
    _, mark, shown = (finding.suggestion or "").partition("\nReproduce: ")
    return f"{line}. Reproduce it:\n\n```sh\n{where}{shown}\n```\n" if mark else line


def _coverage(outcomes: Sequence[Outcome]) -> str:
    found = _last(outcomes).get("coverage")
    if not found:
        return ""
    note = f" {found['note']}" if found["note"] else ""
    return (
        f"## Coverage\n\n{found['before']:g} % -> {found['after']:g} % of {found['statements']:,} statements "
        f"(before -> after).{note}"
    )


def _left_out(outcomes: Sequence[Outcome]) -> str:
    """Functions without tests, each with the reason: never run, or tried without a result."""
    skipped = (
        [f"- `{each['name']}` ({each['path']}:{each['line']}): {each['why']}" for each in _last(outcomes)["skipped"]]
        if (_last(outcomes))
        else []
    )
    tried = [
        f"- `{outcome.output['target']}`: {outcome.output['why']}"
        for outcome in outcomes
        if outcome.worker == "ghostwriter" and outcome.ok and outcome.output["why"]
    ]
    unusable = [
        f"- `{name}`: {why}"
        for outcome in outcomes
        if outcome.worker == "verifier" and outcome.ok
        for name, why in outcome.output["unusable"].items()
    ]
    refused = _last(outcomes).get("coverage", {}).get("refused", {})
    unusable += [f"- `{name}` was not offered: {why}" for name, why in refused.items()]
    failed = [f"- {outcome.task}: {outcome.summary}" for outcome in outcomes if not outcome.ok]
    lines = [*tried, *unusable, *failed, *skipped]
    return "## Without new tests\n\n" + _limit_list(lines) if lines else ""


def _last(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    found = [outcome.output for outcome in outcomes if outcome.worker == "surveyor" and outcome.ok]
    return found[0] if found else {}


def _limit_list(lines: Sequence[str]) -> str:
    more = [f"- and {len(lines) - _MOST_LISTED} more"] if len(lines) > _MOST_LISTED else []
    return "\n".join([*lines[:_MOST_LISTED], *more])
