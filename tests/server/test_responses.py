"""OpenAI's responses, driven by the official client over real HTTP."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from chargehand.server import follow_answer
from chargehand.testing import ScriptedModel
from tests.lazy_module import LazyModule
from tests.pace import PATIENCE_S
from tests.server.openai_clients import ANSWER, MODEL, REQUEST, SlowWriter, client_of
from tests.server.serving import ANSWERS, CLIENT_TOKEN, TOKEN, Client, make_supervisor, serving

openai = LazyModule("openai")
TYPED = {
    "when": {"role": "synthesizer", "contains": "cities"},
    "reply": {"json": {"answer": "Both [a] [b].", "data": {"cities": ["Oslo"]}, "confidence": 80}},
}
SMALL: dict[str, Any] = {"when": {"contains": "3-5 word title"}, "reply": {"text": "A Short Title"}}
CITIES = {
    "type": "object",
    "properties": {"cities": {"type": "array", "items": {"type": "string"}}},
    "required": ["cities"],
    "additionalProperties": False,
}
# A first draft that cites nothing is sent back; the second holds.
REWRITTEN: list[dict[str, Any]] = [
    *ANSWERS[:2],
    {
        "when": {"role": "synthesizer"},
        "reply": {"json": {"answer": "Nothing here rests on any result at all, sorry.", "confidence": 80}},
        "times": 1,
    },
    ANSWERS[2],
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    supervisor = make_supervisor(tmp_path_factory.mktemp("home"), ScriptedModel([SMALL, TYPED, *ANSWERS]))
    with serving(supervisor) as client:
        yield client


@pytest.fixture
def client(server: Client) -> Iterator[openai.OpenAI]:
    with client_of(server) as client:
        yield client


def _request(server: Client, id: str) -> dict[str, Any]:
    lines = server.get(f"/api/v1/runs/{id.removeprefix('resp_')}/events").body.decode().splitlines()
    return json.loads(lines[0])["request"]


def _runs(server: Client) -> list[Any]:
    return server.get("/api/v1/runs").json["runs"]


def _wait(client: openai.OpenAI, id: str, *until: str) -> Any:
    end = time.monotonic() + PATIENCE_S
    while (found := client.responses.retrieve(id)).status not in until:
        assert time.monotonic() < end, found.status
        time.sleep(0.05)
    return found


def test_a_response_with_its_usage(client: openai.OpenAI) -> None:
    """A run is carried out; its answer comes back, also when the response is asked for again by its id."""
    made = client.responses.create(model=MODEL, input=REQUEST, metadata={"for": "me"}, instructions="Be brief.")
    assert (made.status, made.output_text, made.metadata) == ("completed", ANSWER, {"for": "me"})
    assert made.usage is not None
    assert made.usage.total_tokens == made.usage.input_tokens + made.usage.output_tokens > 0
    again = client.responses.retrieve(made.id)
    assert again.model_dump(exclude={"usage"}) == made.model_dump(exclude={"usage"})


def test_a_stream_has_progress_then_the_answer_then_the_whole(client: openai.OpenAI) -> None:
    """Items open and close in order, and events are numbered without a hole."""
    with client.responses.stream(model=MODEL, input=REQUEST) as stream:
        events: list[Any] = list(stream)
        final = stream.get_final_response()
    kinds = [event.type for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert [event.sequence_number for event in events] == [*range(len(events))]
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == ANSWER
    assert final.output_text == ANSWER
    assert final.usage is not None


def test_the_answer_is_streamed_as_it_is_written(tmp_path: Path) -> None:
    """The first half arrives while the model has not written the second."""
    model = SlowWriter()
    with serving(make_supervisor(tmp_path, model)) as server, client_of(server) as client:
        text = ""
        for event in client.responses.create(model=MODEL, input=REQUEST, stream=True):
            if event.type == "response.output_text.delta":
                if not text:
                    model.let_go()  # it hangs here for ever if the half was held back
                text += event.delta
        assert text == ANSWER


def test_a_draft_that_is_sent_back_is_not_in_the_response(tmp_path: Path) -> None:
    """What was streamed of it is an item that was not completed; the response has the answer alone."""
    model = SlowWriter(REWRITTEN)
    with serving(make_supervisor(tmp_path, model)) as server, client_of(server) as client:
        items, final = list[Any](), None
        for event in client.responses.create(model=MODEL, input=REQUEST, stream=True):
            if event.type == "response.output_text.delta":
                model.let_go()
            if event.type == "response.output_item.done" and event.item.type == "message":
                items.append((event.item.status, event.item.content[0].text))  # pyright: ignore[reportAttributeAccessIssue]
            if event.type == "response.completed":
                final = event.response
    assert [status for status, _ in items] == ["incomplete", "completed"]
    assert items[0][1].startswith("Nothing here rests")
    assert final is not None
    assert final.output_text == items[1][1] == ANSWER


def test_a_response_follows_up_on_the_one_before(client: openai.OpenAI, server: Client) -> None:
    """By the id of the response, or in a conversation."""
    first = client.responses.create(model=MODEL, input=REQUEST)
    second = client.responses.create(model=MODEL, input="And now again", previous_response_id=first.id)
    assert _request(server, second.id)["earlier"]["run"] == first.id.removeprefix("resp_")
    assert second.previous_response_id == first.id
    talk = client.conversations.create(metadata={"topic": "work"})
    assert client.conversations.retrieve(talk.id) == talk
    third = client.responses.create(model=MODEL, input=REQUEST, conversation=talk.id)
    fourth = client.responses.create(model=MODEL, input="And now again", conversation={"id": talk.id})
    assert "earlier" not in _request(server, third.id) or _request(server, third.id)["earlier"] is None
    assert _request(server, fourth.id)["earlier"]["run"] == third.id.removeprefix("resp_")
    assert fourth.conversation is not None
    assert fourth.conversation.id == talk.id


def test_a_history_that_is_sent_along_is_a_follow_up(client: openai.OpenAI, server: Client) -> None:
    """The output that a client sends back names its run."""
    first = client.responses.create(model=MODEL, input=REQUEST)
    history: Any = [
        {"role": "user", "content": REQUEST},
        *[item.model_dump() for item in first.output],
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And now again"}]},
    ]
    second = client.responses.create(model=MODEL, input=history)
    assert _request(server, second.id)["earlier"]["run"] == first.id.removeprefix("resp_")


def test_files_are_material_and_a_schema_is_a_typed_answer(client: openai.OpenAI, server: Client) -> None:
    """A text file arrives under its name; the text of the answer is JSON of the schema."""
    data = f"data:text/plain;base64,{base64.b64encode(b'notes').decode()}"
    parts: Any = [
        {"type": "input_text", "text": "Which cities are there?"},
        {"type": "input_file", "filename": "n.txt", "file_data": data},
    ]
    format: Any = {"format": {"type": "json_schema", "name": "cities", "schema": CITIES}}
    made = client.responses.create(model=MODEL, input=[{"role": "user", "content": parts}], text=format)
    assert [each["name"] for each in _request(server, made.id)["material"]] == ["n.txt"]
    assert json.loads(made.output_text) == {"cities": ["Oslo"]}


@pytest.mark.slow
def test_background_is_asked_for_again_and_survives_the_server(tmp_path: Path) -> None:
    """The id is good after a restart, and the next server carries the run out."""
    slow = [{**ANSWERS[0], "delay_ms": 60_000}]
    with serving(make_supervisor(tmp_path, ScriptedModel(slow))) as server, client_of(server) as client:
        made = client.responses.create(model=MODEL, input=REQUEST, background=True)
        assert made.status in ("queued", "in_progress")
        assert client.responses.retrieve(made.id).status in ("queued", "in_progress")
    with serving(make_supervisor(tmp_path)) as server, client_of(server) as client:
        assert _wait(client, made.id, "completed").output_text == ANSWER
        # What is over stays as it is.
        assert client.responses.cancel(made.id).output_text == ANSWER


def test_a_response_in_the_background_is_cancelled(tmp_path: Path) -> None:
    slow = [{**ANSWERS[0], "delay_ms": 60_000}]
    with serving(make_supervisor(tmp_path, ScriptedModel(slow))) as server, client_of(server) as client:
        made = client.responses.create(model=MODEL, input=REQUEST, background=True)
        client.responses.cancel(made.id)
        assert _wait(client, made.id, "cancelled").output == []
        assert server.get(f"/api/v1/runs/{made.id.removeprefix('resp_')}").json["status"] == "cancelled"


@pytest.mark.slow
def test_a_client_that_is_gone_stops_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while, unless it said that the run is to continue in the background."""
    monkeypatch.setattr(follow_answer, "GONE_S", 0.2)
    slow = [{**ANSWERS[0], "delay_ms": 60_000}]
    with serving(make_supervisor(tmp_path, ScriptedModel(slow))) as server, client_of(server) as client:
        ids = list[str]()
        for background in (False, True):
            stream = client.responses.create(model=MODEL, input=REQUEST, stream=True, background=background)
            first: Any = next(iter(stream))
            ids.append(first.response.id)
            stream.close()
        _wait(client, ids[0], "cancelled")
        assert client.responses.retrieve(ids[1]).status == "in_progress"
        client.responses.cancel(ids[1])


