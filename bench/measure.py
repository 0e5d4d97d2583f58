"""Wall time, CPU time and peak memory of a block, printed as one line of JSON."""

from __future__ import annotations

import gc
import json
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def measured(tasks: int) -> Iterator[None]:
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"wall_s": wall, "cpu_ms_per_task": cpu * 1000 / tasks, "peak_mb": peak}))
