"""How effects are carried out: one handler for each type of effect, found by that type.

A handler knows everything that differs between types: how an effect is recorded, how its result is read back, how it is
performed, and whether it would still have the result that an earlier run recorded.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from typing import Any, Generic, Protocol, TypeVar

from chargehand.engine.local.admission import Admission
from chargehand.engine.local.effect_record import EffectRecord
from chargehand.engine.local.recorder import Recorder, Site
from chargehand.engine.local.resources import Resources
from chargehand.engine.local.run_record import LocalRecord
from chargehand.engine.local.slots import Slots, Waited
from chargehand.errors import ChargehandError
from chargehand.events import BudgetSettled, ModelCalled, Progressed, ToolCalled, Warned
from chargehand.record.cache import Cache
from chargehand.text.urls import normal_urls
from chargehand.values.effect import (
    Analysis,
    AnalysisResult,
    ModelCall,
    ModelResult,
    ProgramResult,
    ProgramRun,
    ToolCall,
    ToolResult,
    usage_of,
)
from chargehand.values.message import TokenCount
from chargehand.values.outcome import Fault, Usage

E_contra = TypeVar("E_contra", ModelCall, ToolCall, Analysis, ProgramRun, contravariant=True)
R = TypeVar("R", ModelResult, ToolResult, AnalysisResult, ProgramResult)
# Effects that may have to happen once, and what comes of them.
Act = TypeVar("Act", ToolCall, ProgramRun)
Done = TypeVar("Done", ToolResult, ProgramResult)

OnText = Callable[[str], None] | None
OnUsage = Callable[[Usage], None]


class Handler(Protocol[E_contra, R]):
    """Effects of one type. The engine reads the record before it has an effect performed."""

    def read(self, recorded: dict[str, Any]) -> R:
        """The result as it was recorded."""
        ...

    async def renew(self, effect: E_contra, result: R) -> R | None:
        """A success of an earlier run, paid for there, as this run uses it; None if the result would differ now."""
        ...

    async def perform(self, site: Site, effect: E_contra, on_text: OnText) -> R:
        """Carry it out, and put its result on disk."""
        ...


# By type of effect. What is found under a type takes effects of that type and gives its results.
Handlers = Mapping[type, Handler[Any, Any]]


class ModelHandler:
    """Calls of models, within budget, slots and what the provider allows."""

    def __init__(
        self, admission: Admission, recorder: Recorder, record: EffectRecord, kept: Cache | None = None
    ) -> None:
        self._admission = admission
        # Replies that are the same in every run.
        self._kept = kept
        self._recorder = recorder
        self._record = record
        # What each call of this session used, as it is put on the record.
        self.used: list[Usage] = []

    def read(self, recorded: dict[str, Any]) -> ModelResult:
        return ModelResult.model_validate(recorded)

    async def renew(self, effect: ModelCall, result: ModelResult) -> ModelResult | None:
        if result.reply is None:
            return result.model_copy(update={"seconds": 0.0, "waiting_s": 0.0})
        reply = result.reply.model_copy(update={"usage": TokenCount()})
        return result.model_copy(update={"reply": reply, "usd": 0.0, "seconds": 0.0, "waiting_s": 0.0})

    async def perform(self, site: Site, effect: ModelCall, on_text: OnText) -> ModelResult:
        cache = self._kept if effect.keeps else None
        if cache is None:
            return await self._make(site, effect, on_text)
        name = f"reply/{effect.fingerprint}"
        found = await asyncio.to_thread(cache.get, [name])
        if name in found and (known := _read_kept(found[name])) is not None:
            renewed = await self.renew(effect, known)
            assert renewed is not None
            return await self._record.take_over(site, effect, renewed, "cache")
        result = await self._make(site, effect, on_text)
        if result.ok:
            await asyncio.to_thread(cache.put, {name: result.model_dump_json().encode()})
        return result

    async def _make(self, site: Site, effect: ModelCall, on_text: OnText) -> ModelResult:
        async def begin(max_output: int, sent_before: int) -> None:
            for message in effect.messages:
                self._recorder.store(message)
            self._record.begin(site, _model_called(site, effect, max_output, sent_before + 1))
            # On disk before it is sent, so that a repeat after a crash is the same to the byte.
            await self._recorder.commit()

        intent = self._record.intent(site, effect)
        sent = intent if isinstance(intent, ModelCalled) else None
        result = await self._admission.make(site, effect, sent, begin, on_text)
        self.used.append(usage_of(result, effect.model))
        return await self._record.finish(site, effect, result)


def _read_kept(packed: bytes) -> ModelResult | None:
    """None where the file is damaged: the call is then made again."""
    try:
        return ModelResult.model_validate_json(packed)
    except ValueError:
        return None


class _ActHandler(ABC, Generic[Act, Done]):
    """Effects that act on the world. One that must not run twice does not."""

    def __init__(self, slots: Slots, record: EffectRecord) -> None:
        self._slots = slots
        self._record = record
        # `once` effects under way, by key: a second caller waits for the same result.
        self.flights: dict[str, asyncio.Future[Done]] = {}
        # Results of the `once` effects begun in this session; None until there is one, so an interrupted effect is in
        # doubt.
        self._once: dict[str, Done | None] = {}

    @abstractmethod
    def name(self, effect: Act) -> tuple[str, dict[str, Any]]:
        """What is called, and its arguments as they are recorded."""

    @abstractmethod
    def fail(self, fault: Fault) -> Done: ...

    @abstractmethod
    async def carry_out(self, site: Site, effect: Act) -> Done: ...

    @abstractmethod
    def take_note(self, site: Site, result: Done) -> None:
        """Count what a result says was used or seen."""

    async def perform(self, site: Site, effect: Act, on_text: OnText) -> Done:
        return await (self._run_once(site, effect) if effect.effect == "once" else self._run(site, effect))

    async def _run_once(self, site: Site, effect: Act) -> Done:
        """A repeated request gets the same result, or an error if the effect was interrupted and is in doubt."""
        if (flight := self.flights.get(site.key)) is not None:
            return await asyncio.shield(flight)
        if (returned := self._once.get(site.key)) is not None:
            return returned
        if site.key in self._once or self._record.intent(site, effect) is not None:
            message = (
                f"{self.name(effect)[0]} was under way when it was broken off and may or may not have happened; "
                "check, then run the rest again with `chargehand rerun`."
            )
            return await self._record.finish(site, effect, self.fail(Fault(kind="in_doubt", message=message)))
        flight = self.flights[site.key] = asyncio.get_running_loop().create_future()
        try:
            result = await self._run(site, effect)
        except BaseException:
            flight.cancel()
            raise
        else:
            flight.set_result(result)
            self._once[site.key] = result
            return result
        finally:
            del self.flights[site.key]

    async def _run(self, site: Site, effect: Act) -> Done:
        waited, loop = Waited(), asyncio.get_running_loop()
        await self._slots.take(site.task, waited)
        began = loop.time()
        try:
            name, arguments = self.name(effect)
            called = ToolCalled(
                key=site.key,
                fingerprint=effect.fingerprint,
                worker=effect.worker,
                tool=name,
                arguments=arguments,
                effect=effect.effect,
                send=1 + self._record.sent_before(site, effect),
            )
            self._record.begin(site, called)
            if effect.effect == "once":
                await self._record.commit()  # any other may run again after a crash: it is on disk with its result
                self._once[site.key] = None
            began = loop.time()
            result = await self.carry_out(site, effect)
        except ChargehandError:
            raise  # the record itself failed, or the run is not ours any more
        except Exception as error:  # noqa: BLE001 -- recorded: a bug in a handler is one task's failure
            message = f"{type(error).__name__} in the {effect.kind} handler: {error}"
            result = self.fail(Fault(kind="internal", message=message))
        finally:
            self._slots.free()
        timed = result.model_copy(update={"seconds": loop.time() - began, "waiting_s": waited.seconds})
        self.take_note(site, timed)
        return await self._record.finish(site, effect, timed)


class ToolHandler(_ActHandler[ToolCall, ToolResult]):
    """Calls of tools."""

    def __init__(self, resources: Resources, slots: Slots, record: EffectRecord, run_record: LocalRecord) -> None:
        super().__init__(slots, record)
        self._resources = resources
        self._run_record = run_record

    def read(self, recorded: dict[str, Any]) -> ToolResult:
        return ToolResult.model_validate(recorded)

    async def renew(self, effect: ToolCall, result: ToolResult) -> ToolResult | None:
        if not await asyncio.to_thread(self._resources.still_valid, result):
            return None
        # A result recorded before results listed their urls has none.
        result = result if result.urls else result.model_copy(update={"urls": normal_urls(result.text)})
        self._run_record.keep_urls(result.urls)
        return result.model_copy(update={"seconds": 0.0, "waiting_s": 0.0})

    def name(self, effect: ToolCall) -> tuple[str, dict[str, Any]]:
        return effect.tool, effect.arguments

    def fail(self, fault: Fault) -> ToolResult:
        return ToolResult(error=fault)

    async def carry_out(self, site: Site, effect: ToolCall) -> ToolResult:
        return await self._resources.tool(effect, site.key)

    def take_note(self, site: Site, result: ToolResult) -> None:
        self._run_record.keep_urls(result.urls)


class ProgramHandler(_ActHandler[ProgramRun, ProgramResult]):
    """Runs of programs. What they say they used of models counts in the run's budget; it could not be reserved."""

    # How many lines of progress of one run of a program are recorded, and at most one in how many seconds.
    MOST_LINES = 500
    LINE_EVERY_S = 1.0

    def __init__(
        self, resources: Resources, slots: Slots, record: EffectRecord, recorder: Recorder, charge: OnUsage
    ) -> None:
        super().__init__(slots, record)
        self._resources = resources
        self._recorder = recorder
        self._charge = charge

    def read(self, recorded: dict[str, Any]) -> ProgramResult:
        return ProgramResult.model_validate(recorded)

    async def renew(self, effect: ProgramRun, result: ProgramResult) -> ProgramResult | None:
        if result.unverified is not None or not await self._resources.has_base(result.base):
            return None
        return result.model_copy(update={"used": None, "seconds": 0.0, "waiting_s": 0.0})

    def name(self, effect: ProgramRun) -> tuple[str, dict[str, Any]]:
        program = effect.program.model_dump(mode="json", exclude_defaults=True)
        return effect.program.command[0].rpartition("/")[2], {**program, "given": effect.given}

    def fail(self, fault: Fault) -> ProgramResult:
        return ProgramResult(error=fault)

    async def carry_out(self, site: Site, effect: ProgramRun) -> ProgramResult:
        loop = asyncio.get_running_loop()
        left, due = self.MOST_LINES, loop.time()
        commits: set[asyncio.Task[None]] = set()

        def record_progress(text: str) -> None:
            nonlocal left, due
            if left > 0 and loop.time() >= due:
                left, due = left - 1, loop.time() + self.LINE_EVERY_S
                self._recorder.emit_at(site, Progressed(key=site.key, text=text))
                # For viewers in another process. A failed write is noticed when the result is written.
                commits.add(asyncio.ensure_future(self._recorder.commit()))

        try:
            return await self._resources.run_program(effect, record_progress, self._warn_at(site))
        finally:
            await asyncio.gather(*commits, return_exceptions=True)

    def _warn_at(self, site: Site) -> Callable[[str], None]:
        return lambda message: self._recorder.emit_at(site, Warned(message=message))

    def take_note(self, site: Site, result: ProgramResult) -> None:
        if (used := result.used) is not None:
            self._charge(used)
            tokens = used.input_tokens + used.output_tokens
            self._recorder.emit_at(site, BudgetSettled(key=site.key, tokens=tokens, usd=used.usd))


