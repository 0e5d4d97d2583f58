"""Code in the sandbox reaches nothing outside of it and stays within its limits."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chargehand.apps.testgen import sandbox
from chargehand.apps.testgen.in_sandbox import try_escape
from chargehand.apps.testgen.project_copy import digest
from chargehand.apps.testgen.sandbox import SandboxLimits, find_means, room
from chargehand.errors import UsageError
from tests.apps.testgen.rooms import means, project, run
from tests.pace import slowness

MEGABYTE = 1 << 20


def test_the_real_tree_and_home_cannot_be_written_to(tmp_path: Path) -> None:
    """Writing to the project, to the real home, to installed packages or to the system fails and changes nothing."""
    root = project(tmp_path, {"code.py": "x = 1\n"})
    places = [root / "code.py", Path.home() / "planted", Path(sandbox.__file__), Path("/etc/passwd")]
    before = [path.read_bytes() if path.exists() else None for path in places]
    codes = [f"import pathlib; pathlib.Path({str(path)!r}).write_text('planted')" for path in places]
    for ended in run(root, *codes):
        assert ended.code == 1
    assert [path.read_bytes() if path.exists() else None for path in places] == before


def test_home_and_tmp_are_the_rooms_own(tmp_path: Path) -> None:
    """HOME and TMPDIR can be written to, and what is written is gone with the room."""
    code = (
        "import os, pathlib, tempfile\n"
        "home = pathlib.Path.home() / 'x'; home.write_text('x')\n"
        "print(home); print(tempfile.mkstemp()[1])"
    )
    (ended,) = run(tmp_path, code)
    home, temporary = map(Path, ended.stdout.split())
    assert ended.code == 0
    assert home.parent != Path.home()
    assert not home.exists()
    assert not temporary.exists()


def test_the_project_can_be_changed_only_in_its_copy(tmp_path: Path) -> None:
    """Code that edits the file beside it edits the copy, and each room starts from the real file again."""
    root = project(tmp_path, {"code.py": "x = 1\n"})
    code = "import pathlib; p = pathlib.Path('code.py'); p.write_text(p.read_text() + 'y'); print(p.read_text())"
    assert [ended.stdout for _ in range(2) for ended in run(root, code)] == ["x = 1\ny\n"] * 2
    assert (root / "code.py").read_text() == "x = 1\n"


def test_there_is_no_network(tmp_path: Path) -> None:
    """A server on this machine's loopback is not to be reached, nor is anything else."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
        ended, far = run(tmp_path, code, "import socket; socket.create_connection(('192.0.2.1', 80), 2)")
    assert ended.code == 1
    assert "Error" in ended.stderr
    assert far.code == 1


def test_keys_in_the_environment_stay_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the caller's environment is passed on."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    (ended,) = run(tmp_path, "import os; print(dict(os.environ)); print(open('/proc/self/environ').read())")
    assert ended.code == 0
    assert "canary" not in ended.stdout


def test_dot_env_files_are_not_copied(tmp_path: Path) -> None:
    """What a .env file holds cannot end up in a test."""
    root = project(tmp_path, {".env": "TOKEN=1", ".env.local": "TOKEN=2", "code.py": ""})
    (ended,) = run(root, "import os; print(os.listdir('.'))")
    assert ended.stdout.strip() == "['code.py']"


def test_a_fork_bomb_is_stopped(tmp_path: Path) -> None:
    """Processes without end are counted and killed, and the next command runs as if nothing had been."""
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"
    ended, after = run(tmp_path, bomb, "print('well')")
    assert ended.stopped == "processes"
    assert after.stdout == "well\n"


def test_ten_gigabytes_are_not_given(tmp_path: Path) -> None:
    """One allocation of 10 GB fails; many small ones are stopped at the limit."""
    whole, piecemeal = run(
        tmp_path,
        "b = bytearray(10 << 30)",
        "import os\nfor _ in range(4): os.fork()\nkept = bytearray(b'x' * (60 << 20))\nwhile True: pass",
        limits=SandboxLimits(seconds=10, memory=200 * MEGABYTE),
    )
    assert "MemoryError" in whole.stderr
    assert piecemeal.stopped in ("memory", "processes")


def test_code_that_does_not_end_is_ended(tmp_path: Path) -> None:
    """A loop and what ignores signals are stopped at the limit of time."""
    stubborn = (
        "import signal, time\nfor n in {*range(1, 32)} - {9, 19}: signal.signal(n, signal.SIG_IGN)\ntime.sleep(60)"
    )
    for ended in run(tmp_path, "while True: pass", stubborn, limits=SandboxLimits(seconds=1)):
        assert ended.stopped == "time"
        assert ended.seconds - ended.waited < 5 * slowness()


def test_what_is_left_running_does_not_outlive_its_command(tmp_path: Path) -> None:
    """A daemon in a session of its own is gone when the next command looks."""
    daemon = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(60)\n"
    look = "import os; print([p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())])"
    _, ended = run(tmp_path, daemon, look)
    assert ended.stdout.strip() == "[]"


