"""Documents of OTLP as JSON -> the same as protocol buffers: some viewers accept nothing else.

Only a few fields are written, and their numbers never change, so a table of them is enough.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any, Literal, TypeAlias, cast

Kind: TypeAlias = Literal["text", "id", "number", "flag", "fixed", "double"]
Field: TypeAlias = tuple[int, Kind | str]

_SCALARS = frozenset({"text", "id", "number", "flag", "fixed", "double"})
_ATTRIBUTE = "KeyValue"
# Longer texts are not kept once they are written.
_SHORT = 100
_ONE_BYTE = tuple(bytes([value]) for value in range(0x80))
# Message -> field name in JSON -> its number, and its kind or its message.
_MESSAGES: dict[str, dict[str, Field]] = {
    "Document": {"resourceSpans": (1, "ResourceSpans"), "resourceMetrics": (1, "ResourceMetrics")},
    "ResourceSpans": {"resource": (1, "Resource"), "scopeSpans": (2, "ScopeSpans")},
    "ResourceMetrics": {"resource": (1, "Resource"), "scopeMetrics": (2, "ScopeMetrics")},
    "Resource": {"attributes": (1, _ATTRIBUTE)},
    "ScopeSpans": {"scope": (1, "Scope"), "spans": (2, "Span")},
    "ScopeMetrics": {"scope": (1, "Scope"), "metrics": (2, "Metric")},
    "Scope": {"name": (1, "text"), "version": (2, "text")},
    "Span": {
        "traceId": (1, "id"),
        "spanId": (2, "id"),
        "parentSpanId": (4, "id"),
        "name": (5, "text"),
        "kind": (6, "number"),
        "startTimeUnixNano": (7, "fixed"),
        "endTimeUnixNano": (8, "fixed"),
        "attributes": (9, _ATTRIBUTE),
        "links": (13, "Link"),
        "status": (15, "Status"),
    },
    "Link": {"traceId": (1, "id"), "spanId": (2, "id")},
    "Status": {"message": (2, "text"), "code": (3, "number")},
    "KeyValue": {"key": (1, "text"), "value": (2, "AnyValue")},
    "AnyValue": {
        "stringValue": (1, "text"),
        "boolValue": (2, "flag"),
        "intValue": (3, "number"),
        "doubleValue": (4, "double"),
        "arrayValue": (5, "ArrayValue"),
    },
    "ArrayValue": {"values": (1, "AnyValue")},
    "Metric": {
        "name": (1, "text"),
        "description": (2, "text"),
        "unit": (3, "text"),
        "sum": (7, "Sum"),
        "histogram": (9, "Histogram"),
    },
    "Sum": {
        "dataPoints": (1, "NumberDataPoint"),
        "aggregationTemporality": (2, "number"),
        "isMonotonic": (3, "flag"),
    },
    "Histogram": {"dataPoints": (1, "HistogramDataPoint"), "aggregationTemporality": (2, "number")},
    "NumberDataPoint": {
        "startTimeUnixNano": (2, "fixed"),
        "timeUnixNano": (3, "fixed"),
        "asDouble": (4, "double"),
        "attributes": (7, _ATTRIBUTE),
    },
    "HistogramDataPoint": {
        "startTimeUnixNano": (2, "fixed"),
        "timeUnixNano": (3, "fixed"),
        "count": (4, "fixed"),
        "sum": (5, "double"),
        "bucketCounts": (6, "fixed"),
        "explicitBounds": (7, "double"),
        "attributes": (9, _ATTRIBUTE),
        "min": (11, "double"),
        "max": (12, "double"),
    },
}


def to_protobuf(document: dict[str, Any]) -> bytes:
    """A document of spans or of metrics."""
    return _message("Document", document)


def _message(name: str, data: dict[str, Any]) -> bytes:
    fields = _MESSAGES[name]
    parts: list[bytes] = []
    for key, value in data.items():
        number, kind = fields[key]
        if kind == _ATTRIBUTE:
            parts += [_with_length(number, _attribute(each)) for each in value]
        elif kind not in _SCALARS:
            several = cast("list[Any]", value) if isinstance(value, list) else [value]
            parts += [_with_length(number, _message(kind, each)) for each in several]
        elif isinstance(value, list):
            # Repeated numbers are packed.
            parts.append(_with_length(number, b"".join(_eight_bytes(kind, each) for each in cast("list[Any]", value))))
        else:
            parts.append(_scalar(number, kind, value))
    return b"".join(parts)


def _attribute(data: dict[str, Any]) -> bytes:
    ((kind, value),) = data["value"].items()
    if isinstance(value, str) and len(value) <= _SHORT:
        return _short_attribute(data["key"], kind, value)
    return _message(_ATTRIBUTE, data)


@lru_cache(maxsize=4096)
def _short_attribute(key: str, kind: str, value: str) -> bytes:
    """Most attributes of a span are those of many others: the run, the model, the worker."""
    return _message(_ATTRIBUTE, {"key": key, "value": {kind: value}})


def _scalar(number: int, kind: str, value: Any) -> bytes:
    match kind:
        case "text":
            return _with_length(number, str(value).encode("utf-8", "replace"))
        case "id":
            return _with_length(number, bytes.fromhex(value))
        case "number" | "flag":
            # A negative number is written with all 64 bits.
            return _varint(number << 3) + _varint(int(value) & 0xFFFF_FFFF_FFFF_FFFF)
        case _:
            return _varint(number << 3 | 1) + _eight_bytes(kind, value)


def _eight_bytes(kind: str, value: Any) -> bytes:
    return struct.pack("<Q", int(value)) if kind == "fixed" else struct.pack("<d", value)


def _with_length(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _varint(value: int) -> bytes:
    if value <= 0x7F:
        return _ONE_BYTE[value]
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
