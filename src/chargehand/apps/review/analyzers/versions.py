"""An analyzer's name -> its version, which changes with the tool it uses and with any of our rules."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from chargehand.errors import AnalyzerFailed
from chargehand.text import redaction

INSTALL = "pip install 'chargehand[review]'"


def version_of(analyzer: str, tool: str | None) -> str:
    """Part of every key of the cache, so that no finding outlives the rule that made it."""
    from chargehand.apps.review.analyzers.linters import program_versions

    installed = _installed_version(tool) if tool else program_versions() if analyzer.endswith("linters") else ""
    return f"{analyzer} {installed} {digest_of_rules()}"


def missing(package: str) -> AnalyzerFailed:
    """The error for a tool that is not installed."""
    return AnalyzerFailed(f"{package} is not installed: {INSTALL}")


def _installed_version(package: str) -> str:
    """`missing` when it is not installed: running it will report that."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


@cache
def digest_of_rules() -> str:
    """Our tables, patterns and rules as one word."""
    sources = (*sorted(Path(__file__).parent.glob("*.py")), Path(redaction.__file__))
    return sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
