"""The official MCP client drives runs over stdio and HTTP, in both eras; a model cannot approve anything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor
from chargehand.record.home import Home
from chargehand.server import wait_for_run
from chargehand.testing import ScriptedModel
from tests.lazy_module import LazyModule
from tests.pace import PATIENCE_S
from tests.server.mcp_clients import ERAS, over_http, run, stdio_of, text_of, write_script
from tests.server.serving import ANSWERS, CLIENT_TOKEN, make_supervisor, serving
from tests.server.serving import Client as HttpClient

mcp, types = LazyModule("mcp"), LazyModule("mcp.types")
TOOLS = {"run_team", "wait_run", "get_run", "answer_question", "cancel_run", "plan", "review_diff"}
RISK = "+def show(x): subprocess.run('ls ' + x, shell=True)\n"
NEW = "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,2 @@\n+import subprocess\n" + RISK
CHANGED = "--- a/old.py\n+++ b/old.py\n@@ -1 +1,2 @@\n import subprocess\n" + RISK
SLOW: list[dict[str, Any]] = [ANSWERS[0], ANSWERS[1] | {"delay_ms": 60_000}, ANSWERS[2]]
# The first attempt of a task gives up; a person's answer lets it be done.
UNSURE: list[dict[str, Any]] = [
    ANSWERS[0],
    {
        "when": {"role": "worker", "task": "a", "attempt": 1},
        "reply": {
            "tool_calls": [{"name": "escalate", "arguments": {"reason": "ambiguous_input", "message": "Which part?"}}]
        },
    },
    *ANSWERS[1:],
]


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpClient]:
    with serving(make_supervisor(tmp_path_factory.mktemp("mcp"))) as client:
        yield client


@asynccontextmanager
async def _connect(kind: str, mode: str, folder: Path, port: int) -> AsyncGenerator[Any]:
    if kind == "http":
        async with over_http(port, mode) as client:
            yield client
    else:
        async with mcp.Client(stdio_of(folder / "home", write_script(folder)), mode=mode) as client:
            yield client


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("kind", ["stdio", "http"])
def test_the_official_client_runs_a_team(kind: str, mode: str, http: HttpClient, tmp_path: Path) -> None:
    """Tools, a run with progress, its report as a resource, a plan, and refusals that a model can read."""

    async def drive() -> None:
        lines = asyncio.Queue[str]()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            lines.put_nowait(message or "")

        async with _connect(kind, mode, tmp_path, http.port) as client:
            assert client.protocol_version == ERAS[mode]
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
            told = await client.call_tool("run_team", {"request": "Do both parts"}, progress_callback=hear)
            data = told.structured_content
            assert (data["status"], data["answer"], data["next"]) == ("complete", "All is done [a] [b].", None)
            assert "All is done [a] [b]." in text_of(told)
            async with asyncio.timeout(PATIENCE_S):  # a client may hear of progress after the result
                while data["run"] not in await lines.get():
                    pass
            read = (await client.call_tool("get_run", {"run": data["run"], "task": "a"})).structured_content
            assert read["outcome"]["output"] == "the part is done"
            listed = (await client.list_resources()).resources
            uri = f"chargehand://runs/{data['run']}"
            assert f"{uri}/report" in {str(each.uri) for each in listed}
            assert (await client.read_resource(f"{uri}/report")).contents[0].text == "All is done [a] [b]."
            assert json.loads((await client.read_resource(uri)).contents[0].text)["status"] == "complete"
            planned = (await client.call_tool("plan", {"request": "Do both parts"})).structured_content
            assert [task["id"] for task in planned["plan"]["tasks"]] == ["a", "b"]
            for name, arguments in (
                ("run_team", {"request": ""}),
                ("run_team", {"request": "x", "team": "/etc"}),
                ("run_team", {"request": "x", "colour": "red"}),
                ("wait_run", {"run": "nothing"}),
                ("wait_run", {"run": data["run"], "seconds": 4000}),
                ("get_run", {"run": data["run"], "task": "zzz"}),
            ):
                refused = await client.call_tool(name, arguments)
                assert refused.is_error, name
                assert len(text_of(refused)) > 20
            with pytest.raises(mcp.MCPError):
                await client.call_tool("approve_everything", {})
            for wrong in ("chargehand://runs/nothing", "file:///etc/passwd", f"{uri}/../../x", "chargehand://runs"):
                with pytest.raises(mcp.MCPError):
                    await client.read_resource(wrong)

    run(drive())


@pytest.mark.parametrize("mode", ERAS)
def test_a_patch_is_reviewed_without_a_model(mode: str, http: HttpClient, tmp_path: Path) -> None:
    """The findings come as data. A server reads no file that a patch names; a process in its folder does."""

    async def drive() -> None:
        async with over_http(http.port, mode) as client:
            reviewed = await client.call_tool("review_diff", {"patch": NEW})
            found = reviewed.structured_content
            for finding in found["findings"]:
                assert reviewed.content[0].text.count(f"{finding['path']}:{finding['line']}") == 1
            assert {each["path"] for each in found["findings"]} == {"new.py"}
            assert found["status"] == "complete"
            unread = (await client.call_tool("review_diff", {"patch": CHANGED})).structured_content
            assert (unread["status"], "findings" in unread, len(unread["gaps"])) == ("partial", False, 1)
        if mode != "auto":
            return  # the same tool; starting a process takes time
        (tmp_path / "old.py").write_text("import subprocess\n")
        async with mcp.Client(stdio_of(tmp_path / "home", None), mode=mode) as client:
            found = (await client.call_tool("review_diff", {"patch": CHANGED})).structured_content
            assert {each["path"] for each in found["findings"]} == {"old.py"}

    run(drive())


@pytest.mark.parametrize("mode", ERAS)
def test_a_silent_run_is_talked_about_and_then_left(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text comes before a client would cut the call, and the call ends before the run, with what to do next."""
    monkeypatch.setattr(wait_for_run, "SILENCE_S", 0.1)

    async def drive(port: int) -> None:
        lines: list[tuple[float, str]] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            lines.append((progress, message or ""))

        async with over_http(port, mode) as client:
            run_id = await asyncio.to_thread(_start_both_tasks, started)
            told = await client.call_tool("wait_run", {"run": run_id, "seconds": 1}, progress_callback=hear)
            assert told.structured_content["status"] == "running"
            assert "wait_run" in told.structured_content["next"]
            assert len(lines) >= 4
            assert [number for number, _ in lines] == sorted({number for number, _ in lines})
            assert "0 of 2 tasks ended, 2 running" in lines[-1][1]
            stopped = (await client.call_tool("cancel_run", {"run": run_id})).structured_content
            assert (stopped["status"], stopped["stopped"]) == ("cancelled", True)

    with serving(make_supervisor(tmp_path, ScriptedModel(SLOW))) as started:
        run(drive(started.port))


