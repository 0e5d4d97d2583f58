"""The resources for effects on this machine: models, tools, material, and earlier results of analyzers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from chargehand.limits import Gate, ProviderLimits
from chargehand.models import Attribution
from chargehand.models.prices import Price
from chargehand.models.provider_settings import Silence
from chargehand.models.resolve import Models
from chargehand.tools import Tool, ToolContext
from chargehand.values.effect import (
    Analysis,
    AnalysisResult,
    ModelCall,
    ProgramResult,
    ProgramRun,
    ToolCall,
    ToolResult,
)
from chargehand.values.message import Reply
from chargehand.values.outcome import Fault
from chargehand.values.plain_class import plain_class

if TYPE_CHECKING:
    from chargehand.engine.local.analysis import Hashes, Look
    from chargehand.programs.work_folders import WorkFolders
    from chargehand.record.cache import Cache

# The fewest characters a token has, in English prose and JSON; an estimate made with it is rarely too low.
CHARACTERS_PER_TOKEN = 3.2
# What a message costs in addition to its text.
TOKENS_PER_MESSAGE = 6


@plain_class()
class Resources:
    """Everything that differs between machines and runs is here, and not in an effect."""

    models: Models
    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    context: ToolContext = field(default_factory=ToolContext)
    # What analyzers found in earlier runs; None keeps nothing.
    analyses: Cache | None = None
    # What the files of this session's analyses hold.
    hashes: Hashes | None = None
    # Where programs work, set when the first one starts; and their run.
    folders: WorkFolders | None = None
    run: str = "run"
    # The key of a call -> the W3C trace context that it continues.
    trace_header: Callable[[str], str | None] | None = None
    # An analysis is work for a whole core. One more than there are may be under way, so that no core is idle while
    # another starts its tool or is put on the record.
    cores: Gate = field(default_factory=lambda: Gate((os.cpu_count() or 1) + 1))

    async def model(
        self, effect: ModelCall, max_output: int, attribution: Attribution, on_text: Callable[[str], None] | None
    ) -> Reply:
        """The reply. Raises ModelError. The engine decides whether to send again, and what the call used."""
        return await self.models.client(effect.model).complete(effect, max_output, attribution, on_text)

    async def tool(self, effect: ToolCall, key: str) -> ToolResult:
        known = self.tools.get(effect.tool)
        if known is None:
            message = f"There is no tool {effect.tool!r} here; the team that defined it has changed."
            return ToolResult(error=Fault(kind="tool", message=message), code="unknown_tool")
        header = self.trace_header
        context = self.context if header is None else replace(self.context, traceparent=header(key))
        from chargehand.tools.call_tool import call  # many runs call no tool

        return await call(known, effect.arguments, context)

    async def look(self, effect: Analysis) -> Look | Fault:
        """What the analysis is about, with what is known of it already."""
        from chargehand.engine.local import analysis

        if self.hashes is None:
            self.hashes = analysis.Hashes()
        return await asyncio.to_thread(analysis.look, effect, self.analyses, self.hashes)

    async def analyse(self, look: Look) -> AnalysisResult:
        from chargehand.engine.local import analysis

        return await analysis.run(look, self.analyses, self.hashes or analysis.Hashes())

    async def run_program(
        self, effect: ProgramRun, on_progress: Callable[[str], None], warn: Callable[[str], None]
    ) -> ProgramResult:
        from chargehand.programs.carry_out import ProgramSurroundings, run_program  # few teams have programs
        from chargehand.programs.work_folders import WorkFolders

        if self.folders is None:
            self.folders = WorkFolders(self.run)
        material = {each.name: each.path for each in self.context.material}
        around = ProgramSurroundings(self.folders, material, self.context.hidden, warn)
        return await run_program(effect, around, on_progress)

    async def has_base(self, base: str) -> bool:
        """Whether a checkout would have the same revision now; True for programs without a checkout."""
        if not base:
            return True
        from chargehand.programs.checkout import current_base

        return await current_base([each.path for each in self.context.material]) == base

    async def sweep(self) -> None:
        """Remove the files that programs left behind in sessions whose processes were killed."""
        from chargehand.programs.work_folders import sweep

        await asyncio.to_thread(sweep)

    async def close(self) -> None:
        """Remove the files that programs of this session left behind."""
        if self.folders is not None:
            await asyncio.to_thread(self.folders.close)

    def price(self, effect: ModelCall) -> Price | None:
        return self.models.price(effect.model)

    def window(self, effect: ModelCall) -> int | None:
        """How many tokens its model can hold, where that is known and not assumed."""
        return self.models.known_window(effect.model)

    def limits(self, effect: ModelCall) -> ProviderLimits:
        """What its provider allows, shared by all runs of this process."""
        return self.models.limits(effect.model)

    def silence(self, effect: ModelCall) -> Silence:
        """How long its provider may be silent."""
        return self.models.silence(effect.model)

    def estimate(self, effect: ModelCall) -> int:
        """About how many input tokens a call will use, on the high side."""
        characters = len(effect.packed_tools) + len(effect.packed_schema)
        for message in effect.messages:
            characters += len(message.packed)
        return int(characters / CHARACTERS_PER_TOKEN) + TOKENS_PER_MESSAGE * len(effect.messages)

    def still_valid(self, result: ToolResult) -> bool:
        """Whether a tool would read the same now as it did then."""
        from chargehand.tools.recorded_reads import still_valid

        return still_valid(result.reads, self.context)
