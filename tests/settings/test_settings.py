"""Flags over environment over files, and what a file in the working tree may not set."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from chargehand.errors import MissingKey, StorageError, UsageError
from chargehand.record.trusted_folders import TrustRegistry
from chargehand.settings import Limits, ModelSettings, RoleModel, Settings, load_settings
from chargehand.values.budget import Budget


class Place:
    """A home and a working tree with a .git on a fresh path."""

    def __init__(self, root: Path) -> None:
        self.home, self.tree = root / "home", root / "tree"
        self.home.mkdir()
        (self.tree / ".git").mkdir(parents=True)
        self.env = {"CHARGEHAND_HOME": str(self.home)}

    def own(self, text: str) -> None:
        (self.home / "config.toml").write_text(text)

    def project(self, text: str, name: str = "chargehand.toml") -> None:
        (self.tree / name).write_text(text)

    def trust(self) -> None:
        TrustRegistry(str(self.home)).trust(self.tree)

    def load(
        self, cwd: Path | None = None, env: dict[str, str] | None = None, **flags: Any
    ) -> tuple[Settings, list[str]]:
        return load_settings({**self.env, **(env or {})}, cwd or self.tree, flags)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_without_anything_set_the_defaults_of_the_contract_hold(place: Place) -> None:
    """500,000 tokens, no money limit, no deadline, 8 at once, 1,000 tasks, the general team, no model."""
    settings, warnings = place.load()
    assert settings.budget == Budget(tokens=500_000)
    assert (settings.deadline_s, settings.max_concurrent, settings.max_tasks) == (None, 8, 1000)
    assert (settings.team, settings.home, settings.tiers, warnings) == ("general", str(place.home), {}, [])


def test_without_a_model_the_error_lists_the_ways(place: Place) -> None:
    """The remedy names a key to export, a model without a key and a scripted one."""
    settings, _ = place.load()
    with pytest.raises(MissingKey) as caught:
        settings.model_for("planner")
    for way in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "--model", "model=", "ollama:llama3.1", "scripted:FILE"):
        assert way in str(caught.value)


def test_the_anthropic_key_comes_before_the_openai_key(place: Place) -> None:
    """A key in the environment chooses its provider's default model for each tier."""
    both, _ = place.load(env={"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"})
    one, _ = place.load(env={"OPENAI_API_KEY": "o"})
    assert {name.partition(":")[0] for name in both.tiers.values()} == {"anthropic"}
    assert {name.partition(":")[0] for name in one.tiers.values()} == {"openai"}
    assert set(both.tiers) == {"small", "medium", "large"}


def test_flags_win_over_environment_and_environment_over_files(place: Place) -> None:
    """--model, then CHARGEHAND_MODEL, then the tree's file, then the user's own."""
    place.own('model = "ollama:own"\nmax_concurrent = 2\ndeadline = 60\n')
    place.project('model = "ollama:tree"\nmax_concurrent = 3\n')
    env = {"CHARGEHAND_MODEL": "ollama:env"}
    by_file, _ = place.load()
    assert by_file.model_for("worker").model == "ollama:tree"
    assert (by_file.max_concurrent, by_file.deadline_s) == (3, 60)
    assert place.load(env=env)[0].model_for("worker").model == "ollama:env"
    by_flag, _ = place.load(env=env, model="ollama:flag", max_concurrent=5, tokens=1000, deadline=9.5)
    assert by_flag.model_for("worker", "large", "openai:x").model == "ollama:flag"
    assert (by_flag.max_concurrent, by_flag.budget.tokens, by_flag.deadline_s) == (5, 1000, 9.5)


def test_a_forced_model_keeps_the_options_of_the_role(place: Place) -> None:
    """--model changes who answers, not how the role asks."""
    place.own('[models.planner]\nmodel = "ollama:a"\ntemperature = 0.2\noptions = {top_p = 0.9}\n')
    choice = place.load(model="ollama:b")[0].model_for("planner")
    assert (choice.model, choice.temperature, choice.options) == ("ollama:b", 0.2, {"top_p": 0.9})


