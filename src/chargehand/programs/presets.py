"""The headless modes of coding agents: a program -> the arguments it is started with, its stream -> text and usage."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

from chargehand.values.outcome import Usage
from chargehand.values.program import Preset, Program

Json = dict[str, Any]
# The most characters of a line of progress on the record.
LONGEST_PROGRESS = 200


def arguments_of(program: Program, *, enclosed: bool) -> list[str]:
    """The arguments. An agent in a sandbox may do anything; otherwise it may edit files, under its own limits."""
    name, *more = program.command
    match program.preset:
        case None:
            return [name, *more]
        case "claude":
            may = ["--dangerously-skip-permissions"] if enclosed else ["--permission-mode", "acceptEdits"]
            return [name, "-p", "--output-format", "stream-json", "--verbose", *may, *more]
        case "codex":
            bypass = "--dangerously-bypass-approvals-and-sandbox"
            may = [bypass] if enclosed else ["--sandbox", "workspace-write"]
            return [name, "exec", "--json", "--skip-git-repo-check", *may, *more, "-"]


class AgentStream:
    """Takes the lines of an agent's stream. Unknown lines are skipped: new versions add kinds."""

    def __init__(self, preset: Preset, on_progress: Callable[[str], None]) -> None:
        self._read = self._read_claude if preset == "claude" else self._read_codex
        self._on_progress = on_progress
        # Its last message, and why it says that it failed.
        self.text = ""
        self.error = ""
        self._usages: list[Usage] = []
        self._model = ""

    @property
    def used(self) -> Usage | None:
        """The usage that it reports; None when it reports none."""
        return Usage.total(self._usages) if self._usages else None

    def feed(self, line: bytes) -> None:
        try:
            event: Any = json.loads(line)
            if isinstance(event, dict):
                self._read(cast("Json", event))
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            return

    def _read_claude(self, event: Json) -> None:
        match event.get("type"):
            case "system":
                self._model = str(event.get("model") or self._model)
            case "assistant":
                for part in event["message"]["content"]:
                    if part.get("type") == "text":
                        self._say(part["text"])
                    elif part.get("type") == "tool_use":
                        self._say(_call(part["name"], part.get("input")))
            case "result":
                self.text = str(event.get("result") or "")
                if event.get("is_error"):
                    self.error = self.text or str(event.get("subtype"))
                used: Json = event.get("usage") or {}
                cached, made = used.get("cache_read_input_tokens"), used.get("cache_creation_input_tokens")
                usd = event.get("total_cost_usd")
                self._add(
                    _count(used.get("input_tokens")) + _count(cached) + _count(made),
                    _count(used.get("output_tokens")),
                    _count(cached),
                    float(usd) if isinstance(usd, int | float) and usd >= 0 else None,
                    max(_count(event.get("num_turns")), 1),
                )
            case _:
                return

    def _read_codex(self, event: Json) -> None:
        match event.get("type"):
            case "item.started" | "item.completed":
                item: Json = event["item"]
                kind = item.get("type") or item.get("item_type")
                if kind in ("agent_message", "assistant_message") and event["type"] == "item.completed":
                    self.text = str(item["text"])
                    self._say(self.text)
                elif kind == "command_execution" and event["type"] == "item.started":
                    self._say(_call("command", item.get("command")))
                elif kind == "file_change" and event["type"] == "item.completed":
                    self._say(_call("edit", [each.get("path") for each in item.get("changes") or ()]))
            case "turn.completed":
                used: Json = event.get("usage") or {}
                cached = _count(used.get("cached_input_tokens"))
                self._add(_count(used.get("input_tokens")), _count(used.get("output_tokens")), cached, None, 1)
                self.error = ""
            case "turn.failed" | "error":
                failure = event.get("error")
                message = cast("Json", failure).get("message") if isinstance(failure, dict) else event.get("message")
                self.error = str(message or "it failed")
            case _:
                return

    def _add(self, read: int, written: int, cached: int, usd: float | None, calls: int) -> None:
        models = (self._model,) if self._model else ()
        self._usages.append(
            Usage(input_tokens=read, output_tokens=written, cached_tokens=cached, usd=usd, calls=calls, models=models)
        )

    def _say(self, text: str) -> None:
        if words := " ".join(text[: 4 * LONGEST_PROGRESS].split()):
            self._on_progress(words)


def _call(name: str, given: Any) -> str:
    return f"{name} {given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)}"


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else 0


def last_lines(text: str, most: int = 20) -> str:
    """The end of the output, for people."""
    return "\n".join(text.rstrip().splitlines()[-most:])[-4_000:]


def plain_progress(line: bytes) -> str:
    """A line that an ordinary program writes to stderr as it works."""
    return " ".join(line[: 4 * LONGEST_PROGRESS].decode("utf-8", "replace").split())
