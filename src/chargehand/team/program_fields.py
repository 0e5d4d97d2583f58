"""The fields of a worker file that are about its program -> a Program, with what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

from chargehand.settings.toml_file import suggestion
from chargehand.text.front_matter import Field
from chargehand.values.message import ToolEffect
from chargehand.values.program import Preset, Program, SandboxRule

PROGRAM_KEYS = (
    "command", "preset", "worktree", "verify", "effect", "env", "home_files", "visible", "network", "sandbox",
    "timeout_s",
)  # fmt: skip
_LISTS = ("command", "verify", "env", "home_files", "visible")
_FLAGS = ("worktree", "network")
_CHOICES: dict[str, tuple[str, ...]] = {
    "preset": get_args(Preset),
    "effect": get_args(ToolEffect),
    "sandbox": get_args(SandboxRule),
}


def read_program(fields: Mapping[str, Field], root: Path, wrong: Callable[[str, str, str], None]) -> Program | None:
    """None where there is nothing to start. Arguments that begin with ./ are files of the team's folder."""
    given: dict[str, Any] = {}
    for key in (key for key in PROGRAM_KEYS if key in fields):
        field = fields[key]
        if key in _LISTS:
            if not isinstance(field.value, list):
                wrong("invalid_value", key, f"{key!r} is a list, such as [python3, -m, pytest]: write it in brackets.")
            else:
                given[key] = tuple(_place(item, root) for item in field.items)
        elif key in _FLAGS:
            if not isinstance(field.value, bool):
                wrong("invalid_value", key, f"{key!r} is true or false, not {field.text[:60]!r}.")
            else:
                given[key] = field.value
        elif key in _CHOICES:
            if field.text not in _CHOICES[key]:
                choices = _CHOICES[key]
                message = f"{field.text[:60]!r} is not one of {', '.join(choices)}.{suggestion(field.text, choices)}"
                wrong("invalid_value", key, message)
            else:
                given[key] = field.text
        elif isinstance(field.value, bool) or not isinstance(field.value, int | float) or field.value <= 0:
            wrong("invalid_value", key, f"{key!r} is a number of seconds over 0, not {field.text[:60]!r}.")
        else:
            given[key] = float(field.value)
    return make_program(given, root)


def make_program(given: Mapping[str, Any], root: Path) -> Program | None:
    """The program with its defaults: a preset's name and network, what a checkout means, the team's own files."""
    preset = given.get("preset")
    command = given.get("command") or ((preset,) if preset else ())
    if not command:
        return None
    defaults: dict[str, Any] = {"network": preset is not None}
    if given.get("worktree"):
        # The checkout is deleted and made again: running the program twice changes nothing else.
        defaults["effect"] = "idempotent"
    own = str(root.resolve())
    uses_own = any(Path(item).is_relative_to(own) for item in (*command, *given.get("verify", ())))
    visible = (*given.get("visible", ()), *((own,) if uses_own else ()))
    return Program.model_validate({**defaults, **given, "command": tuple(command), "visible": visible})


def _place(item: str, root: Path) -> str:
    return str(root.resolve() / item[2:]) if item.startswith("./") else item