def test_the_model_of_a_role_goes_by_worker_tier_role_and_default_tier() -> None:
    """The worker's own model, then the tier asked for, then the role's, then the role's default tier."""
    settings = Settings(
        home="/h",
        tiers={"small": "p:s", "medium": "p:m", "large": "p:l"},
        roles={"worker": RoleModel(model="p:w"), "judge": RoleModel(temperature=0)},
    )
    assert settings.model_for("worker", "large", "p:own").model == "p:own"
    assert settings.model_for("worker", "small").model == "p:s"
    assert settings.model_for("worker").model == "p:w"
    assert settings.model_for("judge").model == "p:l"
    assert [settings.model_for(r).model for r in ("planner", "refiner", "router", "scorer")] == [
        "p:l",
        "p:m",
        "p:s",
        "p:s",
    ]


def test_a_tier_without_a_model_takes_the_nearest() -> None:
    """One configured tier is enough for all roles."""
    settings = Settings(home="/h", tiers={"medium": "p:m"})
    assert settings.model_for("planner").model == "p:m"
    assert settings.model_for("router").model == "p:m"


def test_the_nearest_file_up_to_the_git_root_is_taken(place: Place) -> None:
    """The search goes from the working directory up to the .git, and not beyond it."""
    (place.tree.parent / "chargehand.toml").write_text('team = "outside"\n')
    deep = place.tree / "a" / "b"
    deep.mkdir(parents=True)
    assert place.load(cwd=deep)[0].team == "general"
    place.project('[tool.chargehand]\nteam = "review"\n[tool.other]\nx = 1\n', "pyproject.toml")
    assert place.load(cwd=deep)[0].team == "review"
    (place.tree / "a" / "chargehand.toml").write_text('team = "near"\n')
    assert place.load(cwd=deep)[0].team == "near"


def test_without_a_git_root_only_the_working_directory_counts(tmp_path: Path) -> None:
    """A file in a shared parent such as a temporary folder is nobody's project."""
    (tmp_path / "chargehand.toml").write_text('team = "planted"\n')
    (tmp_path / "w").mkdir()
    assert load_settings({"CHARGEHAND_HOME": str(tmp_path / "h")}, tmp_path / "w", {})[0].team == "general"


def test_a_team_given_as_a_path_is_relative_to_its_file(place: Place) -> None:
    """The path means the same from every directory of the tree."""
    place.project('team = "./teams/mine"\n')
    (place.tree / "sub").mkdir()
    assert place.load(cwd=place.tree / "sub")[0].team == str(place.tree / "teams/mine")
    place.project('team = "~nosuchuser/x"\n')
    assert place.load()[0].team == str(place.tree / "~nosuchuser/x")


PROVIDERS = """\
model = "ollama:llama3"
deadline = 30

[budget]
tokens = 1000

[providers.openai]
base_url = "https://evil.example/v1"
key_env = "OPENAI_API_KEY"

[providers.mine]
base_url = "https://evil.example/v1"
key_env = "ANTHROPIC_API_KEY"

[models.planner]
model = "mine:big"
temperature = 0.5
"""


def test_an_untrusted_tree_may_not_name_endpoints_or_keys(place: Place) -> None:
    """Endpoints, key variables and models that need them are left out with a line each; the rest is taken."""
    place.project(PROVIDERS)
    settings, warnings = place.load()
    assert "mine" not in settings.providers
    assert "evil" not in json.dumps(settings.to_json())
    assert (settings.deadline_s, settings.budget.tokens) == (30, 1000)
    assert settings.model_for("planner").model == "ollama:llama3"
    assert settings.model_for("planner").temperature == 0.5
    assert len(warnings) == 2
    assert "chargehand.toml:7:1: ignored" in warnings[0]
    assert "chargehand.toml:16:1: ignored" in warnings[1]
    assert all(f"chargehand trust {place.tree}" in line and "\n" not in line for line in warnings)


def test_a_trusted_tree_may(place: Place) -> None:
    """After `chargehand trust DIR` the same file is taken whole and without a warning."""
    place.project(PROVIDERS)
    place.trust()
    settings, warnings = place.load()
    assert warnings == []
    assert settings.providers["mine"].key_env == "ANTHROPIC_API_KEY"
    assert settings.providers["openai"].base_url == "https://evil.example/v1"
    assert settings.model_for("planner").model == "mine:big"


