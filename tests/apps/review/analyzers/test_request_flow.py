"""Text of a request that reaches something it should not, and the same after a check."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps.review.analyzers.running import analyzed

IMPORTS = """import os
import subprocess

import requests
from flask import redirect as go
from flask import make_response, render_template_string, request, send_file

"""
HEAD = '@app.route("/show/<name>/<int:number>")\ndef show(name, number):\n'

UNSAFE = {
    'os.system("ls " + request.args["folder"])': "command-injection",
    'subprocess.run(f"ls {name}", shell=True)': "command-injection",
    'subprocess.run(["sh", "-c", request.form["command"]])': "command-injection",
    'eval(request.args.get("sum"))': "code-injection",
    "render_template_string(name)": "code-injection",
    "cursor.execute(\"select * from t where name = '%s'\" % name)": "sql-injection",
    'open(request.args["file"])': "path-traversal",
    'send_file(os.path.join("files", name))': "path-traversal",
    'requests.get(request.args["url"])': "ssrf",
    'requests.get(f"https://{name}/start")': "ssrf",
    'go(request.args.get("next"))': "open-redirect",
    'go(request.args.get("next") or "/")': "open-redirect",
    'return "<p>" + name + "</p>"': "xss",
    'make_response(f"<p>{name}</p>")': "xss",
    'HttpResponse("Hello %s" % request.GET["name"])': "xss",
}
SAFE = (
    'os.system("ls")',
    'subprocess.run(["ls", name])',
    "eval(str(number))",
    'cursor.execute("select * from t where name = %s", (name,))',
    "open(secure_filename(name))",
    'requests.get(f"https://example.org/{name}")',
    'go("/start")',
    'go(url_for("start", tab=request.args["tab"]))',
    "go(request.path)",
    'return "<p>" + escape(name) + "</p>"',
    'return f"<p>{number}</p>"',
    'HttpResponse(name, content_type="text/plain")',
)


def found(tmp_path: Path, body: str) -> list[tuple[str, int | None]]:
    text = f"{IMPORTS}{HEAD}{body}"
    return [(each.category, each.line) for each in analyzed("request-flow", tmp_path, {"a.py": text}).findings]


@pytest.mark.parametrize("line", UNSAFE)
def test_text_of_a_request_that_reaches_a_sink_is_reported(tmp_path: Path, line: str) -> None:
    assert found(tmp_path, f"    {line}\n") == [(UNSAFE[line], (IMPORTS + HEAD).count("\n") + 1)]


@pytest.mark.parametrize("line", SAFE)
def test_the_same_without_the_senders_text_is_not(tmp_path: Path, line: str) -> None:
    assert found(tmp_path, f"    {line}\n") == []


def test_a_value_is_followed_through_names(tmp_path: Path) -> None:
    """Assignments, formatting and loops carry it on, and the message says where it was read."""
    text = (
        f"{IMPORTS}def show():\n    file = request.args['file'].strip()\n    for part in [file]:\n        open(part)\n"
    )
    (finding,) = analyzed("request-flow", tmp_path, {"a.py": text}).findings
    assert finding.category == "path-traversal"
    assert f"line {IMPORTS.count(chr(10)) + 2}" in finding.message


@pytest.mark.parametrize(
    "check",
    [
        "if name not in NAMES:\n        abort(404)",
        "if not is_known(name):\n        abort(404)",
        "name = secure_filename(name)",
        "name = 'fixed'",
        "assert name.isalnum()",
    ],
)
def test_a_value_that_was_checked_or_replaced_is_left_alone(tmp_path: Path, check: str) -> None:
    assert found(tmp_path, f"    {check}\n    open(name)\n") == []


def test_that_a_value_is_there_is_not_a_check(tmp_path: Path) -> None:
    assert [each for each, _ in found(tmp_path, "    if name is not None:\n        open(name)\n")] == ["path-traversal"]


def test_other_functions_are_not_those_of_requests(tmp_path: Path) -> None:
    """A parameter alone is nobody's text: only routes and requests name the sender's."""
    text = "import os\n\n\ndef show(name):\n    open(name)\n    os.system(name)\n"
    assert analyzed("request-flow", tmp_path, {"a.py": text}).findings == ()
