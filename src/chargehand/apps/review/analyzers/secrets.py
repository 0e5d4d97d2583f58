"""Credentials in text of any language, as hits: the patterns of `redaction.py`, without text that only looks like a
secret.

Examples, placeholders, references to variables, hashes and lock files are not reported. No message holds the secret.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from chargehand.apps.review.analyzers import categories
from chargehand.apps.review.analyzers.examine import examine_texts
from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hit, Hits
from chargehand.apps.review.analyzers.source_files import LOCKS, SourceFile
from chargehand.text.redaction import COMMON, PATTERNS, PLACEHOLDER, Pattern

if TYPE_CHECKING:
    from collections.abc import Iterator


# The rule for each pattern of redaction.py; all other kinds have a known form.
RULES = {
    "assigned": "secrets:assigned",
    "password": "secrets:assigned",
    "url-password": "secrets:address",
    "url-token": "secrets:address",
    "azure-key": "secrets:known",
    "authorization": "secrets:header",
    "cookie": "secrets:header",
    "signature": "secrets:header",
}
NAMES = {
    "assigned": "by the name it is given",
    "password": "on a command line",
    "url-password": "password in a URL",
    "url-token": "token in a URL",
    "authorization": "authorization header",
    "signature": "signed URL",
    "opaque": "by its form, where access is given",
}
EXAMPLE = re.compile(
    r"(?i)example|sample|dummy|fake|changeme|change[-_]me|placeholder|replace|redacted|your[-_]|my[-_]?(?:secret|password)"
    r"|insert|todo|foobar|lorem|not[-_]?(?:a[-_])?(?:real|secret)|x{4,}|\*{3,}|\.{3,}|^test(?:ing|er)?\d*$|^pass(?:word)?\d*$"
)
# A value that refers to the secret instead of being it.
REFERENCE = re.compile(
    r"""(?xi)
    ^[$%@{<(\[]|\$\{|\{\{|%\(|^%[sdr]|
    ^(?:env|vault|ssm|secret|sops|file|op|aws|gcp|kms|secretsmanager|https?|arn|urn)[:/]|
    ^(?:process\.env|os\.|env\.|config\.|settings\.|self\.|secrets\.|vars\.|var\.|data\.)|
    ^(?:/|\./|\.\./|~/)|
    \.(?:json|ya?ml|toml|pem|txt|env|crt|key|py|js|ts|conf|cfg|ini)$
    """
)
# A signed address names the id of its key, and is meant for sharing for a limited time.
SIGNED = re.compile(r"(?i)x-amz-credential(?:=|%3d)\Z|awsaccesskeyid(?:=|%3d)\Z")
# In characters; the shortest signature in use has 43.
LEAST_SIGNATURE = 20
HASH = re.compile(
    r"(?i)(?:sha(?:1|224|256|384|512)|md5|blake2[bs]?)[-:=]|integrity|checksum|digest|\bhash\b|fingerprint"
)
IDENTIFIER = re.compile(r"[A-Za-z]+(?:[_.\-:/ ][A-Za-z]+)*[_\-:.]?")
CAMEL = re.compile(r"[a-z]+(?:[A-Z][a-z]+)+")
UUID = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Languages in which text is in quotes.
CODE = (
    *(".py", ".pyi", ".pyw", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".vue", ".go", ".java", ".kt", ".scala"),
    *(".rb", ".rs", ".php", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".swift", ".lua", ".pl", ".ex", ".dart", ".vim"),
)
PROSE = (".md", ".rst", ".txt", ".adoc")
IN_PROSE = 60
# Names of public values that contain such a word: `token_url`, `password_field`, `public_key_id`.
PUBLIC_NAME = re.compile(
    r"(?i)(?:tokens?|passw(?:or)?ds?|secrets?|keys?|credentials?)[_-]?(?:url|uri|endpoint|path|file|name|field|label|type"
    r"|id|header|prefix|suffix|length|len|min|max|count|limit|expir\w*|ttl|regex|pattern|policy|help\w*|text|hint|env"
    r"|placeholder|var|param\w*|reset\w*|format|error|message|hash\w*|algorithm|scheme|backend|provider|service|class"
    r"|method|version|size|store|validat\w*)"
    r"|public[_-]?key|site[_-]?key|(?:primary|foreign|partition|sort|cache|publishable|translation)[_-]?key"
)
# Hosts for which a password in a URL is an example.
LOCAL = re.compile(
    r"(?i)localhost|127\.|0\.0\.0\.0|\[?::1|(?:[\w.-]{1,30}\.)?example\b|(?:my|your)?-?_?host(?:name)?\b"
    r"|[\w-]{0,20}\.(?:test|invalid)\b"
    # Every copy of a program that reports errors there contains the key.
    r"|[\w.-]{0,60}\bsentry\.io\b"
)
# A whole text in quotes in code: long and without a space.
OPAQUE = re.compile(r"""(?<![\w"'])(?P<quote>["'])(?P<secret>[A-Za-z0-9+/_=-]{24,120})(?P=quote)(?!["'])""")
# Words near a text like that if it is a key. Without them it may be anything.
ACCESS = re.compile(
    r"(?i)auth|bearer|credential|api[_-]?key|(?:access|secret|private|client|account|signing|service)[_-]?(?:key|id\b|token)|login"
    r"|\.connect\(|[_-]pw\b|webhook|hmac\.new|Fernet\(|\bsign\("
)
NOT_ACCESS = re.compile(
    r"(?i)public|alphabet|charset|boundary|user-?agent|fixture|snapshot|nonce|etag|cid\b|guid|content|image|font|hash|sha\d"
)
OPAQUE_BITS = 4.2
WORD = re.compile(r"[A-Z]?[a-z]{5,}|[A-Z]{6,}")
# Below this number of bits per character, a value is a word, a date or a repeated character.
ENTROPY = 2.75


def examine(order: AnalysisOrder) -> Hits:
    paths = (path for path in order.files if path.rpartition("/")[2] not in LOCKS)
    return examine_texts(order, paths, _in_source)


def _in_source(source: SourceFile) -> Iterator[Hit]:
    lowered = source.text.lower()
    taken: set[int] = set()
    for line in _opaque_lines(source):
        taken.add(line)
        yield replace(_hit("opaque", source.path, line, line), rule="secrets:opaque")
    for pattern in PATTERNS:
        if not any(trigger in lowered for trigger in pattern.triggers):
            continue
        for match in pattern.expression.finditer(source.text):
            start, end = match.span("secret" if "secret" in pattern.expression.groupindex else 0)
            line = source.text.count("\n", 0, start) + 1
            # Patterns are ordered from certain to likely, and each line gives at most one finding.
            if line not in taken and pattern.sure(match) and _worth_telling(pattern, match, source):
                taken.add(line)
                hit = _hit(pattern.kind, source.path, line, source.text.count("\n", 0, max(start, end - 1)) + 1)
                # In prose, a value that only its name makes a secret is an example.
                is_told = hit.rule == "secrets:assigned" and source.path.lower().endswith(PROSE)
                yield replace(hit, confidence=IN_PROSE) if is_told else hit


def _opaque_lines(source: SourceFile) -> Iterator[int]:
    """Lines of code about access that have a text which only a machine can have made."""
    if not (source.path.lower().endswith(CODE) or source.python):
        return
    for number, line in enumerate(source.lines, 1):
        if len(line) > 400 or not (found := OPAQUE.search(line)) or not _is_opaque(found["secret"]):
            continue
        rest = line.replace(found["secret"], "")
        if ACCESS.search(rest) and not (NOT_ACCESS.search(rest) or HASH.search(line) or PUBLIC_NAME.search(rest)):
            yield number


def _is_opaque(value: str) -> bool:
    kinds = [any(map(is_kind, value)) for is_kind in (str.isupper, str.islower, str.isdigit)]
    if not all(kinds) or EXAMPLE.search(value) or REFERENCE.search(value) or value.count("/") > 2:
        return False
    return len(WORD.findall(value)) < 2 and entropy(value) >= OPAQUE_BITS


def _hit(kind: str, path: str, line: int, end_line: int) -> Hit:
    what = NAMES.get(kind, kind.replace("-", " "))
    return Hit(
        RULES.get(kind, "secrets:known"),
        path,
        line,
        f"A credential is in the source ({what}).",
        end_line=end_line,
        suggestion=categories.ADVICE["hardcoded-secret"],
    )


def _worth_telling(pattern: Pattern, match: re.Match[str], source: SourceFile) -> bool:
    group = "secret" if "secret" in pattern.expression.groupindex else 0
    value = match[group].strip("\"'`;,)")
    if EXAMPLE.search(value) or PLACEHOLDER.match(value):
        return False
    if SIGNED.search(source.text, max(0, match.start(group) - 40), match.start(group)):
        return False
    if "\n" in source.text[match.start() : match.start(group)] and source.text[match.start(group) - 1] not in "\"'`":
        return False  # `KEY=` has no value: the match is on the next line
    match pattern.kind:
        case "jwt":
            # A token without a signature gives no access: it is an example.
            return len(value.split(".")[2]) >= LEAST_SIGNATURE and entropy(value) > 2.0
        case "assigned" | "password":
            line = source.lines[source.text.count("\n", 0, match.start(group))]
            return (
                _is_secret_value(value)
                and not PUBLIC_NAME.search(match[0])
                and not _said_otherwise(match, line, source)
            )
        case "url-password" | "url-token":
            host = source.text[match.end() : match.end() + 40]
            return not LOCAL.match(host) and len(value) >= 4 and not REFERENCE.search(value) and _is_no_word(value)
        case "authorization" | "cookie" | "signature" | "azure-key":
            return _is_secret_value(value)
        case "api-key":
            # Words joined by hyphens may have digits too, as in names of ciphers.
            return max(map(len, re.split(r"[-_]", value))) >= 16
        case _:
            return entropy(value) > 2.0


def _is_secret_value(value: str) -> bool:
    """Whether a value is more than a word, a name, a reference or a number."""
    if REFERENCE.search(value) or value.lower() in COMMON or UUID.fullmatch(value):
        return False
    if not value.isascii():
        return False  # a sentence, in a language without spaces
    if IDENTIFIER.fullmatch(value) or CAMEL.fullmatch(value) or any(c in value for c in "()[]{}<>"):
        return False
    return len(value) >= 6 and entropy(value) >= ENTROPY - (0.5 if len(value) < 10 else 0)


def _is_no_word(value: str) -> bool:
    """Not a placeholder (`pass`, `secret`, `pw`) and not a format field."""
    return value.lower() not in COMMON | {"pass", "pw", "secret", "pwd", "user", "token"} and not set(value) & set(
        "{}<>"
    )


def _said_otherwise(match: re.Match[str], line: str, source: SourceFile) -> bool:
    """Whether the line says the value is a hash, or the code compares or looks up instead of assigning."""
    if HASH.search(line.replace(match["secret"], "")):
        return True
    if (source.path.lower().endswith(CODE) or source.python) and "quote" in match.re.groupindex:
        # In code only a quoted literal is a value; anything else is an expression.
        return not match["quote"]
    return line.lstrip().startswith(("#", "//", "*", "--")) and "=" not in line


def entropy(text: str) -> float:
    """Shannon entropy in bits per character."""
    total = len(text)
    return -sum(count / total * math.log2(count / total) for count in Counter(text).values()) if total else 0.0
