"""The loopback server: as a process it prints its port and logs all; it holds requests to a provider's rules."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from chargehand.models.resolve import Models
from chargehand.values.message import Message, ToolRequest, ToolSpec, tool_result, user
from tests.loopback import Answer
from tests.models.asking import ANTHROPIC, BOTH, OPENAI, a_call, ask, environment, fault, put


def test_the_server_runs_as_a_process(tmp_path: Path) -> None:
    """Both wire formats are answered, and the log has one line for each request with its key and marks."""
    log = tmp_path / "requests.jsonl"
    command = [sys.executable, "-m", "tests.loopback", "--text", "from afar", "--delay-ms", "1", "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = f"http://127.0.0.1:{int(process.stdout.readline())}"
            for model in BOTH:
                assert asyncio.run(put(Models({}, environment(url)), a_call(model))).text == "from afar"
        finally:
            process.kill()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["path"] for line in lines] == ["/v1/chat/completions", "/v1/messages"]
    assert {line["key"] for line in lines} == {"r1/t3/2/model/4"}
    assert lines[0] | {"run": "r1", "task": "t3", "attempt": "2", "role": "worker"} == lines[0]


def test_a_history_with_tool_calls_needs_its_tools() -> None:
    """As the provider has it: 400, whatever the answer was to be; with the tools it is answered."""
    wish = ToolRequest(id="c1", name="add", arguments={})
    history = (user("1+1?"), Message(role="assistant", tool_calls=(wish,)), tool_result(wish, "2"))
    refused = fault(Answer(text="ok"), a_call(ANTHROPIC, *history))
    assert (refused.kind, refused.status) == ("bad_request", 400)
    assert "must define tools" in str(refused)
    add = ToolSpec(name="add", description="Adds.")
    assert ask(Answer(text="ok"), a_call(ANTHROPIC, *history, tools=(add,)))[0].text == "ok"
    assert ask(Answer(text="ok"), a_call(OPENAI, *history))[0].text == "ok"
