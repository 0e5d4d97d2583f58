"""The tools that come with the extra `review`: their versions, and what to say when one is missing."""

from __future__ import annotations

from importlib import metadata

from chargehand.errors import AnalyzerFailed


def version(package: str) -> str:
    """The installed version; `missing` when there is none, and running it will say so."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def missing(package: str) -> AnalyzerFailed:
    """The error for a tool that is not there."""
    return AnalyzerFailed(f"{package} is not installed: pip install 'chargehand[review]'")
