"""Responses and conversations of OpenAI's interface -> files of the home, so that their ids are valid after a restart.

runs/<run>/response.json         how the response was asked for; the rest is in its run
serve/conversations/<id>.json    a conversation: whose it is, and the run of its last response
"""

from __future__ import annotations

import re
import secrets
import time
from pathlib import Path
from typing import Any

from chargehand.record.home import Home
from chargehand.server.access import Caller
from chargehand.server.kept_json import keep_json, read_kept_json
from chargehand.server.refusals import Refusal

Data = dict[str, Any]
RESPONSE = "resp_"
CONVERSATION = "conv_"
_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
_FILE = "response.json"


class KeptResponses:
    """The responses and conversations of one home. Called from threads."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._conversations = home.path / "serve" / "conversations"

    def keep(self, run: str, asked: Data) -> None:
        keep_json(self._home.path / "runs" / run / _FILE, asked)

    def find(self, id: Any) -> tuple[str, Data] | None:
        """The run of a response, and how it was asked for; None for an unknown id."""
        run = id.removeprefix(RESPONSE) if isinstance(id, str) and id.startswith(RESPONSE) else ""
        asked = read_kept_json(self._home.path / "runs" / run / _FILE) if _ID.fullmatch(run) else None
        return None if asked is None else (run, asked)

    def make_conversation(self, caller: Caller, metadata: Any) -> Data:
        """A new conversation, in OpenAI's shape."""
        id = CONVERSATION + secrets.token_hex(16)
        kept: Data = {"caller": caller, "created_at": int(time.time()), "metadata": metadata or {}, "run": None}
        keep_json(self._file(id), kept)
        return describe_conversation(id, kept)

    def conversation(self, id: Any, caller: Caller) -> Data:
        """The stored data of a conversation of this caller. Raises Refusal for any other id."""
        known = isinstance(id, str) and id.startswith(CONVERSATION) and _ID.fullmatch(id)
        kept = read_kept_json(self._file(id)) if known else None
        if kept is None or (caller == "client" and kept.get("caller") != "client"):
            raise Refusal(404, f"There is no conversation {str(id)[:100]!r}: POST /v1/conversations makes one.")
        return kept

    def continue_conversation(self, id: str, caller: Caller, run: str) -> None:
        """Record that the next response follows up on this run."""
        keep_json(self._file(id), self.conversation(id, caller) | {"run": run})

    def _file(self, id: str) -> Path:
        return self._conversations / f"{id}.json"


def describe_conversation(id: str, kept: Data) -> Data:
    """A conversation in OpenAI's shape."""
    return {
        "id": id,
        "object": "conversation",
        "created_at": kept.get("created_at", 0),
        "metadata": kept.get("metadata") or {},
    }
