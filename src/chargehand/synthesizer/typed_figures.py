"""The typed answer, the results and the words of the answer -> the figures in the data that stand in neither."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import cast

from chargehand.synthesizer.evidence import Evidence, held_in_text
from chargehand.synthesizer.figures import Figure, figures
from chargehand.values.base import JSON
from chargehand.values.outcome import Outcome

# The code of these problems: they are shown, never sent back, and keep no run from being complete.
SHOWN_ONLY = "unsupported_data"
MOST_TOLD = 10
_LARGEST = 1e30
# Flags and empty counts are written as numbers too.
_NO_FIGURES = frozenset({"0", "1", "-1"})


def unsupported_figures(data: JSON, outcomes: Mapping[str, Outcome], words: str) -> tuple[str, ...]:
    """A problem for each; the lengths of the data's own lists count as supported."""
    if data is None:
        return ()
    evidence, said = Evidence(outcomes), held_in_text(words)
    nodes = list(_nodes(data))
    lengths = {str(len(cast(list[JSON], node))) for _, node in nodes if isinstance(node, list)}
    found: list[str] = []
    for where, node in nodes:
        for figure in _figures(node):
            if figure.value in _NO_FIGURES or (figure.unit is None and figure.value in lengths):
                continue
            if not any(evidence.has(each, "", outcomes) or said.has(each, "") for each in _readings(figure)):
                found.append(f"`{where}` is {figure.text}, which neither a result nor the answer contains.")
    more = [f"{len(found) - MOST_TOLD} more of this kind."] if len(found) > MOST_TOLD else []
    return tuple(f"{SHOWN_ONLY}: {each}" for each in (*found[:MOST_TOLD], *more))


def _nodes(data: JSON) -> Iterator[tuple[str, JSON]]:
    """Every value with its place, in order and without recursion: data may be as deep as its schema lets it."""
    waiting: list[tuple[str, JSON]] = [("data", data)]
    while waiting:
        where, node = waiting.pop()
        yield where, node
        if isinstance(node, dict):
            fields = cast(dict[str, JSON], node)
            waiting += [(f"{where}.{name}", fields[name]) for name in reversed(fields)]
        elif isinstance(node, list):
            items = cast(list[JSON], node)
            waiting += [(f"{where}[{at}]", items[at]) for at in range(len(items) - 1, -1, -1)]


def _figures(node: JSON) -> tuple[Figure, ...]:
    """The number that a value is, or those in its text that are given in digits."""
    if isinstance(node, str):
        return tuple(figure for figure in figures(node) if any(map(str.isdigit, figure.text)))
    if isinstance(node, bool) or not isinstance(node, int | float) or not abs(node) < _LARGEST:
        return ()
    # Not at the beginning of a line, where a number may be that of a list.
    return figures(f"= {format(Decimal(str(node)), 'f')}")


def _readings(figure: Figure) -> Iterator[Figure]:
    """The figure, and a share of one as a percentage."""
    yield figure
    if figure.kind == "number" and figure.unit is None and abs(value := Decimal(figure.value)) < 1:
        percent = format((value * 100).normalize(), "f")
        yield replace(figure, value=percent, unit="%")
