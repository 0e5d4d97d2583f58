"""An order of `isolation.py` becomes a ToolResult: the child process's side of an isolated tool call."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import signal
import sys
from pathlib import Path
from typing import Any

from chargehand.errors import UsageError
from chargehand.tools.call_tool import call
from chargehand.tools.definition import Tool
from chargehand.tools.isolation import find_function
from chargehand.tools.tool_context import ToolContext
from chargehand.values.effect import ToolResult
from chargehand.values.request import Material


def run_order(order: dict[str, Any]) -> None:
    """Run the call, write the result, end."""
    _die_with(order["parent"])
    # Output that the tool prints must not mix with the result.
    answer = os.dup(1)
    os.dup2(2, 1)
    result = asyncio.run(_call_tool(order))
    with os.fdopen(answer, "wb") as out:
        out.write(result.model_dump_json().encode())
    sys.stdout.flush()
    os._exit(0)


async def _call_tool(order: dict[str, Any]) -> ToolResult:
    found = find_function(_load(order["module"], order["file"]), order["qualname"])
    if not callable(found):
        raise UsageError(f"{order['module']}.{order['qualname']} cannot be found in the child process.")
    context = ToolContext(
        material=tuple(Material.model_validate(each) for each in order["material"]),
        folder=None if order["folder"] is None else Path(order["folder"]),
        hidden=None if order["hidden"] is None else Path(order["hidden"]),
    )
    return await call(Tool("isolated", "", found), order["arguments"], context, max_text=order["max_text"])


def _load(name: str, file: str | None) -> object:
    """The module by its name, or from its file if the parent had loaded it under a name that cannot be imported."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        spec = None if file is None else importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module


def _die_with(parent: int) -> None:
    """If the system supports it, make this process end with its parent, even if the parent was killed."""
    if sys.platform != "linux":
        return
    import ctypes

    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
