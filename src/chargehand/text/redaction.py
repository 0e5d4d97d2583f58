"""Text and JSON on their way out lose their secrets: known values, and whatever looks like a credential.

Every pattern has literal triggers and is tried only on text that holds one, so ordinary text costs a few substring
searches. Every expression takes linear time: an unbounded repeat cannot fail afterwards, or starts once per run of
characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast
from urllib.parse import quote

from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.plain_class import plain_class

MARK = "[redacted"
SHORTEST = 8
_SHORT = 100


@plain_class(frozen=True)
class Pattern:
    """One kind of secret: group `secret` (or all of the match) is replaced where `sure` agrees."""

    kind: str
    triggers: tuple[str, ...]
    expression: re.Pattern[str]
    sure: Callable[[re.Match[str]], bool] = lambda _: True

    def apply(self, text: str) -> str:
        return self.expression.sub(self._replace_match, text)

    def _replace_match(self, match: re.Match[str]) -> str:
        group = "secret" if "secret" in self.expression.groupindex else 0
        if match[group].startswith(MARK) or not self.sure(match):
            return match[0]
        start, end = match.span(group)
        return f"{match.string[match.start() : start]}{MARK}:{self.kind}]{match.string[end : match.end()]}"


class Redactor:
    """Replaces secrets by `[redacted]` or, where a pattern found them, `[redacted:kind]`."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {form for secret in secrets if len(secret) >= 4 for form in _forms(secret)}
        # Longest first: one secret may contain another.
        self._known = sorted(known, key=len, reverse=True)

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Redactor:
        """A redactor that knows the values of the variables whose names mark them as secret."""
        return cls(value for name, value in env.items() if SECRET_VARIABLE.search(name) and _worth_hiding(value))

    def text(self, text: str) -> str:
        """The text without secrets."""
        return _without(self._without_known(text), TRIGGERS)

    def redact_delivered(self, value: Any) -> Any:
        """Requested text or JSON without its undoubted secrets: known values, and keys recognised by their form.

        The names of fields, and text after `token =`, are left as they are: they may be the answer itself.
        """
        match value:
            case str():
                return _without(self._without_known(value), UNMISTAKABLE)
            case dict():
                pairs = cast(dict[Any, Any], value).items()
                return {self.redact_delivered(key): self.redact_delivered(each) for key, each in pairs}
            case list() | tuple():
                return [self.redact_delivered(each) for each in cast(list[Any], value)]
            case _:
                return value

    def _without_known(self, text: str) -> str:
        for secret in self._known:
            if secret in text:
                text = text.replace(secret, f"{MARK}]")
        return text

    def json(self, value: Any) -> Any:
        """The value with all its strings redacted, keys too; a string under a secret's name is replaced whole."""
        return self._json(value, {})

    def _json(self, value: Any, known: dict[str, str]) -> Any:
        """`known` maps the short strings seen so far to their redacted form: names and words occur often."""
        match value:
            case str():
                found = known.get(value)
                if found is None:
                    found = self.text(value)
                    if len(value) <= _SHORT:
                        known[value] = found
                return found
            case dict():
                pairs = cast(dict[Any, Any], value).items()
                return {self._json(key, known): self._under(key, each, known) for key, each in pairs}
            case list() | tuple():
                return [self._json(each, known) for each in cast(list[Any], value)]
            case _:
                return value

    def _under(self, key: object, value: Any, known: dict[str, str]) -> Any:
        is_named_secret = isinstance(key, str) and isinstance(value, str) and SECRET_KEY.fullmatch(key)
        if is_named_secret and value and not value.startswith(MARK) and not PLACEHOLDER.match(value):
            return f"{MARK}:{KEY_KIND}]"
        return self._json(value, known)


def _without(text: str, triggers: Iterable[tuple[str, Pattern]]) -> str:
    if len(text) < SHORTEST:
        return text
    lowered = text.lower()
    for pattern in dict.fromkeys([pattern for trigger, pattern in triggers if trigger in lowered]):
        text = pattern.apply(text)
    return text


