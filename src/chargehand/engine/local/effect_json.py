"""Effects and results <-> how they stand on the record."""

from __future__ import annotations

from typing import Any

from chargehand.values.effect import (
    Analysis,
    AnalysisResult,
    Effect,
    ModelCall,
    ModelResult,
    Result,
    ToolCall,
    ToolResult,
)
from chargehand.values.message import TokenCount


def describe_effect(effect: Effect) -> dict[str, Any]:
    """An effect as it is put down when it begins; messages by their digest."""
    match effect:
        case ToolCall():
            return {
                "worker": effect.worker,
                "tool": effect.tool,
                "arguments": effect.arguments,
                "effect": effect.effect,
            }
        case Analysis():
            arguments = {"files": effect.files, "base": effect.base, "root": effect.root}
            return {"worker": effect.worker, "tool": effect.analyzer, "arguments": arguments, "effect": "read"}
        case ModelCall():
            return {
                "role": effect.role,
                "worker": effect.worker,
                "model": effect.model,
                "messages": [message.digest for message in effect.messages],
                "tools": [tool.name for tool in effect.tools],
                "output_schema": effect.output_schema is not None,
                "options": effect.options,
                **({} if effect.tool_choice == "auto" else {"tool_choice": effect.tool_choice}),
            }


def pack_result(result: Result) -> dict[str, Any]:
    return result.model_dump(mode="json", exclude_defaults=True)


def unpack_result(effect: Effect, data: dict[str, Any]) -> Result:
    match effect:
        case ModelCall():
            return ModelResult.model_validate(data)
        case ToolCall():
            return ToolResult.model_validate(data)
        case Analysis():
            return AnalysisResult.model_validate(data)


def free(result: Result) -> Result:
    """The result as a run has it that reuses it: another run paid for it and waited for it."""
    if isinstance(result, ModelResult) and result.reply is not None:
        reply = result.reply.model_copy(update={"usage": TokenCount()})
        return result.model_copy(update={"reply": reply, "usd": 0.0, "seconds": 0.0, "waiting_s": 0.0})
    return result.model_copy(update={"seconds": 0.0, "waiting_s": 0.0})
