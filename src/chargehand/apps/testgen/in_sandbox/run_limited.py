"""An order (files to lay out, commands to run, limits) becomes one JSON account of how each command ended.

Inside the sandbox it is the first process of its namespace: everything that the commands start ends with it. It
enforces the limits of the commands from outside: time, memory and processes of everything they started, and output.
Time that the machine gave to others does not count: a busy machine is not a fault of the code.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

POLL_S = 0.02
# On a busy machine a command ends at the latest after this multiple of its limit.
LONGEST_WAIT = 8
HEAD, TAIL = 48_000, 16_000
LONGEST_RESULT = 8_000_000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
SPARE_PROCESSES = 16
# How a process ends at a limit of processor time: that of the command, and that which a program sets for one call.
SIGNALS = {-signal.SIGXCPU: "time", -signal.SIGPROF: "call"}
PAGE = os.sysconf("SC_PAGE_SIZE")
# Whether this process is the first of a namespace of its own. It is looked up, never passed in: only in that case all
# other processes were started by the commands.
FIRST = os.getpid() == 1


class Captured:
    """The beginning and the end of what a command prints."""

    def __init__(self) -> None:
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = HEAD - len(self.head)
        self.head += data[:room]
        self.tail = (self.tail + data[room:])[-TAIL:] if len(data) > room else self.tail

    def text(self) -> str:
        left_out = self.total - len(self.head) - len(self.tail)
        gap = f"\n[{left_out} bytes left out]\n" if left_out else ""
        return self.head.decode("utf-8", "replace") + gap + self.tail.decode("utf-8", "replace")


def household() -> list[int]:
    """Processes that the commands started: all others in its own namespace, else the descendants of this process."""
    found = {int(name): 0 for name in os.listdir("/proc") if name.isdigit()}
    if FIRST:
        return [pid for pid in found if pid != 1]
    for pid in found:
        with contextlib.suppress(OSError, ValueError, IndexError):
            found[pid] = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    ours = {os.getpid()}
    while more := {pid for pid, parent in found.items() if parent in ours} - ours:
        ours |= more
    return sorted(ours - {os.getpid()})


def weight(pids: list[int]) -> tuple[int, int]:
    """Threads and resident bytes of all of them."""
    threads = memory = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            if fields[0] == "Z":
                continue
            threads += int(fields[17])
            memory += int(fields[21]) * PAGE
    return threads, memory


class Waiting:
    """How long the commands were ready to run but waited, because the machine ran something else."""

    def __init__(self) -> None:
        self.seconds = 0.0
        # Thread -> nanoseconds on a processor, and in the queue for one.
        self._known: dict[str, tuple[int, int]] = {}
        self._looked_at = time.monotonic()

    def look(self, pids: list[int]) -> None:
        """Add what came since the last look: at most the time they did not run, however many of them waited at once."""
        now, known, ready = time.monotonic(), dict[str, tuple[int, int]](), False
        for pid in pids:
            with contextlib.suppress(OSError):
                for thread in os.listdir(f"/proc/{pid}/task"):
                    with contextlib.suppress(OSError, ValueError, IndexError):
                        place = Path(f"/proc/{pid}/task/{thread}")
                        ran, queued, _ = (place / "schedstat").read_text().split()
                        known[thread] = int(ran), int(queued)
                        ready = ready or (place / "stat").read_text().rpartition(")")[2].split()[0] == "R"
        before = [self._known.get(thread, (0, 0)) for thread in known]
        ran, queued = (sum(each[at] for each in known.values()) - sum(each[at] for each in before) for at in (0, 1))
        idle = max(0.0, now - self._looked_at - ran / 1e9)
        # A wait is in the queue's figure only once it is over: for a thread that still wants to run, all of it counts.
        # Where the kernel reports nothing, nothing does.
        self.seconds += idle if ready else min(idle, queued / 1e9)
        self._known, self._looked_at = known, now


def confine(limits: dict[str, Any]) -> None:
    """In the command's own process, before it begins."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    address_space = limits["memory"] * 2
    resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    resource.setrlimit(resource.RLIMIT_CPU, (limits["seconds"] + 1, limits["seconds"] + 2))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits["file"], limits["file"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    if FIRST:
        # A second limit, for processes that start faster than they are counted. Outside the namespace it would count
        # other processes of the user.
        most = limits["processes"] + SPARE_PROCESSES
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    else:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def clear_out(process: subprocess.Popen[bytes]) -> None:
    """End everything that a command started. Orphans become children of this process."""
    while True:
        with contextlib.suppress(OSError):
            if FIRST:
                os.kill(-1, signal.SIGKILL)
        for pid in () if FIRST else household():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def watch(
    process: subprocess.Popen[bytes], limits: dict[str, Any], waiting: Waiting
) -> tuple[str | None, Captured, Captured]:
    """Wait until the command ends or exceeds a limit. Returns that limit and the output."""
    out, err = Captured(), Captured()
    assert process.stdout is not None
    assert process.stderr is not None
    reading = selectors.DefaultSelector()
    for stream, into in ((process.stdout, out), (process.stderr, err)):
        os.set_blocking(stream.fileno(), False)
        reading.register(stream, selectors.EVENT_READ, into)
    began, looked_at = time.monotonic(), 0.0
    while True:
        ended = process.poll() is not None
        for key, _ in reading.select(0 if ended else POLL_S):
            data = os.read(key.fd, 65536)
            key.data.add(data)
            if not data:
                reading.unregister(key.fileobj)
        now = time.monotonic()
        if ended:
            # What is still in the pipe is read; a grandchild that holds it open is not waited for.
            while left := [key for key, _ in reading.select(0) if _drain_once(key)]:
                for key in left:
                    reading.unregister(key.fileobj)
            return None, out, err
        if now - looked_at >= POLL_S:
            looked_at = now
            ours = household()
            # Before the time is judged: when others had the machine, this process waited too.
            waiting.look(ours)
            threads, memory = weight(ours)
            if threads > limits["processes"]:
                return "processes", out, err
            if memory > limits["memory"]:
                return "memory", out, err
        # Where the kernel does not report waiting times, nothing is subtracted.
        if now - began >= min(limits["seconds"] + waiting.seconds, limits["seconds"] * LONGEST_WAIT):
            return "time", out, err
        if out.total + err.total > limits["output"]:
            return "output", out, err


def _drain_once(key: selectors.SelectorKey) -> bool:
    """Read once; returns whether that was the end."""
    try:
        data = os.read(key.fd, 65536)
    except BlockingIOError:
        return True
    key.data.add(data)
    return not data or key.data.total > HEAD * 100


def run(step: dict[str, Any], order: dict[str, Any], scratch: Path) -> dict[str, Any]:
    limits = {**order["limits"], **step.get("limits", {})}
    began = time.monotonic()
    process = subprocess.Popen(
        step["command"],
        cwd=scratch / step.get("cwd", "project"),
        env={**order["env"], **step.get("env", {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: confine(limits),  # noqa: PLW1509 -- there are no threads here
    )
    waiting = Waiting()
    stopped, out, err = watch(process, limits, waiting)
    clear_out(process)
    stopped = stopped or SIGNALS.get(process.returncode)
    return {
        "code": None if stopped else process.returncode,
        "stopped": stopped,
        "stdout": out.text(),
        "stderr": err.text(),
        "result": result_of(scratch / step["result"]) if step.get("result") else None,
        "seconds": round(time.monotonic() - began, 3),
        "waited": round(waiting.seconds, 3),
    }


def result_of(path: Path) -> str | None:
    """What a command left as its result: a plain file, never a link to something else."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(LONGEST_RESULT).decode("utf-8", "replace")


def lay_out(order: dict[str, Any], scratch: Path) -> None:
    """Make the temporary copy of the project, an empty home, and the files of the order."""
    for name in ("home", "tmp"):
        (scratch / name).mkdir(exist_ok=True)
    shutil.copytree(order["source"], scratch / "project", symlinks=True, dirs_exist_ok=True)
    shutil.copytree(order["tables"], scratch / "tmp" / "hypothesis", dirs_exist_ok=True)
    for name, text in order["files"].items():
        path = scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main() -> None:
    order: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    # The commands must not be able to read or steer this process.
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if FIRST:
        # The first process is safe from signals it has no handler for, and Python has one for this.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    scratch = Path(order["scratch"])
    lay_out(order, scratch)
    steps: list[dict[str, Any]] = []
    for step in order["steps"]:
        steps.append(run(step, order, scratch))
        if steps[-1]["stopped"] and not order["go_on"]:
            break
    sys.stdout.write(json.dumps({"steps": steps}))


if __name__ == "__main__":
    main()
