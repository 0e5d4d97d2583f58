"""Coding agents as MCP clients: the real command lines from npm, with what `mcp --print-config` prints for them.

A model server on loopback plays their model: it calls `run_team` if that was offered in the first request.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chargehand.cli import main
from tests.loopback import Answer, Seen, serving
from tests.npm_packages import npm_command
from tests.pace import PATIENCE_S
from tests.server.mcp_clients import write_script
from tests.server.openai_clients import ANSWER, REQUEST

# `codex exec` cannot ask a person: docs/how-to/use-from-other-programs.md.
UNATTENDED = 'required = true\ndefault_tools_approval_mode = "approve"\n'


@pytest.mark.parametrize(
    ("client", "key", "more"),
    [
        ("claude-code", "mcpServers", {"type": "stdio", "alwaysLoad": True}),
        ("claude-desktop", "mcpServers", {}),
        ("cursor", "mcpServers", {}),
        ("vscode", "servers", {"type": "stdio"}),
    ],
)
def test_the_configuration_of_a_client(
    client: str,
    key: str,
    more: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One JSON document under the key that the client reads, with whole paths and the home that is set."""
    monkeypatch.setenv("CHARGEHAND_HOME", str(tmp_path))
    with pytest.raises(SystemExit):
        main(["mcp", "--print-config", client])
    entry = json.loads(capsys.readouterr().out)[key]["chargehand"]
    command, args = entry.pop("command"), entry.pop("args")
    assert (Path(command).is_absolute(), args[-1]) == (True, "mcp")
    assert entry == {**more, "env": {"CHARGEHAND_HOME": str(tmp_path)}}


def test_claude_code_has_our_tools_in_its_first_request(tmp_path: Path) -> None:
    """It waits until the server has answered, however long that takes here, and the run is a run of this home."""
    found = npm_command("claude", "@anthropic-ai/claude-code")
    config = _print_config("claude-code", tmp_path)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".mcp.json").write_text(config, encoding="utf-8")
    with serving(_call_our_tool) as server:
        env = {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "sk-ant-loopback-0123456789",
            "MCP_CONNECT_TIMEOUT_MS": str(int(PATIENCE_S * 1000)),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        command = [found, "-p", REQUEST, "--mcp-config", ".mcp.json", "--strict-mcp-config"]
        said = _run(tmp_path, [*command, "--allowed-tools", "mcp__chargehand"], env)
    assert said.strip() == "The answer came."


def test_codex_has_our_tools_in_its_first_request(tmp_path: Path) -> None:
    """With the two lines for use without a person."""
    found = npm_command("codex", "@openai/codex")
    (tmp_path / "work").mkdir()
    (tmp_path / ".codex").mkdir()
    with serving(_call_our_tool) as server:
        provider = f'name = "l"\nbase_url = "{server.url}/v1"\nenv_key = "CODEX_API_KEY"\nwire_api = "responses"\n'
        config = _print_config("codex", tmp_path).replace("args =", f"{UNATTENDED}startup_timeout_sec = 110\nargs =")
        (tmp_path / ".codex" / "config.toml").write_text(
            f'model = "gpt-5-codex"\nmodel_provider = "l"\n[model_providers.l]\n{provider}{config}', encoding="utf-8"
        )
        said = _run(
            tmp_path, [found, "exec", "--skip-git-repo-check", REQUEST], {"CODEX_API_KEY": "sk-loopback-0123456789"}
        )
    assert said.strip().splitlines()[-1] == "The answer came."


def _print_config(client: str, folder: Path) -> str:
    """As printed with a home whose model is a script."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "CHARGEHAND_HOME": str(folder / "home")}
    command = [sys.executable, "-m", "chargehand", "mcp", "--print-config", client]
    (folder / "home").mkdir()
    model = f"scripted:{write_script(folder)}"
    (folder / "home" / "config.toml").write_text(f"model = {json.dumps(model)}\n", encoding="utf-8")
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout


def _run(folder: Path, command: list[str], env: dict[str, str]) -> str:
    ended = subprocess.run(
        command,
        cwd=folder / "work",
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr + ended.stdout
    return ended.stdout


def _call_our_tool(seen: Seen) -> Answer:
    """`run_team` as the client names it; then whether the answer of the run came back."""
    if b'"tool_result"' in seen.raw or b'"function_call_output"' in seen.raw:
        return Answer(text="The answer came." if ANSWER.encode() in seen.raw else f"Something else came: {seen.text}")
    offered: list[dict[str, Any]] = seen.body.get("tools", []) if seen.raw else []
    for tool in offered:
        if tool.get("name") == "mcp__chargehand__run_team":
            return Answer(tools=((tool["name"], {"request": REQUEST}),))
        if tool.get("type") == "namespace" and tool["name"] == "mcp__chargehand":
            return Answer(tools=(("mcp__chargehand/run_team", {"request": REQUEST}),))
    return Answer(text="The tools were not there.")
