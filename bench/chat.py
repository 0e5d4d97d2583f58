"""From a request to the first byte of a streamed chat completion: the first after a server's start, and later ones.

`python -m bench.chat [--rounds 5]` prints milliseconds, and the memory of the server before the first request. The
server is a process of its own, its model a provider on loopback.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import tempfile
import time
from pathlib import Path

from tests.loopback import Answer, Seen, answer_json, serving
from tests.server.server_process import ServerProcess, server_process
from tests.server.serving import PLAN, TOKEN

LATER = 5


def _reply(seen: Seen) -> Answer:
    match seen.role:
        case "planner":
            return answer_json(json.loads(json.dumps(PLAN).replace('"w"', '"researcher"')))
        case "worker":
            return answer_json({"summary": "s", "output": "the part is done", "claims": []})
        case _:
            return answer_json({"answer": "All is done [a] [b].", "confidence": 80})


def _first_byte_ms(server: ServerProcess) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    messages = [{"role": "user", "content": "Do both parts of the work"}]
    body = json.dumps({"model": "team/general", "stream": True, "messages": messages})
    try:
        began = time.perf_counter()
        connection.request("POST", "/v1/chat/completions", body, {"authorization": f"Bearer {TOKEN}"})
        answer = connection.getresponse()
        answer.read(1)
        took = 1000 * (time.perf_counter() - began)
        assert b"All is done" in answer.read()
        return took
    finally:
        connection.close()


def _memory_mb(server: ServerProcess) -> float:
    assert server.process is not None
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def _measure() -> tuple[float, float, float]:
    with tempfile.TemporaryDirectory() as name, serving(_reply) as provider:
        folder = Path(name)
        (folder / "home").mkdir()
        lab = f'[providers.lab]\nbase_url = "{provider.url}/v1"\nwire = "openai_chat"\n'
        (folder / "home" / "config.toml").write_text(lab)
        with server_process(folder, {"replies": []}, CHARGEHAND_MODEL="lab:x") as server:
            idle = _memory_mb(server)
            first, *later = (_first_byte_ms(server) for _ in range(1 + LATER))
            return first, statistics.median(later), idle


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = [_measure() for _ in range(parser.parse_args().rounds)]
    for name, unit, values in zip(
        ("first", "later", "idle"), ("ms", "ms", "MB"), zip(*rounds, strict=True), strict=True
    ):
        print(f"{name}: median {statistics.median(values):.0f} {unit}, worst {max(values):.0f}")


if __name__ == "__main__":
    main()
