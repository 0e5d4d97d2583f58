"""Thirty ways out of the sandbox, tried in each kind of sandbox that this machine has: none of them leads anywhere."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from chargehand.apps.testgen import sandbox
from chargehand.apps.testgen.sandbox import CommandResult, SandboxLimits, Step, room
from chargehand.apps.testgen.sandbox_command import Means

CANARY = "chargehand-escape-canary"
LIBC = "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True)\n"
# What is tried, and Python that prints "out" if it worked. PORT, FILE, FOLDER and PID are of the process outside.
ESCAPES = {
    "a server on this machine": "import socket; socket.create_connection(('127.0.0.1', PORT), 1); print('out')",
    "a server elsewhere": "import socket; socket.create_connection(('192.0.2.1', 80), 1); print('out')",
    "a datagram": "import socket; s = socket.socket(2, 2); s.connect(('192.0.2.1', 53)); s.send(b'x'); print('out')",
    "names of hosts": "import socket; socket.getaddrinfo('example.org', 443); print('out')",
    "a raw socket": "import socket; socket.socket(2, 3, 1); print('out')",
    "the sockets of packets": "import socket; socket.socket(17, 3, 3); print('out')",
    "a socket in a folder": "import socket; socket.socket(1).connect('FOLDER/socket'); print('out')",
    "an abstract socket": "import socket; socket.socket(1).connect('\\0CANARY'); print('out')",
    "reading a file of the user": "print('out' if 'CANARY' in open('FILE').read() else '')",
    "writing a file of the user": "open('FILE', 'a').write('planted'); print('out')",
    "a file beside it": "open('FOLDER/planted', 'w').write('x'); print('out')",
    "the tests' own code": f"open({sandbox.__file__!r}, 'a'); print('out')",
    "the interpreter": "import sys; open(sys.executable, 'r+b'); print('out')",
    "installed packages": "import pytest; open(pytest.__file__, 'a'); print('out')",
    "the system's users": "open('/etc/passwd', 'a'); print('out')",
    "the system's secrets": "open('/etc/shadow').read(); print('out')",
    "the real home": "import os; print('out' if os.path.exists('HOMEFILE') else '')",
    "a link out of the copy": "import os; os.symlink('FILE', 'l'); open('l').read(); print('out')",
    "the environment outside": (
        "import glob\nfor f in glob.glob('/proc/*/environ'):\n"
        "    try: print('out' if b'CANARY' in open(f, 'rb').read() else '')\n    except OSError: pass"
    ),
    "the root of the first process": "import os; print('out' if os.path.exists('/proc/1/root' + 'FILE') else '')",
    "the memory of the first process": "open('/proc/1/mem', 'r+b').read(1); print('out')",
    "open files of the first process": "import os; [os.open(f'/proc/1/fd/{n}', 1) for n in range(3)]; print('out')",
    "the kernel's settings": "open('/proc/sys/kernel/core_pattern', 'w').write('|x'); print('out')",
    "the kernel's trigger": "import os; os.open('/proc/sysrq-trigger', os.O_WRONLY); print('out')",
    "tracing the first process": LIBC + "print('out' if libc.ptrace(16, 1, 0, 0) == 0 else '')",
    "tracing the process outside": LIBC + "print('out' if libc.ptrace(16, PID, 0, 0) == 0 else '')",
    "killing the process outside": "import os; os.kill(PID, 9); print('out')",
    "mounting": LIBC + "print('out' if libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0 else '')",
    "making /usr writable": LIBC + "print('out' if libc.mount(b'none', b'/usr', None, 4096 | 32, None) == 0 else '')",
    "letting go of a mount": LIBC + "print('out' if libc.umount2(b'/proc', 2) == 0 else '')",
    "a namespace of its own": LIBC + "print('out' if libc.unshare(0x10000000) == 0 else '')",
    "mounts of its own": LIBC + "print('out' if libc.unshare(0x00020000) == 0 else '')",
    "the namespace of the first process": LIBC
    + "print('out' if libc.setns(os.open('/proc/1/ns/net', 0), 0) == 0 else '')",
    "another root": LIBC + "print('out' if libc.chroot(b'.') == 0 else '')",
    "becoming root": "import os; os.setuid(0); os.listdir('/root'); print('out')",
    "a program with the owner's rights": (
        "import shutil, subprocess\nprint('out' if subprocess.run([shutil.which('su') or 'su', '-c', 'id'], "
        "capture_output=True, timeout=5, stdin=-3).returncode == 0 else '')"
    ),
    "a device": LIBC + "print('out' if os.mknod('d', 0o60600, os.makedev(8, 0)) is None else '')",
    "the disk's device": (
        "import os\nfor name in {'vda', 'sda'} & {*os.listdir('/dev')}: os.open(f'/dev/{name}', 0); print('out')"
    ),
    "the kernel's log": "open('/dev/kmsg', 'w').write('x'); print('out')",
    "a larger limit": (
        "import resource; h = resource.getrlimit(resource.RLIMIT_AS)[1]\n"
        "resource.setrlimit(resource.RLIMIT_AS, (h * 2, h * 2)); print('out')"
    ),
    "the clock of the machine": "import time; time.clock_settime(time.CLOCK_REALTIME, time.time()); print('out')",
    "the name of the machine": "import socket; socket.sethostname('x'); print('out')",
}
# What only ends when something ends it: each is stopped at a limit, and what comes after it runs.
FLOODS = {
    "a fork bomb": ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", "processes"),
    "threads": ("import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,)).start()", ""),
    "memory": ("kept = []\nwhile True: kept.append(bytearray(8 << 20))", ""),
    "a large file": ("open('f', 'wb').write(bytes(100 << 20))", ""),
    "many files": ("n = 0\nwhile True: n += 1; open(f'f{n}', 'wb').write(bytes(1 << 20))", ""),
    "shared memory": ("n = 0\nwhile True: n += 1; open(f'/dev/shm/f{n}', 'wb').write(bytes(1 << 20))", ""),
    "printing": ("while True: print('x' * 10000)", "output"),
    "sleeping": ("import time; time.sleep(600)", "time"),
    "signals ignored": (
        "import signal\nfor n in {*range(1, 32)} - {9, 19}: signal.signal(n, signal.SIG_IGN)\nwhile True: pass",
        "time",
    ),
    "killing everybody": ("import os, signal; os.kill(-1, signal.SIGKILL)", ""),
    "killing the first process": ("import os; os.kill(1, 9); os.kill(os.getppid(), 15); os._exit(1)", ""),
}


def available() -> list[Means]:
    """The sandboxes that this machine gives, not only the one that is preferred."""
    tried: tuple[Means, ...] = ("bwrap", "unshare")
    installed = [means for means in tried if shutil.which(means)]
    return [means for means in installed if asyncio.run(sandbox._try_means(means)) is None]  # pyright: ignore[reportPrivateUsage]


def attempt(folder: Path, means: Means, codes: list[str], limits: SandboxLimits) -> list[CommandResult]:
    async def inside() -> list[CommandResult]:
        with room(folder, means) as sealed:
            return await sealed.run([Step((sys.executable, "-c", code)) for code in codes], limits=limits)

    return asyncio.run(inside())


@pytest.mark.parametrize("means", ["bwrap", "unshare"])
def test_every_way_out_is_closed(tmp_path: Path, means: Means, monkeypatch: pytest.MonkeyPatch) -> None:
    """Network, files, environment, /proc, tracing, mounts, namespaces, rights: none of them, and nothing is changed."""
    if means not in available():
        pytest.skip(f"this machine has no {means} that holds")
    assert len(ESCAPES) >= 30
    monkeypatch.setenv("CANARY", CANARY)
    secret = tmp_path / "secret"
    secret.write_text(CANARY)
    project = tmp_path / "project"
    project.mkdir()
    waiting = "import time; time.sleep(600)"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as local,
        socket.socket(socket.AF_UNIX) as abstract,
        subprocess.Popen([sys.executable, "-S", "-c", waiting]) as bystander,
    ):
        try:
            local.bind(str(tmp_path / "socket"))
            local.listen()
            abstract.bind(f"\0{CANARY}")
            abstract.listen()
            at_home = next((path for path in Path.home().iterdir() if path.is_file()), secret)
            outside = {
                "HOMEFILE": str(at_home),
                "PORT": str(server.getsockname()[1]),
                "FILE": str(secret),
                "FOLDER": str(tmp_path),
                "PID": str(bystander.pid),
                "CANARY": CANARY,
            }
            codes: list[str] = []
            for code in ESCAPES.values():
                for name, value in outside.items():
                    code = code.replace(name, value)  # noqa: PLW2901 -- one after the other
                codes.append(code)
            ended = attempt(project, means, codes, SandboxLimits(seconds=10))
            assert bystander.poll() is None
        finally:
            bystander.send_signal(signal.SIGKILL)
    escaped = [name for name, each in zip(ESCAPES, ended, strict=True) if "out" in each.stdout]
    assert escaped == []
    assert (secret.read_text(), sorted(os.listdir(tmp_path))) == (CANARY, ["project", "secret", "socket"])


@pytest.mark.parametrize("means", ["bwrap", "unshare"])
def test_every_flood_is_stopped_and_the_next_command_runs(tmp_path: Path, means: Means) -> None:
    """Processes, memory, disk, output, time, and killing whatever can be seen."""
    if means not in available():
        pytest.skip(f"this machine has no {means} that holds")
    limits = SandboxLimits(seconds=2, memory=256 << 20)
    for name, (code, stopped) in FLOODS.items():
        ended, after = attempt(tmp_path, means, [code, "print('well')"], limits)
        assert after.stdout == "well\n", name
        assert ended.code != 0, name
        assert not stopped or ended.stopped == stopped, name