def test_a_run_that_fails_is_a_failed_response_and_is_not_sent_again(tmp_path: Path) -> None:
    """The client's own retries would pay for the same failure three times."""
    broken = [{"when": {}, "reply": {"error": {"status": 400, "message": "no such thing"}}}]
    with serving(make_supervisor(tmp_path, ScriptedModel(broken))) as server, client_of(server) as client:
        made = client.responses.create(model=MODEL, input=REQUEST)
        assert made.status == "failed"
        assert made.error is not None
        assert made.id.removeprefix("resp_") in made.error.message
        kinds = [event.type for event in client.responses.create(model=MODEL, input=REQUEST, stream=True)]
        assert kinds[-1] == "response.failed"
        with pytest.raises(openai.InternalServerError):
            client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": REQUEST}])
        assert len(_runs(server)) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"input": []}, "input"),
        ({"input": ""}, "input"),
        ({"input": 3}, "input"),
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "input[0]"),
        ({"input": [{"role": "wizard", "content": "x"}]}, "input[0]"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:,"}]}]},
            "input[0].content[0]",
        ),
        ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}, "input[0].content[0]"),
        ({"input": "x" * 1_000_001}, "input"),
        ({"input": [{"role": "user", "content": "x"}] * 10_001}, "input"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "response_format"),
        ({"previous_response_id": "resp_unknown"}, "previous_response_id"),
        ({"previous_response_id": "../../etc"}, "previous_response_id"),
        ({"conversation": "c", "previous_response_id": "resp_x"}, "conversation"),
        ({"conversation": 3}, "conversation"),
        ({"metadata": "x"}, "metadata"),
    ],
)
def test_what_cannot_be_done_is_refused_in_openais_shape(
    client: openai.OpenAI, server: Client, wrong: dict[str, Any], param: str
) -> None:
    """Nothing runs, and the error names the field."""
    before = len(_runs(server))
    with pytest.raises(openai.BadRequestError) as raised:
        _create(client, {"model": MODEL, "input": REQUEST, **wrong})
    assert raised.value.param == param
    assert len(_runs(server)) == before


