"""The parts of a team that are tables in team.toml and arguments in Python: their values, and how tables are read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeVar, cast, get_args

from pydantic_core import ValidationError

from chargehand.settings import Limits
from chargehand.settings.settings_file import SettingsReader
from chargehand.settings.toml_file import suggestion
from chargehand.team.routes import RouteRule
from chargehand.values.base import JSON, Field, Value
from chargehand.values.plan import Plan
from chargehand.values.recovery_policy import EvidenceRule, Policy

_RECOVERY = frozenset({"attempts", "ladder", "score", "hedge_after", "evidence"})
_EVIDENCE: tuple[str, ...] = get_args(EvidenceRule)
_Shape = TypeVar("_Shape", bound=Value)

# plan: a planner decomposes the request. route: a router passes it to a worker as it is.
Mode = Literal["plan", "route"]
MODES: tuple[Mode, ...] = get_args(Mode)
# How deep delegates nest.
MOST_DEPTH = 3


class Example(Value):
    """A request and a good plan for it, shown to the planner."""

    request: str = Field(min_length=1)
    plan: Plan

    def to_json(self) -> dict[str, JSON]:
        return {"request": self.request, "plan": self.plan.to_json()}


class Scrutiny(Value):
    """How closely results are reviewed before they become the answer: the rest of team.toml's [synthesis]."""

    # A reviewer accepts the draft or sends it back, as with `--critic`, at most `rounds` times.
    critic: bool = False
    rounds: int = Field(default=1, ge=1, le=5)
    # Every finding is rated on its own by a scorer.
    rate_findings: bool = False
    # How often the planner may add tasks for what failed, is thin or is missing in the answer.
    extensions: int = Field(default=1, ge=0, le=3)


# Of [limits], those of a run; those of workers and of nesting are read where the file is.
LIMITS = frozenset({"max_concurrent", "max_tasks", "deadline"})


def read_limits(reader: SettingsReader, data: Mapping[str, Any], known: Collection[str] = LIMITS) -> Limits:
    table = reader.table(data, "limits", known=known)
    return Limits(
        max_concurrent=reader.whole(table, "max_concurrent", "limits"),
        max_tasks=reader.whole(table, "max_tasks", "limits"),
        deadline_s=reader.number(table, "deadline", "limits", whole=False),
    )


def read_recovery(reader: SettingsReader, data: Mapping[str, Any]) -> Policy:
    table = dict(reader.table(data, "recovery"))
    hedge_after = reader.number(table, "hedge_after", "recovery", whole=False)
    table.pop("hedge_after", None)
    rule = reader.text(table, "evidence", "recovery")
    if table.pop("evidence", None) is not None and rule in _EVIDENCE:
        table["evidence"] = rule
    elif rule is not None:
        known = ", ".join(map(repr, _EVIDENCE))
        reader.wrong(
            ("recovery", "evidence"), f"'evidence' is one of {known}, not {rule!r}.{suggestion(rule, _EVIDENCE)}"
        )
    try:
        return Policy.model_validate({**table, **({"hedge_after_s": hedge_after} if hedge_after else {})})
    except ValidationError as error:
        for each in error.errors(include_url=False):
            names = [str(part) for part in each["loc"] if isinstance(part, str)]
            if each["type"] == "extra_forbidden":
                reader.unknown(("recovery", *names), _RECOVERY)
            else:
                reader.wrong(("recovery", *names), f"'{'.'.join(names)}': {each['msg']}.")
        return Policy()


def read_routes(reader: SettingsReader, data: Mapping[str, Any]) -> tuple[RouteRule, ...]:
    written = data.get("routes", [])
    if not isinstance(written, list):
        reader.wrong(("routes",), "'routes' is a list of tables: write [[routes]].")
        return ()
    rules: list[RouteRule] = []
    for number, table in enumerate(cast("list[Any]", written)):
        try:
            rules.append(RouteRule.model_validate(table))
        except ValidationError as error:
            wrong_in(reader, error, ("routes", str(number)), RouteRule.model_fields)
    return tuple(rules)


def check_table(
    reader: SettingsReader, name: str, shape: type[_Shape], table: Mapping[str, Any], known: Collection[str]
) -> _Shape:
    """The table as that value; where something is wrong in it, each problem is reported and the default is returned."""
    try:
        return shape.model_validate(table)
    except ValidationError as error:
        wrong_in(reader, error, (name,), known)
        return shape()


def wrong_in(reader: SettingsReader, error: ValidationError, path: tuple[str, ...], known: Collection[str]) -> None:
    """What pydantic found, each at its key."""
    for each in error.errors(include_url=False):
        names = tuple(str(part) for part in each["loc"] if isinstance(part, str) and part in known)
        unknown = [str(part) for part in each["loc"][:1] if part not in known]
        if each["type"] == "extra_forbidden" and unknown:
            reader.unknown((*path, *unknown), known)
        else:
            message = each["msg"].removeprefix("Value error, ")
            reader.wrong((*path, *names), f"'{'.'.join(names) or path[0]}': {message}.")