def _forms(secret: str) -> set[str]:
    """A secret as written, as part of a URL, and as part of a JSON string."""
    return {secret, quote(secret, safe=""), json.dumps(secret)[1:-1]}


# --- names -----------------------------------------------------------------------------------------------------------

KEY_KIND = "value"
SECRET_VARIABLE = lazy_regex(
    r"(?:^|_)(?:\w*KEY|KEYS|\w*TOKEN|TOKENS|\w*SECRETS?|\w*PASSWORD|PASSWD|PASS|PWD|PASSPHRASE|CREDENTIALS?|PAT|AUTH)(?:_|$)",
    re.IGNORECASE,
)
SECRET_KEY = lazy_regex(
    r"(?i:(?:[\w.-]{0,40}[_.-])?(?:password|passwd|pwd|passphrase|secret|token|authorization|cookie|credentials?"
    r"|(?:api|access|secret|private|account|auth|signing|encryption)[_-]?key)"
    r"|[a-z]{0,40}(?:Password|Secret|Token|ApiKey|AccessKey|SecretKey|PrivateKey))"
)
PATH_LIKE = lazy_regex(r"(?:file:/*)?(?:~|\.{1,2})?(?:/[\w.@+ -]{1,40}){2,}/?(?::.*)?|/[\w.-]{0,20}", re.ASCII)
COMMON = frozenset(
    {"password", "changeme", "disabled", "enabled", "required", "optional", "undefined", "localhost", "development"}
    | {"production", "default", "anonymous", "username", "postgres", "keychain", "keyring", "notasecret"}
)
PLACEHOLDER = lazy_regex(
    r"[<$%{*]|\.\.\.|x{4}|\[redacted|(?:null|none|true|false|string|str|optional|required|undefined)$"
    r"|(?:your|my|the|some|example|test|fake|dummy|placeholder|insert|enter)[-_ ]",
    re.IGNORECASE,
)


def _worth_hiding(value: str) -> bool:
    return len(value) >= SHORTEST and value.lower() not in COMMON and not PATH_LIKE.fullmatch(value)


# --- what is written after the name of a secret --------------------------------------------------------------------


def _is_mixed(value: str) -> bool:
    """Letters mixed with digits, or upper and lower case mixed: not a word."""
    digits = any(c.isdigit() for c in value)
    letters = any(c.isalpha() for c in value)
    return letters and (digits or (value[1:].lower() != value[1:] and value[1:].upper() != value[1:]))


def _is_assigned_value(match: re.Match[str]) -> bool:
    """Whether the text after `name =` is a value and not code, prose or a placeholder."""
    value, name = match["secret"], match["name"]
    if PLACEHOLDER.match(value) or value.lower() in COMMON | {name.lower()}:
        return False
    if match["quote"]:
        return len(value) >= (4 if name.lower().startswith(("pass", "pwd")) else SHORTEST)
    if len(value) < 6 or value[-1] in "([{" or any(c in value for c in "()[]{}") or value.isdigit():
        return False
    if QUERY.search(match.string, max(0, match.start() - 41), match.start()) or (
        name.isupper() and match["sign"].strip() in ("=", ":")
    ):
        return True
    # An unquoted word after a name counts as code (`password=user.password`) unless it cannot be code.
    return len(value) >= SHORTEST and _is_mixed(value) and not IDENTIFIER.fullmatch(value)


QUERY = lazy_regex(r"[?&][\w-]{0,40}\Z")
IDENTIFIER = lazy_regex(r"(?:[A-Za-z_][a-z_]*|[A-Z][A-Za-z]*)(?:[.:][A-Za-z_]\w*)*;?")


def _long_mix(match: re.Match[str]) -> bool:
    value = match["secret"]
    return bool(match["header"]) or (len(value) >= 16 and (_is_mixed(value) or value.endswith("=")))


def _user_is_token(match: re.Match[str]) -> bool:
    return len(match["secret"]) >= 20 and _is_mixed(match["secret"])


def _not_words(match: re.Match[str]) -> bool:
    """Not words joined by hyphens, as in `sk-learn-contrib-estimators`."""
    return any(c.isdigit() or c.isupper() for c in match[0][3:])