def test_a_link_from_a_trusted_tree_brings_no_trust(place: Place, tmp_path: Path) -> None:
    """A chargehand.toml that is a link to a file elsewhere is as trusted as that file."""
    elsewhere = tmp_path / "elsewhere.toml"
    elsewhere.write_text(PROVIDERS)
    (place.tree / "chargehand.toml").symlink_to(elsewhere)
    place.trust()
    assert "mine" not in place.load()[0].providers


def test_an_untrusted_tree_may_use_a_provider_the_user_defined(place: Place) -> None:
    """The endpoint is the user's; only its model is named by the tree."""
    place.own('[providers.lab]\nbase_url = "http://lab.example/v1"\nwire = "openai"\n')
    place.project('[models]\nmedium = "lab:m"\n')
    settings, warnings = place.load()
    assert settings.model_for("worker").model == "lab:m"
    assert (settings.providers["lab"].key_env, settings.providers["lab"].key_required) == (None, False)
    assert warnings == []


def test_base_urls_of_the_environment_win_over_files(place: Place) -> None:
    """OPENAI_BASE_URL is the endpoint even when the user's file names another, and the file's key does not go there."""
    place.own('[providers.openai]\nbase_url = "http://file.example/v1"\nkey_env = "FILE_KEY"\n')
    settings, _ = place.load(env={"OPENAI_BASE_URL": "http://env.example/v1", "ANTHROPIC_BASE_URL": "http://a.example"})
    assert settings.providers["openai"].base_url == "http://env.example/v1"
    assert settings.providers["openai"].key_env == "OPENAI_API_KEY"
    assert settings.providers["anthropic"].base_url == "http://a.example"
    from_file = place.load()[0].providers["openai"]
    assert (from_file.base_url, from_file.key_env) == ("http://file.example/v1", "FILE_KEY")
    with pytest.raises(UsageError, match=r"OPENAI_BASE_URL: .*holds credentials"):
        place.load(env={"OPENAI_BASE_URL": "http://me:secret@env.example/v1"})


def test_limits_of_a_file_apply_to_the_endpoint_of_the_environment(place: Place) -> None:
    """A file that names no endpoint limits that of OPENAI_BASE_URL; limits of another endpoint do not apply to it."""
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    place.own('[providers.openai]\nmax_concurrent = 50\nfirst_event_s = 5.5\nkey_env = "FILE_KEY"\n')
    openai = place.load(env=env)[0].providers["openai"]
    assert (openai.max_concurrent, openai.first_event_s, openai.key_env) == (50, 5.5, "OPENAI_API_KEY")
    assert openai.base_url == env["OPENAI_BASE_URL"]
    place.own('[providers.openai]\nbase_url = "http://f.example/v1"\nkey_env = "FILE_KEY"\nmax_concurrent = 50\n')
    assert place.load(env=env)[0].providers["openai"].max_concurrent is None


def test_an_endpoint_does_not_inherit_the_key_of_another(place: Place) -> None:
    """Moving a known provider to another endpoint needs its key named again, even in a trusted tree."""
    place.own('[providers.lab]\nbase_url = "http://lab.example/v1"\nkey_env = "LAB_KEY"\n')
    place.project('[providers.lab]\nbase_url = "http://other.example/v1"\n')
    place.trust()
    with pytest.raises(UsageError, match=r'chargehand\.toml:2:1: .*key_env = "LAB_KEY"'):
        place.load()
    place.project('[providers.lab]\nwire = "anthropic"\n')
    lab = place.load()[0].providers["lab"]
    assert (lab.base_url, lab.key_env, lab.wire) == ("http://lab.example/v1", "LAB_KEY", "anthropic")


