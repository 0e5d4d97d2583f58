"""The arguments of `Supervisor` and its methods: one table of rules, and one UsageError before anything is recorded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from chargehand.errors import UsageError
from chargehand.settings import Settings
from chargehand.team import Team
from chargehand.values.argument_rules import Rule, flag, function, instance_of, number, optional, path, text
from chargehand.values.argument_rules import wrong_arguments as find_wrong
from chargehand.values.plan import Plan
from chargehand.values.report import Gap
from chargehand.values.request import AppRun, Subject


def check_arguments(arguments: Mapping[str, Any], rules: Mapping[str, Rule] | None = None) -> None:
    """Raise one UsageError with a sentence for each argument that cannot be used."""
    if wrong := find_wrong(arguments, RULES if rules is None else rules):
        raise UsageError("\n".join(wrong.values()))


def _team(value: Any) -> str | None:
    if isinstance(value, Team | str | os.PathLike):
        return None
    return "a Team, such as Team(workers=[...]), the name of a shipped team, or a folder"


def _model(value: Any) -> str | None:
    if isinstance(value, str) or (not isinstance(value, type) and callable(getattr(value, "complete", None))):
        return None
    return "'provider:name' or a client, such as ScriptedModel([...])"


def _run(value: Any) -> str | None:
    return None if isinstance(value, str) else "the id of a run, such as report.run, or 'last'"


def _plan(value: Any) -> str | None:
    if isinstance(value, Plan | Mapping):
        return None
    if isinstance(value, str | os.PathLike):
        return "a Plan or its data; a file is read with json.loads(Path('plan.json').read_text())"
    return "a Plan or its data"


def _material(value: Any) -> str | None:
    is_list = isinstance(value, Iterable) and not isinstance(value, Mapping | bytes)
    return None if is_list or isinstance(value, os.PathLike) else "a path or a list of paths"


def _schema(value: Any) -> str | None:
    if isinstance(value, dict):
        return None
    return "a JSON schema as a dict; a pydantic model is given as output_type"


def _output_type(value: Any) -> str | None:
    # A generic alias such as list[City] passes attributes on to its class.
    if isinstance(value, type) and not hasattr(value, "__origin__") and hasattr(value, "model_json_schema"):
        return None
    return "a class that derives from pydantic's BaseModel; for a list, one with a field that is a list"


def _gaps(value: Any) -> str | None:
    is_list = isinstance(value, list | tuple) and all(isinstance(each, Gap) for each in value)  # pyright: ignore[reportUnknownVariableType]
    return None if is_list else "a list of Gap"


_count = optional(number("a whole number above 0, or leave it out", whole=True, above=0))
_amount = optional(number("a number above 0, or leave it out", above=0))
_seconds = optional(number("a number of seconds above 0, or leave it out", above=0))

FORK_MODEL = instance_of("'provider:name'; a client is given to Supervisor", str)
NOTIFY = optional(function("a function, not an async one, that takes a sentence", 1, coroutine=False))
WATCH: dict[str, Rule] = {
    "record": optional(function("a function without parameters", 0, coroutine=False)),
    "person": optional(
        function("an async function that takes the question and what was wrong with the last answer", 2, coroutine=True)
    ),
    "on_event": optional(function("a function, not an async one, that takes an event", 1, coroutine=False)),
    "on_draft": optional(function("a function, not an async one, that takes a number and a text", 2, coroutine=False)),
    "on_session": optional(function("a function, not an async one, that takes a Session", 1, coroutine=False)),
    "stay": flag,
}
RULES: dict[str, Rule] = {
    "team": optional(_team),
    "model": optional(_model),
    "home": optional(path),
    "settings": optional(instance_of("a Settings", Settings)),
    "request": instance_of("a str that says what is to be done", str),
    "plan": optional(_plan),
    "subject": optional(instance_of("a Subject", Subject)),
    "gaps": _gaps,
    "app": optional(instance_of("an AppRun", AppRun)),
    "material": _material,
    "stdin": optional(text),
    "tokens": _count,
    "usd": _amount,
    "deadline": _seconds,
    "wait": optional(number("a number of seconds, 0 for not at all, or leave it out", least=0)),
    "max_concurrent": _count,
    "max_tasks": _count,
    "schema": optional(_schema),
    "output_type": optional(_output_type),
    "follow_up": optional(_run),
    "approve": flag,
    "ask": flag,
    "critic": flag,
    "web": flag,
    "single": optional(flag),
    "retry_failed": flag,
    "run": _run,
    "at": optional(text),
    "question": instance_of("the id of a question, such as 'plan'", str),
    "words": instance_of(
        "a str: 'approve', 'reject [reason]', the answer; or data, such as plan.to_json()", str, dict, list
    ),
    "by": text,
    **WATCH,
}
