"""Environment and files, read once into one frozen value."""

from __future__ import annotations

from chargehand.settings.load import load_settings
from chargehand.settings.value import Limits, ModelChoice, Models, RoleModel, Settings

__all__ = ["Limits", "ModelChoice", "Models", "RoleModel", "Settings", "load_settings"]
