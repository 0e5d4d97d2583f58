"""Events -> one self-contained page, and the same page for a server to send, with live updates.

The page is drawn by the modules in `page/`. A page in a file contains the modules and its data; a page from a server
loads them from the server. Secrets are redacted when events come in, so that no later code can leak one. The policy of
the page allows its own style and script, and forbids requests to other hosts.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from functools import cache, partial
from graphlib import TopologicalSorter
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, cast

from chargehand.events import Event
from chargehand.text.escaping import show_controls
from chargehand.text.redaction import Redactor
from chargehand.trace.elements import inert_json, quiet, section, table
from chargehand.trace.number_text import short
from chargehand.trace.page_state import page_state
from chargehand.trace.run_parts import Data
from chargehand.trace.run_state import RunState
from chargehand.trace.task_detail import Messages, StatusOf, task_details

MOST_EVENTS = 2_000
# The most characters for the details of all tasks together. Tasks beyond it are listed without details.
ROOM = 8_000_000
_IMPORT = re.compile(r'^import (?:\* as (\w+)|\{ ([^}]*) \}) from "\./([\w.]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)


def to_html(
    events: Iterable[Event],
    redactor: Redactor,
    *,
    messages: Messages | None = None,
    status: str | None = None,
    is_over: bool | None = None,
    shown: Data | None = None,
) -> str:
    """The page in one file.

    `status` replaces the status on record: a run whose process died is `interrupted`. `is_over`: no process has the
    run any more. `shown` holds the parts of the report that the app of the run words differently, such as a review,
    whose findings come first.
    """
    view = RunState()
    kept = [_redact(event, redactor) for event in events]
    for event in kept:
        view.apply(event)
    if status is not None:
        view.status = status
    if shown is not None:
        view.report = {**(view.report or {}), **cast(Data, redactor.json(shown))}
    state = page_state(view, is_over=is_over) | {"findings_first": shown is not None}
    data = {
        "state": state,
        "details": _details(view, kept, messages, redactor, partial(view.status_of, is_over=is_over)),
        "events": [event.to_json() for event in kept[:MOST_EVENTS]],
    }
    style, script = asset("style.css"), _script()
    return Template(asset("index.html")).substitute(
        root="",
        policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'",
        title=escape(f"{short(view.request or view.run, 80)} · chargehand"),
        style=f"<style>{style}</style>",
        content=_without_scripts(state),
        script=f'<script type="application/json" id="data">{show_controls(inert_json(data))}</script>'
        f"<script>{script}</script>",
    )


def live_page(root: str = "") -> str:
    """The page as a server sends it, for `/` and for every run. `root` is the path in front of all its addresses."""
    here = escape(root)
    return Template(asset("index.html")).substitute(
        root=here,
        policy="default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'",
        title="chargehand",
        style=f'<link rel="stylesheet" href="{here}/page/style.css">',
        content="<noscript>This page needs JavaScript; `chargehand show` shows the same in a terminal.</noscript>",
        script=f'<script type="module" src="{here}/page/main.js"></script>',
    )


@cache
def asset(name: str) -> str:
    """A file of the page."""
    return files("chargehand.trace.page").joinpath(name).read_text(encoding="utf-8").strip()


def _redact(event: Event, redactor: Redactor) -> Event:
    task = None if event.task is None else redactor.text(event.task)
    return event._replace(task=task).with_data(cast(Data, redactor.json(event.data)))


def _details(
    view: RunState, events: list[Event], messages: Messages | None, redactor: Redactor, status_of: StatusOf
) -> dict[str, Data]:
    """The details of the tasks, up to `ROOM` characters."""
    kept: dict[str, Data] = {}
    room = ROOM
    # Tasks that are not done come first.
    tasks = sorted(view.tasks.values(), key=lambda task: task.status == "done")
    for id, detail in task_details(tasks, events, messages or _none, status_of):
        clean = cast(Data, redactor.json(detail))
        room -= len(json.dumps(clean))
        if room < 0:
            break
        kept[id] = clean
    return kept


def _none(hashes: Iterable[str]) -> dict[str, bytes]:
    return {}


@cache
def page_modules() -> tuple[str, ...]:
    """The modules of the page, each after the modules that it imports."""
    names = sorted(path.name for path in files("chargehand.trace.page").iterdir() if path.name.endswith(".js"))
    imports = {name: [found[3] for found in _IMPORT.finditer(asset(name))] for name in names}
    return tuple(TopologicalSorter(imports).static_order())


@cache
def _script() -> str:
    """The modules as one script, each in its own function."""
    return "\n".join(['"use strict";', "const modules = {};", *map(_wrap, page_modules())])


def _wrap(name: str) -> str:
    code = asset(name)
    names = ", ".join(_EXPORT.findall(code))
    code = _EXPORT.sub("", _IMPORT.sub(_take, code))
    return f'modules["{name}"] = (() => {{\n{code}\nreturn {{ {names} }};\n}})();'


def _take(found: re.Match[str]) -> str:
    whole, names, module = found.groups()
    taken = whole or "{ " + names.replace(" as ", ": ") + " }"
    return f'const {taken} = modules["{module}"];'


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _without_scripts(state: Data) -> str:
    """The most important parts, for readers without scripts. The script of the page replaces them."""
    report = cast(Data, state["report"] or {})
    answer = report.get("answer_html") or '<p class="quiet">There is no answer on the record.</p>'
    gaps = "".join(map(_gap, cast(list[Data], report.get("gaps") or [])))
    contradictions = "".join(map(_contradiction, cast(list[Data], report.get("contradictions") or [])))
    notes = "".join(f"<li>{escape(str(note))}</li>" for note in cast(list[Any], report.get("notes") or []))
    rows = "".join(
        f"<tr><td>{escape(task['id'])}</td><td>{escape(task['worker'])}</td>"
        f"<td>{state['begun'].get(task['id'], task['status'])}</td>"
        f"<td>{escape(task['says'])}</td></tr>"
        for task in state["tasks"][:1000]
    )
    items = "".join(map(_finding, cast(list[Data], report.get("findings") or [])))
    findings = section("Findings", f'<ol class="findings">{items}</ol>') if items else ""
    said = section("Answer", f'<div class="prose">{answer}</div>')
    parts = (
        f"<h1>{escape(short(state['request'] or state['run'], 240))}</h1><p>{escape(state['status'])}</p>",
        *((findings, said) if state["findings_first"] else (said, findings)),
        section("Gaps", f"<ul>{gaps}</ul>", "alert") if gaps else "",
        section("Contradictions", f"<ul>{contradictions}</ul>") if contradictions else "",
        section("Notes", f"<ul>{notes}</ul>") if notes else "",
        section("Tasks", table("", ("Task", "Worker", "Status", "Result"), rows), "body") if rows else "",
    )
    return show_controls("".join(parts))


def _gap(gap: Data) -> str:
    task = f"{gap['task']}: " if gap.get("task") else ""
    return f"<li>{escape(task + str(gap.get('reason', '')))}{quiet(str(gap.get('impact') or ''))}</li>"


def _contradiction(found: Data) -> str:
    claims = cast(list[Data | str], found.get("claims") or [])
    said = "".join(quiet(claim if isinstance(claim, str) else str(claim.get("statement", ""))) for claim in claims)
    verdict = f"<br>Verdict: {escape(str(found['verdict']))}" if found.get("verdict") else ""
    state = "resolved" if found.get("resolved") else "open"
    return f"<li><strong>{escape(str(found.get('subject', '')))}</strong> · {state}{said}{verdict}</li>"


def _finding(finding: Data) -> str:
    place = f"{finding.get('path') or ''}{f':{line}' if (line := finding.get('line')) else ''}"
    confidence = finding.get("confidence")
    sure = f"<small>confidence {confidence}</small>" if isinstance(confidence, int) else ""
    return (
        f'<li><span class="sev">{escape(str(finding.get("severity")))}</span><div><code>{escape(place)}</code>'
        f"<p>{escape(short(str(finding.get('message', '')), 1000))}</p></div>{sure}</li>"
    )
