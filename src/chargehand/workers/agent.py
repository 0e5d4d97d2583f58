"""A model agent as a worker: prompt, tool loop with a step cap, structured answer with repair and one re-ask."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic_core import to_json

from chargehand.effect import ModelCall, ModelResult, ToolCall, ToolEffect, ToolResult
from chargehand.engine import Engine
from chargehand.messages import Message, Reply, ToolRequest, ToolSpec, system, tool_result, user
from chargehand.outcome import EscalationReason, Outcome, Usage, done, escalated, failed
from chargehand.plan import Tier
from chargehand.workers import Assignment
from chargehand.workers.answer import answer_schema, read_answer
from chargehand.workers.prompt import ESCALATE, LAST_STEP, system_prompt, task_prompt

_REASONS: tuple[EscalationReason, ...] = ("out_of_scope", "ambiguous_input", "confidence_too_low", "timeout")
# With less of its token budget left than this, a task makes no further call.
_SMALLEST_CALL = 256


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool as the agent knows it: what the model is told and what calling it does to the world."""

    spec: ToolSpec
    effect: ToolEffect


@dataclass(frozen=True)
class Agent:
    """One narrow worker. Models by tier are resolved; nothing here changes between assignments."""

    name: str
    description: str
    prompt: str
    # By tier; None is the worker's own.
    models: Mapping[Tier | None, str]
    tools: Mapping[str, AgentTool] = field(default_factory=dict[str, AgentTool])
    max_steps: int = 10
    output_schema: dict[str, Any] | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    output_cap: int = 4096

    def model_for(self, tier: Tier | None) -> str:
        return self.models[tier]

    @cached_property
    def opening(self) -> Message:
        """The first message of every attempt: one value, so that it is packed and hashed once."""
        return system(system_prompt(self.name, self.description, self.prompt))

    @cached_property
    def specs(self) -> tuple[ToolSpec, ...]:
        return (*(tool.spec for tool in self.tools.values()), ESCALATE)

    @cached_property
    def answer_schema(self) -> dict[str, Any]:
        return answer_schema(self.output_schema)

    async def work(self, assignment: Assignment, engine: Engine) -> Outcome:
        return await _Attempt(self, assignment, engine).run()


