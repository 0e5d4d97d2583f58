"""The data of an answer as the type that the caller asked for, or why it is not valid."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic_core import ValidationError

from chargehand.errors import UsageError
from chargehand.synthesizer.synthesis import Validate
from chargehand.values.base import JSON
from chargehand.values.report import INVALID_DATA, Gap, Report
from chargehand.values.request import Request

if TYPE_CHECKING:
    from pydantic import BaseModel

D = TypeVar("D", bound="BaseModel")


def asked_for(request: Request, output_type: type[BaseModel] | None) -> Request:
    """The request of a new run that repeats one on record, with the schema of a type given for the new one."""
    if output_type is None:
        return request
    return request.model_copy(update={"answer_schema": output_type.model_json_schema()})


def check_asked(run: str, start: dict[str, Any], output_type: type[BaseModel] | None) -> None:
    """Raise UsageError for a run to continue that was not asked for data, and so can have none of this type."""
    if output_type is not None and start and start["request"].get("answer_schema") is None:
        raise UsageError(
            f"Run {run} was started without output_type or schema, so its answer has no data. Leave out output_type, "
            f"or make a new run: await supervisor.rerun({run!r}, output_type={output_type.__name__})."
        )


def check_untyped(output_type: type[BaseModel] | None) -> None:
    """Raise UsageError for a run on Temporal: other machines do not have the class."""
    if output_type is not None:
        raise UsageError("A run on Temporal takes no output_type: leave it out, or give a schema.")


def invalid_data(output_type: type[BaseModel] | None) -> Validate | None:
    """What judges data while the answer is written; None without a type."""
    return None if output_type is None else partial(_why_invalid, output_type)


def with_typed_data(report: Report, output_type: type[BaseModel] | None) -> Report:
    """The report with its data as the type asked for; data that is not valid is left out, which is a gap."""
    if output_type is None:
        return report
    if report.data is None:
        return report.with_data(None)
    checked = _validate_data(output_type, report.data)
    if not isinstance(checked, str):
        return report.with_data(checked)
    if any(gap.reason == checked for gap in report.gaps):
        return report.with_data(None)
    gap = Gap(reason=checked, impact=INVALID_DATA)
    status = "partial" if report.status == "complete" else report.status
    return report.model_copy(update={"gaps": (*report.gaps, gap), "status": status}).with_data(None)


def _why_invalid(output_type: type[BaseModel], data: JSON) -> str | None:
    checked = _validate_data(output_type, data)
    return checked if isinstance(checked, str) else None


def _validate_data(output_type: type[BaseModel], data: JSON) -> BaseModel | str:
    """The data as the type, or why it is not valid: the caller's validators may raise anything."""
    try:
        return output_type.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        why = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'data'}: {e['msg']}" for e in found[:20])
    except Exception as error:  # noqa: BLE001 -- recorded: it becomes a gap of the report
        why = f"its validator raised {type(error).__name__}: {error}"
    return f"The answer is not a valid {output_type.__name__}: {why}"
