"""How effects and their results are put on the record: begun, ended, or taken over from another run."""

from __future__ import annotations

from typing import Any, TypeVar

from chargehand.engine.local.effect_site import Site
from chargehand.engine.local.recorder import Recorder
from chargehand.engine.local.run_record import LocalRecord
from chargehand.record.replay import Replay
from chargehand.values.effect import AnalysisResult, Effect, ModelResult, Result, ToolResult

R = TypeVar("R", ModelResult, ToolResult, AnalysisResult)


class EffectRecord:
    """Shared by the handlers of a session."""

    def __init__(self, recorder: Recorder, replay: Replay, record: LocalRecord) -> None:
        self._recorder = recorder
        self._replay = replay
        self._record = record

    def intent(self, site: Site, effect: Effect) -> dict[str, Any] | None:
        """What an earlier session recorded before it sent this very effect and stopped."""
        intent = self._replay.intents.get(site.key)
        return intent if intent is not None and intent["fingerprint"] == effect.fingerprint else None

    def begin(self, site: Site, effect: Effect, description: dict[str, Any], **clamps: int) -> None:
        self._record.mark_sent(site.task, site.attempt)
        self._recorder.emit_at(site, effect.started, fingerprint=effect.fingerprint, **description, **clamps)

    def begin_again(self, site: Site, effect: Effect, description: dict[str, Any]) -> None:
        """Begin an effect that counts how often it was."""
        sent_before = (self.intent(site, effect) or {}).get("send", 0)
        self.begin(site, effect, description, send=1 + sent_before)

    async def finish(self, site: Site, effect: Effect, result: R) -> R:
        """Put the result on disk. It is in the buffer before the first await, so cancellation cannot lose it."""
        self._recorder.emit_at(site, effect.ended, fingerprint=effect.fingerprint, result=_pack(result))
        await self._recorder.commit()
        return result

    async def take_over(self, site: Site, effect: Effect, result: R, source: str) -> R:
        """Put a result on disk that was made elsewhere: in another run, or kept in the cache."""
        self._recorder.emit_at(site, "reused", fingerprint=effect.fingerprint, result=_pack(result), source=source)
        await self._recorder.commit()
        return result

    async def commit(self) -> None:
        await self._recorder.commit()


def _pack(result: Result) -> dict[str, Any]:
    return result.model_dump(mode="json", exclude_defaults=True)