class _Attempt:
    """One attempt at one task: the conversation so far and what it has used."""

    def __init__(self, agent: Agent, assignment: Assignment, engine: Engine) -> None:
        self.agent = agent
        self.assignment = assignment
        self.engine = engine
        self.task = assignment.task
        self.usages = assignment.used
        self.messages: list[Message] = [
            agent.opening,
            user(task_prompt(assignment.task, assignment.inputs)),
        ]
        self.steps = agent.max_steps
        if self.task.budget and self.task.budget.steps:
            self.steps = min(self.steps, self.task.budget.steps)
        self.calls = 0

    async def run(self) -> Outcome:
        outcome = await self._converse()
        return outcome.model_copy(update={"usage": Usage.total(self.usages)})

    async def _converse(self) -> Outcome:
        for step in range(1, self.steps + 1):
            last = step == self.steps
            if last and step > 1:
                self.messages.append(user(LAST_STEP))
            reply = await self._ask(with_tools=not last or step == 1)
            if isinstance(reply, Outcome):
                return reply
            if not reply.tool_calls:
                return await self._answer(reply)
            if (escalation := self._escalation(reply)) is not None:
                return escalation
            self.messages.append(reply.as_message())
            if not last and (doubt := await self._use_tools(reply.tool_calls)) is not None:
                return doubt
        return self._fail("budget", f"{self.agent.name} used all of its {self.steps} steps without an answer.")

    async def _ask(self, *, with_tools: bool = True) -> Reply | Outcome:
        """The next reply, or the outcome when there is none."""
        cap = self._room()
        if cap < _SMALLEST_CALL:
            return self._fail(
                "budget", f"The task's budget of {self.task.budget and self.task.budget.tokens} tokens is used up."
            )
        self.calls += 1
        call = ModelCall(
            role="worker",
            worker=self.agent.name,
            model=self.agent.model_for(self.task.tier),
            messages=tuple(self.messages),
            tools=self.agent.specs if with_tools else (),
            output_schema=self.agent.answer_schema,
            options=self.agent.options,
            output_cap=min(cap, self.agent.output_cap),
        )
        result = await self.engine.perform(self.assignment.key("model", self.calls), call)
        self.usages.append(usage_of(result, call.model))
        if result.reply is None:
            fault = result.error
            assert fault is not None
            return self._fail(fault.kind, fault.message)
        match result.reply.stop:
            case "refused":
                return self._fail(
                    "refused", f"{call.model} refused the task: {result.reply.text[:300] or 'no reason given'}"
                )
            case "length":
                return self._fail(
                    "contract",
                    f"The answer was cut off after {cap:,} tokens; ask for less or raise the budget.",
                    result.reply.text or None,
                )
            case _:
                return result.reply

    def _room(self) -> int:
        """Tokens this task may still use."""
        if self.task.budget is None or self.task.budget.tokens is None:
            return self.agent.output_cap
        return self.task.budget.tokens - sum(usage.tokens for usage in self.usages)

    async def _answer(self, reply: Reply) -> Outcome:
        """The structured result; unreadable ones are asked for once more, with what was wrong."""
        answer, problems = read_answer(reply.text, self.agent.output_schema)
        if answer is None:
            self.messages += [reply.as_message(), user(_again(problems))]
            second = await self._ask(with_tools=False)
            if isinstance(second, Outcome):
                return second if not reply.text.strip() or self.agent.output_schema else self._plain(reply.text)
            answer, problems = read_answer(second.text, self.agent.output_schema)
            if answer is None:
                text = second.text if second.text.strip() else reply.text
                if self.agent.output_schema is not None or not text.strip():
                    return self._fail(
                        "contract", "The answer does not have the agreed shape: " + "; ".join(problems), text or None
                    )
                return self._plain(text)
        return done(
            self.task.id,
            self.agent.name,
            summary=answer.summary,
            output=answer.output,
            claims=answer.claims,
            findings=answer.findings,
            confidence=answer.confidence,
        )

    def _plain(self, text: str) -> Outcome:
        """Text without the agreed shape still counts as work, at unknown confidence."""
        summary = " ".join(text.split())
        return done(self.task.id, self.agent.name, summary=summary[:300], output=text)

    def _escalation(self, reply: Reply) -> Outcome | None:
        for request in reply.tool_calls:
            if request.name == ESCALATE.name:
                arguments = request.arguments or {}
                reason = arguments.get("reason")
                return escalated(
                    self.task.id,
                    self.agent.name,
                    reason if reason in _REASONS else "ambiguous_input",
                    str(arguments.get("message") or "No reason given."),
                    arguments.get("partial"),
                )
        return None

    async def _use_tools(self, requests: tuple[ToolRequest, ...]) -> Outcome | None:
        """All calls of one step at once; their results join the conversation in the order they were asked for."""
        results: dict[int, ToolResult] = {}

        async def use(number: int, request: ToolRequest) -> None:
            results[number] = await self._use(number, request)

        async with asyncio.TaskGroup() as group:
            for number, request in enumerate(requests, 1):
                group.create_task(use(number, request))
        ordered = [results[number] for number in range(1, len(requests) + 1)]
        for request, result in zip(requests, ordered, strict=True):
            if result.error is not None and result.error.kind == "in_doubt":
                return self._fail("in_doubt", result.error.message)
            text = result.text if result.error is None else f"Error: {result.error.message}"
            self.messages.append(tool_result(request, text, failed=not result.ok))
        self.usages.append(Usage(seconds=max(r.seconds for r in ordered), waiting_s=max(r.waiting_s for r in ordered)))
        return None

    async def _use(self, number: int, request: ToolRequest) -> ToolResult:
        tool = self.agent.tools.get(request.name)
        if tool is None:
            return self._refuse(
                request, f"{self.agent.name} has no tool {request.name!r}; it has: {self._tool_names()}."
            )
        if request.arguments is None:
            return self._refuse(request, f"The arguments are not a JSON object: {request.raw[:200]!r}.")
        effect = ToolCall(worker=self.agent.name, tool=request.name, arguments=request.arguments, effect=tool.effect)
        if tool.effect == "once":
            # Without the attempt: whatever happens to this attempt, the same call is never made twice for this task.
            digest = hashlib.sha256(to_json(request.arguments)).hexdigest()[:16]
            key = f"{self.task.id}/once/{request.name}/{digest}"
        else:
            key = self.assignment.key("tool", f"{self.calls}.{number}")
        return await self.engine.perform(key, effect)

    def _refuse(self, request: ToolRequest, reason: str) -> ToolResult:
        self.engine.emit(
            "tool_refused",
            task=self.task.id,
            attempt=self.assignment.attempt,
            worker=self.agent.name,
            tool=request.name,
            reason=reason,
        )
        return ToolResult.model_validate({"error": {"kind": "tool", "message": reason}})

    def _tool_names(self) -> str:
        return ", ".join([*self.agent.tools, ESCALATE.name])

    def _fail(self, kind: Any, message: str, output: Any = None) -> Outcome:
        return failed(self.task.id, self.agent.name, kind, message, output=output)


def usage_of(result: ModelResult, model: str) -> Usage:
    """What one call used; a call without a reply used nothing that we know of."""
    tokens = result.reply.usage if result.reply else None
    return Usage(
        input_tokens=tokens.input_tokens if tokens else 0,
        output_tokens=tokens.output_tokens if tokens else 0,
        cached_tokens=tokens.cached_tokens if tokens else 0,
        usd=result.usd if tokens else 0.0 if result.reply is None else None,
        calls=0 if result.error is not None and result.error.kind == "budget" else 1,
        seconds=result.seconds,
        waiting_s=result.waiting_s,
        models=(model,),
    )


def _again(problems: list[str]) -> str:
    return "Your answer could not be used: " + "; ".join(problems) + ". Answer again with the one JSON object only."
