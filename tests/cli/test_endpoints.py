"""A key goes only to the endpoint it was configured with, also when a run is resumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargehand.errors import UsageError
from chargehand.settings import Settings, check_endpoints, load_settings
from tests.cli.terminal import Shell, plan, task
from tests.loopback import Answer, Seen, answer_json, error, serving

KEY = {"OPENAI_API_KEY": "key-of-somebody-else"}
DOWN = "http://127.0.0.1:9/v1"


def settings(home: Path, model: str | None = "openai:m", **env: str) -> Settings:
    return load_settings({"CHARGEHAND_HOME": str(home), **env}, home, {"model": model})[0]


def test_a_resumed_run_does_not_get_a_key_of_another_endpoint(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 2 names both endpoints and the remedy; the old endpoint sees nothing of the new key."""

    def answer(seen: Seen) -> Answer:
        return answer_json(plan(task("t1"), task("t2"))) if seen.role == "planner" else error(400)

    with serving(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-test")
        assert shell("run", "Say it", "--model", "openai:m").code == 1
        asked = len(server.requests)
        monkeypatch.delenv("OPENAI_BASE_URL")
        monkeypatch.setenv("OPENAI_API_KEY", KEY["OPENAI_API_KEY"])
        got = shell("resume", "last", "--retry-failed")
        assert got.code == 2
        for part in (f"{server.url}/v1", "https://api.openai.com/v1", "export OPENAI_BASE_URL=", "chargehand rerun "):
            assert part in got.complaint
        assert len(server.requests) == asked
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        assert shell("resume", "last", "--retry-failed").code == 1
        assert len(server.requests) > asked
    # A run that has ended still shows its answer: no key is sent for that.
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert shell("resume", "last").code == 1


def test_only_endpoints_of_keys_that_would_be_sent_are_compared(tmp_path: Path) -> None:
    """Another provider's endpoint, one without a key, and one nobody names now are no obstacle."""
    before, now = settings(tmp_path, OPENAI_BASE_URL=DOWN, **KEY), settings(tmp_path, **KEY)
    with pytest.raises(UsageError, match=r"started with openai at http://127\.0\.0\.1:9/v1, but OPENAI_API_KEY is now"):
        check_endpoints("r", before, now, (), KEY)
    check_endpoints("r", before, now, (), {})
    check_endpoints("r", before, before, (), KEY | {"OPENAI_BASE_URL": DOWN})
    local = settings(tmp_path, "ollama:m", OPENAI_BASE_URL=DOWN, **KEY)
    check_endpoints("r", local, now, (), KEY)


def test_the_models_of_roles_tiers_and_workers_count(tmp_path: Path) -> None:
    """Wherever the run may send the key from."""
    before = settings(tmp_path, None, OPENAI_BASE_URL=DOWN, ANTHROPIC_API_KEY="a-key-of-mine")
    now = settings(tmp_path, None, **KEY)
    check_endpoints("r", before, now, (), KEY)
    with pytest.raises(UsageError, match="openai at"):
        check_endpoints("r", before, now, ("openai:m",), KEY)


def test_a_provider_of_ones_own_names_its_table_as_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same key variable, another base_url in the file."""
    table = '[providers.lab]\nbase_url = "{}"\nkey_env = "LAB_KEY"\n'
    (tmp_path / "config.toml").write_text(table.format("http://one.test/v1"))
    before = settings(tmp_path, "lab:m")
    (tmp_path / "config.toml").write_text(table.format("http://two.test/v1"))
    with pytest.raises(
        UsageError, match=r"one\.test/v1, but LAB_KEY is now for http://two\.test/v1.*\[providers\.lab\]"
    ):
        check_endpoints("r", before, settings(tmp_path, "lab:m"), (), {"LAB_KEY": "a-key-of-mine"})
    (tmp_path / "config.toml").unlink()
    # Nobody names another endpoint for this key now: it goes where it was configured to go.
    check_endpoints("r", before, settings(tmp_path, "ollama:m"), (), {"LAB_KEY": "a-key-of-mine"})


# --- rerun ----------------------------------------------------------------------------------------------------------


def test_rerun_uses_the_model_that_was_forced_for_the_first_run(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the environment does not change who is asked."""
    assert shell("run", "Say it", "--model", shell.script()).code == 0
    assert shell("rerun", "last").code == 0
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-mine")
    monkeypatch.setenv("OPENAI_BASE_URL", DOWN)
    got = shell("rerun", "last", "--json")
    assert (got.code, got.json["status"]) == (0, "complete")
    assert "warning" not in got.err


def test_rerun_takes_another_model_from_the_flag_or_the_environment(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--model wins over CHARGEHAND_MODEL, and both over what the first run was given."""
    first = {"when": {"role": "synthesizer"}, "reply": {"json": {"answer": "First [t1, t2].", "confidence": 70}}}
    shell("run", "Say it", "--model", shell.script(first))
    other = shell.script(name="other.json")
    assert "All is" in shell("rerun", "last", "--model", other).out
    monkeypatch.setenv("CHARGEHAND_MODEL", shell.script(first, name="third.json"))
    assert shell("rerun", "last").out == "First [t1, t2].\n"


def test_rerun_tells_when_the_provider_changes_with_the_keys(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was forced then or now: the first key of the environment decides, but not silently."""

    def answer(seen: Seen) -> Answer:
        return error(400)

    with serving(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-mine")
        assert shell("run", "Say it").code == 1
        assert "asks models of" not in shell("rerun", "last").err
        monkeypatch.setenv("ANTHROPIC_API_KEY", "another-key-of-mine")
        got = shell("rerun", "last")
    assert "warning: This run asks models of anthropic; " in got.err
    assert "asked models of openai. Name a model to ask another." in got.err