class AnalysisHandler:
    """Analyzers. Results for the same content from earlier runs are used; the rest gets a core and a slot."""

    def __init__(self, resources: Resources, slots: Slots, record: EffectRecord) -> None:
        self._resources = resources
        self._slots = slots
        self._record = record

    def read(self, recorded: dict[str, Any]) -> AnalysisResult:
        return AnalysisResult.model_validate(recorded)

    async def renew(self, effect: Analysis, result: AnalysisResult) -> AnalysisResult | None:
        look = await self._resources.look(effect)
        if isinstance(look, Fault) or not look.lasting or look.content != result.content:
            return None
        return result.model_copy(update={"reused": result.files, "seconds": 0.0, "waiting_s": 0.0})

    @asynccontextmanager
    async def _core(self, task: str | None) -> AsyncGenerator[None]:
        """One of the cores, in the order of the slots."""
        cores = self._resources.cores
        await cores.acquire(self._slots.order(task))
        try:
            yield
        finally:
            cores.release()

    async def perform(self, site: Site, effect: Analysis, on_text: OnText) -> AnalysisResult:
        look = await self._resources.look(effect)
        if isinstance(look, Fault):
            return await self._record.finish(site, effect, AnalysisResult(error=look))
        if not look.missing:
            result = look.result()
            if result.files:
                return await self._record.take_over(site, effect, result, "cache")
            return await self._record.finish(site, effect, result)
        waited, loop = Waited(), asyncio.get_running_loop()
        began = loop.time()
        async with nullcontext() if look.small else self._core(site.task):
            waited.seconds = loop.time() - began
            await self._slots.take(site.task, waited)
            began = loop.time()
            try:
                called = ToolCalled(
                    key=site.key,
                    fingerprint=effect.fingerprint,
                    worker=effect.worker,
                    tool=effect.analyzer,
                    arguments={"files": effect.files, "base": effect.base, "root": effect.root},
                    effect="read",
                    send=1 + self._record.sent_before(site, effect),
                )
                self._record.begin(site, called)
                result = await self._resources.analyse(look)
            finally:
                self._slots.free()
        timed = result.model_copy(update={"seconds": loop.time() - began, "waiting_s": waited.seconds})
        return await self._record.finish(site, effect, timed)


def _model_called(site: Site, effect: ModelCall, max_output: int, send: int) -> ModelCalled:
    """Messages by their digest."""
    return ModelCalled(
        key=site.key,
        fingerprint=effect.fingerprint,
        role=effect.role,
        worker=effect.worker,
        model=effect.model,
        messages=[message.digest for message in effect.messages],
        tools=[tool.name for tool in effect.tools],
        output_schema=effect.output_schema is not None,
        options=effect.options,
        **({} if effect.tool_choice == "auto" else {"tool_choice": effect.tool_choice}),
        max_output=max_output,
        send=send,
    )
