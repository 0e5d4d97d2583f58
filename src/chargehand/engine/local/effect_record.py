"""How effects and their results are put on the record: begun, ended, or taken over from another run."""

from __future__ import annotations

from typing import Any, TypeVar

from chargehand.engine.local.recorder import Recorder, Site
from chargehand.engine.local.run_record import LocalRecord
from chargehand.events import ModelCalled, ModelReplied, Reused, ToolCalled, ToolReturned
from chargehand.record.replay import Replay
from chargehand.values.effect import AnalysisResult, Effect, ModelCall, ModelResult, ProgramResult, Result, ToolResult

R = TypeVar("R", ModelResult, ToolResult, AnalysisResult, ProgramResult)


class EffectRecord:
    """Shared by the handlers of a session."""

    def __init__(self, recorder: Recorder, replay: Replay, record: LocalRecord) -> None:
        self._recorder = recorder
        self._replay = replay
        self._record = record

    def intent(self, site: Site, effect: Effect) -> ModelCalled | ToolCalled | None:
        """What an earlier session recorded before it sent this effect and stopped."""
        intent = self._replay.intents.get(site.key)
        return intent if intent is not None and intent.fingerprint == effect.fingerprint else None

    def sent_before(self, site: Site, effect: Effect) -> int:
        """How often earlier sessions began this effect."""
        intent = self.intent(site, effect)
        return 0 if intent is None else intent.send

    def begin(self, site: Site, called: ModelCalled | ToolCalled) -> None:
        self._record.begin_call(site.key, site.task, site.attempt)
        self._recorder.emit_at(site, called)

    async def finish(self, site: Site, effect: Effect, result: R) -> R:
        """Put the result on disk. It is in the buffer before the first await, so cancellation cannot lose it."""
        self._record.end_call(site.key)
        ended = ModelReplied if isinstance(effect, ModelCall) else ToolReturned
        self._recorder.emit_at(site, ended(key=site.key, fingerprint=effect.fingerprint, result=_pack(result)))
        await self._recorder.commit()
        return result

    async def take_over(self, site: Site, effect: Effect, result: R, source: str) -> R:
        """Put a result on disk that was made elsewhere: in another run, or kept in the cache."""
        reused = Reused(key=site.key, fingerprint=effect.fingerprint, result=_pack(result), source=source)
        self._recorder.emit_at(site, reused)
        await self._recorder.commit()
        return result

    async def commit(self) -> None:
        await self._recorder.commit()


def _pack(result: Result) -> dict[str, Any]:
    return result.model_dump(mode="json", exclude_defaults=True)