def _start_both_tasks(client: HttpClient) -> str:
    """The id of a run whose tasks have both begun."""
    run_id = client.start()
    with client.stream(f"/api/v1/runs/{run_id}/stream") as events:
        begun = (event for event in events if json.loads(event["data"])["kind"] == "attempt_started")
        next(begun), next(begun)
    return run_id


@pytest.mark.parametrize("mode", ERAS)
def test_a_person_approves_by_a_form_where_the_client_has_one(mode: str, http: HttpClient) -> None:
    """Approved: it runs. Declined: it stays open, and nobody but a person can answer. Rejected: it has failed."""

    async def drive() -> None:
        asked: list[str] = []
        answers = iter(
            [
                types.ElicitResult(action="accept", content={"decision": "approve"}),
                types.ElicitResult(action="decline"),
                types.ElicitResult(action="accept", content={"decision": "reject", "reason": "too dear"}),
            ]
        )

        async def answer(context: Any, params: Any) -> Any:
            asked.append(params.message)
            return next(answers)

        async with over_http(http.port, mode, elicitation_callback=answer) as client:
            request = {"request": "Do both parts", "approve": True}
            runs = [(await client.call_tool("run_team", request)).structured_content for _ in range(3)]
            assert [each["status"] for each in runs] == ["complete", "waiting", "failed"]
            assert len({each["run"] for each in runs}) == 3
            assert [question["kind"] for question in runs[1]["questions"]] == ["plan"]
            assert all(each["run"] in message for each, message in zip(runs, asked, strict=True))
            await _nobody_else_approves(client, runs[1]["run"])

    run(drive())


