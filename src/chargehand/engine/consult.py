"""A question to one of the supervisor's own models -> JSON in the agreed shape. It is asked at most twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from chargehand.engine.port import Engine
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.text.json_repair import read_object
from chargehand.values.effect import usage_of
from chargehand.values.message import Message, user
from chargehand.values.outcome import Fault, Usage
from chargehand.values.role import Role

TIMES = 2


class Consulted(NamedTuple):
    """Either data in the agreed shape or why there is none."""

    data: dict[str, Any] | None
    fault: Fault | None = None


async def consult(
    engine: Engine,
    key: str,
    role: Role,
    model: SupervisorModel,
    messages: Sequence[Message],
    schema: dict[str, Any],
    used: list[Usage],
    check: Callable[[dict[str, Any]], Sequence[str]] | None = None,
    reads: dict[str, Any] | None = None,
    *,
    keeps: bool = False,
) -> Consulted:
    """`used` grows with each call, so the usage of a question that is cut short is counted too.

    `check` says what is wrong with data of the right shape. `reads` is the accepted shape, where it allows more than
    the requested shape. `keeps`: a later run that asks the same gets the same answer, without a call.
    """
    asked = list(messages)
    problems: list[str] = []
    for number in range(1, TIMES + 1):
        call = model.make_call(role, asked, schema, keeps=keeps)
        result = await engine.perform(f"{key}/{number}", call)
        used.append(usage_of(result, call.model))
        if result.reply is None:
            return Consulted(None, result.error)
        data, problems = read_object(result.reply.text, reads or schema)
        if data is not None:
            problems = list(check(data)) if check is not None else []
            if not problems:
                return Consulted(data)
        again = f"Your answer could not be used: {'; '.join(problems)}. Answer with the one JSON object only."
        asked += [result.reply.as_text(), user(again)]
    message = f"The {role} gave no usable answer: {'; '.join(problem.rstrip('.') for problem in problems)}"
    return Consulted(None, Fault(kind="contract", message=message))
