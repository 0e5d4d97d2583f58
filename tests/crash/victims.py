"""A warm parent that forks one `chargehand` per line of JSON on stdin, so that a hundred deaths cost no imports.

{"args": [...], "env": {...}, "cwd": "...", "out": FILE, "err": FILE}  ->  the victim's pid
{"wait": PID}                                                          ->  its exit code, negative for a signal
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
from typing import Any, NoReturn

WARM = (
    "aiohttp",
    "yarl",
    "chargehand.cli.run",
    "chargehand.cli.make_supervisor",
    "chargehand.cli.watch_run",
    "chargehand.cli.read_inputs",
    "chargehand.models.openai_chat",
    "chargehand.models.anthropic",
    "chargehand.trace",
)


def victim(job: dict[str, Any]) -> NoReturn:
    """Become the command; never returns to the parent's loop."""
    from chargehand.cli import main

    code = 70
    try:
        os.setsid()
        for number, path, how in (
            (0, os.devnull, os.O_RDONLY),
            (1, job["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            (2, job["err"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        ):
            os.dup2(os.open(path, how, 0o600), number)
        os.environ.update(job["env"])
        os.chdir(job["cwd"])
        main(job["args"])
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    for name in (*WARM, *sys.argv[1:]):
        importlib.import_module(name)
    gc.freeze()
    print("warm", flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        if "wait" in job:
            _, status = os.waitpid(job["wait"], 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
        elif (pid := os.fork()) == 0:
            victim(job)
        else:
            print(pid, flush=True)


if __name__ == "__main__":
    main()