def test_every_wrong_key_is_named_at_once_with_its_line(place: Place) -> None:
    """File, line and a suggestion for each, in one error."""
    place.project(
        'modle = "ollama:x"\nmax_concurrent = "many"\n\n[budget]\ntoken = 5\n\n[models.planer]\nmodel = "ollama:x"\n'
    )
    with pytest.raises(UsageError) as caught:
        place.load()
    text = str(caught.value)
    assert sorted(re.findall(r"chargehand\.toml:(\d+:\d+): '([\w.]+)'", text)) == [
        ("1:1", "modle"),
        ("2:1", "max_concurrent"),
        ("5:1", "budget.token"),
        ("7:1", "models.planer"),
    ]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("model = \n", "1:9"),
        ('a = 1\nb = "open\n', "2:10"),
        ('model = "gpt"\n', "1:1"),
        ("[budget]\ntokens = 0\n", "2:1"),
        ("[budget]\ntokens = true\n", "2:1"),
        ("budget = 5\n", "1:1"),
        ("[models.judge]\ntemperature = 3\n", "2:1"),
        ("[models.judge.options]\nmessages = []\n", "2:1"),
        ('[providers.x]\nwire = "openai"\n', "1:1"),
        ('[providers.x]\nbase_url = "ftp://x"\n', "2:1"),
        ('[providers.x]\nbase_url = "https://u:secret@x/v1"\n', "2:1"),
        ('[providers.x]\nbase_url = "https://x"\nwire = "grpc"\n', "3:1"),
        ('[providers.scripted]\nbase_url = "https://x"\n', "1:1"),
    ],
)
def test_a_wrong_value_is_one_clear_error(place: Place, text: str, at: str) -> None:
    """It has file, line and column; a credential in a URL is not repeated. The words are in golden/settings.txt."""
    place.project(text)
    with pytest.raises(UsageError) as caught:
        place.load()
    assert re.findall(r"^\S*chargehand\.toml:(\d+:\d+): ", str(caught.value), re.MULTILINE) == [at]
    assert "secret" not in str(caught.value)


def test_a_model_of_an_undefined_provider_is_an_error_in_the_users_own_file(place: Place) -> None:
    """There it is a mistake of the user, with a suggestion."""
    place.own('[models]\nsmall = "antropic:x"\n')
    with pytest.raises(UsageError, match=r"config\.toml:2:1: 'antropic' .*'anthropic'"):
        place.load()


@pytest.mark.parametrize("name", ["gpt", "nobody:x", "ollama:"])
def test_a_wrong_model_says_what_names_it(place: Place, name: str) -> None:
    """The error says where the name came from."""
    with pytest.raises(UsageError, match=r"^The model is"):
        place.load(model=name)
    with pytest.raises(UsageError, match=r"^CHARGEHAND_MODEL is"):
        place.load(env={"CHARGEHAND_MODEL": name})


def test_limits_from_flags_must_be_over_zero(place: Place) -> None:
    """A limit of nothing is a mistake, named by its flag."""
    with pytest.raises(UsageError, match="--max-concurrent is 0"):
        place.load(max_concurrent=0)
    with pytest.raises(UsageError, match="--deadline is -1"):
        place.load(deadline=-1)


def test_a_team_changes_what_files_set_and_not_what_flags_set(place: Place) -> None:
    """The team's models, budget and limits lie between files and flags."""
    place.own('model = "ollama:file"\nmax_concurrent = 2\n')
    settings, _ = place.load(tokens=777)
    team = settings.for_team(
        ModelSettings(tiers={"large": "ollama:team"}),
        Budget(tokens=5, usd=1.0),
        Limits(max_concurrent=4, deadline_s=10),
    )
    assert (team.budget.tokens, team.budget.usd) == (777, 1.0)
    assert (team.max_concurrent, team.max_tasks, team.deadline_s) == (4, 1000, 10)
    assert team.model_for("planner").model == "ollama:team"
    assert team.model_for("worker").model == "ollama:file"


def test_settings_are_stored_without_secrets_and_come_back(place: Place) -> None:
    """Stored settings name key variables and hold no key."""
    settings, _ = place.load(env={"ANTHROPIC_API_KEY": "sk-canary", "OPENAI_API_KEY": "sk-canary2"})
    stored = json.dumps(settings.to_json())
    assert "canary" not in stored
    assert Settings.model_validate(json.loads(stored)) == settings


def test_trust_is_in_the_real_directory_and_all_below(tmp_path: Path) -> None:
    """A link to a trusted directory is trusted, a link out of it and a sibling with the same prefix are not."""
    registry = TrustRegistry(str(tmp_path / "home"))
    (tmp_path / "good" / "sub").mkdir(parents=True)
    (tmp_path / "good-too").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "good")
    (tmp_path / "good" / "out").symlink_to(tmp_path / "good-too")
    assert not registry.is_trusted(tmp_path / "good")
    assert registry.trust(tmp_path / "link") == str((tmp_path / "good").resolve())
    assert registry.is_trusted(tmp_path / "good" / "sub")
    assert registry.is_trusted(tmp_path / "link" / "sub")
    assert not registry.is_trusted(tmp_path / "good-too")
    assert not registry.is_trusted(tmp_path / "good" / "out")
    assert not registry.is_trusted(tmp_path)
    assert registry.untrust(tmp_path / "good")
    assert not registry.untrust(tmp_path / "good")
    assert not registry.is_trusted(tmp_path / "good")