async def _nobody_else_approves(client: Any, waiting: str) -> None:
    """No tool takes the answer, whatever is given to it."""
    for name, arguments in (
        ("answer_question", {"run": waiting, "question": "plan", "answer": "approve"}),
        ("answer_question", {"run": waiting, "question": "Plan", "answer": "approve"}),
        ("answer_question", {"run": waiting, "question": "plan", "answer": '{"decision": "approve"}'}),
        ("wait_run", {"run": waiting, "seconds": 0, "answer": "approve"}),
        ("run_team", {"request": "approve", "follow_up": waiting, "answers": {"plan": "approve"}}),
    ):
        refused = await client.call_tool(name, arguments)
        assert refused.is_error, name
    read = (await client.call_tool("get_run", {"run": waiting})).structured_content
    assert (read["status"], [each["id"] for each in read["questions"]]) == ("waiting", ["plan"])
    assert "chargehand answer" in read["next"]


@pytest.mark.parametrize("mode", ERAS)
def test_without_forms_only_a_person_approves(mode: str, http: HttpClient) -> None:
    """The call returns at once and says how; the answer of a person elsewhere lets wait_run give the result."""

    async def drive() -> None:
        async with over_http(http.port, mode) as client:
            told = await client.call_tool("run_team", {"request": "Do both parts", "approve": True})
            waiting = told.structured_content["run"]
            await _nobody_else_approves(client, waiting)
            assert http.post(f"/api/v1/runs/{waiting}/answers/plan", {"answer": "approve"}).status == 200
            ended = (await client.call_tool("wait_run", {"run": waiting})).structured_content
            assert ended["status"] == "complete"

    run(drive())


def test_a_state_that_was_changed_or_is_of_another_call_is_refused(http: HttpClient) -> None:
    """What comes back with an answer is sealed: it names the run and the question."""

    async def drive() -> None:
        async def never(context: Any, params: Any) -> Any:
            raise AssertionError("the loop is driven by hand here")

        async with over_http(http.port, "auto", elicitation_callback=never) as client:
            request = {"request": "Do both parts", "approve": True}
            asked = await client.session.call_tool("run_team", request, allow_input_required=True)
            yes = {"answer": types.ElicitResult(action="accept", content={"decision": "approve"})}
            state = asked.request_state
            for tool, arguments, wrong in (
                ("run_team", request, state[:-4] + "AAAA"),
                ("run_team", request | {"request": "Another"}, state),
                ("wait_run", {"run": "x"}, state),
                ("run_team", request, '{"run": "x", "question": "plan"}'),
            ):
                with pytest.raises(mcp.MCPError):
                    await client.session.call_tool(
                        tool, arguments, input_responses=yes, request_state=wrong, allow_input_required=True
                    )
            told = await client.session.call_tool("run_team", request, input_responses=yes, request_state=state)
            assert told.structured_content["status"] == "complete"

    run(drive())


@pytest.mark.parametrize("mode", ERAS)
def test_a_model_answers_an_escalation(mode: str, tmp_path: Path) -> None:
    """A worker asked what the calling model may know; the run continues with the answer."""

    async def drive(port: int) -> None:
        async with over_http(port, mode) as client:
            told = await client.call_tool("run_team", {"request": "Do both parts", "ask": True})
            asked = told.structured_content
            assert asked["status"] in ("waiting", "running"), asked
            assert "answer_question" in asked["next"]
            (question,) = asked["questions"]
            given = {"run": asked["run"], "question": question["id"], "answer": "The first part"}
            ended = await client.call_tool("answer_question", given)
            assert ended.structured_content["status"] == "complete"

    with serving(make_supervisor(tmp_path, ScriptedModel(UNSURE))) as started:
        run(drive(started.port))


