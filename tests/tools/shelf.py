"""Tools for the tests that another process must be able to import."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from chargehand.errors import ToolError
from chargehand.tools import ToolContext, tool


@tool(isolated=True, effect="read")
def double(number: int) -> int:
    """Twice a number."""
    print("this must not end up in the answer")
    return number * 2


@tool(isolated=True)
async def own_pid() -> int:
    """The process the tool runs in."""
    return os.getpid()


@tool(isolated=True)
def hang(pipe: str) -> str:
    """Says who it and its own child are, and never ends."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(pipe).write_text(f"{os.getpid()} {child.pid}")
    while True:
        time.sleep(600)


@tool(isolated=True)
def refuse(why: str) -> str:
    """Refuses."""
    raise ToolError(why, "not_found")


@tool(isolated=True)
def crash() -> str:
    """Ends the process without a word."""
    os._exit(7)


@tool(isolated=True, effect="read")
def note(context: ToolContext) -> str:
    """Reads something."""
    context.record_read("memo", b"hello")
    return context.material[0].name
