"""Numbers -> the words people read: durations, money, counts, dates."""

from __future__ import annotations

from datetime import UTC, datetime
from math import ceil, floor, log10

# From this factor on, a run is reported as faster than its calls one after the other.
LEAST_SPEEDUP = 1.2


def duration(seconds: float) -> str:
    """`0.0 s`, `35 ms`, `0.4 s`, `4.2 s`, `2 min 05 s`, `1 h 03 min`."""
    if 0.0005 <= seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{max(seconds, 0.0):.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def money(usd: float | None) -> str:
    """Dollars with the digits that matter. An unknown amount is called unknown, never 0."""
    if usd is None:
        return "unknown"
    whole_cents = abs(usd - round(usd, 2)) < 0.00005
    return f"${usd:,.2f}" if usd >= 1 or (whole_cents and (usd == 0 or usd >= 0.01)) else f"${usd:.4f}"


def several(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


# Strategy of a plan -> what that means for its tasks.
_SHAPES = {"sequential": "one after another", "parallel": "all in parallel", "hybrid": "some in parallel"}


def tasks_in_words(number: int, strategy: str) -> str:
    """`6 tasks, some in parallel`."""
    shape = _SHAPES.get(strategy)
    return several(number, "task") + (f", {shape}" if shape else "")


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def first_line(text: str) -> str:
    """The rest of an error may be a whole request, which would fill the terminal."""
    return text.strip().partition("\n")[0]


def short(text: str, most: int) -> str:
    """The text on one line of at most `most` characters."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most and len(text) <= most * 4 else line[: max(most - 1, 0)].rstrip() + "…"


def round_up(number: float) -> float:
    """The number rounded up to two digits that are not zero: 9,822 -> 9,900, 0.0123 -> 0.013."""
    if number <= 0:
        return 0
    digits = 1 - floor(log10(number))
    return round(ceil(round(number * 10**digits, 6)) / 10**digits, max(digits, 0))


def share(part: int, whole: int) -> str:
    """A part of a whole in percent, never rounded up to 100 %."""
    return f"{min(part * 100 // whole, 100) if whole else 0} %"
