"""An answer and what is expected of it -> checks and figures. Pure; only a rubric needs a model (`try_case.py`)."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from chargehand.evaluation import graphs
from chargehand.evaluation.case import (
    AnswerExpectation,
    Count,
    Number,
    PlanCase,
    RoutingCase,
    RunExpectation,
    WorkerExpectation,
)
from chargehand.evaluation.result import Check
from chargehand.trace.number_text import money, short
from chargehand.values.base import JSON
from chargehand.values.plan import Plan
from chargehand.values.report import Contradiction, Gap, Provenance, Report

_MOST_SAID = 300
_NUMBER = re.compile(r"(?<![\w.,])[-+\u2212]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w]|[.,]\d)")


def check(name: str, passed: bool, said: str = "") -> Check:
    """A check by code."""
    return Check(name=name, passed=passed, score=float(passed), said="" if passed else short(said, _MOST_SAID))


# --- routing --------------------------------------------------------------------------------------------------------


def check_route(case: RoutingCase, primary: str, secondary: str | None) -> tuple[Check, ...]:
    checks = [check("primary", primary == case.primary, f"chose {primary}, not {case.primary}")]
    if case.secondary is not None:
        checks.append(check("secondary", secondary == case.secondary, f"chose {secondary}, not {case.secondary}"))
    return tuple(checks)


# --- plans ----------------------------------------------------------------------------------------------------------


def check_plan(case: PlanCase, plan: Plan | None, why: str = "") -> tuple[tuple[Check, ...], dict[str, float], float]:
    """Checks, figures and score of a plan; None means an invalid plan."""
    graph = plan or Plan()
    of_nodes = graphs.match(graphs.nodes(graph), graphs.nodes(case.plan))
    of_edges = graphs.match(graphs.edges(graph), graphs.edges(case.plan)) if plan else graphs.NOTHING
    score = (of_nodes.f1 + of_edges.f1) / 2
    figures = {
        "validity": float(plan is not None),
        "graph_f1": score,
        "node_precision": of_nodes.precision,
        "node_recall": of_nodes.recall,
        "node_f1": of_nodes.f1,
        "edge_precision": of_edges.precision,
        "edge_recall": of_edges.recall,
        "edge_f1": of_edges.f1,
    }
    if plan is None:
        return (check("valid", False, why),), figures, score
    own, reference = graphs.parallelism(plan), graphs.parallelism(case.plan)
    figures |= {"parallelism": own, "parallelism_kept": min(own / reference, 1.0)}
    like = check("graph", score >= case.at_least - 1e-9, f"graph F1 {score:.2f}, under {case.at_least:g}")
    return (check("valid", True), like), figures, score


# --- answers --------------------------------------------------------------------------------------------------------


def check_worker(expect: WorkerExpectation, output: JSON, summary: str = "") -> tuple[Check, ...]:
    """The checks by code of a worker's output. Without an output, the summary counts as the answer."""
    given = summary if output in (None, "") else output
    text = text_of(given)
    checks: list[Check] = []
    if "exact" in expect.model_fields_set:
        checks.append(check("exact", same(given, expect.exact), f"it is {text}"))
    checks += words(expect.contains, expect.lacks, text)
    if expect.numeric is not None:
        checks.append(numeric(expect.numeric, given))
    return tuple(checks)


def check_answer(
    expect: AnswerExpectation,
    answer: str,
    provenance: Provenance,
    contradictions: Sequence[Contradiction],
    gaps: Sequence[Gap],
) -> tuple[Check, ...]:
    """The checks by code of an answer and what is known about it."""
    cited = {task for tasks in provenance.citations.values() for task in tasks}
    checks = list(words(expect.contains, expect.lacks, answer))
    checks += [
        check(f"cites {task}", task in cited, f"cites {', '.join(sorted(cited)) or 'nothing'}") for task in expect.cites
    ]
    if expect.contradictions is not None:
        found = "; ".join(each.subject for each in contradictions)
        checks += check_count("contradictions", expect.contradictions, len(contradictions), (), found)
    if expect.gaps is not None:
        tasks = [gap.task for gap in gaps if gap.task is not None]
        checks += check_count("gaps", expect.gaps, len(gaps), tasks, "; ".join(gap.reason for gap in gaps))
    return tuple(checks)