def _create(client: openai.OpenAI, fields: Any) -> None:
    client.responses.create(**fields)


@pytest.mark.parametrize("id", ["resp_unknown", "nothing", "resp_..", "resp_"])
def test_an_unknown_id_is_not_found(client: openai.OpenAI, id: str) -> None:
    for ask in (client.responses.retrieve, client.responses.cancel):
        with pytest.raises(openai.NotFoundError):
            ask(id)
    with pytest.raises(openai.NotFoundError):
        client.conversations.retrieve(id)
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="team/nothing", input=REQUEST)


def test_a_client_does_not_see_the_responses_of_the_owner(server: Client, client: openai.OpenAI) -> None:
    """Neither by its id, nor as what came before, nor its conversation; the owner sees those of clients."""
    with client_of(server, TOKEN) as owner:
        mine, talk = owner.responses.create(model=MODEL, input=REQUEST), owner.conversations.create()
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(mine.id)
        with pytest.raises(openai.BadRequestError):
            client.responses.create(model=MODEL, input=REQUEST, previous_response_id=mine.id)
        with pytest.raises(openai.NotFoundError):
            client.responses.create(model=MODEL, input=REQUEST, conversation=talk.id)
        theirs = client.responses.create(model=MODEL, input=REQUEST)
        assert owner.responses.retrieve(theirs.id).status == "completed"


def test_titles_never_start_a_run(client: openai.OpenAI, server: Client) -> None:
    """Whole or as a stream."""
    before = len(_runs(server))
    ask = "### Task:\nGenerate a concise, 3-5 word title with an emoji"
    assert client.responses.create(model=MODEL, input=ask).output_text == "A Short Title"
    with client.responses.stream(model=MODEL, input=ask) as stream:
        assert stream.get_final_response().output_text == "A Short Title"
    assert len(_runs(server)) == before


@pytest.mark.slow
def test_ten_calls_at_once_each_get_their_answer(server: Client) -> None:
    """More than the server carries out at once; those of both addresses."""

    def ask(number: int) -> tuple[str, str]:
        with client_of(server) as client:
            if number % 2:
                made = client.responses.create(model=MODEL, input=f"{REQUEST}, number {number}")
                return made.id.removeprefix("resp_"), made.output_text
            chat = client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": f"{REQUEST}, number {number}"}]
            )
            return chat.id.removeprefix("chatcmpl-"), chat.choices[0].message.content or ""

    with ThreadPoolExecutor(10) as threads:
        got = list(threads.map(ask, range(10)))
    assert {text for _, text in got} == {ANSWER}
    assert len({run for run, _ in got}) == 10
    for number, (run, _) in enumerate(got):
        assert _request(server, run)["text"] == f"{REQUEST}, number {number}"


@pytest.mark.slow
def test_a_huge_history_is_material(server: Client, client: openai.OpenAI) -> None:
    """Nine thousand messages, five megabytes: read off the loop, kept as one file."""
    said: Any = [{"role": ("user", "assistant")[n % 2], "content": f"{n} {'x' * 500}"} for n in range(9_000)]
    made = client.responses.create(model=MODEL, input=[*said, {"role": "user", "content": REQUEST}])
    assert made.output_text == ANSWER
    (file,) = _request(server, made.id)["material"]
    assert file["name"] == "conversation.md"
    kept = server.server.home.path / "runs" / made.id.removeprefix("resp_") / "material" / "conversation.md"
    assert kept.stat().st_size > 4_500_000


def test_a_body_that_is_no_json_or_too_large_is_refused(server: Client) -> None:
    for path in ("/v1/responses", "/v1/chat/completions"):
        for body, status in ((b"{", 400), (b"[]", 400), (b"", 400), (b" " * (32 * 2**20 + 1), 413)):
            answer = server.send("POST", path, body, token=CLIENT_TOKEN)
            assert (answer.status, set(answer.json["error"])) == (status, {"message", "type", "param", "code"})
