"""The run page in Chromium over a real server: first paint, delay of an event, tasks that block the page, watchers.

`python -m bench.page [paint|stream|large|watchers|list|orders]...` prints one line of JSON a part. Needs Chromium,
but for the last three. Of what the server does, its processor time is in `cpu_ms`.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import aiohttp
from playwright.sync_api import Page, sync_playwright

from chargehand import Supervisor, Team, Worker
from chargehand.record.home import Home
from chargehand.testing import ScriptedModel
from chargehand.values.report import Report
from tests.server.server_process import ServerProcess, server_process
from tests.server.serving import TOKEN
from tests.trace.browser import CHROMIUM

RUNS_AT_ONCE = 20
WATCHERS = 200
RUNS_LISTED = 10_000
ORDERS = 8
# Two calls of a tool and an answer: about 24 events a task.
WORKER: list[dict[str, Any]] = [
    {"contains": "43127", "reply": {"json": {"summary": "Looked up.", "output": "It is 43,127.", "claims": []}}},
    {
        "contains": "88813",
        "reply": {"tool_calls": [{"name": "calculate", "arguments": {"expression": "6161 * 7"}}]},
    },
    {"contains": "", "reply": {"tool_calls": [{"name": "calculate", "arguments": {"expression": "88812 + 1"}}]}},
]
# Notes, in the page, when it was first drawn, each new number of the last event on it, and tasks over 50 ms.
PROBE = """
window.probe = { painted: null, seen: [], long: [] };
new PerformanceObserver((list) => list.getEntries().forEach((each) => probe.long.push(Math.round(each.duration))))
  .observe({ type: "longtask", buffered: true });
