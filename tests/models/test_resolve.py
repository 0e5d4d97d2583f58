"""A model string finds its provider, key, price and window, or says what is missing."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from chargehand.errors import MissingKey, UsageError
from chargehand.models import prices
from chargehand.models.prices import Price
from chargehand.models.resolve import Models, Provider, built_in
from chargehand.models.scripted import ScriptedModel
from chargehand.values.message import TokenCount
from tests.loopback import ok, serve
from tests.models.asking import KEY, a_call, put


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("anthropic:claude-sonnet-5-5", "ANTHROPIC_API_KEY"),
        ("openai:gpt-6-sol", "OPENAI_API_KEY"),
        ("openrouter:a/b", "OPENROUTER_API_KEY"),
    ],
)
def test_a_missing_key_names_the_variable(model: str, variable: str) -> None:
    """Without its key a model is refused before any call, with the line to type; an empty key is none."""
    for env in ({}, {variable: " "}):
        with pytest.raises(MissingKey, match=f"export {variable}="):
            Models({}, env).check(model)
    Models({}, {variable: "k"}).check(model)


def test_openai_needs_its_key_at_any_address() -> None:
    """A base URL of one's own does not make OpenAI's key optional."""
    with pytest.raises(MissingKey):
        Models({}, {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}).check("openai:m")


def test_ollama_needs_no_key() -> None:
    """Local models are ready as they are."""
    Models({}, {}).check("ollama:llama4:8b")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("claude-sonnet-5-5", "did you mean anthropic:claude-sonnet-5-5?"),
        ("gpt-6-sol", "did you mean openai:gpt-6-sol?"),
        (
            "llama4",
            "write PROVIDER:NAME with one of anthropic, openai, gemini, openrouter, embedded, ollama, lmstudio, vllm, ",
        ),
        ("antropic:claude-opus-5", "did you mean anthropic:claude-opus-5?"),
        ("embeded:tiny", "did you mean embedded:tiny?"),
        ("openai:", "write openai:NAME"),
        ("", "names no provider"),
    ],
)
def test_a_model_nobody_serves_gets_a_suggestion(model: str, said: str) -> None:
    """The error says what was meant, or what there is."""
    with pytest.raises(UsageError) as caught:
        Models({}, {"OPENAI_API_KEY": "k"}).check(model)
    assert said in str(caught.value)


BAD_URLS = (
    "", "localhost:1234", "ftp://x/v1", "http://", "http://[::1", "http://h:99999/v1", "http://h:x/v1", "http://a b/v1",
    f"http://me:{KEY}@host/v1",
)  # fmt: skip


@pytest.mark.parametrize("base_url", BAD_URLS)
def test_a_wrong_base_url_is_a_usage_error(base_url: str) -> None:
    """The provider and the address are named, credentials in it are not shown."""
    models = Models({"mine": Provider(name="mine", base_url=base_url, wire="openai")}, {})
    with pytest.raises(UsageError, match="provider mine") as caught:
        models.check("mine:m")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "http://", "http://[", f"ftp://me:{KEY}@host"])
def test_a_proxy_that_cannot_be_used_is_a_usage_error(proxy: str) -> None:
    """It is found before any call; credentials in it are not shown."""
    with pytest.raises(UsageError, match="HTTPS_PROXY") as caught:
        Models({}, {"OPENAI_API_KEY": "k", "HTTPS_PROXY": proxy}).check("openai:m")
    assert KEY not in str(caught.value)


def test_a_key_no_header_can_hold_is_a_usage_error() -> None:
    """A key with odd characters is refused here, unshown; spaces and line breaks around it are cut."""
    with pytest.raises(UsageError, match="OPENAI_API_KEY") as caught:
        Models({}, {"OPENAI_API_KEY": "sk-\nsecret"}).check("openai:m")
    assert "secret" not in str(caught.value)
    Models({}, {"OPENAI_API_KEY": "sk-fine\n"}).check("openai:m")


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_a_key_goes_only_to_its_own_endpoint(wire: str) -> None:
    """A provider without a key variable sees no key, whatever the environment holds."""

    async def main() -> dict[str, str]:
        async with serve(ok) as server:
            provider = Provider.model_validate({"name": "mine", "base_url": f"{server.url}/v1/", "wire": wire})
            env = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}
            await put(Models({"mine": provider}, env), a_call("mine:m"))
            assert server.requests[0].path == ("/v1/messages" if wire == "anthropic" else "/v1/chat/completions")
            return server.requests[0].headers

    headers = asyncio.run(main())
    assert KEY not in json.dumps(headers)
    assert not {"authorization", "x-api-key"} & headers.keys()


def test_one_client_serves_a_provider(tmp_path: Path) -> None:
    """Clients are made once for a provider and once for a script."""
    script = tmp_path / "s.json"
    script.write_text('{"replies": []}')
    models = Models({}, {"OPENAI_API_KEY": "k"})
    assert models.client("openai:a") is models.client("openai:b")
    assert models.client(f"scripted:{script}") is models.client(f"scripted:{script}")


def test_scripts_can_be_given_in_memory() -> None:
    """A script by name needs no file."""
    script = ScriptedModel([])
    models = Models({}, {}, scripts={"demo": script})
    assert models.client("scripted:demo") is script
    asyncio.run(models.close())


def test_settings_win_over_built_in_providers() -> None:
    """A provider of one's own with a known name replaces it."""
    mine = Provider(name="ollama", base_url="http://gpu.test/v1", wire="openai")
    assert Models({"ollama": mine}, {}).providers["ollama"] == mine
    assert built_in({"ANTHROPIC_BASE_URL": "http://x"})["anthropic"].base_url == "http://x"


