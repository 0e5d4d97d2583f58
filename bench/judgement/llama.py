"""A GGUF file -> an OpenAI-compatible server on a free port of this machine, until standard input is closed.

python -m bench.judgement.llama FILE.gguf [THREADS]     prints the base url; needs the package xllamacpp

One thread is faster than one a core where the machine has other work: threads wait for each other at every step.
"""

from __future__ import annotations

import os
import sys

# Each keeps the prompt it read last, so that planner, worker and judge find the beginnings of theirs again.
SLOTS = 4
WINDOW = 8192


def main() -> None:
    import xllamacpp  # pyright: ignore[reportMissingImports] -- in the extra `embedded`

    settings = xllamacpp.CommonParams()
    settings.model.path = sys.argv[1]
    settings.n_ctx = WINDOW * SLOTS
    settings.n_parallel = SLOTS
    settings.cpuparams.n_threads = int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count() or 2
    settings.port = 0
    server = xllamacpp.Server(settings)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()


main()
