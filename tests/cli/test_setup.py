"""`models`, `teams`, `doctor`, `trust`, `schema`, `completion`: what is here, said without a secret or a call."""

from __future__ import annotations

import json
import re
import sys
import tomllib

import jsonschema
import pytest

from chargehand.cli.doctor import EXTRAS
from chargehand.cli.schemas import NAMES, schema_of
from chargehand.values.plan import Plan
from tests.cli.terminal import EXAMPLE, ROOT, Shell, plan, task
from tests.loopback import Answer, error, serving

KEY = "sk-ant-canary-0123456789abcdef"


def test_models_say_which_key_is_set_and_never_the_key(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """With prices and the date they are of."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    got = shell("models", "--json")
    assert got.json["models"][0]["key"] == {"variable": "ANTHROPIC_API_KEY", "set": True}
    assert got.json["models"][0]["price"]["input"] > 0
    assert got.json["prices_as_of"]
    text = shell("models")
    assert "ANTHROPIC_API_KEY is set" in text.out
    assert KEY not in got.out + text.out + text.err


def test_a_long_name_of_a_model_does_not_break_the_rows_of_a_terminal(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider and the end of the name are kept; the lines below are broken between words."""
    path = shell.write("a-script-of-a-user-with-a-long-name.json", {"replies": []})
    monkeypatch.setenv("CHARGEHAND_MODEL", f"scripted:{path}")
    monkeypatch.setenv("COLUMNS", "80")
    assert f"scripted:{path}  unknown" in shell("models").out
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True)
    shown = shell("models").out
    assert max(map(len, shown.splitlines())) <= 80
    assert re.search(r"^planner +scripted:….*-name\.json  unknown +32,000$", shown, re.MULTILINE)
    assert "--model of `run`" in shown


