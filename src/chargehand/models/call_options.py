"""Which options may go with a call: they tune how a model answers, and never replace what chargehand itself sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast, get_args

from chargehand.errors import ModelError
from chargehand.values.base import JSON

# How much a model reasons, in chargehand's words; each wire format translates it into the words of its provider.
Effort = Literal["none", "low", "medium", "high"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)

# Sampling and effort, which a file without trust may set. They affect only the text of the reply.
HARMLESS = frozenset(
    {
        "frequency_penalty",
        "min_p",
        "presence_penalty",
        "reasoning_effort",
        "repetition_penalty",
        "seed",
        "stop",
        "stop_sequences",
        "temperature",
        "thinking",
        "top_k",
        "top_p",
        "verbosity",
    }
)
# The parts of a call, its cost, and what the provider would do in addition to answering.
_OWN = frozenset(
    {
        "function_call",
        "functions",
        "max_completion_tokens",
        "max_output_tokens",
        "max_tokens",
        "mcp_servers",
        "messages",
        "model",
        "models",
        "n",
        "output_format",
        "response_format",
        "stream",
        "stream_options",
        "system",
        "tool_choice",
        "tools",
    }
)


def wrong_option(name: str, value: JSON) -> str | None:
    """Why the option may not be sent, from any source, and what to do; None if it may be sent."""
    if name == "effort":
        return "'effort' is not an option: set it beside 'options'."
    # Some servers read names without regard to case.
    if (low := name.lower()) in _OWN:
        return f"{name!r} is not an option: chargehand itself sets it. {_REMEDIES.get(low, 'Leave it out.')}"
    if low == "output_config" and not _without_format(value):
        return f"{name!r} may hold 'effort' and the like, not 'format': chargehand itself sets it. Leave it out."
    return None


def _without_format(value: JSON) -> bool:
    return isinstance(value, dict) and "format" not in map(str.lower, cast("dict[str, JSON]", value))


def take_effort(options: Mapping[str, JSON]) -> tuple[Effort | None, dict[str, JSON]]:
    """The effort that was set, and the other options."""
    rest = dict(options)
    return cast("Effort | None", rest.pop("effort", None)), rest


def sendable(options: Mapping[str, JSON], refused: frozenset[str]) -> dict[str, JSON]:
    """The options that the model accepts; ModelError for an option that would replace a part of the call."""
    for name, value in options.items():
        if wrong := wrong_option(name, value):
            raise ModelError("bad_request", f"Not sent: {wrong}")
    return {name: value for name, value in options.items() if name not in refused}


_LESS = 'For less, set a budget: the tokens of the run, or "budget" in a plan\'s task.'
_REMEDIES = {
    "max_completion_tokens": _LESS,
    "max_output_tokens": _LESS,
    "max_tokens": _LESS,
    "mcp_servers": "Tools of a team are written in its tools.py.",
    "model": "Set 'model' beside 'options'.",
    "models": "Set 'model' beside 'options'.",
    "tools": "Tools of a worker are named in its file.",
}
