"""Sets the clock of this process to another day, for everything imported after it.

Code that depends on today then gives another result. Only the current time is changed, not durations.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from typing import Any

# Another year, month, day of the week and hour.
SHIFT_S = 431 * 86_400 + 7 * 3_600 + 11 * 60


def shift() -> None:
    """Shift the clock. Called once, before the code under test is imported."""
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() + SHIFT_S
    time.time_ns = lambda: now_ns() + SHIFT_S * 1_000_000_000
    for name in ("localtime", "gmtime", "ctime"):
        setattr(time, name, of_now(getattr(time, name)))
    written = time.strftime

    def strftime(form: str, at: Any = None) -> str:
        return written(form, time.localtime() if at is None else at)

    time.strftime = strftime
    date, moment = datetime.date, datetime.datetime
    datetime.date = like("date", date, today=of_today)
    datetime.datetime = like("datetime", moment, today=of_today, now=of_moment, utcnow=of_utc)


def of_now(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a moment that is given; without one, for the shifted one."""

    def call(seconds: float | None = None) -> Any:
        return function(time.time() if seconds is None else seconds)

    return call


def of_today(kind: Any) -> Any:
    return kind.fromtimestamp(time.time())


def of_moment(kind: Any, tz: Any = None) -> Any:
    return kind.fromtimestamp(time.time(), tz)


def of_utc(kind: Any) -> Any:
    return kind.fromtimestamp(time.time(), datetime.UTC).replace(tzinfo=None)


def like(name: str, real: type, **methods: Callable[..., Any]) -> Any:
    """A class that replaces one that cannot be changed. Instances of the real class are instances of this one too."""

    class Same(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real)

    body = {key: classmethod(method) for key, method in methods.items()}
    return Same(name, (real,), {**body, "__module__": "datetime", "__doc__": real.__doc__, "stands_for": real})
