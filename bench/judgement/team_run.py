"""One call of the command line with a real model behind it -> what it printed, as a user would get it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The most seconds one run may take before it counts as hung.
LONGEST_S = 1800


@dataclass(frozen=True, slots=True)
class TeamRun:
    """`printed` is the JSON document; empty when there is none, as after a failure. `error` is what went wrong."""

    printed: dict[str, Any]
    code: int
    seconds: float
    error: str

    @property
    def tokens(self) -> int:
        usage = self.printed.get("usage") or {}
        return int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)

    @property
    def answer(self) -> str:
        return str(self.printed.get("answer") or "")


@dataclass(frozen=True, slots=True)
class CommandLine:
    """chargehand in a folder of its own, with one model for every role unless a role says otherwise."""

    folder: Path
    base_url: str
    model: str

    def call(self, *arguments: str, settings: str = "") -> TeamRun:
        """The command's JSON document. `settings` is added to the user's settings file."""
        provider = f'[providers.trial]\nbase_url = "{self.base_url}"\nwire = "openai"\n'
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(provider + settings, encoding="utf-8")
        environment = {**os.environ, "CHARGEHAND_HOME": str(home)}
        command = [sys.executable, "-m", "chargehand", *arguments]
        if not settings:
            command += ["--model", f"trial:{self.model}"]
        began = time.monotonic()
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
        seconds = time.monotonic() - began
        try:
            printed = json.loads(done.stdout)
        except ValueError:
            printed = {}
        return TeamRun(printed, done.returncode, seconds, done.stderr[-500:])
