"""Presets for coding agents: stand-ins that speak as the real ones do, the example team, and the real ones if there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor
from chargehand.programs.presets import AgentStream, arguments_of
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.team import load
from chargehand.values.program import Program
from tests.loopback import Answer, Seen, serving
from tests.npm_packages import npm_command
from tests.programs.helping import repository, run, stand_in, worker

ROOT = Path(__file__).resolve().parents[2]
CODE = {
    "stats.py": "def mean(values):\n    return sum(values) / len(values)\n",
    "test_stats.py": "import unittest\nfrom stats import mean\n\nclass T(unittest.TestCase):\n"
    "    def test_mean(self): self.assertEqual(mean([1, 3]), 2)\n"
    "    def test_empty(self): self.assertEqual(mean([]), 0)\n",
}
# As Claude Code 2.1 and Codex 0.166 print it, shortened.
CLAUDE = """
import json, pathlib, sys
assert "mean" in sys.stdin.read() and "--output-format" in sys.argv
pathlib.Path("stats.py").write_text({code!r})
for event in [
    {{"type": "system", "subtype": "init", "model": "claude-x"}},
    {{"type": "assistant", "message": {{"content": [{{"type": "tool_use", "name": "Edit", "input": {{}}}}]}}}},
    {{"type": "assistant", "message": {{"content": [{{"type": "text", "text": "Changed it."}}]}}}},
    {{"type": "result", "is_error": False, "result": "Changed mean.", "total_cost_usd": 0.25, "num_turns": 3,
      "usage": {{"input_tokens": 10, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 2,
                 "output_tokens": 5}}}},
]:
    print(json.dumps(event), flush=True)
"""
CODEX = """
import json, pathlib, sys
assert sys.argv[1] == "exec" and sys.argv[-1] == "-" and "mean" in sys.stdin.read()
pathlib.Path("stats.py").write_text({code!r})
for event in [
    {{"type": "thread.started", "thread_id": "1"}},
    {{"type": "item.started", "item": {{"type": "command_execution", "command": "ls"}}}},
    {{"type": "item.completed", "item": {{"type": "agent_message", "text": "Changed mean."}}}},
    {{"type": "turn.completed", "usage": {{"input_tokens": 20, "cached_input_tokens": 8, "output_tokens": 4}}}},
]:
    print(json.dumps(event), flush=True)
"""
WRONG = "def mean(values):\n    return 1\n"
RIGHT = "def mean(values):\n    return sum(values) / len(values) if values else 0\n"


def test_the_streams_of_agents_are_read_for_text_usage_and_progress() -> None:
    """What is not understood, torn or hostile is passed over."""
    said: list[str] = []
    stream = AgentStream("claude", said.append)
    for line in (b"", b"nonsense", b"[1]", b'{"type": "assistant"}', b'{"type": "result", "usage": 3}', b"\xff" * 10):
        stream.feed(line)
    stream.feed(b'{"type": "assistant", "message": {"content": [{"type": "text", "text": "Hello\\nthere"}]}}')
    stream.feed(b'{"type": "result", "result": "Done", "total_cost_usd": 0.5, "usage": {"input_tokens": 7}}')
    assert (stream.text, stream.error, said) == ("Done", "", ["Hello there"])
    assert stream.used is not None
    assert (stream.used.input_tokens, stream.used.usd) == (7, 0.5)
    failed = AgentStream("codex", said.append)
    failed.feed(b'{"type": "turn.failed", "error": {"message": "no quota"}}')
    assert (failed.error, failed.used) == ("no quota", None)


def test_an_agent_without_walls_may_only_edit() -> None:
    """Its own permission checks are switched off only inside of a sandbox."""
    claude, codex = Program(command=("claude",), preset="claude"), Program(command=("codex",), preset="codex")
    assert "--dangerously-skip-permissions" in arguments_of(claude, enclosed=True)
    assert "--dangerously-skip-permissions" not in arguments_of(claude, enclosed=False)
    assert "--dangerously-bypass-approvals-and-sandbox" not in arguments_of(codex, enclosed=False)


def test_three_agents_in_checkouts_and_a_verifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example team: the verifier keeps a patch that passes, and what the agents used is in the report."""
    repo = repository(tmp_path / "repo", CODE)
    stand_in(tmp_path / "bin", "claude", CLAUDE.format(code=RIGHT))
    stand_in(tmp_path / "bin", "codex", CODEX.format(code=WRONG))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    folder = ROOT / "examples" / "coders"
    trust = TrustRegistry(tmp_path / "home")
    trust.trust(folder / "coders")
    supervisor = Supervisor(load(folder / "coders", trust), home=tmp_path / "home")
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    report = supervisor.run_sync(plan=plan, material=[str(repo)])
    by_task = {outcome.task: outcome for outcome in report.outcomes}
    assert [outcome.status for outcome in report.outcomes] == ["done"] * 4
    assert by_task["first"].usage.usd == 0.25
    assert by_task["chosen"].output == by_task["first"].output
    assert "if values else 0" in by_task["chosen"].output
    # Two runs of claude, one of codex: cached input is part of the input.
    assert (report.usage.input_tokens, report.usage.output_tokens) == (2 * 42 + 20, 2 * 5 + 4)
    assert report.usage.usd is None, "codex does not say what it cost"
    assert (repo / "stats.py").read_text(encoding="utf-8") == CODE["stats.py"]


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_the_real_program_works_with_its_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The command line from npm, against a model server on loopback: it edits, its words and its usage arrive."""
    found = npm_command(name, {"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex"}[name])
    repo = repository(tmp_path / "repo")
    with serving(_write_a_line) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-loopback-0123456789")
        monkeypatch.setenv("CODEX_API_KEY", "sk-loopback-0123456789")
        provider = f'{{name="l",base_url="{server.url}/v1",env_key="CODEX_API_KEY",wire_api="responses"}}'
        codex = ("-c", 'model_provider="l"', "-c", 'model="gpt-5-codex"', "-c", f"model_providers.l={provider}")
        command = (found, *(codex if name == "codex" else ()))
        packages = str(Path(found).resolve().parents[2])
        program = worker(
            preset=name, command=command, worktree=True, visible=(packages,), verify=("grep", "-q", "hi", "a.txt")
        )
        outcome = run(tmp_path, program, material=[repo]).outcomes[0]
    assert outcome.error is None
    assert "+hi" in outcome.output
    assert outcome.summary == "I added hi."
    assert outcome.usage.output_tokens > 0


def _write_a_line(seen: Seen) -> Answer:
    """One call of the tool that runs commands, then words."""
    offered: list[Any] = seen.body.get("tools", [])
    names = {each.get("name") for each in offered}
    if b"tool_result" in seen.raw or b"function_call_output" in seen.raw:
        return Answer(text="I added hi.")
    if "Bash" in names:
        return Answer(tools=(("Bash", {"command": "echo hi >> a.txt", "description": "add"}),))
    if "exec_command" in names:
        return Answer(tools=(("exec_command", {"cmd": "echo hi >> a.txt"}),))
    return Answer(text="I added hi.")
