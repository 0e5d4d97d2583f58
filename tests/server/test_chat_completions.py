"""A team as an OpenAI model, driven by the official client over real HTTP."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chargehand.server import follow_answer
from chargehand.testing import ScriptedModel
from tests.lazy_module import LazyModule
from tests.pace import PATIENCE_S
from tests.server.openai_clients import ANSWER, SlowWriter, client_of
from tests.server.serving import ANSWERS, CLIENT_TOKEN, TOKEN, Client, make_supervisor, serving

openai = LazyModule("openai")
SMALL: list[dict[str, Any]] = [{"when": {"contains": "3-5 word title"}, "reply": {"text": "A Short Title"}}]
MODEL = "chargehand/default"
ASK: Any = [{"role": "user", "content": "Do both parts of the work"}]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    supervisor = make_supervisor(tmp_path_factory.mktemp("home"), ScriptedModel([*SMALL, *ANSWERS]))
    with serving(supervisor) as client:
        yield client


@pytest.fixture
def client(server: Client) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"http://127.0.0.1:{server.port}/v1", api_key=CLIENT_TOKEN, max_retries=0, timeout=60
    ) as client:
        yield client


def _runs(server: Client) -> list[Any]:
    return server.get("/api/v1/runs").json["runs"]


def test_teams_are_models(client: openai.OpenAI) -> None:
    """All that are offered, and the small one; an unknown one is 404 in OpenAI's shape."""
    names = [model.id for model in client.models.list()]
    assert {"team/general", "chargehand/small", MODEL} <= {*names}
    assert client.models.retrieve("team/general").owned_by == "chargehand"
    with pytest.raises(openai.NotFoundError) as raised:
        client.chat.completions.create(model="team/nothing", messages=ASK)
    assert raised.value.code == "model_not_found"


def test_an_answer_with_its_usage(client: openai.OpenAI, server: Client) -> None:
    """A run is carried out, and its answer comes back; it is an ordinary run."""
    reply = client.chat.completions.create(model=MODEL, messages=ASK)
    assert reply.choices[0].message.content == "All is done [a] [b]."
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage is not None
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens > 0
    assert _runs(server)[0]["run"] == reply.id.removeprefix("chatcmpl-")


def test_a_stream_has_progress_then_the_answer_then_usage(client: openai.OpenAI) -> None:
    """The first byte comes at once; progress is reasoning, so that it is no part of the answer."""
    began = time.monotonic()
    stream = client.chat.completions.create(
        model=MODEL, messages=ASK, stream=True, stream_options={"include_usage": True}
    )
    chunks, first = list[Any](), 0.0
    for chunk in stream:
        first = first or time.monotonic() - began
        chunks.append(chunk)
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == "All is done [a] [b]."
    assert chunks[-1].usage.total_tokens > 0
    assert first < time.monotonic() - began


def test_a_conversation_is_a_follow_up(client: openai.OpenAI, server: Client) -> None:
    """The answer that a client sends back names its run; what is not known is given as material."""
    first = client.chat.completions.create(model=MODEL, messages=ASK)
    said = first.choices[0].message.content
    more: Any = [*ASK, {"role": "assistant", "content": said}, {"role": "user", "content": "And now do it again"}]
    second = client.chat.completions.create(model=MODEL, messages=more)
    request = _request(server, second.id)
    assert request["earlier"]["run"] == first.id.removeprefix("chatcmpl-") or request["earlier"]["answer"] == said
    other: Any = [*ASK, {"role": "assistant", "content": "Never said"}, {"role": "user", "content": "And now again"}]
    third = client.chat.completions.create(model=MODEL, messages=other)
    assert [each["name"] for each in _request(server, third.id)["material"]] == ["conversation.md"]


def _request(server: Client, id: str) -> dict[str, Any]:
    lines = server.get(f"/api/v1/runs/{id.removeprefix('chatcmpl-')}/events").body.decode().splitlines()
    return json.loads(lines[0])["request"]


