"""A new set of namespaces becomes a sandbox: some read-only paths, some writable folders, nothing else.

Run by `unshare` as the first process of its namespaces, on an order of `namespaces.py`. It ends by becoming the
command, or by waiting for it, without any capability. Where the caller is root it also starts `unshare`, because only
root can give the namespaces a second user to become. It imports no other module of chargehand: there is none inside the
sandbox.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
# mount_setattr has this number on every architecture; the flags are read-only, nosuid and nodev.
MOUNT_SETATTR, AT_RECURSIVE, READ_ONLY = 442, 0x8000, 1 | 2 | 4
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, LAST_CAPABILITY = 1, 24, 38, 63
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
# The user that root's sandbox runs as: the kernel lets root do much without any capability, for example write to
# /proc/sys.
NOBODY = 65534
DEVICES = ("null", "zero", "full", "random", "urandom")

libc = ctypes.CDLL(None, use_errno=True)


class MountAttributes(ctypes.Structure):
    """The attributes as mount_setattr(2) takes them."""

    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns", ctypes.c_uint64),
    )


def check_result(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source: str | Path, target: Path, kind: str, flags: int, data: str = "") -> None:
    given = (str(source).encode(), str(target).encode(), kind.encode(), flags, data.encode())
    check_result(libc.mount(*given), f"mount {target}")


def bind(source: Path, root: Path, *, read_only: bool, at: Path | None = None) -> None:
    """Show a file or folder under the new root, at the same path or at another one."""
    target = root / (at or source).relative_to("/")
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount(source, target, "", MS_BIND | MS_REC)
    if read_only:
        wanted = MountAttributes(set=READ_ONLY)
        given = (MOUNT_SETATTR, -1, str(target).encode(), AT_RECURSIVE, ctypes.byref(wanted), ctypes.sizeof(wanted))
        check_result(libc.syscall(*given), f"make {source} read-only")


def mount_root(root: Path, order: dict[str, Any]) -> None:
    """Make everything that will exist under the new root."""
    check_result(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "make mounts private")
    mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,mode=755")
    for path in map(Path, order["read_only"]):
        if path.is_symlink():
            link = root / path.relative_to("/")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(os.readlink(path))
        else:
            bind(path, root, read_only=True)
    for name in DEVICES:
        if Path("/dev", name).exists():
            bind(Path("/dev", name), root, read_only=False)
    for folder in map(Path, order["writable"]):
        bind(folder, root, read_only=False)
    for source, at in order["shown_at"]:
        bind(Path(source), root, read_only=True, at=Path(at))
    for folder, size in (("/dev/shm", "16m"), *order["scratch"].items()):  # noqa: S108
        place = root / Path(folder).relative_to("/")
        place.mkdir(parents=True, exist_ok=True)
        owner = f",uid={NOBODY},gid={NOBODY}" if order["root_outside"] else ""
        mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},mode=700{owner}")
    (root / "proc").mkdir()
    mount("proc", root / "proc", "proc", MS_NOSUID | MS_NODEV)


def seal(root: Path, order: dict[str, Any]) -> None:
    """Give up the old root, every way to change the kernel's settings, and every capability."""
    (root / ".old").mkdir()
    check_result(libc.pivot_root(str(root).encode(), str(root / ".old").encode()), "pivot_root")
    os.chdir("/")
    check_result(libc.umount2(b"/.old", MNT_DETACH), "let go of the old root")
    Path("/.old").rmdir()
    limit = Path("/proc/sys/user/max_user_namespaces")
    if limit.exists():
        limit.write_text("0")
    for place in (Path("/proc"), Path("/")):
        mount("none", place, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    for capability in range(LAST_CAPABILITY + 1):
        # Numbers beyond the kernel's last capability fail, which does no harm.
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    check_result(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    if order["root_outside"]:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        # The change of user has undone the effect of --kill-child.
        die_with_parent()


def check_alone(outside: dict[str, str]) -> None:
    """Make sure that these namespaces are our own: otherwise everything that follows would change the machine."""
    if os.getpid() != 1 or any(os.readlink(f"/proc/self/ns/{name}") == known for name, known in outside.items()):
        sys.exit("not in namespaces of its own: nothing was touched")


def start(order: dict[str, Any]) -> None:
    """As root: run `unshare`, and once its namespaces exist, map the users in them."""
    ready, ready_to = os.pipe()
    wait, go = os.pipe()
    inner = {**order, "start": None, "ready_to": ready_to, "wait": wait}
    command = [*order["start"], sys.executable, "-I", "-S", "-B", __file__, json.dumps(inner)]
    # A signal that ends this process is meant for all of its processes.
    with subprocess.Popen(command, pass_fds=(ready_to, wait), preexec_fn=die_with_parent) as process:  # noqa: PLW1509
        os.close(ready_to)
        os.close(wait)
        if os.read(ready, 1):
            for name in ("uid_map", "gid_map"):
                Path(f"/proc/{process.pid}/{name}").write_text(f"0 0 1\n{NOBODY} {NOBODY} 1\n")
            os.write(go, b"x")
        os.close(go)
    sys.exit(process.returncode)


def die_with_parent() -> None:
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def run_and_reap(command: list[str]) -> None:
    """Start the command, reap orphans until it ends, and end with its code: all other processes end with this one."""
    child = os.fork()
    if child == 0:
        try:
            os.execvp(command[0], command)  # noqa: S606 -- a list of arguments, no shell
        except OSError as error:
            print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
            os._exit(127)
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            sys.exit(code if code >= 0 else 128 - code)


def wait_for_users(order: dict[str, Any]) -> None:
    """Wait until the process outside has mapped the users."""
    os.write(order["ready_to"], b"x")
    os.close(order["ready_to"])
    if not os.read(order["wait"], 1):
        sys.exit("the users of these namespaces were not mapped")
    os.close(order["wait"])


def main(text: str) -> None:
    order: dict[str, Any] = json.loads(text)
    if order["start"]:
        return start(order)
    check_alone(order["outside"])
    os.umask(0o022)
    if order["root_outside"]:
        wait_for_users(order)
    root = Path(order["root"])
    mount_root(root, order)
    seal(root, order)
    if order["folder"]:
        os.chdir(order["folder"])
    if order["reaps"]:
        run_and_reap(order["command"])
    # This reduces root's capabilities to the empty bounding set.
    os.execvp(order["command"][0], order["command"])  # noqa: S606 -- a list of arguments, no shell


if __name__ == "__main__":
    main(sys.argv[1])
