"""web_search asks the provider that has a key, and is not offered where there is none."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from chargehand import Team, Worker
from chargehand.runs.roster import roster
from chargehand.settings import Settings
from chargehand.tools import BUILTIN, ToolContext, call
from chargehand.tools.proxies import proxy_for
from chargehand.tools.web_search import BRAVE, TAVILY, searching
from chargehand.values.effect import ToolResult
from chargehand.workers.agent import Agent
from tests.loopback import Answer, Seen, serving

BRAVE_REPLY = {
    "type": "search",
    "web": {
        "results": [
            {"title": "A <strong>bold</strong> title", "url": "https://a.example/1", "description": "first\n page"},
            {"title": "B", "url": "https://b.example/2", "description": "x" * 900},
            {"title": "no url"},
            "nonsense",
        ]
    },
}
TAVILY_REPLY = {"query": "q", "results": [{"title": "T", "url": "https://t.example/", "content": "text", "score": 0.9}]}


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BRAVE_API_KEY", "TAVILY_API_KEY", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def search(answer: Answer, query: str = "q", **more: object) -> tuple[ToolResult, list[Seen]]:
    """What the tool says when both providers are a server that answers so, and what that server saw."""
    with serving(lambda _: answer) as server:
        tool = searching((replace(BRAVE, url=f"{server.url}/brave"), replace(TAVILY, url=f"{server.url}/tavily")))
        result = asyncio.run(call(tool, {"query": query, **more}, ToolContext()))
        return result, server.requests


def as_json(value: object, **more: object) -> Answer:
    return Answer(raw=json.dumps(value).encode(), **more)  # type: ignore[arg-type]


def test_brave_is_asked_in_its_own_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key goes in its header; titles, URLs and excerpts come back as a list."""
    monkeypatch.setenv("BRAVE_API_KEY", "brave-key")
    result, (seen,) = search(as_json(BRAVE_REPLY), "two  words & more", most=5)
    assert result.text == (
        f"1. A bold title\n   https://a.example/1\n   first page\n2. B\n   https://b.example/2\n   {'x' * 600}…"
    )
    assert (seen.method, urlsplit(seen.path).path) == ("GET", "/brave")
    assert parse_qs(urlsplit(seen.path).query) == {"q": ["two words & more"], "count": ["5"]}
    assert seen.headers["x-subscription-token"] == "brave-key"


def test_tavily_is_asked_in_its_own_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is the one with a key."""
    monkeypatch.setenv("TAVILY_API_KEY", "tavily-key")
    result, (seen,) = search(as_json(TAVILY_REPLY), "where")
    assert result.text == "1. T\n   https://t.example/\n   text"
    assert (seen.method, seen.path) == ("POST", "/tavily")
    assert seen.body == {"query": "where", "max_results": 8}
    assert seen.headers["authorization"] == "Bearer tavily-key"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (as_json({}, status=401), "unavailable"),
        (as_json({}, status=429), "unreachable"),
        (as_json({}, status=500), "unreachable"),
        (as_json({}, status=302, headers={"Location": "http://127.0.0.1:1/"}), "unreachable"),
        (Answer(raw=b"<html>"), "not_readable"),
        (as_json([1]), "not_readable"),
        (as_json({"web": [1]}), "not_readable"),
        (Answer(raw=b"[" * 100_000), "not_readable"),
        (Answer(raw=b"x" * 2_100_000), "too_large"),
        (Answer(reset=True), "unreachable"),
    ],
)
def test_a_provider_that_fails_is_named_without_the_key(
    answer: Answer, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line with the status, where there is one; the key is in none of them."""
    monkeypatch.setenv("BRAVE_API_KEY", "brave-key")
    result, _ = search(answer)
    assert result.error is not None
    assert result.code == code
    assert result.error.message.startswith(BRAVE.name)
    assert answer.status == 200 or str(answer.status) in result.error.message
    assert "brave-key" not in result.error.message


def test_nothing_found_and_bad_queries_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without asking anybody about a query that is none."""
    monkeypatch.setenv("BRAVE_API_KEY", "brave-key")
    for reply in ({"web": {"results": []}}, {}):
        nothing, _ = search(as_json(reply))
        assert nothing.ok
        assert "http" not in nothing.text
    for query in (" ", "x" * 401):
        result, seen = search(as_json({}), query)
        assert result.code == "wrong_arguments"
        assert not seen


def test_without_a_key_the_tool_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker does without, one line says so; with a key it has the tool."""
    team = Team([Worker("finder", "Finds things", tools=["web_search", "calculate"])])
    settings = Settings(home="unused", model="scripted:none.json")

    def held() -> list[str]:
        finder = roster(team, settings)["finder"]
        assert isinstance(finder, Agent)
        return list(finder.tools)

    assert held() == ["calculate"]
    (problem,) = team.problems()
    assert [name for name in ("finder", "web_search", "BRAVE_API_KEY") if name not in problem.message] == []
    called = asyncio.run(call(BUILTIN["web_search"], {"query": "x"}, ToolContext()))
    assert called.code == "unavailable"
    monkeypatch.setenv("TAVILY_API_KEY", "tavily-key")
    assert held() == ["web_search", "calculate"]
    assert Team(team.workers).problems() == []


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The endpoint is fixed, so there is nothing to check about its address."""
    monkeypatch.setenv("BRAVE_API_KEY", "brave-key")
    with serving(lambda _: as_json(BRAVE_REPLY)) as proxy:
        monkeypatch.setenv("http_proxy", f"127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "")
        tool = searching((replace(BRAVE, url="http://search.example.com/brave"),))
        assert asyncio.run(call(tool, {"query": "x"}, ToolContext())).error is None
        assert proxy.requests[0].path.startswith("http://search.example.com/brave?")
        assert proxy_for("http://a.example.org:81/", {"http": "p:1", "no": "x, .example.org"}) is None
        assert proxy_for("http://example.net/", {"all": "http://p:1", "no": "example.org"}) == "http://p:1"
        assert proxy_for("http://example.net/", {"https": "http://p:1"}) is None
