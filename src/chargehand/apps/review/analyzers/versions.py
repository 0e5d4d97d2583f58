"""An analyzer's name -> its version, which changes with its tool and with any rule of chargehand."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from sys import executable

from chargehand.errors import AnalyzerFailed
from chargehand.text import redaction

INSTALL = "pip install 'chargehand[review]'"


def version_of(analyzer: str, tool: str | None) -> str:
    """The version of an analyzer. It is part of every cache key, so a finding is never older than its rule."""
    from chargehand.apps.review.analyzers.linters import program_versions

    installed = _installed_version(tool) if tool else program_versions() if analyzer.endswith("linters") else ""
    return f"{analyzer} {installed} {digest_of_rules()}"


def missing(package: str) -> AnalyzerFailed:
    """The error for a tool that is not installed."""
    return AnalyzerFailed(f"{package} is not installed: {INSTALL}")


@cache
def _installed_version(package: str) -> str:
    """`missing` if it is not installed: the analysis will report that."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def installation(tool: str) -> str | None:
    """A text that changes when a tool or Python is installed, replaced or removed; None if it is not installed."""
    found = find_spec(tool)
    if found is None or found.origin is None:
        return None
    return f"{tool} {_installed_version(tool)} {executable} {found.origin} {Path(found.origin).stat().st_mtime_ns}"


@cache
def digest_of_rules() -> str:
    """A hash of all tables, patterns and rules."""
    sources = (*sorted(Path(__file__).parent.glob("*.py")), Path(redaction.__file__))
    return sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
