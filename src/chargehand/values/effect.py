"""Effects as values: everything the supervisor wants done to the world, and what came back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Literal

from pydantic_core import to_json

from chargehand.errors import ToolErrorCode
from chargehand.values.base import JSON, Field, Value
from chargehand.values.message import Message, Reply, TokenCount, ToolEffect, ToolSpec
from chargehand.values.outcome import Fault, Finding, Usage
from chargehand.values.program import Program
from chargehand.values.role import Role


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join([x for part in parts for x in (len(part).to_bytes(8, "big"), part)])).hexdigest()


class ModelCall(Value):
    """One question to a model. `model` is resolved (`provider:name`); clamps and timeouts are not part of it."""

    kind: Literal["model"] = "model"
    role: Role
    worker: str | None = None
    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    # "none" keeps the tools in the request, because a history with tool calls needs them, but allows no call.
    tool_choice: Literal["auto", "none"] = "auto"
    output_schema: dict[str, JSON] | None = None
    options: dict[str, JSON] = Field(default_factory=dict)
    output_cap: int = 4096
    # How many seconds to wait for a provider that is down before the call counts as failed.
    patience_s: float = 60.0
    # Whether a worker with a model of another provider can do the task if this provider is out for long.
    yields: bool = False
    # Whether the reply is the same in every run and is kept in the home, such as for a case that a model is measured
    # on.
    keeps: bool = False

    def about(self, messages: Iterable[Message]) -> ModelCall:
        """The same question with another conversation. The other parts are packed once for all conversations."""
        _ = self.packed_tools, self.packed_schema, self.packed_options
        call = self.model_copy(update={"messages": tuple(messages)})
        vars(call).pop("fingerprint", None)
        return call

    @cached_property
    def packed_tools(self) -> bytes:
        """The tools as JSON, one on each line."""
        return b"\n".join([tool.packed for tool in self.tools])

    @cached_property
    def packed_schema(self) -> bytes:
        return to_json(self.output_schema)

    @cached_property
    def packed_options(self) -> bytes:
        return to_json(self.options)

    @cached_property
    def fingerprint(self) -> str:
        """Equal for calls with the same model, messages, schemas and explicit options; nothing else counts."""
        choice = () if self.tool_choice == "auto" else (self.tool_choice.encode(),)
        said = bytes.fromhex("".join([message.digest for message in self.messages]))
        return _digest(self.model.encode(), said, self.packed_tools, self.packed_schema, self.packed_options, *choice)


class ToolCall(Value):
    """One call of a tool by a worker."""

    kind: Literal["tool"] = "tool"
    worker: str
    tool: str
    arguments: dict[str, JSON]
    effect: ToolEffect = "once"
    # A hash of the tool's code.
    code: str = ""

    @cached_property
    def fingerprint(self) -> str:
        return _digest(self.tool.encode(), to_json(self.arguments), self.code.encode())


class Analysis(Value):
    """One run of an analyzer on some files. It reads them when it is performed; the result says what it read."""

    kind: Literal["analysis"] = "analysis"
    worker: str
    analyzer: str
    # The folder that the names of the files start from. The fingerprint does not include it.
    root: str
    files: tuple[str, ...]
    # Path -> the first and last line of each change, in the new text; None means whole files.
    changed: dict[str, tuple[tuple[int, int], ...]] | None = None
    # The revision the change starts from, where there is one.
    base: str | None = None
    options: dict[str, JSON] = Field(default_factory=dict)

    @cached_property
    def fingerprint(self) -> str:
        parts = (self.files, self.changed, self.base, self.options)
        return _digest(self.analyzer.encode(), *map(to_json, parts))


class ProgramRun(Value):
    """One run of a program on a task. `given` is its input: the task as JSON, or as a prompt for a preset."""

    kind: Literal["program"] = "program"
    worker: str
    program: Program
    given: str

    @property
    def effect(self) -> ToolEffect:
        return self.program.effect

    @cached_property
    def fingerprint(self) -> str:
        asked = self.program.model_copy(update={"timeout_s": 0.0})
        return _digest(b"program", to_json(asked.to_json()), self.given.encode("utf-8", "surrogatepass"))


class ModelResult(Value):
    """A reply, or why there is none."""

    reply: Reply | None = None
    error: Fault | None = None
    usd: float | None = None
    # The most that the call may have used, when the provider did not report it.
    estimated: TokenCount | None = None
    # Whether any part of the call left this machine.
    sent: bool = True
    # Seconds in flight, and seconds of waiting for slots, backoff and budget; the engine writes both.
    seconds: float = 0.0
    waiting_s: float = 0.0

    @property
    def ok(self) -> bool:
        return self.error is None


def usage_of(result: ModelResult, model: str) -> Usage:
    """What one call used. If the provider did not report it, the possible maximum counts, at unknown cost."""
    known = result.reply.usage if result.reply else None
    tokens = known or result.estimated or TokenCount()
    return Usage(
        input_tokens=tokens.input_tokens,
        output_tokens=tokens.output_tokens,
        cached_tokens=tokens.cached_tokens,
        usd=result.usd if known else None if result.reply or result.estimated else 0.0,
        calls=1 if result.sent else 0,
        seconds=result.seconds,
        waiting_s=result.waiting_s,
        # A call that was not made called no model; a reply from another run did.
        models=(model,) if model and (result.sent or result.reply) else (),
    )


class ToolResult(Value):
    """What a tool returned. `reads` maps each name the tool read to a hash of its content, for the check of a rerun.

    `lines` maps each file that was shown, whole or in part, to its number of lines. `urls` are the URLs in the text, in
    their normal form: an answer may cite them. `place` is where the code of a tool raised its error, as `file:line`;
    the model does not see it.
    """

    text: str = ""
    error: Fault | None = None
    code: ToolErrorCode | None = None
    place: str | None = None
    reads: dict[str, str] = Field(default_factory=dict)
    lines: dict[str, int] = Field(default_factory=dict)
    urls: tuple[str, ...] = ()
    seconds: float = 0.0
    waiting_s: float = 0.0

    @property
    def ok(self) -> bool:
        return self.error is None


class ProgramResult(Value):
    """What a program printed, how it ended, and what it changed in its checkout."""

    # What it printed; for a preset, its last message.
    text: str = ""
    # Its changes as a patch, and the revision they were made to.
    diff: str = ""
    base: str = ""
    # What the verification printed, if it failed.
    unverified: str | None = None
    error: Fault | None = None
    # The use of models that it reported.
    used: Usage | None = None
    seconds: float = 0.0
    waiting_s: float = 0.0

    @property
    def ok(self) -> bool:
        return self.error is None


def usage_of_program(result: ProgramResult) -> Usage:
    """What one run of a program used: its time, and the use of models that it reported."""
    used = result.used or Usage()
    return used.model_copy(update={"seconds": result.seconds, "waiting_s": result.waiting_s})


class AnalysisResult(Value):
    """What an analyzer found. `content` is a hash of the tool and of everything it read; a rerun can check it."""

    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    # Path -> why it could not be checked.
    unchecked: dict[str, str] = Field(default_factory=dict)
    # What the analyzer produced, such as a test file, if it produces something.
    output: JSON = None
    error: Fault | None = None
    content: str = ""
    # How many of the files this analyzer checked, and for how many of them the findings were already known.
    files: int = 0
    reused: int = 0
    seconds: float = 0.0
    waiting_s: float = 0.0

    @property
    def ok(self) -> bool:
        return self.error is None


class Question(Value):
    """A question that only a person can answer."""

    id: str
    kind: Literal["plan", "escalation", "tool", "task"]
    prompt: str
    answer_schema: dict[str, Any] | None = None


Effect = ModelCall | ToolCall | Analysis | ProgramRun
Result = ModelResult | ToolResult | AnalysisResult | ProgramResult