def _starting(prefix: str) -> str:
    """An expression for a literal that does not continue a word; an escape (`\\n`, `%20`) before it is not a word.

    The literal comes first and the text before it is checked afterwards: the scan is a search for the literal.
    """
    text = re.escape(prefix)
    return rf"{text}(?:(?<![A-Za-z0-9]{text})|(?<=\\[nrt]{text})|(?<=%[0-9A-Fa-f][0-9A-Fa-f]{text}))"


def _prefix_pattern(kind: str, prefix: str, body: str) -> Pattern:
    """A token recognised by its beginning."""
    return Pattern(kind, (prefix.lower(),), lazy_regex(_starting(prefix) + body))


_NAMES = (
    r"passwords?|passwd|passphrase|pwd|secret|token|credentials?"
    r"|(?:api|access|secret|private|account|auth|signing|encryption|shared[_-]?access)[_-]?key(?:[_-]?id)?"
)
# Where a word can begin, also after an escape (`\\n`, `%20`); the second is for what may turn up within base64.
_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f][0-9A-Fa-f]))"
_EDGE64 = r"(?:(?<![A-Za-z0-9+/])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f][0-9A-Fa-f]))"
_END = r"(?![A-Za-z0-9])"

PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "private-key",
        ("private key",),
        # From the header to the footer, or to the end of a text that was cut; a mere mention has no body.
        lazy_regex(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?=(?s:.{0,200}?)[A-Za-z0-9+/]{24})"
            r"[^-]*+(?:-(?!----)[^-]*+)*(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
        ),
    ),
    Pattern("jwt", ("eyj",), lazy_regex(_starting("eyJ") + r"(?<![-_]eyJ)[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+){1,3}")),
    Pattern("anthropic-key", ("sk-ant-",), lazy_regex(r"sk-ant-[\w-]{16,}")),
    Pattern("api-key", ("sk-",), lazy_regex(_starting("sk-") + r"[A-Za-z0-9_-]{20,}"), _not_words),
    Pattern(
        "aws-key",
        ("akia", "asia", "abia", "acca"),
        lazy_regex(rf"{_EDGE64}A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{{16}}{_END}"),
    ),
    Pattern("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), lazy_regex(r"gh[pousr]_[A-Za-z0-9]{30,}")),
    Pattern("github-token", ("github_pat_",), lazy_regex(r"github_pat_\w{40,}")),
    Pattern(
        "gitlab-token",
        ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glsoat-"),
        lazy_regex(r"gl(?:pa|d|r|pt|cb|soa)t-[\w.-]{20,}"),
    ),
    Pattern("slack-token", ("xox", "xapp-", "xoxe."), lazy_regex(_EDGE + r"(?:xox[abeoprs]|xapp)-[\w.-]{10,}")),
    Pattern(
        "slack-webhook",
        ("hooks.slack.com",),
        lazy_regex(r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/-]{20,})"),
    ),
    Pattern("discord-webhook", ("/api/webhooks/",), lazy_regex(r"/api/webhooks/\d{10,25}/(?P<secret>[\w-]{30,})")),
    Pattern(
        "teams-webhook", ("webhook.office.com",), lazy_regex(r"webhook\.office\.com/webhookb2/(?P<secret>[\w@/-]{30,})")
    ),
    Pattern("google-key", ("aiza",), lazy_regex(rf"{_EDGE64}AIza[\w-]{{35}}{_END}")),
    Pattern("stripe-key", ("_live_", "_test_"), lazy_regex(_EDGE + r"[spr]k_(?:live|test)_[A-Za-z0-9]{10,}")),
    Pattern("sendgrid-key", ("sg.",), lazy_regex(_starting("SG.") + r"[\w-]{16,}+\.[\w-]{16,}")),
    Pattern("twilio-key", ("sk",), lazy_regex(rf"{_EDGE64}SK[0-9a-f]{{32}}{_END}")),
    Pattern("telegram-token", (":aa",), lazy_regex(_EDGE + r"\d{8,10}:AA[\w-]{32,34}(?![\w-])")),
    Pattern("mailchimp-key", ("-us",), lazy_regex(rf"{_EDGE}[0-9a-f]{{32}}-us\d{{1,2}}{_END}")),
    Pattern("firebase-key", (":apa91b",), lazy_regex(_EDGE + r"[\w-]{8,40}:APA91b[\w-]{100,}")),
    Pattern("terraform-token", (".atlasv1.",), lazy_regex(_EDGE + r"\w{14}\.atlasv1\.[\w-]{40,}")),
    Pattern(
        "shopify-token", ("shpat_", "shpss_", "shpca_", "shppa_"), lazy_regex(r"shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}")
    ),
    Pattern("digitalocean-token", ("_v1_",), lazy_regex(r"do[opr]_v1_[0-9a-f]{40,}")),
    Pattern("square-token", ("sq0",), lazy_regex(r"sq0(?:atp|csp|idp)-[\w-]{22,}")),
    _prefix_pattern("stripe-webhook-secret", "whsec_", r"[A-Za-z0-9+/=]{16,}"),
    _prefix_pattern("npm-token", "npm_", r"[A-Za-z0-9]{30,}"),
    _prefix_pattern("pypi-token", "pypi-", r"[\w-]{50,}"),
    _prefix_pattern("rubygems-key", "rubygems_", r"[0-9a-f]{40,}"),
    _prefix_pattern("huggingface-token", "hf_", r"[A-Za-z0-9]{30,}"),
    _prefix_pattern("google-oauth", "ya29.", r"[\w-]{20,}"),
    _prefix_pattern("google-oauth-secret", "GOCSPX-", r"[\w-]{20,}"),
    _prefix_pattern("google-refresh-token", "1//0", r"[\w-]{30,}"),
    _prefix_pattern("mailgun-key", "key-", rf"[0-9a-f]{{32}}{_END}"),
    _prefix_pattern("databricks-token", "dapi", rf"[0-9a-f]{{32}}(?:-\d)?{_END}"),
    _prefix_pattern("linear-key", "lin_api_", r"[A-Za-z0-9]{30,}"),
    _prefix_pattern("notion-token", "ntn_", r"[A-Za-z0-9]{30,}"),
    _prefix_pattern("notion-token", "secret_", r"[A-Za-z0-9]{43}"),
    _prefix_pattern("figma-token", "figd_", r"[\w-]{30,}"),
    _prefix_pattern("postman-key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    _prefix_pattern("grafana-token", "glsa_", r"\w{30,}"),
    _prefix_pattern("grafana-token", "glc_", r"[A-Za-z0-9+/=]{32,}"),
    _prefix_pattern("sentry-token", "sntrys_", r"[A-Za-z0-9+/=_-]{40,}"),
    _prefix_pattern("vault-token", "hvs.", r"[\w-]{24,}"),
    _prefix_pattern("doppler-token", "dp.pt.", r"[A-Za-z0-9]{40,}"),
    _prefix_pattern("heroku-key", "HRKU-", r"[\w-]{30,}"),
    _prefix_pattern("age-key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}"),
    _prefix_pattern("docker-token", "dckr_pat_", r"[\w-]{20,}"),
    _prefix_pattern("planetscale-token", "pscale_tkn_", r"[\w.-]{30,}"),
    _prefix_pattern("supabase-token", "sbp_", r"[0-9a-f]{40}"),
    _prefix_pattern("groq-key", "gsk_", r"[A-Za-z0-9]{40,}"),
    _prefix_pattern("xai-key", "xai-", r"[A-Za-z0-9]{60,}"),
    _prefix_pattern("perplexity-key", "pplx-", r"[A-Za-z0-9]{40,}"),
    _prefix_pattern("replicate-token", "r8_", r"[A-Za-z0-9]{36,}"),
    _prefix_pattern("atlassian-token", "ATATT3x", r"[\w=-]{50,}"),
    _prefix_pattern("newrelic-key", "NRAK-", r"[A-Z0-9]{27}"),
    _prefix_pattern("dynatrace-token", "dt0c01.", r"[A-Z0-9]{24}\.[A-Z0-9]{60,}"),
    _prefix_pattern("tailscale-key", "tskey-", r"[\w-]{20,}"),
    _prefix_pattern("onepassword-token", "ops_ey", r"[\w-]{60,}"),
    _prefix_pattern("airtable-token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _prefix_pattern("fly-token", "fm2_", r"[A-Za-z0-9+/=_]{60,}"),
    Pattern(
        "azure-key",
        ("accountkey=", "accesskey="),
        lazy_regex(r"(?i)(?:Account|SharedAccess|Access)Key=(?P<secret>[A-Za-z0-9+/=]{20,})"),
    ),
    Pattern(
        "signature",
        ("sig=", "signature=", "x-amz-security-token="),
        lazy_regex(
            r"(?i)[?&;](?:sig|signature|x-(?:amz|goog)-signature|x-amz-security-token)=(?P<secret>[A-Za-z0-9%+/=_-]{20,})"
        ),
    ),
    Pattern(
        "authorization",
        ("authorization", "bearer", "basic"),
        lazy_regex(
            r"(?i)" + _EDGE + r"(?:(?P<header>(?:proxy-)?authorization\\{0,7}[\"']?\s{0,3}[:=]\s{0,3}\\{0,7}[\"']?)"
            r"(?:[a-z]{3,12}\s{1,3})?|(?:bearer|basic)\s{1,3})(?P<secret>[A-Za-z0-9._~+/=-]{8,})"
        ),
        _long_mix,
    ),
    Pattern(
        "cookie",
        ("cookie",),
        lazy_regex(
            r"(?i)" + _EDGE + r"set-cookie\\{0,7}[\"']?\s{0,3}[:=]\s{0,3}\\{0,7}[\"']?"
            r"[^=;\s\"']{1,100}=(?P<secret>[^;\s\"'\\]{4,})"
        ),
    ),
    Pattern(
        "cookie",
        ("cookie",),
        lazy_regex(
            r"(?i)(?<!-)" + _EDGE + r"cookie\\{0,7}[\"']?\s{0,3}[:=]\s{0,3}\\{0,7}[\"']?"
            r"(?P<secret>[^=;\s\"']{1,100}=[^\r\n\"'\\]{4,})"
        ),
    ),
    Pattern(
        "url-password",
        ("://",),
        lazy_regex(r"://[^\s/@:\[\"'<>?#\\]{0,100}:(?P<secret>[^\s/\"'<>?#\\]{1,200})@"),
        lambda match: not PLACEHOLDER.match(match["secret"]),
    ),
    Pattern("url-token", ("://",), lazy_regex(r"://(?P<secret>[^\s/@:\"'<>?#\\]{20,200})@"), _user_is_token),
    Pattern(
        "password",
        ("--pass", "--token", "--secret", "--api", "--access"),
        lazy_regex(
            r"(?i)--(?:password|passphrase|token|secret|api-?key|access-key|api-token|access-token)(?:=|\s{1,3})"
            r"(?P<secret>[^\s\"'$<{(\[|;-][^\s\"'|;]{5,})"
        ),
        lambda match: any(c.isdigit() for c in match["secret"]) or "=" in match[0].partition(match["secret"])[0],
    ),
    Pattern(
        "assigned",
        ("passw", "passphrase", "pwd", "secret", "token", "credential", "key"),
        lazy_regex(
            rf"(?i)(?P<name>{_NAMES})"
            r"[\w-]{0,20}\\{0,7}[\"'`]?\s{0,4}"
            r"(?P<sign>=>|:=|[:=]{1,2})\s{0,4}(?P<quote>\\{0,7}[\"'`])?(?P<secret>[^\s\"'`,;&<>\\]{4,})"
        ),
        _is_assigned_value,
    ),
)

# In the order of the patterns: secrets with a form of their own come before text that only follows a secret's name.
TRIGGERS = tuple((trigger, pattern) for pattern in PATTERNS for trigger in pattern.triggers)
# Secrets with an unmistakable form: removed even from an answer.
UNMISTAKABLE = tuple(
    (trigger, pattern)
    for trigger, pattern in TRIGGERS
    if pattern.kind in {"private-key", "anthropic-key", "aws-key", "github-token", "gitlab-token", "google-key"}
)
