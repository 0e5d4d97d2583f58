"""The tables, the registry, suppressions and confidence."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from chargehand.apps.review.analyzers import ANALYZERS, LENSES, categories, child, confidence, rules, secrets
from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hit
from chargehand.apps.review.analyzers.lens import Lens
from chargehand.apps.review.analyzers.ruff import IGNORE, SELECT
from chargehand.apps.review.analyzers.secrets import entropy
from chargehand.apps.review.analyzers.suppression import drop_silenced, silenced_codes
from chargehand.apps.review.analyzers.versions import digest_of_rules
from chargehand.errors import AnalyzerFailed
from chargehand.values.outcome import Finding
from tests.apps.review.analyzers.running import analyzed, write

DOCS = Path(__file__).parents[4] / "docs/reference/review-categories.md"


def test_the_registry_imports_no_analyzer_and_no_heavy_library() -> None:
    """Naming the analyzers costs nothing; they are loaded when they run."""
    loaded = "[m for m in sys.modules if 'chargehand.apps.review.analyzers.' in m or 'pydantic' in m]"
    code = f"import sys, chargehand.apps.review.analyzers; print(*{loaded})"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == "chargehand.apps.review.analyzers.lens"


def test_every_lens_has_its_analyzers_and_every_analyzer_a_version() -> None:
    """The lenses are those of the type; a version names the tool and the tables."""
    assert set(LENSES) == set(get_args(Lens))
    lenses = [name for names in LENSES.values() for name in names]
    assert sorted([*lenses, "earlier-readings"]) == sorted(ANALYZERS)  # which looks at nothing itself
    for analyzer in map(ANALYZERS.__getitem__, lenses):
        assert analyzer.version().endswith(digest_of_rules())
    assert ANALYZERS["bandit"].version().split()[1][0].isdigit()


def test_every_row_leads_into_the_vocabulary() -> None:
    """Categories, severities and figures of all tables are valid, and every category is in use."""
    rows = [*rules.SECURITY.values(), *rules.RUFF.values(), *rules.OWN.values()]
    assert {row[0] for row in rows} | set(categories.GENERIC.values()) == set(categories.CATEGORIES)
    for category, severity, figure in rows:
        Finding(category=category, severity=severity, confidence=figure, message="x")
    assert set(categories.ADVICE) <= set(categories.CATEGORIES)


def test_two_tools_that_are_one_do_not_lift_a_doubtful_rule_over_the_threshold() -> None:
    """ruff's S rules are a port of bandit's: combined as if independent, what is below 80 stays below."""
    both = {number for number in rules.SECURITY if number not in ("110", "112")}
    for number in both:
        figure = rules.SECURITY[number][2]
        assert figure >= 80 or round(100 * (1 - (1 - figure / 100) ** 2)) < 80, number


def test_every_rule_that_is_selected_has_a_row() -> None:
    """ruff's stable rules of each lens have a category of their own or of their family; the rest is generic."""
    run = subprocess.run(
        [sys.executable, "-I", "-m", "ruff", "rule", "--all", "--output-format", "json"],
        check=True,
        capture_output=True,
    )
    known: list[dict[str, Any]] = json.loads(run.stdout)
    codes = [rule["code"] for rule in known if rule["code"] and not rule["preview"]]
    for lens, selected in SELECT.items():
        for selector in f"{selected},{IGNORE[lens]}".strip(",").split(","):
            assert any(code.startswith(selector) for code in codes), selector
    for code in codes:
        if re.match(r"S\d", code) and not code.startswith(tuple(IGNORE["security"].split(","))):
            assert rules.find(f"ruff:{code}") != rules.RUFF["S"], code


def test_a_rule_nobody_described_is_generic_and_below_the_threshold() -> None:
    """A newer tool may have rules this version does not know."""
    for lens in get_args(Lens):
        rule = categories.rule_of("tool:X999", lens)
        assert rule.category == categories.GENERIC[lens]
        assert rule.confidence < 80


def test_the_page_names_every_category() -> None:
    """docs/reference/review-categories.md explains the whole vocabulary in the words of the code."""
    page = DOCS.read_text(encoding="utf-8")
    missing = [name for name, meaning in categories.CATEGORIES.items() if f"| `{name}` | {meaning} |" not in page]
    assert missing == []


