"""Environment and files, read once into one frozen value."""

from __future__ import annotations

from chargehand.settings.load import check_model_name, load_settings
from chargehand.settings.script_path import OF_TEAM, SCRIPT, found_from
from chargehand.settings.settings import (
    DEFAULT_TIER,
    NO_MODEL,
    NO_MODEL_TO_SERVE,
    Limits,
    ModelChoice,
    ModelSettings,
    RoleModel,
    Settings,
)
from chargehand.settings.stored_settings import as_before, check_endpoints

__all__ = [
    "DEFAULT_TIER",
    "NO_MODEL",
    "NO_MODEL_TO_SERVE",
    "OF_TEAM",
    "SCRIPT",
    "Limits",
    "ModelChoice",
    "ModelSettings",
    "RoleModel",
    "Settings",
    "as_before",
    "check_endpoints",
    "check_model_name",
    "found_from",
    "load_settings",
]