def test_files_are_material_and_a_schema_is_a_typed_answer(client: openai.OpenAI, server: Client) -> None:
    """A text file arrives under its name; what is not text, or is an image, is refused."""
    data = f"data:text/plain;base64,{base64.b64encode(b'notes').decode()}"
    parts: Any = [
        {"type": "text", "text": "Do both parts"},
        {"type": "file", "file": {"filename": "n.txt", "file_data": data}},
    ]
    reply = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": parts}])
    assert [each["name"] for each in _request(server, reply.id)["material"]] == ["n.txt"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": 3},
        {"messages": []},
        {"messages": [{"role": "user", "content": ""}]},
        {"messages": [{"role": "wizard", "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_data": "%%%"}}]}]},
        {"messages": [{"role": "user", "content": "x" * 1_000_001}]},
        {"tool_choice": "required"},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
    ],
)
def test_what_cannot_be_done_is_refused_in_openais_shape(
    client: openai.OpenAI, server: Client, wrong: dict[str, Any]
) -> None:
    """Nothing runs, and the message says what to do."""
    before = len(_runs(server))
    with pytest.raises(openai.BadRequestError) as raised:
        _create(client, {"model": MODEL, "messages": ASK, **wrong})
    assert raised.value.body
    assert len(_runs(server)) == before


def _create(client: openai.OpenAI, fields: Any) -> None:
    client.chat.completions.create(**fields)


def test_titles_never_start_a_run(client: openai.OpenAI, server: Client) -> None:
    """A client's call for a title goes to the small model, whatever model it names."""
    before = len(_runs(server))
    title: Any = [{"role": "user", "content": "### Task:\nGenerate a concise, 3-5 word title with an emoji"}]
    for model in ("chargehand/small", MODEL):
        reply = client.chat.completions.create(model=model, messages=title)
        assert reply.choices[0].message.content == "A Short Title"
    assert len(_runs(server)) == before


@pytest.mark.slow
def test_a_client_that_is_gone_stops_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while, unless it said that the run is to continue in the background."""
    monkeypatch.setattr(follow_answer, "GONE_S", 0.2)
    slow = [{**ANSWERS[0], "delay_ms": 60_000}]
    with serving(make_supervisor(tmp_path, ScriptedModel(slow))) as server:
        address = f"http://127.0.0.1:{server.port}/v1"
        with openai.OpenAI(base_url=address, api_key=TOKEN, max_retries=0) as client:
            for background in (False, True):
                more = {"background": background}
                stream = client.chat.completions.create(model=MODEL, messages=ASK, stream=True, extra_body=more)
                next(iter(stream))
                stream.close()
        kept, stopped = _runs(server)
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and server.get(f"/api/v1/runs/{stopped['run']}").json["status"] != "cancelled":
            time.sleep(0.1)
        assert server.get(f"/api/v1/runs/{stopped['run']}").json["status"] == "cancelled"
        assert server.get(f"/api/v1/runs/{kept['run']}").json["status"] == "running"
        server.send("POST", f"/api/v1/runs/{kept['run']}/cancel")


def test_a_wrong_token_is_an_authentication_error(server: Client) -> None:
    """As the client expects it."""
    with (
        openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="wrong", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError),
    ):
        client.models.list()
    with openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key=TOKEN, max_retries=0) as owner:
        assert list(owner.models.list())


def test_the_answer_is_streamed_as_it_is_written(tmp_path: Path) -> None:
    """The first half arrives while the model has not written the second."""
    model = SlowWriter()
    with serving(make_supervisor(tmp_path, model)) as server, client_of(server) as client:
        text = ""
        for chunk in client.chat.completions.create(model=MODEL, messages=ASK, stream=True):
            piece = chunk.choices[0].delta.content or ""
            if piece and not text:
                model.let_go()  # it hangs here for ever if the half was held back
            text += piece
        assert text == ANSWER


def test_a_draft_that_is_sent_back_is_marked_and_the_conversation_continues(tmp_path: Path) -> None:
    """A line separates it from the answer; what the client was sent is known again as the answer of its run."""
    first = {"answer": "Nothing here rests on any result at all, sorry.", "confidence": 80}
    sent_back = {"when": {"role": "synthesizer"}, "reply": {"json": first}, "times": 1}
    model = SlowWriter([*ANSWERS[:2], sent_back, ANSWERS[2]])
    with serving(make_supervisor(tmp_path, model)) as server, client_of(server) as client:
        text, run = "", ""
        for chunk in client.chat.completions.create(model=MODEL, messages=ASK, stream=True):
            run = chunk.id.removeprefix("chatcmpl-")
            if piece := chunk.choices[0].delta.content:
                model.let_go()
                text += piece
        draft, _, answer = text.partition(follow_answer.withdrawal())
        assert draft.startswith("Nothing here rests")
        assert answer == ANSWER
        more: Any = [*ASK, {"role": "assistant", "content": text}, {"role": "user", "content": "And now do it again"}]
        again = client.chat.completions.create(model=MODEL, messages=more)
        assert _request(server, again.id)["earlier"]["run"] == run