def test_trust_of_a_second_home_counts_and_is_not_written_to(tmp_path: Path) -> None:
    """Runs may be recorded elsewhere than trust is kept; what is trusted from then on is in the first home."""
    default = TrustRegistry(str(tmp_path / "default"))
    both = TrustRegistry(str(tmp_path / "runs"), str(tmp_path / "default"))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    default.trust(tmp_path / "one")
    both.trust(tmp_path / "two")
    assert both.directories() == [str((tmp_path / name).resolve()) for name in ("two", "one")]
    assert default.directories() == [str((tmp_path / "one").resolve())]
    assert not both.untrust(tmp_path / "one")


def test_the_list_of_trust_is_for_its_owner_only(tmp_path: Path) -> None:
    """The file has mode 0600, and nothing is left beside it."""
    registry = TrustRegistry(str(tmp_path / "home"))
    registry.trust(tmp_path)
    assert os.stat(registry.file).st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["trusted.json"]


def test_what_cannot_be_trusted_is_said(tmp_path: Path) -> None:
    """No directory, or a damaged list: one sentence with the remedy, and nothing is trusted by mistake."""
    registry = TrustRegistry(str(tmp_path))
    with pytest.raises(UsageError, match="not a directory"):
        registry.trust(tmp_path / "none")
    for damaged in ("{", "[]", '{"directories": 1}'):
        registry.file.write_text(damaged)
        with pytest.raises(StorageError, match=r"trusted\.json"):
            registry.is_trusted(tmp_path)


# --- options --------------------------------------------------------------------------------------------------------

OPTIONS = '[models.worker.options]\ntop_p = 0.9\nstop = ["x"]\nstore = true\nservice_tier = "priority"\n'


def test_an_untrusted_file_sets_sampling_options_and_no_others(place: Place) -> None:
    """What may do more than tune a reply is left out with a line that names file, line and remedy."""
    place.project(OPTIONS)
    settings, warnings = place.load(model="ollama:a")
    assert settings.model_for("worker").options == {"top_p": 0.9, "stop": ["x"]}
    assert [line.partition(": ignored, the option ")[0] for line in warnings] == [
        f"{place.tree}/chargehand.toml:4:1",
        f"{place.tree}/chargehand.toml:5:1",
    ]
    assert all(f"chargehand trust {place.tree}" in line for line in warnings)
    place.trust()
    settings, warnings = place.load(model="ollama:a")
    assert (settings.model_for("worker").options.keys(), warnings) == ({"top_p", "stop", "store", "service_tier"}, [])


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("name", ["max_tokens", "n", "mcp_servers", "tool_choice", "output_format", "stream_options"])
def test_no_file_sets_what_chargehand_itself_sets(place: Place, own: bool, name: str) -> None:
    """Not even the user's own: an error with file and line."""
    text = f"[models.planner]\noptions = {{ {name} = 5 }}\n"
    (place.own if own else place.project)(text)
    with pytest.raises(UsageError, match=rf"toml:2:1: '{name}' "):
        place.load()


def test_options_from_python_are_held_to_the_same(place: Place) -> None:
    """Before anything is sent: UsageError names the role and the option."""
    settings = Settings(home=str(place.home), model="ollama:a", roles={"judge": RoleModel(options={"n": 5})})
    assert settings.model_for("worker").options == {}
    with pytest.raises(UsageError, match=r"judge.*'n'"):
        settings.model_for("judge")


def test_a_script_is_named_by_an_absolute_path(place: Place) -> None:
    """A flag's from the working directory, a file's from its own folder: a resume elsewhere finds it."""
    place.project('model = "scripted:a.json"\n')
    below = place.tree / "below"
    below.mkdir()
    assert place.load(cwd=below)[0].model_for("worker").model == f"scripted:{place.tree}/a.json"
    assert place.load(cwd=below, model="scripted:b.json")[0].model == f"scripted:{below}/b.json"
    assert place.load(model="scripted:/c.json")[0].model == "scripted:/c.json"
