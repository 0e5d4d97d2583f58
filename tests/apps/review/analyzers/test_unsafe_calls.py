"""Protections that are switched off, and the same calls with the protection on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps.review.analyzers.running import analyzed

IMPORTS = """import ssl

import jwt
from django.utils.safestring import mark_safe
from flask import redirect as go
from flask import request
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
    'go(request.args["next"])': "open-redirect",
    'go(request.args.get("next"))': "open-redirect",
    'redirect(self.request.GET["next"])': "open-redirect",
    'mark_safe("<b>" + name + "</b>")': "xss",
    'mark_safe(f"<b>{name}</b>")': "xss",
    'Markup("<b>%s</b>" % name)': "xss",
    'Markup("<b>{}</b>".format(name))': "xss",
}
SAFE = (
    "context.verify_mode = ssl.CERT_REQUIRED",
    "context.check_hostname = True",
    'jwt.decode(token, key, algorithms=["HS256"])',
    'jwt.decode(token, key, options={"verify_aud": False})',
    "xml.XMLParser(resolve_entities=False)",
    'go("/start")',
    'go(url_for("start", tab=request.args["tab"]))',
    "go(request.path)",
    'mark_safe("<b>" + "new" + "</b>")',
    'mark_safe("<b>new</b>")',
    'Markup("<b>{}</b>").format(name)',
    "message.decode(verify=False)",
)


@pytest.mark.parametrize("line", UNSAFE)
def test_a_protection_that_is_switched_off_is_reported(tmp_path: Path, line: str) -> None:
    (finding,) = analyzed("unsafe-calls", tmp_path, {"a.py": f"{IMPORTS}{line}\n"}).findings
    assert (finding.category, finding.line) == (UNSAFE[line], IMPORTS.count("\n") + 1)


@pytest.mark.parametrize("line", SAFE)
def test_the_same_with_the_protection_on_is_not(tmp_path: Path, line: str) -> None:
    assert analyzed("unsafe-calls", tmp_path, {"a.py": f"{IMPORTS}{line}\n"}).findings == ()
