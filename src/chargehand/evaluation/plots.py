"""Figures -> drawings for the page: intervals side by side, expected against chosen workers, cost against quality.

Colours come from the style sheet by class; every mark also has its figure as text or title.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from chargehand.evaluation.statistics import Estimate
from chargehand.evaluation.summary import Confusion
from chargehand.trace.number_text import short

# Shapes as well as colours, so that candidates differ without colour.
SHAPES = 6
_WIDTH, _GUTTER, _TAIL = 860, 250, 190
_ROW = 22


@dataclass(frozen=True, slots=True)
class Bar:
    """One interval: the number of its candidate, and the measurement."""

    label: str
    series: int
    estimate: Estimate


def number(value: float) -> str:
    """Two digits after the point, or all digits before it; of a very small number two digits that are not zero."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 0.01 or value == 0 else f"{value:.2g}"


def span(estimate: Estimate) -> str:
    """`0.85 (0.75 to 0.95)`; only the figure if there is no interval."""
    if estimate.low == estimate.high:
        return number(estimate.mean)
    return f"{number(estimate.mean)} ({number(estimate.low)} to {number(estimate.high)})"


def intervals(groups: Sequence[tuple[str, Sequence[Bar]]], label: str) -> str:
    """Shares from 0 to 1: for each group a row for every candidate, with its mean and its interval."""
    height, rows = 26.0, list[str]()
    for name, bars in groups:
        rows.append(f'<text class="name" x="0" y="{height + 15:g}">{escape(short(name, 34))}</text>')
        for bar in bars:
            rows.append(_interval(bar, height))
            height += _ROW
        height += 8
    ticks = "".join(
        f'<path class="tick" d="M{_x(share):g} 20V{height:g}"/>'
        f'<text class="axis" x="{_x(share):g}" y="14">{share:g}</text>'
        for share in (0, 0.25, 0.5, 0.75, 1)
    )
    return _svg("intervals", _WIDTH, height, label, ticks + "".join(rows))


def _x(share: float) -> float:
    return _GUTTER + min(max(share, 0.0), 1.0) * (_WIDTH - _GUTTER - _TAIL)


def _interval(bar: Bar, top: float) -> str:
    low, mean, high = (_x(value) for value in (bar.estimate.low, bar.estimate.mean, bar.estimate.high))
    middle = top + _ROW / 2
    words = f"{bar.label}: {span(bar.estimate)}, {bar.estimate.n} cases"
    return (
        f'<g class="series c{bar.series % SHAPES}"><title>{escape(words)}</title>'
        f'<path class="whisker" d="M{low:.1f} {middle - 4:g}V{middle + 4:g}M{low:.1f} {middle:g}H{high:.1f}'
        f'M{high:.1f} {middle - 4:g}V{middle + 4:g}"/>{mark(bar.series, mean, middle)}'
        f'<text class="small" x="{_WIDTH - _TAIL + 14}" y="{middle + 4:g}">{escape(span(bar.estimate))}</text></g>'
    )


def mark(series: int, x: float, y: float) -> str:
    """A different shape for each candidate."""
    paths = (
        f"M{x - 5:.1f} {y:g}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
        f"M{x - 5:.1f} {y - 5:g}h10v10h-10z",
        f"M{x:.1f} {y - 6:g}l6 6l-6 6l-6 -6z",
        f"M{x:.1f} {y - 6:g}l6 11h-12z",
        f"M{x:.1f} {y + 6:g}l6 -11h-12z",
        f"M{x - 6:.1f} {y - 2:g}h4v-4h4v4h4v4h-4v4h-4v-4h-4z",
    )
    return f'<path class="mark" d="{paths[series % SHAPES]}"/>'


def confusion(found: Confusion, label: str) -> str:
    """Rows are expected workers, columns chosen ones. The darker a field, the larger its share of its row."""
    size, left, top = 46, 170, 110
    workers, cells = found.workers, list[str]()
    for row, counts in enumerate(found.counts):
        y = top + row * size
        name = escape(short(workers[row] or "none", 22))
        cells.append(f'<text class="end" x="{left - 8}" y="{y + 28}">{name}</text>')
        for column, count in enumerate(counts):
            share = count / sum(counts) if count else 0.0
            kind = "right" if row == column else "wrong"
            words = f"expected {workers[row]}, chose {workers[column] or 'none'}: {count}"
            cells.append(
                f'<g class="cell {kind}"><title>{escape(words)}</title><rect x="{left + column * size}" y="{y}" '
                f'width="{size - 2}" height="{size - 2}" rx="5" fill-opacity="{share * 0.75:.2f}"/>'
                f'<text class="count" x="{left + column * size + size / 2 - 1:g}" y="{y + 28}">'
                f"{count or '·'}</text></g>"
            )
    heads = "".join(
        f'<text class="small" transform="translate({left + column * size + 20} {top - 8}) rotate(-40)">'
        f"{escape(short(worker or 'none', 18))}</text>"
        for column, worker in enumerate(workers)
    )
    width = left + len(workers) * size + 90
    return _svg("confusion", width, top + len(workers) * size + 6, label, heads + "".join(cells), fixed=True)


@dataclass(frozen=True, slots=True)
class Point:
    label: str
    series: int
    x: float
    y: float


def scatter(points: Sequence[Point], across: str, up: str, label: str) -> str:
    """Cost across, quality from 0 to 1 up."""
    width, height, left, bottom = 560, 260, 56, 216
    most = max((point.x for point in points), default=0.0) * 1.15 or 1.0
    marks = "".join(
        f'<g class="series c{point.series % SHAPES}"><title>{escape(point.label)}</title>'
        f"{mark(point.series, left + point.x / most * (width - left - 30), bottom - point.y * 190)}</g>"
        for point in points
    )
    ticks = "".join(
        f'<path class="tick" d="M{left} {bottom - share * 190:g}H{width - 20}"/>'
        f'<text class="end small" x="{left - 8}" y="{bottom - share * 190 + 4:g}">{share:g}</text>'
        for share in (0, 0.5, 1)
    )
    ticks += "".join(
        f'<text class="axis" x="{left + share * (width - left - 30):g}" y="{bottom + 18}">{number(most * share)}</text>'
        for share in (0, 0.5, 1)
    )
    words = (
        f'<text class="axis" x="{(left + width) / 2:g}" y="{height - 8}">{escape(across)}</text>'
        f'<text class="small" x="4" y="14">{escape(up)}</text>'
    )
    return _svg("scatter", width, height, label, ticks + words + marks, fixed=True)


def _svg(kind: str, width: float, height: float, label: str, body: str, *, fixed: bool = False) -> str:
    size = f' width="{width:g}" height="{height:g}"' if fixed else ""
    return (
        f'<svg class="plot {kind}" viewBox="0 0 {width:g} {height:g}"{size} role="img" aria-label="{escape(label)}">'
        f"{body}</svg>"
    )
