"""Protections that are switched off, and the same calls with the protection on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps.review.analyzers.running import analyzed

IMPORTS = """import ssl

import jwt
from django.utils.safestring import mark_safe
from lxml import etree as xml
from markupsafe import Markup

"""

UNSAFE = {
    "context.verify_mode = ssl.CERT_NONE": "tls-verification-disabled",
    "context.check_hostname = False": "tls-verification-disabled",
    "jwt.decode(token, verify=False)": "signature-unverified",
    'jwt.decode(token, key, options={"verify_signature": False})': "signature-unverified",
    "xml.XMLParser(resolve_entities=True)": "xml-external-entity",
    "xml.XMLParser(no_network=False)": "xml-external-entity",
    'mark_safe("<b>" + name + "</b>")': "xss",
    'mark_safe(f"<b>{name}</b>")': "xss",
    'Markup("<b>%s</b>" % name)': "xss",
    'Markup("<b>{}</b>".format(name))': "xss",
    'format_html(f"<b>{name}</b>")': "xss",
    "Person.objects.raw(\"select * from person where name = '%s'\" % name)": "sql-injection",
    "asyncio.create_subprocess_shell(command)": "command-injection",
    "cPickle.loads(data)": "unsafe-deserialization",
    'YAML(typ="unsafe")': "unsafe-deserialization",
    'jwt.encode(payload, "s3cret", algorithm="HS256")': "hardcoded-secret",
    'jwt.decode(token, key, algorithms=["none"])': "signature-unverified",
    'app.add_middleware(CORS, allow_origins=["*"], allow_credentials=True)': "security-issue",
}
SAFE = (
    "context.verify_mode = ssl.CERT_REQUIRED",
    "context.check_hostname = True",
    'jwt.decode(token, key, algorithms=["HS256"])',
    'jwt.decode(token, key, options={"verify_aud": False})',
    "xml.XMLParser(resolve_entities=False)",
    'mark_safe("<b>" + "new" + "</b>")',
    'mark_safe("<b>new</b>")',
    'Markup("<b>{}</b>").format(name)',
    "message.decode(verify=False)",
    'format_html("<b>{}</b>", name)',
    'Person.objects.raw("select * from person where name = %s", [name])',
    'asyncio.create_subprocess_shell("ls")',
    'YAML(typ="safe")',
    "jwt.encode(payload, key, algorithm='HS256')",
    'app.add_middleware(CORS, allow_origins=["*"])',
)


@pytest.mark.parametrize("line", UNSAFE)
def test_a_protection_that_is_switched_off_is_reported(tmp_path: Path, line: str) -> None:
    (finding,) = analyzed("unsafe-calls", tmp_path, {"a.py": f"{IMPORTS}{line}\n"}).findings
    assert (finding.category, finding.line) == (UNSAFE[line], IMPORTS.count("\n") + 1)


@pytest.mark.parametrize("line", SAFE)
def test_the_same_with_the_protection_on_is_not(tmp_path: Path, line: str) -> None:
    assert analyzed("unsafe-calls", tmp_path, {"a.py": f"{IMPORTS}{line}\n"}).findings == ()


@pytest.mark.parametrize(
    ("head", "severity"),
    [
        ("def f(context, verify=True):\n    if not verify:", "info"),
        ("def f(context, verify):\n    if verify is False:", "info"),
        ("def f(context, *, insecure=False):\n    if insecure:", "info"),
        ("def f(context, verify=True):\n    if verify:\n        pass\n    else:", "info"),
        ("def f(context, verify=False):\n    if not verify:", "warning"),
        ("def f(context, verify=None):\n    if not verify:", "warning"),
        ("def f(context, verify=True):\n    if verify:", "warning"),
        ("def f(context, verify=default()):\n    if not verify:", "warning"),
        ("def f(context):\n    if not verify:", "warning"),
        ("def f(context, verify=True):\n    with lock:", "warning"),
        ("if not verify:\n    if True:", "warning"),
    ],
)
def test_a_protection_that_only_callers_switch_off_is_a_small_finding(tmp_path: Path, head: str, severity: str) -> None:
    """By a parameter: with the default of the parameter the protection is on."""
    code = f"{IMPORTS}{head}\n        context.verify_mode = ssl.CERT_NONE\n"
    (finding,) = analyzed("unsafe-calls", tmp_path, {"a.py": code}).findings
    assert finding.severity == severity