new MutationObserver(() => {
  if (probe.painted === null && document.querySelector(".figures") && document.querySelector(".timeline .row")) {
    probe.painted = 0;
    requestAnimationFrame(() => setTimeout(() => {
      probe.painted = performance.now();
      document.documentElement.dataset.painted = "yes";
    }));
  }
  const title = [...document.querySelectorAll("summary h2")].find((each) => each.textContent.startsWith("Events ("));
  const seq = Number(title?.textContent.replace(/\\D/g, "") ?? 0);
  if (seq && seq !== probe.seen.at(-1)?.[0]) probe.seen.push([seq, Date.now() / 1000]);
}).observe(document, { childList: true, subtree: true, characterData: true });
"""


def script(delay_ms: int) -> list[dict[str, Any]]:
    """Calls take from 70 to 130 % of a time, so that runs do not keep step."""
    worker = [
        {
            "when": {"role": "worker", "contains": each["contains"]},
            "delay_ms": delay_ms * part // 10,
            "reply": each["reply"],
        }
        for each, part in zip(WORKER, (7, 13, 10), strict=True)
    ]
    return [*worker, {"reply": {"json": {"answer": "All were looked up [t0].", "confidence": 90}}}]


def plan(tasks: int, worker: str) -> dict[str, Any]:
    """A fan; every tenth task needs the one before it."""
    listed = [
        {
            "id": f"t{n}",
            "worker": worker,
            "instruction": f"Look up figure {n} of the register and compare it with last year's.",
            "success_criterion": "Both figures are given.",
            "depends_on": [f"t{n - 1}"] if n % 10 == 9 else [],
        }
        for n in range(tasks)
    ]
    return {"goal": "Look the figures up", "tasks": listed}


@contextmanager
def opened(server: ServerProcess, run: str) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(120_000)
        page.goto(f"http://127.0.0.1:{server.port}/?token={TOKEN}")
        page.add_init_script(PROBE)
        page.goto(f"http://127.0.0.1:{server.port}/runs/{run}")
        yield page
        browser.close()


async def execute(home: Path, tasks: int, delay_ms: int) -> Report:
    team = Team([Worker("clerk", "Looks figures up", tools=["calculate"])])
    supervisor = Supervisor(team, model=ScriptedModel(script(delay_ms)), home=home)
    made = plan(tasks, "clerk")
    return await supervisor.run("Look up", plan=made, max_tasks=tasks, max_concurrent=50, tokens=10**9)


def measure_paint(folder: Path) -> dict[str, Any]:
    """From asking for the page of a finished run to its drawing; cold: the server has not read the run before."""
    with server_process(folder, {"replies": []}) as server:
        found: dict[str, Any] = {}
        for tasks in (500, 5_000):
            report = asyncio.run(execute(server.home, tasks, delay_ms=0))
            assert report.status in ("complete", "partial"), report.answer
            assert server.process is not None
            cpu = _cpu_s(server.process.pid)
            with opened(server, report.run) as page:
                page.wait_for_selector("html[data-painted]")
                cpu = _cpu_s(server.process.pid) - cpu
                cold, long = page.evaluate("[probe.painted, Math.max(0, ...probe.long)]")
                page.reload()
                page.wait_for_selector("html[data-painted]")
                warm, events = page.evaluate("[probe.painted, probe.seen.at(-1)[0]]")
            taken = {"cold_ms": round(cold), "cpu_ms": round(1000 * cpu), "warm_ms": round(warm), "long_ms": long}
            found[str(tasks)] = {"events": events, **taken}
        return found


def measure_stream(folder: Path) -> dict[str, Any]:
    """From the commit of an event to its drawing, with 20 runs going whose calls take 1 s."""
    with server_process(folder, {"replies": script(1_000)}, "--max-runs", str(RUNS_AT_ONCE)) as server:
        body = {"request": "Look up", "plan": plan(40, "analyst"), "tokens": 10**9}
        for _ in range(RUNS_AT_ONCE):
            run = server.client.post("/api/v1/runs", body).json["run"]
            time.sleep(1 / RUNS_AT_ONCE)
        with committed_times(Home(server.home), run) as committed, opened(server, run) as page:
            page.wait_for_selector(".pill:not(.r-running)")
            page.wait_for_timeout(500)
            seen, long = page.evaluate("[probe.seen, probe.long]")
    first, last = seen[0][0], seen[-1][0]
    delays = [
        next(at for number, at in seen if number >= seq) - at for seq, at in committed.items() if first < seq <= last
    ]
    return {
        "runs": RUNS_AT_ONCE,
        "commits": len(delays),
        "missed": max(committed) - last,
        "p50_ms": round(1000 * statistics.median(delays)),
        "p95_ms": round(1000 * statistics.quantiles(delays, n=20)[-1]),
        "longest_task_ms": max(long, default=0),
    }


@contextmanager
def committed_times(home: Home, run: str) -> Iterator[dict[int, float]]:
    """The last event of each commit, and when it was on the record: looked up every 5 ms."""
    found: dict[int, float] = {}
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(0.005):
            found.setdefault(home.last_event(run), time.time())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        stop.set()
        thread.join()


def measure_large(folder: Path) -> dict[str, Any]:
    """The longest task of the page while another process runs 5,000 tasks."""
    with server_process(folder, {"replies": []}) as server:
        code = f"import asyncio, bench.page as b; asyncio.run(b.execute(b.Path({str(server.home)!r}), 5_000, 300))"
        with subprocess.Popen([sys.executable, "-c", code]) as running:
            try:
                while not (runs := server.client.get("/api/v1/runs").json["runs"]):
                    time.sleep(0.1)
                with opened(server, runs[0]["run"]) as page:
                    page.wait_for_selector("html[data-painted]")
                    page.evaluate("probe.long = []")
                    page.wait_for_timeout(15_000)
                    seen, long = page.evaluate("[probe.seen, probe.long]")
            finally:
                running.kill()
    return {"events": seen[-1][0] - seen[0][0], "redraws": len(seen), "longest_task_ms": max(long, default=0)}


def measure_watchers(folder: Path) -> dict[str, Any]:
    """200 streams of one run: what they lost, and the processor time of the server meanwhile."""
    with server_process(folder, {"replies": script(100)}) as server:
        body = {"request": "Look up", "plan": plan(100, "analyst"), "tokens": 10**9}
        run = server.client.post("/api/v1/runs", body).json["run"]
        assert server.process is not None
        began, cpu = time.monotonic(), _cpu_s(server.process.pid)
        seen = asyncio.run(_watch(f"http://127.0.0.1:{server.port}/api/v1/runs/{run}/stream", WATCHERS))
        took, cpu = time.monotonic() - began, _cpu_s(server.process.pid) - cpu
    events = max(map(len, seen))
    wrong = sum(each != list(range(1, events + 1)) for each in seen)
    return {"watchers": WATCHERS, "events": events, "lost_or_twice": wrong, "cores": round(cpu / took, 2)}


def measure_list(folder: Path) -> dict[str, Any]:
    """The list of 10,000 runs right after a run has ended, and again, 20 times; the server's memory then and before."""
    with server_process(folder, {"replies": script(0)}) as server:
        body = {"request": "Look up", "plan": plan(2, "analyst"), "tokens": 10**9}
        first = server.client.post("/api/v1/runs", body).json["run"]
        server.client.wait(first)
        assert server.process is not None
        pid, idle = server.process.pid, _memory_mb(server.process.pid)
        records = server.home / "runs"
        for number in range(RUNS_LISTED - 1):
            # Another name of the same file: the id of a run is the name of its record.
            os.link(records / f"{first}.sqlite", records / f"20260101-{number:06}-aaaa.sqlite")
        server.client.get("/api/v1/runs")
        took: list[float] = []
        cpu = 0.0
        for _ in range(20):
            run = server.client.post("/api/v1/runs", body).json["run"]
            server.client.wait(run)
            before, began = _cpu_s(pid), time.monotonic()
            assert server.client.get("/api/v1/runs").json["runs"][0]["run"] == run
            took.append(time.monotonic() - began)
            cpu += _cpu_s(pid) - before
        unchanged: list[float] = []
        for _ in range(20):
            began = time.monotonic()
            server.client.get("/api/v1/runs")
            unchanged.append(time.monotonic() - began)
        figures = {"median_ms": round(1000 * statistics.median(took), 1), "cpu_ms": round(1000 * cpu / 20, 1)}
        figures["unchanged_ms"] = round(1000 * statistics.median(unchanged), 1)
        return {"runs": RUNS_LISTED, **figures, "idle_mb": idle, "then_mb": _memory_mb(pid)}


