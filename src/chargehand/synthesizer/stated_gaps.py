"""Gaps, contradictions and left-out results, in any form a model states them -> values; empty ones are dropped."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, cast

from chargehand.synthesizer.placeholder import is_placeholder
from chargehand.synthesizer.strip_markdown import one_line
from chargehand.text.citation import Citations
from chargehand.values.report import Contradiction, Gap, LeftOut

_NOTHING = frozenset({"", "null", "none", "nothing", "n/a", "[]", "{}"})
_LONGEST = 500


def gaps(entries: Iterable[Any], tasks: Collection[str]) -> tuple[Gap, ...]:
    """`tasks` are those of the run: a gap about another one names no task."""
    return tuple(gap for entry in entries if (gap := _gap(entry, tasks)) is not None)


def contradictions(entries: Iterable[Any]) -> tuple[Contradiction, ...]:
    return tuple(each for entry in entries if (each := _contradiction(entry)) is not None)


def left_out(entries: Iterable[Any], tasks: Collection[str]) -> tuple[LeftOut, ...]:
    """One for each task that is named with a reason; `t1-t3` and `t1, t2` name several. The first reason counts."""
    citations = Citations(tasks)
    found: dict[str, str] = {}
    for entry in entries:
        fields = _fields(entry, LeftOut.model_fields) or {}
        reason, named = _text(fields.get("reason")), fields.get("task")
        names = ", ".join(map(_text, cast(list[Any], named))) if isinstance(named, list) else _text(named)
        if not reason or is_placeholder(reason):
            continue
        for task in citations.tasks(f"[{names.strip('[]')}]"):
            found.setdefault(task, reason[:_LONGEST])
    return tuple(LeftOut(task=task, reason=reason) for task, reason in found.items())


def _gap(entry: Any, tasks: Collection[str]) -> Gap | None:
    fields = _fields(entry, Gap.model_fields)
    if fields is None:
        return Gap(reason=said[:_LONGEST]) if (said := _text(entry)) and not is_placeholder(said) else None
    task = _text(fields.get("task")).strip("[]")
    reason, impact = _text(fields.get("reason")), _text(fields.get("impact"))
    reason, impact = ("" if is_placeholder(said) else said for said in (reason, impact))
    if not reason and not impact:
        return None
    return Gap(task=task if task in tasks else None, reason=reason or impact, impact=impact if reason else "")


def _contradiction(entry: Any) -> Contradiction | None:
    fields = _fields(entry, Contradiction.model_fields)
    if fields is None:
        return Contradiction(subject=said[:_LONGEST]) if (said := _text(entry)) else None
    given = fields.get("claims")
    listed = cast(list[Any], given) if isinstance(given, list) else [given]
    claims = tuple(one_line(claim) for each in listed if (claim := _text(each)))
    subject = one_line(_text(fields.get("subject"))) or " / ".join(claims)[:_LONGEST]
    if not subject:
        return None
    return Contradiction(
        subject=subject,
        claims=claims,
        cause=_text(fields.get("cause")) or None,
        verdict=_text(fields.get("verdict")) or None,
        reason=_text(fields.get("reason")) or None,
        resolved=_text(fields.get("resolved")) == "true",
    )


def _fields(entry: Any, known: Collection[str]) -> dict[str, Any] | None:
    """The entry as an object of the agreed shape; None when it is something else, which is then taken as words."""
    if not isinstance(entry, dict):
        return None
    fields = cast(dict[str, Any], entry)
    says_nothing = not any(map(_text, fields.values()))
    return fields if says_nothing or any(name in fields for name in known) else None


def _text(value: Any) -> str:
    if value is None:
        return ""
    text = value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "" if text.casefold().rstrip(". ") in _NOTHING else text
