"""The machine -> what a program sees of it: few variables, the system read-only, its own folders, nothing of a home.

If the system cannot make namespaces, only the variables are hidden from it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from chargehand.process import ProcessStopped, run_process
from chargehand.process.namespaces import (
    SYSTEM,
    SYSTEM_SETTINGS,
    Enclosure,
    Means,
    enter_command,
    existing_paths,
    order_of_preference,
)
from chargehand.programs.work_folders import WorkFolder
from chargehand.values.program import Program

# Passed on if they are set.
_ALWAYS = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
_OF_NETWORK = (
    "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
)  # fmt: skip
_OF_PRESET = {
    "claude": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN"),
    "codex": ("OPENAI_API_KEY", "CODEX_API_KEY", "OPENAI_BASE_URL"),
    None: (),
}
_SETTINGS = tuple(
    f"/etc/{name}"
    for name in ("ssl", "ca-certificates", "pki", "resolv.conf", "hosts", "gai.conf", "services", "protocols")
)
_MARK = "CHARGEHAND_WORK"
_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")
_SHORTEST_SECRET = 6
_MOST_PROCESSES = 4_096
_TRIAL_S = 20.0


def environment_of(program: Program, folder: WorkFolder, given: Mapping[str, str]) -> dict[str, str]:
    """The variables it gets: those on the list, and the paths of its own folders."""
    names = (*_ALWAYS, *(_OF_NETWORK if program.network else ()), *_OF_PRESET[program.preset], *program.env)
    return {
        **{name: given[name] for name in names if name in given},
        "HOME": str(folder.home),
        "TMPDIR": str(folder.tmp),
        "CHARGEHAND_MATERIAL": str(folder.material),
        _MARK: str(folder.path),
    }


def secrets_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values that must not be on the record, longest first."""
    named = [value for name, value in environment.items() if any(word in name.upper() for word in _SECRET)]
    return tuple(sorted({value for value in named if len(value) >= _SHORTEST_SECRET}, key=len, reverse=True))


def enclosure_of(
    program: Program,
    executables: Sequence[str],
    folder: WorkFolder,
    material: Mapping[str, str],
    borrowed: Sequence[str],
    hidden: Path | None,
) -> Enclosure:
    """What exists for the program. `hidden` is the home of runs, which it never sees."""
    python = [sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parent.parent)]
    resolver = os.path.realpath("/etc/resolv.conf")
    own = [os.path.expanduser(path) for path in program.visible]
    programs = [path for each in executables for path in _installation(each)]
    wanted = [*SYSTEM, "/opt", *SYSTEM_SETTINGS, *_SETTINGS, resolver, *python, *programs, *borrowed, *own]
    shown = {os.path.realpath(path): str(folder.material / name) for name, path in material.items()}
    read_only = existing_paths(wanted)
    return Enclosure(
        root=folder.root,
        read_only=read_only,
        writable=[str(each) for each in folder.writable],
        shown_at=shown,
        scratch=dict.fromkeys(_places_of(hidden, read_only, shown), 1 << 16),
        network=program.network,
        folder=str(folder.work),
        reaps=True,
    )


def _places_of(hidden: Path | None, read_only: Sequence[str], shown: Mapping[str, str]) -> list[str]:
    """The paths at which the program would see the home of runs."""
    if hidden is None or not hidden.exists():
        return []
    home = Path(os.path.realpath(hidden))
    places = [str(home)] if any(home.is_relative_to(path) for path in read_only) else []
    return places + [str(Path(at, home.relative_to(path))) for path, at in shown.items() if home.is_relative_to(path)]


def _installation(executable: str) -> list[str]:
    """The folders a program needs to start: that of its link, that of its file, and its packages of node."""
    real = Path(os.path.realpath(executable))
    found = [str(Path(executable).parent), str(real.parent)]
    if "node_modules" in real.parts:
        packages = Path(*real.parts[: real.parts.index("node_modules") + 1])
        found.append(str(packages))
    if "shims" in (Path(executable).parent.name, real.parent.name):
        # A version manager, such as pyenv: the versions are next to the folder of shims.
        found.append(str(real.parent.parent))
    node = shutil.which("node")
    return [*found, *([os.path.dirname(os.path.realpath(node))] if node else [])]


def limit_processes(command: Sequence[str]) -> list[str]:
    """The command with a limit on processes, for its own namespaces, so that endless forking is stopped."""
    limit = ["prlimit", f"--nproc={_MOST_PROCESSES}", "--core=0", "--"] if shutil.which("prlimit") else []
    return [*limit, *command]


_found: dict[bool, Means] = {}


async def find_means(*, network: bool) -> Means:
    """How programs can be isolated on this machine, found by one trial; "none" if they cannot."""
    if network not in _found:
        for means in order_of_preference():
            if shutil.which(means) is not None and await _works(means, network):
                _found[network] = means
                break
        else:
            _found[network] = "none"
    return _found[network]


async def _works(means: Means, network: bool) -> bool:
    with tempfile.TemporaryDirectory(prefix="chargehand-programs-") as name:
        seen = Enclosure(root=Path(name), read_only=existing_paths(SYSTEM), network=network, reaps=True)
        command = enter_command(limit_processes(["true"]), means, seen)
        try:
            return (await run_process(command, seconds=_TRIAL_S)).code == 0
        except (OSError, ProcessStopped):
            return False


def kill_marked(folder: WorkFolder) -> None:
    """Kill what a program without namespaces left running: processes that still have its mark."""
    mark = os.fsencode(f"{_MARK}={folder.path}")
    for pid in (name for name in os.listdir("/proc") if name.isdigit()) if os.path.isdir("/proc") else ():
        try:
            if mark in Path("/proc", pid, "environ").read_bytes().split(b"\0"):
                os.kill(int(pid), 9)
        except OSError:
            continue
