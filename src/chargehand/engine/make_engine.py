"""The engine by its name in the settings. Nothing above this folder imports an engine itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from chargehand.engine.engine_session import EngineInputs, EngineSession
from chargehand.errors import UsageError


def make_engine(name: str, inputs: EngineInputs) -> EngineSession:
    """Raises UsageError for a name that is not in ENGINES."""
    if name not in ENGINES:
        raise UsageError(f"There is no engine {name!r}: it is one of {', '.join(ENGINES)}.")
    return ENGINES[name](inputs)


def _make_local(inputs: EngineInputs) -> EngineSession:
    from chargehand.engine.local.engine import LocalEngine

    return LocalEngine(inputs)


# Each imports its engine when it is asked for.
ENGINES: Mapping[str, Callable[[EngineInputs], EngineSession]] = {"local": _make_local}