def measure_orders(folder: Path) -> dict[str, Any]:
    """From sending the order to stop a task to the end of the task on the stream, in a run of the server."""
    with server_process(folder, {"replies": script(600_000)}) as server:
        tasks = [each | {"depends_on": []} for each in plan(ORDERS, "analyst")["tasks"]]
        body = {"request": "Look up", "plan": {"goal": "Look up", "tasks": tasks}, "tokens": 10**9}
        run = server.client.post("/api/v1/runs", body).json["run"]
        took: list[float] = []
        with server.client.stream(f"/api/v1/runs/{run}/stream") as events:
            kinds = ((json.loads(each["data"]), time.monotonic()) for each in events)
            begun = {event["task"] for event, _ in islice((e for e in kinds if e[0]["kind"] == "model_called"), ORDERS)}
            for task in sorted(begun):
                sent = time.monotonic()
                server.client.post(f"/api/v1/runs/{run}/tasks/{task}/stop")
                took.append(next(at for event, at in kinds if event["kind"] == "task_ended") - sent)
    return {"orders": len(took), "median_ms": round(1000 * statistics.median(took)), "most_ms": round(1000 * max(took))}


def _memory_mb(pid: int) -> float:
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return round(int(line.split()[1]) / 1024, 1)


async def _watch(address: str, number: int) -> list[list[int]]:
    async def watch(session: aiohttp.ClientSession) -> list[int]:
        seen: list[int] = []
        async with session.get(address, headers={"authorization": f"Bearer {TOKEN}"}) as answer:
            async for line in answer.content:
                if line.startswith(b"id: "):
                    seen.append(int(line[4:]))
                elif line.startswith(b"data: ") and b'"kind": "run_ended"' in line:
                    return seen
        return seen

    timeout = aiohttp.ClientTimeout(total=300)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout, read_bufsize=2**20) as s:
        return list(await asyncio.gather(*(watch(s) for _ in range(number))))


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


PARTS = {
    "paint": measure_paint,
    "stream": measure_stream,
    "large": measure_large,
    "watchers": measure_watchers,
    "list": measure_list,
    "orders": measure_orders,
}


def main() -> None:
    for name in sys.argv[1:] or PARTS:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps({name: PARTS[name](Path(folder)), "load": round(os.getloadavg()[0], 1)}), flush=True)


if __name__ == "__main__":
    main()
