"""A way out of the sandbox, if there is one, becomes a line on stdout. Nothing is changed by trying.

Usage: try_escape.py PATH; PATH is a file outside that could be written, if the sandbox did not hold.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

# Opened for writing, never written to: root may do that to a kernel whose settings are within reach.
SETTINGS = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sysrq-trigger",
    "/proc/irq",
    "/proc/bus",
)


def can_be_written(path: str) -> bool:
    """By what the mount allows and, for a file, by opening it; a setting that does not exist is not a way out."""
    if not Path(path).exists():
        return False
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return False
    if Path(path).is_dir():
        return os.access(path, os.W_OK)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def privileges() -> bool:
    """Whether this process has a capability, or could get one by running another program."""
    fields = dict(line.split(":\t") for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    return int(fields["CapEff"], 16) | int(fields["CapPrm"], 16) != 0 or fields["NoNewPrivs"] != "1"


def is_root_outside() -> bool:
    """Whether this user, whatever its number here, is the machine's root, who owns the kernel's settings."""
    return Path("/proc/sys/kernel").stat().st_uid == os.getuid()


def main(outside: str) -> None:
    try:
        Path(outside).write_text("x", encoding="utf-8")
        print("the disk")
    except OSError:
        pass
    if os.access(sys.prefix, os.W_OK):
        print("the disk")
    if len(socket.if_nameindex()) > 1:
        print("the network")
    for path in (*SETTINGS, "/sys"):
        if can_be_written(path):
            print(f"the kernel's settings ({path})")
    if privileges():
        print("privileges")
    if is_root_outside():
        print("what belongs to root")


if __name__ == "__main__":
    main(sys.argv[1])