def test_endless_printing_is_cut_and_stopped(tmp_path: Path) -> None:
    """Of megabytes of output the beginning and the end are kept."""
    loud, much = run(tmp_path, "while True: print('x' * 10000)", "print('first' + 'x' * 500000 + 'last')")
    assert loud.stopped == "output"
    assert len(loud.stdout) < 100_000
    assert much.stdout.startswith("first")
    assert much.stdout.endswith("last\n")


def test_the_disk_cannot_be_filled(tmp_path: Path) -> None:
    """A large file fails at its limit and many small ones at the room's size."""
    large = "open('large', 'wb').write(b'x' * (100 << 20))"
    many = "for n in range(100): open(f'f{n}', 'wb').write(b'x' * (8 << 20))"
    for ended in run(tmp_path, large, many):
        assert ended.code == 1
        assert "OSError" in ended.stderr


def test_no_capability_is_left_inside(tmp_path: Path) -> None:
    """Code can neither mount nor regain what was dropped, and cannot look into the program that runs it."""
    codes = [
        "import ctypes; assert ctypes.CDLL(None).mount(b'none', b'/usr', None, 4096 | 32, None) == 0",
        "print(open('/proc/1/environ').read())",
    ]
    mounted, looked = run(tmp_path, *codes)
    assert mounted.code == 1
    assert looked.code == 1


def test_the_runner_never_takes_others_for_its_own(tmp_path: Path) -> None:
    """Outside of a namespace of its own it ends what it started and nobody else."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as bystander:
        ended, _ = run(tmp_path, "import os, time\nif os.fork() == 0: time.sleep(60)\n", "pass", by="none")
        assert ended.code == 0
        assert bystander.poll() is None
        bystander.kill()


def test_without_a_sandbox_it_refuses_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither bubblewrap nor unshare works, nothing is run, and the message says what to do."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError) as refused:
        asyncio.run(find_means())
    assert "bwrap is not installed" in str(refused.value)
    assert "unshare is not installed" in str(refused.value)
    assert "--unsafe-run" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code == 2


def test_a_sandbox_that_does_not_hold_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that only claims to be a sandbox is found out by trying it."""
    fake = '#!/bin/sh\nwhile [ $# -gt 0 ]; do case "$1" in */python*) exec "$@";; esac; shift; done\n'
    for name in ("bwrap", "unshare"):
        program = tmp_path / name
        program.write_text(fake)
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(UsageError, match="gives none"):
        asyncio.run(find_means())


def test_unsafe_runs_keep_the_copy_and_the_limits(tmp_path: Path) -> None:
    """Without a sandbox the code still works on a copy, with a home of its own, and is stopped in time."""
    root = project(tmp_path, {"code.py": "x = 1\n"})
    code = "import pathlib; pathlib.Path('code.py').unlink(); print(pathlib.Path.home())"
    daemon = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\n"
    copied, endless, left = run(root, code, "while True: pass", daemon, limits=SandboxLimits(seconds=1), by="none")
    assert copied.code == 0
    assert copied.stdout.strip() != str(Path.home())
    assert (root / "code.py").exists()
    assert endless.stopped == "time"
    assert left.seconds < 5 * slowness()


