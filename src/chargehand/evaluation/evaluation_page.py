"""An evaluation -> one self-contained page with plots: no script, no external resources."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

from chargehand.evaluation import plots
from chargehand.evaluation.baseline import BaselineVerdict, Regression
from chargehand.evaluation.case import KINDS, Kind
from chargehand.evaluation.plots import Bar, Point, number, span
from chargehand.evaluation.result import Result
from chargehand.evaluation.summary import Evaluation, KindSummary, is_pass
from chargehand.text.escaping import show_controls
from chargehand.trace.elements import folded_section, more, quiet, section, table
from chargehand.trace.number_text import duration, money, several, short

MOST_RESULTS = 2_000
TITLES: dict[Kind, str] = {
    "routing": "Routing",
    "plan": "Plans",
    "worker": "Workers",
    "synthesis": "Synthesis",
    "run": "Whole runs",
}
# Shares between 0 and 1, drawn as intervals; every other figure is in the table.
_SHARES = (
    "accuracy",
    "passed",
    "score",
    "validity",
    "graph_f1",
    "node_f1",
    "edge_f1",
    "parallelism_kept",
    "complete",
    "tasks_done",
)

# The meaning of figures whose name is not enough.
_MEANINGS = {
    "accuracy": "cases in which the right worker was chosen",
    "by_rule": "cases that a rule decided, without a model",
    "unreadable": "answers of the router that could not be read",
    "extra_worker": "cases with a second worker that nobody asked for",
    "passed": "cases in which every check was met",
    "score": "checks that were met",
    "validity": "plans without an error",
    "graph_f1": "how much the plan is like the reference, 1 is the same",
    "node_f1": "the same for tasks alone",
    "edge_f1": "the same for dependencies alone",
    "parallelism": "tasks for each step of the longest chain",
    "parallelism_kept": "of the parallelism of the reference",
    "complete": "runs that ended complete",
    "tasks_done": "tasks that were done",
    "tokens": "for each case",
    "usd": "dollars for each case",
    "seconds": "for each case, with what it takes to begin and to end it",
    "wall_seconds": "from start to end of a run",
    "speedup": "times as fast as one task after the other",
}


def to_html(evaluation: Evaluation, verdict: BaselineVerdict | None = None) -> str:
    """The page. It shows the evaluation unchanged: remove secrets first."""
    style = _asset("chargehand.trace.page", "style.css") + "\n" + _asset("chargehand.evaluation", "plots.css")
    policy = f"default-src 'none'; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    name = escape(short(evaluation.suite.name, 120))
    parts = [
        _verdict(verdict),
        _failed_cases(evaluation),
        *_kinds(evaluation),
        _comparisons(evaluation),
        _passed_cases(evaluation),
    ]
    return show_controls(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{name} · evaluation · chargehand</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<header><p class="eyebrow"><span class="brand">chargehand</span> <span class="pill">evaluation</span></p>'
        f'<h1>{name}</h1><p class="facts">{_facts(evaluation)}</p><p>{_key(evaluation)}</p></header>\n<main>\n'
        f'<dl class="figures">{_cards(evaluation)}</dl>\n' + "\n".join(part for part in parts if part) + "\n</main>\n"
        "<footer>Intervals are 95 %, over cases. Nothing is loaded from elsewhere.</footer>\n"
        "</body>\n</html>\n"
    )


def _facts(evaluation: Evaluation) -> str:
    facts = [several(evaluation.suite.cases, "case"), several(len(evaluation.candidates), "candidate")]
    facts += [f"{evaluation.repeat} times each"] if evaluation.repeat > 1 else []
    facts.append(f"suite {evaluation.suite.hash}")
    return " <span>·</span> ".join(escape(fact) for fact in facts)


def _key(evaluation: Evaluation) -> str:
    return "".join(
        f'<span class="key c{series % plots.SHAPES}"><svg viewBox="0 0 16 16" aria-hidden="true">'
        f"{plots.mark(series, 8, 8)}</svg>{escape(candidate.name)}</span>"
        for series, candidate in enumerate(evaluation.candidates)
    )


def _cards(evaluation: Evaluation) -> str:
    cards: list[tuple[str, str, str]] = []
    for candidate in evaluation.candidates:
        results = [result for result in evaluation.results if result.candidate == candidate.name]
        passed, _, rest = str(evaluation.verdict_of(candidate.name)).partition(", ")
        cards.append((short(candidate.name, 40), passed, ", ".join(filter(None, (rest, _cost(results))))))
    return "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(figure)}<small>{escape(beside)}</small></dd></div>"
        for name, figure, beside in cards
    )


def _cost(results: Sequence[Result]) -> str:
    tokens = sum(result.usage.tokens for result in results)
    known = [result.usage.usd for result in results if result.usage.usd is not None]
    return f"{tokens:,} tokens, {money(sum(known)) if len(known) == len(results) else 'cost unknown'}"


def _verdict(verdict: BaselineVerdict | None) -> str:
    if verdict is None:
        return ""
    unclear = (
        f"<p>Too few cases with a rubric to decide:</p>{_list_regressions(verdict.unclear)}" if verdict.unclear else ""
    )
    if not verdict.regressions:
        said = f"<p>No regression in {several(verdict.compared, 'comparison')} of cases.</p>"
        return section("Baseline", said + unclear)
    return section("Regressions against the baseline", _list_regressions(verdict.regressions) + unclear, "alert")


def _list_regressions(regressions: Sequence[Regression]) -> str:
    items = (f"<li><strong>{escape(each.candidate)}</strong> {escape(each.message)}</li>" for each in regressions)
    return f"<ul>{''.join(items)}</ul>"


def _kinds(evaluation: Evaluation) -> Iterator[str]:
    for kind in KINDS:
        found = [
            (series, candidate.name, summary)
            for series, candidate in enumerate(evaluation.candidates)
            for summary in candidate.kinds
            if summary.kind == kind
        ]
        if found:
            yield section(TITLES[kind], _plots(kind, found) + _figures(found))


def _plots(kind: Kind, found: Sequence[tuple[int, str, KindSummary]]) -> str:
    groups = [
        (
            name.replace("_", " "),
            [Bar(who, series, each.to_show[name].estimate) for series, who, each in found if name in each.to_show],
        )
        for name in _SHARES
    ]
    drawn = plots.intervals([group for group in groups if group[1]], f"{TITLES[kind]}: means with their intervals")
    for _, who, summary in found:
        if summary.confusion is not None:
            drawn += f"<h3>Expected (rows) and chosen (columns): {escape(who)}</h3>"
            drawn += f'<div class="scroll">{plots.confusion(summary.confusion, f"Confusion matrix of {who}")}</div>'
    return drawn + _scatter(found)


def _scatter(found: Sequence[tuple[int, str, KindSummary]]) -> str:
    """Quality and cost, if there are at least two candidates."""
    if len(found) < 2:
        return ""
    spending = [summary.metrics["usd"].estimate.mean for _, _, summary in found if "usd" in summary.metrics]
    priced = len(spending) == len(found) and any(spending)
    cost, unit = ("usd", "dollars a case") if priced else ("tokens", "tokens a case")
    points: list[Point] = []
    for series, who, summary in found:
        first = next(iter(summary.metrics.values()), None)
        if first is not None and cost in summary.metrics:
            spent = summary.metrics[cost].estimate.mean
            words = f"{who}: {number(first.estimate.mean)} at {number(spent)} {unit}"
            points.append(Point(words, series, spent, first.estimate.mean))
    return f"<h3>Quality and cost</h3>{plots.scatter(points, unit, 'passed', 'Quality and cost')}"


def _figures(found: Sequence[tuple[int, str, KindSummary]]) -> str:
    names = dict.fromkeys(name for _, _, summary in found for name in summary.to_show)
    rows = "".join(
        f"<tr><td>{escape(name.replace('_', ' '))}{quiet(_MEANINGS.get(name, ''))}</td>"
        + "".join(
            f"<td>{escape(span(summary.to_show[name].estimate)) if name in summary.to_show else '–'}</td>"
            for _, _, summary in found
        )
        + "</tr>"
        for name in names
    )
    counts = "".join(
        f"<td>{summary.passed} of {summary.results}"
        f"{quiet(several(summary.errors, 'error')) if summary.errors else ''}</td>"
        for _, _, summary in found
    )
    rows = f"<tr><td>results that passed</td>{counts}</tr>{rows}"
    return table("Means, with 95 % intervals", ("figure", *(escape(who) for _, who, _ in found)), rows)


def _comparisons(evaluation: Evaluation) -> str:
    if not evaluation.comparisons:
        return ""
    rows = "".join(
        f"<tr><td>{escape(each.kind)} {escape(each.metric.replace('_', ' '))}</td><td>{escape(each.second)}</td>"
        f"<td>{'+' if each.difference.mean > 0 else ''}{escape(span(each.difference))}</td>"
        f"<td>{'clear' if each.clear else 'within chance'}</td></tr>"
        for each in evaluation.comparisons
    )
    first = escape(evaluation.candidates[0].name)
    body = table(f"Difference to {first}, case by case", ("figure", "candidate", "difference", ""), rows)
    return section("Side by side", body)


def _failed_cases(evaluation: Evaluation) -> str:
    """First the failed results, then the cases that could not be tried."""
    failed = [result for result in evaluation.results if not is_pass(result)]
    failed.sort(key=lambda result: result.error is not None)
    if not failed:
        return ""
    return section(f"Cases that did not pass ({len(failed):,})", _cases(failed), "alert")


def _passed_cases(evaluation: Evaluation) -> str:
    passed = [result for result in evaluation.results if is_pass(result)]
    return folded_section(f"Cases that passed ({len(passed):,})", _cases(passed)) if passed else ""


def _cases(results: Sequence[Result]) -> str:
    rows = "".join(_row(result) for result in results[:MOST_RESULTS])
    body = table("", ("case", "candidate", "result", "score", "what was checked", "answer", "time"), rows)
    return body + more(len(results), MOST_RESULTS, "results")


def _row(result: Result) -> str:
    if result.error is not None:
        state, said = "skipped", f"could not be tried: {result.error.kind}: {short(result.error.message, 300)}"
    else:
        state = "done" if result.passed else "failed"
        failed = [f"{check.name}: {check.said}".rstrip(": ") for check in result.checks if not check.passed]
        said = "; ".join(failed) or ", ".join(check.name for check in result.checks)
    word = {"done": "passed", "failed": "failed", "skipped": "error"}[state]
    where = f"{result.file}:{result.line}" + (f" · repeat {result.repeat}" if result.repeat > 1 else "")
    run = quiet(f"run {result.run}") if result.run else ""
    return (
        f"<tr><td>{escape(result.case)}{quiet(where)}</td><td>{escape(result.candidate)}{run}</td>"
        f'<td><span class="badge s-{state}">{word}</span></td><td class="num">{result.score:.2f}</td>'
        f"<td>{escape(short(said, 600))}</td><td>{escape(short(result.answer, 300))}</td>"
        f'<td class="num">{duration(result.seconds)}</td></tr>'
    )


def _asset(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
