"""`demo`: the run that a new user sees first, on its own material and script, without the script's delays."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from chargehand.apps import demo
from chargehand.apps.demo.material import LOGS, write_logs
from tests.cli.terminal import Result, Shell


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The rules of the demo's script, which from here on answers at once."""
    rules: list[dict[str, Any]] = json.loads(demo.SCRIPT.read_text(encoding="utf-8"))["replies"]
    for rule in rules:
        rule.pop("delay_ms")
        if "error" in rule["reply"]:
            rule["reply"]["error"]["retry_after"] = 0.01
    quick = tmp_path / "quick.json"
    quick.write_text(json.dumps({"replies": rules}), encoding="utf-8")
    monkeypatch.setattr(demo, "SCRIPT", quick)
    return rules


@pytest.fixture
def shown(script: list[dict[str, Any]], shell: Shell) -> Result:
    ended = shell("demo", "here")
    assert ended.code == 0, ended.err
    return ended


def test_the_demo_answers_and_leaves_its_page(shown: Result, shell: Shell) -> None:
    """The answer is on stdout, the page in the folder, and a command to see all runs is offered."""
    assert "A database migration locked the orders table." in shown.out
    assert str(shell.folder / "here" / "page.html") in shown.err
    assert "chargehand serve --open" in shown.err
    assert "0147_gift_note" in (shell.folder / "here" / "page.html").read_text(encoding="utf-8")
    assert (shell.folder / "here" / "tutorial.json").read_bytes() == demo.TUTORIAL.read_bytes()


def test_the_demo_shows_what_it_promises(shown: Result, shell: Shell) -> None:
    """A plan of parallel work, a rate limit, a failure survived, a contradiction, and an answer with one gap."""
    report = shell("show", "last", "--json").json
    events = [json.loads(line) for line in shell("trace", "last", "--format", "jsonl").out.splitlines()]
    outcomes = {outcome["task"]: outcome for outcome in report["outcomes"]}
    assert (report["status"], report["strategy"]) == ("partial", "hybrid")
    assert any(e["kind"] == "decision" and e["decision"] == "transport_retry" for e in events)
    assert (outcomes["hosts"]["status"], outcomes["hosts"]["attempts"]) == ("done", 2)
    assert [gap["task"] for gap in report["gaps"]] == ["mails"]
    assert (outcomes["mails"]["status"], outcomes["mails"]["partial"]) == ("escalated", True)
    assert [each["resolved"] for each in report["contradictions"]] == [True]
    assert not [e for e in events if e["kind"] in ("draft_discarded", "warning", "tool_refused")]


def test_what_the_script_states_is_in_the_logs(shown: Result, shell: Shell, script: list[dict[str, Any]]) -> None:
    """Every file and line that the script cites has been read and exists: none was removed from the claims."""
    answers = [rule["reply"]["json"] for rule in script if "claims" in (rule["reply"].get("json") or {})]
    stated = {source for answer in answers for claim in answer["claims"] for source in claim["sources"]}
    report = shell("show", "last", "--json").json
    kept = {source for o in report["outcomes"] for claim in o["claims"] for source in claim["sources"] if ":" in source}
    assert kept == stated
    assert len(kept) == 12


def test_the_logs_are_the_same_everywhere(tmp_path: Path) -> None:
    """The script cites lines, so not a byte may depend on the machine; a million tokens do not hold them."""
    size = write_logs(tmp_path)
    whole = b"".join((tmp_path / name).read_bytes() for name in LOGS)
    assert size == len(whole) > 4 * 1_000_000
    assert hashlib.sha256(whole).hexdigest()[:16] == "419df34d676ecc79"


@pytest.mark.usefixtures("script")
def test_no_setting_changes_the_demo(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a model in the environment nor a file of settings that is wrong."""
    monkeypatch.setenv("CHARGEHAND_MODEL", "nope:nothing")
    shell.write("chargehand.toml", "not = [toml")
    assert shell("demo").code == 0


def test_the_demo_overwrites_nothing_of_its_user(shell: Shell) -> None:
    """A folder with other files, and a file in place of the folder, are refused before anything runs."""
    shell.write("notes.txt", "mine")
    assert shell("demo", shell.folder).code == 2
    assert shell("demo", "notes.txt").code == 2
    assert not (shell.folder / "home").exists()