def test_a_missing_tool_is_one_line_with_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, testgen says what to install."""
    monkeypatch.setattr(sandbox, "TOOLS", ("hypothesis", "not_installed_anywhere"))
    with pytest.raises(UsageError, match=r"not_installed_anywhere: pip install 'chargehand\[testgen\]'"):
        asyncio.run(find_means())


def test_a_room_leaves_nothing_behind(tmp_path: Path) -> None:
    """The snapshot is gone when the room is left."""
    with room(tmp_path, "none") as made:
        assert made.source.is_dir()
    assert not made.folder.exists()
    assert made.folder.is_relative_to(Path(tempfile.gettempdir()).resolve())


def test_the_means_found_here_hold() -> None:
    """What `find_means` answers is one of the two sandboxes."""
    assert means() in ("bwrap", "unshare")


def test_the_kernels_settings_cannot_be_opened_for_writing(tmp_path: Path) -> None:
    """Not even by root: /proc is read-only, there is no /sys, and the code is not root. Nothing is written."""
    code = (
        "import os\n"
        "for path in ('/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/proc/sys/vm/drop_caches'):\n"
        "    try: os.close(os.open(path, os.O_WRONLY)); print('open', path)\n"
        "    except OSError: pass\n"
        "print(bool(os.statvfs('/proc/sys').f_flag & os.ST_RDONLY), os.path.exists('/sys'))\n"
        "real = [line.split() for line in open('/proc/self/uid_map')]\n"
        "print([outer for inner, outer, _ in real if int(inner) == os.getuid()] == ['0'])\n"
        "wanted = ('CapPrm', 'CapEff', 'NoNewP')\n"
        "print(*[line.split()[1] for line in open('/proc/self/status') if line[:6] in wanted])\n"
    )
    (ended,) = run(tmp_path, code)
    assert ended.stdout.splitlines() == ["True False", "False", "0000000000000000 0000000000000000 1"]


def test_the_trial_sees_a_setting_in_reach_without_writing_to_it(tmp_path: Path) -> None:
    """By the mount, and by opening it without a word. Here a file stands for a setting."""
    setting = tmp_path / "core_pattern"
    setting.write_text("core")
    assert try_escape.can_be_written(str(setting))
    assert not try_escape.can_be_written(str(tmp_path / "absent"))
    assert setting.read_text() == "core"


def test_code_cannot_interrupt_its_runner(tmp_path: Path) -> None:
    """SIGINT to the first process of the namespace changes nothing: it starts the next code, which stops itself."""
    code = "import os, signal; os.kill(1, signal.SIGINT); print('well')"
    own = (
        "import os, signal\ntry: os.kill(os.getpid(), signal.SIGINT)\nexcept KeyboardInterrupt: print('interrupted')\n"
    )
    for ended, said in zip(run(tmp_path, code, own), ("well", "interrupted"), strict=True):
        assert ended.stdout.strip() == said


def test_a_working_sandbox_is_used_even_where_none_would_do(tmp_path: Path) -> None:
    """--unsafe-run is for machines without one."""
    assert asyncio.run(find_means(unsafe=True)) == means()


def test_what_only_its_owner_may_read_is_readable_inside(tmp_path: Path) -> None:
    """The code runs as somebody else where the caller is root."""
    root = project(tmp_path, {"rates.json": "[1]"})
    (root / "rates.json").chmod(0o600)
    (ended,) = run(root, "print(open('rates.json').read())")
    assert ended.stdout == "[1]\n"


def test_a_package_named_env_is_copied_and_an_environment_is_not(tmp_path: Path) -> None:
    """What makes a virtual environment is its pyvenv.cfg, not its name."""
    root = project(tmp_path, {"env/__init__.py": "", "venv/pyvenv.cfg": "", "venv/lib.py": ""})
    (ended,) = run(root, "import os; print(os.listdir('.'))")
    assert ended.stdout.strip() == "['env']"


def test_every_file_counts_for_what_is_known(tmp_path: Path) -> None:
    """A data file that changes makes another snapshot; so does a name."""
    root = project(tmp_path, {"code.py": "", "rates.json": "1", ".git/HEAD": "a"})
    first = digest(root)
    project(root, {".git/HEAD": "b"})
    assert digest(root) == first
    project(root, {"rates.json": "2"})
    second = digest(root)
    (root / "rates.json").rename(root / "rate.json")
    assert len({first, second, digest(root)}) == 3


def test_what_takes_long_to_make_is_kept_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """hypothesis' tables are made by the first process and found by the next; an unwritable home only costs time."""
    made: list[str] = []
    real = subprocess.run

    def run(*args: Any, **options: Any) -> Any:
        made.append(options["env"]["HYPOTHESIS_STORAGE_DIRECTORY"])
        return real(*args, **options)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setenv("CHARGEHAND_HOME", str(tmp_path / "home"))
    first, second = (sandbox._tables.__wrapped__() for _ in range(2))
    assert first == second
    assert first.is_relative_to(tmp_path)
    assert list((first / "unicode_data").rglob("charmap*"))
    assert len(made) == 1
    (tmp_path / "file").touch()
    monkeypatch.setenv("CHARGEHAND_HOME", str(tmp_path / "file"))
    assert list((sandbox._tables.__wrapped__() / "unicode_data").rglob("charmap*"))


@contextmanager
def busy(times: int) -> Iterator[None]:
    """This process and what it starts share one processor with so many others that never rest."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    others = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(times)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()
        os.sched_setaffinity(0, before)


def test_a_busy_machine_is_not_taken_for_code_that_does_not_end(tmp_path: Path) -> None:
    """Time that others had does not count against a command; what sleeps or loops is stopped all the same."""
    limit = 2
    # Two others are enough mostly: what shares a processor fairly or by session gets a third to a half of it, so that
    # this takes longer than the limit. More would bring a machine that is busy anyway near the longest wait.
    needs_most_of_it = f"import time\nwhile time.process_time() < {0.7 * limit}: pass\nprint('done')"
    for others in (2, 6):
        with busy(others):
            ended, asleep = run(
                tmp_path, needs_most_of_it, "import time; time.sleep(60)", limits=SandboxLimits(seconds=limit)
            )
        assert (ended.stopped, ended.stdout) == (None, "done\n")
        if ended.seconds > limit:
            break
    assert ended.seconds > limit, "it was not held up, so that nothing was shown"
    assert asleep.stopped == "time"
    assert asleep.seconds - asleep.waited < 2 * limit, "what does not want to run is not waited for"
    assert asleep.waited < 2.5 * limit
