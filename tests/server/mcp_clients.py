"""The official MCP client, over stdio and HTTP, in both eras of the protocol."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.lazy_module import LazyModule
from tests.pace import PATIENCE_S
from tests.server.serving import ANSWERS, TOKEN

httpx2, mcp, streamable_http = LazyModule("httpx2"), LazyModule("mcp"), LazyModule("mcp.client.streamable_http")
# What a client of today and one of before 2026-07-28 ask for.
ERAS = {"auto": "2026-07-28", "legacy": "2025-11-25"}


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, PATIENCE_S))


@asynccontextmanager
async def over_http(port: int, mode: str, token: str = TOKEN, **options: Any) -> AsyncGenerator[Any]:
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http:
        transport = streamable_http.streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
        async with mcp.Client(transport, mode=mode, **options) as client:
            yield client


def stdio_of(home: Path, script: Path | None, *args: str) -> Any:
    """How a client starts `chargehand mcp` beside its home, with a script in place of a model."""
    env = {"PATH": os.environ["PATH"], "CHARGEHAND_HOME": str(home)}
    env |= {} if script is None else {"CHARGEHAND_MODEL": f"scripted:{script}"}
    return mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "chargehand", "mcp", *args], env=env, cwd=str(home.parent)
    )


def write_script(folder: Path, answers: list[dict[str, Any]] = ANSWERS) -> Path:
    """A script for the general team."""
    text = json.dumps({"replies": answers}).replace('"worker": "w"', '"worker": "researcher"')
    path = folder / "script.json"
    path.write_text(text)
    return path


def text_of(result: Any) -> str:
    return "".join(part.text for part in result.content)
