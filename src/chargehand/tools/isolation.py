"""A tool call in a process of its own, which is really gone when the call is cancelled.

The child gets the call as JSON on stdin and answers a ToolResult as JSON on stdout. It leads its own process group, so
that what it started dies with it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from chargehand.errors import UsageError
from chargehand.process import TooMuchOutput, run_process
from chargehand.tools.tool_context import ToolContext
from chargehand.values.effect import ToolResult
from chargehand.values.outcome import Fault
from chargehand.values.request import Material

if TYPE_CHECKING:
    from chargehand.tools.definition import Tool

# The module path has to be there before chargehand can be imported.
START = (
    "import json, sys; order = json.loads(sys.stdin.buffer.read()); sys.path[:] = order['path']; "
    "from chargehand.tools.isolation import obey; obey(order)"
)


async def run(tool: Tool, arguments: dict[str, Any], context: ToolContext, max_text: int) -> ToolResult:
    """Call the tool in a child process. UsageError when a child could not import it."""
    order = {
        "path": sys.path,
        "parent": os.getpid(),
        "module": tool.fn.__module__,
        "file": _importable(tool),
        "qualname": tool.fn.__qualname__,
        "arguments": arguments,
        "material": [each.to_json() for each in context.material],
        "folder": None if context.folder is None else str(context.folder),
        "max_text": max_text,
    }
    try:
        ended = await run_process([sys.executable, "-c", START], stdin=json.dumps(order).encode())
    except TooMuchOutput as much:
        message = f"The process of tool {tool.name} wrote more than {much} and was stopped"
        return ToolResult(error=Fault(kind="tool", message=message))
    try:
        return ToolResult.model_validate_json(ended.stdout)
    except ValidationError:
        how = f"was ended by signal {-ended.code}" if ended.code < 0 else f"ended with code {ended.code}"
        said = f": {ended.last_words}" if ended.last_words else ""
        message = f"The process of tool {tool.name} {how} and left no result{said}"
        return ToolResult(error=Fault(kind="tool", message=message))


def _importable(tool: Tool) -> str | None:
    """The file of the tool's module, once it is sure that its name leads to this very function."""
    module = sys.modules.get(tool.fn.__module__)
    if _find(module, tool.fn.__qualname__) is not tool.fn:
        raise UsageError(
            f"Tool {tool.name} is isolated, but {tool.fn.__module__}.{tool.fn.__qualname__} does not lead to it: "
            "a child process could not import it; define it at the top level of a module."
        )
    return getattr(module, "__file__", None)


def _find(module: object, qualname: str) -> object:
    found = module
    for part in qualname.split("."):
        found = getattr(found, part, None)
    # The name of a decorated function leads to its Tool.
    return getattr(found, "fn", found)


def obey(order: dict[str, Any]) -> None:
    """The child's side: run the call, write the result, end."""
    _die_with(order["parent"])
    # What the tool prints must not mix with the answer.
    answer = os.dup(1)
    os.dup2(2, 1)
    result = asyncio.run(_run_order(order))
    with os.fdopen(answer, "wb") as out:
        out.write(result.model_dump_json().encode())
    sys.stdout.flush()
    os._exit(0)


async def _run_order(order: dict[str, Any]) -> ToolResult:
    from chargehand.tools.call_tool import call
    from chargehand.tools.definition import Tool

    found = _find(_load(order["module"], order["file"]), order["qualname"])
    if not callable(found):
        raise UsageError(f"{order['module']}.{order['qualname']} is not there in the child process.")
    context = ToolContext(
        material=tuple(Material.model_validate(each) for each in order["material"]),
        folder=None if order["folder"] is None else Path(order["folder"]),
    )
    return await call(Tool("isolated", "", found), order["arguments"], context, max_text=order["max_text"])


def _load(name: str, file: str | None) -> object:
    """The module by its name, or from its file when the parent had loaded it from there under a name of its own."""
    import importlib
    import importlib.util

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
    """Where the system can, make this process end when its parent does, even if that was killed."""
    if sys.platform != "linux":
        return
    import ctypes

    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
