"""The typed answer, the results and the words of the answer -> the figures in the data that are in neither."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import cast

from chargehand.synthesizer.figures import Figure, figures, most_counted, plain
from chargehand.synthesizer.result_index import ResultIndex, readings, values_in
from chargehand.values.base import JSON
from chargehand.values.outcome import Outcome

# The code of these problems: they are shown and never sent back. A run with such a problem can be complete.
SHOWN_ONLY = "unsupported_data"
MOST_TOLD = 10
_LARGEST = 1e30


def unsupported_figures(data: JSON, outcomes: Mapping[str, Outcome], words: str) -> tuple[str, ...]:
    """A problem for each, except for small whole numbers, which may be flags or lengths of lists in the data."""
    if data is None:
        return ()
    index, said = ResultIndex(outcomes), values_in(words)
    nodes, found = list(_nodes(data)), list[str]()
    most = most_counted(max((len(cast(list[JSON], node)) for _, node in nodes if isinstance(node, list)), default=0))
    for where, node in nodes:
        for figure in _figures(node):
            values = {*readings(figure), plain(figure.value, 2)}  # a share may be a percentage there
            if not (figure.counts_up_to(most) or not said.isdisjoint(values) or index.has_any(values, outcomes)):
                found.append(f"`{where}` is {figure.text}, which neither a result nor the answer contains.")
    more = [f"{len(found) - MOST_TOLD} more of this kind."] if len(found) > MOST_TOLD else []
    return tuple(f"{SHOWN_ONLY}: {each}" for each in (*found[:MOST_TOLD], *more))


def _nodes(data: JSON) -> Iterator[tuple[str, JSON]]:
    """Every value with its place, in order and without recursion: data may be as deep as its schema allows."""
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
    """The number that a value is, or those in its text."""
    if isinstance(node, str):
        return figures(node)
    if isinstance(node, bool) or not isinstance(node, int | float) or not abs(node) < _LARGEST:
        return ()
    # Not at the beginning of a line, where a number may be that of a list.
    return figures(f"= {plain(format(Decimal(str(node)), 'f'))}")
