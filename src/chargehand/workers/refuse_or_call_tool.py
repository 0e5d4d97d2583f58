"""Calls of tools that a model asks for -> their results: approved, performed once by key, or refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from chargehand.engine.people import doubt, question_about_doubt, question_about_tool, verdict
from chargehand.engine.port import Engine
from chargehand.errors import ToolErrorCode
from chargehand.events import ToolRefused
from chargehand.values.effect import ToolCall, ToolResult
from chargehand.values.message import ToolEffect, ToolRequest, ToolSpec
from chargehand.values.outcome import Fault
from chargehand.workers import Assignment
from chargehand.workers.worker_prompt import ESCALATE


class AgentTool(NamedTuple):
    """A tool as the agent knows it: what the model reads about it, and the effect of a call."""

    spec: ToolSpec
    effect: ToolEffect
    approve: bool = False
    code: str = ""


class WorkerTools:
    """The tools of one worker in one attempt. `ask`: a person may be asked."""

    def __init__(
        self, worker: str, tools: Mapping[str, AgentTool], assignment: Assignment, engine: Engine, *, ask: bool
    ) -> None:
        self._worker = worker
        self._tools = tools
        self._assignment = assignment
        self._engine = engine
        self._ask = ask

    async def call(self, request: ToolRequest, place: str) -> ToolResult:
        """The result of one call. `place` is its number within the attempt, such as `2.1`."""
        tool = self._tools.get(request.name)
        if tool is None:
            reason = f"{self._worker} has no tool {request.name!r}; it has: {self._tool_names()}."
            return self._refuse(request, reason, "unknown_tool")
        if request.arguments is None:
            reason = f"The arguments are not a JSON object: {request.raw[:200]!r}."
            return self._refuse(request, reason, "wrong_arguments")
        effect = ToolCall(
            worker=self._worker,
            tool=request.name,
            arguments=request.arguments,
            effect=tool.effect,
            code=tool.code,
        )
        if tool.effect == "once":
            # The key has no attempt: whatever happens to this attempt, the same call is never made twice for this task.
            digest = hashlib.sha256(_canonical(request.arguments, tool.spec).encode()).hexdigest()[:16]
            key = f"{self._assignment.task.id}/once/{request.name}/{digest}"
        else:
            key = self._assignment.key("tool", place)
        if tool.approve and (refusal := await self._find_refusal(key, request, request.arguments)) is not None:
            return self._refuse(request, refusal, "not_approved")
        return await self._perform_tool(key, effect)

    async def _perform_tool(self, key: str, effect: ToolCall) -> ToolResult:
        """What the tool returned; when that is in doubt, what a person says about it, if one may be asked."""
        result = await self._engine.perform(key, effect)
        if result.error is None or result.error.kind != "in_doubt" or not self._ask:
            return result
        question = question_about_doubt(self._assignment.task, self._worker, effect.tool, effect.arguments)
        found = doubt(await self._assignment.ask(self._engine, f"{key}/doubt", question))
        if found is None or found.verdict == "give_up":
            return result
        if found.verdict == "send":
            return await self._perform_tool(f"{key}/again", effect)
        return ToolResult(text=found.result or "It has happened; what it returned is not known.")

    async def _find_refusal(self, key: str, request: ToolRequest, arguments: dict[str, Any]) -> str | None:
        """Why a call that needs a person's approval may not be made; None when the person said yes."""
        if not self._ask:
            return f"{request.name} needs a person's approval and nobody may be asked: start the run with `ask`."
        question = question_about_tool(self._assignment.task, self._worker, request.name, arguments)
        said = verdict(await self._assignment.ask(self._engine, f"{key}/approve", question))
        if said is not None and said.approved:
            return None
        reason = said.reason if said else ""
        return f"A person rejected this call of {request.name}{f': {reason}' if reason else '.'}"

    def _refuse(self, request: ToolRequest, reason: str, code: ToolErrorCode) -> ToolResult:
        self._engine.emit(
            ToolRefused(worker=self._worker, tool=request.name, reason=reason, code=code),
            task=self._assignment.task.id,
            attempt=self._assignment.attempt,
        )
        return ToolResult(error=Fault(kind="tool", message=reason), code=code)

    def _tool_names(self) -> str:
        return ", ".join([*self._tools, ESCALATE.name])


def _canonical(arguments: dict[str, Any], spec: ToolSpec) -> str:
    """The same text for the same call, however its arguments are ordered and whether defaults are spelt out."""
    properties: dict[str, Any] = spec.parameters.get("properties", {})
    defaults = {name: shape["default"] for name, shape in properties.items() if "default" in shape}
    return json.dumps({**defaults, **arguments}, sort_keys=True, ensure_ascii=False)
