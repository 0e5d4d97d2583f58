"""What the team's model worker is held to: its tests are run, three times, in the sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chargehand.tools import ToolContext, tool


@tool(effect="read")
async def run_tests(output: dict[str, Any], context: ToolContext) -> str:
    """Empty when the tests are good, else what is wrong with them."""
    from chargehand.apps.testgen.check_model_tests import problem_with

    return await problem_with(output, Path(context.material[0].path)) or ""
