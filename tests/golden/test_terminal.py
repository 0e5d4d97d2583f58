"""A run on terminals of 60, 80 and 120 columns: the table while it works, and the lines under its answer."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from chargehand.cli.live_table import LiveTable
from chargehand.cli.report_footer import print_footer
from chargehand.cli.screen import Screen
from chargehand.text.redaction import Redactor
from chargehand.trace import RunState
from chargehand.values.outcome import Contradiction
from chargehand.values.report import Gap, Report, Timing
from tests.cli.terminal import plan, task
from tests.cli.test_screen import Terminal
from tests.events import make_event
from tests.golden import check_wording

WIDTHS = (60, 80, 120)
REQUEST = "Why did checkout fail on 12 March, for how long, and what did it cost us?"


def _events() -> list[Any]:
    """One task of each sort: done, failed, escalated, about to be sent again, using a tool, nested, waiting."""
    ids = ("gateway", "payments", "database", "deploys", "hosts", "mails", "impact")
    made = plan(*(task(id) for id in ids))
    made["tasks"][-1]["depends_on"] = list(ids[:-1])
    found: list[tuple[str, str | None, float, dict[str, Any]]] = [
        (
            "run_started",
            None,
            0.0,
            {"request": {"text": REQUEST, "budget": {"tokens": 500_000}}, "team": {"name": "g"}},
        ),
        ("plan_approved", None, 1.0, {"plan": made, "strategy": "hybrid"}),
        *(("attempt_started", id, 1.0, {"worker": "researcher"}) for id in ids[:-1]),
        ("task_ended", "gateway", 2.6, {"outcome": {"status": "done", "summary": "Checkout failed from 18:04:12 on."}}),
        (
            "task_ended",
            "hosts",
            3.1,
            {"outcome": {"status": "failed", "summary": "The provider rejected the request."}},
        ),
        (
            "task_ended",
            "mails",
            3.2,
            {"outcome": {"status": "escalated", "summary": "mail.log breaks off at 18:20:06."}},
        ),
        (
            "decision",
            "payments",
            3.3,
            {
                "key": "payments/1/model/1/retry/1",
                "decision": "transport_retry",
                "value": {"after_s": 4.0},
                "reason": "Too many requests",
            },
        ),
        (
            "tool_called",
            "deploys",
            3.4,
            {
                "key": "deploys/1/tool/1",
                "worker": "researcher",
                "tool": "search_files",
                "arguments": {"query": "release", "glob": "deploys.log"},
                "effect": "read",
                "fingerprint": "f",
                "send": 1,
            },
        ),
        ("attempt_started", "database/1/locks", 3.5, {"worker": "reader"}),
    ]
    return [
        make_event(kind, id, 1 if id else None, seq=seq, at=at, **data)
        for seq, (kind, id, at, data) in enumerate(found, 1)
    ]


def test_the_table_while_a_run_works() -> None:
    """No line is longer than the terminal, and each row says how its task is."""
    shown: dict[str, str] = {}
    for width in WIDTHS:
        terminal = Console(width=width, height=30, file=io.StringIO())
        live = LiveTable(Screen(Redactor()), RunState(), terminal)
        for event in _events():
            live.on_event(event)
        with terminal.capture() as got:
            terminal.print(live.render(6.0))
        lines = [line.rstrip() for line in got.get().splitlines()]
        assert max(map(len, lines)) <= width
        shown[f"{width} columns"] = "\n".join(lines)
    check_wording("terminal_table", shown)


def test_the_lines_under_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """How it ended, what is missing, what contradicts what, and the next commands; a log has long lines."""
    monkeypatch.setenv("NO_COLOR", "1")
    report = Report(
        run="20260312-184150-abcd",
        request=REQUEST,
        status="partial",
        answer="A migration locked the table.",
        gaps=(
            Gap(
                task="mails",
                reason="escalated: mail.log breaks off at 18:20:06, 21 minutes before the failure ended.",
                impact="Its criterion is not met: One figure. Only its partial result was used, by impact.",
            ),
        ),
        contradictions=(
            Contradiction(
                subject="When checkout failed",
                claims=("gateway: From 18:04:12 to 18:41:50.", "payments: From 17:55:10 to 18:32:48."),
                verdict="gateway: From 18:04:12 to 18:41:50.",
                reason="The clock of payments-1 was 540 seconds behind.",
                resolved=True,
            ),
            Contradiction(subject="Customers", claims=("mails: 14", "impact: 17"), resolved=False),
        ),
        confidence=85,
        timing=Timing(wall_s=5.3, sequential_s=8.4, critical_path_s=4.0, speedup=1.6, waiting_s=0.0),
    )
    shown: dict[str, str] = {}
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        terminal = Terminal()
        monkeypatch.setattr("sys.stderr", terminal)
        print_footer(report, Screen(Redactor()))
        lines = terminal.getvalue().splitlines()
        assert max(map(len, lines)) <= width
        shown[f"{width} columns"] = "\n".join(lines).strip("\n")
    monkeypatch.setattr("sys.stderr", log := io.StringIO())
    print_footer(report, Screen(Redactor()))
    shown["a log"] = log.getvalue().strip("\n")
    check_wording("terminal_footer", shown)
