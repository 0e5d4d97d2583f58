"""Endpoints that start, continue, answer, order and stop runs, and those that plan and check without running."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from pydantic import JsonValue
from starlette.responses import Response

from chargehand.errors import InvalidPlan
from chargehand.record.home import new_run_id
from chargehand.server.begin_runs import (
    Amount,
    Name,
    PlanRequest,
    ReviewRequest,
    StartRun,
    Tokens,
    begin_review,
    begin_run,
    draft_plan_for,
    run_folder,
    start_of,
    supervisor_of,
)
from chargehand.server.checked_input import Input, check_input
from chargehand.server.http_calls import Call
from chargehand.server.read_runs import find_run, json_response
from chargehand.server.refusals import Refusal
from chargehand.server.shared_state import Server
from chargehand.server.started_runs import Begin
from chargehand.server.wanted_runs import Wanted
from chargehand.text.plan_json import read
from chargehand.values.plan import errors_in

_KEY_CHARS = 255


class CheckRequest(Input):
    """A plan to check, as `chargehand check` takes it."""

    plan: dict[str, JsonValue]
    team: Name | None = None


class ResumeRun(Input):
    """What is added to what the run had, as `chargehand resume` takes it."""

    tokens: Tokens | None = None
    usd: Amount | None = None
    deadline: Amount | None = None
    retry_failed: bool = False


class RerunRun(Input):
    """Another plan or model for the same request, as `chargehand rerun` takes it."""

    plan: dict[str, JsonValue] | None = None
    model: Name | None = None


class ForkRun(Input):
    """What is to be different in a fork, as `chargehand fork` takes it: at least one of these."""

    at: Name | None = None
    model: Name | None = None
    plan: dict[str, JsonValue] | None = None


class AnswerQuestion(Input):
    """The answer to a question: the words of a person, or JSON where the question has a schema."""

    answer: JsonValue


class Nothing(Input):
    """No fields."""


# -- starting ----------------------------------------------------------------------------------------------------------


async def start_run(call: Call) -> Response:
    """Start a run; it is carried out after the answer. With an Idempotency-Key the same body starts it once."""
    body = await call.body(StartRun)
    key = call.request.headers.get("idempotency-key")
    if key is not None and not 1 <= len(key) <= _KEY_CHARS:
        raise Refusal(422, f"Idempotency-Key has {len(key)} characters: use 1 to {_KEY_CHARS}.")
    return json_response({"run": await begin_run(call.server, call.caller, body, key)}, 202)


async def start_review(call: Call) -> Response:
    """Start a review of a patch. No file of this machine is read."""
    body = await call.body(ReviewRequest)
    return json_response({"run": await begin_review(call.server, call.caller, body)}, 202)


async def resume_run(call: Call) -> Response:
    """Continue a run that stopped, or is paused in another process; add to the limits of any.

    One that another process owns is a problem that names the process, unless it is paused or limits are given. If
    nothing would be tried, the status is 200 and `note` says why.
    """
    body = await call.body(ResumeRun)
    server, run = call.server, await find_run(call)
    added = body.model_dump()
    if server.source.owner(run) is not None and await _order_owner(server, run, body):
        if server.source.owner(run) is not None:
            return json_response({"run": run}, 202)
        added = {"retry_failed": body.retry_failed}  # the run was about to end: the orders wait for the resume
    if (reason := await server.reading.run(_reason_to_stay_ended, server, run, added)) is not None:
        return json_response({"run": run, "note": reason})
    begin = partial(server.supervisor.resume, run, **added)
    await continue_run(server, run, call.caller, begin)
    return json_response({"run": run}, 202)


def _reason_to_stay_ended(server: Server, run: str, added: dict[str, Any]) -> str | None:
    """Why a resume would try nothing; a run on other machines says so itself."""
    from chargehand.runs.resumed_job import Added, check_limits, reason_to_stay_ended

    if not server.home.has(run):
        return None
    state, more = server.home.state(run), Added(**added)
    check_limits(state, more)
    return reason_to_stay_ended(state, more, server.home.orders(run))


async def _order_owner(server: Server, run: str, body: ResumeRun) -> bool:
    """Send the orders of the body to the process that owns the run; whether there were any."""
    supervisor, more = server.supervisor, body.model_dump(exclude={"retry_failed"}, exclude_none=True)
    orders = [partial(supervisor.top_up, run, **more, by="http")] if more else []
    if await server.reading.run(_is_paused, server, run):
        orders.append(partial(supervisor.unpause, run, by="http"))
    for order in orders:
        sent = await order()
        if sent.verdict in ("refused", "too_late"):
            raise Refusal(409 if sent.verdict == "too_late" else 422, sent.reason)
    return bool(orders)


async def rerun_run(call: Call) -> Response:
    """Answer the request of a run again, as a new run; what has not changed is taken from its record."""
    body = await call.body(RerunRun)
    earlier = await find_run(call)
    run = new_run_id(time.time())
    supervisor = supervisor_of(call.server, None, body.model)
    begin = partial(supervisor.rerun, earlier, plan=body.plan)
    await call.server.started.begin(Wanted(run, call.caller, None), begin, call.server.new_record(run, earlier))
    return json_response({"run": run}, 202)


async def fork_run(call: Call) -> Response:
    """Try another way from a point of a run on, as a new run; tasks that are not done again are taken over."""
    body = await call.body(ForkRun)
    earlier = await find_run(call)
    run = new_run_id(time.time())
    model = call.server.offered.model(body.model)
    begin = partial(call.server.supervisor.fork, earlier, at=body.at, model=model, plan=body.plan)
    app = await call.server.reading.run(_app_of, call.server, earlier)
    following = begin if app is None else partial(app.follow, begin)
    await call.server.started.begin(Wanted(run, call.caller, None), following, call.server.new_record(run, earlier))
    return json_response({"run": run}, 202)


async def continue_wanted(server: Server) -> None:
    """Continue the wanted runs that no process owns: the first thing a server does."""
    continue_waiting_runs(server)
    for wanted in await server.reading.run(server.started.wanted.all):
        try:
            await _continue_wanted(server, wanted)
        except Exception as error:  # noqa: BLE001 -- recorded: one run must not keep the others from being continued
            server.log.write("run not continued", run=wanted.run, error=str(error))


def continue_waiting_runs(server: Server) -> None:
    """Let wanted runs that wait for a provider continue when their wait is over."""
    server.started.continue_run = partial(_continue_waiting, server)


async def _continue_wanted(server: Server, wanted: Wanted) -> None:
    run, home, source = wanted.run, server.home, server.source
    there = await server.reading.run(home.has, run)
    if not there and await server.reading.run(_is_remote, server, run):
        await continue_run(server, run, wanted.caller, partial(server.supervisor.resume, run))  # it is watched again
        return
    if there and (source.owner(run) is not None or await server.reading.run(_waits_for_person, server, run)):
        return
    if there and await server.reading.run(_is_paused, server, run):
        await server.reading.run(server.started.wanted.clear, run)  # only a person continues it
    elif there and await server.reading.run(home.last_event, run):
        await continue_run(server, run, wanted.caller, partial(server.supervisor.resume, run))
    elif wanted.start is not None:
        names = wanted.start.get("material", [])
        body = check_input(StartRun, {**wanted.start, "material": []}, "mark of a run", strict=True)
        begin = start_of(
            supervisor_of(server, body.team, body.model),
            body,
            [run_folder(server, run) / "material" / name for name in names],
        )
        await server.started.begin(wanted, begin, server.known_record(run) if there else server.new_record(run))
    else:
        await server.reading.run(server.started.wanted.clear, run)


def _waits_for_person(server: Server, run: str) -> bool:
    state = server.source.state(run)
    return state.status == "waiting" and bool(state.open_questions()) and state.waits.for_provider is None


async def _continue_waiting(server: Server, wanted: Wanted) -> None:
    """Continue a run whose provider may be called again, if it is still wanted."""
    run = wanted.run
    if await server.reading.run(server.started.wanted.is_marked, run) and server.source.owner(run) is None:
        await continue_run(server, run, wanted.caller, partial(server.supervisor.resume, run))


def _is_remote(server: Server, run: str) -> bool:
    return run in server.supervisor.remote_runs


def _is_paused(server: Server, run: str) -> bool:
    return server.source.state(run).paused


async def continue_run(server: Server, run: str, caller: str, begin: Begin) -> None:
    """Continue a recorded run in the way of the app that began it."""
    app = await server.reading.run(_app_of, server, run)
    following = begin if app is None else partial(app.follow, begin)
    await server.started.begin(Wanted(run, caller, None), following, server.known_record(run))


def _app_of(server: Server, run: str) -> Any:
    from chargehand.apps.registry import find_app

    return find_app(server.source.state(run))


# -- runs under way ----------------------------------------------------------------------------------------------------


async def answer_question(call: Call) -> Response:
    """Answer a question of a run, whichever process owns it. A run of this server that waited for it continues."""
    body = await call.body(AnswerQuestion)
    server, run = call.server, await find_run(call)
    words = body.answer if isinstance(body.answer, str) else _as_json(body.answer)
    still_open = await server.supervisor.answer(run, call.path("question"), words, by="http")
    marked = await server.reading.run(server.started.wanted.is_marked, run)
    if marked and not still_open and server.source.owner(run) is None:
        await continue_run(server, run, call.caller, partial(server.supervisor.resume, run))
    return json_response({"run": run, "open": [question.id for question in still_open]})


async def cancel_run(call: Call) -> Response:
    """Stop a run, whichever process owns it. It can be resumed."""
    await call.body(Nothing)
    return json_response(await stop_run(call.server, await find_run(call)))


async def stop_run(server: Server, run: str) -> dict[str, Any]:
    """Stop a run, whichever process owns it: its status now, and whether this stopped it."""
    await server.reading.run(server.started.wanted.clear, run)
    await server.started.cancel_queued(run)
    status, stopped = await server.supervisor.cancel(run)
    return {"run": run, "status": status, "stopped": stopped}


# -- without running ---------------------------------------------------------------------------------------------------


async def make_plan(call: Call) -> Response:
    """The plan for a request, nothing run."""
    body = await call.body(PlanRequest)
    plan = await draft_plan_for(call.server, body)
    return json_response(call.server.redactor.json(plan.to_json()))


async def check_plan(call: Call) -> Response:
    """Everything wrong with a plan."""
    body = await call.body(CheckRequest)
    try:
        reading = read(body.plan)
    except InvalidPlan as error:
        return json_response({"ok": False, "problems": [_problem(each) for each in error.problems]})
    team = body.team or (reading.plan.team if reading.plan.team in call.server.offered.teams() else None)
    prepared = supervisor_of(call.server, team, None)
    settings = await call.server.reading.run(prepared.team_settings)
    problems = reading.problems(
        prepared.team.assignable,
        max_tasks=settings.max_tasks,
        budget_tokens=settings.budget.tokens,
        factory=prepared.team.factory,
    )
    listed = [problem.to_json() for problem in problems]
    return json_response({"ok": not errors_in(problems), "problems": call.server.redactor.json(listed)})


# -- parts -------------------------------------------------------------------------------------------------------------


def _as_json(answer: JsonValue) -> str:
    import json

    return json.dumps(answer, ensure_ascii=False)


def _problem(problem: object) -> Any:
    return problem.to_json() if hasattr(problem, "to_json") else {"message": str(problem)}  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
