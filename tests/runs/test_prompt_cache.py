"""What tasks share is read from the provider's prompt cache: counted by servers that cache as the providers do."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from chargehand import Supervisor, Team, Worker
from chargehand.cli.report_footer import figures
from chargehand.models.resolve import Provider
from chargehand.record.home import Home
from chargehand.settings import Settings
from chargehand.trace.run_state import fold
from chargehand.values.report import Report
from tests.apps.review.world import write
from tests.cli.terminal import Shell
from tests.loopback import Answer, Seen, answer_json, error, serve, serving

WIRES = ["openai_chat", "openai_responses", "anthropic"]
# Providers keep no beginning that is shorter; characters a token has here.
LEAST_TOKENS, CHARACTERS = 1_024, 4
LINES = "".join(f"{n}: the meter of house {n} counts {n * 7} units.\n" for n in range(400))
RESULT = {"summary": "Read.", "output": "42 units.", "claims": [], "findings": [], "confidence": 90}


class CachingServer:
    """Answers every call, and counts as cached what an earlier call had at its beginning.

    On Anthropic's wire only up to a mark that both have; on the others up to the first difference.
    """

    def __init__(self, delay: float = 0.0) -> None:
        # How long it takes until a reply begins, and what it is about has been kept.
        self.delay = delay
        self.kept: list[tuple[str, float]] = []
        # Of each call its task, tokens of input, and how many of them came from the cache.
        self.counted: list[tuple[str, int, int]] = []

    def __call__(self, seen: Seen) -> Answer:
        now, blocks = time.monotonic(), prompt_blocks(seen)
        kept = [text for text, since in self.kept if since <= now]
        whole = "".join(text for text, _ in blocks)
        if seen.wire == "anthropic":
            marked = ["".join(text for text, _ in blocks[: n + 1]) for n, (_, mark) in enumerate(blocks) if mark]
            hit = max((len(text) for text in marked if text in kept), default=0)
            self.kept += [(text, now + self.delay) for text in marked]
        else:
            hit = max((alike(whole, earlier) for earlier in kept), default=0)
            self.kept.append((whole, now + self.delay))
        cached = hit // CHARACTERS if hit // CHARACTERS >= LEAST_TOKENS else 0
        self.counted.append((seen.task, len(whole) // CHARACTERS, cached))
        if seen.role == "planner":
            return answer_json({"tasks": []})
        if "-reader-" in seen.task:
            return answer_json({**RESULT, "output": {}}, usage=(len(whole) // CHARACTERS, 7, cached), delay=self.delay)
        cited = "bug-reader-1" if "bug-reader-1" in seen.text else "t1"
        said = {"answer": f"All of them [{cited}].", "confidence": 90} if seen.role == "synthesizer" else RESULT
        return answer_json(said, usage=(len(whole) // CHARACTERS, 7, cached), delay=self.delay)


def alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def prompt_blocks(seen: Seen) -> list[tuple[str, bool]]:
    """A request in the order in which providers read it, tools first; each part with whether it is marked."""
    body = seen.body
    parts: list[Any] = [*body.get("tools", ())]
    system = body.get("system") or body.get("instructions") or []
    parts += system if isinstance(system, list) else [system]
    for message in body.get("messages") or body["input"]:
        content = message.get("content")
        parts += content if isinstance(content, list) else [message]
    return [
        (json.dumps({**part, "cache_control": None} if isinstance(part, dict) else part), "cache_control" in part)
        for part in parts
    ]


def run_team(home: Path, wire: str, team: Team, tasks: list[dict[str, Any]], **more: Any) -> tuple[Report, Any]:
    """The report, and the server; one call after the other, so that each finds what those before it wrote."""
    server = CachingServer()

    async def main() -> Report:
        async with serve(server) as running:
            base = running.url if wire == "anthropic" else f"{running.url}/v1"
            provider = Provider(name="mine", base_url=base, wire=wire, max_concurrent=1)  # pyright: ignore[reportArgumentType]
            settings = Settings(home=str(home), model="mine:m", providers={"mine": provider})
            plan = {"goal": "Read the meters", "tasks": tasks, "synthesis": {"mode": "merge", "instruction": ""}}
            return await Supervisor(team, settings=settings).run("Read the meters", plan=plan, **more)

    return asyncio.run(main()), server


def make_task(n: int, worker: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"t{n}",
        "worker": worker,
        "instruction": f"Say what the meter of house {n} counts.",
        "success_criterion": "The number is given.",
        "depends_on": [],
        **more,
    }


def check_hits(report: Report, server: CachingServer, shared: int, tasks: int) -> None:
    """All tasks but the first read what is shared from the cache, and the report counts what the server counted."""
    hits = sorted(cached for task, _, cached in server.counted if task)
    assert len(hits) == tasks
    assert hits[0] == 0
    assert all(hit >= shared // CHARACTERS for hit in hits[1:])
    assert report.usage.cached_tokens == sum(cached for *_, cached in server.counted)
    assert report.usage.input_tokens == sum(read for _, read, _ in server.counted)


@pytest.mark.parametrize("wire", WIRES)
def test_workers_with_the_same_long_context_read_it_from_the_cache(tmp_path: Path, wire: str) -> None:
    """Each of another worker, with its own prompt: of six calls five find the context, and what is before it."""
    names = [f"reader{n}" for n in range(1, 7)]
    team = Team([Worker(name, "Reads meters", prompt=f"You are {name}. You read meters.") for name in names])
    tasks = [make_task(n, name, context={"lines": LINES}) for n, name in enumerate(names, 1)]
    report, server = run_team(tmp_path, wire, team, tasks)
    check_hits(report, server, len(LINES), 6)
    rate = report.usage.cached_tokens / report.usage.input_tokens
    assert rate > 0.7
    assert "% of the input from cache" in figures(report.to_json())
    view = fold(Home(tmp_path).events(report.run))
    assert view.usage.cached_tokens == report.usage.cached_tokens


@pytest.mark.parametrize("wire", WIRES)
def test_tasks_about_the_same_material_read_it_from_the_cache(tmp_path: Path, wire: str) -> None:
    """A fan-out of one worker over a file: its tools, its prompt and the file come before what differs."""
    file = tmp_path / "meters.txt"
    file.write_text(LINES, encoding="utf-8")
    team = Team([Worker("reader", "Reads meters", prompt="You read meters.", tools=["read_file"])])
    tasks = [make_task(n, "reader") for n in range(1, 6)]
    report, server = run_team(tmp_path / "home", wire, team, tasks, material=[file])
    check_hits(report, server, len(LINES), 5)


@pytest.mark.parametrize("wire", WIRES)
def test_readers_of_a_review_read_the_code_from_the_cache(shell: Shell, wire: str) -> None:
    """The readers of one group of files differ in their prompts, which come after the code."""
    code = "".join(f"def read_{n}(x: int) -> int:\n    return x + {n}\n\n\n" for n in range(200))
    root = shell.folder / "project"
    write(root, {"pay.py": code})
    server = CachingServer()
    with serving(server) as running:
        base = running.url if wire == "anthropic" else f"{running.url}/v1"
        shell.home.mkdir(exist_ok=True)
        text = f'[providers.local]\nbase_url = "{base}"\nwire = "{wire}"\nmax_concurrent = 1\n'
        (shell.home / "config.toml").write_text(text, encoding="utf-8")
        done = shell("review", root, "--model", "local:m", "--format", "json")
    assert done.code == 0, done.err
    hits = sorted(cached for task, _, cached in server.counted if "-reader-" in task)
    assert len(hits) == 5
    assert hits[0] == 0
    assert all(hit >= len(code) // CHARACTERS for hit in hits[1:])


@pytest.mark.slow
@pytest.mark.parametrize(("model", "hits"), [("claude-opus-5-5", 5), ("of-unknown-price", 0)])
def test_of_calls_at_the_same_moment_one_writes_the_cache_for_the_others(tmp_path: Path, model: str, hits: int) -> None:
    """They wait until its reply begins, where reading from the cache costs less; otherwise all are sent at once."""
    server = CachingServer(delay=0.3)

    async def main() -> Report:
        async with serve(server) as running:
            provider = Provider(name="anthropic", base_url=running.url, wire="anthropic")
            settings = Settings(home=str(tmp_path), model=f"anthropic:{model}", providers={"anthropic": provider})
            names = [f"reader{n}" for n in range(1, 7)]
            team = Team([Worker(name, "Reads meters", prompt=f"You are {name}.") for name in names])
            tasks = [make_task(n, name, context={"lines": LINES}) for n, name in enumerate(names, 1)]
            plan = {"goal": "Read the meters", "tasks": tasks, "synthesis": {"mode": "merge", "instruction": ""}}
            return await Supervisor(team, settings=settings).run("Read", plan=plan, max_concurrent=8, tokens=10**7)

    report = asyncio.run(main())
    assert sum(cached > 0 for task, _, cached in server.counted if task) == hits
    waited = [outcome.usage.waiting_s for outcome in report.outcomes]
    assert sum(seconds >= server.delay for seconds in waited) >= hits


def test_calls_do_not_wait_for_a_first_one_that_failed(tmp_path: Path) -> None:
    """Its end lets them go as its reply would have: all others are answered."""

    def handler(seen: Seen) -> Answer:
        if seen.task == "t1":
            return error(400, "no")
        return answer_json({"answer": "All [t2].", "confidence": 90} if seen.role == "synthesizer" else RESULT)

    async def main() -> Report:
        async with serve(handler) as running:
            provider = Provider(name="anthropic", base_url=running.url, wire="anthropic")
            chosen = {"model": "anthropic:claude-opus-5-5", "providers": {"anthropic": provider}}
            team = Team([Worker("reader", "Reads meters", prompt="You read meters.")])
            tasks = [make_task(n, "reader", context={"lines": LINES}) for n in range(1, 5)]
            plan = {"goal": "Read the meters", "tasks": tasks, "synthesis": {"mode": "merge", "instruction": ""}}
            supervisor = Supervisor(team, settings=Settings(home=str(tmp_path), **chosen))
            return await supervisor.run("Read", plan=plan, max_concurrent=8, tokens=10**7)

    report = asyncio.run(main())
    ends = {outcome.task: outcome.status for outcome in report.outcomes}
    assert ends == {"t1": "failed", "t2": "done", "t3": "done", "t4": "done"}
