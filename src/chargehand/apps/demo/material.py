"""A folder -> six logs of one evening in a web shop, about a million tokens, the same bytes on every machine.

Arithmetic chooses ordinary lines from a few sentences. The important lines are at the times given here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

LINES = 9_600
# Seconds from midnight to the first line, and between two lines.
BEGIN, STEP = 17 * 3600, 2
DAY = "2026-03-12"
# The clock of the payments host is this much behind.
BEHIND = 540
WINDOW = 300


@dataclass(frozen=True)
class Log:
    """One log: its ordinary lines, and its lines at certain times (of a correct clock)."""

    ordinary: tuple[str, ...]
    notable: Mapping[str, str] = field(default_factory=dict[str, str])
    behind: int = 0
    lines: int = LINES


def _mix(number: int, seed: int) -> int:
    """A number that looks random and is the same on every machine."""
    return ((number + 1) * 2_654_435_761 ^ seed * 97_003) % 2**32


def _clock(second: int) -> str:
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def _checkouts() -> dict[str, str]:
    """The lines of the gateway, which counts checkouts every five minutes; eight windows have failed checkouts."""
    lost = {
        "18:05:00": (9, 412),
        "18:10:00": (61, 2_870),
        "18:15:00": (64, 3_121),
        "18:20:00": (70, 3_388),
        "18:25:00": (66, 3_015),
        "18:30:00": (59, 2_746),
        "18:35:00": (63, 2_904),
        "18:40:00": (58, 2_655),
        "18:45:00": (21, 977),
    }
    counted: dict[str, str] = {}
    for second in range(BEGIN + WINDOW, BEGIN + LINES * STEP, WINDOW):
        failed, value = lost.get(_clock(second), (0, 0))
        done = 0 if failed > 50 else 55 + _mix(second, 3) % 20 - failed
        counted[_clock(second)] = f"INFO  checkouts of 5 minutes: done={done} failed={failed} failed_value_eur={value}"
    return counted


LOGS: Mapping[str, Log] = {
    "gateway.log": Log(
        (
            "INFO  GET /products/{a} 200 in {b} ms client=10.4.{c}.{d} bytes={e}",
            "INFO  GET /search?q=lamp&page={c} 200 in {b} ms client=10.4.{c}.{d} hits={a}",
            "INFO  GET /basket/{e} 200 in {b} ms client=10.4.{c}.{d} items={c}",
            "DEBUG keep-alive client=10.4.{c}.{d} idle={b} ms upstream=catalogue-{c}",
        ),
        {
            **_checkouts(),
            "18:04:12": "ERROR POST /checkout 503 upstream=payments deadline of 5000 ms exceeded (first of a series)",
            "18:22:40": "ERROR POST /checkout 503 upstream=payments deadline of 5000 ms exceeded",
            "18:41:50": "ERROR POST /checkout 503 upstream=payments deadline of 5000 ms exceeded (last of a series)",
        },
    ),
    "payments.log": Log(
        (
            "INFO  authorised payment={e} amount_eur={c}.{d} provider=acquirer-{c} in {b} ms",
            "INFO  captured payment={e} order={a} amount_eur={c}.{d} in {b} ms",
            "DEBUG token refreshed provider=acquirer-{c} valid_s={a}",
        ),
        {
            "18:04:10": "ERROR cannot store order: no connection from pool orders-db after 5000 ms (first of a series)",
            "18:23:20": "ERROR cannot store order: no connection from pool orders-db after 5000 ms",
            "18:41:48": "ERROR cannot store order: no connection from pool orders-db after 5000 ms (last of a series)",
        },
        behind=BEHIND,
    ),
    "orders-db.log": Log(
        (
            "LOG   checkpoint complete: wrote {a} buffers in {b} ms",
            "LOG   duration: {b} ms  statement: select * from orders where customer = {e}",
            "LOG   duration: {b} ms  statement: insert into order_line values ({e}, {a}, {c})",
        ),
        {
            "18:03:58": "LOG   statement: alter table orders add column gift_note text default lookup_note(id)",
            "18:04:04": "LOG   process 8812 holds AccessExclusiveLock on relation orders; 40 processes wait for it",
            "18:41:32": "LOG   process 8812 cancelled on user request; AccessExclusiveLock on relation orders released",
        },
    ),
    "deploys.log": Log(
        (
            "INFO  health service=catalogue-{c} version=2.30.{c} ok in {b} ms",
            "INFO  image pulled service=search-{c} layer={e} size={a} kB",
        ),
        {
            "18:03:48": "INFO  release 2.31.0 of checkout: migration 0147_gift_note on orders-db, no lock_timeout",
            "18:41:26": "INFO  release 2.31.0 of checkout rolled back by on-call: migration 0147_gift_note cancelled",
        },
    ),
    "hosts.log": Log(
        (
            "INFO  host=web-{c} cpu={d} % memory={c} % load={c}.{d}",
            "INFO  host=catalogue-{c} disk={d} % inodes={c} % fans={a} rpm",
        ),
        {"19:30:00": "WARN  host=payments-1 chrony: system clock is 540 s behind; stepping it forward"},
    ),
    # The log ends early: the disk of its host was full.
    "mail.log": Log(
        (
            "INFO  queued template=newsletter recipient={e} in {b} ms",
            "INFO  delivered template=order_confirmed recipient={e} order={a} in {b} ms",
        ),
        {
            "18:06:00": "WARN  template=order_confirmed sent for 14 orders that were never stored",
            "18:20:06": "ERROR no space left on device",
        },
        lines=2_404,
    ),
}


def write_logs(folder: Path) -> int:
    """Write the logs to the folder, over earlier ones, and return their size in bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    return sum(
        (folder / name).write_bytes("".join(_lines(log, number)).encode())
        for number, (name, log) in enumerate(LOGS.items(), 1)
    )


def _lines(log: Log, seed: int) -> Iterator[str]:
    for number in range(log.lines):
        second = BEGIN + number * STEP
        text = log.notable.get(_clock(second)) or _ordinary(log.ordinary, _mix(number, seed))
        yield f"{DAY}T{_clock(second - log.behind)} {text}\n"


def _ordinary(sentences: tuple[str, ...], drawn: int) -> str:
    return sentences[drawn % len(sentences)].format(
        a=drawn % 9_973, b=drawn % 187 + 3, c=drawn % 7 + 1, d=drawn % 89 + 10, e=drawn % 1_000_003
    )
