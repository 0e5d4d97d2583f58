"""Answers that runs of this server are writing -> text to send to watchers, without secrets.

Drafts are not recorded. A draft ends with the reply of its call, which is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from chargehand.events import DraftDiscarded, Event, ModelCalled, ModelReplied
from chargehand.server.frames import draft_frame
from chargehand.text.redaction import Redactor


@dataclass(slots=True)
class _Draft:
    """The text of one call so far. `number` grows when the model begins again."""

    number: int
    text: str = ""
    # The part that is sent: up to the last white space, because half of a secret cannot be distinguished from a word.
    shown: str = ""


@dataclass(slots=True)
class RunDrafts:
    """The open drafts of one run by the key of their call, and the key of the call that writes now."""

    redactor: Redactor
    drafts: dict[str, _Draft] = field(default_factory=dict[str, _Draft])
    key: str = ""
    changed: bool = False

    def on_event(self, event: Event) -> None:
        match event.body:
            case ModelCalled(role="synthesizer", key=key) if event.task is None:
                self.key = key
            case ModelReplied(key=key):
                self.drafts.pop(key, None)
            case DraftDiscarded():
                self.drafts.clear()
            case _:
                pass

    def on_draft(self, number: int, text: str) -> None:
        draft = self.drafts.get(self.key)
        if draft is None or draft.number != number:
            draft = self.drafts[self.key] = _Draft(number)
        draft.text += text
        whole = draft.text[: max(draft.text.rfind(" "), draft.text.rfind("\n")) + 1]
        draft.shown = self.redactor.redact_delivered(whole)
        self.changed = True


@dataclass(slots=True)
class DraftPosition:
    """How much of each draft was sent to one watcher: number of the draft and count of characters, by key."""

    sent: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    def next_frames(self, run: RunDrafts) -> bytes:
        """The new text of all drafts: the whole text of a draft that is new or was begun again."""
        frames: list[bytes] = []
        for key, draft in run.drafts.items():
            number, offset = self.sent.get(key, (-1, 0))
            if number != draft.number:
                frames.append(draft_frame({"key": key, "offset": 0, "text": draft.shown}))
            elif len(draft.shown) > offset:
                frames.append(draft_frame({"key": key, "offset": offset, "delta": draft.shown[offset:]}))
            self.sent[key] = draft.number, len(draft.shown)
        return b"".join(frames)
