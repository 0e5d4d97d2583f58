"""The tools and runs of a server -> an MCP server of the official SDK, for both eras of the protocol.

Before 2026-07-28 a person is asked by a request to the client while the tool waits; since then the tool returns the
question, and is called again with the answer and a sealed state.
"""

from __future__ import annotations

import asyncio
import json
import os
import traceback
from typing import Any

from mcp import types
from mcp.server import Server as SdkServer
from mcp.server import ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError

from chargehand import __version__
from chargehand.engine.engine_session import caller_header
from chargehand.errors import ChargehandError
from chargehand.server import wait_for_run
from chargehand.server.access import Caller
from chargehand.server.checked_input import check_input
from chargehand.server.client_runs import find_run_of, may_use
from chargehand.server.mcp_schemas import PLAN_RESULT, RUN_RESULT, input_schema
from chargehand.server.mcp_tools import LONGEST_WAIT_S, PARAMETERS, TOOLS, AskPerson, ToolEntry, ToolUse, follow_run
from chargehand.server.question_forms import form_message, form_schema, words_of
from chargehand.server.read_runs import read_run
from chargehand.server.refusals import Refusal, refusal_of
from chargehand.server.run_list import RunsQuery
from chargehand.server.run_summary import Told
from chargehand.server.shared_state import Server
from chargehand.text.escaping import dump_json, show_controls
from chargehand.values.effect import Question

INSTRUCTIONS = (
    "chargehand runs teams of agents. Start with run_team, or review_diff for a patch. When a result has `next`, do "
    "what it says: a run that takes longer continues, and wait_run gives its answer. Plans and calls of tools are "
    "approved by the user, never by you."
)
SCHEME = "chargehand://runs"
# How long a person may take for a form. The second limit is for clients that show no progress.
LONGEST_ASK_S = 600.0
LONGEST_SILENT_ASK_S = 45.0
_KEY = "answer"
_RUNS_A_PAGE = 50


class _Asked(Exception):
    """A question that the client has to bring back an answer to, in the newer era."""

    def __init__(self, run: str, question: Question, wrong: str) -> None:
        super().__init__(question.id)
        self.run, self.question, self.wrong = run, question, wrong


def make_mcp_server(server: Server, *, approvals: bool = False) -> SdkServer[Any]:
    """`approvals` lets the calling model approve plans and calls of tools."""
    handlers = _Handlers(server, approvals)
    made: SdkServer[Any] = SdkServer(
        "chargehand",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )
    # A question that comes back must be one that the server asked this caller in this same call.
    security = RequestStateSecurity(keys=[os.urandom(32)], ttl=3600.0, bind_principal=caller_of)
    made.middleware.append(RequestStateBoundary(security, default_audience="chargehand"))
    return made


def caller_of(context: ServerRequestContext[Any, Any]) -> Caller:
    """The caller that the token of a request belongs to; over stdio, the owner."""
    return "owner" if context.request is None else context.request.scope["caller"]


def _take_caller(context: ServerRequestContext[Any, Any]) -> None:
    """Makes a run that this call starts part of the caller's trace, which MCP names in the fields of a request."""
    named = (context.meta or {}).get("traceparent")
    over_http = None if context.request is None else context.request.headers.get("traceparent")
    caller_header.set(str(named) if named else over_http)


class _Handlers:
    """One method for each request of the protocol that is answered."""

    def __init__(self, server: Server, approvals: bool) -> None:
        self._server = server
        self._approvals = approvals

    # -- tools ---------------------------------------------------------------------------------------------------------

    async def list_tools(
        self, context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        hidden = {"answer_question"} if caller_of(context) == "client" else set[str]()
        return types.ListToolsResult(tools=[_describe(tool) for name, tool in TOOLS.items() if name not in hidden])

    async def call_tool(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        if (tool := TOOLS.get(params.name)) is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name[:80]!r}: {', '.join(TOOLS)}.")
        _take_caller(context)
        state: dict[str, Any] = json.loads(params.request_state) if params.request_state else {}
        use = ToolUse(self._server, caller_of(context), _sayer(context), approvals=self._approvals)
        use.declined.update(state.get("declined", ()))
        use.person = _person(context, self._server, params, state)
        try:
            if state:
                run = await find_run_of(self._server, use.caller, state["run"])
                told = await follow_run(use, run, LONGEST_WAIT_S, begun=True)
            else:
                told = await tool.handle(
                    use, check_input(tool.shape, params.arguments or {}, "arguments", strict=False)
                )
        except _Asked as asked:
            return _return_question(asked, use, self._server)
        except Refusal as refusal:
            return _refusal_result(refusal)
        except ChargehandError as error:
            return _refusal_result(refusal_of(error))
        except Exception as error:  # noqa: BLE001 -- recorded: logged, and the caller is told
            self._server.log.write("error", tool=params.name, traceback="".join(traceback.format_exception(error)))
            return _refusal_result(
                Refusal(500, f"{type(error).__name__}: an error in chargehand. Its log has the details.")
            )
        return _result(told)

    # -- runs as resources ---------------------------------------------------------------------------------------------

    async def list_resources(
        self, context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """The report of each run, newest first."""
        cursor = params.cursor if params is not None else None
        query = RunsQuery(before=cursor[:80] if cursor else None, limit=_RUNS_A_PAGE)
        page, more = await self._server.reading.run(self._server.run_list.find, query)
        caller, home = caller_of(context), self._server.home
        shown = [info for info in page if may_use(home, info.run, caller)]
        listed = [
            types.Resource(
                name=f"{info.status}: {show_controls(self._server.redactor.text(info.request))[:100]}",
                uri=f"{SCHEME}/{info.run}/report",
                mime_type="text/markdown",
            )
            for info in shown
        ]
        return types.ListResourcesResult(resources=listed, next_cursor=page[-1].run if more else None)

    async def list_templates(
        self, context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    name="run",
                    uri_template=f"{SCHEME}/{{run}}",
                    mime_type="application/json",
                    description="The report.",
                ),
                types.ResourceTemplate(
                    name="report",
                    uri_template=f"{SCHEME}/{{run}}/report",
                    mime_type="text/markdown",
                    description="The answer of a run, or how far it is.",
                ),
            ]
        )

    async def read_resource(
        self, context: ServerRequestContext[Any, Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        name, _, part = uri.removeprefix(f"{SCHEME}/").partition("/")
        if not uri.startswith(f"{SCHEME}/") or part not in ("", "report"):
            raise _not_found(uri)
        try:
            run = await find_run_of(self._server, caller_of(context), name)
            whole = await read_run(self._server, run)
        except (Refusal, ChargehandError):
            raise _not_found(uri) from None
        if part:
            contents = types.TextResourceContents(uri=uri, mime_type="text/markdown", text=str(whole["answer"]))
        else:
            contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=dump_json(whole))
        return types.ReadResourceResult(contents=[contents])


def _describe(tool: ToolEntry) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=input_schema(tool.shape, PARAMETERS),
        output_schema=PLAN_RESULT if tool.name == "plan" else RUN_RESULT,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.reads,
            destructive_hint=tool.name == "cancel_run",
            idempotent_hint=tool.reads or tool.repeatable,
            open_world_hint=not tool.reads,
        ),
    )


