"""A saved review, as JSON or SARIF -> the fingerprints of its findings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from pydantic_core import from_json

from chargehand.apps.review.sarif_format import FINGERPRINT
from chargehand.errors import UsageError


def read_baseline(path: str) -> frozenset[str]:
    """Raises UsageError unless `--format json` or `--format sarif` wrote the file."""
    try:
        data: Any = from_json(Path(path).read_bytes())
    except OSError as error:
        raise UsageError(f"The baseline {path} cannot be read: {error.strerror}.") from None
    except ValueError:
        data = None
    document: dict[str, Any] = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    if isinstance(document.get("runs"), list):
        return frozenset(_of_sarif(document))
    review = document.get("data")
    if isinstance(review, dict) and isinstance(known := cast("dict[str, Any]", review).get("fingerprints"), list):
        return frozenset(str(each) for each in cast("list[Any]", known))
    raise UsageError(
        f"{path} is not a baseline: save one with `chargehand review --format sarif -o {path}` (or json) and give that."
    )


def _of_sarif(document: dict[str, Any]) -> Iterator[str]:
    for run in _objects(document.get("runs")):
        for result in _objects(run.get("results")):
            for known in _objects([result.get("partialFingerprints")]):
                if FINGERPRINT in known:
                    yield str(known[FINGERPRINT])


def _objects(value: Any) -> list[dict[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
