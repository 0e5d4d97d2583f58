"""The choices a review offers: its output formats, the severities of a gate, and the least confidence it shows.

The command line needs them for its help, so this module imports nothing slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from chargehand.values.outcome import Severity

Form = Literal["text", "md", "json", "sarif", "github"]
FORMS: tuple[Form, ...] = get_args(Form)
# Most severe first.
SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
MIN_CONFIDENCE = 80