def test_every_default_is_priced() -> None:
    """The dated tables agree: a default of Anthropic or OpenAI has a price and a window."""
    models = Models({}, {})
    for provider in ("anthropic", "openai"):
        for tier in ("small", "medium", "large"):
            model = prices.default_model(provider, tier)
            assert model is not None
            assert models.price(model) is not None
            assert models.window(model) > prices.UNKNOWN_WINDOW


def test_an_unknown_model_has_no_price_and_a_small_window() -> None:
    """Unknown is None, never 0; the window is the cautious default."""
    models = Models({}, {})
    for model in ("openai:brand-new", "ollama:gpt-5", "scripted:x"):
        assert models.price(model) is None
        assert models.window(model) == 32_000


def test_a_dated_snapshot_has_its_models_price() -> None:
    """A snapshot's name ends in a date; a longer name is another model."""
    models = Models({}, {})
    assert models.price("anthropic:claude-sonnet-4-5-20250929") == models.price("anthropic:claude-sonnet-4-5")
    assert models.price("openai:gpt-4o-2024-08-06") == models.price("openai:gpt-4o")
    assert models.price("openai:gpt-4o-audio") is None


def test_cached_tokens_cost_their_own_rate() -> None:
    """Cached tokens are part of the input and cost less; long calls cost the long rates as a whole."""
    long = Price(input=6, output=20, cached=0.6)
    price = Price(input=3, output=15, cached=0.3, long_after=1_000_000, long=long)
    count = TokenCount(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000)
    assert price.usd(count) == pytest.approx(0.6 * 3 + 0.4 * 0.3 + 0.1 * 15)
    longer = TokenCount(input_tokens=2_000_000, output_tokens=0, cached_tokens=0)
    assert price.usd(longer) == pytest.approx(12)


def test_gemini_is_priced_by_the_length_of_the_call() -> None:
    """Its Pro models cost more over 200,000 tokens; a model that Google does not list has no price."""
    price = Models({}, {}).price("gemini:gemini-2.5-pro")
    assert price is not None
    assert price.usd(TokenCount(input_tokens=200_000, output_tokens=1_000)) == pytest.approx(0.25 + 0.01)
    assert price.usd(TokenCount(input_tokens=400_000, output_tokens=1_000)) == pytest.approx(1.0 + 0.015)
    assert Models({}, {}).price("gemini:gemini-9") is None


def test_listed_prices_are_whole() -> None:
    """Every listed model has positive prices, cached at most as dear as fresh."""
    for model, price, window in prices.list_models():
        assert 0 < price.cached <= price.input < price.output, model
        assert window >= 100_000


def test_importing_the_lookup_does_not_import_aiohttp() -> None:
    """aiohttp is loaded at the first call, not before."""
    code = "import sys, chargehand.models.resolve; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
