"""What a model is called for: one name for code, settings, events and scripts."""

from __future__ import annotations

from typing import Literal

Role = Literal["planner", "refiner", "router", "worker", "scorer", "judge", "synthesizer", "critic"]
