"""The tools that come with the extra `review`: their versions, whether they run, and what to say when one does not."""

from __future__ import annotations

import asyncio
from importlib import metadata

from chargehand.errors import AnalyzerFailed

INSTALL = "pip install 'chargehand[review]'"


def version(package: str) -> str:
    """The installed version; `missing` when there is none, and running it will say so."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def missing(package: str) -> AnalyzerFailed:
    """The error for a tool that is not there."""
    return AnalyzerFailed(f"{package} is not installed: {INSTALL}")


async def find_broken_tools() -> dict[str, str]:
    """Tool -> why it cannot be run here; each is tried, as it will be run."""
    from chargehand.apps.review.analyzers import child, ruff

    names = ("ruff", "bandit")
    ended = await asyncio.gather(ruff.try_out(), child.try_out("bandit"), return_exceptions=True)
    faults: dict[str, str] = {}
    for name, fault in zip(names, ended, strict=True):
        if isinstance(fault, AnalyzerFailed):
            faults[name] = str(fault).removesuffix(f": {INSTALL}")
        elif fault is not None:
            raise fault
    return faults
