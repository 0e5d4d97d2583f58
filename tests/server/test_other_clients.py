"""Programs that others wrote, against a real server: the official client for node, and `llm`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.npm_packages import npm_package
from tests.pace import PATIENCE_S
from tests.server.openai_clients import ANSWER, MODEL, REQUEST
from tests.server.serving import CLIENT_TOKEN, Client, make_supervisor, serving

# Both addresses, whole and as a stream, a follow-up, the background, and an error: what came of each as one object.
NODE = """
import OpenAI from "openai";
const [baseURL, apiKey, model, request] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey });
const messages = [{ role: "user", content: request }];
const got = {};
got.models = (await client.models.list()).data.map((each) => each.id);
const chat = await client.chat.completions.create({ model, messages });
got.chat = [chat.choices[0].message.content, chat.usage.total_tokens];
got.chatStream = "";
for await (const chunk of await client.chat.completions.create({ model, messages, stream: true }))
  got.chatStream += chunk.choices[0]?.delta?.content ?? "";
const made = await client.responses.create({ model, input: request });
got.response = [made.status, made.output_text, made.usage.total_tokens];
const stream = client.responses.stream({ model, input: "And now again", previous_response_id: made.id });
got.kinds = [];
for await (const event of stream) got.kinds.push(event.type);
const final = await stream.finalResponse();
got.stream = [final.output_text, final.previous_response_id === made.id];
let later = await client.responses.create({ model, input: request, background: true });
got.background = [later.status];
while (later.status === "queued" || later.status === "in_progress") later = await client.responses.retrieve(later.id);
got.background.push(later.status, later.output_text);
try { await client.chat.completions.create({ model: "team/nothing", messages }); }
catch (error) { got.error = [error.constructor.name, error.status, error.code, error.param]; }
console.log(JSON.stringify(got));
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving(make_supervisor(tmp_path_factory.mktemp("home"))) as client:
        yield client


def _request(server: Client, run: str) -> dict[str, Any]:
    events = server.get(f"/api/v1/runs/{run}/events").body.decode().splitlines()
    return json.loads(events[0])["request"]


def test_the_official_client_for_node(server: Client, tmp_path: Path) -> None:
    """Chat completions and responses as the one for Python has them."""
    (tmp_path / "node_modules").symlink_to(npm_package("openai").parent)
    script = tmp_path / "ask.mjs"
    script.write_text(NODE, encoding="utf-8")
    command = ["node", str(script), f"http://127.0.0.1:{server.port}/v1", CLIENT_TOKEN, MODEL, REQUEST]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 0, ended.stderr
    got: dict[str, Any] = json.loads(ended.stdout)
    assert {MODEL, "team/general", "chargehand/small"} <= {*got["models"]}
    assert (got["chat"][0], got["chatStream"]) == (ANSWER, ANSWER)
    assert got["response"][:2] == ["completed", ANSWER]
    assert min(got["chat"][1], got["response"][2]) > 0
    assert (got["kinds"][0], got["kinds"][-1]) == ("response.created", "response.completed")
    assert got["stream"] == [ANSWER, True]
    assert got["background"] == ["queued", "completed", ANSWER]
    assert got["error"] == ["NotFoundError", 404, "model_not_found", "model"]


@pytest.mark.skipif(find_spec("llm") is None, reason="llm is not installed: make dev")
def test_the_command_line_client_llm(server: Client, tmp_path: Path) -> None:
    """A prompt, its continuation as a follow-up, and a system prompt; a model that is not there is its error."""
    models = [
        {"model_id": name, "model_name": model, "api_base": f"http://127.0.0.1:{server.port}/v1", "api_key_name": "c"}
        for name, model in (("work", MODEL), ("nothing", "team/nothing"))
    ]
    # Each JSON document is one of YAML.
    (tmp_path / "extra-openai-models.yaml").write_text(json.dumps(models), encoding="utf-8")
    (tmp_path / "keys.json").write_text(json.dumps({"c": CLIENT_TOKEN}), encoding="utf-8")

    def llm(*arguments: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LLM_USER_PATH": str(tmp_path)}
        command = [sys.executable, "-m", "llm", *arguments]
        return subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    first = llm("-m", "work", REQUEST, "-s", "Be brief.")
    assert (first.returncode, first.stdout.strip()) == (0, ANSWER), first.stderr
    assert llm("-c", "And now again", "--no-stream").stdout.strip() == ANSWER
    second, one = (_request(server, each["run"]) for each in server.get("/api/v1/runs").json["runs"][:2])
    assert one["text"].endswith("Be brief.")
    assert second["earlier"]["request"] == one["text"]
    wrong = llm("-m", "nothing", REQUEST)
    assert wrong.returncode == 1
    assert "GET /v1/models lists them" in wrong.stderr
