"""The run of `chargehand demo`: six logs of a web shop, one question, and a script in place of a model."""

from __future__ import annotations

from pathlib import Path

__all__ = ["REQUEST", "SCRIPT", "TEAM", "TUTORIAL"]

REQUEST = "Why did checkout fail on 12 March, for how long, what did it cost us, and which customers do we write to?"
# The shipped team that gets the question.
TEAM = "general"
SCRIPT = Path(__file__).with_name("script.json")
# The script of docs/tutorial.md, which the demo leaves in its folder.
TUTORIAL = Path(__file__).with_name("tutorial.json")
