"""Environment and files, read once into one frozen value."""

from __future__ import annotations

from chargehand.settings.earlier import as_before, check_endpoints
from chargehand.settings.load import load_settings
from chargehand.settings.script import OF_TEAM, SCRIPT, found_from
from chargehand.settings.value import DEFAULT_TIER, Limits, ModelChoice, Models, RoleModel, Settings

__all__ = [
    "DEFAULT_TIER",
    "OF_TEAM",
    "SCRIPT",
    "Limits",
    "ModelChoice",
    "Models",
    "RoleModel",
    "Settings",
    "as_before",
    "check_endpoints",
    "found_from",
    "load_settings",
]