def _result(told: Told) -> types.CallToolResult:
    text = types.TextContent(type="text", text=show_controls(told.text))
    return types.CallToolResult(content=[text], structured_content=told.data)


def _refusal_result(refusal: Refusal) -> types.CallToolResult:
    """An error for the calling model, so that it can correct its call."""
    problems = "".join(f"\n- {getattr(each, 'message', each)}" for each in refusal.problems[:20])
    text = types.TextContent(type="text", text=show_controls(f"{refusal.detail}{problems}"))
    return types.CallToolResult(content=[text], is_error=True)


def _not_found(uri: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, f"There is no resource {uri[:200]!r}.", {"uri": uri[:200]})


def _sayer(context: ServerRequestContext[Any, Any]) -> wait_for_run.Say:
    """Sends lines as progress. Does nothing if the client did not ask for progress."""
    count = 0

    async def say(line: str) -> None:
        nonlocal count
        count += 1
        await context.session.report_progress(count, None, show_controls(line))

    return say


# -- asking the person -------------------------------------------------------------------------------------------------


def _person(
    context: ServerRequestContext[Any, Any], server: Server, params: types.CallToolRequestParams, state: dict[str, Any]
) -> AskPerson | None:
    """How to ask the person who uses the client; None if the client did not announce that it can."""
    announced = context.session.client_capabilities
    form = announced.elicitation if announced is not None else None
    if form is None or (form.form is None and form.url is not None) or caller_of(context) == "client":
        return None
    if not context.session.can_send_request:
        return _Returning((params.input_responses or {}).get(_KEY), state.get("question"))
    return _Pushing(context, server)


class _Returning:
    """Takes the answer that a call brought back to its question. Any other question is asked by returning it."""

    def __init__(self, given: object, question: str | None) -> None:
        self._given = given if isinstance(given, types.ElicitResult) else None
        self._question = question

    async def __call__(self, run: str, question: Question, wrong: str) -> str | None:
        given, self._given = self._given, None
        if given is None or question.id != self._question:
            raise _Asked(run, question, wrong)
        return _words(question, given)


class _Pushing:
    """Asks the client while the tool waits, and reports progress meanwhile."""

    def __init__(self, context: ServerRequestContext[Any, Any], server: Server) -> None:
        self._context = context
        self._server = server

    async def __call__(self, run: str, question: Question, wrong: str) -> str | None:
        message = form_message(run, question, self._server.redactor, wrong)
        session, say = self._context.session, _sayer(self._context)
        asking = asyncio.ensure_future(
            session.elicit_form(message, form_schema(question), related_request_id=self._context.request_id)
        )
        hears = "progress_token" in (self._context.meta or {})
        left = LONGEST_ASK_S if hears else LONGEST_SILENT_ASK_S
        try:
            while left > 0:
                done, _ = await asyncio.wait([asking], timeout=min(wait_for_run.SILENCE_S, left))
                if done:
                    return _words(question, asking.result())
                left -= wait_for_run.SILENCE_S
                if not await self._is_open(run, question):
                    return None
                await say("waiting for your answer")
            return None
        except MCPError:
            return None  # the client cannot ask after all
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def _is_open(self, run: str, question: Question) -> bool:
        asked = await self._server.reading.run(self._server.supervisor.questions, run)
        return any(each.id == question.id for each in asked)


def _words(question: Question, given: types.ElicitResult) -> str | None:
    if given.action != "accept":
        return None
    try:
        return words_of(question, given.content or {})
    except Refusal:
        return None


def _return_question(asked: _Asked, use: ToolUse, server: Server) -> types.InputRequiredResult:
    message = form_message(asked.run, asked.question, server.redactor, asked.wrong)
    request = types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=message, requested_schema=form_schema(asked.question))
    )
    state = {"run": asked.run, "question": asked.question.id, "declined": sorted(use.declined)}
    return types.InputRequiredResult(input_requests={_KEY: request}, request_state=json.dumps(state))