def ran(expect: RunExpectation, report: Report) -> tuple[Check, ...]:
    """The checks by code of a whole run."""
    checks: list[Check] = []
    if expect.status:
        why = "; ".join(gap.reason for gap in report.gaps) or report.answer
        checks.append(check("status", report.status in expect.status, f"it is {report.status}: {why}"))
    checks += check_answer(expect, report.answer, report.provenance, report.contradictions, report.gaps)
    usage, took = report.usage, report.timing.wall_s
    if expect.max_usd is not None:
        kept = usage.usd is not None and usage.usd <= expect.max_usd
        checks.append(check("max_usd", kept, f"{money(usage.usd)}, over {money(expect.max_usd)}"))
    if expect.max_tokens is not None:
        said = f"{usage.tokens:,} tokens, over {expect.max_tokens:,}"
        checks.append(check("max_tokens", usage.tokens <= expect.max_tokens, said))
    if expect.max_seconds is not None:
        checks.append(check("max_seconds", took <= expect.max_seconds, f"{took:.1f} s, over {expect.max_seconds:g} s"))
    return tuple(checks)


def words(contains: Iterable[str], lacks: Iterable[str], text: str) -> Iterator[Check]:
    """Whether the text contains or lacks words, regardless of case and white space."""
    plain = fold_text(text)
    for each in contains:
        yield check(f"contains {short(each, 60)!r}", fold_text(each) in plain, f"it says {text}")
    for each in lacks:
        yield check(f"lacks {short(each, 60)!r}", fold_text(each) not in plain, f"it says {text}")


def check_count(name: str, wanted: Count, given: int, tasks: Sequence[str], said: str) -> Iterator[Check]:
    yield check(name, wanted.allows(given), f"there are {given}: {said}" if said else f"there are {given}")
    for task in wanted.tasks:
        yield check(f"{name} of {task}", task in tasks, f"{name} are of {', '.join(tasks) or 'no task'}")


def numeric(wanted: Number, output: JSON) -> Check:
    """Whether the figure is right: the one at `field`, else the output itself, else any figure in its text."""
    given = _at(output, wanted.field) if wanted.field is not None else output
    figures = [*_figures(given)]
    passed = any(wanted.allows(figure) for figure in figures)
    listed = ", ".join(f"{figure:g}" for figure in figures[:10]) or "none"
    return check(f"numeric {wanted.value:g}", passed, f"the figures in it: {listed}")


def _figures(value: JSON) -> Iterator[float]:
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        yield float(value)
        return
    for found in _NUMBER.findall(text_of(value)):
        figure = float(found.replace(",", "").replace("\u2212", "-"))
        if math.isfinite(figure):
            yield figure


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = cast("Mapping[str, Any]", value).get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(cast("list[Any]", value)):
            value = cast("list[Any]", value)[int(part)]
        else:
            return None
    return value


def same(given: JSON, wanted: JSON) -> bool:
    """Equal as JSON: 1 equals 1.0 and not true. White space around text does not matter."""
    if isinstance(given, str) and isinstance(wanted, str):
        return given.strip() == wanted.strip()
    if isinstance(given, bool) or isinstance(wanted, bool):
        return given is wanted
    if isinstance(given, dict) and isinstance(wanted, dict):
        ours, theirs = cast("dict[str, Any]", given), cast("dict[str, Any]", wanted)
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(given, list) and isinstance(wanted, list):
        mine, others = cast("list[Any]", given), cast("list[Any]", wanted)
        return len(mine) == len(others) and all(map(same, mine, others))
    return given == wanted


def text_of(value: JSON) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def fold_text(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