@pytest.mark.parametrize(
    ("line", "rule", "is_silenced"),
    [
        ("x  # noqa", "ruff:F401", True),
        ("x  # noqa", "secrets:assigned", True),
        ("x  # noqa: F401", "ruff:F401", True),
        ("x  # NOQA:F401,B006", "ruff:B006", True),
        ("x  # noqa: F401", "ruff:F841", False),
        ("x  # noqa: S608", "bandit:B608", True),
        ("x  # nosec", "ruff:S608", True),
        ("x  # nosec", "ruff:F401", False),
        ("x  # nosec", "ruff:SIM102", False),
        ("x  # nosec B608", "ruff:S608", True),
        ("x  # nosec B608", "bandit:B301", False),
        ("x  # nosec: B301, B608", "bandit:B608", True),
        ("x  # nosec hardcoded_sql_expressions", "bandit:B608", True),
        ("x  # noqa: S105", "secrets:assigned", True),
        ("x  // pragma: allowlist secret", "secrets:known", True),
        ("x  # gitleaks:allow", "ruff:S105", True),
        ("x  # gitleaks:allow", "ruff:S608", False),
        ("x = 'plain'", "ruff:F401", False),
    ],
)
def test_a_comment_silences_what_it_names(line: str, rule: str, is_silenced: bool) -> None:
    """Across tools: the same test has the same number in both."""
    assert (drop_silenced([Hit(rule, "a.py", 1, "m")], [line]) == []) == is_silenced


def test_a_plain_line_silences_nothing() -> None:
    """The common case is cheap."""
    assert silenced_codes("return nothing") == frozenset()


@pytest.mark.parametrize(
    ("category", "figure", "changed", "test_code", "expected"),
    [
        ("sql-injection", 84, None, False, 84),
        ("sql-injection", 84, True, False, 84),
        ("sql-injection", 84, False, False, 54),
        ("sql-injection", 84, None, True, 59),
        ("undefined-name", 94, None, True, 94),
        ("undefined-name", 94, False, True, 64),
        ("todo", 60, None, False, 60),
        ("todo", 60, True, False, 80),
        ("debug-leftover", 92, True, True, 100),
        ("command-injection", 10, False, True, 0),
    ],
)
def test_confidence_depends_on_the_place(
    category: str, figure: int, changed: bool | None, test_code: bool, expected: int
) -> None:
    """The rule of the reference page, case by case."""
    finding = Finding(category=category, confidence=figure, message="m", sources=("tool:rule",))
    assert confidence.adjusted_confidence(finding, changed=changed, test_code=test_code) == expected


def test_a_key_of_known_form_is_as_bad_in_a_test() -> None:
    """A password made up for a test is not."""
    key = Finding(category="hardcoded-secret", confidence=95, message="m", sources=("t1", "secrets:known"))
    word = key.model_copy(update={"sources": ("t1", "secrets:assigned")})
    assert confidence.adjusted_confidence(key, changed=None, test_code=True) == 95
    assert confidence.adjusted_confidence(word, changed=None, test_code=True) == 70


def test_every_category_exempt_from_the_rule_for_tests_exists() -> None:
    """A misspelt category would never match."""
    assert set(categories.CATEGORIES) >= confidence.ANYWHERE
    assert set(categories.CATEGORIES) >= confidence.NOTES


@pytest.mark.parametrize(
    "line",
    [
        "password = 'vR7-plate-Ocean_88'",
        'const secret = "a81bC93dE04fG15h";',
        "export API_KEY=zX81kPq02LmN7vTs",
        "url = 'https://ada:Moon-27-x@git.internal/shop.git'",
        "Authorization: Basic c3ludGhldGljLWNvcnB1czptb29uMjc=",
        "AccountKey=c3ludGhldGljIGNvcnB1cyBrZXkgMDEyMzQ1Njc4OQ==",
    ],
)
def test_a_credential_is_found_in_any_language(tmp_path: Path, line: str) -> None:
    """By what it is called, where it stands, or its form."""
    assert _secrets(tmp_path, {"settings.conf": f"# settings\n{line}\n"}) == [("settings.conf", 2)]


