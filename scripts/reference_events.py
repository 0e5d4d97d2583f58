"""The classes of events -> docs/reference/events.md."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from chargehand.events import VERSION, kinds
from chargehand.events.body import BODIES, Body, fields_of

_HEAD = f"""# Events

Made from the code by `make docs`; do not edit.

The record of a run is a list of events, version {VERSION}. `chargehand trace RUN --format jsonl` prints one a line, and
`Supervisor.stream` yields them as they happen. Within a version fields are only added. Every event has these fields:

- `v`: the version; `run`: the run's id; `seq`: its number, from 1 without holes
- `at`: seconds since 1970; `kind`: one of those below
- `task` and `attempt`, if it belongs to a task

`key` is the place of an effect or decision in the run: `t3/2/model/4` is task t3, attempt 2, fourth model call;
keys of the supervisor itself begin with `@`. `fingerprint` is a hash of what was asked. The JSON schema is
[schemas/event.json](schemas/event.json). [In Python](#in-python) each kind is a class.

| kind | when |
|---|---|
"""

EXAMPLE = Path(__file__).with_name("events_example.py")
_IN_PYTHON = """
## In Python

The classes are in `chargehand.events`; their fields are those of the tables. `event.body` is one of them.

```python
{example}```
"""

_WORDS = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "true or false",
    "Data": "object",
    "list[str]": "list of strings",
    "list[Data]": "list of objects",
    "dict[str, str]": "object of strings",
    "dict[str, list[str]]": "object of lists of strings",
    "JSON": "any",
    "None": "null",
}


def events_reference() -> str:
    """docs/reference/events.md as it should be."""
    meanings = _meanings()
    listing = "".join(f"| [`{kind}`](#{kind}) | {_sentence(body)} |\n" for kind, body in BODIES.items())
    sections = "".join(_section(kind, body, meanings) for kind, body in BODIES.items())
    return _HEAD + listing + sections + _IN_PYTHON.format(example=EXAMPLE.read_text(encoding="utf-8"))


def _section(kind: str, body: type[Body], meanings: dict[tuple[str, str], str]) -> str:
    rows: list[str] = []
    for name, field in fields_of(body).items():
        owner = next(each.__name__ for each in body.__mro__ if (each.__name__, name) in meanings)
        words = " or ".join(_WORDS[part] for part in field.type.split(" | "))
        rows.append(f"| `{name}` | {words}{'' if field.required else ', optional'} | {meanings[owner, name]} |\n")
    return f"\n## {kind}\n\n{_sentence(body)}\n\n| field | type | meaning |\n|---|---|---|\n{''.join(rows)}"


def _sentence(body: type[Body]) -> str:
    return " ".join((body.__doc__ or "").split())


def _meanings() -> dict[tuple[str, str], str]:
    """Class and field -> the comment behind the field in the source."""
    source = inspect.getsource(kinds)
    lines = source.split("\n")
    return {
        (each.name, field.target.id): meaning
        for each in ast.parse(source).body
        if isinstance(each, ast.ClassDef)
        for field in each.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if (meaning := lines[field.lineno - 1].partition("  # ")[2])
    }
