"""What a model and its server can do, found by asking, and what follows from it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from chargehand.errors import ModelError
from chargehand.models.probe import probe
from chargehand.models.resolve import Models
from tests.loopback import Answer, Handler, Seen, error, serve
from tests.models.asking import ALL, ANTHROPIC, OPENAI, environment, providers

CALL = (("add", {"a": 20, "b": 22}),)


def _able(seen: Seen) -> Answer:
    if seen.method == "GET":
        return Answer(raw=b'{"data": []}')
    return Answer(tools=CALL) if seen.body.get("tools") else Answer(text='{"sum": 42}', drip=0.005)


def _models_listed(entry: dict[str, Any], inner: Handler = _able) -> Handler:
    listed = json.dumps({"data": [entry, {"id": "another"}]}).encode()
    return lambda seen: Answer(raw=listed) if seen.method == "GET" else inner(seen)


def _probe(handler: Handler, model: str) -> dict[str, tuple[bool, str]]:
    async def main() -> dict[str, tuple[bool, str]]:
        async with serve(handler) as server:
            models = Models(providers(server.url), environment(server.url))
            try:
                return {each.name: (each.well, each.says) async for each in probe(models, model)}
            finally:
                await models.close()

    return asyncio.run(main())


@pytest.mark.parametrize("model", ALL)
def test_an_able_server_does_it_all(model: str) -> None:
    """Streaming, tools, schema and both, on each wire."""
    found = _probe(_able, model)
    assert [name for name, (well, _) in found.items() if well][:4] == ["streaming", "tools", "schema", "both"]


def test_what_a_server_lacks_is_named_with_what_follows() -> None:
    """Each of them is a note, none an error."""
    found = _probe(
        lambda seen: Answer(raw=b"{}") if seen.method == "GET" else Answer(text="Hm.", streams=False), OPENAI
    )
    assert {name for name, (well, _) in found.items() if not well} == {"streaming", "tools", "schema", "both", "window"}
    assert "first_event_s" in found["streaming"][1]
    assert "another model" in found["tools"][1]
    assert "asked for again once" in found["schema"][1]
    assert "32,000 tokens are assumed: set window in [providers.openai]" in found["window"][1]


@pytest.mark.parametrize(
    ("entry", "well", "says"),
    [
        ({"id": "some-model", "max_model_len": 8_192}, False, "set window in [providers.openai] to 8192"),
        ({"id": "some-model", "context_length": 131_072}, True, "holds 131,072 tokens; only 32,000 are used"),
        ({"id": "some-model", "meta": {"n_ctx": 4_096}}, False, "holds 4,096 tokens"),
        ({"id": "not it", "max_model_len": 8_192}, False, "does not say"),
        ({"id": "some-model", "max_model_len": "many"}, False, "does not say"),
    ],
)
def test_the_window_is_read_from_the_list_of_models(entry: dict[str, Any], well: bool, says: str) -> None:
    """Under the names that servers have for it; less than counted on is said with the setting."""
    found = _probe(_models_listed(entry), OPENAI)
    assert found["window"][0] is well
    assert says in found["window"][1]


def test_a_known_window_is_kept() -> None:
    """The table knows the model: a server that says nothing is not needed."""
    assert _probe(_able, ANTHROPIC)["window"] == (True, "holds 200,000 tokens")


def test_the_key_does_not_follow_a_redirect() -> None:
    """The list of models is asked for at the endpoint and nowhere else."""
    gets: list[str] = []

    def handler(seen: Seen) -> Answer:
        if seen.method != "GET":
            return _able(seen)
        gets.append(seen.path)
        return Answer(status=302, raw=b"", headers={"Location": "/elsewhere"})

    _probe(handler, OPENAI)
    assert gets == ["/v1/models"]


def test_a_model_that_does_not_answer_is_an_error() -> None:
    """A wrong key ends it at the first call."""
    with pytest.raises(ModelError) as caught:
        _probe(lambda _: error(401, "no such key"), OPENAI)
    assert caught.value.kind == "auth"