@pytest.mark.parametrize(
    "line",
    [
        "password = getpass()",
        "password: str = Field(default=...)",
        "if token == other.token:",
        "secret = vault.read('shop/database')",
        "PASSWORD_MIN_LENGTH = 12",
        "api_key: ${API_KEY}",
        "token = '{{ token }}'",
        "password=<secret>",
        "sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "password_hash_algorithm = 'pbkdf2_sha256'",
        "token_type = 'urn:ietf:params:oauth:token-type:jwt'",
        "https://user:pass@example.com/path",
        "key = 'some-cache-key-v2'",
        "SECRET_KEY = os.environ['SECRET_KEY']",
        "password = 'xxxxxxxxxxxx'",
        "apiKey: 'your-api-key'",
        "ciphers = sk-ssh-ed25519-cert-v01@openssh.com",
        "AWS_SECRET_ACCESS_KEY=AKIAIOSFODNN7EXAMPLE",
        "address = 'https://aac2a371c5c3e0093d53df0bbb4df204@o118517.ingest.us.sentry.io/1373987'",
        "config_password_changed: '密码已更新，请重新登录'",
    ],
)
def test_what_only_looks_like_a_credential_is_not(tmp_path: Path, line: str) -> None:
    """Code, references, placeholders, hashes and names."""
    assert _secrets(tmp_path, {"settings.py": f"{line}\n", "settings.conf": f"{line}\n"}) == []


def test_a_name_without_a_value_does_not_take_the_next_line_for_it(tmp_path: Path) -> None:
    """As in a template of settings, where all values are left out."""
    names = "OPENAI_API_KEY=\nORCA2ROUTER_API_KEY=\nOLLAMA_API_KEY=\nSHOP_9_ACCESS_TOKEN=\n"
    assert _secrets(tmp_path, {"settings.env": names, "settings.conf": names}) == []


def test_a_name_that_is_only_imported_twice_is_below_the_threshold(tmp_path: Path) -> None:
    """A function that takes the place of another is above it."""
    text = "from a import b\nfrom a import b\n\n\ndef test_one():\n    b()\n\n\ndef test_one():\n    b(2)\n"
    found = [f for f in analyzed("ruff-bugs", tmp_path, {"a.py": text}).findings if f.category == "redefinition"]
    assert [(f.line, (f.confidence or 0) >= 80) for f in found] == [(2, False), (9, True)]


def test_the_key_that_a_signed_address_names_is_not_a_secret(tmp_path: Path) -> None:
    """It is open to everybody who has the address; the same text elsewhere is reported."""
    key = "AKIA" + "QX7RTPBN5LMKJW3D"
    signed = f"https://files.example.org/a?X-Amz-Algorithm=AWS4&X-Amz-Credential={key}%2F20250517%2Fus-east-1"
    assert _secrets(tmp_path, {"a.json": f'{{"address": "{signed}"}}\n'}) == []
    assert _secrets(tmp_path, {"a.json": f'{{"id": "{key}"}}\n'}) == [("a.json", 1)]


def test_a_token_without_a_signature_is_an_example(tmp_path: Path) -> None:
    """It opens nothing; with a signature it may."""
    head = "eyJhbGciOiJIUzI1NiJ9" + ".eyJ1c2VyIjoiYWRtaW4ifQ."
    signature = "dBjftJeZ4CVP" + "mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    assert _secrets(tmp_path, {"a.py": f"text = '{head}'\n", "b.py": f"text = '{head}AAAA'\n"}) == []
    assert _secrets(tmp_path, {"c.py": f"text = '{head}{signature}'\n"}) == [("c.py", 1)]


FALSE_ALARMS = {
    "a signature in quotes": ("ruff-bugs", 'class Service:\n    def version(self) -> "s":\n        return 1\n'),
    "a fixture that is kept": ("ruff-bugs", "from fixtures import data\n\ndata = data\n"),
    "a query of the module": (
        "ruff-security",
        "def _match(n):\n    return f'id = ${n}'\n\n\nQUERY = f\"SELECT name FROM person WHERE {_match(1)}\"\n",
    ),
}


@pytest.mark.parametrize(("analyzer", "text"), FALSE_ALARMS.values(), ids=FALSE_ALARMS)
def test_what_turned_out_to_be_meant_so_in_other_projects_is_below_the_threshold(
    tmp_path: Path, analyzer: str, text: str
) -> None:
    """Each was reported about a project that does nothing wrong there."""
    assert [f for f in analyzed(analyzer, tmp_path, {"a.py": text}).findings if (f.confidence or 0) >= 80] == []


