"""Events -> the spans of a run as one OTLP/JSON document (ExportTraceServiceRequest), named as OpenTelemetry's GenAI
conventions name them.

All ids are made from the run and its keys: the same record gives the same document, and a longer record keeps the ids.
Texts of the run are left out unless requested. Secrets are always left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from chargehand.events import (
    AttemptEnded,
    AttemptStarted,
    Event,
    ModelCalled,
    ModelReplied,
    PlanApproved,
    PlanDrafted,
    Reused,
    RunEnded,
    RunStarted,
    ToolCalled,
    ToolRefused,
    ToolReturned,
)
from chargehand.text.escaping import dump_json
from chargehand.text.redaction import Redactor
from chargehand.trace.export import Blobs
from chargehand.trace.span_content import input_messages, output_messages
from chargehand.values.key import TaskPath
from chargehand.values.trace_context import span_id_of, trace_id_of

Data: TypeAlias = dict[str, Any]
Operation = Literal["invoke_workflow", "plan", "invoke_agent", "chat", "execute_tool"]

# The OpenInference name of each operation. Viewers that use these names show any other span as unknown.
_SORTS: dict[Operation, str] = {
    "invoke_workflow": "CHAIN",
    "plan": "CHAIN",
    "invoke_agent": "AGENT",
    "chat": "LLM",
    "execute_tool": "TOOL",
}
_INTERNAL, _CLIENT = 1, 3
_ERROR = 2


@dataclass(slots=True, eq=False)
class OtlpSpan:
    """A span while its run is read. Attributes that are None are left out."""

    id: str
    operation: Operation
    subject: str
    parent: OtlpSpan | None
    started: float
    ended: float
    attributes: Data
    # The number of the event that began it.
    seq: int
    open: bool = True
    # Spans of the same trace or another one, as trace id and span id.
    links: tuple[tuple[str, str], ...] = ()
    # The parent span in another program, for a span without a parent here.
    caller: str | None = None
    # Hashes of the messages sent to a model. The messages are read when the span is written, because then they are
    # recorded.
    messages: tuple[str, ...] = ()
    failed: bool = False
    message: str = ""


def to_otlp(
    events: Iterable[Event], blobs: Blobs, redactor: Redactor, *, content: bool = False, after: int = 0
) -> Data:
    """The spans that began after event `after`, of all sessions so far.

    With `content` also requests, messages, arguments, results and the texts of errors.
    """
    spans = RunSpans(blobs, redactor, content=content)
    made: list[OtlpSpan] = []
    for event in events:
        spans.apply(event)
        made += spans.take_begun()
    spans.close_all()
    return document_of([spans.write(span) for span in made if span.seq > after], spans.version, redactor)


def document_of(spans: list[Data], version: str, redactor: Redactor, resource: Data | None = None) -> Data:
    """Spans as one document of OTLP; `resource` adds attributes of the process."""
    about = describe_resource(version, redactor, resource)
    scope = {"scope": describe_scope(version), "spans": spans}
    return {"resourceSpans": [{"resource": about, "scopeSpans": [scope]}] if spans else []}


def describe_resource(version: str, redactor: Redactor, more: Data | None = None) -> Data:
    about = {"service.name": "chargehand", "service.version": version or None} | (more or {})
    return {"attributes": write_attributes(about, redactor)}


def describe_scope(version: str) -> Data:
    return {"name": "chargehand"} | ({"version": version} if version else {})


@dataclass(slots=True)
class RunSpans:
    """The spans of a run after the events applied so far.

    Code that sends spans during the run repeatedly takes the ended ones.
    """

    blobs: Blobs
    redactor: Redactor
    content: bool
    run: str = ""
    version: str = ""
    # The trace of the run: from its record, else made from its id.
    trace: str = ""
    # Spans that have begun, and those that have ended, since they were last taken.
    begun: list[OtlpSpan] = field(default_factory=list[OtlpSpan])
    closed: list[OtlpSpan] = field(default_factory=list[OtlpSpan])
    # Spans of this session that have not ended.
    opened: dict[str, OtlpSpan] = field(default_factory=dict[str, OtlpSpan])
    first_root: OtlpSpan | None = None
    root: OtlpSpan | None = None
    # Attempts by `t3/1`, calls by key, plans by the attempt whose team plans ("" for the plan of the run).
    attempts: dict[str, OtlpSpan] = field(default_factory=dict[str, OtlpSpan])
    calls: dict[str, OtlpSpan] = field(default_factory=dict[str, OtlpSpan])
    plans: dict[str, OtlpSpan] = field(default_factory=dict[str, OtlpSpan])
    approved: set[str] = field(default_factory=set[str])
    seen: Counter[str] = field(default_factory=Counter[str])
    # The last event that a process of the run recorded.
    last: float = 0.0

    def apply(self, event: Event) -> None:
        self.run = event.run
        if isinstance(event.body, RunStarted):
            self.close_all()
        if not event.outside:
            self.last = event.at
        if self.root is None or isinstance(event.body, RunStarted):
            self._start_session(event)
        match event.body:
            case PlanDrafted(within=scope, source=source) if source not in ("added", "split"):
                self._plan(event, scope or "")
            case PlanApproved(within=scope, strategy=strategy):
                plan = self._plan(event, scope or "")
                self.approved.add(scope or "")
                if plan is not None:
                    plan.attributes["chargehand.strategy"] = strategy
                    self._close(self.plans, scope or "")
            case AttemptStarted() as body:
                self._start_attempt(event, body)
            case AttemptEnded(status=status, error=error):
                span = self._close(self.attempts, f"{event.task}/{event.attempt}", error)
                if span is not None:
                    span.attributes["chargehand.status"] = status
            case ModelCalled() as body:
                self._start_chat(event, body)
            case ToolCalled() as body:
                self._start_tool(event, body)
            case ModelReplied() | ToolReturned() as body:
                self._end_call(body)
            case ToolRefused() as body:
                key = f"refused/{event.seq}"
                self.calls[key] = self._add(key, "execute_tool", body.tool, event, _of_tool(body))
                self._close(self.calls, key, {"kind": "refused", "message": body.reason})
            case Reused() as body:
                self._reuse_call(event, body)
            case RunEnded() as body:
                self._end_session(body)
            case _:
                pass

    def close_all(self) -> None:
        """End open spans at the last event of their session, and no span before its children."""
        for span in [*self.opened.values()]:
            self._end(span)
            span.attributes["chargehand.unfinished"] = True
        for table in (self.attempts, self.calls, self.plans):
            table.clear()

    def take_begun(self) -> list[OtlpSpan]:
        """The spans that have begun since they were last taken."""
        taken, self.begun = self.begun, []
        return taken

    def take_closed(self) -> list[OtlpSpan]:
        """The spans that have ended since they were last taken."""
        taken, self.closed = self.closed, []
        return taken

    def _end(self, span: OtlpSpan) -> None:
        span.open, span.ended = False, max(span.started, span.ended, self.last)
        around = span.parent
        while around is not None and around.ended < span.ended:
            around.ended, around = span.ended, around.parent
        if self.opened.pop(span.id, None) is not None:
            self.closed.append(span)

    def _start_session(self, event: Event) -> None:
        body = event.body
        team = ""
        self.root = None
        if isinstance(body, RunStarted):
            self.version, team = body.chargehand, _text(body.team, "name")
            self.trace = self.trace or _text(body.trace or {}, "id")
        self.trace = self.trace or trace_id_of(self.run)
        self.root = self._add("@run", "invoke_workflow", team, event, {"gen_ai.workflow.name": team or None})
        if self.first_root is None:
            self.first_root = self.root
        else:
            self.root.links = ((self.trace, self.first_root.id),)
        if isinstance(body, RunStarted):
            self._note_caller(self.root, body.trace or {})
            self.root.attributes["chargehand.session"] = body.epoch
            if self.content:
                self.root.attributes["input.value"] = _text(body.request, "text")

    def _note_caller(self, root: OtlpSpan, trace: Data) -> None:
        """A caller in another trace becomes a link: it continued a run that another caller began."""
        caller, its_trace = _text(trace, "parent") or None, _text(trace, "caller_trace") or self.trace
        if caller is not None and its_trace == self.trace:
            root.caller = caller
        elif caller is not None:
            root.links = (*root.links, (its_trace, caller))

    def _end_session(self, ended: RunEnded) -> None:
        root = self.root
        if root is None:
            return
        for span in [*self.opened.values()]:
            if span is not root:  # unfinished spans end with the session
                self._end(span)
                span.attributes["chargehand.unfinished"] = True
        self._end(root)
        root.attributes["chargehand.status"] = ended.status
        if ended.status == "failed":
            _fail(root, {"kind": ended.status})
        if self.content:
            root.attributes["output.value"] = _text(ended.report or {}, "answer") or None

    def _plan(self, event: Event, scope: str) -> OtlpSpan | None:
        """The span of the current planning, begun if necessary; None after the plan of that team was approved."""
        if scope in self.approved:
            return None
        if scope not in self.plans:
            self.plans[scope] = self._add(f"{scope}/@plan", "plan", "", event, {}, self.attempts.get(scope))
        return self.plans[scope]

    def _start_attempt(self, event: Event, started: AttemptStarted) -> None:
        key = f"{event.task}/{event.attempt}"
        if key in self.attempts:
            return
        provider, model = _split_model(started.model or "")
        self.attempts[key] = self._add(
            key,
            "invoke_agent",
            started.worker,
            event,
            {
                "gen_ai.agent.name": started.worker,
                "gen_ai.provider.name": provider,
                "gen_ai.request.model": model,
            },
        )

    def _start_chat(self, event: Event, called: ModelCalled) -> None:
        if called.key in self.calls:
            return  # the same call, sent again
        scope, _, supervisor = called.key.rpartition("@")
        planning = "@" in called.key and supervisor.startswith(("plan", "route"))
        parent = self._plan(event, scope.removesuffix("/")) if planning else None
        provider, model = _split_model(called.model)
        span = self.calls[called.key] = self._add(
            called.key,
            "chat",
            model or "",
            event,
            {
                "gen_ai.provider.name": provider,
                "gen_ai.request.model": model,
                "gen_ai.request.max_tokens": called.max_output or None,
                "gen_ai.agent.name": called.worker or called.role or None,
                "chargehand.role": called.role or None,
            },
            parent,
        )
        if self.content:
            span.messages = tuple(called.messages)

    def _start_tool(self, event: Event, called: ToolCalled) -> None:
        if called.key in self.calls:
            return
        span = self._add(called.key, "execute_tool", called.tool, event, _of_tool(called))
        self.calls[called.key] = span
        if self.content:
            span.attributes["gen_ai.tool.call.arguments"] = called.arguments

    def _end_call(self, returned: ModelReplied | ToolReturned) -> None:
        result = returned.result
        error = _part(result, "error") or ({"kind": "cancelled"} if result.get("cut") else None)
        span = self._close(self.calls, returned.key, error)
        if span is None:
            return
        reply = _part(result, "reply")
        span.attributes |= _usage(_part(reply, "usage") or _part(result, "used"), result.get("usd"))
        if span.operation == "chat":
            stop = _text(reply, "stop")
            span.attributes["gen_ai.response.model"] = _split_model(_text(reply, "model"))[1]
            span.attributes["gen_ai.response.finish_reasons"] = [stop] if stop else None
        if self.content and span.operation == "chat":
            span.attributes["gen_ai.output.messages"] = output_messages(reply)
        elif self.content:
            span.attributes["gen_ai.tool.call.result"] = result.get("text")

    def _reuse_call(self, event: Event, reused: Reused) -> None:
        """A span without duration and usage, because nothing was called."""
        reply = _part(reused.result, "reply")
        of_model = "reply" in reused.result
        operation: Operation = "chat" if of_model else "execute_tool"
        provider, model = _split_model(_text(reply, "model"))
        self.calls[reused.key] = self._add(
            reused.key,
            operation,
            model or "",
            event,
            {
                "gen_ai.provider.name": provider,
                "gen_ai.request.model": model,
                "chargehand.reused": True,
                "chargehand.source": reused.source,
            },
        )
        self._close(self.calls, reused.key, _part(reused.result, "error"))

    def _add(
        self,
        key: str,
        operation: Operation,
        subject: str,
        event: Event,
        attributes: Data,
        parent: OtlpSpan | None = None,
    ) -> OtlpSpan:
        parent = parent or self._around(event, itself=operation == "invoke_agent")
        self.seen[key] += 1
        id = span_id_of(self.run, key, self.seen[key])
        began = event.at if parent is None else max(event.at, parent.started)
        if event.task is not None:
            attributes = attributes | {"chargehand.task": event.task, "chargehand.attempt": event.attempt}
        span = OtlpSpan(id, operation, subject, parent, began, began, {"chargehand.key": key} | attributes, event.seq)
        self.begun.append(span)
        self.opened[id] = span
        return span

    def _around(self, event: Event, *, itself: bool) -> OtlpSpan | None:
        """The open attempt of the event, else the nearest attempt around its team, else the session."""
        if event.task is not None:
            if not itself and (span := self.attempts.get(f"{event.task}/{event.attempt}")) is not None:
                return span
            for task, attempt in TaskPath.parse(event.task).around:
                if (span := self.attempts.get(f"{task}/{attempt}")) is not None:
                    return span
        return self.root

    def _close(self, table: dict[str, OtlpSpan], key: str, error: Data | None = None) -> OtlpSpan | None:
        span = table.pop(key, None)
        if span is not None:
            self._end(span)
            if error:
                _fail(span, error)
        return span

    def write(self, span: OtlpSpan) -> Data:
        """A span in the form of OTLP."""
        attributes = {
            "gen_ai.operation.name": span.operation,
            "openinference.span.kind": _SORTS[span.operation],
            "session.id": self.run,
            "gen_ai.conversation.id": self.run,
        } | span.attributes
        if span.messages:
            attributes["gen_ai.input.messages"] = input_messages(span.messages, self.blobs(span.messages))
        written: Data = {
            "traceId": self.trace,
            "spanId": span.id,
            "name": self.redactor.text(f"{span.operation} {span.subject}".rstrip()),
            "kind": _CLIENT if span.operation == "chat" else _INTERNAL,
            "startTimeUnixNano": nanoseconds(span.started),
            "endTimeUnixNano": nanoseconds(span.ended),
            "attributes": write_attributes(attributes, self.redactor),
        }
        parent = span.caller if span.parent is None else span.parent.id
        if parent is not None:
            written["parentSpanId"] = parent
        if span.links:
            written["links"] = [{"traceId": trace, "spanId": id} for trace, id in span.links]
        if span.failed:
            said = {"message": self.redactor.text(span.message)} if self.content and span.message else {}
            written["status"] = {"code": _ERROR} | said
        return written


def _fail(span: OtlpSpan, error: Data) -> None:
    span.failed, span.message = True, _text(error, "message")
    span.attributes["error.type"] = _text(error, "kind") or "_OTHER"


def _of_tool(body: ToolCalled | ToolRefused) -> Data:
    return {
        "gen_ai.tool.name": body.tool,
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": body.worker or None,
    }


def _usage(usage: Data, usd: Any) -> Data:
    if not usage:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.get("input_tokens", 0),
        "gen_ai.usage.output_tokens": usage.get("output_tokens", 0),
        "gen_ai.usage.cache_read.input_tokens": usage.get("cached_tokens") or None,
        "chargehand.usd": usage.get("usd") if usd is None else usd,
    }


def _split_model(model: str) -> tuple[str | None, str | None]:
    provider, colon, name = model.partition(":")
    return (provider, name) if colon else (None, model or None)


def _text(data: Data, name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _part(data: Data, name: str) -> Data:
    value = data.get(name)
    return cast(Data, value) if isinstance(value, dict) else {}


def write_attributes(values: Data, redactor: Redactor) -> list[Data]:
    return [{"key": key, "value": _any_value(each, redactor)} for key, each in values.items() if each is not None]


def _any_value(value: Any, redactor: Redactor) -> Data:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}  # 64-bit integers are strings in the JSON of protocol buffers
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": redactor.text(value)}
        case list() if all(isinstance(each, str) for each in cast(list[Any], value)):
            return {"arrayValue": {"values": [_any_value(each, redactor) for each in cast(list[str], value)]}}
        case _:
            return {"stringValue": dump_json(redactor.json(value))}


def nanoseconds(at: float) -> str:
    # A float of seconds since 1970 is exact to the microsecond.
    return str(round(at * 1_000_000) * 1000)