def test_doctor_online_says_that_a_script_is_not_to_be_reached(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, so that the option is seen to have been heard."""
    monkeypatch.setenv("CHARGEHAND_MODEL", f"scripted:{shell.write('script.json', {'replies': []})}")
    [online] = [each for each in shell("doctor", "--online", "--json").json["checks"] if each["name"] == "online"]
    assert online["state"] == "ok"
    assert online["detail"].endswith("script.json: a script, there is nothing to reach")


def test_models_without_any_say_how_to_get_one(shell: Shell) -> None:
    """Exit code 2, as for a missing key, and the variable of each provider's key."""
    got = shell("models")
    assert got.code == 2
    assert "ANTHROPIC_API_KEY is not set" in got.out
    assert "ollama" in got.out
    assert "No model is configured" in got.err
    listed = shell("models", "--json")
    assert (listed.code, listed.json["models"]) == (2, [])


def test_teams_lists_those_that_ship_and_those_in_the_folder(shell: Shell) -> None:
    """A team with problems is listed with them."""
    (shell.folder / "broken").mkdir()
    shell.write("broken/team.toml", "nme = 1\n")
    listed = {team["ref"]: team for team in shell("teams", "--json").json["teams"]}
    assert {worker["name"] for worker in listed["general"]["workers"]} == {
        "researcher",
        "analyst",
        "writer",
        "reviewer",
    }
    assert listed["broken"]["problems"]
    assert "general" in shell("teams").out


def test_doctor_finds_nothing_wrong_with_a_key(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is named and not shown."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    got = shell("doctor", "--json")
    assert (got.code, got.json["ok"]) == (0, True)
    assert {"name": "keys", "state": "ok", "detail": "OPENAI_API_KEY"} in got.json["checks"]
    assert KEY not in got.out


def test_doctor_names_what_is_missing(shell: Shell) -> None:
    """Without a model: exit code 1 and the remedy."""
    got = shell("doctor")
    assert got.code == 1
    assert "PROBLEM  models" in got.out
    assert "ANTHROPIC_API_KEY" in got.out


def test_doctor_names_the_extras_that_are_not_installed(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what needs them, and the line that installs them; it is no problem. The list is that of the package."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in ("mcp", "duckdb") else name)
    [extras] = [each for each in shell("doctor", "--json").json["checks"] if each["name"] == "extras"]
    assert extras["state"] == "note"
    assert extras["detail"] == "not installed: data (SQL in tools), mcp (`mcp`)\npip install 'chargehand[data,mcp]'"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    [extras] = [each for each in shell("doctor", "--json").json["checks"] if each["name"] == "extras"]
    assert extras["detail"].endswith("pip install 'chargehand[all]'")
    missing = {"xllamacpp", "temporalio"}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in missing else name)
    [extras] = [each for each in shell("doctor", "--json").json["checks"] if each["name"] == "extras"]
    assert extras["state"] == "ok"
    assert "pip install" not in extras["detail"], "they are optional"
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert EXTRAS.keys() == declared.keys() - {"all", "dev", "temporal-dev"}


def test_doctor_finds_an_endpoint_that_does_not_answer(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only with --online is anything contacted."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert shell("doctor").code == 0
    got = shell("doctor", "--online")
    assert got.code == 1
    assert "cannot reach openai at http://127.0.0.1:9/v1" in got.out


def test_doctor_does_not_call_an_endpoint_well_that_knows_no_such_address(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """404 for everything: there is a server, but not a provider."""
    with serving(lambda _: error(404)) as server:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        got = shell("doctor", "--online")
    assert got.code == 1
    assert "404" in got.out


def test_doctor_reaches_a_provider_by_the_proxy_and_the_ca_that_calls_use(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy that cannot be used is named as it is before a run; no key is sent to find that a server is there."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(lambda _: error(404, "nothing here")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        got = shell("doctor", "--online", "--json")
        assert [each["detail"] for each in got.json["checks"] if each["name"] == "online"] == [
            f"openai can be reached at {server.url}/v1"
        ]
        probe, *_ = [each for each in got.json["checks"] if each["name"] == "probe"]
        assert (probe["state"], got.code) == ("problem", 1)
        first = server.requests[0]
        assert (first.method, KEY in str(first.headers)) == ("GET", False)
        monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:9")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert "The proxy 'socks5://127.0.0.1:9' in the environment cannot be used" in shell("doctor", "--online").out


def test_doctor_says_what_a_model_can_do(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it lacks is a note with what follows; a key that is refused is a problem."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("CHARGEHAND_MODEL", "openai:some-model")
    with serving(lambda seen: Answer(raw=b"{}") if seen.method == "GET" else Answer(text="Hm.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        got = shell("doctor", "--online", "--json")
        states = {check["name"]: check["state"] for check in got.json["checks"]}
        assert (got.code, states["online"], states["tools"], states["schema"]) == (0, "ok", "note", "note")
    with serving(lambda _: error(401, "no such key")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        got = shell("doctor", "--online")
        assert (got.code, "PROBLEM  probe" in got.out, KEY in got.out) == (1, True, False)


def test_doctor_finds_settings_that_cannot_be_read(shell: Shell) -> None:
    """The other checks are still made."""
    shell.write("chargehand.toml", "modle = 1\n")
    got = shell("doctor", "--json")
    assert got.code == 1
    assert [check["name"] for check in got.json["checks"] if check["state"] == "problem"] == ["settings"]


def test_trust_is_given_listed_and_taken_back(shell: Shell) -> None:
    """A folder that was not trusted cannot lose it."""
    assert shell("trust", ".").code == 0
    assert shell("trust", "--list").out.split() == [str(shell.folder.resolve())]
    assert shell("trust", ".", "--remove").code == 0
    assert shell("trust", "--list").out == ""
    assert shell("trust", ".", "--remove").code == 2
    assert shell("trust").code == 2
    assert shell("trust", "nowhere").code == 2
    assert [shell(command, "x" * 5000).code for command in ("trust", "eval", "check")] == [2, 2, 2]


def test_an_untrusted_file_is_named_once_on_stderr(shell: Shell) -> None:
    """Its endpoint is ignored, the run goes on."""
    shell.write("chargehand.toml", '[providers.mine]\nbase_url = "http://127.0.0.1:9/v1"\n')
    got = shell("run", "Say it", "--model", shell.script())
    assert got.code == 0
    assert got.err.count("chargehand trust") == 1


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_schemas(shell: Shell, name: str) -> None:
    """Every one is printed and is valid itself."""
    jsonschema.Draft202012Validator.check_schema(shell("schema", name).json)


@pytest.mark.slow
def test_schemas_describe_what_is_printed(shell: Shell) -> None:
    """The report of a partial run, its outcomes and its events fit; a plan with a wrong field does not."""
    shell("run", "Compare", "--model", f"scripted:{EXAMPLE}")
    report = shell("show", "last", "--json").json
    del report["questions"]
    jsonschema.validate(report, schema_of("report"))
    for outcome in report["outcomes"]:
        jsonschema.validate(outcome, schema_of("outcome"))
    event = jsonschema.Draft202012Validator(schema_of("event"))
    for line in shell("trace", "last", "--format", "jsonl").out.splitlines():
        event.validate(json.loads(line))
    jsonschema.validate(json.loads(EXAMPLE.read_text()), schema_of("script"))
    jsonschema.validate(Plan.model_validate(plan(task("a"))).to_json(), schema_of("plan"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(plan({"id": "a", "wrker": "writer"}), schema_of("plan"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**report, "status": "fine"}, schema_of("report"))


def test_the_names_of_schemas_are_listed(shell: Shell) -> None:
    """Without a name."""
    assert shell("schema").out.split() == list(NAMES)


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_and_how_to_install_it(shell: Shell, name: str) -> None:
    """For each shell."""
    got = shell("completion", name)
    assert got.code == 0
    assert got.out.startswith("# To install: ")
    assert "_CHARGEHAND_COMPLETE" in got.out