@pytest.mark.parametrize(
    ("analyzer", "text"),
    [
        ("ruff-bugs", "def version(value: Optional[str]) -> str:\n    return value\n"),
        ("ruff-bugs", "def keep(value):\n    value = value\n    return value\n"),
        ("ruff-security", "def find(db, name):\n    db.execute(f\"SELECT a FROM person WHERE name = '{name}'\")\n"),
    ],
)
def test_the_same_in_earnest_is_above_it(tmp_path: Path, analyzer: str, text: str) -> None:
    """A name that is missing when the module is imported, an assignment to itself in a function, a made-up query."""
    assert [f for f in analyzed(analyzer, tmp_path, {"a.py": text}).findings if (f.confidence or 0) >= 80]


def _secrets(root: Path, files: dict[str, str]) -> list[tuple[str, int]]:
    """The child's side alone: these lines need no process each."""
    return [(hit.path, hit.line) for hit in secrets.examine(AnalysisOrder(root, write(root, files), None, {})).hits]


@pytest.mark.parametrize(
    ("line", "is_key"),
    [
        ("client = Client('q7Gx2LmZt9Kc4VbN8sRj1WpY5dHf')  # login", True),
        ('account_id, pepper = 7, hmac.new(b"x", "aZ4kP0qVt7LmX2cR9sWd3GhJ5nBf")', True),
        ('BLOB = "q7Gx2LmZt9Kc4VbN8sRj1WpY5dHf"', False),
        ('auth = "/api/v2/AccountLogin/SessionToken/Refresh1"', False),
        ('authorize("requestTokenForServiceAccount2")', False),
        ('auth_hash = "sha256-q7Gx2LmZt9Kc4VbN8sRj1WpY5dHf"', False),
        ('auth_public = "q7Gx2LmZt9Kc4VbN8sRj1WpY5dHf"', False),
    ],
)
def test_a_key_is_known_by_its_form_where_access_is_given(tmp_path: Path, line: str, is_key: bool) -> None:
    """Whatever it is called; a text without that context, a path, words or a hash are none."""
    assert bool(analyzed("secrets", tmp_path, {"a.py": f"{line}\n"}).findings) is is_key


def test_words_of_a_literal_are_no_annotations(tmp_path: Path) -> None:
    """Whichever package its Literal is from."""
    text = 'from kit import DF\n\n\nclass A:\n    enable: DF.Literal["", "Yes", "No"]\n'
    assert [f for f in analyzed("ruff-bugs", tmp_path, {"a.py": text}).findings if (f.confidence or 0) >= 80] == []


def test_a_private_class_in_small_letters_stands_in_for_a_builtin(tmp_path: Path) -> None:
    text = "class _dict(dict):\n    pass\n\n\nclass lower_one:\n    pass\n"
    found = analyzed("ruff-style", tmp_path, {"a.py": text}).findings
    assert [f.line for f in found if (f.confidence or 0) >= 80] == [5]


def test_entropy_tells_words_from_keys() -> None:
    """In bits per character; nothing has none."""
    assert entropy("") == 0.0
    assert entropy("aaaa") == 0.0
    assert entropy("password") < entropy("q8W2nR5tZ7xC1vB4")


@pytest.mark.usefixtures("anew")
def test_a_module_that_crashes_in_the_child_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An analyzer that fails says so with the child's last words."""
    monkeypatch.setattr(child, "START", "raise SystemExit('out of order')")
    with pytest.raises(
        AnalyzerFailed, match=r"^The analyzer loops ended with code 1 and left no result: out of order$"
    ):
        analyzed("loops", tmp_path, {"a.py": "x = 1\n"})


def test_a_module_that_offers_a_debugger_has_left_none_in(tmp_path: Path) -> None:
    """The call is reported as sure, the import alone is not."""
    code = "import pdb\n\n\ndef stop():\n    pdb.post_mortem()\n\n\ndef f():\n    breakpoint()\n"
    found = analyzed("ruff-bugs", tmp_path, {"a.py": code}).findings
    sure = {finding.line: finding.confidence for finding in found if finding.category == "debug-leftover"}
    assert sure == {1: 30, 9: 92}
