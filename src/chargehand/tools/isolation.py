"""A tool call becomes its result in a child process, which is killed when the call is cancelled.

The child (`isolated_child.py`) gets the call as JSON on stdin and writes a ToolResult as JSON to stdout. It leads its
own process group, so that the processes it started are killed with it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pydantic_core import ValidationError

from chargehand.errors import ToolError, UsageError
from chargehand.process import TooMuchOutput, run_process
from chargehand.tools.definition import Tool
from chargehand.tools.tool_context import ToolContext
from chargehand.values.effect import ToolResult

# The module path must be set before chargehand can be imported.
START = (
    "import json, sys; order = json.loads(sys.stdin.buffer.read()); sys.path[:] = order['path']; "
    "from chargehand.tools.isolated_child import run_order; run_order(order)"
)


class NoResult(ToolError):
    """The process of a tool ended without a result. A negative status is the signal that ended it."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


async def run(tool: Tool, arguments: dict[str, Any], context: ToolContext, max_text: int) -> ToolResult:
    """Call the tool in a child process. UsageError when a child could not import it, NoResult when the child dies."""
    order = {
        "path": sys.path,
        "parent": os.getpid(),
        "module": tool.fn.__module__,
        "file": _importable(tool),
        "qualname": tool.fn.__qualname__,
        "arguments": arguments,
        "material": [each.to_json() for each in context.material],
        "folder": None if context.folder is None else str(context.folder),
        "hidden": None if context.hidden is None else str(context.hidden),
        "max_text": max_text,
    }
    try:
        ended = await run_process([sys.executable, "-c", START], stdin=json.dumps(order).encode())
    except TooMuchOutput as much:
        raise ToolError(
            f"The process of tool {tool.name} wrote more than {much} and was stopped.", "too_large"
        ) from None
    try:
        return ToolResult.model_validate_json(ended.stdout)
    except ValidationError:
        how = f"was ended by signal {-ended.code}" if ended.code < 0 else f"ended with code {ended.code}"
        said = f": {ended.last_words}" if ended.last_words else "."
        raise NoResult(f"The process of tool {tool.name} {how} and gave no result{said}", ended.code) from None


def _importable(tool: Tool) -> str | None:
    """The file of the tool's module. UsageError when the function's name leads to something else."""
    module = sys.modules.get(tool.fn.__module__)
    if find_function(module, tool.fn.__qualname__) is not tool.fn:
        raise UsageError(
            f"Tool {tool.name} is isolated, but {tool.fn.__module__}.{tool.fn.__qualname__} does not lead to it: "
            "a child process could not import it; define it at the top level of a module."
        )
    return getattr(module, "__file__", None)


def find_function(module: object, qualname: str) -> object:
    """The object under a dotted name of a module; None when there is none."""
    found = module
    for part in qualname.split("."):
        found = getattr(found, part, None)
    # The name of a decorated function leads to its Tool.
    return getattr(found, "fn", found)
