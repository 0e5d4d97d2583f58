"""A model that answers from rules: `scripted:FILE`, or rules in memory. The same rules give the same replies."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args

from pydantic_core import ValidationError, from_json, to_json

from chargehand.errors import ModelError, UsageError
from chargehand.models import Attribution
from chargehand.values.base import JSON, Field, Value
from chargehand.values.effect import ModelCall
from chargehand.values.message import Reply, TokenCount, ToolRequest
from chargehand.values.outcome import EscalationReason
from chargehand.values.role import Role

_RULE = '{"when": {...}, "reply": {"text": "..."}}'
_SHAPE = f'{{"replies": [{_RULE}]}}'
_IN_PYTHON = f"ScriptedModel([{_RULE}])"
_REASONS = " or ".join([", ".join(get_args(EscalationReason)[:-1]), get_args(EscalationReason)[-1]])


class When(Value):
    """What a call must be for a rule to answer it; what is left out matches anything."""

    role: Role | None = None
    task: str | None = None
    worker: str | None = None
    attempt: int | None = None
    contains: str | None = None

    def matches(self, call: ModelCall, attribution: Attribution) -> bool:
        return (
            self.role in (None, call.role)
            and self.task in (None, attribution.task)
            and self.worker in (None, call.worker)
            and self.attempt in (None, attribution.attempt)
            and (self.contains is None or self.contains in _texts(call))
        )


class ScriptedCall(Value):
    """A call of a tool that a rule answers with."""

    name: str
    arguments: dict[str, JSON] = Field(default_factory=dict)

    def check_together(self) -> None:
        reason = self.arguments.get("reason")
        if self.name == "escalate" and reason not in (None, *get_args(EscalationReason)):
            raise ValueError(f"escalate has the reason {reason!r}: give {_REASONS}")


class ScriptedError(Value):
    """An error of the provider that a rule answers with."""

    status: int
    retry_after: float | None = None
    message: str = "scripted error"


class ScriptedReply(Value):
    """What a rule answers. `stop` is worked out unless it is given."""

    text: str | None = None
    json_: JSON = Field(default=None, alias="json")
    tool_calls: tuple[ScriptedCall, ...] = ()
    error: ScriptedError | None = None
    stop: str | None = Field(default=None, pattern="^(end|tools|length|refused)$")

    def check_together(self) -> None:
        if not self.model_fields_set & {"text", "json_", "tool_calls", "error"}:
            raise ValueError("a reply needs one of text, json, tool_calls, error")


class ScriptRule(Value):
    """An answer, and the calls that it is for."""

    when: When = Field(default_factory=When)
    reply: ScriptedReply
    delay_ms: float = Field(default=0, ge=0)
    times: int | None = Field(default=None, ge=1)
    usage: TokenCount | None = None


class Script(Value):
    """The rules of a scripted model."""

    replies: tuple[ScriptRule, ...]


class ScriptedModel:
    """Answers each call by the first rule that matches and has `times` left; `calls` holds what was asked."""

    def __init__(self, replies: Sequence[Mapping[str, Any]] | Mapping[str, Any], source: str | None = None) -> None:
        """`replies` are the rules, or the content of the script file `source`: `{"replies": [...]}`."""
        if isinstance(replies, str | os.PathLike):
            raise UsageError(
                f"{str(replies)!r} is not a list of rules: give model='scripted:FILE', or ScriptedModel.load(FILE)."
            )
        data = replies if isinstance(replies, Mapping) else {"replies": replies}
        self._rules = _script(data, source or "the script", _IN_PYTHON).replies
        self._left = [rule.times for rule in self._rules]
        self._source = source
        self.calls: list[tuple[ModelCall, Attribution]] = []

    @classmethod
    def load(cls, path: str | Path) -> ScriptedModel:
        """The model of a script file; UsageError says what is wrong with the file."""
        try:
            text = Path(path).read_bytes()
            if not text.strip():
                raise UsageError(f"The script {path} is empty. It should be {_SHAPE}.")
            data: Any = from_json(text)
        except OSError as error:
            raise UsageError(f"The script {path} cannot be read: {error.strerror}. Name an existing file.") from None
        except ValueError as error:
            raise UsageError(f"The script {path} is not JSON: {error}. It should be {_SHAPE}.") from None
        _script(data, str(path), _SHAPE)
        return cls(data, str(path))

    def __repr__(self) -> str:
        return f"<ScriptedModel, rules: {len(self._rules)}, calls: {len(self.calls)}>"

    async def complete(
        self,
        call: ModelCall,
        max_output: int,
        attribution: Attribution,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        self.calls.append((call, attribution))
        rule = self._take(call, attribution)
        if rule.delay_ms:
            await asyncio.sleep(rule.delay_ms / 1000)
        if (error := rule.reply.error) is not None:
            from chargehand.models.provider_errors import kind_of  # few scripts fail

            kind = kind_of(error.status)
            raise ModelError(kind, error.message, retry_after=error.retry_after, status=error.status)
        reply = _reply(rule, call)
        if on_text is not None:
            for piece in re.findall(r"\s*\S+|\s+", reply.text):
                on_text(piece)
        return reply

    async def close(self) -> None:
        pass

    def _take(self, call: ModelCall, attribution: Attribution) -> ScriptRule:
        for index, rule in enumerate(self._rules):
            left = self._left[index]
            if left != 0 and rule.when.matches(call, attribution):
                if left is not None:
                    self._left[index] = left - 1
                return rule
        raise ModelError("bad_request", self._describe_unmatched(call, attribution))

    def _describe_unmatched(self, call: ModelCall, attribution: Attribution) -> str:
        # Their request is what the caller asked; the rest is the same for all.
        plans = call.role in ("planner", "router")
        if plans and self._source is not None:
            why = f"{self._source} has no reply for this request: the script was written for others. Name a model that "
            why += f"can read yours, or add a rule for role={call.role}."
        else:
            about = {"task": attribution.task, "worker": call.worker, "attempt": attribution.attempt}
            known = {"role": call.role} | {name: value for name, value in about.items() if value is not None}
            matched = " ".join(f"{name}={value}" for name, value in known.items())
            why = f"{self._source or 'the script'} has no reply for {matched}: add a rule, such as "
            why += f'{{"when": {{"role": "{call.role}"}}, "reply": {{...}}}}.'
        # Without the heading that it has in the prompt.
        asked = call.messages[-1].text.removeprefix("Request\n") if plans else _texts(call)
        return f"{why}\nThe request was:\n{asked}"


def _reply(rule: ScriptRule, call: ModelCall) -> Reply:
    said = rule.reply
    text = said.text or ""
    if "json_" in said.model_fields_set:
        text = to_json(said.json_).decode()
    # Ids come from the call's content, so that a repeat gives the same reply.
    calls = tuple(
        ToolRequest(id=f"call_{call.fingerprint[:12]}_{i}", name=c.name, arguments=c.arguments)
        for i, c in enumerate(said.tool_calls)
    )
    stop: Any = said.stop or ("tools" if calls else "end")
    usage = rule.usage or TokenCount(
        input_tokens=_tokens(len(m.packed) for m in call.messages) + _tokens(len(t.packed) for t in call.tools),
        output_tokens=_tokens([len(text), *(len(to_json(c.arguments)) for c in said.tool_calls)]),
    )
    return Reply(text=text, tool_calls=calls, stop=stop, usage=usage, model=call.model)


def _tokens(lengths: Iterable[int]) -> int:
    return -(-sum(lengths) // 4)


def _texts(call: ModelCall) -> str:
    return "\n".join(m.text for m in call.messages)


def _script(data: Any, source: str, shape: str) -> Script:
    try:
        return Script.model_validate(data)
    except ValidationError as error:
        problems = [_problem(dict(found)) for found in error.errors(include_url=False)[:5]]
        raise UsageError(f"{source} has the wrong shape: {'; '.join(problems)}. It should be {shape}.") from None


_KEYS = sorted(
    {(info.alias or name) for model in (Script, ScriptRule, When, ScriptedReply, ScriptedCall, ScriptedError)
     for name, info in model.model_fields.items()}
)  # fmt: skip


def _problem(found: dict[str, Any]) -> str:
    path = cast("tuple[str | int, ...]", found["loc"])
    where = ".".join(map(str, path)) or "the file"
    if found["type"] in ("model_type", "dict_type"):
        return f"{where} should be an object"
    if found["type"] == "extra_forbidden":
        return f"unknown key {where}{_suggest(str(path[-1]), _KEYS)}"
    if path[-1:] == ("role",):
        return f"{where} is {found['input']!r}{_suggest(str(found['input']), get_args(Role))}: {found['msg']}"
    return f"{where}: {found['msg'].removeprefix('Value error, ')}"


def _suggest(word: str, known: Sequence[str]) -> str:
    import difflib

    close = difflib.get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