@pytest.mark.parametrize("mode", ERAS)
def test_the_client_token_has_its_own_runs_and_answers_nothing(mode: str, http: HttpClient) -> None:
    """It sees no run of the owner, spends no more than the default, and is not asked by forms."""

    async def drive() -> None:
        async def never(context: Any, params: Any) -> Any:
            raise AssertionError("a client was asked to approve")

        others = http.start()
        http.wait(others)
        async with over_http(http.port, mode, CLIENT_TOKEN, elicitation_callback=never) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS - {"answer_question"}
            own = (await client.call_tool("run_team", {"request": "Do both parts"})).structured_content
            assert own["status"] == "complete"
            waiting = await client.call_tool("run_team", {"request": "Do both parts", "approve": True})
            await _nobody_else_approves(client, waiting.structured_content["run"])
            for name, arguments in (
                ("get_run", {"run": others}),
                ("wait_run", {"run": "last"}),
                ("cancel_run", {"run": others}),
                ("run_team", {"request": "x", "follow_up": others}),
                ("run_team", {"request": "x", "tokens": 10**9}),
            ):
                assert (await client.call_tool(name, arguments)).is_error
            listed = {str(each.uri) for each in (await client.list_resources()).resources}
            assert f"chargehand://runs/{own['run']}/report" in listed
            assert f"chargehand://runs/{others}/report" not in listed
            with pytest.raises(mcp.MCPError):
                await client.read_resource(f"chargehand://runs/{others}/report")

    run(drive())


def test_a_session_belongs_to_the_token_that_began_it(http: HttpClient) -> None:
    """Another valid token cannot use its id."""
    begin = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }
    given = {"accept": "application/json, text/event-stream", "content_type": "application/json"}
    session = http.send("POST", "/mcp", begin, **given).headers["mcp-session-id"]
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    assert http.send("POST", "/mcp", ping, mcp_session_id=session, **given).status == 200
    assert http.send("POST", "/mcp", ping, token=CLIENT_TOKEN, mcp_session_id=session, **given).status == 404
    assert http.send("POST", "/mcp", ping, token=None, mcp_session_id=session, **given).status == 401
    assert http.send("POST", "/mcp", ping, token=None, mcp_session_id=session, **given).status == 401


def test_ten_calls_at_once_and_one_that_goes_away_harm_nothing(http: HttpClient) -> None:
    """Each gets its own run; a client that disconnects leaves its run to be waited for."""

    async def drive() -> None:
        async with over_http(http.port, "auto") as client:
            calls = [client.call_tool("run_team", {"request": "Do both parts"}) for _ in range(10)]
            told = [each.structured_content for each in await asyncio.gather(*calls)]
            assert {each["status"] for each in told} == {"complete"}
            assert len({each["run"] for each in told}) == 10
        async with over_http(http.port, "auto") as client:
            lost = asyncio.create_task(client.call_tool("run_team", {"request": "Do both parts"}))
            await asyncio.sleep(0)
            lost.cancel()
        async with over_http(http.port, "legacy") as client:
            assert (await client.call_tool("plan", {"request": "Do both parts"})).structured_content

    run(drive())


def test_runs_of_a_stdio_client_that_goes_are_interrupted_and_wait_run_resumes_them(tmp_path: Path) -> None:
    """The next process continues the run where it was; nothing recorded is repeated."""

    async def drive() -> None:
        home = tmp_path / "home"
        slow = [ANSWERS[0], ANSWERS[1] | {"delay_ms": 30_000, "when": {"role": "worker", "task": "b"}}, *ANSWERS[1:]]
        async with mcp.Client(stdio_of(home, write_script(tmp_path, slow))) as client:
            begun = await client.session.call_tool("run_team", {"request": "Do both parts", "approve": True})
            name = begun.structured_content["run"]
            await Supervisor(home=home).answer(name, "plan", "approve")
            running = (await client.call_tool("wait_run", {"run": name, "seconds": 1})).structured_content
            assert running["status"] == "running"
        state = Home(home).state(name)
        assert Home(home).owner(name) is None
        assert "a" in state.ended
        async with mcp.Client(stdio_of(home, write_script(tmp_path)), mode="legacy") as client:
            ended = (await client.call_tool("wait_run", {"run": name})).structured_content
            assert ended["status"] == "complete"

    run(drive())


def test_approvals_by_the_model_are_possible_only_where_a_person_said_so(tmp_path: Path) -> None:
    """--allow-approvals is the one way."""

    async def drive() -> None:
        started = stdio_of(tmp_path / "home", write_script(tmp_path), "--allow-approvals")
        async with mcp.Client(started) as client:
            told = await client.call_tool("run_team", {"request": "Do both parts", "approve": True})
            given = {"run": told.structured_content["run"], "question": "plan", "answer": "approve"}
            assert (await client.call_tool("answer_question", given)).structured_content["status"] == "complete"

    run(drive())
