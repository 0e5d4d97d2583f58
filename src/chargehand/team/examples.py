"""examples/*.json -> requests with good plans for the planner, and labelled requests for the router."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from pydantic_core import ValidationError, from_json

from chargehand.errors import InvalidPlan
from chargehand.team.read_team_file import contents
from chargehand.team.routes import RouteExample
from chargehand.team.team_sections import Example
from chargehand.text.plan_json import parse
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.plain_class import plain_class
from chargehand.values.plan import Problem, errors_in

_AT = lazy_regex(r"(.*) at line (\d+) column (\d+)", re.DOTALL)


@plain_class()
class Examples:
    """What was read. `places` has the place of each labelled route."""

    plans: list[Example] = field(default_factory=list[Example])
    routes: list[RouteExample] = field(default_factory=list[RouteExample])
    places: list[str] = field(default_factory=list[str])
    problems: list[Problem] = field(default_factory=list[Problem])

    def wrong(self, place: str, message: str) -> None:
        self.problems.append(Problem(code="invalid_example", message=f"{place}: {message}"))


def read_examples(folder: Path, workers: Sequence[str]) -> Examples:
    """A file holds one example or a list of them."""
    examples = Examples()
    for path in sorted(folder.glob("examples/*.json")):
        label = path.relative_to(folder).as_posix()
        try:
            data = from_json(contents(path).removeprefix(b"\xef\xbb\xbf"), allow_inf_nan=False)
        except OSError as error:
            examples.wrong(f"{label}:1:1", f"this cannot be read: {error.strerror}.")
            continue
        except ValueError as error:
            found = _AT.fullmatch(str(error))
            what, line, column = found.groups() if found else (str(error), 1, 1)
            examples.wrong(f"{label}:{line}:{column}", f"not JSON: {what}.")
            continue
        several: list[Any] = cast("list[Any]", data) if isinstance(data, list) and data else [cast("Any", data)]
        for number, each in enumerate(several, 1):
            place = f"{label}:1:1" if several is not data else f"{label}:1:1: example {number}"
            _take(examples, each, place, workers)
    return examples


def _take(examples: Examples, data: Any, place: str, workers: Sequence[str]) -> None:
    fields = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    try:
        if "primary" in fields:
            examples.routes.append(RouteExample.model_validate(fields))
            examples.places.append(f"{place}: ")
        else:
            examples.plans.append(_read_plan_example(fields, workers))
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        examples.wrong(place, f"a labelled route is {_ROUTE}: {'.'.join(map(str, found['loc']))}: {found['msg']}.")
    except InvalidPlan as error:
        examples.wrong(place, " ".join(str(error).split()))


_ROUTE = '{"request": "...", "primary": "<worker>", "secondary": "<worker, if any>"}'


def _read_plan_example(fields: dict[str, Any], workers: Sequence[str]) -> Example:
    if fields.keys() != {"request", "plan"} or not isinstance(fields["request"], str) or not fields["request"].strip():
        raise InvalidPlan(f'an example is {{"request": "...", "plan": {{...}}}}; a labelled route is {_ROUTE}.')
    plan = parse(fields["plan"])
    if wrong := errors_in(plan.problems(workers)):
        raise InvalidPlan("the plan is not valid: " + " ".join(problem.message for problem in wrong), wrong)
    return Example(request=fields["request"], plan=plan)
