"""Secrets lose their text on the way out; what merely looks like one stays."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargehand.text.redaction import PATTERNS, Redactor
from tests.canaries import CANARIES, FORMS, NEAR_MISSES, mixed

REDACTOR = Redactor()


def test_there_are_enough_canaries() -> None:
    """At least 50 different secrets and 30 look-alikes are tried."""
    assert len({secret for _, secret, _ in CANARIES}) >= 50
    assert len(set(NEAR_MISSES)) >= 30


@pytest.mark.parametrize(("kind", "secret", "text"), CANARIES, ids=[kind for kind, _, _ in CANARIES])
def test_a_canary_is_removed_from_text(kind: str, secret: str, text: str) -> None:
    """Nothing of the secret is left, and something says so."""
    cleaned = REDACTOR.text(text)
    assert secret not in cleaned
    assert "[redacted" in cleaned
    for at in range(0, max(1, len(secret) - 12), 12):
        assert secret[at : at + 16] not in cleaned, kind


@pytest.mark.parametrize(("kind", "secret", "text"), CANARIES, ids=[kind for kind, _, _ in CANARIES])
def test_a_canary_is_removed_from_json(kind: str, secret: str, text: str) -> None:
    """A secret is found in values and keys at any depth, and in JSON written into a string."""
    assert secret not in str(REDACTOR.json({"a": [{"b": (text, 1)}]})), kind
    assert secret not in str(REDACTOR.json({text: None}))
    once = json.dumps({"body": text})
    assert json.dumps(secret)[1:-1] not in REDACTOR.text(once)


@pytest.mark.parametrize("before", ["\\n", "\\\\t", "%3D", "=", '"', "(", ":", "\n", ","])
def test_a_secret_is_found_right_after_an_escape_or_a_sign(before: str) -> None:
    """An escape is not part of a word, so it does not hide the token that follows it."""
    assert [kind for kind, secret in FORMS if secret in REDACTOR.text(f"x{before}{secret} y")] == []


@pytest.mark.parametrize("text", NEAR_MISSES)
def test_a_look_alike_stays(text: str) -> None:
    """Text without a secret comes out as it went in."""
    assert REDACTOR.text(text) == text
    assert REDACTOR.json({"text": [text]}) == {"text": [text]}


@pytest.mark.parametrize(("kind", "secret", "text"), CANARIES, ids=[kind for kind, _, _ in CANARIES])
def test_redacting_twice_is_redacting_once(kind: str, secret: str, text: str) -> None:
    """What was redacted is not redacted again."""
    once = REDACTOR.text(text)
    assert REDACTOR.text(once) == once


@given(st.text(), st.sampled_from(FORMS), st.text())
def test_a_secret_is_found_between_any_other_text(before: str, canary: tuple[str, str], after: str) -> None:
    """Whatever surrounds a secret, separated from it, does not hide it."""
    assert canary[1] not in REDACTOR.text(f"{before} {canary[1]} {after}")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text("abc xyz"), st.lists))
def test_json_without_secrets_is_unchanged(value: object) -> None:
    """Numbers, booleans, nulls and plain text keep their value and their place."""
    assert REDACTOR.json(value) == value


@pytest.mark.parametrize("key", ["password", "api_key", "X-Api-Key", "Authorization", "clientSecret", "db.password"])
def test_a_string_under_a_telling_key_goes_as_a_whole(key: str) -> None:
    """A key that says secret is enough, however plain the value."""
    assert REDACTOR.json({key: "plain words"}) == {key: "[redacted:value]"}


@pytest.mark.parametrize("key", ["key", "tokens", "input_tokens", "idempotency_key", "keyboard", "title"])
def test_a_string_under_an_ordinary_key_stays(key: str) -> None:
    """Keys that merely contain such a word say nothing."""
    assert REDACTOR.json({key: "plain words"}) == {key: "plain words"}


def test_a_number_or_an_object_under_a_telling_key_stays() -> None:
    """A schema that describes a password and a token count are no secrets."""
    value = {"password": {"type": "string"}, "token": 12}
    assert REDACTOR.json(value) == value


def test_known_secrets_are_removed_in_every_spelling() -> None:
    """A given secret is found as it is, in a URL and in a JSON string."""
    secret = 'plain/word "quoted"\nline'
    redactor = Redactor([secret])
    for text in (secret, "x?q=plain%2Fword%20%22quoted%22%0Aline", json.dumps({"v": secret})):
        assert "quoted" not in redactor.text(text)


def test_a_secret_that_contains_another_leaves_nothing() -> None:
    """The longest is replaced first."""
    assert Redactor(["swordfish", "swordfish-and-tail"]).text("<swordfish-and-tail>") == "<[redacted]>"


def test_values_of_secret_variables_are_known() -> None:
    """Variables that say key, token, secret or password give their value; others do not."""
    env = {
        "ACME_API_KEY": "kettle-drum-one",
        "GITHUB_TOKEN": "kettle-drum-two",
        "db_password": "kettle-drum-three",
        "CLIENT_SECRET": "kettle-drum-four",
        "HOME_TOWN": "kettle-drum-five",
        "SSL_KEY": "/etc/ssl/private/site.pem",
        "SHORT_TOKEN": "abc",
        "PASSWORD": "password",
        "KEYBOARD": "kettle-drum-six",
    }
    redactor = Redactor.from_env(env)
    gone = ("one", "two", "three", "four")
    for word in ("one", "two", "three", "four", "five", "six"):
        text = f"it is kettle-drum-{word}."
        assert (redactor.text(text) == "it is [redacted].") == (word in gone), word
    assert redactor.text("abc /etc/ssl/private/site.pem password") == "abc /etc/ssl/private/site.pem password"


ADVERSARIAL = [
    "a", "-eyJ", "eyJ.", "eyJaaaaaaaaa.", "sk-", "sk-ant-", "xoxb-", "://", "://a:", "://a@", "password=",
    "Authorization: ", "bearer ", "password:\"", "-----BEGIN PRIVATE" + " KEY-----",
    "-----BEGIN PRIVATE" + " KEY-----\n" + "A" * 30,
    "-----", "cookie: a=", "set-cookie:a", "SG.aaaaaaaaaaaaaaaaaaaa", "key-", "AKIA", "secret ", "token\\\"", "?sig=",
    "pat", "1//0", "0123456789abcdef", "--token ", "_live_", "a.atlasv1.", "a:APA91b", "\\", "\"", " ", "=", ":AA",
]  # fmt: skip


def cost(text: str) -> float:
    start = time.process_time()
    REDACTOR.text(text)
    return time.process_time() - start


@pytest.mark.slow
@pytest.mark.parametrize("unit", ADVERSARIAL)
def test_cost_grows_with_size_not_faster(unit: str) -> None:
    """Sixteen times the text costs about sixteen times as much, up to 1 MB, also for text made to be slow."""
    whole = (unit * (1_000_000 // len(unit) + 1))[:1_000_000]
    small = max(cost(whole[:62_500]) for _ in range(2))
    # Quadratic would be 256 times; the constant keeps tiny timings from deciding.
    assert cost(whole) <= 64 * small + 0.1


def test_every_pattern_can_be_triggered() -> None:
    """Triggers are compared with lowered text, so they are lower case, and each kind has one."""
    for pattern in PATTERNS:
        assert pattern.triggers
        assert all(trigger == trigger.lower() for trigger in pattern.triggers)


def test_ordinary_text_needs_no_expression() -> None:
    """Prose holds no trigger of most patterns: the fast path is taken."""
    prose = "norway has fjords; oslo is its capital, and bergen is known for rain. " * 3
    tried = [p.kind for p in PATTERNS if any(t in prose.lower() for t in p.triggers)]
    assert tried == []
    assert REDACTOR.text(prose) == prose


def test_a_short_secret_given_by_mistake_does_not_shred_text() -> None:
    """Values under four characters are not taken for secrets."""
    assert Redactor(["", "a", "abc"]).text("abc banana") == "abc banana"


def test_a_mention_keeps_its_surroundings() -> None:
    """Only the secret goes; the text around it stays readable."""
    assert REDACTOR.text(f"api_key = {mixed(24)} # rotate") == "api_key = [redacted:assigned] # rotate"
