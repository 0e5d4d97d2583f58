"""A rule's match becomes a finding: category from a closed vocabulary, severity, and how often the rule is right.

`docs/reference/review-categories.md` explains the words; the figures are checked against the labelled corpus in
`tests/apps/review/analyzers/corpus`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chargehand.apps.review.analyzers import rules
from chargehand.apps.review.analyzers.hit import Hit

if TYPE_CHECKING:
    from chargehand.apps.review.analyzers.lens import Lens
    from chargehand.values.outcome import Finding, Severity

CATEGORIES: Mapping[str, str] = {
    # security
    "archive-traversal": "An archive is unpacked without a check of where its members lead.",
    "bidi-control": "Invisible characters make code read differently from what it does.",
    "cleartext-protocol": "Data or credentials travel unencrypted.",
    "code-injection": "Text is run as code.",
    "command-injection": "A shell runs a command built from data.",
    "debug-enabled": "A debugger or debug mode is open in production code.",
    "exposed-interface": "A server listens on every network interface.",
    "file-permissions": "A file is readable or writable by more than it should be.",
    "hardcoded-secret": "A credential is in the source.",
    "host-key-unverified": "An SSH host is trusted without knowing its key.",
    "insecure-temp-file": "A temporary file can be predicted or replaced.",
    "missing-timeout": "A network call may wait for ever.",
    "open-redirect": "A page sends its visitor to an address from the request.",
    "path-traversal": "A file is opened by a name from outside.",
    "security-issue": "Any other security rule.",
    "signature-unverified": "A token is believed without its signature.",
    "sql-injection": "SQL is built from strings instead of parameters.",
    "ssrf": "A URL of any scheme or host is opened.",
    "tls-verification-disabled": "A certificate is not checked, or an outdated protocol is allowed.",
    "unsafe-deserialization": "Untrusted data can construct any object.",
    "weak-cipher": "Encryption that can be broken, or a key that is too short.",
    "weak-hash": "MD5 or SHA-1 where an attacker could profit from collisions.",
    "weak-random": "Predictable random numbers for something secret.",
    "xml-external-entity": "An XML parser that expands entities.",
    "xss": "Text reaches a page unescaped.",
    # bugs
    "assert-misuse": "An assertion that cannot fail, or does more than assert.",
    "closure-in-loop": "A function made in a loop sees the loop's last value.",
    "comparison-mistake": "A comparison that is always the same, or compares the wrong thing.",
    "control-flow": "A jump that swallows an exception, or code that cannot be reached.",
    "duplicate-key": "The same key, value, handler or name is given twice.",
    "exception-mistake": "What is raised or caught is not an exception, or not the one meant.",
    "format-mismatch": "A format string and its arguments do not agree.",
    "likely-bug": "Any other rule for likely mistakes.",
    "lost-task": "An asynchronous task without a reference: it may be lost.",
    "mutable-default": "A default value shared between calls or instances.",
    "no-effect": "A statement that does nothing.",
    "redefinition": "A name is defined twice before it is used.",
    "resource-leak": "A file or connection is not closed for certain.",
    "swallowed-error": "An error disappears without a trace.",
    "syntax-error": "The file cannot be parsed.",
    "undefined-name": "A name that does not exist where it is used.",
    "wrong-signature": "A special method or call with the wrong arguments or result.",
    # performance
    "blocking-in-async": "A blocking call stops the event loop.",
    "inefficient-loop": "A loop that does again and again what could be done once, or quadratic work.",
    "performance-issue": "Any other performance rule.",
    "query-in-loop": "One query or request per element instead of one for all.",
    # style and maintainability
    "complexity": "A function with more paths than can be tested.",
    "dead-code": "A private name that nothing refers to.",
    "naming": "A name against the conventions of the language.",
    "simplification": "The same in fewer steps.",
    "style-issue": "Any other style rule.",
    "unreachable-code": "Statements after a jump.",
    "unused-import": "An import that nothing refers to.",
    "unused-variable": "A value that is stored and never read.",
    # history
    "commit-instruction": "An earlier commit says how these lines are to be treated.",
    "fixed-before": "Lines that an earlier commit fixed are changed again.",
    "hot-spot": "A file that changes again and again.",
    "reintroduced": "A line is back that a fix or revert took out.",
    "removed-check": "A check, a lock, a safer argument or a test was taken out of what stays.",
    "review-comment": "An earlier review comment is about this place.",
    # comments
    "contract-comment": "Code changed beside a comment that states a rule for it.",
    "out-of-sync": "A comment asks to keep two files in step, and one of them changed alone.",
    "stale-docstring": "A docstring describes a parameter that does not exist.",
    "todo": "Unfinished work noted in the code.",
    # tests
    "untested-change": "Behaviour changed and no test can have run it.",
    # shape
    "conflict-marker": "A merge conflict was committed.",
    "debug-leftover": "A debugging statement was left in.",
    "focused-test": "Only one test is run, the others are skipped.",
    "large-change": "More changed lines than a reviewer can hold.",
    "mixed-line-endings": "Lines of one file end in different ways.",
}

# The categories of the lens `security`.
SECURITY = frozenset(
    {
        "archive-traversal",
        "bidi-control",
        "cleartext-protocol",
        "code-injection",
        "command-injection",
        "debug-enabled",
        "exposed-interface",
        "file-permissions",
        "hardcoded-secret",
        "host-key-unverified",
        "insecure-temp-file",
        "missing-timeout",
        "open-redirect",
        "path-traversal",
        "security-issue",
        "signature-unverified",
        "sql-injection",
        "ssrf",
        "tls-verification-disabled",
        "unsafe-deserialization",
        "weak-cipher",
        "weak-hash",
        "weak-random",
        "xml-external-entity",
        "xss",
    }
)

ADVICE: Mapping[str, str] = {
    "archive-traversal": 'Pass filter="data", or check every member\'s path.',
    "cleartext-protocol": "Use the encrypted protocol (SSH, SFTP, HTTPS).",
    "code-injection": "Parse the text (ast.literal_eval, json) instead of running it.",
    "command-injection": "Pass the command as a list of arguments, without a shell.",
    "debug-enabled": "Turn it on from the environment, for development only.",
    "exposed-interface": "Bind to 127.0.0.1, or to the address that is meant.",
    "file-permissions": "Give the owner alone access: 0o600 or 0o700.",
    "hardcoded-secret": "Read it from the environment or a secret store, and revoke this one.",
    "host-key-unverified": "Load known host keys and reject the others.",
    "insecure-temp-file": "Use tempfile.mkstemp, NamedTemporaryFile or TemporaryDirectory.",
    "missing-timeout": "Pass timeout=.",
    "sql-injection": "Pass the values as parameters of execute.",
    "ssrf": "Allow https and known hosts only.",
    "tls-verification-disabled": "Keep verification on; add the missing authority to the trust store.",
    "unsafe-deserialization": "Use JSON, or yaml.safe_load.",
    "weak-cipher": "Use AES-GCM or ChaCha20-Poly1305; RSA with 2,048 bits or more.",
    "weak-hash": "Use SHA-256, or scrypt for passwords; usedforsecurity=False where it only names things.",
    "weak-random": "Use the secrets module.",
    "xml-external-entity": "Use defusedxml.",
    "xss": "Leave autoescape on.",
}

# The category of a rule without its own entry.
GENERIC: Mapping[Lens, str] = {
    "security": "security-issue",
    "bugs": "likely-bug",
    "performance": "performance-issue",
    "style": "style-issue",
    "history": "hot-spot",
    "comments": "todo",
    "tests": "untested-change",
    "shape": "debug-leftover",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """What a match of a rule means, and how many of 100 matches are worth reporting."""

    category: str
    severity: Severity
    confidence: int


def rule_of(code: str, lens: Lens) -> Rule:
    """The meaning of `tool:code`; a rule without an entry stays below the default threshold."""
    if row := rules.find(code):
        return Rule(*row)
    return Rule(GENERIC[lens], "info", 60)


def findings(hits: Iterable[Hit], lens: Lens) -> tuple[Finding, ...]:
    """The findings for hits, in the order of the files; for each line and category, only the surest."""
    found: dict[tuple[str, int, str], Finding] = {}
    for hit in sorted(hits, key=lambda hit: (hit.path, hit.line, hit.rule)):
        new = _finding(hit, lens)
        key = (hit.path, hit.line, new.category)
        found[key] = _surer(found[key], new) if key in found else new
    return tuple(found.values())


def _finding(hit: Hit, lens: Lens) -> Finding:
    from chargehand.values.outcome import Finding

    rule = rule_of(hit.rule, lens)
    # ruff and bandit say it each in its own words, bandit with the secret itself; here both say the same.
    shared = rules.is_shared(hit.rule)
    return Finding(
        severity=_lower(rule.severity, hit.at_most),
        category=rule.category,
        path=hit.path,
        line=hit.line,
        end_line=hit.end_line or hit.line,
        column=hit.column,
        end_column=hit.end_column,
        message=CATEGORIES[rule.category] if shared else hit.message,
        suggestion=ADVICE.get(rule.category) if shared else hit.suggestion,
        patch=hit.patch,
        confidence=rule.confidence if hit.confidence is None else hit.confidence,
        sources=(hit.rule,),
    )


def _lower(severity: Severity, at_most: Severity | None) -> Severity:
    ranks: tuple[Severity, ...] = ("info", "warning", "critical")
    return severity if at_most is None else ranks[min(ranks.index(severity), ranks.index(at_most))]


def _surer(one: Finding, other: Finding) -> Finding:
    best = other if (other.confidence or 0) > (one.confidence or 0) else one
    return best.model_copy(update={"sources": tuple(dict.fromkeys((*one.sources, *other.sources)))})
